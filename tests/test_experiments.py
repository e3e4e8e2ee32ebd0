"""The experiments that come with Weft, whole and at a first look."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.study import inputs

FOLDER = Path(__file__).parent.parent / "experiments"
# What others extend is no experiment of its own.
FILES = sorted(path for path in FOLDER.rglob("*.toml") if path.parent.name != "common")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_experiment_is_in_order(path: Path) -> None:
    """It expands, its printed results are of runs that exist, and a quick run is part of it."""
    whole = inputs.from_file(path)
    quick = inputs.from_file(path, quick=True)
    keys = {run["key"] for run in quick.runs}
    assert keys
    assert keys <= {run["key"] for run in whole.runs}
