"""The experiments that come with Weft, whole and at a first look."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft import inputs

FOLDER = Path(__file__).parent.parent / "experiments"
# What others extend is no experiment of its own.
FILES = sorted(path for path in FOLDER.rglob("*.toml") if path.parent.name != "common")


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_experiment_is_in_order(path: Path, quick: bool) -> None:
    """It expands, its printed results are of runs that exist, and a quick run is part of it."""
    whole = inputs.from_file(path)
    assert whole.runs
    assert not whole.ended
    looked = inputs.from_file(path, quick=quick)
    assert {run["key"] for run in looked.runs} <= {run["key"] for run in whole.runs}
