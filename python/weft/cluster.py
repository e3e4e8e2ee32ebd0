"""A real cluster: the fabric of an experiment, with the names and addresses of its nodes and ports.

A `CLUSTER.toml` has a `[fabric]`, perhaps `[failures]`, as experiments have them, and a `[cluster]`
for names and addresses. All keys of `[cluster]` have defaults. `weft_config::cluster` reads the
file, for hosts too; here its result becomes Python objects.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from weft import _native
from weft.errors import ExperimentError

State = Literal["up", "degraded", "down"]
Protocol = Literal["udp", "tcp"]

FIRST_PORT, LAST_PORT = 0xC000, 0xFFFF
"""The UDP source ports of RoCEv2."""

KEYS: tuple[str, ...] = tuple(_native.cluster_keys())
"""All keys of `[cluster]`."""

_LAST_PORT = 65535
_REMAKE = "make the plan again with weft plan"


@dataclass(frozen=True)
class Host:
    """A NIC, which is a host of the fabric."""

    number: int
    name: str
    leaf: int
    """Number of its leaf."""
    place: int
    """Its position below its leaf."""
    address: str
    leaf_port: str
    """Name of the leaf's port to the host."""
    server: int
    """Number of its server; a server may have several NICs."""
    rail: int
    """Its position in the server."""
    interface: str
    """Name of the host's network interface."""

    @property
    def node(self) -> str:
        """Its name in failures and links, e.g. `host-3`."""
        return f"host-{self.number}"


@dataclass(frozen=True)
class Switch:
    """A switch."""

    number: int
    node: str
    """Its name in failures and links: `leaf-0`, `spine-1`, `pod-0-agg-1`, `core-2`."""
    name: str
    tier: int
    """0: leaf, 1: spine or aggregation switch, 2: core."""
    pod: int
    index: int
    """Its position in its tier (and pod)."""
    racks: tuple[str, ...]
    """Prefixes below it: the leaf's own, the pod's (aggregation switch), or all."""
    gateway: str | None
    """Address of a leaf towards its hosts; None for other switches."""


@dataclass(frozen=True)
class Link:
    """A link, from its lower end to its upper."""

    lower: str
    """A node, as `host-3` or `leaf-0`."""
    upper: str
    member: int
    """Number of the link among parallel links."""
    lower_port: str
    upper_port: str
    lower_address: str
    """The address of the lower end; a host's own address."""
    upper_address: str
    """The next hop for traffic that goes up."""
    line_bps: int
    rate_bps: int
    """Current rate if the link is not down; less than `line_bps` if it is degraded."""
    state: State


@dataclass(frozen=True)
class Cluster:
    """The contents of a CLUSTER.toml."""

    title: str
    fabric: dict[str, Any]
    """`[fabric]` with every default written out."""
    failures: dict[str, Any]
    dscp: int
    """DSCP of the steered traffic."""
    protocol: Protocol
    """Protocol of the steered traffic; UDP means RoCEv2."""
    port: int
    """The first destination port of the steered traffic."""
    ports: int
    """Number of destination ports, consecutive from `port`."""
    first_port: int
    """The first source port of the steered traffic."""
    last_port: int
    mtu: int
    """Largest payload of a packet, in bytes."""
    nics: int
    """NICs of a server."""
    nccl: dict[str, str]
    """Environment variables for hosts, in addition to those of a plan."""
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    """Those of hosts by host, then those of leaves by leaf and uplink, and so on upwards."""
    path_addresses: str | None = None
    """The IPv4 network in which hosts have an address for each path; None: they have one."""

    @cached_property
    def uplinks(self) -> dict[str, tuple[Link, ...]]:
        """The links above each node, in the order of uplinks; switches without any have none."""
        found: dict[str, list[Link]] = {}
        for link in self.links:
            found.setdefault(link.lower, []).append(link)
        return {node: tuple(links) for node, links in found.items()}

    @cached_property
    def downlinks(self) -> dict[str, tuple[Link, ...]]:
        """The links below each switch, in the order of what is below."""
        found: dict[str, list[Link]] = {}
        for link in self.links:
            found.setdefault(link.upper, []).append(link)
        return {node: tuple(links) for node, links in found.items()}

    @cached_property
    def by_node(self) -> dict[str, Host | Switch]:
        """Hosts and switches by what links call them."""
        hosts = {host.node: host for host in self.hosts}
        return hosts | {switch.node: switch for switch in self.switches}


