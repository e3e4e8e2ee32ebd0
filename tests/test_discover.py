"""Path discovery: what the command refuses, and real switches (Linux) that only hash.

Root and iproute2 are needed for the latter, nft for a switch that does not answer.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from weft import cluster as clusters
from weft.cli import discover as cli
from weft.discover import local, named, report, show, survey, table
from weft.discover.survey import Survey
from weft.errors import ExperimentError
from weft.testbed import system

MISSING = system.missing()
needs_bed = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
needs_nft = pytest.mark.skipif(
    system.missing("nftables") is not None, reason=str(system.missing("nftables"))
)

CLUSTER = """
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 1
link = "10Gbps"
uplink = "1Gbps"
"""
UNLIMITED = {"net/ipv4/icmp_ratelimit": 0}
"""Answers at any rate: what is tested with it is something else."""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two hosts under two leaves, with four spines between."""
    path = tmp_path / "small.toml"
    path.write_text(CLUSTER)
    return path


def asked(cluster: Path, steps: list[str], **more: Any) -> dict[str, Any]:
    """What a bed of its own answers."""
    job = {"cluster": str(cluster), "protocol": "udp", "seed": 1, "steps": steps, **more}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("hashing_bed.py"), json.dumps(job)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What is known of every target of a table."""
    return [target for source in found["sources"] for target in source["targets"]]


@needs_bed
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize("seed", [1, 2])
def test_ports_lead_where_the_table_says(small: Path, protocol: str, seed: int) -> None:
    """Packets of every port that was found take the uplink that its path names."""
    found = asked(small, ["discover"], protocol=protocol, seed=seed, sysctls=UNLIMITED)
    assert found["misled"] == []
    assert found["uplinks"] == [[0, 1, 2, 3]]
    for target in targets(found["tables"][0]):
        assert target["done"]
        assert (target["hops"], len(target["paths"])) == (3, 4)
        assert min(len(path["ports"]) for path in target["paths"]) >= 4
        assert target["confidence"] >= 0.95


@needs_bed
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_links_of_a_bundle_are_told_apart(small: Path, protocol: str) -> None:
    """Though answers go back over whichever the hash takes."""
    small.write_text(CLUSTER.replace("spines = 4", "spines = 2\nlinks_per_pair = 2"))
    found = asked(small, ["discover"], protocol=protocol, sysctls=UNLIMITED)
    assert found["misled"] == []
    assert found["uplinks"] == [[0, 1, 2, 3]]


def test_who_has_bundles_is_told_what_switches_need(small: Path) -> None:
    """Which link of one it was, Linux says only if it is told to."""
    assert named.doubt(clusters.read(small)) is None
    small.write_text(CLUSTER.replace("spines = 4", "spines = 2\nlinks_per_pair = 2"))
    said = named.doubt(clusters.read(small))
    assert said is not None
    assert said.startswith("leaf-0 to spine-0: ")
    assert "icmp_errors_use_inbound_ifaddr=1" in said


@needs_bed
@pytest.mark.slow
def test_the_limit_of_linux_and_one_of_ten_a_second_cost_time_only(small: Path) -> None:
    """All is found, if later; nothing is taken for silent."""
    for limit in ({}, {"net/ipv4/icmp_ratelimit": 100}):
        found = asked(small, ["discover"], sysctls=limit)
        assert (found["misled"], found["uplinks"]) == ([], [[0, 1, 2, 3]])
        assert all(len(target["paths"]) == 4 for target in targets(found["tables"][0]))
        assert all(source["seconds"] < 30 for source in found["tables"][0]["sources"])


@needs_bed
@needs_nft
@pytest.mark.parametrize(("by_link", "hops"), [(0, 1), (1, 3)])
def test_a_spine_that_never_answers_is_found_by_the_others(
    small: Path, by_link: int, hops: int
) -> None:
    """By the link over which the next switch is asked, or as the one that nobody else is."""
    rules = (
        "table ip mute { chain out { type filter hook output priority 0;\n"
        "icmp type time-exceeded drop\n}\n}"
    )
    sysctls = UNLIMITED | {"net/ipv4/icmp_errors_use_inbound_ifaddr": by_link}
    found = asked(small, ["discover"], nft={"spine-2": rules}, sysctls=sysctls)
    assert (found["misled"], found["uplinks"]) == ([], [[0, 1, 2, 3]])
    paths = [path for to in targets(found["tables"][0]) for path in to["paths"]]
    silent = [path for path in paths if path["hops"][1:2] in ([], [None])]
    assert [len(path["hops"]) for path in silent] == [hops, hops]
    assert all(path["ports"] for path in silent)


@needs_bed
@pytest.mark.slow
def test_a_link_that_fails_and_heals_is_noticed(small: Path) -> None:
    """A few probes tell that nothing has changed; else all is found out anew."""
    steps = ["discover", "discover", "fail leaf-0:spine-1", "discover"]
    steps += ["repair leaf-0:spine-1", "discover"]
    found = asked(small, steps, sysctls=UNLIMITED)
    first, same, failed, healed = found["tables"]
    assert found["misled"] == []
    assert [bool(targets(one)[0]["changed"]) for one in (first, same, failed, healed)] == [
        False,
        False,
        True,
        True,
    ]
    assert targets(first)[0]["paths"] == targets(same)[0]["paths"]
    assert same["sources"][0]["probes"] < first["sources"][0]["probes"] / 2
    counts = [len(targets(one)[0]["paths"]) for one in (first, same, failed, healed)]
    assert counts == [4, 4, 3, 4]


def _table(*paths: tuple[list[str | None], list[int]]) -> table.Table:
    """What the first host has found about the second."""
    found = table.new("udp", 4791)
    target = {
        "address": "10.1.0.2",
        "hops": 3,
        "done": True,
        "confidence": 0.99,
        "smallest_share": 0.1,
        "max_over_mean": 1.0,
        "p_value": 1.0,
        "checked": 0,
        "changed": 0,
        "paths": [{"hops": hops, "ports": ports} for hops, ports in paths],
    }
    counts = {"seconds": 1.0, "probes": 40, "answers": 40, "lost": 0}
    table.put(found, {"address": "10.0.0.2", **counts, "targets": [target]})
    return found


def _spine(cluster: clusters.Cluster, number: int) -> str:
    return cluster.uplinks["leaf-0"][number].upper_address


def test_paths_are_named_by_the_addresses_of_the_cluster(small: Path) -> None:
    """Also silent ones: by the next switch's link, or by being the only one that is left."""
    cluster = clusters.read(small)
    behind = cluster.uplinks["leaf-1"][2].lower_address
    first = "10.0.0.1"
    found = _table(
        ([first, _spine(cluster, 0), None], [50000]),
        ([first, _spine(cluster, 1), None], [50001, 50002]),
        ([first, None, behind], [50003]),
        ([first, None, "10.1.0.1"], [50004, 50005]),
    )
    paths = named.of(cluster, found).paths
    assert {port: path.uplink for path in paths for port in path.ports} == {
        50000: 0,
        50001: 1,
        50002: 1,
        50003: 2,
        50004: 3,
        50005: 3,
    }
    text = show.table(found, ["10.0.0.2"], cluster, False)
    assert "spine-1" in text
    assert "h1 (10.1.0.2)" in text


