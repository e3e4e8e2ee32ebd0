"""What a plan has for other software: how much each uplink gets, and the ports of two hosts.

Software with one list of ports for all peers cannot send each message over its planned path. What
it can keep is how much each uplink of a leaf carries: its queue pairs get ports in proportion.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import cluster as clusters
from weft.cluster import FIRST_PORT, LAST_PORT, Cluster
from weft.errors import ExperimentError
from weft.plans import hosts, network, pairs, verify
from weft.plans.file import Plan
from weft.plans.network import Numbers
from weft.switches import segments
from weft.switches.segments import Range, Segments

_MANY = 32
"""Queue pairs between two hosts, unless a plan has more: NICs become slow with very many."""
MOST_SLOTS = 128
"""The same where a plan has more."""
Demand = tuple[Numbers, Numbers, Numbers]
"""Senders, receivers, and bytes between them."""
_NUMBERS = 1 << 24
"""Numbers of queue pairs."""


class Planned:
    """A plan, as software sees it that has queue pairs of its own."""

    def __init__(self, plan: Plan) -> None:
        """Read the pieces of a plan; those that it does not hold are planned again.

        Raises:
            ExperimentError: Its cluster does not send RoCEv2.
        """
        self.plan = plan
        self.cluster: Cluster = clusters.from_json(plan["cluster"], "plan")
        if self.cluster.protocol != "udp":
            raise ExperimentError(
                "--hosts-for: the software sends RoCEv2, and cluster.protocol is "
                f'"{self.cluster.protocol}"; set it to "udp"'
            )
        self.net = network.of(plan["links"])
        self.demands: list[Demand] = []
        """By step."""
        self._counted: dict[tuple[int, bool], dict[int, int]] = {}
        self._slots: dict[tuple[int, int | None], list[int]] = {}
        self._draw = 0
        self._first_numbers = self._draw_numbers()
        found = [self._read(number, step) for number, step in enumerate(plan["steps"])]
        self._pairs, self._ways = pairs.all_of(found)
        # What stays in a pod chooses no uplink of an aggregation switch.
        self._shares = {leaf: of for (leaf, _), of in sorted(self._counted.items())}
        count = len(self.net.leaf_of)
        self._rows = np.searchsorted(self._pairs, np.arange(count * count + 1))
        """By pair of hosts: the first of its rows."""
        self._row_ports = self._ways >> 16
        self._backwards = np.unique(self._pairs % count << 32 | self._pairs // count)
        """Receivers and their senders."""
        self._ports = self._path_ports()
        self.most_pairs = pairs.most(self._pairs)
        """The most planned queue pairs between two hosts."""

    @property
    def traffic_class(self) -> int:
        """The traffic class that gives packets the DSCP which switches steer by."""
        return self.cluster.dscp << 2

    @property
    def has_segments(self) -> bool:
        """Whether switches know an uplink by the source port."""
        return bool(self._ports)

    def pair(self, src: int, dst: int) -> list[int]:
        """The planned source ports from a host to another, ascending."""
        pair = src * len(self.net.leaf_of) + dst
        ports = self._row_ports[self._rows[pair] : self._rows[pair + 1]].tolist()
        return self.spread(len(ports)) if 0 in ports else list(dict.fromkeys(ports))

    def peers(self, src: int) -> list[int]:
        """The hosts to which a host sends, ascending."""
        count = len(self.net.leaf_of)
        rows = slice(self._rows[src * count], self._rows[(src + 1) * count])
        return list(map(int, np.unique(self._pairs[rows] % count)))

    def senders(self, dst: int) -> list[int]:
        """The hosts that send to a host, ascending."""
        first, end = np.searchsorted(self._backwards, np.array((dst, dst + 1)) << 32)
        return list(map(int, self._backwards[first:end] & 0xFFFF_FFFF))

    def places(self, src: int) -> list[int]:
        """By peer of a host: which of the peer's senders it is, from zero."""
        peers = np.array(self.peers(src), dtype=np.int64) << 32
        return list(
            map(int, np.diff(np.searchsorted(self._backwards, (peers, peers | src)), axis=0)[0])
        )

    @functools.cached_property
    def environment(self) -> dict[str, str]:
        """NCCL's variables, as the plan has them."""
        return hosts.environment(self.cluster, self.most_pairs)

    def slots(self, host: int, count: int | None = None) -> list[int]:
        """Ports for `count` queue pairs to every peer, over uplinks as the plan loads them.

        Unless told as many as the leaf with most paths has: alike for all hosts, since software
        may refuse a peer with another number. Hosts begin at different places, so those of a pod
        together fill its uplinks in proportion, also where each has fewer ports than there are.
        """
        if (host, count) not in self._slots:
            self._slots[host, count] = self._new_slots(host, count or self._usual_count)
        return self._slots[host, count]

    @functools.cached_property
    def _usual_count(self) -> int:
        ways = max(len(self._leading(host)) for host in range(len(self.cluster.hosts)))
        if not ways:
            return min(self.most_pairs, MOST_SLOTS)
        return min(ways, max(_MANY, self.most_pairs), MOST_SLOTS)

    def _new_slots(self, host: int, count: int) -> list[int]:
        leaf = int(self.net.leaf_of[host])
        shares = self._leading(host)
        if not shares:
            return self.spread(count)
        ways = sorted(shares)
        upto = np.cumsum([shares[way] for way in ways], dtype=np.float64)
        places = (np.arange(count) + self._offset(host)) / count * upto[-1]
        found = np.searchsorted(upto, places, side="right")
        return [self._ports[leaf, ways[min(int(way), len(ways) - 1)]] for way in found]

    def _leading(self, host: int) -> dict[int, int]:
        """Bytes by path, of those whose rules lead to every peer of a host; of all if none do.

        A list is for all peers, and a rule knows the links of its own switch only. Nothing where
        no port stands for a path.
        """
        net, leaf = self.net, int(self.net.leaf_of[host])
        shares = self._shares.get(leaf, {}) if self._ports else {}
        if (net.capacities > 0).all():
            return shares
        leaves = np.unique(net.leaf_of[self.peers(host)])
        leaves = leaves[leaves != leaf]
        far = leaves[net.pod_of[leaves] != net.pod_of[leaf]]

        def leads(way: int) -> bool:
            first, second = way >> 8, way & 0xFF
            above = int(net.above[leaf, first])
            steers = net.switches[above] in self.plan["segments"]
            beyond = self._reachable[above, second, far] if steers and len(far) else True
            return bool(np.all(self._reachable[leaf, first, leaves]) and np.all(beyond))

        return {way: share for way, share in shares.items() if leads(way)} or shares

    @functools.cached_property
    def _reachable(self) -> NDArray[np.bool_]:
        return self.net.reachable()

    def _offset(self, host: int) -> float:
        """Where a host begins, below one: each of a leaf elsewhere, and of the leaves of a pod."""
        leaf = int(self.net.leaf_of[host])
        below = int((self.net.leaf_of == leaf).sum())
        leaves = np.flatnonzero(self.net.pod_of[: self.net.leaves] == self.net.pod_of[leaf])
        among = (int(np.searchsorted(leaves, leaf)) + 0.5) / len(leaves)
        return (self.cluster.hosts[host].place + among) / below

    @staticmethod
    def spread(count: int) -> list[int]:
        """Ports at equal distances, where none stands for an uplink."""
        return [
            FIRST_PORT + number * (LAST_PORT - FIRST_PORT + 1) // count for number in range(count)
        ]

    def draw(self, number: int) -> None:
        """Draw the numbers of queue pairs anew."""
        self._draw = number
        self._first_numbers = self._draw_numbers()

    def driver_ports(self, src: int, dst: int, count: int) -> list[int]:
        """The ports that RDMA drivers derive where a program names none.

        From the product of the numbers of both queue pairs (`rdma_get_udp_sport` of Linux). NICs
        count these up from a first one, which is drawn, peer by peer: one way, then the other.
        """
        local = int(self._first_numbers[src]) + 2 * dst * count
        remote = int(self._first_numbers[dst]) + (2 * src + 1) * count
        return [driver_port(local + one, remote + one) for one in range(count)]

    def _draw_numbers(self) -> Numbers:
        random = np.random.default_rng([self.plan["seed"], self._draw])
        return random.integers(1, _NUMBERS // 2, len(self.cluster.hosts), dtype=np.int64)

    def _read(self, number: int, step: dict[str, Any]) -> NDArray[np.uint64]:
        """Bytes of a step by pair of hosts, and by leaf and path; its queue pairs, packed."""
        count = len(self.net.leaf_of)
        sums, amounts, packed = [], [], []
        for pieces in verify.pieces_of(self.plan, number):
            # Blocks have senders of their own, so no pair is in two of them.
            names, total = _sums(pieces["src"] * count + pieces["dst"], pieces["bytes"])
            sums.append(names)
            amounts.append(total)
            packed.append(pairs.of_pieces(pieces, count))
            self._share(pieces, step["times"])
        both = np.concatenate([np.empty(0, dtype=np.int64), *sums])
        sizes = np.concatenate([np.empty(0, dtype=np.int64), *amounts])
        self.demands.append((both // count, both % count, sizes))
        return np.concatenate([np.empty(0, dtype=np.uint64), *packed])

    def _share(self, pieces: dict[str, Numbers], times: int) -> None:
        """Count what goes up from each leaf by each path, within its pod and out of it."""
        leaf, other = (self.net.leaf_of[pieces[end]] for end in ("src", "dst"))
        across = self.net.pod_of[leaf] != self.net.pod_of[other]
        key = (leaf << 1 | across) << 16 | pieces["path"]
        ways, sums = _sums(key[leaf != other], pieces["bytes"][leaf != other])
        for way, amount in zip(ways.tolist(), sums.tolist(), strict=True):
            mine = self._counted.setdefault((way >> 17, bool(way >> 16 & 1)), {})
            mine[way & 0xFFFF] = mine.get(way & 0xFFFF, 0) + times * amount

    def _path_ports(self) -> dict[tuple[int, int], int]:
        """The first port of each path that is used, by leaf and path."""
        if self.plan["enforce"] != "segments":
            return {}
        found = segments.of_plan(self.plan, self.cluster, "plan")
        return {
            (leaf, way): self._first_port(found, leaf, way)
            for leaf, ways in self._shares.items()
            for way in ways
        }

    def _first_port(self, found: Segments, leaf: int, way: int) -> int:
        """The first port that goes up over the uplinks of a path."""
        first, second = way >> 8, way & 0xFF
        ranges = found[self.net.switches[leaf]][first]
        above = found.get(self.net.switches[int(self.net.above[leaf, first])])
        if above is not None and second < len(above):
            ranges = _both(ranges, above[second]) or ranges
        return min(port for port, _ in ranges)


def driver_port(local: int, remote: int) -> int:
    """The source port of a queue pair for which a program names no flow label.

    As the kernel's `rdma_calc_flow_label` and `rdma_flow_label_to_udp_sport` have it.
    """
    value = local * remote & 0xFFFF_FFFF_FFFF_FFFF
    value ^= value >> 20
    value ^= value >> 40
    label = value & 0xF_FFFF
    return (label & 0x3FFF) ^ (label >> 14) | FIRST_PORT


def _both(one: list[Range], other: list[Range]) -> list[Range]:
    """The ports that are in both."""
    common = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(first, last) for first, last in common if first <= last]


def _sums(keys: Numbers, amounts: Numbers) -> tuple[Numbers, Numbers]:
    """Different keys, ascending, and the sum of the amounts of each."""
    names, places = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(names), dtype=np.int64)
    np.add.at(totals, places, amounts)
    return names, totals
