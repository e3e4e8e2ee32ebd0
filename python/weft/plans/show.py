"""What `weft plan` prints, and the tables that it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from weft.plans import hosts
from weft.plans.file import Plan
from weft.plans.verify import Checked
from weft.report.text_table import aligned
from weft.units import format_bytes, format_count, format_rate, format_time, significant

_EQUAL = 1e-9
_MOST_STEPS = 20
_MOST_LINKS = 6
_RIGHT = (1, 2, 3, 4, 5, 7, 8, 9)
"""Columns with numbers."""


def over(step: dict[str, Any]) -> float:
    """How many times the bound the busiest link takes; one where nothing is sent."""
    return step["congestion"]["seconds"] / step["bound_s"] if step["bound_s"] else 1.0


def verdict(step: dict[str, Any]) -> str:
    """Whether a step could be better, in a word or a percentage."""
    gap = over(step) - 1
    return "optimal" if gap <= _EQUAL else f"+{significant(100 * gap, 3)} %"


def text(plan: Plan) -> str:
    """A plan for a terminal."""
    lines = [f"{plan['title']}: {plan['scheme']}, seed {plan['seed']}", ""]
    if not plan["steps"]:
        return "\n".join([*lines, "nothing is sent over the fabric", _least(plan)])
    header = ("step", "times", "messages", "split", "subflows", "queue pairs", "busiest link")
    rows: list[tuple[str, ...]] = [(*header, "time", "lower bound", "")]
    for number, step in enumerate(plan["steps"][:_MOST_STEPS], start=1):
        busiest = step["congestion"]
        rows.append(
            (
                f"{number} {step['name']}",
                format_count(step["times"]),
                format_count(step["messages"]),
                format_count(step["split"]),
                format_count(step["piece_count"]),
                format_count(step["queue_pairs"]),
                busiest["link"] or "none",
                format_time(busiest["seconds"]),
                format_time(step["bound_s"]),
                verdict(step),
            )
        )
    lines += aligned(rows, _RIGHT)
    if len(plan["steps"]) > _MOST_STEPS:
        lines.append(f"... {len(plan['steps']) - _MOST_STEPS} more steps")
    lines += ["", _sum(plan), *_why(plan), *_dead(plan), "", _least(plan)]
    return "\n".join(lines)


def compared(plans: Sequence[Plan]) -> str:
    """Plans of one job under several schemes, a line each, the best first."""
    header = ("scheme", "busiest links", "lower bound", "", "split", "subflows", "queue pairs")
    rows: list[tuple[str, ...]] = [header]
    for plan in sorted(plans, key=lambda plan: plan["seconds"]):
        steps = plan["steps"]
        whole = {"congestion": {"seconds": plan["seconds"]}, "bound_s": plan["steps_bound_s"]}
        rows.append(
            (
                plan["scheme"],
                format_time(plan["seconds"]),
                format_time(plan["steps_bound_s"]),
                verdict(whole),
                format_count(sum(step["times"] * step["split"] for step in steps)),
                format_count(sum(step["times"] * step["piece_count"] for step in steps)),
                format_count(max((step["queue_pairs"] for step in steps), default=0)),
            )
        )
    first = plans[0]
    said = "busiest links: the time of the busiest link of each step, all steps one after the other"
    lines = [f"{first['title']}: {len(plans)} schemes, seed {first['seed']}", ""]
    return "\n".join(
        [*lines, *aligned(rows, _COMPARED_RIGHT), "", said, *_dead(first), _least(first)]
    )


_COMPARED_RIGHT = range(1, 7)


def _sum(plan: Plan) -> str:
    """One step after the other: no bound, since steps of a job may overlap."""
    seconds, bound = plan["seconds"], plan["steps_bound_s"]
    whole = {"congestion": {"seconds": seconds}, "bound_s": bound}
    return (
        f"sum of steps: {format_time(seconds)} on the busiest links, lower bound "
        f"{format_time(bound)}: {verdict(whole)}"
    )


def _least(plan: Plan) -> str:
    """What `weft compare` calls the lower bound."""
    return (
        f"whole job: lower bound {format_time(plan['bound_s'])} for any plan (with headers and "
        "delays; steps may overlap)"
    )


def _why(plan: Plan) -> list[str]:
    """The links that force the bound of the longest step."""
    steps = [step for step in plan["steps"] if step["certificate"]]
    if not steps:
        return []
    step = max(steps, key=lambda one: one["times"] * one["bound_s"])
    certificate = step["certificate"]
    # Those that are down say nothing.
    rates = zip(certificate["link"], certificate["capacity_bps"], strict=True)
    links = [link for link, rate in rates if rate]
    capacity = sum(
        weight * rate
        for weight, rate in zip(certificate["weight"], certificate["capacity_bps"], strict=True)
    )
    named = ", ".join(links[:_MOST_LINKS])
    more = f" and {len(links) - _MOST_LINKS} more" if len(links) > _MOST_LINKS else ""
    cut = all(weight == 1 for weight in certificate["weight"])
    how = "" if cut else " (weighted)"
    needed = step["bound_s"] * capacity / 8
    return [
        f"bottleneck: {format_bytes(needed)}{how} must cross {named}{more}, "
        f"which {'carry' if len(links) > 1 else 'carries'} {format_rate(capacity)}{how}"
    ]


def _dead(plan: Plan) -> list[str]:
    links = plan["links"]
    dead = [
        name
        for name, rate, left in zip(
            links["link"], links["rate_bps"], links["capacity_bps"], strict=True
        )
        if left == 0 and rate
    ]
    if not dead:
        return []
    more = f" and {len(dead) - _MOST_LINKS} more" if len(dead) > _MOST_LINKS else ""
    return [f"not used, because they are down: {', '.join(dead[:_MOST_LINKS])}{more}"]


def optima(plan: Plan) -> str:
    """The optimum of every step, compared with the plan.

    Where the core has solved the linear program, its routing reaches the lower bound: that is the
    optimum. Of larger fabrics only both ends are known.
    """
    lines = []
    for number, step in enumerate(plan["steps"], start=1):
        least, best = step["bound_s"], step["reached_s"]
        takes = step["congestion"]["seconds"]
        gap = 100 * (takes / best - 1) if best else 0.0
        found = f"optimum of step {number} by linear program: {format_time(best)}"
        if best > least * (1 + _SOLVED):
            found = (
                f"optimum of step {number}: {format_time(least)} to {format_time(best)}, too many "
                "links for the linear program"
            )
        lines.append(
            f"{found}; the plan needs {format_time(takes)} (+{significant(max(gap, 0.0), 3)} %)"
        )
    return "\n".join(lines)


_SOLVED = 1e-6
"""Relative distance of both ends that the solver leaves at most."""


def host(plan: Plan, name: str) -> str:
    """The queue pairs of a host, one per line, and its environment variables."""
    table = hosts.of_host(plan, name)
    pairs = [json.dumps(pair) for pair in table["queue_pairs"]]
    settings = hosts.assignments(table["environment"])
    return "\n".join([*(pairs or [f"{name} sends nothing"]), "", *settings])


def checked(found: list[Checked]) -> str:
    """What `weft plan --verify` prints."""
    rows: list[tuple[str, ...]] = [("step", "subflows", "time", "proved bound", "")]
    for number, one in enumerate(found, start=1):
        rows.append(
            (
                f"{number} {one.name}",
                format_count(one.pieces),
                format_time(one.seconds),
                format_time(one.bound_s),
                "optimal" if one.proved else f"+{100 * (one.seconds / one.bound_s - 1):.3g} %",
            )
        )
    said = "loads, busiest links, bounds of steps and of the job agree with the file"
    return "\n".join([*aligned(rows, (1, 2, 3, 4)), "", said])


def tables(plan: Plan, folder: Path) -> None:
    """Write `pieces.parquet` and `loads.parquet`."""
    pieces = [
        pl.DataFrame(step["pieces"], schema_overrides=_INTEGERS).with_columns(
            pl.lit(number).cast(pl.UInt32).alias("step")
        )
        for number, step in enumerate(plan["steps"])
        if step["pieces"] is not None
    ]
    # What an earlier plan has left there is not of this one.
    (folder / "pieces.parquet").unlink(missing_ok=True)
    if pieces:
        pl.concat(pieces).write_parquet(folder / "pieces.parquet")
    loads = [
        pl.DataFrame(
            {
                "step": number,
                "link": plan["links"]["link"],
                "bytes": step["loads"],
                "capacity_bps": plan["links"]["capacity_bps"],
            }
        )
        for number, step in enumerate(plan["steps"])
    ]
    (folder / "loads.parquet").unlink(missing_ok=True)
    if loads:
        pl.concat(loads).write_parquet(folder / "loads.parquet")


_INTEGERS = {"source_port": pl.UInt32, "queue_pair": pl.UInt32, "path": pl.UInt32}
