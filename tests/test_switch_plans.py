"""Plans and clusters as input of `weft switch-config`, and every mistake in them."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from weft import cluster
from weft.cluster import Cluster
from weft.discover import peers
from weft.errors import ExperimentError
from weft.plans import for_switches, hosts, make
from weft.software import SOFTWARE
from weft.software import files as software_files
from weft.software.planned import Planned
from weft.switches import config as switchconfig
from weft.switches import segments
from weft.switches.segments import Segments

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "switch-config"
GUIDE = HERE.parent / "docs" / "deploy.md"


def plan_of(found: Cluster, cut: Segments) -> dict[str, Any]:
    """A plan file without its steps."""
    return {
        **{"format": "weft-plan", "version": 1, "scheme": "dnlb", "enforce": "none"},
        "cluster": cluster.as_json(found),
        # Most switches have one range an uplink, which a plan writes without its list.
        "segments": {
            node: [each[0] if len(each) == 1 else each for each in ranges]
            for node, ranges in cut.items()
        },
    }


def test_a_plan_gives_the_same_files(tmp_path: Path, weft: Weft) -> None:
    """As the cluster that it was made from; one switch alone is printed."""
    shutil.copy(GOLDEN / "three-tier.toml", tmp_path / "mine.toml")
    found = cluster.read(tmp_path / "mine.toml")
    plan = plan_of(found, segments.of(found, "ethereal"))
    plan["segments"]["agg-1"] = plan["segments"].pop("pod-0-agg-1")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for words in (["plan.json", "-o", "one"], ["mine.toml", "--scheme", "ethereal", "-o", "two"]):
        done = weft("switch-config", *words, "--format", "junos")
        assert done.returncode == 0, done.stderr
        assert "16 files in " in done.stderr
    one = {path.name: path.read_text() for path in (tmp_path / "one").iterdir()}
    assert one == {path.name: path.read_text() for path in (tmp_path / "two").iterdir()}
    done = weft("switch-config", "plan.json", "--format", "junos", "--switch", "pod-0-agg-0", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "==> agg-0.set <==\n# Weft: aggregation switch agg-0 of Three tiers." in done.stdout


NAMES_OF_NODES = [
    {"leaf": "leaf-{leaf+1}", "spine": "spine-{spine+1}"},
    {"leaf": "tor-{leaf}", "spine": "leaf-{spine}"},
]
"""Names of switches that are other switches' nodes."""


@pytest.mark.parametrize("names", NAMES_OF_NODES)
def test_names_may_be_nodes_of_others(names: dict[str, str]) -> None:
    """A plan calls switches by node, so every leaf gets the segments of its own."""
    fabric = {"topology": "leaf-spine", "leaves": 3, "spines": 4, "hosts_per_leaf": 2}
    made = make.of({"fabric": fabric, "cluster": names}, JOB, "ethereal")
    plain = make.of({"fabric": fabric}, JOB, "ethereal")
    found, cut = for_switches.of(made)
    assert cut == for_switches.of(plain)[1]
    assert cut.keys() == {"leaf-0", "leaf-1", "leaf-2"}
    leaves = [switch.name for switch in found.switches if switch.tier == 0]
    for way in ("segments", "srv6"):
        files, _ = for_switches.files(made, for_switches.Request("linux", enforce=way))
        assert {f"{name}.sh" for name in leaves} <= {file.name for file in files}
    for program in SOFTWARE:
        assert software_files.of(program, Planned(made))[0].text


def test_a_name_counts_before_a_node() -> None:
    """What the cluster calls so is meant, and nothing else; nodes do where no name is the same."""
    fabric = {"topology": "leaf-spine", "leaves": 3, "spines": 4, "hosts_per_leaf": 2}
    names = {"leaf": "leaf-{leaf+1}", "host": "host-{host+1}", "path_addresses": "172.16.0.0/12"}
    place = {"fabric": fabric, "cluster": names}
    found = cluster.from_dict(place)
    cut = segments.of(found, "dnlb")
    for name, first in (("leaf-1", "leaf-1"), ("leaf-0", "leaf-1"), ("leaf-3", "leaf-3")):
        made, _ = switchconfig.files(found, cut, "nftables", name)
        assert {file.name.partition(".")[0] for file in made} == {first}
        made, _ = switchconfig.files_by_address(found, "linux", name)
        assert {file.name.partition(".")[0] for file in made} == {first}
    for name, first in (("host-1", "host-1"), ("host-0", "host-1"), ("host-6", "host-6")):
        made, _ = switchconfig.files_by_segment_routing(found, cut, "linux", name)
        assert {file.name.partition(".")[0] for file in made} == {first}
        assert [host.name for host in peers.named(found, [name])] == [first]
        plan = make.of(place, JOB, "ethereal")
        assert [file.name for file in software_files.of("mooncake", Planned(plan), name)] == [
            f"{first}.env"
        ]
        assert hosts.of_host(plan, name)["host"] == first
    spines = cluster.from_dict({"fabric": fabric, "cluster": NAMES_OF_NODES[1]})
    with pytest.raises(ExperimentError, match="'leaf-0' steers nothing here; use one of tor-0"):
        switchconfig.files(spines, cut, "nftables", "leaf-0")


