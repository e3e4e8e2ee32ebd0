"""How much work there is is said before it is done: packet-hops, time, memory."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest

import sweeps
from conftest import Weft, command
from weft import _native
from weft.study import inputs
from weft.study.forecast import ActiveRun, Forecast, format_hops, kind_of
from weft.study.progress import Lines
from weft.units import format_duration

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
TRACE = """MICRO
1
layer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE {bytes} 1
"""
"""An all-reduce as a text workload has it."""


def _specs(size: str, seeds: int) -> list[dict]:
    experiment = {
        "fabric": inputs.table_of("fabric", FABRIC),
        "workload": {"pattern": "ring", "size": size},
        "balance": {"scheme": "ecmp"},
    }
    return inputs.from_dict(experiment, seeds=seeds).runs


def test_work_is_what_a_run_does_that_loses_nothing() -> None:
    """Counted by hand: four messages of ten packets over four links, and their acknowledgements."""
    (spec,) = _specs("40960B", 1)
    text = json.dumps(spec["experiment"])
    assert _native.work(text, spec["seed"]) == (40, 40 * 4 * 2)
    progress = _native.Progress()
    assert progress.state() is None
    row = _native.run(text, spec["seed"], progress=progress)["row"]
    assert row["packet_hops"] == 320
    hops, share, seconds, first, payload = progress.state() or (0, 0.0, 0.0, (0.0, 0.0), 0)
    assert hops == 320
    assert payload == 4 * 40960
    assert 0 <= share <= 1
    assert seconds > 0
    assert first == ((seconds, share) if share > 0 else (0.0, 0.0))


def test_forecast_leaves_out_the_time_before_the_first_packet() -> None:
    """Two seconds of computation, then a tenth of the packets a second: twelve in all."""
    (spec,) = _specs("1KB", 1)
    assert ActiveRun("", 1, 0.1, 3.0, (3.0, 0.1)).total_time() is None
    run = ActiveRun(kind_of(spec), 3_100_000_000, 0.3, 5.0, (3.0, 0.1))
    assert run.total_time() == pytest.approx(12)
    forecast = Forecast(1)
    forecast.add([spec])
    forecast.update([run])
    assert forecast.time_left() == pytest.approx(7)


def test_share_rises_while_a_run_goes_on() -> None:
    """It is looked at every few thousand events, and ends near one."""
    (spec,) = _specs("200MB", 1)
    progress = _native.Progress()
    _native.run(json.dumps(spec["experiment"]), 1, progress=progress)
    state = progress.state()
    assert state is not None
    assert 0.9 < state[1] <= 1


def test_forecast_goes_by_the_work_of_runs_under_way() -> None:
    """Half done in a minute: another minute, and as much again for the other seed."""
    first, second = _specs("1KB", 2)
    forecast = Forecast(1)
    forecast.add([first, second])
    assert forecast.time_left() is None
    assert forecast.announcement(2) is None
    kind = kind_of(first)
    forecast.update([ActiveRun(kind, 3_100_000_000, 0.0, 0.05)])
    assert forecast.time_left() is None
    forecast.update([ActiveRun(kind, 3_100_000_000, 0.5, 60.0)])
    assert forecast.time_left() == pytest.approx(180)
    assert forecast.announcement(2) == "2 runs of 3.1e9 packet-hops, about 3 minutes on 2 cores"
    assert forecast.announcement(2) is None
    forecast.ended(first, 120.0)
    forecast.update([ActiveRun(kind, 3_100_000_000, 0.25, 30.0)])
    assert forecast.time_left() == pytest.approx(90)


def test_what_is_soon_done_is_not_announced() -> None:
    """A word beforehand is for work of half a minute and more."""
    (spec,) = _specs("1KB", 1)
    forecast = Forecast(1)
    forecast.add([spec])
    forecast.update([ActiveRun(kind_of(spec), 1_000_000, 0.5, 14.0)])
    assert forecast.announcement(1) is None
    forecast.update([ActiveRun(kind_of(spec), 1_000_000, 0.5, 31.0)])
    assert forecast.announcement(1) == "about 1.0e6 packet-hops, about 31 s on 1 core"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(40, "40 s"), (240, "4 minutes"), (6000, "1.7 hours"), (86_400 * 12, "12 days")],
)
def test_durations_are_words(seconds: float, words: str) -> None:
    """Two digits are more than an estimate has."""
    assert format_duration(seconds) == words


def test_packet_hops_have_two_digits() -> None:
    """Unless there are few."""
    assert format_hops(3_140_000_000) == "3.1e9 packet-hops"
    assert format_hops(320) == "320 packet-hops"


def test_lines_tell_how_far_it_is_at_each_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For logs, where there is no bar."""
    now = 1000.0
    monkeypatch.setattr("weft.study.progress.time.monotonic", lambda: now)
    lines = Lines()
    lines.start(4, 0)
    lines.expect(200.0)
    now += 30
    lines.under_way([ActiveRun("", 1, 0.3, 30.0)])
    assert capsys.readouterr().err == ""
    now += 31
    lines.under_way([ActiveRun("", 1, 0.6, 61.0, payload=4_000), ActiveRun("", 1, 0.4, 61.0)])
    said = "[0/4] 25 % of the work (2.40 of 4.00 KB delivered, 61 s), about 3 minutes left\n"
    assert capsys.readouterr().err == said
    now += 31
    lines.under_way([ActiveRun("", 1, 1.1, 92.0)])
    assert capsys.readouterr().err == ""


