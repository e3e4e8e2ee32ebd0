"""Rules that make a leaf send each segment of source ports over its own uplink, as lines for `ip`.

For UDP and TCP (DNLB, paper 003, section 3). What is for the own rack, or comes from above, is
routed as ever. So is a segment whose uplink is dead: its table is empty then, and the next rule is
that of the main table, ECMP. The kernel drops the route of a table with its link and does not bring
it back: `tables` does.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.cluster import Cluster, Switch
from weft.testbed.layout import Port

PORTS = 0x4000
FIRST = 0xC000
_OWN_RACK, _FROM_ABOVE, _SEGMENTS = 900, 910, 1000
_TABLES = 100


def segments(cluster: Cluster, leaf: str) -> list[tuple[int, int]]:
    """First and last source port of each uplink of a leaf, those that are down included.

    As `crates/balance/src/scheme/dnlb.rs` cuts them; the last port of all stays unused, since
    `ip rule` takes no range that ends at 65535.
    """
    count = len(cluster.uplinks[leaf])
    step = PORTS // count
    firsts = [FIRST + number * step for number in range(count)]
    return [(first, min(first + step - 1, 65_534)) for first in firsts]


def rules(cluster: Cluster, leaf: Switch, ports: list[Port]) -> Iterator[str]:
    """Lines that add the rules of a leaf."""
    for rack in leaf.racks:
        yield f"rule add pref {_OWN_RACK} to {rack} lookup main"
    for port in ports:
        if port.is_lower:
            yield f"rule add pref {_FROM_ABOVE} iif {port.name} lookup main"
    for number, (first, last) in enumerate(segments(cluster, leaf.node)):
        for protocol in ("udp", "tcp"):
            yield (
                f"rule add pref {_SEGMENTS + number} ipproto {protocol} sport {first}-{last} "
                f"dport {cluster.port} lookup {_TABLES + number}"
            )


def without(cluster: Cluster, leaf: Switch, ports: list[Port]) -> Iterator[str]:
    """Lines that take them away."""
    for line in rules(cluster, leaf, ports):
        yield line.replace("rule add", "rule del", 1)


def tables(cluster: Cluster, leaf: str, ports: list[Port]) -> Iterator[str]:
    """Lines that give each segment's table its route, of the uplinks that are there."""
    there = {(port.peer.upper, port.peer.member): port for port in ports if port.is_lower}
    for number, link in enumerate(cluster.uplinks[leaf]):
        port = there.get((link.upper, link.member))
        if port is not None:
            via = f"via {link.upper_address} dev {port.name} onlink"
            yield f"route replace default {via} table {_TABLES + number}"
