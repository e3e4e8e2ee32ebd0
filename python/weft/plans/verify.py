"""`weft plan --verify`: loads and bounds, computed from the plan file alone and compared with it.

First that it is of the cluster and the job that the file describes (`consistency`): the same links,
steps and messages. Then of every step:

- the pieces of each message add up, and every piece follows a path that exists, which is the one
  to which switches send its source port, where segments of these say so;
- the loads of all links, recomputed from the pieces, are those of the file;
- the busiest link and its time are those of the file, and so are counts of pieces, of messages
  that are cut, and of queue pairs;
- the certificate proves the bound: each demand crosses links of at least so much weight on any of
  its shortest paths, and these links have only so much capacity (theorem 1 of Ethereal (2025) for
  links that are alike, linear programming duality for others).

At last the sums over all steps, the lower bound of the job, which the core computes again, and the
queue pairs of every host.

Pieces that the file does not hold are planned again by the core, from the experiment in the file;
their paths, loads and bounds are then checked as all others are.
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
from weft.plans import certificate, consistency, hosts, network
from weft.plans.consistency import REMAKE, ROUNDING, check_equal
from weft.plans.file import Plan, as_written
from weft.plans.network import Network, Numbers

_BLOCK = 1024
"""Hosts whose pieces are planned again at a time."""
COLUMNS = ("src", "dst", "message", "part", "bytes", "path", "source_port", "queue_pair")


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
    with as_written():
        return _verify(plan)


def _verify(plan: Plan) -> list[Checked]:
    given = consistency.recompute(plan)
    net = network.of(plan["links"])
    cluster = consistency.check_cluster(plan, net)
    found = [
        _step(plan, net, number, step, given["steps"][number])
        for number, step in enumerate(plan["steps"])
    ]
    times = [step["times"] for step in plan["steps"]]
    _agree("plan: seconds", sum(map(_product, times, (one.seconds for one in found))), plan)
    bounds = (step["bound_s"] for step in plan["steps"])
    _agree("plan: steps_bound_s", sum(map(_product, times, bounds)), plan)
    consistency.check_bound(plan, given)
    consistency.check_queue_pairs(plan, cluster)
    return found


def _product(times: int, seconds: float) -> float:
    return times * seconds


def _agree(key: str, found: float, plan: Plan) -> None:
    said = plan[key.removeprefix("plan: ")]
    if not abs(found - said) <= ROUNDING * found:
        raise ExperimentError(f"{key}: steps add up to {found:.9g}, not {said:.9g}; {REMAKE}")


def pieces_of(plan: Plan, number: int) -> Iterator[dict[str, Numbers]]:
    """The pieces of a step, in blocks."""
    step = plan["steps"][number]
    if step["pieces"] is not None:
        yield _columns(step["pieces"])
        return
    experiment, seed = json.dumps(plan["experiment"]), plan["seed"]
    hosts = sum(name.startswith("host-") for name in plan["links"]["link"])
    for first in range(0, hosts, _BLOCK):
        block = _native.plan_subflows(experiment, seed, number, first, min(hosts, first + _BLOCK))
        yield _columns(block)


def _columns(pieces: dict[str, Any]) -> dict[str, Numbers]:
    columns = {}
    for name in COLUMNS:
        values = pieces[name]
        if name in ("source_port", "queue_pair") and isinstance(values, list):
            values = [hosts.NONE if one is None else one for one in values]
        column = np.asarray(values)
        if column.size and column.dtype.kind not in "iu":
            raise ValueError(f"{name} of pieces: not whole numbers")
        columns[name] = column.astype(np.int64)
    if ((columns["path"] < 0) | (columns["path"] > 0xFFFF)).any():
        raise ExperimentError("plan: steps: a path is not of two bytes; make the plan again")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("columns of pieces: not of one length")
    return columns


def _step(
    plan: Plan, net: Network, number: int, step: dict[str, Any], given: dict[str, Any]
) -> Checked:
    where = f"plan: step {number + 1} ({step['name']})"
    for what in ("times", "messages", "bytes"):
        check_equal(where, what, given[what], step[what])
    loads = np.zeros(len(net.names), dtype=np.int64)
    leaf_demand = np.zeros((net.leaves, net.leaves), dtype=np.int64)
    sent = np.zeros(len(net.nic), dtype=np.int64)
    received = np.zeros_like(sent)
    count = total = cut = most = 0
    for pieces in pieces_of(plan, number):
        if step["pieces"] is not None:
            consistency.check_messages(where, given, pieces)
        loads += net.loads(pieces)
        a, b = net.leaf_of[pieces["src"]], net.leaf_of[pieces["dst"]]
        amounts, pairs = pieces["bytes"], a * net.leaves + b
        leaf_demand += network.total(pairs, amounts, leaf_demand.size).reshape(leaf_demand.shape)
        sent += network.total(pieces["src"], amounts, len(sent))
        received += network.total(pieces["dst"], amounts, len(received))
        count += len(pieces["src"])
        total += int(pieces["bytes"].sum())
        cut += int((np.unique(pieces["message"], return_counts=True)[1] > 1).sum())
        most = max(most, _queue_pairs(pieces))
        if plan["enforce"] == "segments":
            pinned = plan["experiment"]["balance"].get("enforce") == "segments"
            _ports(where, net, plan["segments"], pieces, pinned)
    check_equal(where, "pieces", count, step["piece_count"])
    check_equal(where, "bytes in pieces", total, step["bytes"])
    check_equal(where, "messages in parts", cut, step["split"])
    check_equal(where, "queue pairs on a host", most, step["queue_pairs"])
    said = np.asarray(step["loads"], dtype=np.int64)
    if len(said) != len(loads):
        raise ExperimentError(f"{where}: {len(said)} loads for {len(loads)} links")
    loads = net.stand_in(loads, said)
    wrong = np.flatnonzero(said != loads)
    if len(wrong):
        link = int(wrong[0])
        raise ExperimentError(
            f"{where}: {net.names[link]} carries {loads[link]} bytes, not {said[link]}; {REMAKE}"
        )
    seconds = _busiest(where, net, loads, step)
    bound = certificate.bound(where, net, leaf_demand, (sent, received), step)
    proved = seconds <= bound * (1 + ROUNDING)
    return Checked(step["name"], count, seconds, bound, proved)


def _queue_pairs(pieces: dict[str, Numbers]) -> int:
    """Largest number of queue pairs of a host: one per piece, or the permanent ones."""
    senders, pair = pieces["src"], pieces["queue_pair"]
    stands = pair != hosts.NONE
    standing = np.unique(np.stack([senders[stands], pair[stands]]), axis=1)[0]
    return int(np.bincount(np.concatenate([senders[~stands], standing])).max(initial=0))


def _ports(
    where: str,
    net: Network,
    segments: dict[str, Any],
    pieces: dict[str, Numbers],
    pinned: bool,
) -> None:
    """Whether switches with these segments send every source port the way of its piece.

    Where paths are pinned, every port is in some segment.
    """
    owner = {name: number for number, name in enumerate(net.switches)}
    table = np.full((len(net.switches), 1 << 16), network.NONE, dtype=np.int16)
    for name, entries in segments.items():
        for hop, ranges in enumerate(entries):
            for first, last in [ranges] if isinstance(ranges[0], int) else ranges:
                table[owner[name], first : last + 1] = hop
    path, port = pieces["path"], pieces["source_port"]
    a, b = (net.leaf_of[pieces[end]] for end in ("src", "dst"))
    at, place = a, path >> 8
    what: NDArray[np.bool_] = a != b
    for piece in np.flatnonzero(what & (port > 0xFFFF))[:1]:
        raise ExperimentError(f"{where}: piece {piece} has no source port; make the plan again")
    port = np.where(what, port, 0)
    for _ in range(2):
        told = table[at, port].astype(np.int64)
        # What belongs to an uplink that is dead is hashed onto others. What lies behind the next
        # switch no rule knows: packets go there, dead or not.
        meant = what & (told >= 0) & net.stands(net.ups[at, told])
        wrong = np.flatnonzero((meant & (told != place)) | (what & pinned & (told < 0)))
        if len(wrong):
            bad = int(wrong[0])
            to = f"its uplink {told[bad]}" if told[bad] >= 0 else "any uplink"
            raise ExperimentError(
                f"{where}: {net.switches[at[bad]]} sends source port {port[bad]} to {to}, not "
                f"{place[bad]} as the path of its piece; make the plan again"
            )
        what = what & (net.pod_of[a] != net.pod_of[b])
        at, place = np.where(what, net.above[a, path >> 8], at), path & 0xFF
    _members(where, net, table, pieces)


def _members(
    where: str, net: Network, table: NDArray[np.int16], pieces: dict[str, Numbers]
) -> None:
    """Whether pieces go down over bundles by the member by which their source ports go up."""
    if net.members.max() < 2:
        return
    a, b = (net.leaf_of[pieces[end]] for end in ("src", "dst"))
    near = (a != b) & (net.pod_of[a] == net.pod_of[b])
    path, port, to = pieces["path"][near], pieces["source_port"][near], b[near]
    above, member = net.above[a[near], path >> 8], path & 0xFF
    members = net.members[above, to]
    taken = net.between[above, to] + member
    for bad in np.flatnonzero(net.capacities[taken] == 0)[:1]:
        raise ExperimentError(f"{where}: {net.names[taken[bad]]} is dead and carries payload")
    told = table[to, port].astype(np.int64)
    # Where ports were hashed to another switch, that has no rule for them.
    ruled = (members > 1) & (told >= 0) & (net.above[to, told] == above)
    meant = told % members
    ruled &= net.stands(net.between[above, to] + meant)
    for bad in np.flatnonzero(ruled & (member != meant))[:1]:
        raise ExperimentError(
            f"{where}: {net.switches[above[bad]]} sends source port {port[bad]} down over member "
            f"{meant[bad]} of the bundle to {net.switches[to[bad]]}, not {member[bad]} as the path "
            "of its piece; make the plan again"
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
    if not abs(seconds[link] - said["seconds"]) <= ROUNDING * seconds[link]:
        raise ExperimentError(
            f"{where}: {net.names[link]} takes {seconds[link]:.9g} s, the busiest is said to take "
            f"{said['seconds']:.9g} s ({said['link']}); make the plan again"
        )
    named = net.names.index(said["link"]) if said["link"] in net.names else None
    if named is None or seconds[named] < seconds[link] * (1 - ROUNDING):
        raise ExperimentError(
            f"{where}: {net.names[link]} is the busiest link, not {said['link']}; {REMAKE}"
        )
    check_equal(f"{where}: {said['link']}", "bytes", int(loads[named]), said["bytes"])
    return float(seconds[link])
