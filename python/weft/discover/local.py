"""`weft discover` on this machine: one survey a source, side by side, kept in a file as they go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from weft.discover import survey as surveys
from weft.discover import table as tables
from weft.discover.survey import Survey
from weft.discover.table import Table

_SIDE_BY_SIDE = 64
"""Addresses of this machine that look at the same time."""


def run(
    wanted: Sequence[Survey],
    path: Path | None,
    fresh: bool,
    tell: Callable[[str], None],
) -> Table:
    """Carry out surveys side by side; the table, which `path` keeps if there is one.

    What is in the file already is gone on with, or checked where it was finished; `fresh`: it is
    not looked at. Ctrl-C, and a survey that fails, keep what is known so far.
    """
    first = wanted[0]
    found = tables.new(first.protocol, first.port)
    if path is not None and not fresh:
        found = tables.of_traffic(path, first.protocol, first.port)
    before = found if found["sources"] else None
    known = [tables.only(before, survey.source) if before else None for survey in wanted]
    lock, stop = threading.Lock(), threading.Event()

    anew = fresh

    def put(source: dict[str, Any]) -> None:
        nonlocal anew
        with lock:
            tables.put(found, source)
            if path is not None:
                tables.keep(found, source, path, anew)
                anew = False

    def one(survey: Survey, known: Table | None) -> None:
        def keep(source: dict[str, Any]) -> bool:
            done = sum(target["done"] for target in source["targets"])
            tell(
                f"{survey.source}: {done} of {len(survey.targets)} targets, {source['probes']} "
                f"probes, {source['seconds']:.0f} s"
            )
            put(source)
            return not stop.is_set()

        put(surveys.run(survey, known, keep))

    with ThreadPoolExecutor(min(len(wanted), _SIDE_BY_SIDE)) as pool:
        futures = [pool.submit(one, *both) for both in zip(wanted, known, strict=True)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            # They look at it once a second.
            stop.set()
            for future in futures:
                future.cancel()
            raise
    return found


def changed(found: Table, sources: Sequence[str]) -> bool:
    """Whether routing has changed since the table was made, as far as some sources saw."""
    mine = (one for one in found["sources"] if one["address"] in sources)
    return any(target["changed"] for source in mine for target in source["targets"])
