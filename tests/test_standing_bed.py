"""A test bed that stands over several commands, and what a killed one leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Weft, command, left_by, processes_of
from small_bed import SMALL, by_all_rules, needs_bed
from weft import cluster as clusters
from weft.errors import ExperimentError
from weft.testbed import bed, failures, system
from weft.testbed.rules import Rules


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Four hosts, two spines."""
    path = tmp_path / "small-bed.toml"
    path.write_text(SMALL)
    return path


@needs_bed
@by_all_rules
def test_a_bed_stands_runs_fails_and_goes(small: Path, weft: Weft, rules: Rules) -> None:
    """`up`, `run`, `fail`, `--repair`, `down`, with the bed's own names."""

    def say(*words: str | Path) -> subprocess.CompletedProcess[str]:
        done = weft("testbed", *words)
        assert done.returncode == 0, done.stderr
        return done

    prefix = bed.prefix_of(small)
    assert weft("testbed", "fail", small, "leaf-0:spine-0").returncode == 2
    say("up", small, "--rules", rules)
    try:
        assert weft("testbed", "up", small).returncode == 2
        words = ("run", small, "--workload", "all-to-all:size=200KB", "--json")
        uplinks = [one["bytes"] for one in json.loads(say(*words).stdout)["uplinks"]]
        assert max(uplinks) - min(uplinks) < 3_000
        say("fail", small, "leaf-0:spine-1", "--how", "admin")
        row = json.loads(say(*words).stdout)
        assert row["complete"]
        by_link = {(one["leaf"], one["spine"]): one["bytes"] for one in row["uplinks"]}
        assert by_link["leaf-0", "spine-1"] == 0
        dead = ("route", "show", "table", "7002")
        assert system.ask("ip", *dead, namespace=f"{prefix}leaf-0") == ""
        say("fail", small, "leaf-0:spine-1", "--repair")
        assert "default via" in system.ask("ip", *dead, namespace=f"{prefix}leaf-0")
        again = [one["bytes"] for one in json.loads(say(*words).stdout)["uplinks"]]
        assert max(again) - min(again) < 3_000
        say("run", small, "--scheme", "ecmp")
        assert " 1000:" not in system.ask("ip", "rule", namespace=f"{prefix}leaf-0")
    finally:
        say("down", small)
    assert not list(system.NAMES.glob(f"{prefix}*"))
    assert not list(bed.STATES.glob(f"{prefix}*"))
    assert bed.standing(small) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cluster": {}}', '{"cluster": 5}'])
def test_a_state_of_another_version_is_told_in_one_line(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """And how to be rid of what stands."""
    monkeypatch.setattr(bed, "STATES", tmp_path)
    prefix = bed.prefix_of(small)
    (tmp_path / f"{prefix}bed.json").write_text(text)
    says = f"{prefix}bed.json: not as this version of weft writes it; remove it, .*{prefix}"
    with pytest.raises(ExperimentError, match=says):
        bed.standing(small)


@needs_bed
def test_one_run_at_a_time_has_a_standing_bed(small: Path, weft: Weft) -> None:
    """Two would load rules over each other's, and count each other's bytes."""
    words = ("testbed", "run", small, "--workload", "all-to-all:size=50MB")
    assert weft("testbed", "up", small).returncode == 0
    try:
        with subprocess.Popen(command(*words), stdout=subprocess.DEVNULL) as first:
            _wait(lambda: any(bed.folder_of(small).glob("*/control")))
            for other in (("run", "--scheme", "ecmp"), ("up",), ("down",)):
                done = weft("testbed", other[0], small, *other[1:])
                assert done.returncode == 2, done.stdout
                assert "another weft testbed is at work on its bed" in done.stderr
            first.kill()
        assert weft(*words[:3], "--scheme", "ecmp").returncode == 0
    finally:
        weft("testbed", "down", small)


@needs_bed
def test_a_link_that_a_killed_run_left_dead_is_mended(small: Path, weft: Weft) -> None:
    """By the next run, or by hand; so is one that somebody set down by hand."""
    words = ("testbed", "run", small, "--workload")
    failing = (*words, "all-to-all:size=8MB", "--fail", "leaf-0:spine-1@1%")
    leaf, port = f"{bed.prefix_of(small)}leaf-0", _port(small, "leaf-0", "spine-1")

    def is_up() -> bool:
        return "state UP" in system.ask("ip", "link", "show", port, namespace=leaf)

    def kill_one() -> None:
        token = f"weft-test-{os.getpid()}-killed"
        environment = os.environ | {"TOKEN": token}
        with subprocess.Popen(command(*failing), env=environment, stdout=subprocess.DEVNULL) as run:
            _wait(lambda: not is_up())
            run.kill()
        assert left_by(lambda: processes_of(token)) == []

    repair = ("testbed", "fail", small, "leaf-0:spine-1", "--repair")
    assert weft("testbed", "up", small).returncode == 0
    try:
        kill_one()
        assert weft(*repair).returncode == 0
        assert is_up()
        kill_one()
        done = weft(*words, "all-to-all:size=200KB", "--json")
        uplinks = [one["bytes"] for one in json.loads(done.stdout)["uplinks"]]
        assert max(uplinks) - min(uplinks) < 3_000
        assert [path.name for path in bed.folder_of(small).iterdir()] == []
        system.batch("ip", [f"link set {port} down"], leaf)
        assert weft(*repair).returncode == 0
        assert is_up()
    finally:
        weft("testbed", "down", small)


def _port(path: Path, lower: str, upper: str) -> str:
    links = clusters.read(path).uplinks[lower]
    return next(link.lower_port for link in links if link.upper == upper)


def _wait(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_rule_that_is_not_there_can_be_taken_away(small: Path) -> None:
    """A run may end before its failure: that must not hide why."""
    cluster = clusters.read(small)
    failure = failures.read("leaf-0:spine-1@50%", "corrupt", cluster)
    (step,) = failures.repair_steps(cluster, failure)
    assert [line.split()[0] for line in step.lines] == ["add", "delete"]


def _held(processes: list[str]) -> set[str]:
    """The network name spaces that processes are in, but our own."""
    found = set()
    for process in processes:
        try:
            found.add(str(Path(f"/proc/{process}/ns/net").readlink()))
        except OSError:
            continue
    return found - {str(Path("/proc/self/ns/net").readlink())}


def _all_processes() -> list[str]:
    return [path.name for path in Path("/proc").glob("[0-9]*")]


@needs_bed
@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3, 7])
def test_killed_in_the_middle_nothing_stays(small: Path, processes: int) -> None:
    """No process, no namespace: killed while it is built, while hosts start, under traffic."""
    token = f"weft-test-{os.getpid()}-{processes}"
    before = set(system.NAMES.glob("*"))
    theirs: set[str] = set()
    said = small.with_suffix(".said")
    with said.open("w") as out:
        run = subprocess.Popen(
            command("testbed", "run", small, "--workload", "all-to-all:size=50MB"),
            env=os.environ | {"TOKEN": token},
            stdout=out,
            stderr=out,
        )
    try:
        end = time.monotonic() + 30
        while len(processes_of(token)) < processes:
            assert time.monotonic() < end
            assert run.poll() is None, said.read_text()
            theirs |= _held(processes_of(token))
            time.sleep(0.01)
        theirs |= _held(processes_of(token))
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert theirs or processes < 7
    assert left_by(lambda: processes_of(token) + sorted(theirs & _held(_all_processes()))) == []
    assert set(system.NAMES.glob("*")) == before
