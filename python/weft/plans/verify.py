"""`weft plan --verify`: loads and bounds from the plan file alone, beside what it says.

What is checked of every step:

- the pieces of each message add up, and every piece follows a path that exists, which is the one
  to which switches send its source port, where segments of these say so;
- the loads of all links, recomputed from the pieces, are those of the file;
- the busiest link and its time are those of the file;
- the certificate proves the bound: each demand crosses links of at least so much weight on any of
  its shortest paths, and these links have only so much capacity (theorem 1 of paper 000 for links
  that are alike, linear programming duality for others).

Pieces that the file does not hold are planned again by the core, from the experiment in the file;
their ways, loads and bounds are then checked as all others are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _native
from weft.errors import ExperimentError
from weft.plans import network
from weft.plans.file import Plan
from weft.plans.network import Network, Numbers

_ROUNDING = 1e-9
"""Of quotients of floating-point numbers."""
_BLOCK = 1024
"""Hosts whose pieces are planned again at a time."""
COLUMNS = ("src", "dst", "message", "part", "bytes", "path")


@dataclass(frozen=True)
class Checked:
    """What was found of one step."""

    name: str
    pieces: int
    seconds: float
    bound_s: float
    proved: bool
    """Whether the busiest link takes no longer than the bound: nobody can do better."""


def verify(plan: Plan) -> list[Checked]:
    """Recompute a plan.

    Raises:
        ExperimentError: Something does not agree: the step, the link, both numbers.
    """
    net = network.of(plan["links"])
    return [_step(plan, net, number, step) for number, step in enumerate(plan["steps"])]


def pieces_of(plan: Plan, number: int) -> Iterator[dict[str, Numbers]]:
    """The pieces of a step, in blocks."""
    step = plan["steps"][number]
    if step["pieces"] is not None:
        yield _columns(step["pieces"])
        return
    experiment, seed = json.dumps(plan["experiment"]), plan["seed"]
    hosts = sum(name.startswith("host-") for name in plan["links"]["link"])
    for first in range(0, hosts, _BLOCK):
        block = _native.plan_pieces(experiment, seed, number, first, min(hosts, first + _BLOCK))
        yield _columns(block)


def _columns(pieces: dict[str, Any]) -> dict[str, Numbers]:
    return {name: np.asarray(pieces[name], dtype=np.int64) for name in COLUMNS}


def _step(plan: Plan, net: Network, number: int, step: dict[str, Any]) -> Checked:
    where = f"plan: step {number + 1} ({step['name']})"
    loads = np.zeros(len(net.names), dtype=np.int64)
    leaf_demand = np.zeros((net.leaves, net.leaves), dtype=np.int64)
    sent = np.zeros(len(net.nic), dtype=np.int64)
    received = np.zeros_like(sent)
    count = total = 0
    for pieces in pieces_of(plan, number):
        loads += net.loads(pieces)
        a, b = net.leaf_of[pieces["src"]], net.leaf_of[pieces["dst"]]
        amounts, pairs = pieces["bytes"], a * net.leaves + b
        leaf_demand += network.total(pairs, amounts, leaf_demand.size).reshape(leaf_demand.shape)
        sent += network.total(pieces["src"], amounts, len(sent))
        received += network.total(pieces["dst"], amounts, len(received))
        count += len(pieces["src"])
        total += int(pieces["bytes"].sum())
    if step["pieces"] is not None and plan["segments"]:
        _ports(where, net, plan["segments"], step["pieces"])
    _same(where, "pieces", count, step["piece_count"])
    _same(where, "bytes", total, step["bytes"])
    said = np.asarray(step["loads"], dtype=np.int64)
    if len(said) != len(loads):
        raise ExperimentError(f"{where}: {len(said)} loads for {len(loads)} links")
    wrong = np.flatnonzero(said != loads)
    if len(wrong):
        link = int(wrong[0])
        raise ExperimentError(
            f"{where}: {net.names[link]} carries {loads[link]} bytes, not {said[link]}; "
            "the plan is not what it says, make it again"
        )
    seconds = _busiest(where, net, loads, step)
    bound = _bound(where, net, leaf_demand, (sent, received), step)
    proved = seconds <= bound * (1 + _ROUNDING)
    return Checked(step["name"], count, seconds, bound, proved)


def _ports(
    where: str, net: Network, segments: dict[str, Any], pieces: dict[str, list[int | None]]
) -> None:
    """Whether switches with these segments send every source port the way of its piece."""
    owner = {name: number for number, name in enumerate(net.switches)}
    table = np.full((len(net.switches), 1 << 16), network.NONE, dtype=np.int16)
    for name, entries in segments.items():
        for hop, ranges in enumerate(entries):
            for first, last in [ranges] if isinstance(ranges[0], int) else ranges:
                table[owner[name], first : last + 1] = hop
    path = np.asarray(pieces["path"], dtype=np.int64)
    port = np.array([-1 if one is None else one for one in pieces["source_port"]], dtype=np.int64)
    a, b = (net.leaf_of[np.asarray(pieces[end], dtype=np.int64)] for end in ("src", "dst"))
    at, place = a, np.asarray(path >> 8, dtype=np.int64)
    what: NDArray[np.bool_] = a != b
    for _ in range(2):
        told = table[at, port].astype(np.int64)
        meant = what & (port >= 0) & (told >= 0)
        up = net.ups[at, told]
        down = net.between[net.above[at, told], b]
        # What has lost its way is hashed onto others.
        alive = (net.capacities[up] > 0) & ((down < 0) | (net.capacities[down] > 0))
        wrong = np.flatnonzero(meant & alive & (told != place))
        if len(wrong):
            bad = int(wrong[0])
            raise ExperimentError(
                f"{where}: {net.switches[at[bad]]} sends source port {port[bad]} to its uplink "
                f"{told[bad]}, not {place[bad]} as the path of its piece; make the plan again"
            )
        what = what & (net.pod_of[a] != net.pod_of[b])
        at, place = np.where(what, net.above[a, path >> 8], at), path & 0xFF


def _same(where: str, what: str, found: int, said: int) -> None:
    if found != said:
        raise ExperimentError(
            f"{where}: has {found} {what}, not {said}; the plan is not what it says, make it again"
        )


def _busiest(where: str, net: Network, loads: Numbers, step: dict[str, Any]) -> float:
    """Seconds that the busiest link takes."""
    if not loads.any():
        return 0.0
    dead = np.flatnonzero((loads > 0) & (net.capacities == 0))
    if len(dead):
        raise ExperimentError(f"{where}: {net.names[dead[0]]} is dead and carries payload")
    used = loads > 0
    seconds = np.zeros(len(loads))
    seconds[used] = loads[used] * 8 / net.capacities[used]
    link = int(seconds.argmax())
    said = step["congestion"]
    if abs(seconds[link] - said["seconds"]) > _ROUNDING * seconds[link]:
        raise ExperimentError(
            f"{where}: {net.names[link]} takes {seconds[link]:.9g} s, the busiest is said to take "
            f"{said['seconds']:.9g} s ({said['link']}); make the plan again"
        )
    return float(seconds[link])


def _bound(
    where: str,
    net: Network,
    leaf_demand: Numbers,
    hosts: tuple[Numbers, Numbers],
    step: dict[str, Any],
) -> float:
    """The bound in seconds that the certificate of a step proves."""
    certificate = step["certificate"]
    if certificate is None:
        return 0.0
    number = {name: index for index, name in enumerate(net.names)}
    weights = np.zeros(len(net.names), dtype=np.int64)
    for name, weight in zip(certificate["link"], certificate["weight"], strict=True):
        if name not in number:
            raise ExperimentError(f"{where}: certificate: {name}: no such link")
        weights[number[name]] = weight
    # Python's integers: weights of a linear program are long.
    capacity = sum(int(w) * int(net.capacities[i]) for i, w in enumerate(weights) if w)
    needed = _crossings(net, weights, leaf_demand)
    sent, received = hosts
    for links, payload in ((net.nic, sent), (net.down, received)):
        for link in np.flatnonzero(weights[links]):
            needed += int(weights[links[link]]) * int(payload[link])
    if capacity == 0:
        return float("inf") if needed else 0.0
    bound = needed * 8 / capacity
    if bound < step["bound_s"] * (1 - _ROUNDING):
        raise ExperimentError(
            f"{where}: certificate: {certificate['link'][0]} and what goes with it prove "
            f"{bound:.9g} s, not {step['bound_s']:.9g} s; make the plan again"
        )
    return bound


def _crossings(net: Network, weights: Numbers, demand: Numbers) -> int:
    """Bytes between leaves, each times the least weight on any shortest way."""
    least = _lightest(net, weights)
    pairs = np.argwhere((demand > 0) & (least > 0))
    return sum(int(demand[a, b]) * int(least[a, b]) for a, b in pairs if a != b)


def _lightest(net: Network, weights: Numbers) -> Numbers:
    """By pair of leaves: the least weight of the links between switches on any shortest way."""
    heavy = np.int64(1) << np.int64(60)
    size = len(net.ups)
    up = np.full((size, size), heavy, dtype=np.int64)
    down = np.full((size, size), heavy, dtype=np.int64)
    for switch, place in np.argwhere(net.ups >= 0):
        there = net.above[switch, place]
        up[switch, there] = min(up[switch, there], weights[net.ups[switch, place]])
    for upper, lower in np.argwhere(net.members > 0):
        first = net.between[upper, lower]
        down[upper, lower] = weights[first : first + net.members[upper, lower]].min()
    leaves = range(net.leaves)
    least = np.full((net.leaves, net.leaves), heavy, dtype=np.int64)
    # Up to the middle and down again, and the same one tier higher.
    higher = np.full((size, size), heavy, dtype=np.int64)
    middles = np.unique(net.above[: net.leaves][net.above[: net.leaves] >= 0])
    for middle in middles:
        higher[middle] = (up[middle][:, None] + down).min(axis=0)
    same = net.pod_of[: net.leaves, None] == net.pod_of[None, : net.leaves]
    for a in leaves:
        near = (up[a][:, None] + down).min(axis=0)[: net.leaves]
        reach = (up[a][middles][:, None] + higher[middles]).min(axis=0)
        far = (reach[:, None] + down).min(axis=0)[: net.leaves]
        least[a] = np.where(same[a], near, far)
    return np.where(least >= heavy, 0, least)