JOB = {"workload": {"collective": "all-to-all", "size": "1MB"}}
CLUSTER = {"fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}}


def changed_plan(names: str = "leaf", **changes: Any) -> str:
    """A plan with mistakes."""
    found = cluster.from_dict({**CLUSTER, "cluster": {"leaf": names + "-{leaf}"}})
    return json.dumps(plan_of(found, segments.of(found, "dnlb")) | changes)


def a_plan() -> dict[str, Any]:
    """A plan that is in order."""
    plan: dict[str, Any] = json.loads(changed_plan())
    return plan


CHANGED_CLUSTERS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (
        lambda one: one["links"][-1].update(upper_address="1.2.3.4; touch X"),
        r"links\[7\]\.upper_address: '1\.2\.3\.4; touch X' is no IPv4 address",
    ),
    (
        lambda one: one["links"][-1].update(lower_port="e0 $(x)"),
        r"links\[7\]\.lower_port: 'e0 \$\(x",
    ),
    (lambda one: one["links"][-1].update(upper="spine-9"), r"links\[7\]\.lower: no link up from"),
    (
        lambda one: one["links"][0].update(lower_address="10.9.9.9"),
        r"links\[0\]\.lower_address: is",
    ),
    (lambda one: one["links"][5].update(rate_bps=1 << 60), r"links\[5\]\.rate_bps: is 11529215046"),
    (lambda one: one["links"].clear(), r"links: fewer than hosts; make the plan"),
    (
        lambda one: one["switches"][0].update(racks=["10.0.0.0/16; reboot"]),
        r"switches\[0\]\.racks: '10\.0\.0\.0/16; reboot' is no IPv4 prefix; make the plan",
    ),
    (
        lambda one: one["switches"][0].update(racks=["10.0.0.0/+16"]),
        r"switches\[0\]\.racks: '10\.0\.0\.0/\+16' is no IPv4 prefix",
    ),
    (
        lambda one: one["switches"][1].update(racks=["10.0.0.0/8"]),
        r"switches\[0\]\.racks: .* overlap",
    ),
    (
        lambda one: one["switches"][0].update(racks=[]),
        r"switches\[0\]\.racks: not one with a gateway",
    ),
    (
        lambda one: one["switches"][0].update(name="l0`x`"),
        r"switches\[0\]\.name: 'l0`x`' is no name",
    ),
    (lambda one: one["switches"][0].update(node="l;0"), r"switches\[0\]\.node: 'l;0' is no node"),
    (
        lambda one: one["switches"][0].update(number=5),
        r"switches\[0\]\.number: is 5, and its place 0",
    ),
    (lambda one: one["switches"][2].update(tier=9), r"switches\[2\]\.tier: is 9, the one before"),
    (
        lambda one: one["hosts"][1].update(name="h0"),
        r"hosts\[1\]\.name: host-1 has the name h0, and",
    ),
    (lambda one: one["hosts"][1].update(leaf=7), r"hosts\[1\]\.leaf: is 7, and has to be below 2"),
    (lambda one: one["hosts"][1].update(number=3), r"hosts\[1\]\.number: is 3, and its place 1"),
    (lambda one: one.update(hosts=[]), r"hosts: there are none"),
    (lambda one: one.update(dscp=99), "dscp: 99 is out of range; use 0 to 63"),
    (lambda one: one.update(port=0), "port: 0 is out of range; use 1 to 65535"),
    (lambda one: one.update(port=65535, ports=2), "ports: 2 from 65535 on end above 65535"),
    (
        lambda one: one.update(last_port=one["first_port"]),
        "last_port: 1 source ports for 2 uplinks",
    ),
    (lambda one: one.update(nics=0), "nics: is zero"),
    (lambda one: one.update(title="a\nreboot"), "title: is more than a line"),
    (lambda one: one.update(nccl={"A;B": "1"}), "nccl.A;B: is no variable; use letters"),
    (lambda one: one.update(nccl={"A": "1\nB"}), r"nccl.A: '1\\nB' is more than a line"),
    (lambda one: one.update(path_addresses="1;2"), "path_addresses: '1;2' is no IPv4 network"),
]


@pytest.mark.parametrize(("change", "message"), CHANGED_CLUSTERS)
def test_the_cluster_of_a_changed_plan_is_held_to_what_a_file_is(
    change: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path
) -> None:
    """What a plan says of a cluster ends in scripts, on switches and in NCCL's environment."""
    plan, path = a_plan(), tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert for_switches.read(path, None)[0].hosts
    change(plan["cluster"])
    path.write_text(json.dumps(plan))
    with pytest.raises(ExperimentError, match=rf"plan\.json: cluster\.{message}"):
        for_switches.read(path, None)


def test_a_title_stands_on_one_line() -> None:
    """It is the first line of a plan, and a comment in scripts."""
    found = cluster.from_dict({**CLUSTER, "title": "a\n  b\n"})
    assert found.title == "a b"
    assert make.of(CLUSTER, {**JOB, "title": "c\nd"}, "ethereal")["title"] == "c d"


