"""Discovered paths by the names of a cluster's switches; the core names them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster
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
    link = cluster.uplinks[f"leaf-{cluster.hosts[path.src].leaf}"][path.uplink]
    names = [_link(cluster, link.upper, link.member, len(_between(cluster, link)))]
    above = cluster.uplinks.get(link.upper, ())
    if above and len(above) > path.path & 255 and _pods_differ(cluster, path):
        second = above[path.path & 255]
        names.append(_link(cluster, second.upper, second.member, len(_between(cluster, second))))
    return " ".join(names)


def _pods_differ(cluster: Cluster, path: NamedPath) -> bool:
    pods = [cluster.switches[cluster.hosts[one].leaf].pod for one in (path.src, path.dst)]
    return pods[0] != pods[1]


def _between(cluster: Cluster, link: clusters.Link) -> Sequence[clusters.Link]:
    return [one for one in cluster.uplinks[link.lower] if one.upper == link.upper]


def _link(cluster: Cluster, node: str, member: int, members: int) -> str:
    name = cluster.by_node[node].name
    return f"{name}#{member}" if members > 1 else name
