"""Paths that hosts write into the destination: SRv6 with micro segments (uSID), static.

A host wraps a packet in IPv6 whose destination is the block, then 16 bits for each switch of the
path after the first leaf: the spine and the receiver's leaf, and what that leaf is to do. A switch
that finds its own number first (uN) takes it out and looks the rest up; the last leaf unwraps
(uDT4). So switches have a route to each neighbour and no rule about ports; nothing is hashed.
Hosts choose by source port here, so that what plans with segments works as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network

from weft.cluster import Cluster, Host, Link, Protocol, Switch
from weft.errors import ExperimentError
from weft.switches.segments import Range, Segments
from weft.switches.steering import TABLES

BLOCK = "fcbb:bb00::/32"
"""The block of locators unless another is named."""
UNWRAP = 0xFE04
"""The function of a leaf that takes the outer header off."""
_LINKS = IPv6Network("fd57:6566:7400::/48")
"""Addresses of links: a /127 each, by its number."""
_UNICAST = tuple(map(IPv6Network, ("2000::/3", "fc00::/7", "5f00::/16")))
"""Where blocks may be: global unicast, unique local, and the one for segments (RFC 9602)."""


@dataclass(frozen=True)
class Neighbour:
    """The route to a switch, or the end of a link to a host."""

    port: str
    own: str
    """The address of this end, with its length."""
    next_hop: str
    locator: str | None
    """Of the switch at the other end; None: a host."""
    name: str


@dataclass(frozen=True)
class Locator:
    """What a switch is in SRv6: the input of a template."""

    title: str
    name: str
    node: str
    what: str
    """`leaf` or `spine`."""
    prefix: str
    """Its locator and micro segment, a /48."""
    unwrap: str | None
    """The segment that ends a path here, a /64; None: no path ends here."""
    neighbours: Sequence[Neighbour]

    @property
    def address(self) -> str:
        """The locator without its length."""
        return self.prefix.partition("/")[0]

    @property
    def port_names(self) -> list[str]:
        """All ports that its files name."""
        return [one.port for one in self.neighbours]

    @property
    def routes(self) -> list[Neighbour]:
        """The neighbours that are switches."""
        return [one for one in self.neighbours if one.locator]


@dataclass(frozen=True)
class HostPath:
    """A path of a host: what a table of its own is for."""

    table: int
    uplink: int
    spine: str
    ranges: Sequence[Range]
    routes: Sequence[tuple[str, str]]
    """Racks and the destination of the outer header."""


@dataclass(frozen=True)
class Wrapping:
    """How a host wraps what it sends: the input of a template."""

    title: str
    name: str
    node: str
    interface: str
    source: str | None
    """What has this address, where its server has several NICs; None: all that the host sends."""
    own: str
    gateway: str
    table: int
    """Where the outer header is looked up, if it is not table main."""
    block: str
    protocol: Protocol
    to_ports: str
    paths: Sequence[HostPath]

    @property
    def port_names(self) -> list[str]:
        """All ports that its files name."""
        return [self.interface]

    @property
    def address(self) -> str:
        """Its own address without the length."""
        return self.own.partition("/")[0]


def of(
    cluster: Cluster, found: Segments, block: str = BLOCK
) -> tuple[list[Locator], list[Wrapping]]:
    """The segments of every switch, and how every host wraps its packets.

    Raises:
        ExperimentError: The fabric or the block does not do.
    """
    net = _network(block)
    _check(cluster)
    switches = [_locator(cluster, net, switch) for switch in cluster.switches]
    return switches, [_wrapping(cluster, found, net, host) for host in cluster.hosts]


def _network(block: str) -> IPv6Network:
    try:
        net = IPv6Network(block)
    except ValueError:
        net = None
    if net is None or net.prefixlen != 32:
        raise ExperimentError(f"--srv6-block: {block!r} is no IPv6 prefix of 32 bits; use {BLOCK}")
    if not any(map(net.subnet_of, _UNICAST)):
        raise ExperimentError(
            f"--srv6-block: {block} is neither global unicast nor unique local; use {BLOCK}"
        )
    return net


def _check(cluster: Cluster) -> None:
    if any(switch.tier == 2 for switch in cluster.switches):
        raise ExperimentError(
            "--enforce srv6: two tiers only, so far; use --enforce segments for three"
        )
    ends = [(link.lower, link.upper) for link in cluster.links]
    if len(set(ends)) < len(ends):
        raise ExperimentError(
            "--enforce srv6: a switch is one segment, so members of a bundle cannot be told apart; "
            "use --enforce addresses where links_per_pair is more than 1"
        )


def _segment(net: IPv6Network, *segments: int) -> IPv6Address:
    """The block, and micro segments behind it."""
    value = int(net.network_address)
    for place, segment in enumerate(segments):
        value |= segment << (80 - 16 * place)
    return IPv6Address(value)


def _number(switch: Switch) -> int:
    """Zero would end the list of segments."""
    return switch.number + 1


def _locator(cluster: Cluster, net: IPv6Network, switch: Switch) -> Locator:
    is_leaf = switch.tier == 0
    unwrap = f"{_segment(net, _number(switch), UNWRAP)}/64" if is_leaf else None
    return Locator(
        title=" ".join(cluster.title.split()),
        name=switch.name,
        node=switch.node,
        what="leaf" if is_leaf else "spine",
        prefix=f"{_segment(net, _number(switch))}/48",
        unwrap=unwrap,
        neighbours=[
            _neighbour(cluster, net, number, link, switch)
            for number, link in enumerate(cluster.links)
            if switch.node in (link.lower, link.upper) and link.state != "down"
        ],
    )


def _neighbour(
    cluster: Cluster, net: IPv6Network, number: int, link: Link, switch: Switch
) -> Neighbour:
    lower, upper = _ends(number)
    goes_up = link.lower == switch.node
    other = cluster.by_node[link.upper if goes_up else link.lower]
    return Neighbour(
        port=link.lower_port if goes_up else link.upper_port,
        own=f"{lower if goes_up else upper}/127",
        next_hop=str(upper if goes_up else lower),
        locator=f"{_segment(net, _number(other))}/48" if isinstance(other, Switch) else None,
        name=other.name,
    )


def _ends(number: int) -> tuple[IPv6Address, IPv6Address]:
    """The addresses of a link: its lower and its upper end."""
    first = int(_LINKS.network_address) | number << 64 | 2
    return IPv6Address(first), IPv6Address(first + 1)


def _wrapping(cluster: Cluster, found: Segments, net: IPv6Network, host: Host) -> Wrapping:
    own, gateway = _ends(host.number)
    leaf = f"leaf-{host.leaf}"
    last = cluster.port + cluster.ports - 1
    up = cluster.uplinks.get(leaf, ())
    # NICs of one server share its rules and tables.
    first = TABLES + 1 + host.rail * (len(up) + 1)
    return Wrapping(
        title=" ".join(cluster.title.split()),
        name=host.name,
        node=host.node,
        interface=host.interface,
        source=host.address if cluster.nics > 1 else None,
        own=f"{own}/127",
        gateway=str(gateway),
        table=first + len(up),
        block=str(net),
        protocol=cluster.protocol,
        to_ports=f"{cluster.port}-{last}" if cluster.ports > 1 else str(cluster.port),
        paths=[
            _path(cluster, found[leaf][number], net, number, link, first + number)
            for number, link in enumerate(up)
            if link.state != "down"
        ],
    )


def _path(
    cluster: Cluster,
    ranges: Sequence[Range],
    net: IPv6Network,
    number: int,
    link: Link,
    table: int,
) -> HostPath:
    """By the spine behind an uplink, to all racks that it leads to."""
    spine = cluster.by_node[link.upper]
    if not isinstance(spine, Switch):
        raise AssertionError
    routes = []
    for below in cluster.downlinks[link.upper]:
        other = cluster.by_node[below.lower]
        if isinstance(other, Switch) and other.node != link.lower and below.state != "down":
            to = str(_segment(net, _number(spine), _number(other), UNWRAP))
            routes += [(rack, to) for rack in other.racks]
    return HostPath(table, number + 1, spine.name, ranges, routes)
