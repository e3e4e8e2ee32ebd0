"""Who looks for paths to whom."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft import cluster as clusters
from weft.cluster import Cluster, Host, Protocol
from weft.discover import needs
from weft.discover.named import pods_differ
from weft.discover.needs import Needs
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
    """Hosts by name, else by node, number or address.

    Raises:
        ExperimentError: One is none of the cluster's.
    """
    known: dict[str, Host] = {}
    for host in cluster.hosts:
        known |= dict.fromkeys((str(host.number), host.address), host)
    found = []
    for name in names:
        one = clusters.find(cluster.hosts, name) or known.get(name)
        if one is None:
            some = ", ".join(host.name for host in cluster.hosts[:3])
            raise ExperimentError(f"discover: {name} is no host of the cluster; it has {some}, ...")
        found.append(one)
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


class NothingSentError(ExperimentError):
    """A job sends nothing from these hosts for which they would have to look for paths."""


def pairs(
    cluster: Cluster,
    mine: Sequence[Host],
    targets: Sequence[str] | None,
    job: Needs | None = None,
) -> list[tuple[Host, list[Host]]]:
    """Who of `mine` looks for whom: all in other racks, those named, those that a job sends to.

    Raises:
        NothingSentError: The job sends nothing from `mine` to other racks.
        ExperimentError: A name is none of the cluster's, or there is nobody to look for.
    """
    wanted = cluster.hosts if targets is None else named(cluster, targets)
    found = []
    for host in mine:
        to = towards(host, wanted)
        if job is not None:
            to = [one for one in to if one.number in job.get(host.number, ())]
        if to:
            found.append((host, to))
    if not found and job is not None:
        raise NothingSentError(
            "discover: the job sends nothing from these hosts to other racks, and within a rack "
            "there is one path; name others with --from and --to, or leave --job out"
        )
    if not found:
        raise ExperimentError(
            "discover: no target is in another rack, and within a rack there is one path; name "
            "others with --to"
        )
    return found


def surveys(
    cluster: Cluster,
    wanted: Sequence[tuple[Host, list[Host]]],
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
    job: Needs | None = None,
) -> list[tuple[Host, Survey]]:
    """A survey for each host that looks for others (`pairs`)."""
    return [
        (host, survey_of(cluster, host, to, protocol, port, rules, (job or {}).get(host.number)))
        for host, to in wanted
    ]


def survey_of(
    cluster: Cluster,
    source: Host,
    targets: Sequence[Host],
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
    wanted: Mapping[int, Sequence[needs.Need]] | None = None,
) -> Survey:
    """The survey of one host of a cluster; `wanted`: what is needed of each target."""
    links = cluster.uplinks.get(f"leaf-{source.leaf}", ())
    needed = wanted or {}
    last = min(cluster.last_port, LAST_PORT)
    return Survey(
        source.address,
        [host.address for host in targets],
        protocol or cluster.protocol,
        port or cluster.port,
        hops=tuple(_switches(cluster, source, host) for host in targets),
        needs=[
            needs.through(cluster, source, host, needed.get(host.number, ()))
            for host in (targets if needed else ())
        ],
        dscp=cluster.dscp,
        ports=(cluster.first_port, last),
        expected=sum(link.state != "down" for link in links),
        **rules,
    )


def rates(
    cluster: Cluster,
    wanted: Sequence[tuple[Host, Sequence[Host]]],
    rules: Mapping[str, Any],
    job: Needs | None,
    most: int,
) -> dict[int, float]:
    """Probes a second of each host, by number, so that no switch is asked more than the rate says.

    Hosts of a leaf share what it may send, by how much each has to ask; where only `most` of them
    look at the same time, in equal parts.
    """
    whole = needs.of_leaf(cluster, [host for host, _ in wanted], rules["rate"])
    shares: dict[int, dict[int, float]] = {}
    for host, to in wanted:
        share = needs.probes(cluster, host, to, rules["unseen"], job)
        shares.setdefault(host.leaf, {})[host.number] = share
    found = {}
    for of_leaf in shares.values():
        total = sum(of_leaf.values())
        for number, share in of_leaf.items():
            part = share / total if len(of_leaf) <= most else 1 / most
            found[number] = max(whole * part, 0.1)
    return found


def _switches(cluster: Cluster, source: Host, target: Host) -> int:
    """How many are on the way between hosts of different racks."""
    return 5 if pods_differ(cluster, source, target) else 3
