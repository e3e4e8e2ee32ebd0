"""Sweeps: resuming, interrupting, stalling, and independence of the number of jobs."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import SMALL, STALLS, Weft, rows, start
from weft.cli import simulations
from weft.cli.run import run_files
from weft.report import html
from weft.study import store

TABLES = ("runs", "flows", "links", "series")


def run_folders(output: Path) -> dict[str, int]:
    """The finished runs in a results directory and when they were written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in output.glob("runs/*/row.json")}


def same_tables(first: Path, second: Path) -> bool:
    """Whether two results directories hold the same bytes."""
    return all(
        (first / f"{name}.parquet").read_bytes() == (second / f"{name}.parquet").read_bytes()
        for name in TABLES
    )


def test_results_do_not_depend_on_jobs(weft: Weft, small: Path, tmp_path: Path) -> None:
    """Nor on chance: the same command twice gives the same bytes, timing apart."""
    for output, jobs in (("one", "1"), ("again", "1"), ("two", "2")):
        done = weft("run", small, "-o", output, "--jobs", jobs, "--no-report", "-q")
        assert done.returncode == 0, done.stderr
    assert same_tables(tmp_path / "one", tmp_path / "again")
    assert same_tables(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "one" / "timing.parquet").is_file()
    studies = [(tmp_path / output / "study.json").read_text() for output in ("one", "two")]
    assert studies[0] == studies[1].replace("-o two", "-o one")


def test_only_what_is_missing_is_run(weft: Weft, small: Path, tmp_path: Path) -> None:
    """One run's folder is lost: the repeated command runs that one and no other."""
    output = tmp_path / "out"
    assert weft("run", small, "-o", output, "--no-report").returncode == 0
    before = run_folders(output)
    lost = sorted(before)[2]
    tables = {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}
    shutil.rmtree(output / "runs" / lost)
    done = weft("run", small, "-o", output, "--no-report")
    after = run_folders(output)
    assert done.stderr.splitlines()[0] == "5 of 6 runs are done already"
    assert sum(line.startswith("[") for line in done.stderr.splitlines()) == 1
    assert {key for key in after if after[key] != before[key]} == {lost}
    assert tables == {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}


