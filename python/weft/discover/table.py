"""The table of discovered paths: JSON, one object; `docs/discover.md` describes every key.

The core reads and writes it (`crates/config`, `paths_file`); here tables of several hosts become
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft import _native
from weft.errors import ExperimentError, alone, replace_text, writing

Table = dict[str, Any]

FORMAT, VERSION = "weft-paths", 1


def new(protocol: str, port: int) -> Table:
    """A table without a source."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "protocol": protocol,
        "port": port,
        "sources": [],
    }


def read(path: Path) -> Table:
    """Read a table.

    Raises:
        ExperimentError: It is none, or of another version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExperimentError(
            f"{path}: {(error.strerror or 'cannot be read').lower()}; name a file of weft discover "
            "-o"
        ) from None
    except UnicodeDecodeError:
        raise ExperimentError(f"{path}: is not text; name a file of weft discover -o") from None
    _native.check_paths(text, str(path))
    found: Table = json.loads(text)
    for source in found["sources"]:
        source["targets"] = [_complete(target) for target in source["targets"]]
    return found


_MAY_BE_MISSING = dict.fromkeys(("hops", "max_over_mean", "p_value"))


def _complete(target: Mapping[str, Any]) -> dict[str, Any]:
    """A target with all that tables may leave out, and without paths that no port takes."""
    takes = [path for path in target["paths"] if path["ports"] or path.get("predicted")]
    return {**_MAY_BE_MISSING, **target, "paths": takes}


def of_traffic(path: Path, protocol: str, port: int) -> Table:
    """Read a table of such traffic, or begin one if there is none.

    Raises:
        ExperimentError: It is of other traffic, whose ports take other paths.
    """
    if not path.exists():
        return new(protocol, port)
    found = read(path)
    if (found["protocol"], found["port"]) != (protocol, port):
        raise ExperimentError(
            f"{path}: protocol: the table is of {found['protocol']} to port {found['port']}, not "
            f"{protocol} to port {port}; name another file, or remove this one"
        )
    return found


def check_traffic(path: Path, protocol: str, port: int) -> None:
    """Refuse a table of other traffic than a cluster's: its ports take other paths.

    Over TCP processes listen at several ports, of which the table has one.

    Raises:
        ExperimentError: It is of other traffic, or no table.
    """
    found = read(path)
    if found["protocol"] != protocol or (protocol != "tcp" and found["port"] != port):
        raise ExperimentError(
            f"{path}: protocol: the table is of {found['protocol']} to port {found['port']}, but "
            f"the traffic of the cluster is {protocol} to port {port}; run weft discover again, "
            f"with --protocol {protocol} --port {port}"
        )


def write(table: Table, path: Path) -> None:
    """Write a table, whole or not at all."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(table, separators=(",", ":")) + "\n")


def put(table: Table, source: Mapping[str, Any]) -> None:
    """Put what a host has found into a table: instead of what is there about the same targets."""
    mine = {target["address"] for target in source["targets"]}
    sources = table["sources"]
    for place, old in enumerate(sources):
        if old["address"] == source["address"]:
            kept = [target for target in old["targets"] if target["address"] not in mine]
            sources[place] = {**source, "targets": [*kept, *source["targets"]]}
            return
    sources.append(dict(source))


def keep(table: Table, source: Mapping[str, Any], path: Path, anew: bool) -> None:
    """Put what a host has found into a file, beside what other hosts have put there meanwhile.

    Of `table` only the traffic is asked for; `anew`: whatever the file has goes.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.parent):
        traffic = table["protocol"], table["port"]
        kept = new(*traffic) if anew else of_traffic(path, *traffic)
        put(kept, source)
        write(kept, path)


def only(table: Table, source: str) -> Table:
    """The part of a table that one host has found."""
    return {**table, "sources": [one for one in table["sources"] if one["address"] == source]}


def answered(table: Table, sources: Sequence[str]) -> bool:
    """Whether switches have answered every one of some sources."""
    mine = [one for one in table["sources"] if one["address"] in sources]
    return bool(mine) and all(any(to["hops"] for to in one["targets"]) for one in mine)
