"""Experiments from what users name: files, dicts, workload files, short forms.

The native core checks them; this module reads the text, and makes an experiment of a workload file
or of a command line.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from weft import _native
from weft._types import Expanded, RunSpec
from weft.catalogue import DEFAULT_SCHEMES
from weft.errors import ExperimentError
from weft.study import default_fabric, settings
from weft.study.settings import Settings

Overrides = Sequence[tuple[str, str]]
Kind = Literal["fabric", "workload"]
_CLUSTER = re.compile(r": cluster(\.\w+)? \(line \d+\): unknown key")


@dataclass(frozen=True)
class Experiment:
    """A checked experiment and its runs, in the order in which results are listed."""

    name: str
    """Short and distinct within a study: the file's stem. Figure files are named after it."""
    title: str
    notes: str
    text: str
    """What the user wrote, for the report."""
    runs: list[RunSpec]
    warnings: list[str]
    source: str = "experiment"
    """Its file, for messages."""
    shown: dict[str, Any] = field(default_factory=dict)
    """`report`, `best` and `printed` as written."""
    ended: list[str] = field(default_factory=list)
    """Swept keys that an option gave a single value."""
    changed: bool = False
    """Whether options changed what the file says."""

    @cached_property
    def settings(self) -> Settings:
        """How the results are to be shown."""
        return settings.read(self.shown, self.runs, self.ended, self.source, self.changed)


def from_file(
    path: Path, overrides: Overrides = (), seeds: int | None = None, quick: bool = False
) -> Experiment:
    """The experiment in a file of TOML or JSON; if `quick`, as short as its `[quick]` makes it."""
    key = workload_key(path)
    if key and path.is_file():
        raise ExperimentError(
            f"{path}: is a workload without a fabric; write an experiment with it as workload.{key}"
        )
    form: Literal["toml", "json"] = "json" if path.suffix == ".json" else "toml"
    try:
        return _expand(read_text(path), form, str(path), overrides, seeds, quick)
    except ExperimentError as error:
        if _CLUSTER.match(str(error).removeprefix(str(path))):
            raise ExperimentError(
                f"{path}: is a cluster file, not an experiment; weft plan and weft testbed read it"
            ) from None
        if path.suffix == ".toml" or ": not TOML: " not in str(error):
            raise
        others = "or name an experiment (.toml) or a workload (.cm, .csv, .et, .goal, ...)"
        raise ExperimentError(f"{error}, {others}") from None


