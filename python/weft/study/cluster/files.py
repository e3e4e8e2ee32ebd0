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

_KEYS = ("file", "trace", "process_groups", "placement_file")
"""Keys of `[workload]`, and of its jobs, that say where a file lies."""


def needed(runs: Iterable[RunSpec]) -> dict[str, Path]:
    """The files that runs read: where each goes on a worker, and where it is."""
    named = {name for spec in runs for _, _, name in _names(spec["experiment"])}
    return {_place(path): path for name in sorted(named) for path in _files(Path(name))}


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
    """The files that a name stands for: of `gpt.0.et` and of `gpt` those of all ranks."""
    stem = re.sub(r"\.[0-9]+\..*$", "", path.name)
    beside = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
    ranks = re.compile(re.escape(stem) + r"\.[0-9]+\..+")
    of_ranks = [one for one in beside if ranks.fullmatch(one.name)]
    return [path] if path.is_file() and path.name == stem else of_ranks or [path]


def _place(path: Path) -> str:
    folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
    return f"{folder}/{path.name}"
