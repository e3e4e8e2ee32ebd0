"""The test bed: real traffic over namespaces. What needs root and iproute2 skips without them."""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from conftest import Weft, command
from small_bed import CLUSTER, SMALL, by_all_rules, each_rules, needs_bed
from weft import cluster as clusters
from weft.cluster import Protocol
from weft.errors import ExperimentError
from weft.switches import config as switchconfig
from weft.switches import segments
from weft.switches.ways import WAYS, Way
from weft.testbed import (
    bench,
    failures,
    host_defaults,
    layout,
    metrics,
    operations,
    rank_processes,
    system,
)
from weft.testbed.rules import RULES, Rules

LARGE = CLUSTER.format(spines=4, hosts=16, uplink="100Mbps")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Four hosts, two spines."""
    path = tmp_path / "small-bed.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Sixteen host pairs, four spines, 100 Mbps a link."""
    path = tmp_path / "large-bed.toml"
    path.write_text(LARGE)
    return path


@needs_bed
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_root_that_may_make_no_namespaces_is_told(small: Path, tmp_path: Path) -> None:
    """As in a container: by `weft doctor`, and by whatever would make a bed."""
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    what = "the kernel refuses namespaces"
    mend = "a container needs --privileged (CAP_SYS_ADMIN)"
    for words in (["run", str(small)], ["up", str(small)]):
        bed = [*powerless, *command("testbed", *words)]
        done = subprocess.run(bed, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"error: testbed: {what}; {mend}\n"
    doctor = [*powerless, *command("doctor", "--json")]
    done = subprocess.run(doctor, capture_output=True, text=True, check=True)
    (found,) = (one for one in json.loads(done.stdout) if one["part"] == "namespaces")
    assert (found["state"], found["found"], found["remedy"]) == ("missing", what, mend)


def measured(
    path: Path,
    scheme: str,
    workload: str = "all-to-all:size=256KB",
    seed: int = 1,
    fail: str | None = None,
    how: str = "admin",
    tcp: bool = False,
    rules: Rules | None = None,
) -> dict[str, Any]:
    """One run, of which everything has arrived once and undamaged."""
    cluster = clusters.read(path)
    table = operations.experiment(cluster, scheme, workload, seed, ())
    failure = failures.read(fail, how, cluster) if fail else None
    row = metrics.summary(
        cluster,
        operations.run(path, operations.RunRequest(table, seed, failure, tcp=tcp, rules=rules)),
    )
    hosts = len(cluster.hosts)
    assert row["complete"], row
    assert row["messages"] == hosts * (hosts - 1)
    assert row["missing_bytes"] == row["wrong_bytes"] == 0
    return row


def simulated(path: Path, scheme: str, workload: str, seed: int) -> dict[tuple[str, str], int]:
    """Bytes on each uplink in the simulator, headers and answers included: the same experiment."""
    table = operations.experiment(clusters.read(path), scheme, workload, seed, ())
    links = weft.simulate({**table, "sweep": {"seeds": [seed]}}).links
    ups = links.filter(links["tier"] == "leaf-up").to_dicts()
    return {(row["from"], row["to"]): row["bytes"] for row in ups}


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_rules_are_the_switch_configurations(small: Path, protocol: Protocol) -> None:
    """The same files; with TCP they say so and have more destination ports, and that is all."""
    cluster = clusters.read(small)
    cut = segments.of(cluster, "dnlb")
    for platform in RULES:
        made, _ = switchconfig.files(clusters.for_protocol(cluster, protocol), cut, platform)
        usual, _ = switchconfig.files(cluster, cut, platform)
        text, expected = ("".join(file.text for file in one) for one in (made, usual))
        if protocol == "tcp":
            expected = expected.replace("udp", "tcp").replace("UDP to port ", "TCP to ports ")
            expected = expected.replace("4791", "4791-4854")
        assert text == expected
        assert protocol in text


def test_utilisation_is_of_what_a_link_can_carry(small: Path) -> None:
    """Its rate until the last packet had come, and a burst: full is 100 %, whatever came late."""
    burst, rate = layout.BURST, 50_000_000
    sent = burst + rate // 8 * 2
    link = {"sender": "leaf-0", "receiver": "spine-0", "member": 0, "up": True, "rate_bps": rate}
    link |= {"bytes": sent, "packets": 0, "drops": 0}
    quiet = {"host": 0, "ports": [], "answers": {}, "heard_s": 2.0}
    found = {"links": [link], "hosts": [quiet, quiet | {"host": 1, "heard_s": 1.5}]}
    (row,) = metrics.loads(clusters.read(small), found)
    assert row["utilisation_pct"] == pytest.approx(100.0)


SLOW = '[failures.slow]\nkind = "degraded"\nlost = 0.5\nlinks = ["leaf-0 <-> spine-1"]\n'
DEAD = '[failures.dead]\nkind = "down"\nlinks = ["leaf-0 <-> spine-1"]\n'


@needs_bed
@pytest.mark.parametrize("tcp", [False, True])
def test_hosts_are_told_of_links_with_a_plan_and_without(
    tmp_path: Path, weft: Weft, tcp: bool
) -> None:
    """A slow uplink gets half of what the others get: the file says so to all commands."""
    (tmp_path / "slow.toml").write_text(LARGE.replace("hosts_per_leaf = 16", "hosts_per_leaf = 4"))
    with (tmp_path / "slow.toml").open("a") as file:
        file.write(SLOW)
    (tmp_path / "job.toml").write_text('[workload]\npattern = "all-to-all"\nsize = "256KB"\n')
    scheme, options = ("--scheme", "ethereal-weighted"), ("--tcp",) if tcp else ()
    assert weft("plan", "slow.toml", "--job", "job.toml", *scheme, "-o", ".").returncode == 0
    for words in ((*scheme, "--workload", "all-to-all:size=256KB"), ("--plan", "plan.json")):
        done = weft("testbed", "run", "slow.toml", *words, *options, "--json")
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)
        ups = {one["spine"]: one for one in row["uplinks"] if one["leaf"] == "leaf-0"}
        most = max(ups[spine]["bytes"] for spine in ("spine-0", "spine-2", "spine-3"))
        assert 0.45 < ups["spine-1"]["bytes"] / most < 0.6, (words, ups)
        assert all(0 < one["utilisation_pct"] <= 100 for one in row["uplinks"])