def experiment_files(path: Path) -> list[Path]:
    """The experiment files that a path means: itself, or those of a directory, by number."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.toml"), key=lambda one: _natural_order(one.name))
    if not found:
        raise ExperimentError(f"{path}: a directory without experiments (.toml); name another one")
    return found


def from_dict(
    experiment: Mapping[str, Any],
    source: str = "experiment",
    overrides: Overrides = (),
    seeds: int | None = None,
    quick: bool = False,
) -> Experiment:
    """The experiment in a dict of the same shape as a TOML file."""
    return _expand(dict_text(experiment, source), "json", source, overrides, seeds, quick)


def dict_text(given: Mapping[str, Any], source: str) -> str:
    """The same as JSON with line breaks, for the core; `source` names it in errors.

    Raises:
        ExperimentError: JSON has nothing for some value.
    """
    text = as_json(given, source, indent=2)
    found = _no_number(json.loads(text))
    if found is not None:
        raise ExperimentError(f"{source}: {found}")
    return text


def as_json(value: object, source: str, indent: int | None = None) -> str:
    """What a Python caller gave, for the core; `source` names it in errors.

    Raises:
        ExperimentError: JSON has nothing for it.
    """
    try:
        return json.dumps(value, indent=indent, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        # Keys that are tuples, a dict that holds itself or is very deep.
        raise ExperimentError(
            f"{source}: {str(error).rstrip('.')}; use numbers, strings, lists, dicts"
        ) from None


def from_workload(
    path: Path,
    fabric: str | None = None,
    schemes: Sequence[str] | None = None,
    overrides: Overrides = (),
    seeds: int | None = None,
) -> tuple[Experiment, str]:
    """An experiment around a connection matrix, flows or a trace, and what was chosen for it."""
    key = workload_key(path)
    if key is None or (key == "file" and not path.is_file()):
        raise ExperimentError(f"{path}: no such file; check the path")
    if fabric:
        table = table_of("fabric", fabric)
    elif key == "trace":
        table = default_fabric.for_trace(path, _of_workload(overrides))
    else:
        table = default_fabric.for_messages(path)
    experiment = {
        "title": f"{path.name} on a {_describe('fabric', table)}",
        "fabric": table,
        "workload": {key: path.name},
        "sweep": {"balance.scheme": list(schemes or DEFAULT_SCHEMES)},
    }
    # The path as source: the core reads files relative to it and names it in errors. A fabric's
    # file is named relative to where the command is typed.
    if "file" in table:
        experiment["fabric"] = {**table, "file": str(Path(table["file"]).absolute())}
    chosen = "" if fabric else f"{path}: no --fabric given, so on a {_describe('fabric', table)}"
    return from_dict(experiment, str(path), overrides, seeds), chosen


def _of_workload(overrides: Overrides) -> list[tuple[str, str]]:
    """The keys of `[workload]` that are given one value, which a trace is read with."""
    section = "workload."
    return [
        (key.removeprefix(section), value)
        for key, value in overrides
        if key.startswith(section) and not value.startswith("[")
    ]


def workload_key(path: Path) -> str | None:
    """The key of `[workload]` that a file goes under, None for what is no workload."""
    return _native.workload_key(str(path))


def table_of(kind: Kind, text: str) -> dict[str, Any]:
    """The experiment's table for a shorthand such as `leaf-spine:leaves=4,...`.

    A topology file needs no dot in its name where there is no topology of that name.
    """
    try:
        table: dict[str, Any] = json.loads(_native.shorthand(kind, text))
    except ExperimentError:
        name, _, _ = text.strip().partition(":")
        if kind != "fabric" or not Path(name).is_file():
            raise
        table = json.loads(_native.shorthand(kind, f"./{text.strip()}")) | {"file": name}
    return table


Described = str | os.PathLike[str] | Mapping[str, Any]
"""A fabric or a workload: in short form, as a file, or as a table."""


def comparison(
    fabric: Described, workload: Described, schemes: Sequence[str], changes: Overrides = ()
) -> dict[str, Any]:
    """The experiment that compares schemes; its title says what is left of both under `changes`."""
    told: dict[Kind, str | Mapping[str, Any]] = {
        "fabric": fabric if isinstance(fabric, Mapping) else os.fspath(fabric),
        "workload": workload if isinstance(workload, Mapping) else os.fspath(workload),
    }
    tables: dict[str, dict[str, Any]] = {
        kind: table_of(kind, one) if isinstance(one, str) else dict(one)
        for kind, one in told.items()
    }
    swept = {key for key, _ in changes}
    on, sent = (
        _heading(kind, one, dict(changes))
        if isinstance(one, str)
        else _describe(kind, {key: one[key] for key in one if f"sweep.{kind}.{key}" not in swept})
        for kind, one in told.items()
    )
    return {"title": f"{sent} on {on}", **tables, "sweep": {"balance.scheme": list(schemes)}}


def _heading(kind: Kind, text: str, changed: Mapping[str, str]) -> str:
    """A short form with the values that keys are changed to, and without those that are swept."""
    if not any(key.removeprefix("sweep.").startswith(f"{kind}.") for key in changed):
        return text
    name, _, listed = text.partition(":")
    parts: list[str] = []
    for piece in filter(None, listed.split(",")):
        # A list has commas of its own.
        if "=" in piece or not parts:
            parts.append(piece)
        else:
            parts[-1] += f",{piece}"
    shown = []
    for part in parts:
        # Short forms have short words for some keys.
        *_, key = table_of(kind, f"{name}:{part}")
        value = changed.get(f"{kind}.{key}")
        if f"sweep.{kind}.{key}" not in changed and not (value or "").startswith("["):
            shown.append(part if value is None else f"{part.partition('=')[0]}={value}")
    return f"{name}:{','.join(shown)}" if shown else name


def distinct_names(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments, with a number added to names that occur more than once."""
    seen: dict[str, int] = {}
    renamed = []
    for experiment in experiments:
        seen[experiment.name] = seen.get(experiment.name, 0) + 1
        number = seen[experiment.name]
        name = experiment.name if number == 1 else f"{experiment.name}-{number}"
        renamed.append(replace(experiment, name=name))
    return renamed


