"""Trouble with the disk: one line, finished runs kept, damaged ones simulated again."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft, command
from test_sweep import TABLES, run_folders
from weft import ExperimentError, load

pytestmark = pytest.mark.usefixtures("small")
RUN = ("run", "small.toml", "-o", "out", "-q")


def limited(*arguments: str, size: int, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line where no file may grow beyond `size` bytes: a full disk, nearly."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_full_disk_keeps_what_had_finished(weft: Weft, tmp_path: Path) -> None:
    """Exit code 1, one line, no half-written run; with room again the rest is simulated."""
    assert weft(*RUN, "--no-report", "--seeds", "1").returncode == 0
    done = limited(*RUN, "--no-report", size=1000, cwd=tmp_path)
    assert done.returncode == 1
    said = "error: out/runs: file too large; 3 of 6 runs had finished and are kept\n"
    assert done.stderr == said
    assert len(run_folders(tmp_path / "out")) == 3
    assert not list((tmp_path / "out").rglob(".*"))
    assert weft(*RUN, "--no-report").returncode == 0
    assert len(run_folders(tmp_path / "out")) == 6


def test_full_disk_leaves_the_old_tables(weft: Weft, tmp_path: Path) -> None:
    """The runs fit but the tables do not: the ones that were there stay whole."""
    output = tmp_path / "out"
    assert weft(*RUN, "--no-report").returncode == 0
    before = {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}
    done = limited(*RUN, "--no-report", size=1000, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: out")
    assert done.stderr.endswith("; 6 of 6 runs had finished and are kept\n")
    assert done.stderr.count("\n") == 1
    assert before == {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}
    assert not list(output.glob(".*"))


@pytest.mark.slow
def test_full_disk_while_drawing(weft: Weft, tmp_path: Path) -> None:
    """The tables are there; the report is not left in halves."""
    assert weft(*RUN, "--no-report").returncode == 0
    done = limited("report", "out", size=1 << 20, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: out/report.html: file too large"
    assert not (tmp_path / "out" / "report.html").exists()


def test_full_standard_output(small: Path) -> None:
    """`weft run > file` on a full disk."""
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("run", small, "-q"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "error: output: no space left on device\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "small.toml"), "file/runs: not a directory; name another path"),
        (("plan", "cluster.toml", "--workload", "ring:size=1MB"), "file: file exists; name anoth"),
        (("topology", "draw", "fat-tree:k=4"), "folder.svg: is a directory; name a file"),
    ],
)
def test_no_place_for_an_output(
    weft: Weft, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """What the user named is wrong, not the disk: exit code 2 of every command."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "cluster.toml").write_text(
        '[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n'
    )
    done = weft(*words, "-o", "folder.svg" if words[0] == "topology" else "file")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: {said}")


def test_damaged_runs_are_simulated_again(weft: Weft, tmp_path: Path) -> None:
    """Cut or missing files, as after a power failure: one warning, and the same tables."""
    output = tmp_path / "out"
    assert weft(*RUN, "--no-report").returncode == 0
    tables = {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}
    cut, parquet, lost, *_ = sorted((output / "runs").iterdir())
    for path in (cut / "row.json", parquet / "flows.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    (lost / "series.parquet").unlink()
    done = weft("run", "small.toml", "-o", "out", "--no-report")
    assert done.returncode == 0
    warning, there, *rest = done.stderr.splitlines()
    assert warning.startswith("warning: out/runs held 3 damaged runs (")
    for flaw in ("row.json is damaged", "flows.parquet is damaged", "series.parquet is missing"):
        assert flaw in warning
    assert there == "3 of 6 runs are done already"
    assert len(rest) == 3
    assert tables == {name: (output / f"{name}.parquet").read_bytes() for name in TABLES}


def test_report_of_damaged_results_takes_one_line(weft: Weft, tmp_path: Path) -> None:
    """It names the file and says how to get it back."""
    assert weft(*RUN, "--no-report", "--seeds", "1").returncode == 0
    for name in ("study.json", "runs.parquet", "flows.parquet"):
        copy = tmp_path / name.replace(".", "-")
        shutil.copytree(tmp_path / "out", copy)
        (copy / name).write_bytes((copy / name).read_bytes()[:-9])
        done = weft("report", copy.name)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {copy.name}: {name} is damaged; repeat")
        assert done.stderr.count("\n") == 1
    study = json.loads((tmp_path / "out/study.json").read_text())
    (experiment,) = study["experiments"]
    for there, key in ((study, "later"), (experiment, "experiments.later")):
        there["later"] = 1
        (tmp_path / "study-json/study.json").write_text(json.dumps(study))
        done = weft("report", "study-json")
        said = f"error: study-json: study.json: {key}: this version of Weft does not know it; use"
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(said)
        del there["later"]
    for name in ("links.parquet", "runs.parquet"):
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "out" / name)
        done = weft("report", "out")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"out: {name} is damaged: not the columns of results; repeat" in done.stderr


def _turn_bits(path: Path) -> None:
    """Damage what is between the letters and the lengths at both ends of a parquet file."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(255 - one for one in whole[4:-8]) + whole[-8:])


@pytest.mark.parametrize("name", ["runs", "timing", "flows", "series"])
def test_a_table_with_other_bits_is_named(weft: Weft, tmp_path: Path, name: str) -> None:
    """By `weft report` and `weft.load`, whenever they read it."""
    assert weft(*RUN, "--no-report", "--seeds", "1").returncode == 0
    _turn_bits(tmp_path / f"out/{name}.parquet")
    done = weft("report", "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: out: {name}.parquet is damaged; repeat")
    with pytest.raises(ExperimentError, match=f"out: {name}.parquet is damaged; repeat"):
        load(tmp_path / "out")


def test_a_run_with_other_bits_is_named(weft: Weft, tmp_path: Path) -> None:
    """Its table ends well, so it was taken for whole; without it the command goes on."""
    assert weft(*RUN, "--no-report", "--seeds", "1").returncode == 0
    run = next((tmp_path / "out/runs").iterdir())
    _turn_bits(run / "links.parquet")
    done = weft(*RUN, "--no-report", "--seeds", "1", "-q")
    said = f"error: out/runs/{run.name}/links.parquet: is damaged; remove out/runs/{run.name}, and"
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(said)
    shutil.rmtree(run)
    assert weft(*RUN, "--no-report", "--seeds", "1", "-q").returncode == 0


@pytest.mark.parametrize("text", ["null", "3", "[]", "{}"])
def test_a_study_that_is_no_table_is_damaged(weft: Weft, tmp_path: Path, text: str) -> None:
    """JSON, but not of ours."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/study.json").write_text(text)
    for words in (["report", "out"], ["merge", "out", "-o", "whole"]):
        done = weft(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "error: out: study.json is damaged; repeat the command that made it\n"
