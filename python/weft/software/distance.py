"""How far from its plan a job is with the source ports that other software can have.

Every two hosts of a step send what the plan has them send, over the queue pairs of the software,
each an equal share. Switches do as in the plan: those of its scheme steer by source ports, or hash.
What a rule leads to a switch that has lost the receiver is lost.
The core follows each queue pair through them (`port_loads`); the time is that of the busiest link,
as the plan's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _native, software
from weft.plans.network import Numbers
from weft.software.planned import Demand, Planned
from weft.software.program import Program

DRAWS = 8
"""Draws of what nobody chooses: hashes of switches, numbers of queue pairs."""
_BLOCK = 100_000
"""Pairs of hosts whose queue pairs are followed at a time."""


@dataclass(frozen=True)
class Distance:
    """How far one software is from the plan."""

    name: str
    """The software; with `, steered` where its packets had better not be, and are."""
    queue_pairs: int
    """The most between two hosts."""
    seconds: float
    """Sum over the steps of the time of their busiest links; the mean of all draws."""
    over: float
    """The same over the plan's."""
    least: float
    """`over` of the best draw."""
    most: float
    """`over` of the worst draw."""
    draws: int
    """How many there were: 1 where nothing is left to chance."""
    link: str
    """The busiest link between switches, in the step that takes longest, in the first draw."""
    bytes: int
    """What it carries."""
    planned_bytes: int
    """What the busiest one carries in this step of the plan."""
    lost: float
    """The part of its bytes that rules lead to switches which have lost the receiver; the mean."""


def of(name: str, planned: Planned) -> list[Distance]:
    """How far a software is from the plan; twice where switches had better not steer it."""
    program = software.find(name)
    found = [_of(name, program, planned, program.steered)]
    if not program.steered and planned.has_segments:
        found.append(_of(f"{name}, steered", program, planned, steered=True))
    return found


def _of(name: str, program: Program, planned: Planned, steered: bool) -> Distance:
    seconds: list[float] = []
    first: list[Numbers] = []
    lost: list[float] = []
    for number in range(DRAWS):
        planned.draw(number)
        loads = [_loads(program, planned, one, number, steered) for one in planned.demands]
        if number == 1 and all(map(np.array_equal, loads, first)):
            # Nothing is left to chance.
            break
        first = first or loads
        seconds.append(_seconds(planned, loads))
        lost.append(_lost(planned, loads))
    whole = planned.plan["seconds"]
    over = [one / whole if whole else 1.0 for one in seconds]
    link, carried, planned_bytes = _busiest(planned, first)
    return Distance(
        name=name,
        queue_pairs=_most_pairs(program, planned),
        seconds=float(np.mean(seconds)),
        over=float(np.mean(over)),
        least=min(over),
        most=max(over),
        draws=len(seconds),
        link=link,
        bytes=carried,
        planned_bytes=planned_bytes,
        lost=float(np.mean(lost)),
    )


def _most_pairs(program: Program, planned: Planned) -> int:
    pairs = {
        pair for a, b, _ in planned.demands for pair in zip(a.tolist(), b.tolist(), strict=True)
    }
    return max((len(program.ports(planned, a, b)) for a, b in pairs), default=0)


def _flows(program: Program, planned: Planned, part: tuple[Numbers, ...]) -> tuple[Any, ...]:
    """The queue pairs of some pairs of hosts: senders, receivers, bytes, source ports."""
    src, dst, amounts = part
    ports = [program.ports(planned, a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    counts = np.array([len(one) for one in ports], dtype=np.int64)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    each, rest = np.repeat(amounts // counts, counts), np.repeat(amounts % counts, counts)
    return (
        np.repeat(src, counts).astype(np.uint32),
        np.repeat(dst, counts).astype(np.uint32),
        (each + (place < rest)).astype(np.uint64),
        np.array([port for one in ports for port in one], dtype=np.uint16),
    )


def _loads(program: Program, planned: Planned, demand: Demand, draw: int, steered: bool) -> Numbers:
    """What links carry in a step."""
    plan = planned.plan
    experiment, seeds = json.dumps(plan["experiment"]), (plan["seed"], plan["seed"] + draw)
    found = np.zeros(len(planned.net.names), dtype=np.int64)
    for first in range(0, len(demand[0]), _BLOCK):
        part = tuple(one[first : first + _BLOCK] for one in demand)
        flows = _flows(program, planned, part)
        found += _native.port_loads(experiment, seeds, steered, *flows).astype(np.int64)
    return found


def _times(planned: Planned, loads: Numbers) -> Any:
    """Seconds of every link; dead ones carry nothing."""
    capacities = planned.net.capacities
    return np.where(loads > 0, loads * 8 / np.maximum(capacities, 1), 0.0)


def _seconds(planned: Planned, loads: list[Numbers]) -> float:
    steps = zip(planned.plan["steps"], loads, strict=True)
    return float(sum(step["times"] * _times(planned, one).max(initial=0) for step, one in steps))


def _lost(planned: Planned, loads: list[Numbers]) -> float:
    """The part of all bytes that comes nowhere: what arrives is on the sender's link, too."""
    times = [step["times"] for step in planned.plan["steps"]]
    sent = sum(n * int(part[2].sum()) for n, part in zip(times, planned.demands, strict=True))
    nics = planned.net.nic
    arrived = sum(n * int(one[nics].sum()) for n, one in zip(times, loads, strict=True))
    return 1 - arrived / sent if sent else 0.0


def _busiest(planned: Planned, loads: list[Numbers]) -> tuple[str, int, int]:
    """The busiest link between switches in the step that takes longest, and what it has here."""
    between = np.array(["host-" not in name for name in planned.net.names])
    times = [np.where(between, _times(planned, one), 0.0) for one in loads]
    steps = planned.plan["steps"]
    if not times or not between.any():
        return "none", 0, 0
    whole = [step["times"] * one.max() for step, one in zip(steps, times, strict=True)]
    step = int(np.argmax(whole))
    link = int(times[step].argmax())
    meant = np.array(steps[step]["loads"], dtype=np.int64)
    best = int(np.where(between, _times(planned, meant), 0.0).argmax())
    return planned.net.names[link], int(loads[step][link]), int(meant[best])