def test_what_cannot_be_named_is_counted(small: Path) -> None:
    """Two silent spines cannot be told apart, and strangers are none of the cluster's."""
    cluster = clusters.read(small)
    found = _table(
        (["10.0.0.1", _spine(cluster, 0)], [50000]),
        (["10.0.0.1", "192.0.2.7"], [50001, 50002]),
        (["10.0.0.1"], [50003]),
    )
    told = named.of(cluster, found)
    assert [path.ports for path in told.paths] == [(50000,)]
    assert (told.strangers, told.unnamed) == (("192.0.2.7",), 3)


def test_what_it_would_cost_is_simulated(weft: Weft, small: Path) -> None:
    """Limits cost time, loss and silence cost probes, and nothing comes out wrong."""
    (small.parent / "wide.toml").write_text(CLUSTER.replace("spines = 4", "spines = 8"))

    def cost(switches: str, *words: str) -> dict[str, Any]:
        done = weft("discover", "wide.toml", "--simulate", switches, "--json", *words)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    free = cost("per-second=0")
    assert free["targets"][0]["paths"] == 8
    linux = cost("hash=mixed")
    assert linux["probes"] >= free["probes"]
    assert linux["seconds"] > 3 * free["seconds"]
    silent = cost("per-second=0,silent=1,lost=0.01,hash=crc32")
    assert silent["lost"] > free["lost"]
    found = [free, linux, silent, cost("per-second=0,hash=toeplitz", "--ports-per-path", "16")]
    assert all(row["wrong"] == 0 for one in found for row in one["targets"])
    assert (free["targets"][0]["linear"], found[-1]["targets"][0]["linear"]) == (False, True)
    assert found[-1]["targets"][0]["ports"] < 50
    assert "a target" in weft("discover", "wide.toml", "--simulate", "").stdout
    assert cost("", "--seed", "3") == cost("seed=3") == cost("seed=3", "--seed", "2")
    assert cost("", "--seed", "3") != cost("")


