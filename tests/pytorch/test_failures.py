"""What a rank hears when another one goes wrong; and how PyTorch finds the back end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from killed import OPERATIONS
from processes import alone, outcome, ranks

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


@cache
def deaths(folder: str) -> dict[str, list[dict[str, Any]]]:
    """What each rank that lives says of each operation in which one is killed."""
    ((status, out, err),) = outcome([alone("killed.py", "3", folder)], 200)
    assert status == 0, err
    found = map(json.loads, out.splitlines())
    return {one["operation"]: one["reports"] for one in found}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where ranks meet."""
    return str(tmp_path_factory.mktemp("killed"))


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_who_is_killed_is_missed_at_once(name: str, folder: str) -> None:
    """In every operation, though the two may never have talked; the limit is 20 s."""
    heard = [one for one in deaths(folder)[name] if one["error"] != "none"]
    # A rank that only gives the root something short has done its part; reduces come from rank 1.
    assert len(heard) == (1 if name == "gather" else 2), heard
    assert any("rank 1" in one["error"] for one in heard), heard
    # It takes 0.3 s where a core is free.
    assert all(one["after_s"] < 3 for one in heard), heard


def test_what_ranks_do_differently_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    """Sizes that differ, on every rank."""
    detail = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    started = ranks("failing.py", 2, str(tmp_path / "store"), "mismatch", **detail)
    for status, out, err in outcome(started, 90):
        assert status == 0, err
        assert "Detected mismatch between collectives on ranks" in json.loads(out)["error"]


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


def test_who_does_not_come_to_a_new_group_is_named(tmp_path: Path) -> None:
    """Within the group's own limit, not the store's."""
    started = ranks("failing.py", 3, str(tmp_path / "store"), "absent")
    error = json.loads(outcome(started, 60)[0][1])["error"]
    who = "nothing from rank 1 and rank 2 within the timeout of 1s"
    assert error.startswith(f"weft: new group: timed out: {who}"), error


def test_a_child_that_was_forked_is_told(tmp_path: Path) -> None:
    """In one line, of what its parent has begun and of what it begins; and it ends."""
    started = ranks("failing.py", 2, str(tmp_path / "store"), "forked")
    (status, out, err), _ = outcome(started, 60)
    assert status == 0, err
    for error in json.loads(out):
        assert error.startswith("weft: this process was forked from the one that opened"), error


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WEFT_GIVE_UP", "soon"),
        ("WEFT_STATS", "/no/such/folder/stats.json"),
        ("LOCAL_RANK", "x"),
        ("LOCAL_RANK", "-1"),
        # Without torchrun.
        ("SLURM_LOCALID", "x"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "x"),
    ],
)
def test_a_wrong_variable_is_one_line(variable: str, value: str, tmp_path: Path) -> None:
    """With the variable's name, at once."""
    words = ("0", "1", str(tmp_path / "store"), "gone")
    ((status, _, err),) = outcome([alone("failing.py", *words, **{variable: value})], 90)
    assert status == 1
    assert f"Error: {variable}: " in err.strip().splitlines()[-1]


def test_statistics_that_can_no_longer_be_written_are_one_line(tmp_path: Path) -> None:
    """Of a folder that is removed meanwhile."""
    folder = tmp_path / "folder"
    folder.mkdir()
    text = f"import weft.torch.group as g, os; g.statistics(); os.rename({str(folder)!r}, 'x')"
    environment = os.environ | {"WEFT_IFNAME": "lo", "WEFT_STATS": str(folder / "stats.json")}
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"weft: WEFT_STATS: {folder / 'stats.json'}: "), line


@pytest.mark.parametrize(("level", "said"), [("warn", 0), ("info", 1)])
def test_what_was_chosen_is_told_where_it_is_asked_for(level: str, said: int) -> None:
    """The NIC and the scheme, in one line."""
    done = subprocess.run(
        [sys.executable, "-c", "import weft.torch.group as group; group.statistics()"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"WEFT_IFNAME": "lo", "WEFT_LOG": level},
    )
    assert done.stderr.splitlines() == ["weft: NIC lo (127.0.0.1), scheme ecmp"][:said]
