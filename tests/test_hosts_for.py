"""`weft plan --hosts-for`: what other software takes of a plan, and how far it is from it."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Weft, heard
from small_plan import EXCHANGE, LEAF_SPINE
from weft import _native, api, software
from weft.errors import ExperimentError
from weft.plans import make
from weft.plans.hosts import flow_label
from weft.software import SOFTWARE, distance, files, planned, show
from weft.software.planned import Planned

HERE = Path(__file__).parent
FABRIC: dict[str, Any] = LEAF_SPINE["fabric"]
FAT_TREE = {"fabric": {"topology": "fat-tree", "k": 4, "link": "100Gbps", "delay": "500ns"}}
CLUSTER = """
[fabric]
topology = "leaf-spine"
leaves = 3
spines = 4
hosts_per_leaf = 4
link = "100Gbps"
delay = "500ns"
"""


@pytest.fixture(scope="module")
def found() -> Planned:
    """A plan that is optimal, on switches with a segment of source ports for each uplink."""
    return Planned(make.of(LEAF_SPINE, EXCHANGE, "ethereal"))


def uplinks(found: Planned, ports: list[int]) -> list[int]:
    """The uplinks of leaf-0 to which its switch sends these source ports."""
    segments = found.plan["segments"]["leaf-0"]
    ranges = [[one] if isinstance(one[0], int) else one for one in segments]
    return [
        next(up for up, some in enumerate(ranges) if any(a <= port <= b for a, b in some))
        for port in ports
    ]


def settings(text: str) -> dict[str, str]:
    """The variables of a file."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("name", SOFTWARE)
def test_every_software_says_what_it_is(name: str, found: Planned) -> None:
    """What is known, what survives, and what not; in each file of each host, and in the guide."""
    program = software.find(name)
    assert program.known
    assert program.survives
    made = files.of(name, found)
    assert [one.name for one in made] == [f"h{host}.{program.suffix}" for host in range(12)]
    for one in made:
        text = " ".join(line.strip("# ") for line in one.text.splitlines())
        assert program.known in text
        assert program.survives in text
    guide = (HERE.parent / "docs" / "deploy.md").read_text()
    assert f"| `{name}` |" in guide


def test_the_registry_is_the_modules_and_a_list() -> None:
    """A module without its line would be dead."""
    folder = Path(str(software.__file__)).parent
    with_one = {
        path.stem for path in folder.glob("*.py") if "SOFTWARE = Program(" in path.read_text()
    }
    assert with_one == {name.replace("-", "_") for name in SOFTWARE}
    assert [one["name"] for one in api.list_("software")] == list(SOFTWARE)


def test_mooncake_has_a_port_for_each_uplink(found: Planned) -> None:
    """As many queue pairs as uplinks, each port in the segment of another one."""
    given = settings(files.of("mooncake", found, "h0")[0].text)
    ports = [int(port) for port in given["MC_MLX5_QP_UDP_SPORTS"].split(",")]
    assert given["MC_NUM_QP_PER_EP"] == str(len(ports)) == "4"
    assert uplinks(found, ports) == [0, 1, 2, 3]
    assert given["MC_IB_TC"] == "104"


def test_hosts_of_a_leaf_begin_uccl_at_different_uplinks(found: Planned) -> None:
    """And all ports behind the base stay in its segment."""
    bases = []
    for host in range(4):
        given = settings(files.of("uccl", found, f"h{host}")[0].text)
        bases.append(int(given["UCCL_UDP_SPORT_BASE"]))
    assert sorted(uplinks(found, bases)) == [0, 1, 2, 3]
    assert uplinks(found, [base + 10 for base in bases]) == uplinks(found, bases)