WIDE = """
[fabric]
topology = "leaf-spine"
leaves = 32
spines = 32
hosts_per_leaf = 32
"""


@pytest.mark.slow
def test_what_a_job_needs_costs_a_thousand_hosts_minutes(weft: Weft, tmp_path: Path) -> None:
    """Every pair in use, all uplinks of a ring or two of an all-to-all; also at Linux' limit."""
    (tmp_path / "wide.toml").write_text(WIDE)

    def cost(switches: str, job: str, *words: str) -> dict[str, Any]:
        done = weft("discover", "wide.toml", "--simulate", switches, "--job", job, *words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert (found["complete"], found["wrong"]) == (found["pairs_simulated"], 0)
        return found

    ring = cost("", "all-reduce:size=64MB")
    assert (ring["hosts"], ring["pairs"], ring["hosts_simulated"]) == (32, 32, 32)
    assert ring["probes"] / ring["pairs"] < 200
    assert ring["seconds"] < 60
    every = cost("per-second=0", "all-to-all:size=64MB")
    assert every["pairs"] == 1024 * 992
    assert every["probes"] / every["pairs"] < 2.1
    assert every["seconds"] < 12 * 60


def test_all_paths_of_a_plan_are_few_probes_under_a_linear_hash(weft: Weft, tmp_path: Path) -> None:
    """One target gives all others: a port shows the offset, and some check it."""
    (tmp_path / "wide.toml").write_text(
        WIDE.replace("= 32", "= 16").replace("hosts_per_leaf = 16", "hosts_per_leaf = 2")
    )
    counts = {}
    for name in ("mixed", "crc32"):
        words = ("--simulate", f"per-second=0,hash={name}", "--job", "all-to-all:size=64MB")
        done = weft("discover", "wide.toml", *words, "--ports-per-path", "1", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["complete"], found["wrong"]) == (found["pairs_simulated"], 0)
        assert found["linear"] == (0 if name == "mixed" else found["pairs_simulated"])
        counts[name] = found["probes"] / found["pairs"]
    assert counts["crc32"] < 6
    assert counts["mixed"] > 2 * counts["crc32"]


@pytest.mark.parametrize("words", [(), ("--ports-per-path", "1")])
def test_what_a_job_needs_over_three_tiers(
    weft: Weft, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Two choices on the way up: every path of the plan, or ports of any path."""
    (tmp_path / "tree.toml").write_text('[fabric]\ntopology = "fat-tree"\nk = 4\n')
    for name in ("mixed", "crc32"):
        switches = ("--simulate", f"per-second=0,lost=0.01,hash={name}")
        done = weft(
            "discover", "tree.toml", *switches, "--job", "all-to-all:size=1MB", *words, "--json"
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["complete"], found["wrong"]) == (found["pairs"], 0)


def test_a_report_says_what_the_hash_does(small: Path) -> None:
    """Shares of ports, and what ECMP loses by chance and by uneven shares."""
    cluster = clusters.read(small)
    even = report.of(small, cluster, _whole_table(cluster), "all-to-all:size=1MB", "ethereal")
    assert [leaf["leaf"] for leaf in even["leaves"]] == [0, 1]
    assert [one["share"] for one in even["leaves"][0]["uplinks"]] == [0.25] * 4
    losses = even["leaves"][0]["ecmp_busiest_over_mean"]
    assert losses["1"] > losses["4"] > losses["16"] > 1
    assert even["job"]["busiest_links_s"] == pytest.approx(even["job"]["bound_s"])
    assert even["job"]["ecmp_over_planned"] > 1
    uneven = report.of(small, cluster, _whole_table(cluster, leave=0), None, "ethereal")
    assert uneven["leaves"][0]["ecmp_busiest_over_mean"]["16"] > losses["16"]
    assert "spine-3" in report.text(even)
    assert "times as long" in report.text(even)


def test_connections_are_read_as_the_kernel_writes_them() -> None:
    """Addresses are in the order of this machine; what is not established does not count."""
    address = struct.unpack("=I", bytes([10, 0, 0, 2]))[0]
    other = struct.unpack("=I", bytes([10, 1, 0, 2]))[0]
    lines = [
        "  sl  local_address rem_address   st tx_queue rx_queue",
        f"   0: {address:08X}:C350 {other:08X}:12B7 01 00000000:00000000 00:00000000 00000000",
        f"   1: {address:08X}:C351 {other:08X}:12B7 06 00000000:00000000 00:00000000 00000000",
    ]
    assert list(report.connections("\n".join(lines))) == [("10.0.0.2", 50000, "10.1.0.2", 4791)]


def found_by(survey: Survey, done: bool) -> dict[str, Any]:
    """As the native core tells of a survey."""
    found = _table()["sources"][0]
    target = {**found["targets"][0], "address": survey.targets[0], "done": done}
    return {**found, "address": survey.source, "targets": [target]}


def test_hosts_that_write_one_file_keep_what_others_have_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each has read it before the other has written; `fresh` forgets only what was there before."""
    path = tmp_path / "paths.json"
    one, other, third = (Survey(f"10.0.0.{n}", ["10.1.0.2"], "udp", 4791) for n in (2, 3, 4))

    def sources(fresh: bool) -> list[str]:
        def look(survey: Survey, _: Any, keep: Any) -> dict[str, Any]:
            if survey is one:
                assert keep(found_by(one, done=False))
                local.run([other], path, fresh=False, tell=lambda _: None)
            return found_by(survey, done=True)

        monkeypatch.setattr(survey, "run", look)
        found = local.run([one], path, fresh, tell=lambda _: None)
        assert found["sources"][0]["targets"][0]["done"]
        kept = json.loads(path.read_text())["sources"]
        assert all(target["done"] for source in kept for target in source["targets"])
        return sorted(source["address"] for source in kept)

    assert sources(fresh=False) == ["10.0.0.2", "10.0.0.3"]
    local.run([third], path, fresh=False, tell=lambda _: None)
    assert sources(fresh=False) == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert sources(fresh=True) == ["10.0.0.2", "10.0.0.3"]


def test_addresses_of_a_machine_look_side_by_side(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """None waits for another; the file has what all have found, and goes on from there."""
    together = threading.Barrier(3, timeout=20)
    given: dict[str, Any] = {}

    def look(survey: Survey, known: Any, keep: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        given[survey.source] = known
        together.wait()
        assert keep(found_by(survey, done=False))
        return found_by(survey, done=True)

    monkeypatch.setattr(survey, "run", look)
    wanted = [Survey(f"10.{nic}.0.2", [f"10.{nic}.1.2"], "tcp", 5000) for nic in range(3)]
    path = tmp_path / "paths.json"
    found = local.run(wanted, path, fresh=False, tell=lambda _: None)
    assert {one["address"] for one in found["sources"]} == {one.source for one in wanted}
    assert all(target["done"] for target in targets(found))
    assert json.loads(path.read_text()) == found
    assert given == dict.fromkeys(given)
    monkeypatch.setattr(table, "of_traffic", lambda *_: json.loads(path.read_text()))
    local.run(wanted, path, fresh=False, tell=lambda _: None)
    assert {one: known["sources"][0]["address"] for one, known in given.items()} == {
        one: one for one in given
    }


def test_one_that_fails_ends_the_others_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are told at their next word, and what they have found is kept."""
    together = threading.Barrier(2, timeout=20)

    def look(survey: Survey, _: Any, keep: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        together.wait()
        if survey.source == "10.0.0.2":
            raise ExperimentError("discover: no socket")
        end = time.monotonic() + 20
        while keep(found_by(survey, done=False)) and time.monotonic() < end:
            time.sleep(0.01)
        assert time.monotonic() < end
        return found_by(survey, done=False)

    monkeypatch.setattr(survey, "run", look)
    wanted = [Survey(f"10.{nic}.0.2", ["10.9.1.2"], "udp", 4791) for nic in range(2)]
    path = tmp_path / "paths.json"
    with pytest.raises(ExperimentError, match="no socket"):
        local.run(wanted, path, fresh=False, tell=lambda _: None)
    assert [one["address"] for one in json.loads(path.read_text())["sources"]] == ["10.1.0.2"]


def test_a_leaf_has_one_rate_for_all_that_look(tmp_path: Path) -> None:
    """NICs of a machine below one leaf share it; another leaf has its own; spines bear as much."""
    path = tmp_path / "rails.toml"
    path.write_text(CLUSTER.replace("leaves = 2", "leaves = 3").replace("leaf = 1", "leaf = 2"))
    cluster = clusters.read(path)
    rules = {"rate": 100.0, "unseen": 0.05}

    def rates(*names: str) -> list[float]:
        found = cli._surveys(cluster, (list(names), None), (None, None), rules, None)
        return [one.rate for one in found]

    assert rates("h0") == [100]
    assert rates("h0", "h2", "h4") == [100, 100, 100]
    assert rates("h0", "h1", "h2") == [50, 50, 100]
    alone = cli._surveys(None, (["10.0.0.2", "10.0.0.3"], ["10.1.0.2"]), (None, None), rules, None)
    assert [one.rate for one in alone] == [50, 50]


def test_a_later_survey_replaces_what_it_is_about() -> None:
    """Other targets of the same host stay."""
    found = _table((["10.0.0.1"], [50000]))
    other = json.loads(json.dumps(found["sources"][0]))
    other["targets"][0]["address"] = "10.1.0.3"
    table.put(found, other)
    assert [one["address"] for one in found["sources"][0]["targets"]] == ["10.1.0.2", "10.1.0.3"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON (line 1)"),
        ("[1]", "format: not a table of paths"),
        ('{"format": "weft-plan", "version": 1}', "format: not a table of paths"),
        ('{"format": "weft-paths", "version": 9}', "version: 9 is not known"),
        ('{"format": "weft-paths", "version": 1}', "not as weft discover writes it"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """With its name, and what to do."""
    path = tmp_path / "paths.json"
    path.write_text(text)
    with pytest.raises(ExperimentError) as refused:
        table.read(path)
    assert str(path) in str(refused.value)
    assert says in str(refused.value)


def test_what_a_table_may_leave_out_is_shown_as_nothing(tmp_path: Path) -> None:
    """The core reads such tables, and so do people."""
    found = _table(([None, "10.0.0.1"], [50_000]), (["10.0.0.9", None], []))
    (target,) = targets(found)
    for name in ("hops", "max_over_mean", "p_value"):
        target.pop(name, None)
    path = tmp_path / "paths.json"
    table.write(found, path)
    read = table.read(path)
    said = show.table(read, [found["sources"][0]["address"]], None, every=True)
    assert "50000" in said
    assert "10.0.0.9" not in said
    assert not table.answered(read, [found["sources"][0]["address"]])


def test_where_no_port_is_free_it_says_so() -> None:
    """A survey that could send nothing has not found out that nobody answers."""
    found = _table()
    (target,) = targets(found)
    target |= {"hops": None, "done": True}
    said = show.table(found, [found["sources"][0]["address"]], None, every=True)
    assert "no source port is free" in said


def _whole_table(cluster: clusters.Cluster, leave: int | None = None) -> table.Table:
    """Ports of every path between hosts in different racks, but for those over one uplink."""
    found = table.new(cluster.protocol, cluster.port)
    for host in cluster.hosts:
        targets = []
        for to in (one for one in cluster.hosts if one.leaf != host.leaf):
            links = cluster.uplinks[f"leaf-{host.leaf}"]
            paths: list[tuple[list[str | None], list[int]]] = [
                ([f"10.{host.leaf}.0.1", link.upper_address], [50000 + 16 * number, 60000 + number])
                for number, link in enumerate(links)
                if number != leave
            ]
            target = _table(*paths)["sources"][0]["targets"][0]
            targets.append({**target, "address": to.address})
        counts = {"seconds": 1.0, "probes": 40, "answers": 40, "lost": 0}
        table.put(found, {"address": host.address, **counts, "targets": targets})
    return found


def test_a_plan_takes_the_ports_of_its_paths(weft: Weft, small: Path, tmp_path: Path) -> None:
    """Every piece a port of its own path, in the tables of hosts too; the plan verifies itself."""
    cluster = clusters.read(small)
    table.write(_whole_table(cluster), tmp_path / "paths.json")
    words = ("plan", small, "--job", "all-to-all:size=1MB", "--paths", tmp_path / "paths.json")
    done = weft(*words, "-o", tmp_path / "plan")
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert (plan["enforce"], plan["segments"]) == ("discovered", {})
    pieces = plan["steps"][0]["pieces"]
    assert len(set(pieces["path"])) == 4
    for path, port in zip(pieces["path"], pieces["source_port"], strict=True):
        assert port in (50000 + 16 * (path >> 8), 60000 + (path >> 8))
    pairs = plan["hosts"][0]["queue_pairs"]
    assert {pair["flow_label"] for pair in pairs} == {pair["source_port"] - 49152 for pair in pairs}
    assert weft("plan", "--verify", tmp_path / "plan").returncode == 0


def test_a_plan_takes_the_paths_that_have_ports(weft: Weft, tmp_path: Path) -> None:
    """Two drawn paths for each pair of hosts suffice for links that are as even as can be."""
    (tmp_path / "small.toml").write_text(
        CLUSTER.replace("leaves = 2", "leaves = 4").replace(
            "hosts_per_leaf = 1", "hosts_per_leaf = 8"
        )
    )
    cluster = clusters.read(tmp_path / "small.toml")
    found = _whole_table(cluster)
    draw = random.Random(1)
    for target in (target for source in found["sources"] for target in source["targets"]):
        target["paths"] = draw.sample(target["paths"], 2)
        target["needs"] = [{"through": [], "ports": 2}]
    table.write(found, tmp_path / "paths.json")
    words = ("plan", "small.toml", "--job", "all-to-all:size=1MB", "-o")
    assert weft(*words, "whole").returncode == 0
    assert weft(*words, "some", "--paths", "paths.json").returncode == 0
    whole, some = (
        json.loads((tmp_path / name / "plan.json").read_text()) for name in ("whole", "some")
    )
    # No link has more than one piece more than its 48.
    assert some["seconds"] <= whole["seconds"] * 49.01 / 48
    assert some["steps"][0]["pieces"]["path"] != whole["steps"][0]["pieces"]["path"]
    assert weft("plan", "--verify", "some").returncode == 0


@pytest.mark.parametrize(
    ("protocol", "port", "names"),
    [("udp", 4791, 'protocol = "tcp"'), ("tcp", 4791, ""), ("udp", 80, "")],
)
def test_a_plan_refuses_ports_of_other_traffic(
    weft: Weft, small: Path, tmp_path: Path, protocol: str, port: int, names: str
) -> None:
    """Switches hash protocol and port as well, so its ports take other paths."""
    small.write_text(f"{CLUSTER}[cluster]\n{names}\n")
    path = tmp_path / "paths.json"
    found = _whole_table(clusters.read(small))
    table.write({**found, "protocol": protocol, "port": port}, path)
    done = weft(
        "plan", small, "--job", "all-to-all:size=1MB", "--paths", path, "-o", tmp_path / "o"
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{path}: protocol: the table is of {protocol} to port {port}, but" in done.stderr
    assert not (tmp_path / "o").exists()


def test_what_is_no_text_is_no_table(weft: Weft, small: Path, tmp_path: Path) -> None:
    """A table is no .toml."""
    (tmp_path / "paths.json").write_bytes(b"\xff\xfe\x00")
    done = weft("plan", small, "--job", "all-to-all:size=1MB", "--paths", tmp_path / "paths.json")
    assert done.returncode == 2
    assert "paths.json: is not text; name a table of weft discover -o" in done.stderr


def test_a_plan_says_which_path_has_no_port(weft: Weft, small: Path, tmp_path: Path) -> None:
    """It would not hold; and a scheme that leaves ports to hashing takes none."""
    path = tmp_path / "paths.json"
    table.write(_whole_table(clusters.read(small), leave=2), path)
    words = ("plan", small, "--job", "all-to-all:size=1MB", "--paths", path)
    done = weft(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{path}: sources: no port from h0 to h1 leads over path 2.0" in done.stderr
    other = weft(*words, "--scheme", "ecmp")
    assert "balance.enforce is none, which takes no discovered ports" in other.stderr


@needs_bed
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_standing_bed_is_discovered_planned_and_run(
    weft: Weft, small: Path, protocol: str
) -> None:
    """Leaves that only hash: what the plan puts on each uplink is what the kernel counts there."""
    small.write_text(f'{CLUSTER}[cluster]\nprotocol = "{protocol}"\n')
    assert weft("testbed", "up", small, "--hash").returncode == 0
    try:
        done = weft("discover", small, "--over", "testbed", "-o", "paths.json")
        assert done.returncode == 0, done.stderr
        assert "spine-3" in done.stdout
        again = weft("discover", small, "--over", "testbed", "-o", "paths.json")
        assert "as before" in again.stdout
        words = (
            "plan",
            small,
            "--job",
            "all-to-all:size=2MB",
            "--paths",
            "paths.json",
            "-o",
            "plan",
        )
        assert weft(*words).returncode == 0
        words = ("testbed", "run", small, "--plan", "plan", "--json")
        plain, over_tcp = weft(*words), weft(*words, "--tcp")
        run, other = (plain, over_tcp) if protocol == "udp" else (over_tcp, plain)
        assert run.returncode == 0, run.stderr
        assert other.returncode == 2
        assert f"its ports are of {protocol}, and mean nothing to another protocol" in other.stderr
    finally:
        assert weft("testbed", "down", small).returncode == 0
    sent = [uplink["bytes"] for uplink in json.loads(run.stdout)["uplinks"]]
    assert len(sent) == 8
    # Answers are hashed, and are some hundredths of the bytes.
    assert max(sent) < 1.1 * min(sent)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name a cluster file, or addresses with --to"),
        (("--to", "gpu-7"), "--to: 'gpu-7' is no IPv4 address"),
        (("--to", "127.0.0.1", "--from", "192.0.2.1"), "192.0.2.1 is no address of this host"),
        (("small.toml",), "this machine has none of the addresses of the cluster"),
        (("small.toml", "--from", "h7"), "h7 is no host of the cluster; it has h0, h1"),
        (("small.toml", "--from", "h0", "--to", "h0"), "no target is in another rack"),
        (("--over", "ssh {host}"), "--over: needs a cluster file"),
        (("--simulate", ""), "--simulate: needs a cluster file"),
        (("small.toml", "--simulate", "hash=magic"), "use mixed, crc16"),
        (("small.toml", "--simulate", "brust=1"), "write KEY=VALUE with a key of hash, burst"),
        (("small.toml", "--simulate", "burst=much"), "all but the hash are numbers"),
        (
            ("small.toml", "--over", "no-such-program {host}"),
            "--over: no-such-program: no such file",
        ),
        (("small.toml", "--over", ""), "--over: no command; write one that runs another on"),
        (("small.toml", "--over", "ssh {hoast}"), "there are {host}, {address} and {node}"),
        (("small.toml", "--over", "ssh {host.x}"), "there are {host}, {address} and {node}"),
        (("small.toml", "--simulate", "burst=-3"), "burst: -3 is out of range; use 0 to 4"),
        (("small.toml", "--simulate", "lost=2"), "lost: 2 is out of range; use 0 to 1"),
        (("small.toml", "--simulate", "per-second=nan"), "per-second: nan is out of range"),
        *(
            (
                ("small.toml", "--simulate", "", *option),
                f"{option[0]}: does nothing with --simulate",
            )
            for option in (("--report",), ("--over", "x"), ("--protocol", "tcp"), ("--paths",))
        ),
        (("small.toml", "--from", ","), "--from: names none; write --from A,B or leave it out"),
        (
            ("small.toml", "--over", "false"),
            "--over: h0: false ended with status 1 (and so on: none of 2 hosts)",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    weft: Weft, small: Path, words: tuple[str, ...], says: str
) -> None:
    """What is wrong and the mend; status 2."""
    words = tuple(str(small) if word == "small.toml" else word for word in words)
    done = weft("discover", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert says in done.stderr


def test_a_launcher_that_passes_nothing_on_is_told_so(
    weft: Weft, small: Path, tmp_path: Path
) -> None:
    """As `kubectl exec` without `-i`; the reason stands before what `srun` adds of its own."""
    launcher = tmp_path / "launcher"
    run = f'{sys.executable} -m weft "$@" < /dev/null'
    more = "echo srun: error: h0: task 0: Exited with exit code 2 >&2; exit 2"
    launcher.write_text(f"#!/bin/sh\nshift 2\n{run} || {{ {more}; }}\n")
    launcher.chmod(0o755)
    done = weft("discover", small, "--over", f"{launcher} {{host}}")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "nothing comes on standard input; --over needs a command that passes it" in done.stderr


@pytest.mark.parametrize("answer", ["{}", "[]", "null", '{"address": "10.0.0.2", "targets": 1}'])
def test_an_answer_that_is_no_table_is_told_so(
    weft: Weft, small: Path, tmp_path: Path, answer: str
) -> None:
    """Another program by that name, or another version."""
    launcher = tmp_path / "launcher"
    launcher.write_text(f"#!/bin/sh\necho '{answer}'\n")
    launcher.chmod(0o755)
    done = weft("discover", small, "--over", f"{launcher} {{host}}")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "is the same version of weft there?" in done.stderr


@pytest.mark.parametrize("status", [0, 255])
def test_a_launcher_may_speak_in_another_encoding(
    weft: Weft, small: Path, tmp_path: Path, status: int
) -> None:
    """As ssh and shells under Latin-1 do."""
    launcher = tmp_path / "launcher"
    say = r"printf 'Zugriff f\374r root verweigert\n'"
    launcher.write_text(f"#!/bin/sh\n{say}\n{say} >&2\nexit {status}\n")
    launcher.chmod(0o755)
    done = weft("discover", small, "--over", f"{launcher} {{host}}")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "r root verweigert" in done.stderr


def test_a_report_needs_no_survey_of_a_host_that_has_nothing_to_look_for(
    weft: Weft, small: Path, tmp_path: Path
) -> None:
    """A ring leaves a rack from its last host."""
    small.write_text(CLUSTER.replace("hosts_per_leaf = 1", "hosts_per_leaf = 2"))
    path = tmp_path / "paths.json"
    words = ("discover", small, "--from", "h0", "-o", path, "--job", "all-reduce:size=1MB")
    words = (*words, "--report")
    none = weft(*words)
    assert none.returncode == 2
    assert "the job sends nothing from these hosts" in none.stderr
    table.write(_whole_table(clusters.read(small)), path)
    done = weft(*words)
    assert done.returncode == 0, done.stderr
    assert "leaf-1" in done.stdout


def test_nobody_answers_on_this_machine(weft: Weft, tmp_path: Path) -> None:
    """Towards itself there is no switch: no path, status 1, and a table all the same."""
    path = tmp_path / "paths.json"
    done = weft("discover", "--to", "127.0.0.1", "--from", "127.0.0.1,127.0.0.2", "-o", path)
    assert done.returncode == 1, done.stderr
    assert "no switch answers" in done.stdout
    sources = table.read(path)["sources"]
    assert {one["address"] for one in sources} == {"127.0.0.1", "127.0.0.2"}
    assert [one["targets"][0]["hops"] for one in sources] == [0, 0]
    other = weft("discover", "--to", "127.0.0.1", "-o", path, "--protocol", "tcp")
    assert other.returncode == 2
    assert "the table is of udp to port 4791, not tcp" in other.stderr
