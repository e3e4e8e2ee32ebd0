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


def test_there_must_be_a_program(tmp_path: Path) -> None:
    """One line says what to give."""
    assert "give the program of at least one simulator" in beside().stderr
    assert "is no program" in beside("--htsim", tmp_path / "none").stderr


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