def test_many_runs_have_a_line_for_each_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few have a line each; a run without a result has one always."""
    monkeypatch.setattr("weft.study.progress.time.monotonic", lambda: 1000.0)
    row = sweeps.row_of(sweeps.specs({}, 1)[0], cct_s=1e-3)
    for total, kept, count in ((20, 0, 20), (200, 0, 10), (200, 130, 4)):
        lines = Lines()
        lines.start(total, kept)
        capsys.readouterr()
        lines.expect(80.0)
        for _ in range(kept, total):
            lines.finished("ecmp seed=1", row)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == count
    first, second, *_ = said
    assert first == "[140/200] runs are done (0.0 s), about 80 s left"
    assert second == "[160/200] runs are done (0.0 s)"
    lines = Lines()
    lines.start(200, 0)
    lines.finished("ecmp seed=1", None)
    assert capsys.readouterr().err == "[1/200] ecmp seed=1: no result (0.0 s)\n"


def test_a_long_run_says_beforehand_how_long(tmp_path: Path) -> None:
    """In the first seconds, on standard error; Ctrl-C then ends it as ever."""
    words = ["compare", "--fabric", FABRIC, "--workload", "ring:size=100GB", "--schemes", "ecmp"]
    run = subprocess.Popen(
        command(*words, "--json"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    assert run.stdout is not None
    line = run.stderr.readline()
    run.terminate()
    run.wait()
    assert line.startswith("about 7.8e8 packet-hops, about ")
    assert " on " in line
    assert run.stdout.read() == ""


def test_trace_info_says_how_much_work_it_is(weft: Weft, tmp_path: Path) -> None:
    """On a fabric that is given, with a time that a short trial tells."""
    (tmp_path / "one.txt").write_text(TRACE.format(bytes=1_000_000))
    words = ("trace", "info", "one.txt", "--fabric", FABRIC)
    found = json.loads(weft(*words, "--json").stdout)["work"]
    done = weft("run", "one.txt", "--fabric", FABRIC, "--schemes", "ecmp", "--json", "-q")
    (row,) = json.loads(done.stdout)
    assert found["packet_hops"] == row["packet_hops"]
    assert found["packets"] == row["packets"]
    assert 0 < found["estimated_s"] < 30
    text = weft(*words).stdout
    assert f"work          {row['packet_hops']}" in text or "packet-hops on leaf-spine" in text
    assert "work" not in json.loads(weft("trace", "info", "one.txt", "--json").stdout)


LARGE = {
    "workload.channels": ["--workload", "ring:size=1KB,channels=1000000"],
    "fabric.hosts_per_leaf": ["--set", "fabric.hosts_per_leaf=65536", "--set", "fabric.leaves=64"],
    "workload.pattern": [
        *("--workload", "all-to-all:size=1KB"),
        *("--set", "fabric.leaves=1000"),
    ],
    "workload.times": [
        "--workload",
        "all-reduce:size=1KB,times=1000000",
        "--set",
        "fabric.leaves=64",
    ],
    "seeds": ["--seeds", "1000000"],
    "workload.algorithm": [
        *("--workload", "all-gather:size=1MB,algorithm=direct"),
        *("--set", "fabric.hosts_per_leaf=2048"),
    ],
}
"""What is far too large, by the key that makes it so."""


@pytest.mark.parametrize("key", LARGE)
def test_what_is_larger_than_memory_is_refused_before_it_is_taken(key: str, tmp_path: Path) -> None:
    """In one line that names the key and the number; the limit is an artificial one."""
    limit = 1_000_000_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    words = ["compare", "--fabric", FABRIC, "--workload", "ring:size=1KB", "--schemes", "ecmp"]
    done = subprocess.run(
        command(*words, *LARGE[key], "--jobs", "1"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert f": {key}" in line
    assert "GB, but there are 1GB of memory" in line
