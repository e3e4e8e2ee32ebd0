"""Counters of the kernel at the links between switches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from weft.cluster import Cluster
from weft.testbed import layout, system


@dataclass(frozen=True)
class LinkCounters:
    """One direction of a link between switches."""

    sender: str
    receiver: str
    member: int
    up: bool
    """From a leaf to a spine."""
    rate_bps: int
    bytes: int
    """That left, headers of Ethernet included."""
    packets: int
    drops: int
    """At the queue before it."""

    def since(self, before: LinkCounters) -> LinkCounters:
        """What came after `before`."""
        changed = {
            key: getattr(self, key) - getattr(before, key) for key in ("bytes", "packets", "drops")
        }
        return LinkCounters(**(asdict(self) | changed))


def read(cluster: Cluster, prefix: str) -> list[LinkCounters]:
    """All of them, switch by switch."""
    ports = layout.ports(cluster)
    found = []
    for switch in cluster.switches:
        name = prefix + switch.node
        stats = _by_name(system.ask("ip", "-s", "-j", "link", namespace=name), "ifname")
        queues = _by_name(system.ask("tc", "-s", "-j", "qdisc", namespace=name), "dev")
        for port in ports[switch.node]:
            if port.rate_bps is None:
                continue
            link = port.peer
            ends = (link.lower, link.upper) if port.is_lower else (link.upper, link.lower)
            sent = stats[port.name]["stats64"]["tx"]
            drops = int(queues.get(port.name, {}).get("drops", 0))
            found.append(
                LinkCounters(
                    *ends,
                    link.member,
                    port.is_lower,
                    port.rate_bps,
                    int(sent["bytes"]),
                    int(sent["packets"]),
                    drops,
                )
            )
    return found


def sent_up(cluster: Cluster, prefix: str, leaf: str) -> int:
    """Bytes that the uplinks of a leaf have sent so far: quick to ask for."""
    stats = _by_name(system.ask("ip", "-s", "-j", "link", namespace=prefix + leaf), "ifname")
    names = [port.name for port in layout.ports(cluster)[leaf] if port.is_lower]
    return sum(int(stats[name]["stats64"]["tx"]["bytes"]) for name in names)


def between(before: Sequence[LinkCounters], after: Sequence[LinkCounters]) -> list[LinkCounters]:
    """What came in between."""
    return [late.since(early) for early, late in zip(before, after, strict=True)]


def _by_name(text: str, key: str) -> dict[str, Any]:
    return {row[key]: row for row in json.loads(text) if key in row}
