"""The files of a plan in a directory, as `weft plan -o` leaves them."""

from __future__ import annotations

from pathlib import Path

from weft.errors import writing
from weft.plans import file, plot, show
from weft.plans.file import Plan

_PICTURE = "loads.png"


def write(plan: Plan, directory: Path) -> None:
    """Write all files of a plan into a directory."""
    file.write(plan, directory / file.NAME)
    with writing(directory):
        show.tables(plan, directory)
        plot.draw(plan, directory / _PICTURE)


def written(directory: Path) -> list[str]:
    """The files of a plan that are in a directory: no pieces if there are too many."""
    names = (file.NAME, "loads.parquet", "pieces.parquet", _PICTURE)
    return [name for name in names if (directory / name).exists()]
