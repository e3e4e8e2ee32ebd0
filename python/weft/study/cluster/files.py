"""Files that the experiments of a sweep name, for workers that do not share a disk with it.

Workload files, traces with their second files, and placements: all that a resolved experiment still
has to read. On a worker they keep their names, in a folder for each folder here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from weft._types import RunSpec

_OF_RANKS = ("trace", "execution_trace")
_KEYS = ("file", *_OF_RANKS, "process_groups", "placement_file")
"""Keys of `[workload]`, and of its jobs, that say where a file lies; of a trace each rank may have
one."""


def needed(runs: Iterable[RunSpec]) -> dict[str, Path]:
    """The files that runs read: where each goes on a worker, and where it is."""
    named = {
        (name, key in _OF_RANKS) for spec in runs for _, key, name in _names(spec["experiment"])
    }
    return {
        _place(path): path
        for name, of_ranks in sorted(named)
        for path in (_files(Path(name)) if of_ranks else [Path(name)])
    }


def folders(needed: Mapping[str, Path]) -> dict[str, str]:
    """What the folders on a worker are called here."""
    return {place.partition("/")[0]: str(path.parent) for place, path in needed.items()}


def moved(experiment: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The experiment with its files in a worker's folder."""
    for table, key, name in _names(experiment):
        table[key] = str(folder / _place(Path(name)))
    return experiment


def as_named(text: str, folder: Path, folders: Mapping[str, str]) -> str:
    """A message about files in a worker's folder, with the names that they have here."""
    for own, named in folders.items():
        text = text.replace(f"{folder / own}/", "" if named == "." else f"{named}/")
    return text


def _names(experiment: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Where an experiment names files: the table, the key, and what it says."""
    workload = experiment.get("workload", {})
    for table in (workload, *workload.get("jobs", {}).values()):
        for key in _KEYS:
            if isinstance(table.get(key), str) and table[key]:
                yield table, key, table[key]


def _files(path: Path) -> list[Path]:
    """The files that a trace may have: the content of the named one tells the core which it has.

    Those whose names differ in numbers only, and of `gpt.0.et` and of `gpt` those of all ranks.
    """
    stem = re.sub(r"\.[0-9]+\..*$", "", path.name)
    of_ranks = re.escape(stem) + r"\.[0-9]+\..+"
    if path.is_file() and path.name == stem:
        of_ranks = r"(?!)"
    alike = "[0-9]+".join(map(re.escape, re.split("[0-9]+", path.name)))
    names = re.compile(f"{alike}|{of_ranks}")
    beside = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
    return [one for one in beside if names.fullmatch(one.name) and one.is_file()] or [path]


def _place(path: Path) -> str:
    folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
    return f"{folder}/{path.name}"
