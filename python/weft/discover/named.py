"""Discovered paths by the names of a cluster's switches; the core names them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host, Switch
from weft.discover.table import Table


@dataclass(frozen=True)
class NamedPath:
    """A path between two hosts of a cluster."""

    src: int
    """Number of a host."""
    dst: int
    path: int
    """Path id: the uplink of the leaf, times 256, and that of the switch above it or the member."""
    ports: tuple[int, ...]

    @property
    def uplink(self) -> int:
        """The uplink of the leaf."""
        return self.path >> 8


@dataclass(frozen=True)
class Named:
    """What a table says of a cluster."""

    paths: tuple[NamedPath, ...]
    strangers: tuple[str, ...]
    """Addresses that answered, and are none of the cluster's."""
    unnamed: int
    """Ports whose path could not be named."""


def of(cluster: Cluster, table: Table, source: str = "paths") -> Named:
    """Name the paths of a table.

    Raises:
        ExperimentError: It is no table.
    """
    rows, strangers, unnamed = _native.named_paths(
        json.dumps(clusters.as_json(cluster)), json.dumps(table), source
    )
    paths = tuple(NamedPath(src, dst, path, tuple(ports)) for src, dst, path, ports in rows)
    return Named(paths, tuple(strangers), unnamed)


def by_port(cluster: Cluster, table: Table) -> dict[tuple[str, str, int], str]:
    """The switches that each port leads over, by source address, target address and port."""
    hosts = cluster.hosts
    return {
        (hosts[path.src].address, hosts[path.dst].address, port): via(cluster, path)
        for path in of(cluster, table).paths
        for port in path.ports
    }


def via(cluster: Cluster, path: NamedPath) -> str:
    """The switches above the leaf that a path leads over."""
    taken = links(cluster, cluster.hosts[path.src], cluster.hosts[path.dst], path.path)
    names = (_link(cluster, one.upper, one.member, len(_between(cluster, one))) for one in taken)
    return " ".join(names)


def links(cluster: Cluster, src: Host, dst: Host, path: int) -> list[clusters.Link]:
    """The uplinks that a path id takes: that of the leaf, and one more to another pod."""
    first = cluster.uplinks[f"leaf-{src.leaf}"][path >> 8]
    if not pods_differ(cluster, src, dst):
        return [first]
    return [first, cluster.uplinks[first.upper][path & 255]]


def pods_differ(cluster: Cluster, src: Host, dst: Host) -> bool:
    """Whether hosts are in different pods."""
    pods = [cluster.switches[host.leaf].pod for host in (src, dst)]
    return pods[0] != pods[1]


def doubt(cluster: Cluster) -> str | None:
    """What to mind of the paths of a cluster: members of bundles, if it has some."""
    bundles = (link for link in cluster.links if link.member > 0)
    link = next((one for one in bundles if isinstance(cluster.by_node[one.lower], Switch)), None)
    if link is None:
        return None
    lower, upper = (cluster.by_node[node].name for node in (link.lower, link.upper))
    return (
        f"{lower} to {upper}: which link of a bundle a port takes is right only if switches answer "
        "from the link over which they are asked; Linux (SONiC, Cumulus) answers from any: "
        "set net.ipv4.icmp_errors_use_inbound_ifaddr=1 at switches"
    )


def _between(cluster: Cluster, link: clusters.Link) -> Sequence[clusters.Link]:
    return [one for one in cluster.uplinks[link.lower] if one.upper == link.upper]


def _link(cluster: Cluster, node: str, member: int, members: int) -> str:
    name = cluster.by_node[node].name
    return f"{name}#{member}" if members > 1 else name