def test_an_address_of_the_host_twice_is_found_in_a_plan() -> None:
    """Host and link say the same, as somebody would write it who moves a host."""
    changed = a_plan()["cluster"]
    for one in (changed["hosts"][1], changed["links"][1]):
        one["address" if "address" in one else "lower_address"] = changed["hosts"][0]["address"]
    with pytest.raises(ExperimentError, match=r"host-1 has the address .* so has host-0"):
        cluster.from_json(changed)


BAD_PLANS = [
    ("{", r"not JSON \(line 1\); name a plan"),
    ("[]", "format: not a plan of weft; name what"),
    (changed_plan(version=2), "version: 2 is not known; make the plan again"),
    (changed_plan(cluster={}), "cluster: not as weft plan writes it"),
    (changed_plan(segments={}), "segments: none, as the paths of dnlb are enforced by none; plan"),
    (changed_plan(segments={"leaf-9": []}), "segments.leaf-9: no switch with uplinks in this"),
    (changed_plan(segments={"spine-0": []}), "segments.spine-0: no switch with uplinks in this"),
    (changed_plan(segments={"leaf-0": [[1, 2]]}), "segments.leaf-0: 1 segments for 2 uplinks; w"),
    (changed_plan(segments={"leaf-0": [[1, 5], [5, 9]]}), "leaf-0: 1-5 and 5-9 overlap; let each"),
    (changed_plan(segments={"leaf-0": [[5, 1], [6, 9]]}), r"leaf-0: \[5, 1\] is not a range of po"),
    (
        changed_plan(
            segments={name: [[1, 2], [3, 4]] for name in ("leaf-0", "tor-0")}, names="tor"
        ),
        "segments.tor-0: leaf-0 is there twice, by its name as well; keep one entry",
    ),
    (changed_plan(segments={"leaf-0": [[1, 2], [3, 4]]}), "segments.leaf-1: is missing; make the"),
    (changed_plan(segments={"leaf-0": [3, [6, 9]]}), "leaf-0: 3 is not a segment; write"),
]


@pytest.mark.parametrize(("text", "message"), BAD_PLANS)
def test_a_wrong_plan_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """File, key and mend."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message) as caught:
        for_switches.read(path, None)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_wrong_options(tmp_path: Path) -> None:
    """A scheme too many or too few, a switch that there is not, names that a platform cannot."""
    path = tmp_path / "mine.toml"
    path.write_text('[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2')
    with pytest.raises(ExperimentError, match="is a cluster, not a plan; add --scheme"):
        for_switches.read(path, None)
    with pytest.raises(ExperimentError, match=r"a plan has its scheme; remove --scheme"):
        for_switches.read(tmp_path / "plan.json", "dnlb")
    found, cut = for_switches.read(path, "dnlb")
    with pytest.raises(ExperimentError, match="'leaf-7' steers nothing here; use one of leaf-0"):
        switchconfig.files(found, cut, "linux", "leaf-7")
    for platform, pattern, message in [
        ("linux", "Ethernet0/{place+1}", "'Ethernet0/1' is not a Linux interface name"),
        ("nftables", "averylongportname{place}", "is not a Linux interface name"),
    ]:
        table = {**CLUSTER, "cluster": {"host_port": pattern}}
        wrong = cluster.from_dict(table)
        with pytest.raises(ExperimentError, match=message):
            switchconfig.files(wrong, segments.of(wrong, "dnlb"), platform)
    wide = cluster.from_dict({"fabric": {**CLUSTER["fabric"], "spines": 64}})
    with pytest.raises(ExperimentError, match="each uplink would go up to 89, and 63 is"):
        switchconfig.files(wide, segments.of(wide, "dnlb"), "cumulus")
    tiers = cluster.read(GOLDEN / "three-tier.toml")
    with pytest.raises(ExperimentError, match="no room for a second tier; plan with"):
        switchconfig.files(tiers, segments.of(tiers, "ethereal"), "cumulus")
    narrow = {"fabric": {**CLUSTER["fabric"], "topology": "clos", "tiers": 3, "pods": 2}}
    narrow["fabric"] = {k: v for k, v in narrow["fabric"].items() if k != "spines"}
    narrow["fabric"] |= {"aggs": 2, "cores": 4}
    few = cluster.from_dict({**narrow, "cluster": {"first_port": 65_533}})
    with pytest.raises(ExperimentError, match="3 source ports cannot be cut into 2 times 2"):
        segments.of(few, "ethereal")


def test_the_guide_is_right() -> None:
    """Its cluster can be configured, and its table has every key."""
    guide = GUIDE.read_text()
    example = tomllib.loads(
        guide.partition('```toml title="cluster.toml"\n')[2].partition("```")[0]
    )
    found = cluster.from_dict(example)
    made, remarks = switchconfig.files(found, segments.of(found, "dnlb"), "ios")
    assert {file.name for file in made} >= {"leaf-0.cfg", "leaf-0.rollback", "spine-1.cfg"}
    assert any("leaf-0: Ethernet1/61 to spine-1 is down" in remark for remark in remarks)
    assert [key for key in cluster.KEYS if f"`{key}`" not in guide] == []
