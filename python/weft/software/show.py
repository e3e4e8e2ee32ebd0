"""How far other software is from a plan, for a terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from weft import software
from weft.plans.file import Plan
from weft.report.text_table import aligned
from weft.software import SOFTWARE, distance
from weft.software.distance import Distance
from weft.software.planned import Planned
from weft.switches.config import File
from weft.units import format_bytes, format_count, format_time

MOST_PIECES = 20_000
"""`weft plan` itself says how far software is where a plan has no more: that takes a second."""
_RIGHT = (1, 2, 3, 5, 6)


def near(plan: Plan) -> list[str]:
    """What `weft plan` says of other software: the table, where packets are RoCEv2."""
    if plan["cluster"]["protocol"] != "udp" or not plan["steps"]:
        return []
    if sum(step["piece_count"] for step in plan["steps"]) > MOST_PIECES:
        return [f"with ports of other software: weft plan ... --hosts-for {','.join(SOFTWARE)}"]
    return [table(Planned(plan), SOFTWARE)]


def table(planned: Planned, names: Sequence[str]) -> str:
    """One line a software: its time beside the plan's, and the busiest link between switches."""
    header = ("ports of", "queue pairs", "time", "over plan", "busiest link between switches")
    rows: list[tuple[str, ...]] = [(*header, "carries", "planned", "")]
    for name in names:
        rows += [_row(one) for one in distance.of(name, planned)]
    return "\n".join(aligned(rows, _RIGHT))


def _row(one: Distance) -> tuple[str, ...]:
    return (
        one.name,
        format_count(one.queue_pairs),
        format_time(one.seconds),
        f"{one.over:.2f}",
        one.link,
        format_bytes(one.bytes),
        format_bytes(one.planned_bytes),
        "; ".join(_remarks(one)),
    )


def _remarks(one: Distance) -> list[str]:
    remarks = []
    if one.draws > 1:
        remarks.append(f"{one.draws} draws: {one.least:.2f} to {one.most:.2f}")
    if one.lost > 0:
        remarks.append(f"{one.lost:.1%} is lost behind dead links")
    return remarks


def as_json(planned: Planned, written: Mapping[str, Sequence[File]]) -> dict[str, Any]:
    """The key `hosts_for` of `weft plan --json`: what is known, how far it is, files by name."""
    return {
        name: {
            "title": (program := software.find(name)).title,
            "known": program.known,
            "survives": program.survives,
            "uncertain": list(program.uncertain),
            "distance": [dataclasses.asdict(one) for one in distance.of(name, planned)],
            "files": {file.name: file.text for file in files},
        }
        for name, files in written.items()
    }
