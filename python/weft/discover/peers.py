"""Who looks for paths to whom."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.cluster import Cluster, Host, Protocol
from weft.discover.survey import LAST_PORT, Survey
from weft.errors import ExperimentError


def own(cluster: Cluster) -> list[Host]:
    """The hosts of a cluster that this machine is: those whose address it has.

    Raises:
        ExperimentError: It has none of them.
    """
    found = [host for host in cluster.hosts if is_own(host.address)]
    if not found:
        first, last = cluster.hosts[0], cluster.hosts[-1]
        raise ExperimentError(
            f"discover: this machine has none of the addresses of the cluster ({first.address} to "
            f"{last.address}); run it on a host of the cluster, or name a command with --over"
        )
    return found


def is_own(address: str) -> bool:
    """Whether this machine has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


def towards(source: Host, wanted: Sequence[Host]) -> list[Host]:
    """Those of `wanted` to which a host has several paths: in other racks."""
    return [host for host in wanted if host.leaf != source.leaf]


def named(cluster: Cluster, names: Iterable[str]) -> list[Host]:
    """Hosts by name, number, node or address.

    Raises:
        ExperimentError: One is none of the cluster's.
    """
    known: dict[str, Host] = {}
    for host in cluster.hosts:
        known |= dict.fromkeys((host.name, str(host.number), host.node, host.address), host)
    found = []
    for name in names:
        if name not in known:
            some = ", ".join(host.name for host in cluster.hosts[:3])
            raise ExperimentError(f"discover: {name} is no host of the cluster; it has {some}, ...")
        found.append(known[name])
    return found


def address(text: str, option: str) -> str:
    """An IPv4 address of an option.

    Raises:
        ExperimentError: It is none.
    """
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ExperimentError(
            f"{option}: {text!r} is no IPv4 address; write one such as 10.1.0.2, or name a cluster "
            "file first and then its hosts"
        ) from None


def source_towards(target: str) -> str:
    """The address from which this machine sends to a target.

    Raises:
        ExperimentError: It has no way there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect((target, 9))
        except OSError as error:
            raise ExperimentError(
                f"discover: {target}: {(error.strerror or 'no route').lower()}; look at ip route"
            ) from None
        return str(one.getsockname()[0])


def surveys(
    cluster: Cluster,
    sources: Sequence[str] | None,
    targets: Sequence[str] | None,
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
) -> list[Survey]:
    """A survey for each source of a cluster: those named, or what this machine is.

    Raises:
        ExperimentError: A name is none of the cluster's, or there is nobody to look for.
    """
    mine = own(cluster) if sources is None else named(cluster, sources)
    wanted = cluster.hosts if targets is None else named(cluster, targets)
    found = [
        survey_of(cluster, host, towards(host, wanted), protocol, port, rules) for host in mine
    ]
    found = [one for one in found if one.targets]
    if not found:
        raise ExperimentError(
            "discover: no target is in another rack, and within a rack there is one path; name "
            "others with --to"
        )
    return found


def survey_of(
    cluster: Cluster,
    source: Host,
    targets: Sequence[Host],
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
) -> Survey:
    """The survey of one host of a cluster."""
    links = cluster.uplinks.get(f"leaf-{source.leaf}", ())
    last = min(cluster.last_port, LAST_PORT)
    return Survey(
        source.address,
        [host.address for host in targets],
        protocol or cluster.protocol,
        port or cluster.port,
        hops=tuple(_switches(cluster, source, host) for host in targets),
        dscp=cluster.dscp,
        ports=(cluster.first_port, last),
        expected=sum(link.state != "down" for link in links),
        **rules,
    )


def _switches(cluster: Cluster, source: Host, target: Host) -> int:
    """How many are on the way between hosts of different racks."""
    pods = [cluster.switches[host.leaf].pod for host in (source, target)]
    return 3 if pods[0] == pods[1] else 5
