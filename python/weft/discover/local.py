"""`weft discover` on this machine: one survey a source, kept in a file as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft.discover import survey as surveys
from weft.discover import table as tables
from weft.discover.survey import Survey
from weft.discover.table import Table


def run(
    wanted: Sequence[Survey],
    path: Path | None,
    fresh: bool,
    tell: Callable[[str], None],
) -> Table:
    """Carry out surveys one after the other; the table, which `path` keeps if there is one.

    What is in the file already is gone on with, or checked where it was finished; `fresh`: it is
    not looked at. Ctrl-C keeps what is known so far.
    """
    first = wanted[0]
    found = tables.new(first.protocol, first.port)
    if path is not None and not fresh:
        found = tables.of_traffic(path, first.protocol, first.port)
    for survey in wanted:
        _one(survey, found, path, tell)
    return found


def _one(survey: Survey, found: Table, path: Path | None, tell: Callable[[str], None]) -> None:
    def keep(source: dict[str, Any]) -> bool:
        done = sum(target["done"] for target in source["targets"])
        tell(
            f"{survey.source}: {done} of {len(survey.targets)} targets, {source['probes']} probes, "
            f"{source['seconds']:.0f} s"
        )
        tables.put(found, source)
        if path is not None:
            tables.write(found, path)
        return True

    known = tables.only(found, survey.source) if found["sources"] else None
    tables.put(found, surveys.run(survey, known, keep))
    if path is not None:
        tables.write(found, path)


def changed(found: Table, sources: Sequence[str]) -> bool:
    """Whether routing has changed since the table was made, as far as some sources saw."""
    mine = (one for one in found["sources"] if one["address"] in sources)
    return any(target["changed"] for source in mine for target in source["targets"])
