"""What a rank hears when another one goes wrong; and how PyTorch finds the back end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from processes import outcome, ranks

SOON = 12.0
"""Seconds: more than the group's limit of 4 and a path's time to be given up together."""


@pytest.mark.parametrize("how", ["killed", "gone", "idle"])
def test_who_goes_wrong_is_named(how: str, tmp_path: Path) -> None:
    """One line, in time, and again for whatever is tried after it."""
    started = ranks("failing.py", 3, str(tmp_path / "store"), how, WEFT_GIVE_UP="3s")
    found = outcome(started, 90)
    reports = [json.loads(out) for rank, (_, out, _) in enumerate(found) if rank != 1]
    errors = [report["error"] for report in reports]
    assert all(error.startswith("weft: all-reduce: ") for error in errors), errors
    assert any("rank 1" in error for error in errors), errors
    assert all("\n" not in error for error in errors), errors
    assert all(report["after_s"] < SOON for report in reports), reports
    for report in reports:
        assert report["then"].startswith("weft: all-reduce: the group is over since"), report


def test_the_back_end_is_known_without_an_import() -> None:
    """Through the entry point; where that is switched off, after an import."""
    ask = "import torch; print('weft' in torch.distributed.Backend.backend_list)"
    for switch, imported, wanted in [
        ("1", "", "True"),
        ("0", "", "False"),
        ("0", "weft.torch", "True"),
    ]:
        text = f"import {imported}; {ask}" if imported else ask
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": switch},
        )
        assert done.stdout.strip() == wanted, (switch, imported)


def test_statistics_are_left_behind(tmp_path: Path) -> None:
    """By each process, in a file of its own."""
    named = str(tmp_path / "stats-%p.json")
    started = ranks("failing.py", 2, str(tmp_path / "store"), "gone", WEFT_STATS=named)
    outcome(started, 90)
    files = sorted(tmp_path.glob("stats-*.json"))
    assert len(files) == 2
    for file in files:
        (nic,) = json.loads(file.read_text())
        assert nic["paths"], nic


def test_a_wrong_variable_is_one_line(tmp_path: Path) -> None:
    """With the variable's name."""
    started = ranks("failing.py", 1, str(tmp_path / "store"), "gone", WEFT_GIVE_UP="soon")
    ((status, _, err),) = outcome(started, 90)
    assert status == 1
    assert "WEFT_GIVE_UP" in err.strip().splitlines()[-1]