@needs_bed
def test_paths_that_the_file_says_are_dead_are_left_out(tmp_path: Path) -> None:
    """From the start, without a time-out."""
    path = tmp_path / "dead.toml"
    path.write_text(SMALL + DEAD)
    row = measured(path, "ethereal")
    assert row["time_outs"] == row["remaps"] == 0


def test_what_a_plan_writes_out_is_no_choice() -> None:
    """Hosts of a bed leave dead paths for as long as real ones, unless somebody says otherwise."""
    assert host_defaults.of("ethereal") == {"bad_for": "30s"}
    assert host_defaults.of("dnlb-8") == {"dead_for": "30s"}
    assert host_defaults.of("ecmp") == {}
    assert host_defaults.chosen("ethereal", {"bad_for": "100ms", "unit": "byte"}) == {
        "unit": "byte"
    }
    assert host_defaults.chosen("ethereal", {"bad_for": "1s"}) == {"bad_for": "1s"}


def test_a_link_that_is_down_is_not_built(tmp_path: Path) -> None:
    """Neither it nor rules for it; its segment is hashed."""
    path = tmp_path / "broken.toml"
    path.write_text(SMALL + '[failures.one]\nkind = "down"\nlinks = ["leaf-1 <-> spine-0"]\n')
    cluster = clusters.read(path)
    lines = list(layout.wires(cluster, "x-"))
    links = [line for line in lines if line.startswith("link add")]
    assert len(links) == 4 + 3
    made, _ = switchconfig.files(cluster, segments.of(cluster, "dnlb"), "linux", "leaf-1")
    # The other uplink keeps its segment and its table.
    tables = [line.split()[-1] for line in made[0].text.splitlines() if line.startswith("\tover ")]
    assert tables == ["7002"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("leaf-spine", 'fat-tree"\nk = 4\n#'), "three tiers"),
        (("hosts_per_leaf = 2", "hosts_per_leaf = 300"), "namespaces"),
        (('delay = "5us"', 'delay = "5us"\n[cluster]\nfirst_port = 50000'), "ports of RoCE"),
        (('delay = "5us"', 'delay = "5us"\n[cluster]\nhost_port = "Ethernet1/{place}"'), "Linux"),
    ],
)
def test_what_no_bed_can_be_is_refused_in_one_line(
    small: Path, weft: Weft, change: tuple[str, str], says: str
) -> None:
    """File, reason and mend; status 2."""
    text = SMALL.replace(*change)
    if "fat-tree" in text:
        text = '[fabric]\ntopology = "fat-tree"\nk = 4\n'
    small.write_text(text)
    done = weft("testbed", "up", small)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bad_failures_are_refused(small: Path) -> None:
    """A failure names a link that there is, and a way to fail."""
    cluster = clusters.read(small)
    for text, says in (("leaf-0-spine-1", "write it as"), ("leaf-0:spine-7", "there is no link")):
        with pytest.raises(ExperimentError, match=says):
            failures.read(text, "admin", cluster)
    with pytest.raises(ExperimentError, match="use one of admin"):
        failures.read("leaf-0:spine-1", "gone", cluster)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_root_it_says_so() -> None:
    """One line, before anything is built."""
    # Imported before, since others may not read this folder.
    code = "import os\nfrom weft.testbed import system\nos.setuid(65534)\nsystem.require()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "needs root" in done.stderr.splitlines()[-1]


