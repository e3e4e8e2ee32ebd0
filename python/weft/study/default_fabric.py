"""A fabric for a workload file that names none: non-blocking, and large enough."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from weft import _native
from weft.errors import ExperimentError

# Switches of a fabric that is chosen automatically have at most so many ports.
_MOST_PORTS = 64
LARGEST = _MOST_PORTS**3 // 4
"""Hosts of the largest fabric that is chosen automatically: the fat-tree of such switches."""
_DEFAULT_LINK = {"link": "400Gbps", "delay": "500ns"}


def fabric(hosts: int) -> dict[str, Any]:
    """A non-blocking fabric with room for so many hosts, of switches with equal ports.

    Half of a leaf's ports go down and half up. A leaf-spine while switches of 64 ports
    suffice (2048 hosts), a fat-tree beyond, up to `LARGEST` hosts.
    """
    half = max(2, math.ceil(math.sqrt(hosts / 2)))
    if 2 * half <= _MOST_PORTS:
        # Rather a few more ports than hosts that the workload does not name.
        most = _MOST_PORTS // 2
        sizes = range(half, min(2 * half, most + 1))
        even = (size for size in sizes if hosts % size == 0 and hosts >= 2 * size)
        half = next(even, half)
        leaves = max(2, math.ceil(hosts / half))
        shape = {"leaves": leaves, "spines": half, "hosts_per_leaf": half}
        return {"topology": "leaf-spine", **shape, **_DEFAULT_LINK}
    k = next(k for k in range(4, _MOST_PORTS + 2, 2) if k**3 // 4 >= hosts)
    return {"topology": "fat-tree", "k": k, **_DEFAULT_LINK}


def for_messages(path: Path) -> dict[str, Any]:
    """The fabric for a workload file, unless it names more hosts than any chosen one has."""
    hosts, culprit = _hosts_named(path)
    if hosts > LARGEST:
        mend = "Nodes" if culprit.startswith("Nodes") else "the host ids"
        raise ExperimentError(
            f"{path}: {culprit} needs a fabric of {hosts} hosts, more than the largest chosen "
            f"automatically ({LARGEST}); give --fabric, or correct {mend}"
        )
    return fabric(hosts)


def for_trace(path: Path, options: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """The fabric for a trace: a host for each rank, of which it has to tell the number.

    `options` are keys of `[workload]`, with files relative to the trace.
    """
    folder = None if path.parent == Path() else str(path.parent)
    try:
        ranks = json.loads(_native.trace_info(path.name, list(options), folder))["ranks"]
    except ExperimentError as error:
        if str(error).partition(": ")[0] not in dict(options):
            raise
        raise ExperimentError(f"{path}: workload.{error}") from None
    if not ranks:
        raise ExperimentError(
            f"{path}: does not say the number of ranks; give --fabric (each of its hosts is then a "
            "rank), or --set workload.ranks=N"
        )
    if ranks > LARGEST:
        raise ExperimentError(
            f"{path}: needs a fabric of {ranks} hosts, more than the largest chosen automatically "
            f"({LARGEST}); give --fabric"
        )
    return fabric(ranks)


def _hosts_named(path: Path) -> tuple[int, str]:
    """How many hosts a workload file needs, and what in it says so.

    Only for choosing a fabric: a malformed file counts as two hosts here, and the core then
    says what is wrong with it.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        if path.suffix.lower() == ".cm":
            header = (words for words in map(str.split, lines) if words[:1] == ["Nodes"])
            hosts = _whole_number("".join(next(header, [])[1:]))
            return max(2, hosts or 0), f"Nodes {hosts}"
        try:
            largest = max((_whole_number(end) or 0 for end in _ends(lines)), default=0)
        except csv.Error:
            largest = 0
        return max(2, largest + 1), f"host {largest}"


def _ends(lines: Iterable[str]) -> Iterator[str]:
    """The senders and receivers in a table of flows, of which the core trims all values."""
    rows = csv.reader((line for line in lines if line[:1] != "#"), skipinitialspace=True)
    names = next(filter(any, ([name.strip() for name in row] for row in rows)), [])
    places = [place for place, name in enumerate(names) if name in ("src", "dst")]
    return (row[place] for row in rows for place in places if place < len(row))


def _whole_number(text: str) -> int | None:
    """A number of a workload file; None for what is none, or is beyond any count."""
    return int(text) if re.fullmatch(r"\s*[0-9]{1,18}\s*", text) else None
