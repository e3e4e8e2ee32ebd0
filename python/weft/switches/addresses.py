"""Plain routes that keep each path apart by destination address: resilient load balancing, RLB.

Every host has an address for each uplink of a leaf (`[cluster] path_addresses`). A leaf routes all
addresses of an uplink over it, and the switch above sends down over the same link of a bundle. Each
such route has a second one behind it, of a higher metric, over all other links: it takes over where
the first has lost its link. Which addresses there are, the core says
(`crates/config/src/cluster/path_addresses.rs`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host, Link, Switch
from weft.errors import ExperimentError

NETWORK = "172.16.0.0/12"
"""Where addresses of paths are on a test bed whose cluster names no network."""


MISSING = (
    "cluster.path_addresses: missing, so hosts have one address each; add "
    f'path_addresses = "{NETWORK}" to [cluster]'
)
"""What is said of a cluster without addresses of paths."""


@dataclass(frozen=True)
class Hop:
    """Where a route leads."""

    port: str
    """Empty: that of the next hop, which is a host in the rack."""
    next_hop: str


@dataclass(frozen=True)
class Route:
    """A route of a switch."""

    prefix: str
    hops: Sequence[Hop]
    spare: Sequence[Hop]
    """Where it leads when none of `hops` is there; none: nowhere."""
    what: str
    """For people, as `uplink 2, to spine-1`."""


@dataclass(frozen=True)
class Routing:
    """The routes of one switch: the input of a template."""

    title: str
    name: str
    node: str
    what: str
    """`leaf` or `spine`."""
    routes: Sequence[Route]
    port_names: Sequence[str]
    """Ports that routes to other switches use: all that its files name."""


@dataclass(frozen=True)
class HostAddresses:
    """What a host needs: the input of a template."""

    title: str
    name: str
    node: str
    interface: str
    addresses: Sequence[str]
    """By uplink of a leaf."""

    @property
    def port_names(self) -> list[str]:
        """All ports that its files name."""
        return [self.interface]


@dataclass(frozen=True)
class PathAddresses:
    """All addresses and prefixes."""

    hosts: Sequence[Sequence[str]]
    """By host and uplink."""
    racks: Sequence[Sequence[str]]
    """By leaf and uplink: the prefix of its hosts."""
    uplinks: Sequence[str]
    """By uplink: the prefix of all hosts."""


def with_network(cluster: Cluster) -> Cluster:
    """The cluster, with a network for addresses of paths if it has none."""
    return dataclasses.replace(cluster, path_addresses=cluster.path_addresses or NETWORK)


def paths_of(cluster: Cluster) -> PathAddresses:
    """The addresses of paths of a cluster.

    Raises:
        ExperimentError: It has none, or they cannot be.
    """
    found: dict[str, Any] | None = json.loads(
        _native.path_addresses(json.dumps(clusters.as_json(cluster)))
    )
    if found is None:
        raise ExperimentError(MISSING)
    return PathAddresses(**found)


def of(cluster: Cluster) -> tuple[list[Routing], list[HostAddresses]]:
    """The routes of every switch, and the addresses of every host.

    Raises:
        ExperimentError: As `paths_of`.
    """
    paths = paths_of(cluster)
    routings = [
        _routing(
            cluster, switch, (_of_leaf if switch.tier == 0 else _of_spine)(cluster, paths, switch)
        )
        for switch in cluster.switches
    ]
    title = " ".join(cluster.title.split())
    hosts = [
        HostAddresses(title, host.name, host.node, host.interface, paths.hosts[host.number])
        for host in cluster.hosts
    ]
    return routings, hosts


def _routing(cluster: Cluster, switch: Switch, routes: list[Route]) -> Routing:
    ports = {hop.port for route in routes for hop in (*route.hops, *route.spare) if hop.port}
    return Routing(
        title=" ".join(cluster.title.split()),
        name=switch.name,
        node=switch.node,
        what="leaf" if switch.tier == 0 else "spine",
        routes=routes,
        port_names=sorted(ports),
    )


def _of_leaf(cluster: Cluster, paths: PathAddresses, leaf: Switch) -> list[Route]:
    """Every uplink has its prefix; below, each address leads to its host."""
    up = cluster.uplinks.get(leaf.node, ())
    routes = [
        _route(paths.uplinks[number], [link], up, f"uplink {number + 1}, to {_name(cluster, link)}")
        for number, link in enumerate(up)
    ]
    for host in _below(cluster, leaf):
        hop = Hop("", host.address)
        # A leaf may have fewer uplinks than others: those paths end here all the same.
        routes += [Route(f"{one}/32", [hop], (), host.name) for one in paths.hosts[host.number]]
    return routes


def _of_spine(cluster: Cluster, paths: PathAddresses, spine: Switch) -> list[Route]:
    """Down to each leaf: over the link by which packets of that path come up, if it leads here."""
    routes = []
    for number, leaf in enumerate(one for one in cluster.switches if one.tier == 0):
        up = cluster.uplinks.get(leaf.node, ())
        down = [link for link in up if link.upper == spine.node]
        for uplink, prefix in enumerate(paths.racks[number]):
            own = [link for link in down if uplink < len(up) and up[uplink] is link]
            if down:
                routes.append(_route(prefix, own or down, down, leaf.name, below=True))
    return routes


def _route(
    prefix: str, over: Sequence[Link], links: Sequence[Link], what: str, below: bool = False
) -> Route:
    """Over some links, else over the others of `links`."""
    first = [_hop(link, below) for link in over if link.state != "down"]
    others = [_hop(link, below) for link in links if link not in over and link.state != "down"]
    return Route(prefix, first or others, others if first else (), what)


def _hop(link: Link, below: bool) -> Hop:
    if below:
        return Hop(link.upper_port, link.lower_address)
    return Hop(link.lower_port, link.upper_address)


def _name(cluster: Cluster, link: Link) -> str:
    return cluster.by_node[link.upper].name


def _below(cluster: Cluster, leaf: Switch) -> list[Host]:
    return [host for host in cluster.hosts if host.leaf == leaf.index]
