"""The exact optimum of a step: what any splitting over its paths could reach, by HiGHS.

The linear program: what each pair of leaves sends over each of its paths, so that the busiest link
takes as little time as possible. Messages may be cut anywhere. Only links between switches are
asked; those of hosts carry what they carry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.errors import ExperimentError
from weft.plans.network import NONE, Network, Numbers, total

MOST_VARIABLES = 200_000
"""Beyond, the solver takes minutes."""


@dataclass(frozen=True)
class Optimum:
    """The best that any splitting reaches."""

    seconds: float
    """What the busiest link takes, those of hosts included."""
    shares: dict[tuple[int, int], dict[int, float]]
    """By pair of leaves and path: how much of what goes there."""


def at_hosts(net: Network, loads: Numbers) -> float:
    """Seconds of the busiest host link, which no choice of paths changes."""
    links = np.concatenate([net.nic, net.down])
    alive = links[net.capacities[links] > 0]
    return float((loads[alive] * 8 / net.capacities[alive]).max(initial=0.0))


def demands(net: Network, pieces: dict[str, Numbers]) -> Numbers:
    """Payload from leaf to leaf, of pieces that leave their leaf."""
    pairs = net.leaf_of[pieces["src"]] * net.leaves + net.leaf_of[pieces["dst"]]
    found = total(pairs, pieces["bytes"], net.leaves**2).reshape(net.leaves, net.leaves)
    np.fill_diagonal(found, 0)
    return found


def paths(net: Network, a: int, b: int) -> Numbers:
    """The paths from one leaf to another that are alive, as path ids."""
    places = np.flatnonzero(net.ups[a] >= 0)
    if net.pod_of[a] != net.pod_of[b]:
        widths = (net.ups[net.above[a, places]] >= 0).sum(axis=1)
        found = [
            (p << 8) | q for p, width in zip(places, widths, strict=True) for q in range(width)
        ]
        return np.array(found, dtype=np.int64)
    members = net.members[net.above[a, places], b]
    # As the core numbers them: the member down goes round with the uplink.
    found = (places << 8) | (places % np.maximum(members, 1))
    return np.asarray(found, dtype=np.int64)


def solve(net: Network, demand: Numbers) -> Optimum:
    """The optimum for a demand from leaf to leaf, in bytes.

    Raises:
        ExperimentError: There is no live path for some of it, or it is too large.
    """
    import highspy

    variables, rows = _variables(net, demand)
    if not len(variables):
        return Optimum(0.0, {})
    columns, matrix, lower, upper = _program(net, demand, variables, rows)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, len(lower)
    model.col_cost_ = np.array([1.0] + [0.0] * (columns - 1))
    model.col_lower_ = np.zeros(columns)
    model.col_upper_ = np.full(columns, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = list(lower), list(upper)
    starts, indices, values = matrix
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = list(starts), list(indices)
    model.a_matrix_.value_ = list(values)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        what = solver.modelStatusToString(solver.getModelStatus())
        raise ExperimentError(f"plan: the linear program has no optimum ({what})")
    solution = np.asarray(solver.getSolution().col_value)
    shares: dict[tuple[int, int], dict[int, float]] = {}
    for (a, b, path), part in zip(variables, solution[1:], strict=True):
        shares.setdefault((a, b), {})[path] = max(part, 0.0) * _payload(demand) / demand[a, b]
    return Optimum(float(solution[0]) * _seconds(net, demand), shares)


def _payload(demand: Numbers) -> float:
    """Bytes of a unit of payload: the mean of all pairs. The solver's tolerances are absolute."""
    return float(demand.sum()) / np.count_nonzero(demand)


def _seconds(net: Network, demand: Numbers) -> float:
    """Seconds of a unit of time: what the busiest leaf needs if all its links are as the best."""
    widths = (net.ups[: net.leaves] >= 0).sum(axis=1)
    busy = np.maximum(demand.sum(axis=0), demand.sum(axis=1)) / widths
    return float(busy.max()) * 8 / float(net.capacities.max())


def _variables(net: Network, demand: Numbers) -> tuple[list[tuple[int, int, int]], Numbers]:
    """Pair and path of each variable, and the links that it uses."""
    variables: list[tuple[int, int, int]] = []
    rows = []
    first = np.full(net.leaves, NONE, dtype=np.int64)
    for host, leaf in enumerate(net.leaf_of):
        if first[leaf] < 0:
            first[leaf] = host
    for a, b in np.argwhere(demand > 0):
        found = paths(net, a, b)
        ones = np.ones(len(found), dtype=np.int64)
        crossed = net.path_links(first[a] * ones, first[b] * ones, found)[:, 1:5]
        alive = np.where(crossed >= 0, net.capacities[crossed], 1).min(axis=1) > 0
        if not alive.any():
            raise ExperimentError(f"plan: no live path is left from leaf {a} to leaf {b}")
        variables += [(int(a), int(b), int(path)) for path in found[alive]]
        rows.append(crossed[alive])
        if len(variables) > MOST_VARIABLES:
            raise ExperimentError(
                f"plan: the linear program has more than {MOST_VARIABLES} variables; ask for the "
                "optimum of a smaller cluster (the bound of the plan holds without it)"
            )
    return variables, np.concatenate(rows) if rows else np.zeros((0, 4), dtype=np.int64)


def _program(
    net: Network, demand: Numbers, variables: list[tuple[int, int, int]], crossed: Numbers
) -> tuple[int, tuple[Numbers, Numbers, Numbers], Numbers, Numbers]:
    """Columns: the time, then every variable. Rows: pairs, then links that somebody uses."""
    import highspy

    pairs = sorted({(a, b) for a, b, _ in variables})
    row_of_pair = {pair: row for row, pair in enumerate(pairs)}
    used = np.unique(crossed[crossed >= 0])
    row_of_link = {int(link): len(pairs) + row for row, link in enumerate(used)}
    payload, seconds = _payload(demand), _seconds(net, demand)
    starts, indices, values = [0], [], []
    # The time, on the side of capacities.
    for link in used:
        indices.append(row_of_link[int(link)])
        values.append(-float(net.capacities[link]) * seconds / 8 / payload)
    starts.append(len(indices))
    for (a, b, _), links in zip(variables, crossed, strict=True):
        indices.append(row_of_pair[a, b])
        values.append(1.0)
        for link in links[links >= 0]:
            indices.append(row_of_link[int(link)])
            values.append(1.0)
        starts.append(len(indices))
    amounts = np.array([demand[pair] for pair in pairs]) / payload
    lower = np.concatenate([amounts, np.full(len(used), -highspy.kHighsInf)])
    upper = np.concatenate([amounts, np.zeros(len(used))])
    matrix = (np.array(starts), np.array(indices), np.array(values))
    return len(variables) + 1, matrix, lower, upper
