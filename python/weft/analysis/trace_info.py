"""What is in a trace, and whether it can run: `weft trace info`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft import _native
from weft.report.text_table import aligned
from weft.study import inputs, sweep
from weft.study.forecast import format_hops
from weft.study.inputs import Overrides
from weft.units import format_bytes, format_duration, format_time

_MOST_ROWS = 40
"""Collectives that are shown; a trace may have hundreds of sizes."""


def info(path: Path, options: Overrides = (), ranks: int | None = None) -> dict[str, Any]:
    """The description of a trace, read with `options`, which are keys of `[workload]`.

    `ranks` settles a number that it leaves open.
    """
    found: dict[str, Any] = json.loads(_native.trace_info(str(path), list(options), ranks=ranks))
    return found


def work(path: Path, options: Overrides, ranks: int | None, fabric: str) -> dict[str, Any]:
    """How much there is to do on a fabric, and how long it takes here under ECMP on one core.

    `estimated_s` follows from the first half second of a run, which is then stopped; may be None.
    """
    workload: dict[str, Any] = {"trace": path.name}
    if ranks is not None:
        workload["ranks"] = ranks
    table = inputs.table_of("fabric", fabric)
    if "file" in table:
        table = {**table, "file": str(Path(table["file"]).absolute())}
    experiment = {"fabric": table, "workload": workload, "balance": {"scheme": "ecmp"}}
    told = [(f"workload.{key}", value) for key, value in options]
    spec = inputs.from_dict(experiment, str(path), told).runs[0]
    packets, hops = _native.work(json.dumps(spec["experiment"]), spec["seed"])
    return {
        "fabric": fabric,
        "packets": packets,
        "packet_hops": hops,
        "estimated_s": sweep.estimated_time(spec),
    }


def text(found: dict[str, Any]) -> str:
    """The description for a terminal."""
    ranks = found["ranks"] or "any number of"
    programmes = found["programmes"]
    shared = "one program per rank" if programmes == found["ranks"] else f"{programmes} program"
    shared += "s" if programmes != 1 and programmes != found["ranks"] else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kinds"].items())
    lines = [
        f"{found['name']}: {ranks} ranks, {shared}",
        f"nodes         {found['nodes']} ({kinds})",
        f"dependencies  {found['dependencies']}, dependency depth {found['depth']}",
        f"compute       {format_time(found['compute_s'])} on the rank that computes longest"
        + (f", {format_time(found['host_compute_s'])} on its CPU" * (found["host_compute_s"] > 0)),
    ]
    lines += [
        f"{way:<12}  {found[way]['count']}, {format_bytes(found[way]['bytes'])} in all"
        for way in ("sends", "receives")
        if found[way]["count"]
    ]
    if found["process_groups"]:
        lines.append(f"groups        {found['process_groups']}")
    if "work" in found:
        one = found["work"]
        took = one["estimated_s"]
        takes = (
            "" if took is None else f", about {format_duration(took)} on one core of this machine"
        )
        lines.append(f"work          {format_hops(one['packet_hops'])} on {one['fabric']}{takes}")
    lines += _collectives(found["collectives"])
    lines += _carried(found["carried"])
    for title, key in (("not supported", "unsupported"), ("remarks", "remarks")):
        if found[key]:
            lines += ["", f"{title}:"]
            lines += [f"  {one['what']} ({one['count']} times)" for one in found[key]]
    return "\n".join([*lines, "", *_verdict(found)])


def _collectives(rows: Sequence[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    heads = ["operation", "group", "ranks", "buffer", "nodes", "calls", "total"]
    grid = [heads]
    for row in rows[:_MOST_ROWS]:
        # Without the number of ranks a shard does not tell the whole.
        unknown = row["bytes"] is False
        shown = f"{format_bytes(row['size'])} shard" if unknown else format_bytes(row["bytes"])
        total = "?" if unknown else format_bytes(row["total"])
        cells = [row["operation"], row["group"], row["ranks"] or "?", shown, row["nodes"]]
        cells += [row["calls"] or "?", total]
        grid.append([str(cell) for cell in cells])
    return _table(grid, len(rows) - _MOST_ROWS)


def _carried(rows: Sequence[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    total = sum(row["bytes"] for row in rows)
    grid = [["sent by", "pieces", "bytes", "share"]]
    for row in rows[:_MOST_ROWS]:
        name = f"plane {row['plane']}" if "plane" in row else row["device"]
        share = f"{row['bytes'] / total:.1%}" if total else "-"
        grid.append([name, str(row["pieces"]), format_bytes(row["bytes"]), share])
    return _table(grid, len(rows) - _MOST_ROWS)


def _table(grid: Sequence[Sequence[str]], more: int) -> list[str]:
    return ["", *aligned(grid), *([f"... and {more} more (--json has all)"] if more > 0 else [])]


def _verdict(found: dict[str, Any]) -> list[str]:
    if not found["problems"]:
        return ["It can run."]
    count = len(found["problems"]) + found["more_problems"]
    waiting = found["stuck"]
    stuck = f"; {waiting} node{'s' * (waiting > 1)} would wait forever" if waiting else ""
    more = [f"  ... and {found['more_problems']} more"] if found["more_problems"] else []
    what = f"It cannot run, for {count} reason{'s' * (count > 1)}{stuck}:"
    mend = [
        "It can run without control dependencies, which Chakra's feeder does not follow either: "
        "--dependencies data."
    ]
    problems = [f"  {problem}" for problem in found["problems"]]
    return [what, *problems, *more, *(mend if found["runs_on_data"] else [])]
