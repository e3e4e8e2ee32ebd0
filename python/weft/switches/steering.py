"""What each switch has to do so that source ports choose uplinks: the same for every platform.

The ports whose traffic is steered, the prefixes that stay below, and for every link its next hop
and its source ports. Members of bundles are uplinks each; the switch above sends down over the
member by which the same ports go up, so that a path is the same both ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from weft.cluster import Cluster, Link, Protocol, Switch
from weft.switches.segments import Range, Segments

TABLES = 7000
"""Routing tables of Linux have numbers above this."""


@dataclass(frozen=True)
class SteeredLink:
    """A link and what goes over it: an uplink, or a member of a bundle down."""

    name: str
    """`U1`, or `D1` on the way down."""
    number: int
    """From one, uplinks first: distinct on a switch."""
    port: str
    next_hop: str
    to: str
    """The name of the switch at its other end."""
    up: bool
    """Whether it carries anything now."""
    ranges: Sequence[Range]
    dscp: int
    """Its DSCP, on platforms where the DSCP chooses the path."""
    prefixes: Sequence[str] = ()
    """What goes over it has these destinations; none: all that is not below."""

    @property
    def text(self) -> str:
        """Its source ports, for people."""
        return ", ".join(f"{first}-{last}" for first, last in self.ranges)

    @property
    def rules(self) -> list[tuple[str, Range]]:
        """A name of its own for each range."""
        if len(self.ranges) == 1:
            return [(self.name, self.ranges[0])]
        return [(f"{self.name}-{number}", one) for number, one in enumerate(self.ranges, 1)]

    @property
    def table(self) -> int:
        """A routing table of its own; VRFs have those from 1001 on (ifupdown2), and rule 1000."""
        return TABLES + self.number


@dataclass(frozen=True)
class Steering:
    """The steering of one switch: the input of a template."""

    title: str
    name: str
    node: str
    what: str
    """`leaf`, `spine`, `aggregation switch` or `core`."""
    dscp: int
    protocol: Protocol
    """Protocol of the steered traffic."""
    port: int
    """The first of its destination ports."""
    ports: int
    """Number of destination ports."""
    inputs: Sequence[str]
    """Ports whose traffic is steered."""
    local: Sequence[str]
    """Prefixes below, which no rule for an uplink may catch; none without uplinks."""
    uplinks: Sequence[SteeredLink]
    bundles: Sequence[SteeredLink]
    """Members of bundles down, those to one switch side by side."""
    spare: Sequence[Range] = field(default=())
    """Ports in the range of the cluster that no segment has."""

    @property
    def last_to_port(self) -> int:
        """The last destination port."""
        return self.port + self.ports - 1

    @property
    def to_ports(self) -> str:
        """The destination ports: one, or first and last with a dash between."""
        return f"{self.port}-{self.last_to_port}" if self.ports > 1 else str(self.port)

    @property
    def protocol_number(self) -> int:
        """The number of the protocol in IPv4."""
        return {"udp": 17, "tcp": 6}[self.protocol]

    @property
    def links(self) -> list[SteeredLink]:
        """Uplinks and members of bundles."""
        return [*self.uplinks, *self.bundles]

    @property
    def port_names(self) -> list[str]:
        """All ports that its files name."""
        return [*self.inputs, *(link.port for link in self.links)]

    @property
    def live_up(self) -> list[SteeredLink]:
        """The uplinks that are not down."""
        return [link for link in self.uplinks if link.up]

    @property
    def live_down(self) -> list[SteeredLink]:
        """The members of bundles that are not down."""
        return [link for link in self.bundles if link.up]

    @property
    def live(self) -> list[SteeredLink]:
        """Uplinks and members of bundles that are not down."""
        return [link for link in self.links if link.up]

    @property
    def port_ranges(self) -> int:
        """How many different ranges of ports its rules have; destination ports may be one more."""
        source = {ports for link in self.live for ports in link.ranges}
        return len(source) + (self.ports > 1)

    @property
    def below(self) -> list[tuple[Sequence[str], list[SteeredLink]]]:
        """Live members of bundles by the prefixes that they lead to."""
        grouped = groupby(self.live_down, key=lambda link: tuple(link.prefixes))
        return [(prefixes, list(links)) for prefixes, links in grouped]


def of(cluster: Cluster, found: Segments) -> list[Steering]:
    """The steering of every switch that steers."""
    return [_steering(cluster, found, switch) for switch in _switches(cluster, found)]


def _switches(cluster: Cluster, found: Segments) -> list[Switch]:
    """Those with segments, and those with bundles to them."""
    return [
        switch
        for switch in cluster.switches
        if switch.node in found or _bundled(cluster, found, switch)
    ]


def _bundled(cluster: Cluster, found: Segments, switch: Switch) -> list[Link]:
    """The links below that are members of bundles and whose lower ends have segments."""
    links = [link for link in cluster.downlinks[switch.node] if link.lower in found]
    members = Counter(link.lower for link in links)
    return [link for link in links if members[link.lower] > 1]


def _steering(cluster: Cluster, found: Segments, switch: Switch) -> Steering:
    up = cluster.uplinks.get(switch.node, ()) if switch.node in found else ()
    bundled = _bundled(cluster, found, switch)
    ports = [link.upper_port for link in cluster.downlinks[switch.node]]
    if bundled:
        # What comes from above goes down over a bundle as well.
        ports += [link.lower_port for link in cluster.uplinks.get(switch.node, ())]
    return Steering(
        title=" ".join(cluster.title.split()),
        name=switch.name,
        node=switch.node,
        what=_what(cluster, switch),
        dscp=cluster.dscp,
        protocol=cluster.protocol,
        port=cluster.port,
        ports=cluster.ports,
        inputs=ports,
        local=switch.racks if up else (),
        uplinks=[_uplink(cluster, found, index, link) for index, link in enumerate(up)],
        bundles=[
            _member(cluster, found, len(up) + number, number, link)
            for number, link in enumerate(bundled, 1)
        ],
        spare=_spare(cluster, found[switch.node]) if switch.tier == 0 else (),
    )


def _what(cluster: Cluster, switch: Switch) -> str:
    two_tiers = cluster.switches[-1].tier == 1
    return ("leaf", "spine" if two_tiers else "aggregation switch", "core")[switch.tier]


def _uplink(cluster: Cluster, found: Segments, index: int, link: Link) -> SteeredLink:
    return SteeredLink(
        name=f"U{index + 1}",
        number=index + 1,
        port=link.lower_port,
        next_hop=link.upper_address,
        to=cluster.by_node[link.upper].name,
        up=link.state != "down",
        ranges=found[link.lower][index],
        dscp=cluster.dscp + index,
    )


def _member(cluster: Cluster, found: Segments, number: int, place: int, link: Link) -> SteeredLink:
    """Down over the member by which the same ports go up."""
    index = cluster.uplinks[link.lower].index(link)
    lower = cluster.by_node[link.lower]
    return SteeredLink(
        name=f"D{place}",
        number=number,
        port=link.upper_port,
        next_hop=link.lower_address,
        to=lower.name,
        up=link.state != "down",
        ranges=found[link.lower][index],
        dscp=cluster.dscp + index,
        prefixes=lower.racks if isinstance(lower, Switch) else (),
    )


def _spare(cluster: Cluster, ranges: list[list[Range]]) -> list[Range]:
    """What lies between and behind the segments."""
    spare, start = [], cluster.first_port
    for first, last in sorted(one for each in ranges for one in each):
        if first > start:
            spare.append((start, first - 1))
        start = max(start, last + 1)
    if start <= cluster.last_port:
        spare.append((start, cluster.last_port))
    return spare