def test_commands_write_the_tables_of_a_directory_in_turn(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else gets the lock while one assembles tables or draws a report."""
    output = tmp_path / "out"
    seen = []

    def locked(module: Any, name: str) -> None:
        own = getattr(module, name)

        def one(*words: Any) -> Any:
            lock = os.open(output, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(lock)
            seen.append(name)
            return own(*words)

        monkeypatch.setattr(module, name, one)

    locked(store, "assemble")
    locked(html, "make")
    told = replace(options(output), report=True)
    assert run_files([str(small)], told, 1, [], None, None) == 0
    assert seen == ["assemble", "make"]


@pytest.mark.slow
def test_interrupt_keeps_what_had_finished(weft: Weft, tmp_path: Path) -> None:
    """Ctrl-C in the middle, then the same command again: as if nothing had happened."""
    larger = SMALL.replace("hosts_per_leaf = 2", "hosts_per_leaf = 16").replace("16KB", "256KB")
    (tmp_path / "long.toml").write_text(larger.replace("seeds = 2", "seeds = 20"))
    arguments = ("run", "long.toml", "--no-report", "-o")
    running = start(*arguments, "cut", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not run_folders(tmp_path / "cut") and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    kept = run_folders(tmp_path / "cut")
    assert running.returncode == 130
    assert 0 < len(kept) < 60
    assert f"{len(kept)} of 60 runs had finished and are kept in cut/runs" in said
    assert "Traceback" not in said
    assert not list((tmp_path / "cut" / "runs").glob(".*"))
    said = weft("report", "cut").stderr
    again = "weft run long.toml --no-report -o cut"
    assert said == f"error: cut: unfinished; repeat the command that began it: {again}\n"
    (tmp_path / "cut" / "study.json").unlink()
    assert "cut: unfinished (no study.json)" in weft("merge", "cut", "-o", "some").stderr
    few = ("--seeds", "1", "-q")
    assert weft(*arguments, "cut", *few).returncode == 0
    assert weft(*arguments, "whole", *few).returncode == 0
    assert same_tables(tmp_path / "cut", tmp_path / "whole")


def options(output: Path | None = None) -> simulations.Options:
    """What a command is told when a test calls it without a process."""
    return simulations.Options(output, jobs=2, threads=None, json=False, report=False, quiet=True)


def test_stall_is_told_and_the_others_are_kept(
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1; the stalled run is tried again the next time."""
    from weft import _native

    real = _native.run

    def stalling(experiment: str, seed: int, cancel: _native.Cancel, **cores: Any) -> Any:
        if '"spray"' in experiment and seed == 2:
            raise _native.StallError("message 3 (0 -> 2) waits for an acknowledgement")
        return real(experiment, seed, cancel, **cores)

    monkeypatch.setattr(_native, "run", stalling)
    assert run_files([str(small)], options(tmp_path / "out"), None, [], None, None) == 1
    said = capsys.readouterr()
    expected = "stalled: small spray seed 2: message 3 (0 -> 2) waits for an acknowledgement"
    assert said.err.splitlines() == [expected]
    assert "ethereal" in said.out
    assert "\nspray: stalled (1 of 2 seeds)\n" in said.out
    assert len(run_folders(tmp_path / "out")) == 5
    (summary,) = json.loads((tmp_path / "out/summary.json").read_text())["experiments"]
    (stalled,) = summary["stalled"]
    assert (stalled["scheme"], stalled["seed"]) == ("spray", 2)
    assert stalled["stalled"] == expected.partition("seed 2: ")[2]
    monkeypatch.undo()
    assert run_files([str(small)], options(tmp_path / "out"), None, [], None, None) == 0
    assert len(run_folders(tmp_path / "out")) == 6


def test_who_stalled_is_in_all_results(weft: Weft, tmp_path: Path) -> None:
    """In the report, in JSON, and beside an experiment of which nothing finished."""
    (tmp_path / "stalls.toml").write_text(STALLS)
    (tmp_path / "dead.toml").write_text(STALLS.replace(', "spray", "twill"', ""))
    rows = json.loads(weft("run", "stalls.toml", "-q", "--json").stdout)
    assert [row["cct_s"] for row in rows if "stalled" in row] == [None, None]
    assert {row["scheme"] for row in rows if "stalled" in row} == {"ecmp"}
    done = weft("run", "stalls.toml", "dead.toml", "-o", "out", "-q")
    assert done.returncode == 1
    assert done.stdout.count("\necmp: stalled (2 of 2 seeds)\n") == 2
    assert "no run finished; 0 of 2 runs" in done.stdout
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.count('<p class="warning">ecmp stalled in 2 runs; ecmp seed 1: the run') == 2
    assert report.count(">stalled (2 of 2 seeds)</td>") == 2
    assert weft("run", "dead.toml", "-o", "none", "-q").returncode == 1
    assert "none: no run has finished, and some stalled; repeat" in weft("report", "none").stderr
    # What is in a folder from before would pass for results of these.
    said = weft("run", "dead.toml", "-o", "out", "-q").stderr
    assert "warning: out has tables of earlier runs only: none of these finished\n" in said
    # What earlier versions wrote.
    path = tmp_path / "out" / "study.json"
    saved = json.loads(path.read_text())
    assert len(saved.pop("stalled")) == 2
    path.write_text(json.dumps(saved))
    assert weft("report", "out", "-q").returncode == 0


def test_a_report_is_never_older_than_its_tables(weft: Weft, small: Path, tmp_path: Path) -> None:
    """Without a new one the old one goes, and that is told; it stays beside the same tables."""
    words, report = ("run", small, "-o", "out", "--seeds"), tmp_path / "out" / "report.html"
    assert weft(*words, "1", "-q").returncode == 0
    assert weft(*words, "1", "-q", "--no-report").stderr == ""
    assert report.exists()
    said = weft(*words, "2", "-q", "--no-report").stderr
    assert said == "removed the report of earlier results; for one of these: weft report out\n"
    assert not report.exists()


def test_two_files_share_a_directory(weft: Weft, small: Path, tmp_path: Path) -> None:
    """Rows and progress carry the experiment's name; equal runs are simulated once."""
    import polars as pl

    (tmp_path / "other.toml").write_text(small.read_text().replace('"spray", ', ""))
    done = weft("run", "small.toml", "other.toml", "-o", "out", "--no-report")
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 6
    assert "] small ethereal seed 2: CCT " in done.stderr
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert runs["experiment"].to_list() == ["small"] * 6 + ["other"] * 4
    assert len(run_folders(tmp_path / "out")) == runs["key"].n_unique() == 6


def test_replaced_tables_are_mentioned(weft: Weft, small: Path, tmp_path: Path) -> None:
    """One line when another experiment takes over a directory, none when the same one does."""
    (tmp_path / "other.toml").write_text(small.read_text().replace("small", "different"))
    few = ("-o", "out", "--no-report", "--seeds", "1")
    weft("run", "small.toml", *few)
    kept = run_folders(tmp_path / "out")
    assert "held" not in weft("run", "small.toml", *few, "--set", "workload.size=1KB").stderr
    said = weft("run", "other.toml", *few).stderr.splitlines()
    assert said[-1] == "out held the tables of small: replaced (finished runs stay in out/runs)"
    assert run_folders(tmp_path / "out").items() >= kept.items()


def test_a_swept_table_may_be_called_as_a_result(weft: Weft, small: Path, tmp_path: Path) -> None:
    """`workload` is a section of the experiment and a result as well."""
    axes = '[sweep]\nworkload = [{ name = "few" }, { name = "more", size = "32KB" }]\n'
    text = small.read_text().split("[sweep]")[0] + axes + '[balance]\nscheme = "ecmp"\n'
    (tmp_path / "named.toml").write_text(text)
    done = weft("run", "named.toml", "-o", "out", "--no-report")
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert runs["swept.workload"].to_list() == ["few", "more"]
    assert runs["workload"].to_list() == ["all-to-all"] * 2


def test_a_table_called_like_a_scheme_sets_it(weft: Weft, tmp_path: Path) -> None:
    """Else its rows would be those of another scheme under its name."""
    file = tmp_path / "tables.toml"
    table = '{ name = "spray", %sworkload = { size = "8KB" } }'
    text = SMALL.partition("[sweep]")[0] + '[sweep]\n"balance.scheme" = ["ecmp", %s]\n'
    file.write_text(text % (table % ""))
    done = weft("run", file, "--no-report")
    assert done.returncode == 2
    assert 'has a table called "spray" that sets no scheme' in done.stderr
    file.write_text(text % (table % 'balance = { scheme = "spray" }, '))
    assert [row["scheme"] for row in rows(weft, "run", file)] == ["ecmp", "spray"]
