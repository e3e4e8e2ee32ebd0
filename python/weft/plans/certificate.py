"""Whether the certificate of a step proves its bound, with nothing but the links and the demand.

A certificate gives links weights. What goes from one leaf to another crosses links of at least so
much weight, whichever of its shortest paths it takes: the lightest of them says how much. Demand
times that, over capacity times weight, is a bound (linear programming duality; with equal weights
on one cut theorem 1 of Ethereal (2025)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ExperimentError
from weft.plans.consistency import REMAKE, ROUNDING, check_equal
from weft.plans.network import Network, Numbers


def bound(
    where: str,
    net: Network,
    leaf_demand: Numbers,
    hosts: tuple[Numbers, Numbers],
    step: dict[str, Any],
) -> float:
    """The bound in seconds that the certificate of a step proves."""
    proof = step["certificate"]
    if proof is None:
        if hosts[0].any() or step["bound_s"]:
            raise ExperimentError(f"{where}: certificate: is missing; make the plan again")
        return 0.0
    number = {name: index for index, name in enumerate(net.names)}
    weights = np.zeros(len(net.names), dtype=np.int64)
    rows = zip(*(proof[key] for key in ("link", "weight", "capacity_bps")), strict=True)
    for name, weight, rate in rows:
        if name not in number:
            raise ExperimentError(f"{where}: certificate: {name}: no such link")
        place = number[name]
        if weights[place] or not (isinstance(weight, int) and weight > 0):
            raise ExperimentError(
                f"{where}: certificate: {name}: weight {weight}, or it is listed twice; {REMAKE}"
            )
        weights[place] = weight
        check_equal(f"{where}: certificate: {name}", "bps", int(net.capacities[place]), rate)
    # Python's integers: weights of a linear program are long.
    capacity = sum(int(w) * int(net.capacities[i]) for i, w in enumerate(weights) if w)
    needed = _crossings(net, weights, leaf_demand)
    sent, received = hosts
    for links, payload in ((net.nic, sent), (net.down, received)):
        for link in np.flatnonzero(weights[links]):
            needed += int(weights[links[link]]) * int(payload[link])
    if capacity == 0:
        raise ExperimentError(f"{where}: certificate: its links carry nothing; {REMAKE}")
    proved = needed * 8 / capacity
    if not abs(proved - step["bound_s"]) <= ROUNDING * proved:
        raise ExperimentError(
            f"{where}: certificate: {proof['link'][0]} and what goes with it prove "
            f"{proved:.9g} s, not {step['bound_s']:.9g} s; make the plan again"
        )
    return proved


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