def _expand(
    text: str,
    form: Literal["toml", "json"],
    source: str,
    overrides: Overrides,
    seeds: int | None,
    quick: bool = False,
) -> Experiment:
    listed = _native.expand(text, form, source, list(overrides), seeds, quick)
    expanded: Expanded = json.loads(listed)
    _check_distinct(expanded["runs"], source)
    name = Path(source).stem.replace(" ", "-") or "experiment"
    experiment = Experiment(
        name=name,
        title=expanded["title"] or name,
        notes=expanded["notes"],
        text=text,
        runs=expanded["runs"],
        warnings=expanded["warnings"],
        source=source,
        shown=expanded["shown"],
        ended=expanded["ended"],
        changed=bool(overrides) or quick,
    )
    # Read here, so that a mistake is reported before anything runs.
    _ = experiment.settings
    return experiment


def _check_distinct(runs: Sequence[RunSpec], source: str) -> None:
    """A value that a sweep lists twice would count as one more seed of it."""
    seen = set()
    for spec in runs:
        who = (spec["key"], json.dumps(spec["swept"]))
        if who in seen:
            raise ExperimentError(
                f"{source}: sweep: {spec['label']} seed {spec['seed']} is listed twice; "
                "list every value and every seed once"
            )
        seen.add(who)


def read_text(path: Path, what: str = "an experiment file (.toml)") -> str:
    """The text of a file that the user named; `what` it should be, for error messages.

    Without the byte order mark that some editors write.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ExperimentError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ExperimentError(f"{path}: is a directory; name {what}") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"{path}: is not text; name {what}") from None
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise ExperimentError(f"{path}: {why.lower()}; check the file") from None


def _no_number(value: object, key: str = "") -> str | None:
    """What is wrong with the first number that the core has not, after its dotted key."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{key}: not a finite number; give it a value"
    if isinstance(value, int):
        is_small = -(1 << 63) <= value < 1 << 63
        return None if is_small else f"{key}: {value} has more than 64 bits; use a smaller value"
    if isinstance(value, dict):
        parts = [(f"{key}.{name}" if key else name, part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{key}[{number}]", part) for number, part in enumerate(value)]
    else:
        return None
    found = (_no_number(part, name) for name, part in parts)
    return next((bad for bad in found if bad is not None), None)


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Sorts fig2 before fig10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


_NAMES: Mapping[Kind, Sequence[str]] = {
    "fabric": ("topology",),
    "workload": ("pattern", "collective", "model", "trace", "file"),
}
"""Keys whose value names the whole table."""


def _describe(kind: Kind, table: Mapping[str, Any]) -> str:
    """A table in words, without tables and lists in it."""
    name = next((key for key in _NAMES[kind] if key in table), "")
    rest = [
        f"{key.replace('_', ' ')} " + as_json(value, kind).strip('"')
        for key, value in table.items()
        if key != name and not isinstance(value, Mapping | list)
    ]
    return f"{table.get(name, kind)} ({', '.join(rest)})" if rest else str(table.get(name, kind))


def _plain(value: object) -> Any:
    """JSON for what a Python experiment may hold besides JSON's own types."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays.
        return value.tolist()
    if isinstance(value, tuple | set | range):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__}")
