"""The namespaces, links, addresses and routes of a cluster, as lines for `ip` and `tc`.

`bed` runs these lines. Every host and switch is a namespace, every link a veth pair. Links between
leaves and spines are shaped by a token bucket at both ends, links of hosts are not. Neighbour
entries are static, so that only the traffic itself is on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft.cluster import FIRST_PORT, LAST_PORT, Cluster, Host, Link, Switch
from weft.errors import ExperimentError

BURST = 64 * 1024
"""Bytes that a link may send at once after it was idle."""
LIMIT = 2 * 1024 * 1024
"""Bytes of the queue of a link."""
HEADERS = 14 + 20 + 8
"""On every packet of an Ethernet link, as Linux counts: Ethernet, IPv4, UDP."""
DATA_HEADER = 48
ANSWER = 24
"""Bytes, as in crates/net/src/wire.rs."""

_FIVE_TUPLE = 0x37
"""Source and destination address, protocol, source and destination port."""
_INTERFACE = re.compile(r"[^/:\s]{1,15}")
_MOST_NODES = 400
"""Largest number of namespaces."""


@dataclass(frozen=True)
class Port:
    """One end of a link."""

    node: str
    name: str
    address: str
    mac: str
    rate_bps: int | None
    """None: not shaped."""
    peer: Link
    is_lower: bool


def check(cluster: Cluster) -> None:
    """Refuse what a bed cannot be.

    Raises:
        ExperimentError: With the reason.
    """
    if any(switch.tier == 2 for switch in cluster.switches):
        raise ExperimentError(
            'testbed: fabric.topology: three tiers are not supported; use topology = "leaf-spine"'
        )
    nodes = len(cluster.hosts) + len(cluster.switches)
    if nodes > _MOST_NODES:
        raise ExperimentError(
            f"testbed: fabric: {nodes} hosts and switches are more than the {_MOST_NODES} "
            "namespaces of a test bed; use fewer hosts"
        )
    if (cluster.first_port, cluster.last_port) != (FIRST_PORT, LAST_PORT):
        raise ExperimentError(
            f"testbed: cluster.first_port: hosts use the ports of RoCE, {FIRST_PORT} to "
            f"{LAST_PORT}, not {cluster.first_port} to {cluster.last_port}; leave first_port and "
            "last_port out"
        )
    for link in cluster.links:
        for name in (link.lower_port, link.upper_port):
            if not _INTERFACE.fullmatch(name):
                raise ExperimentError(
                    f"testbed: cluster: {name!r} of the link {link.lower} to {link.upper} is not "
                    "a Linux interface name; use up to 15 characters without / and :"
                )


def nodes(cluster: Cluster) -> list[str]:
    """Names of all nodes, switches first."""
    return [switch.node for switch in cluster.switches] + [host.node for host in cluster.hosts]


def present(cluster: Cluster) -> list[Link]:
    """Links that are there: those that are down are left out."""
    return [link for link in cluster.links if link.state != "down"]


def ports(cluster: Cluster) -> dict[str, list[Port]]:
    """The ports of every node, in the order of its links."""
    found: dict[str, list[Port]] = {node: [] for node in nodes(cluster)}
    for number, link in enumerate(cluster.links):
        if link.state == "down":
            continue
        rate = None if link.lower.startswith("host-") else link.rate_bps
        ends = (
            (link.lower, link.lower_port, link.lower_address, True),
            (link.upper, link.upper_port, link.upper_address, False),
        )
        for node, name, address, is_lower in ends:
            mac = f"02:00:{number >> 8 & 255:02x}:{number & 255:02x}:00:{1 if is_lower else 2:02x}"
            found[node].append(Port(node, name, address, mac, rate, link, is_lower))
    return found


def wires(cluster: Cluster, prefix: str) -> Iterator[str]:
    """Lines for `ip` that make the namespaces and the veth pairs between them."""
    for node in nodes(cluster):
        yield f"netns add {prefix}{node}"
    by_link: dict[int, list[Port]] = {}
    for of_node in ports(cluster).values():
        for port in of_node:
            by_link.setdefault(id(port.peer), []).append(port)
    for link in present(cluster):
        first, second = by_link[id(link)]
        one, other = (
            f"name {port.name} netns {prefix}{port.node} address {port.mac} mtu {mtu(cluster)}"
            for port in (first, second)
        )
        yield f"link add {one} type veth peer {other}"


def mtu(cluster: Cluster) -> int:
    """Of all links: payload, our header and those of IPv4 and UDP."""
    return max(cluster.mtu + DATA_HEADER + HEADERS - 14, 1500)


WRAPPING = 40
"""Bytes that an outer IPv6 header takes."""


def lengths(cluster: Cluster, node_ports: list[Port], more: int = 0) -> Iterator[str]:
    """Lines for `ip` inside a node: packets may be as long as ever, or longer by some bytes."""
    for port in node_ports:
        yield f"link set {port.name} mtu {mtu(cluster) + more}"


def neighbours(node_ports: list[Port], next_hops: Mapping[str, str]) -> Iterator[str]:
    """Lines for `ip` inside a node: IPv6 neighbours, by port."""
    for port in node_ports:
        if port.name in next_hops:
            mac = port.mac[:-2] + ("02" if port.is_lower else "01")
            there = next_hops[port.name]
            yield f"neigh replace {there} lladdr {mac} dev {port.name} nud permanent"


def addresses(node_ports: list[Port], node: Host | Switch) -> Iterator[str]:
    """Lines for `ip` inside a node: everything up, with addresses and neighbours."""
    yield "link set lo up"
    if isinstance(node, Switch) and node.gateway:
        yield f"addr add {node.gateway}/32 dev lo"
    for port in node_ports:
        yield f"link set {port.name} up"
        link = port.peer
        there = link.upper_address if port.is_lower else link.lower_address
        if isinstance(node, Host) or port.rate_bps is not None:
            yield f"addr add {port.address}/32 peer {there}/32 dev {port.name}"
        else:
            yield f"route add {there}/32 dev {port.name}"
        mac = port.mac[:-2] + ("02" if port.is_lower else "01")
        yield f"neigh replace {there} lladdr {mac} dev {port.name} nud permanent"


def routes(cluster: Cluster, node_ports: list[Port], node: Host | Switch) -> Iterator[str]:
    """Lines for `ip` inside a node: where everything else is, over all equal next hops."""
    up = [port for port in node_ports if port.is_lower]
    if up:
        yield f"route replace default {_hops(up)}"
    if isinstance(node, Switch) and node.tier == 1:
        for leaf in (switch for switch in cluster.switches if switch.tier == 0):
            down = [port for port in node_ports if port.peer.lower == leaf.node]
            if down:
                for rack in leaf.racks:
                    yield f"route replace {rack} {_hops(down)}"


def _hops(over: list[Port]) -> str:
    hops = []
    for port in over:
        link = port.peer
        there = link.upper_address if port.is_lower else link.lower_address
        hops.append(f"nexthop via {there} dev {port.name} onlink")
    return " ".join(hops)


def shape(port: Port, verb: str = "add") -> str:
    """A line for `tc` that gives a port its rate."""
    return (
        f"qdisc {verb} dev {port.name} root tbf rate {port.rate_bps}bit burst {BURST} limit {LIMIT}"
    )


def kernel(seed: int, number: int, is_switch: bool) -> dict[str, Any]:
    """Kernel parameters of a node; `number` tells switches apart, which hash differently."""
    values: dict[str, Any] = {"net/ipv6/conf/all/disable_ipv6": 1}
    values |= {f"net/ipv4/conf/{which}/rp_filter": 0 for which in ("all", "default")}
    if is_switch:
        values |= {"net/ipv4/ip_forward": 1}
        values |= {
            f"net/ipv4/conf/{which}/ignore_routes_with_linkdown": 1 for which in ("all", "default")
        }
        # Else answers to probes name the link of a bundle over which they leave themselves.
        values |= {"net/ipv4/icmp_errors_use_inbound_ifaddr": 1}
        values |= hashing(seed, number)
    return values


def hashing(seed: int, number: int) -> dict[str, Any]:
    """How a switch hashes: addresses, protocol and ports, under a seed that repeats.

    Fields are named one by one, though policy 1 has the same: that takes the hash which a packet
    of TCP has from its socket, as random as the socket drew it, and asks neither ports nor seed.
    """
    return {
        "net/ipv4/fib_multipath_hash_policy": 3,
        "net/ipv4/fib_multipath_hash_fields": _FIVE_TUPLE,
        "net/ipv4/fib_multipath_hash_seed": (seed * 4099 + number) % 0xFFFF_FFFF + 1,
    }
