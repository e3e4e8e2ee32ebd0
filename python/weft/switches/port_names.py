"""Names of switch ports on platforms that count lanes: `Ethernet0`, `Ethernet4`, ... of SONiC.

A cluster file may name ports as the platform does. Where it leaves the names out, ports are `eth1`,
`eth2`, ...: here these become the names of a `port_config.ini`, in its order, or steps of lanes.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from weft.cluster import Cluster, Link
from weft.errors import ExperimentError
from weft.study.inputs import read_text
from weft.switches.platform import PLAIN

LANES = 4
"""Lanes of a port of 100 or 400 Gbps; one of 800 Gbps often has eight."""
_PLAIN = re.compile(PLAIN)


def for_platform(
    cluster: Cluster, platform: str, lanes: int | None, port_config: Path | None
) -> tuple[Cluster, list[str]]:
    """The cluster with the platform's names for its switch ports, and a remark where they changed.

    Raises:
        ExperimentError: The file is wrong or too short, or the platform counts no lanes.
    """
    if platform != "sonic":
        if lanes is not None or port_config is not None:
            raise ExperimentError(
                f"--lanes, --port-config: {platform} does not count lanes; they are for sonic"
            )
        return cluster, []
    named, what = _by_lanes(lanes or LANES)
    if port_config is not None:
        named, what = _by_file(port_config)
    _check(cluster, named, what)
    found = dataclasses.replace(
        cluster,
        hosts=tuple(
            dataclasses.replace(host, leaf_port=named(host.leaf_port)) for host in cluster.hosts
        ),
        links=tuple(_renamed(link, named) for link in cluster.links),
    )
    changed = next(
        (link for link in cluster.links if named(link.upper_port) != link.upper_port), None
    )
    if changed is None:
        return found, []
    first = f"{changed.upper_port} is {named(changed.upper_port)}"
    return found, [f"sonic: ports are named by {what}: {first}, and so on"]


def _check(cluster: Cluster, named: Callable[[str], str], what: str) -> None:
    """Refuse names by which two links of a switch would be at one port."""
    known: dict[tuple[str, str], str] = {}
    for link in cluster.links:
        for node, port in ((link.upper, link.upper_port), (link.lower, link.lower_port)):
            other = known.setdefault((node, named(port)), port)
            if other != port and not node.startswith("host-"):
                raise ExperimentError(
                    f"cluster: {cluster.by_node[node].name} has ports {other} and {port}, which "
                    f"are both {named(port)} by {what}; name either all of its ports in [cluster] "
                    "(host_port, uplink_port, downlink_port) or none"
                )


def _renamed(link: Link, named: Callable[[str], str]) -> Link:
    lower = link.lower_port
    if not link.lower.startswith("host-"):
        lower = named(lower)
    return dataclasses.replace(link, lower_port=lower, upper_port=named(link.upper_port))


def _by_lanes(lanes: int) -> tuple[Callable[[str], str], str]:
    def named(port: str) -> str:
        found = _PLAIN.fullmatch(port)
        return f"Ethernet{lanes * (int(found[1]) - 1)}" if found and int(found[1]) else port

    return named, f"steps of {lanes} lanes (--lanes or --port-config for others)"


def _by_file(path: Path) -> tuple[Callable[[str], str], str]:
    names = _names(path)

    def named(port: str) -> str:
        found = _PLAIN.fullmatch(port)
        if not found or not int(found[1]):
            return port
        if int(found[1]) > len(names):
            raise ExperimentError(
                f"{path}: {len(names)} ports, but the cluster needs {port}; name the file of a "
                "larger switch, or give [cluster] names of ports"
            )
        return names[int(found[1]) - 1]

    return named, f"{path}, in its order"


def _names(path: Path) -> list[str]:
    """The first column of a port_config.ini; lines with # are comments."""
    lines = read_text(path, "a port_config.ini").splitlines()
    names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    wrong = next((name for name in names if not re.fullmatch(r"Ethernet\d+", name)), None)
    if wrong is not None or not names:
        raise ExperimentError(
            f"{path}: {wrong or 'empty'}: not a port_config.ini, whose lines begin with the name "
            "of a port as Ethernet0"
        )
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ExperimentError(f"{path}: {twice}: is there twice; leave one line of each port")
    return names