def test_without_iproute2_it_says_so(small: Path) -> None:
    """The same for what is not installed."""
    done = subprocess.run(
        command("testbed", "up", small),
        env=os.environ | {"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "iproute2" in done.stderr or "root" in done.stderr


@needs_bed
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--scheme", "conga"), "use one of"),
        (("--workload", "ring-all-reduce:size=1MB"), "error"),
        (("--scheme", "ethereall"), "ethereal"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    small: Path, weft: Weft, words: tuple[str, ...], says: str
) -> None:
    """Schemes and workloads that hosts cannot carry out."""
    done = weft("testbed", "run", small, *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert says in done.stderr


@needs_bed
@by_all_rules
@pytest.mark.parametrize("scheme", ["ethereal", "dnlb-4"])
def test_every_byte_on_a_wire_is_accounted_for(small: Path, scheme: str, rules: Rules) -> None:
    """The kernel's counters are what hosts say, to the byte."""
    row = measured(small, scheme, "all-to-all:size=500KB", rules=rules)
    assert row["drops"] == row["retransmits"] == 0
    for uplink in row["uplinks"]:
        assert uplink["bytes"] == uplink["segment_bytes"], uplink


@needs_bed
def test_addresses_and_segment_routing_keep_to_the_plan(small: Path) -> None:
    """Each uplink carries what it does under rules by source port, but for outer headers."""
    cluster, rows = clusters.read(small), {}
    for way in WAYS:
        table = operations.experiment(cluster, "ethereal", "all-to-all:size=256KB", 1, ())
        request = operations.RunRequest(table, 1, enforce=way)
        rows[way] = metrics.summary(cluster, operations.run(small, request))
        assert rows[way]["complete"], way
        assert rows[way]["wrong_bytes"] == rows[way]["time_outs"] == 0

    def carried(way: Way, more: int = 0) -> list[int]:
        return [up["bytes"] - more * up["packets"] for up in rows[way]["uplinks"]]

    assert carried("addresses") == carried("segments")
    # IPv6 says a few words of its own: who listens to which group.
    wrapped = zip(carried("srv6", layout.WRAPPING), carried("segments"), strict=True)
    assert all(0 <= more - plain < 1_000 for more, plain in wrapped)


def test_without_nft_it_says_so(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules for nftables are refused, with the mend."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    lacks = ("nft", "unshare")
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in lacks else f"/sbin/{tool}")
    assert system.missing() is None
    with pytest.raises(ExperimentError, match=r"^testbed: .*nft is not installed; install"):
        operations.up(small, 1, "nftables")
    with pytest.raises(
        ExperimentError, match=r"^--mute: nft is not installed; .* leave --mute out"
    ):
        system.require_nft("--mute")


def test_a_run_of_a_plan_has_no_scheme_of_its_own(small: Path, weft: Weft) -> None:
    """Nor a failure of a kind without a link."""
    for words, said in (
        (("--plan", "plan.json", "--scheme", "ecmp"), "--scheme: does nothing with --plan"),
        (("--how", "remote"), "--how: does nothing without --fail"),
    ):
        done = weft("testbed", "run", small, *words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert said in done.stderr


@needs_bed
@by_all_rules
def test_members_of_bundles_are_uplinks_each(small: Path, rules: Rules) -> None:
    """Switches whose names are not their nodes'; spines follow ports as well."""
    text = SMALL.replace("spines = 2", "spines = 2\nlinks_per_pair = 2")
    small.write_text(text + '[cluster]\nleaf = "tor{leaf+1:02}"\n')
    row = measured(small, "ethereal", "all-to-all:size=200KB", rules=rules)
    assert len(row["uplinks"]) == 8
    for uplink in row["uplinks"]:
        assert uplink["bytes"] == uplink["segment_bytes"] > 0, uplink


@needs_bed
@pytest.mark.parametrize(
    "words", [("all-to-all:size=1KB",), ("all-to-all:size=50MB", "--limit", "1")]
)
def test_a_run_without_a_slowdown_says_none(
    small: Path, weft: Weft, words: tuple[str, ...]
) -> None:
    """A burst that links send at once is not infinitely fast, nor is what has not come."""
    run = ("testbed", "run", small, "--workload", *words)
    assert json.loads(weft(*run, "--json").stdout)["slowdown"] is None
    text = weft(*run).stdout
    assert "lower bound" in text
    assert "slowdown" not in text


@needs_bed
@pytest.mark.slow
def test_pinned_uplinks_carry_the_same_and_hashed_ones_do_not(large: Path) -> None:
    """DNLB (2025) prints 0.06 percentage points squared."""
    for scheme in ("ethereal", "dnlb-2"):
        row = measured(large, scheme, "all-to-all:size=256KB")
        assert row["uplink_variance_pct2"] < 0.1, (scheme, row["uplinks"])
    seeds = range(1, 4)
    hashed = [measured(large, "ecmp", "all-to-all:size=256KB", seed) for seed in seeds]
    assert min(row["uplink_variance_pct2"] for row in hashed) > 1
    assert min(row["hottest_uplink"] for row in hashed) > 1.02


@needs_bed
@pytest.mark.slow
def test_ethereal_ends_near_the_bound_and_ecmp_does_not(large: Path) -> None:
    """Completion over the bound; ECMP beside it over six hashes."""
    workload = "all-to-all:size=512KB"
    # Other work on the machine makes links idle, and nothing makes them faster.
    for _ in range(3):
        ethereal = measured(large, "ethereal", workload)["slowdown"]
        if ethereal < 1.1:
            break
    seeds = range(1, 7)
    ecmp = [measured(large, "ecmp", workload, seed) for seed in seeds]
    print(f"ethereal {ethereal:.3f}, ecmp", [round(row["slowdown"], 3) for row in ecmp])
    # What any ECMP run needs: its hottest uplink's bytes. That takes no quiet machine.
    assert all(row["slowdown"] > 0.98 * row["hottest_uplink"] for row in ecmp)
    assert statistics.fmean(row["hottest_uplink"] for row in ecmp) > 1.1
    assert 1 <= ethereal < 1.1
    assert statistics.fmean(row["slowdown"] for row in ecmp) > ethereal


@needs_bed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "scheme", "how"),
    # Of every two of the three all pairs.
    [
        each_rules(RULES[(one + other) % len(RULES)], scheme, how)
        for one, scheme in enumerate(("ethereal", "dnlb-2"))
        for other, how in enumerate(("admin", "carrier", "remote"))
    ],
)
def test_a_link_that_fails_costs_no_byte(large: Path, scheme: str, rules: Rules, how: str) -> None:
    """Others take over, and the time to recover is told."""
    workload, fail = "all-to-all:size=256KB", "leaf-0:spine-1@50%"
    row = measured(large, scheme, workload, fail=fail, how=how, rules=rules)
    failure = row["failure"]
    assert 0 < failure["at_s"] < row["completion_s"]
    # Others took over: what the dead one did not carry.
    by_link = {(one["leaf"], one["spine"]): one["bytes"] for one in row["uplinks"]}
    side = "leaf-1" if how == "remote" else "leaf-0"
    alive = [
        count for (leaf, spine), count in by_link.items() if leaf == side and spine != "spine-1"
    ]
    assert by_link[side, "spine-1"] < 0.9 * min(alive)
    if how == "remote":
        assert row["time_outs"] > 0
        assert row["remaps"] > 0
        assert failure["flows_stopped"] > 0
    # DNLB's flows may move to queue pairs of the dead segment first, a second each.
    assert failure["recovered_s"] < (5 if scheme == "ethereal" else 20)


@needs_bed
@pytest.mark.slow
@pytest.mark.parametrize("how", ["admin", "remote"])
@by_all_rules
def test_chunks_go_around_a_link_that_fails(tmp_path: Path, rules: Rules, how: str) -> None:
    """Long before a second, after which other schemes notice it."""
    bed = tmp_path / "bed.toml"
    bed.write_text(CLUSTER.format(spines=4, hosts=2, uplink="100Mbps"))
    workload, fail = "all-to-all:size=2MB", "leaf-0:spine-1@30%"
    slowdowns: list[float] = []
    # Whatever else the machine does makes a run late: one of three has to be in time.
    while len(slowdowns) < 3 and min(slowdowns, default=math.inf) >= 2.5:
        row = measured(bed, "twill", workload, fail=fail, how=how, rules=rules)
        assert row["time_outs"] > 0
        assert row["remaps"] > 0
        assert row["failure"]["at_s"] < row["completion_s"]
        slowdowns.append(row["slowdown"])
    # Three uplinks of four are left; ECMP and Ethereal stop for a second, which is above 7.
    assert min(slowdowns) < 2.5, slowdowns


@needs_bed
@pytest.mark.parametrize("scheme", ["ethereal", "dnlb-4"])
def test_pinned_uplinks_carry_what_they_do_in_the_simulator(small: Path, scheme: str) -> None:
    """To the byte."""
    workload = "all-to-all:size=333KB"
    row = measured(small, scheme, workload, seed=3)
    expected = simulated(small, scheme, workload, seed=3)
    mtu_packet, answer = layout.DATA_HEADER + layout.HEADERS, layout.ANSWER + layout.HEADERS
    for one in row["uplinks"]:
        # Each packet is answered, by the spine that it came by. First transmissions only.
        back = next(
            other
            for other in row["uplinks"]
            if (other["uplink"], other["leaf"]) != (one["uplink"], one["leaf"])
            and other["uplink"] == one["uplink"]
        )
        bytes_here = one["segment_payload_bytes"] + one["segment_packets"] * mtu_packet
        bytes_here += back["segment_packets"] * answer
        assert bytes_here == expected[one["leaf"], one["spine"]]


@needs_bed
@pytest.mark.slow
def test_hashed_uplinks_are_as_uneven_as_in_the_simulator(large: Path) -> None:
    """The mean of the hottest uplink over seeds."""
    workload = "all-to-all:size=32KB"
    here = [measured(large, "ecmp", workload, seed)["hottest_uplink"] for seed in range(1, 13)]
    there = []
    for seed in range(1, 41):
        by_leaf: dict[str, list[int]] = {}
        for (leaf, _), count in simulated(large, "ecmp", workload, seed).items():
            by_leaf.setdefault(leaf, []).append(count)
        there.append(max(max(one) / statistics.fmean(one) for one in by_leaf.values()))
    # Welch: means that differ by more than three standard errors are another distribution.
    error = (statistics.variance(here) / len(here) + statistics.variance(there) / len(there)) ** 0.5
    gap = abs(statistics.fmean(here) - statistics.fmean(there))
    assert gap < 3 * error, (statistics.fmean(here), statistics.fmean(there), error)
    # And it would notice a perfect balance.
    assert statistics.fmean(there) - 1 > 3 * error


@needs_bed
@by_all_rules
def test_tcp_follows_the_ports_too(small: Path, rules: Rules) -> None:
    """A connection for each piece, from its port."""
    row = measured(small, "ethereal", "all-to-all:size=500KB", tcp=True, rules=rules)
    for leaf in ("leaf-0", "leaf-1"):
        counts = [one["bytes"] for one in row["uplinks"] if one["leaf"] == leaf]
        assert max(counts) < 1.05 * min(counts)


@needs_bed
def test_a_plan_is_followed_port_by_port(small: Path, tmp_path: Path, weft: Weft) -> None:
    """Pieces and ports of a plan file; two rounds of it.

    Port 65535, which `ip rule` cannot match, gives way to another of its segment.
    """
    pieces = {
        "src": [0, 0, 3],
        "dst": [2, 2, 0],
        "message": [0, 0, 1],
        "part": [0, 1, 0],
        "bytes": [100_000, 50_000, 70_000],
        "path": [0, 256, 256],
        "source_port": [50_000, 60_000, 65_535],
    }
    plan = {
        "format": "weft-plan",
        "version": 1,
        "scheme": "ethereal",
        "options": {},
        "seed": 4,
        "enforce": "segments",
        "cluster": clusters.as_json(clusters.read(small)),
        "steps": [{"name": "one", "times": 2, "pieces": pieces}],
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    done = weft("testbed", "run", small, "--plan", path, "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    payload = {(one["leaf"], one["uplink"]): one["segment_payload_bytes"] for one in row["uplinks"]}
    assert payload["leaf-0", 0] == 200_000
    assert payload["leaf-0", 1] == 100_000
    assert payload["leaf-1", 0] == 0
    assert payload["leaf-1", 1] == 140_000
    assert all(one["bytes"] == one["segment_bytes"] for one in row["uplinks"])
    assert row["messages"] == 4

    plan["cluster"]["hosts"][0]["address"] = "10.9.9.9"
    path.write_text(json.dumps(plan))
    done = weft("testbed", "run", small, "--plan", path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "another cluster" in done.stderr


@needs_bed
@pytest.mark.parametrize("scheme", ["ethereal", "dnlb-4"])
def test_what_weft_plan_writes_is_what_runs(
    small: Path, tmp_path: Path, weft: Weft, scheme: str
) -> None:
    """A ring of several steps: every piece takes the uplink that the plan says."""
    job = '[workload]\ncollective = "all-reduce"\nalgorithm = "ring"\nsize = "400KB"\n'
    (tmp_path / "job.toml").write_text(job)
    words = ("--job", "job.toml", "--scheme", scheme, "-o", "plan")
    assert weft("plan", small, *words).returncode == 0
    done = weft("testbed", "run", small, "--plan", "plan", "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["complete"]
    plan = json.loads((tmp_path / "plan" / "plan.json").read_text())
    loads = [0] * len(plan["links"]["link"])
    for step in plan["steps"]:
        loads = [sum_ + step["times"] * one for sum_, one in zip(loads, step["loads"], strict=True)]
    planned = dict(zip(plan["links"]["link"], loads, strict=True))
    for uplink in row["uplinks"]:
        link = f"{uplink['leaf']} -> {uplink['spine']}"
        assert uplink["segment_payload_bytes"] == planned[link], link


def test_a_bound_after_a_failure_counts_what_is_left(small: Path) -> None:
    """Two links of a leaf, of which one is gone in half of the timed runs; in none; in all."""
    cluster = clusters.read(small, 1)
    what = {"operation": "all-to-all", "size": 1 << 20, "iterations": 4, "warm_up": 3, "checks": 1}
    hosts = rank_processes.placed(cluster, 4)
    whole = bench.lower_bound(cluster, hosts, what)

    def left(at: float, how: str = "remote", heal: float | None = None) -> float | None:
        failure = {"leaf": "leaf-0", "spine": "spine-1", "member": 0, "at_percent": 9, "how": how}
        job = {"failure": failure, "ranks": 4, "measurement": what}
        return bench.bound_left(cluster, job, at, heal)

    assert left(50, "corrupt") is None
    assert bench.bound_left(cluster, {"failure": None}, 50, None) is None
    assert left(90) == pytest.approx(whole)
    # What a link lets through at once after it was idle is for nothing, once for each link.
    free = layout.BURST * 8 / 50e6 / what["iterations"]
    assert left(0) == pytest.approx(2 * whole + free)
    # Of eight runs, the timed ones are those from the fourth to the seventh.
    assert left(62) == pytest.approx(whole + (7 - 4.96) / 4 * (whole + free))
    assert left(0, heal=62) == pytest.approx(whole + (4.96 - 3) / 4 * (whole + free))
    assert left(0, heal=30) == pytest.approx(whole)


@pytest.mark.parametrize("operation", ["all-to-all", "all-reduce"])
def test_figures_of_discovered_ports_are_those_of_the_record(operation: str) -> None:
    """The table of docs/testbed.md, row by row."""
    top = Path(__file__).parents[1]
    (record,) = (top / "bench/records/testbed").glob(f"*-{operation}.json")
    text = (top / "docs/testbed.md").read_text()
    schemes = json.loads(record.read_text())["schemes"]
    assert [one["scheme"] for one in schemes] == ["ethereal", "ethereal, discovered", "ecmp"]
    for one in schemes:
        least, mean, most = (one[f"of_bound_{which}"] for which in ("min", "mean", "max"))
        row = f"| {mean:.3f} ({least:.3f} to {most:.3f}) |"
        if one["scheme"] == "ecmp":
            row += f" {one['hottest_uplink_mean']:.2f} | |"
        else:
            row += f" {one['hottest_uplink_mean']:.3f} |"
            row += f" {one['over_ecmp']:.2f} ± {one['over_ecmp_half_95']:.2f} |"
        assert row in text, row


_TWILL = ["twill", "ethereal", "dnlb", "ecmp", "sockets"]
_DISCOVERED = ["twill", "twill, discovered", "ecmp"]


@pytest.mark.parametrize(
    ("record", "schemes"),
    [
        ("twill-healthy", _TWILL),
        ("twill-slow", _TWILL),
        ("twill-dies", _TWILL),
        ("discovered-slow", _DISCOVERED),
        ("discovered-dies", _DISCOVERED),
    ],
)
def test_figures_of_twill_on_hosts_are_those_of_the_record(record: str, schemes: list[str]) -> None:
    """The tables of docs/twill.md, row by row."""
    top = Path(__file__).parents[1]
    (path,) = (top / "bench/records/testbed").glob(f"*-{record}.json")
    found = json.loads(path.read_text())
    assert [one["scheme"] for one in found["schemes"]] == schemes
    key = "of_bound_mean" if found["bound_left_s"] is None else "of_bound_left_mean"
    parts = [one[key] and f"{one[key]:.3f}" for one in found["schemes"]]
    cells = " | ".join(part or "not done after half a minute" for part in parts)
    text = (top / "docs/twill.md").read_text()
    assert f"| {cells} |" in text
    if record == "discovered-dies":
        runs = found["runs"]
        by_name = {
            name: [run["of_bound_left"] for run in runs if run["scheme"] == name]
            for name in schemes
        }
        rules, ports, _ = (f"{min(some):.3f} to {max(some):.3f}" for some in by_name.values())
        assert f"at {ports} with discovered ports, at {rules} with rules" in text
