"""The network of a plan file: the way of every piece, and what that puts on each link.

Links are named as in the file, `leaf-0 -> spine-1`, members of a bundle after the first
`leaf-0 -> spine-1#1`, in the order of ports: up ports in the order of what is above. A path is two
bytes: which up port the leaf takes, and which port the switch after that (another up port, or the
member of the bundle down).

Arrays all the way: millions of pieces take a second. Nothing here comes from the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import ExperimentError

Numbers = NDArray[np.int64]
NONE = -1
"""No such link."""


@dataclass(frozen=True)
class Network:
    """Where links lead, by number."""

    names: list[str]
    switches: list[str]
    """Their names."""
    capacities: Numbers
    """Bits per second that each link carries now; 0: it is dead."""
    reverse: Numbers
    """By link: the one the other way."""
    leaf_of: Numbers
    """By host."""
    nic: Numbers
    """The link from each host to its leaf."""
    down: Numbers
    """The link from the leaf to each host."""
    ups: Numbers
    """By switch and place: the link up."""
    above: Numbers
    """By switch and place: the switch there."""
    between: Numbers
    """By upper and lower switch: the first link down; further members follow it."""
    members: Numbers
    """By upper and lower switch: how many there are."""
    pod_of: Numbers
    """By switch below the top: its pod. All of a leaf-spine is one."""
    below: Numbers
    """By core and pod: the aggregation switch there."""
    leaves: int

    def path_links(self, src: Numbers, dst: Numbers, path: Numbers) -> Numbers:
        """The links that pieces cross: one row a piece, `NONE` where there are fewer than six."""
        rows = np.full((len(src), 6), NONE, dtype=np.int64)
        rows[:, 0] = self.nic[src]
        rows[:, 5] = self.down[dst]
        a, b = self.leaf_of[src], self.leaf_of[dst]
        far = a != b
        first, second = path >> 8, path & 0xFF
        up = self._up(a[far], first[far])
        rows[far, 1] = up
        middle = self.above[a[far], first[far]]
        across = self.pod_of[a] != self.pod_of[b]
        near = far & ~across
        which = ~across[far]
        rows[near, 4] = self._down(middle[which], b[near], second[near])
        if across.any():
            agg, place = middle[~which], second[across]
            rows[across, 2] = self._up(agg, place)
            core = self.above[agg, place]
            last = self.below[core, self.pod_of[b[across]]]
            # In bundles down by the member that it came up by.
            to = b[across]
            rows[across, 3] = self._down(core, last, place % self.members[core, last])
            rows[across, 4] = self._down(last, to, first[across] % self.members[last, to])
        return rows

    def loads(self, pieces: dict[str, Numbers]) -> Numbers:
        """Payload by link."""
        rows = self.path_links(pieces["src"], pieces["dst"], pieces["path"])
        loads = np.zeros(len(self.names), dtype=np.int64)
        for column in rows.T:
            here = column >= 0
            loads += total(column[here], pieces["bytes"][here], len(loads))
        return loads

    def stand_in(self, loads: Numbers, said: Numbers) -> Numbers:
        """`loads`, with what is on dead members of bundles on live ones, in parts as `said`.

        Between pods no path names the member down. If the one that is meant is dead, the switch
        takes a live one by its hash. What does not add up stays.
        """
        loads = loads.copy()
        for upper, lower in np.argwhere(self.members > 1):
            bundle = self.between[upper, lower] + np.arange(self.members[upper, lower])
            dead = self.capacities[bundle] == 0
            more = said[bundle] - loads[bundle]
            if loads[bundle[dead]].any() and not more.sum() and (more[~dead] >= 0).all():
                loads[bundle] = said[bundle]
        return loads

    def stands(self, links: Numbers) -> NDArray[np.bool_]:
        """Whether links carry anything, both ways: else their switches have no rules for them."""
        alive = self.capacities > 0
        stands: NDArray[np.bool_] = alive[links] & alive[self.reverse[links]]
        return stands

    def reachable(self) -> NDArray[np.bool_]:
        """By switch, place and leaf: whether a live path leads over that uplink to the leaf."""
        leaves = self.leaves
        found = np.zeros((*self.ups.shape, leaves), dtype=np.bool_)
        reaches = np.zeros((len(self.ups), leaves), dtype=np.bool_)
        alive = self.capacities > 0
        for upper, lower in np.argwhere(self.members[:, :leaves] > 0):
            first = self.between[upper, lower]
            reaches[upper, lower] = alive[first : first + self.members[upper, lower]].any()
        for core, pod in np.argwhere(self.below >= 0):
            agg, inside = self.below[core, pod], self.pod_of[:leaves] == pod
            reaches[core, inside] = reaches[agg, inside] & alive[self.between[core, agg]]
        # Leaves last: their uplinks depend on the switches above.
        for switch in reversed(range(len(self.ups))):
            places = np.flatnonzero(self.ups[switch] >= 0)
            live = alive[self.ups[switch, places]]
            found[switch, places] = live[:, None] & reaches[self.above[switch, places]]
            outside = self.pod_of[:leaves] != self.pod_of[switch]
            reaches[switch, outside] |= found[switch].any(axis=0)[outside]
        return found

    def _up(self, switch: Numbers, place: Numbers) -> Numbers:
        if len(place) and (place.max() >= self.ups.shape[1] or (self.ups[switch, place] < 0).any()):
            raise ExperimentError("plan: steps: a path names an uplink that is not there")
        return self.ups[switch, place]

    def _down(self, upper: Numbers, lower: Numbers, member: Numbers) -> Numbers:
        single = self.members[upper, lower] == 1
        member = np.where(single, 0, member)
        if (member >= self.members[upper, lower]).any():
            raise ExperimentError("plan: steps: a path names a link down that is not there")
        return self.between[upper, lower] + member


def total(places: Numbers, amounts: Numbers, length: int) -> Numbers:
    """Sums of whole amounts by place, exact below 2^53."""
    return np.bincount(places, weights=amounts, minlength=length).astype(np.int64)


def of(links: dict[str, Any]) -> Network:
    """The network of the links of a plan file.

    Raises:
        ExperimentError: They are not those of a leaf-spine or a fat-tree.
    """
    names = list(links["link"])
    ends = [name.partition("#")[0].split(" -> ") for name in names]
    if any(len(pair) != 2 for pair in ends):
        raise ExperimentError("plan: links: not named 'node -> node'; make the plan again")
    hosts = sum(lower.startswith("host-") for lower, _ in ends)
    switches: dict[str, int] = {}
    # In the order of the file each switch owns links before a switch of a higher tier does.
    for lower, _ in ends[hosts:]:
        switches.setdefault(lower, len(switches))
    leaf_of = np.array([switches[upper] for _, upper in ends[:hosts]], dtype=np.int64)
    leaves = int(leaf_of.max()) + 1
    down = np.full(hosts, NONE, dtype=np.int64)
    up_links: list[list[tuple[int, int]]] = [[] for _ in switches]
    tier = _tiers(ends, hosts, switches, leaves)
    between = np.full((len(switches), len(switches)), NONE, dtype=np.int64)
    members = np.zeros_like(between)
    for number, (owner, peer) in enumerate(ends[hosts:], start=hosts):
        if peer.startswith("host-"):
            down[int(peer[5:])] = number
            continue
        here, there = switches[owner], switches[peer]
        if tier[there] > tier[here]:
            up_links[here].append((number, there))
            continue
        if members[here, there] == 0:
            between[here, there] = number
        members[here, there] += 1
    widest = max(map(len, up_links), default=0)
    ups = np.full((len(switches), max(widest, 1)), NONE, dtype=np.int64)
    above = np.full_like(ups, NONE)
    for switch, found in enumerate(up_links):
        for place, (number, there) in enumerate(found):
            ups[switch, place], above[switch, place] = number, there
    pod_of, below = _pods(tier, above, between)
    return Network(
        names,
        list(switches),
        np.array(links["capacity_bps"], dtype=np.int64),
        _reverse(names, ends),
        leaf_of,
        np.arange(hosts, dtype=np.int64),
        down,
        ups,
        above,
        between,
        members,
        pod_of,
        below,
        leaves,
    )


def _reverse(names: list[str], ends: list[list[str]]) -> Numbers:
    """By link, the one from its end to its beginning."""
    number = {name: at for at, name in enumerate(names)}
    members = ["".join(name.partition("#")[1:]) for name in names]
    back = [f"{end} -> {start}{one}" for (start, end), one in zip(ends, members, strict=True)]
    if not number.keys() >= set(back):
        raise ExperimentError("plan: links: one has no way back; make the plan again")
    return np.array([number[name] for name in back], dtype=np.int64)


def _tiers(ends: list[list[str]], hosts: int, switches: dict[str, int], leaves: int) -> Numbers:
    """The tier of each switch: 0 leaves, 1 the switches above them, 2 all others."""
    tier = np.full(len(switches), 2, dtype=np.int64)
    tier[:leaves] = 0
    for owner, peer in ends[hosts:]:
        if not peer.startswith("host-") and switches[owner] < leaves:
            tier[switches[peer]] = 1
    return tier


def _pods(tier: Numbers, above: Numbers, between: Numbers) -> tuple[Numbers, Numbers]:
    """The pod of every switch below the top, and what is in each below each core."""
    pod_of = np.zeros(len(tier), dtype=np.int64)
    cores = np.flatnonzero(tier == 2)
    if not len(cores):
        return pod_of, np.full((len(tier), 1), NONE, dtype=np.int64)
    known: dict[int, int] = {}
    for leaf in np.flatnonzero(tier == 0):
        aggs = above[leaf][above[leaf] >= 0]
        pod = known.setdefault(int(aggs[0]), len(known))
        pod_of[leaf] = pod
        pod_of[aggs] = pod
    below = np.full((len(tier), len(known)), NONE, dtype=np.int64)
    for core in cores:
        for agg in np.flatnonzero(between[core] >= 0):
            below[core, pod_of[agg]] = agg
    return pod_of, below
