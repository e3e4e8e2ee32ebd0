"""What is in a topology file, and whether it can be a fabric: `weft topology info`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weft import _native
from weft.errors import ExperimentError
from weft.report.text_table import aligned
from weft.units import format_bytes, format_rate, format_time, significant

_KINDS = {
    "ns-3": "ASTRA-sim's ns-3 backend",
    "simai": "SimAI's ns-3 backend",
    "infragraph": "InfraGraph",
    "htsim": "htsim",
}
_MOST_KEYS = 2000
"""Characters of keys that are shown; a graph has one for each link."""
_MOST_RUNS = 8
"""Stretches of nodes that are shown; a shuffled file may have one for each."""


def info(path: Path) -> dict[str, Any]:
    """The description of a topology file."""
    found: dict[str, Any] = json.loads(_native.topology_info(str(path)))
    return found


def placement(found: dict[str, Any]) -> list[int]:
    """The GPU of each rank of the file's simulator, for a `placement_file`.

    Of ASTRA-sim's files, where hosts have a GPU each, it has the number of its host.
    """
    if found["problems"]:
        raise ExperimentError(f"{found['name']}: {found['problems'][0]}")
    if found["in_order"]:
        return list(range(found["hosts"]))
    names = (name.rpartition("-") for name in found["nodes"])
    return [int(number) for kind, _, number in names if kind == "host"]


def text(found: dict[str, Any]) -> str:
    """The description for a terminal."""
    lines = [f"{found['name']}: {_KINDS[found['kind']]}, {_summary(found)}", ""]
    lines += _fabric(found)
    if found["remarks"]:
        lines += ["", "remarks:", *(f"  {remark}" for remark in found["remarks"])]
    return "\n".join([*lines, "", *_verdict(found)])


def _summary(found: dict[str, Any]) -> str:
    servers = _servers(found)
    if not found["tiers"]:
        return f"a graph of {found['switches']} switches, {found['hosts']} hosts{servers}"
    pods = f" in {found['pods']} pods" if len(found["tiers"]) > 2 else ""
    planes = f" in each of {found['planes']} planes" if found["planes"] > 1 else ""
    return f"{len(found['tiers'])} tiers{pods}{planes}, {found['hosts']} hosts{servers}"


def _servers(found: dict[str, Any]) -> str:
    """What is said of the servers that the hosts are NICs of."""
    server = found["fabric"].get("server")
    if server is None:
        return ""
    rails = " on rails" if server["rails"] else ""
    return f" in {found['hosts'] // server['nics']} servers of {server['gpus']} GPUs{rails}"


def _fabric(found: dict[str, Any]) -> list[str]:
    if not found["tiers"]:
        return [f"{found['links']} links", *_nodes(found)]
    return [
        *_tiers(found["tiers"]),
        "",
        *_levels(found["levels"]),
        "",
        f"oversubscription  {_ratio(found['oversubscription'])} overall",
        *_latency(found["switch_latency_s"]),
        *_nodes(found),
    ]


def _tiers(tiers: Sequence[dict[str, Any]]) -> list[str]:
    heads = ["tier", "switches", "ports down", "ports up", "oversubscription"]
    both = ("queue_down", "queue_up")
    queues = [key for key in both if any(tier[key] is not False for tier in tiers)]
    grid = [[*heads, *(key.replace("_", " ") for key in queues)]]
    for tier in tiers:
        counts = [tier["switches"], tier["ports_down"], tier["ports_up"] or "-"]
        sizes = [_size(tier[key]) for key in queues]
        row = [tier["name"], *counts, _ratio(tier["oversubscription"]), *sizes]
        grid.append([str(cell) for cell in row])
    return aligned(grid)


def _levels(levels: Sequence[dict[str, Any]]) -> list[str]:
    grid = [["links", "count", "per pair", "rate", "delay"]]
    for level in levels:
        count, pair = str(level["links"]), str(level["per_pair"])
        rate, delay = _rate(level["rate_bps"]), _time(level["delay_s"])
        grid.append([" - ".join(level["ends"]), count, pair, rate, delay])
    return aligned(grid)


def _latency(seconds: float | bool) -> list[str]:
    return [] if seconds is False else [f"switch latency    {_time(seconds)}"]


def _nodes(found: dict[str, Any]) -> list[str]:
    """Which node of the file is called what: neighbours that keep their order in one line."""
    names = found["nodes"]
    if not names:
        return []
    # In files that number their nodes the numbers are the names.
    theirs = found["file_nodes"] or [str(node) for node in range(len(names))]
    one, more = ("", "") if found["kind"] == "infragraph" else ("node ", "nodes ")
    runs = list(_runs(names))
    lines = []
    for first, last in runs[:_MOST_RUNS]:
        if first == last:
            lines.append(f"{one}{theirs[first]} is {names[first]}")
        else:
            ends = f"{theirs[first]} to {theirs[last]}"
            lines.append(f"{more}{ends} are {names[first]} to {names[last]}")
    left = [f"... and {len(runs) - _MOST_RUNS} more (--json has all)"] * (len(runs) > _MOST_RUNS)
    return ["", *lines, *left]


def _runs(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch of names that count up."""
    first = 0
    for node in range(1, len(names) + 1):
        if node == len(names) or names[node] != _next(names[node - 1]):
            yield first, node - 1
            first = node


def _next(name: str) -> str:
    kind, _, number = name.rpartition("-")
    return f"{kind}-{int(number) + 1}"


def _ratio(ratio: float | bool) -> str:
    return "-" if ratio is False else f"{_trimmed(significant(ratio))} : 1"


def _rate(bits_per_second: float) -> str:
    return _trimmed(format_rate(bits_per_second))


def _time(seconds: float) -> str:
    return _trimmed(format_time(seconds))


def _size(count: float | bool) -> str:
    return "-" if count is False else _trimmed(format_bytes(count))


def _trimmed(shown: str) -> str:
    """Without zeros behind the point: what is in a file is exact."""
    number, blank, unit = shown.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + blank + unit


def _verdict(found: dict[str, Any]) -> list[str]:
    if found["problems"]:
        return ["It cannot be a fabric:", *(f"  {problem}" for problem in found["problems"])]
    server = found["fabric"].get("server", {})
    flat = found["fabric"] | {f"server.{key}": value for key, value in server.items()}
    flat.pop("server", None)
    keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in flat.items())
    return [
        f"It can be a fabric: file = {json.dumps(found['name'])} in [fabric]. "
        "As keys of an experiment:",
        f"  {keys if len(keys) <= _MOST_KEYS else keys[:_MOST_KEYS] + ' ... (--json has all)'}",
    ]