def test_all_ports_of_uccl_are_ports(found: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where thousands of paths share the ports, the last segment is shorter than what it counts."""
    monkeypatch.setattr(found, "slots", lambda _host, _count: [65532])
    given = settings(files.of("uccl", found, "h0")[0].text)
    assert int(given["UCCL_UDP_SPORT_BASE"]) + 10 == 65535
    assert max(software.find("uccl").ports(found, 0, 4)) == 65533


def test_four_ports_of_mori_cover_more_uplinks_together() -> None:
    """Eight uplinks and four ports a host: two hosts have all of them."""
    wide = {"fabric": FABRIC | {"spines": 8}}
    found = Planned(make.of(wide, EXCHANGE, "ethereal"))
    ports = [found.slots(host, 4) for host in range(4)]
    assert all(len(set(uplinks(found, some))) == 4 for some in ports)
    counts = np.bincount(uplinks(found, [port for some in ports for port in some]))
    assert counts.tolist() == [2] * 8


def test_perftest_has_the_ports_of_the_plan(found: Planned) -> None:
    """Labels of every two hosts; both ends meet at one listening port; the script is shell."""
    plan = found.plan
    script = files.of("perftest", found, "h0")[0].text
    done = subprocess.run(["sh", "-n"], input=script, text=True, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    serves, sends = script.split("client)\n")
    assert serves.count("\nrun -q") == sends.count("\nrun -q") + sends.startswith("run -q") == 11
    address = found.cluster.hosts[7].address
    line = next(line for line in sends.splitlines() if line.endswith(f" {address}"))
    pieces = [pair for pair in plan["hosts"][0]["queue_pairs"] if pair["to"] == "h7"]
    labels = ",".join(str(flow_label(pair["source_port"])) for pair in pieces)
    assert f" -q {len(pieces)} --flow_label={labels} " in line
    port = line.split(" -p ")[1].split()[0]
    there = files.of("perftest", found, "h7")[0].text.split("client)\n")[0]
    assert f'--flow_label={labels} -p {port} "$@"\n' in there
    assert (
        len({one.split(" -p ")[1].split()[0] for one in there.splitlines() if " -p " in one}) == 11
    )


def test_the_script_of_perftest_fails_where_one_of_its_programs_does(
    found: Planned, tmp_path: Path
) -> None:
    """And ends them with itself."""
    (tmp_path / "h0.sh").write_text(files.of("perftest", found, "h0")[0].text)
    program = tmp_path / "ib_write_bw"
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/ran\ncase "$*" in *$BAD) exit 3; esac\n'
    )
    program.chmod(0o755)
    words = ["sh", "h0.sh", "client", "-D", "1"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    for bad, status in (("none", 0), (found.cluster.hosts[7].address, 1)):
        environment = os.environ | {"PATH": path, "BAD": bad}
        assert (
            subprocess.run(words, cwd=tmp_path, env=environment, check=False).returncode == status
        )
    ran = (tmp_path / "ran").read_text().splitlines()
    assert len(ran) == 22
    assert ran[0].startswith("-d mlx5_0 -x 3 --tclass=104 ")
    assert all(" -D 1 10." in one for one in ran)
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    with heard(signal.SIGINT):
        script = subprocess.Popen(words, cwd=tmp_path, env=os.environ | {"PATH": path})
    with script:
        time.sleep(0.5)
        script.send_signal(signal.SIGINT)
        assert script.wait(10) == 1


def test_nccl_has_the_environment_of_the_plan(found: Planned) -> None:
    """As `hosts` of the plan says."""
    for host in (0, 5):
        given = settings(files.of("nccl-ib", found, f"h{host}")[0].text)
        assert given == found.plan["hosts"][host]["environment"]


DEAD = {"failures": {"one": {"kind": "down", "links": ["leaf-0 <-> spine-1"]}}}
"""A leaf has fewer uplinks than others."""
RING = {"workload": {"collective": "all-reduce", "algorithm": "ring", "size": "64MB"}}
SPARSE = {"workload": {"pattern": "permutation", "size": "1MB"}}


@pytest.mark.parametrize("job", [RING, SPARSE])
@pytest.mark.parametrize("place", [LEAF_SPINE, LEAF_SPINE | DEAD])
def test_both_ends_have_as_many_queue_pairs(place: dict[str, Any], job: dict[str, Any]) -> None:
    """NCCL takes its own number for both ends, and Mooncake refuses a peer with another one."""
    found = Planned(make.of(place, job, "ethereal"))
    for name, variable in (
        ("nccl-ib", "NCCL_IB_QPS_PER_CONNECTION"),
        ("mooncake", "MC_NUM_QP_PER_EP"),
    ):
        each = [settings(one.text) for one in files.of(name, found)]
        counts = {given[variable] for given in each}
        assert len(counts) == 1, (name, counts)
    assert {given["MC_MLX5_QP_UDP_SPORTS"].count(",") + 1 for given in each} == set(
        map(int, counts)
    )
    # As many as the hosts need that need most.
    needed = max(
        sum(pair["to"] == other["to"] for pair in host["queue_pairs"])
        for host in found.plan["hosts"]
        for other in host["queue_pairs"]
    )
    assert needed > 1
    for host in found.plan["hosts"]:
        assert host["environment"]["NCCL_IB_QPS_PER_CONNECTION"] == str(needed)
        assert host["environment"]["NCCL_IB_SPLIT_DATA_ON_QPS"] == "1"


def test_a_list_leaves_out_uplinks_that_lead_nowhere() -> None:
    """Though it is as long as that of hosts whose uplinks all lead on."""
    found = Planned(make.of(LEAF_SPINE | DEAD, RING, "ethereal"))
    ports = [found.slots(host) for host in range(12)]
    # The ring leaves the leaves by their last hosts: leaf-0's rules have no uplink 1.
    assert 1 not in uplinks(found, ports[3])
    assert {len(some) for some in ports} == {4}


def test_values_of_variables_reach_the_program_as_they_are(tmp_path: Path) -> None:
    """NCCL separates with semicolons, which a shell would take for the end of a command."""
    value = "allreduce:tree;broadcast:$HOME 'ring'"
    found = Planned(make.of(LEAF_SPINE | {"nccl": {"NCCL_ALGO": value}}, EXCHANGE, "ethereal"))
    (tmp_path / "h0.env").write_text(files.of("nccl-ib", found, "h0")[0].text)
    words = ["sh", "-c", 'set -a; . ./h0.env; set +a; printf %s "$NCCL_ALGO"']
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (value, "")


@pytest.mark.parametrize(
    "damage",
    [
        lambda plan: plan["steps"][0]["pieces"].pop("message"),
        lambda plan: plan["steps"][0]["pieces"]["path"].pop(),
        lambda plan: plan["steps"][0]["pieces"]["src"].__setitem__(0, "x"),
        lambda plan: plan["links"].__setitem__("link", 5),
    ],
)
def test_a_plan_that_was_damaged_is_told_in_one_line(
    found: Planned, weft: Weft, tmp_path: Path, damage: Any
) -> None:
    """Of the file, and no error of Weft's own."""
    plan = copy.deepcopy(found.plan)
    damage(plan)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = weft("plan", "plan.json", "--hosts-for", "mooncake")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert done.stderr.startswith("error: plan.json: not as weft plan writes it (")
    assert done.stderr.endswith("; make the plan again\n")


def test_drivers_fold_numbers_of_queue_pairs() -> None:
    """By hand: 0x1234 * 0x10 = 0x12340 has 17 bits: the low 14 of them xor the others."""
    assert planned.driver_port(0x1234, 0x10) == 0xC000 | (0x2340 ^ 0x4)
    # 2^20 * 3 folds onto 3.
    assert planned.driver_port(1 << 20, 3) == 0xC000 | 3
    assert planned.driver_port(77, 1234) == planned.driver_port(1234, 77)


@pytest.mark.parametrize("place", [LEAF_SPINE, FAT_TREE])
def test_what_survives_is_what_distance_says(place: dict[str, Any]) -> None:
    """All of the plan with its own ports; nothing is below the bound; one port is one uplink."""
    found = Planned(make.of(place, EXCHANGE, "ethereal"))
    plan = found.plan
    by_name = {one.name: one for name in SOFTWARE for one in distance.of(name, found)}
    assert by_name["perftest"].over == pytest.approx(1.0, abs=0.02)
    assert by_name["mooncake"].over == pytest.approx(1.0, abs=0.02)
    for one in by_name.values():
        assert one.least * plan["seconds"] >= plan["steps_bound_s"] * (1 - 1e-6)
        assert one.least <= one.over <= one.most
    assert by_name["nccl-ib"].over > 1.1
    assert by_name["nccl-ib"].least < by_name["nccl-ib"].most
    steered = by_name["nvshmem, steered"]
    assert steered.over > 2
    assert steered.link.startswith("leaf-") or "agg" in steered.link


def test_a_pod_fills_the_uplinks_of_its_aggregation_switches() -> None:
    """What stays in a pod says nothing of them, and four hosts with one port each take all four."""
    found = Planned(make.of(FAT_TREE, EXCHANGE, "ethereal"))
    segments = found.plan["segments"]
    ports = found.slots(0)
    assert len(set(ports)) == len(segments["leaf-0"]) * len(segments["pod-0-agg-0"]) == 4
    assert sorted(found.slots(host, 1)[0] for host in range(4)) == sorted(ports)


def test_all_of_one_port_goes_over_one_uplink(found: Planned) -> None:
    """4 hosts with 8 peers elsewhere: a quarter of the uplinks carries all, four times the plan."""
    steered = distance.of("nvshmem", found)[1]
    step = found.plan["steps"][0]
    far = 4 * 8 * step["bytes"] // step["messages"]
    assert steered.bytes == far
    assert steered.planned_bytes == pytest.approx(far / 4, rel=0.02)
    assert steered.draws == 1
    assert distance.of("nvshmem", found)[0].draws == distance.DRAWS


def test_dead_links_are_gone_around() -> None:
    """Where a segment's uplink is down its ports are hashed among the live ones."""
    place = LEAF_SPINE | {"failures": {"dead": {"kind": "down", "links": ["leaf-1 <-> spine-2"]}}}
    found = Planned(make.of(place, EXCHANGE, "ethereal"))
    for name in ("mooncake", "uccl", "mori"):
        (one,) = distance.of(name, found)
        assert 1 <= one.least < 3
    ports = found.slots(4)
    assert 2 not in uplinks(found, ports)


@pytest.mark.parametrize("scheme", ["dnlb-2", "ethereal"])
def test_lists_have_no_port_that_leads_behind_a_dead_link(scheme: str) -> None:
    """They are for all peers: to one of them a rule would send where the way is lost."""
    dead = {"failures": {"x": {"kind": "down", "links": ["leaf-1 <-> spine-1"]}}}
    found = Planned(make.of(LEAF_SPINE | dead, EXCHANGE, scheme))
    # Leaf 0 uses spine 1, to leaf 2, and no list does.
    assert any(way >> 8 == 1 for way in found._shares[0])
    for host in range(4):
        assert 1 not in uplinks(found, found.slots(host) + found.slots(host, 4))
    for name in ("mooncake", "mori", "perftest", "uccl"):
        assert [one.lost for one in distance.of(name, found)] == [0.0]
    # Who chooses no port loses something, and is told.
    lost = distance.of("nccl-ib", found)[0]
    assert 0 < lost.lost < 1 / 8
    assert "% is lost behind dead links" in show.table(found, ["nccl-ib"])


def test_hashing_switches_leave_no_port_to_choose() -> None:
    """Ports are spread evenly, the file says so, and what comes of it is drawn."""
    found = Planned(make.of(LEAF_SPINE, EXCHANGE, "ecmp"))
    text = files.of("mooncake", found, "h0")[0].text
    assert "enforced by none" in text
    (one,) = distance.of("mooncake", found)
    assert one.draws == distance.DRAWS


def test_a_job_below_its_leaf_has_ports_for_no_uplink() -> None:
    """Though switches steer."""
    local = {"workload": {**EXCHANGE["workload"], "ranks": 4}}
    (one,) = files.of("mooncake", Planned(make.of(LEAF_SPINE, local, "ethereal")), "h0")
    assert "enforced by" not in one.text
    assert "stays below its leaves, so no port is planned for any uplink" in one.text


def test_loads_refuse_what_is_not_there(found: Planned) -> None:
    """A host beyond the last, and columns of different lengths."""
    experiment = json.dumps(found.plan["experiment"])
    one = np.zeros(1, dtype=np.uint32)
    sizes, ports = np.ones(1, dtype=np.uint64), np.full(1, 49152, dtype=np.uint16)
    with pytest.raises(ExperimentError, match="host-12: there are 12 hosts"):
        _native.port_loads(experiment, (1, 1), True, one, one + 12, sizes, ports)
    with pytest.raises(ExperimentError, match="columns differ"):
        _native.port_loads(experiment, (1, 1), True, one, one, sizes, ports[:0])


def test_command_line(weft: Weft, tmp_path: Path) -> None:
    """Printed, written, as JSON, from a plan file; the table without asking."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    job = ("--job", "all-to-all:size=1200KB")
    plain = weft("plan", "cluster.toml", *job, "-o", "plan")
    assert plain.returncode == 0, plain.stderr
    assert all(f"\n{name} " in plain.stdout for name in SOFTWARE)
    written = weft("plan", "plan/plan.json", "--hosts-for", "mooncake,perftest", "-o", "hosts")
    assert written.returncode == 0, written.stderr
    assert "12 files in hosts/perftest" in written.stderr
    assert len(list((tmp_path / "hosts" / "mooncake").glob("h*.env"))) == 12
    printed = weft("plan", "cluster.toml", *job, "--hosts-for", "uccl", "--host", "h3")
    again = api.plan(tmp_path / "cluster.toml", "all-to-all:size=1200KB")
    assert again.hosts_for("uccl", "h3") == {"h3.env": printed.stdout}
    assert str(again) in plain.stdout
    told = json.loads(weft("plan", "plan", "--hosts-for", "mori", "--json").stdout)
    assert told["hosts_for"]["mori"]["files"].keys() == {f"h{host}.env" for host in range(12)}
    assert told["scheme"] == "ethereal"


def test_bad_input_takes_a_line(weft: Weft, tmp_path: Path) -> None:
    """Unknown software, no software, TCP, several schemes, an unknown host."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    (tmp_path / "tcp.toml").write_text(CLUSTER + '[cluster]\nprotocol = "tcp"\n')
    job = ("--job", "all-to-all:size=1200KB", "--hosts-for")
    for words, said in (
        (("cluster.toml", *job, "ucx"), "--hosts-for: 'ucx' is unknown; use one of mooncake"),
        (("cluster.toml", *job, ""), "--hosts-for: names none"),
        (("tcp.toml", *job, "mori"), 'cluster.protocol is "tcp"; set it to "udp"'),
        (("cluster.toml", *job, "mori", "--schemes", "ecmp,ethereal"), "name one --scheme"),
        (("cluster.toml", *job, "mori", "--host", "h99"), "--host: h99 is none of h0 to h11"),
        (("cluster.toml", *job, "mori", "--optimum"), "--optimum: does nothing with --hosts-for"),
    ):
        done = weft("plan", *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