Node = TypeVar("Node", Host, Switch, Host | Switch)


def find(nodes: Iterable[Node], name: str) -> Node | None:
    """What people mean by a name: what the cluster calls so, else the node of that name in Weft.

    A cluster may call one host or switch what another one is in Weft; then its own word counts.
    """
    known = {one.node: one for one in nodes}
    return next((one for one in known.values() if one.name == name), known.get(name))


def read(path: Path, seed: int = 1) -> Cluster:
    """The cluster in a file; `seed` draws failures that are random.

    Raises:
        ExperimentError: The file cannot be read or is wrong: file, key and correction.
    """
    return _of(json.loads(_native.cluster(*text_of(path), seed)))


def text_of(path: Path) -> tuple[str, str, str]:
    """What the core reads of a cluster file: text, format and what messages call it.

    Raises:
        ExperimentError: The file cannot be read.
    """
    from weft.study.inputs import read_text

    return read_text(path, "a cluster file (.toml)"), "toml", str(path)


def from_dict(table: Mapping[str, Any], source: str = "cluster", seed: int = 1) -> Cluster:
    """The cluster in a dict of the same shape as a file."""
    return _of(json.loads(_native.cluster(json.dumps(table), "json", source, seed)))


def for_protocol(cluster: Cluster, protocol: Protocol) -> Cluster:
    """The cluster for another protocol, with its default number of destination ports.

    Raises:
        ExperimentError: They end above the last port that there is.
    """
    if cluster.protocol == protocol:
        return cluster
    ports = _native.cluster_ports(protocol)
    if cluster.port + ports - 1 > _LAST_PORT:
        raise ExperimentError(
            f"cluster.port: {ports} of {protocol} from {cluster.port} on end above {_LAST_PORT}; "
            f"use {_LAST_PORT - ports + 1} at most"
        )
    return dataclasses.replace(cluster, protocol=protocol, ports=ports)


def as_json(cluster: Cluster) -> dict[str, Any]:
    """The value of `cluster` in a plan file."""
    table = {field.name: getattr(cluster, field.name) for field in dataclasses.fields(cluster)}
    if cluster.path_addresses is None:
        del table["path_addresses"]
    table["hosts"] = [vars(host) for host in cluster.hosts]
    table["links"] = [vars(link) for link in cluster.links]
    # The racks of upper tiers follow from those of leaves, and would be most of the file.
    table["switches"] = [
        {**vars(switch), "racks": list(switch.racks) if switch.tier == 0 else []}
        for switch in cluster.switches
    ]
    return table


def from_json(table: Mapping[str, Any], source: str = "plan") -> Cluster:
    """The cluster that `as_json` wrote.

    Somebody may have changed it since, and it ends in scripts: it is held to what a file is.

    Raises:
        ExperimentError: It is not what `as_json` writes, or a name or address cannot be.
    """
    _native.check_cluster(json.dumps(table), source)
    try:
        return _of(table)
    except (KeyError, TypeError, AttributeError) as error:
        unknown = re.search(r"unexpected keyword argument ('\w+')", str(error))
        what = f"unknown key {unknown[1]}" if unknown else str(error)
        raise ExperimentError(
            f"{source}: cluster: not as weft plan writes it ({what}); {_REMAKE}"
        ) from None


def _of(table: Mapping[str, Any]) -> Cluster:
    # Older plans are of UDP.
    rest = {"protocol": "udp", "ports": 1, **table}
    hosts = tuple(Host(**host) for host in rest.pop("hosts"))
    links = tuple(Link(**link) for link in rest.pop("links"))
    switches = [
        Switch(**{**switch, "racks": tuple(switch["racks"])}) for switch in rest.pop("switches")
    ]
    return Cluster(**rest, hosts=hosts, links=links, switches=_with_racks(switches))


def _with_racks(switches: list[Switch]) -> tuple[Switch, ...]:
    """The switches, those above leaves with the racks below them."""
    pods: dict[int, list[str]] = {}
    for switch in switches:
        if switch.tier == 0:
            pods.setdefault(switch.pod, []).extend(switch.racks)
    by_pod = {pod: tuple(racks) for pod, racks in pods.items()}
    everything = tuple(rack for racks in by_pod.values() for rack in racks)
    below = {0: dict[int, tuple[str, ...]](), 1: by_pod, 2: {0: everything}}
    return tuple(
        dataclasses.replace(switch, racks=below[switch.tier].get(switch.pod, switch.racks))
        for switch in switches
    )
