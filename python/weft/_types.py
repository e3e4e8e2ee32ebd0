"""The shapes of what the native core takes and gives: types only, nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

Row = dict[str, Any]
"""One run's scalar results (`cct_s`, `bound_s`, ...), by column name."""


class RunSpec(TypedDict):
    """One run of an experiment: everything the simulator needs, every default written out."""

    experiment: dict[str, Any]
    seed: int
    key: str
    """Hash of the resolved experiment, the seed and the code version."""
    swept: dict[str, Any]
    """The values of the swept keys in this run."""
    label: str


class Expanded(TypedDict):
    """An experiment file, checked and unrolled into its runs."""

    title: str
    notes: str
    x: str | None
    """The swept key that goes on the x axis, where the experiment names one."""
    ended: list[str]
    """Swept keys that an option gave a single value."""
    shown: dict[str, Any]
    """`report`, `best` and `printed` as written."""
    runs: list[RunSpec]
    warnings: list[str]


class Timing(TypedDict):
    """What a run cost. Differs between machines, so it is kept apart from the results."""

    wall_s: float
    build_s: float
    events: int
    threads: int
    """Those that the simulation was given."""


class Series(TypedDict):
    """Sampled queues: one array of bytes for each name, all at the same times."""

    time_s: Any
    names: list[str]
    kinds: list[str]
    bytes: list[Any]


class Outcome(TypedDict):
    """What one run leaves: scalars, and one array a column for the tables."""

    row: Row
    timing: Timing
    flows: Mapping[str, Any]
    links: Mapping[str, Any]
    series: Series
    warnings: list[str]


class CatalogueOption(TypedDict):
    """A key that an entry of the catalogue understands."""

    key: str
    default: str
    meaning: str


class CatalogueEntry(TypedDict):
    """A scheme, transport, workload or topology, as `weft list` shows it."""

    name: str
    summary: str
    source: str
    options: list[CatalogueOption]
    axis: NotRequired[str]
