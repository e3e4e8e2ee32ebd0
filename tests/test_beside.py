"""`make beside` with a program that stands for another simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[1] / "bench/beside.py"


def beside(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it."""
    command = [sys.executable, str(BESIDE), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_program_is_one(tmp_path: Path) -> None:
    """Else one line says so."""
    assert "is no program" in beside("--htsim", tmp_path / "none").stderr


def test_the_page_has_the_table_of_the_last_record() -> None:
    """The commands of both sides, and what Weft took."""
    newest = max((BESIDE.parent / "records" / "beside").glob("*.json"))
    page = (BESIDE.parents[1] / "docs/evidence/speed.md").read_text()
    assert beside("--table", newest).stdout in page
    assert {row["status"] for row in json.loads(newest.read_text())["rows"]} == {0}


@pytest.mark.slow
def test_a_text_workload_is_read_by_both(tmp_path: Path) -> None:
    """The stand-in finds the files that its command names."""
    program = tmp_path / "simulator"
    program.write_text(
        "#!/bin/sh\ntest -s layers.txt && test -s busbw.yaml && test $2 = layers.txt\n"
    )
    program.chmod(0o755)
    done = beside("--simai", program, "--folder", tmp_path / "inputs")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 3])
def test_both_sides_run_on_the_same_files(tmp_path: Path, status: int) -> None:
    """Times and memory of each; a side that fails is named, and its time is not taken for one."""
    program = tmp_path / "simulator"
    program.write_text(
        f"#!/bin/sh\ntest -s all-to-all.bin && test $2 = all-to-all.bin && exit {status}\n"
    )
    program.chmod(0o755)
    done = beside("--loggopsim", program, "--folder", tmp_path / "inputs")
    assert done.returncode == (1 if status else 0), done.stderr
    theirs, ours = json.loads((tmp_path / "inputs/beside.json").read_text())
    assert (theirs["simulator"], theirs["status"]) == ("loggopsim", status)
    assert (ours["simulator"], ours["status"]) == ("weft", 0)
    assert ours["peak_bytes"] > 10e6
    assert 0 < ours["processor_s"] < 60
    assert ("its time says nothing" in done.stdout) == bool(status)
