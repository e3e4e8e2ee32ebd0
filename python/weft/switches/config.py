"""`weft switch-config`: the files of every switch that steers by source port.

A configuration is a template of its platform (`platforms`) filled with what
`weft.switches.steering` says of the switch. Templates decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from weft import cluster as clusters
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.switches import addresses, platforms, srv6
from weft.switches import steering as steerings
from weft.switches.platform import Platform, Ported, check_linux
from weft.switches.segments import Range, Segments
from weft.switches.steering import Steering
from weft.switches.ways import Way

if TYPE_CHECKING:
    from jinja2 import Template


_LONGEST_NAME = 255
"""Bytes of a file's name."""
HOSTS = "_host"
"""The folder of templates for hosts."""


class Node(Ported, Protocol):
    """What a template fills in: of a switch or a host."""

    @property
    def name(self) -> str:
        """In the cluster."""


@dataclass(frozen=True)
class File:
    """A file for a switch."""

    name: str
    text: str


def files(
    cluster: Cluster,
    found: Segments,
    platform: str,
    switch: str | None = None,
) -> tuple[list[File], list[str]]:
    """The files of all switches that steer, or of one (by name or node), and remarks."""
    chosen = platforms.find(platform)
    everyone = steering = steerings.of(cluster, found)
    if switch is not None:
        meant = clusters.find(cluster.switches, switch)
        steering = [one for one in everyone if meant is not None and one.node == meant.node]
        if not steering:
            names = ", ".join(one.name for one in everyone[:8])
            raise ExperimentError(f"--switch: {switch!r} steers nothing here; use one of {names}")
    _check_ports(chosen, steering)
    for one in steering:
        chosen.check(one)
    made = [file for one in steering for file in _fill(platform, chosen.suffixes, one)]
    return made, list(dict.fromkeys(_remarks(chosen, steering)))


def files_by_address(
    cluster: Cluster, platform: str, node: str | None = None
) -> tuple[list[File], list[str]]:
    """The files of all switches and hosts where destination addresses choose paths, and remarks.

    With `node` those of one switch or host, by its name in the cluster or in Weft.
    """
    return _files_of_nodes("addresses", cluster, *addresses.of(cluster), platform, node)


def files_by_segment_routing(
    cluster: Cluster,
    found: Segments,
    platform: str,
    node: str | None = None,
    block: str = srv6.BLOCK,
) -> tuple[list[File], list[str]]:
    """The same where hosts write paths into destinations (SRv6), by their source ports."""
    return _files_of_nodes("srv6", cluster, *srv6.of(cluster, found, block), platform, node)


def _files_of_nodes(
    way: Way,
    cluster: Cluster,
    switches: Sequence[Node],
    hosts: Sequence[Node],
    platform: str,
    node: str | None,
) -> tuple[list[File], list[str]]:
    chosen = platforms.find(platform)
    suffixes = getattr(chosen, way)
    if not suffixes:
        able = [name for name in platforms.PLATFORMS if getattr(platforms.find(name), way)]
        raise ExperimentError(
            f"--enforce {way}: not written for {platform}; use --format {', '.join(able)}"
        )
    if node is not None:
        meant = clusters.find(cluster.by_node.values(), node)
        if meant is None:
            raise ExperimentError(f"--switch: {node!r} is no switch or host of this cluster")
        switches, hosts = (
            [one for one in some if one.node == meant.node] for some in (switches, hosts)
        )
    _check_ports(chosen, switches)
    for host in hosts:
        check_linux(host, "change host_interface of [cluster]: files for hosts are for Linux")
    made = [
        *(file for one in switches for file in _fill(platform, suffixes, one, way)),
        *(file for one in hosts for file in _fill(HOSTS, ("sh",), one, way)),
    ]
    what = f"{way}: hosts need their files as well: they are for Linux, h0.sh and so on"
    remarks = [what] if hosts and node is None else []
    return made, [*remarks, *_port_names(chosen, switches)]


def _check_ports(platform: Platform, switches: Sequence[Node]) -> None:
    """Refuse names of ports that no switch of the platform can have."""
    for one in switches if platform.linux_ports else ():
        check_linux(one, "change the patterns of [cluster], or --format")


def _remarks(platform: Platform, steering: Sequence[Steering]) -> Iterator[str]:
    yield from platform.remarks
    yield from _port_names(platform, steering)
    yield from _range_checkers(platform, steering)
    for one in steering:
        rest = "its source ports are hashed among the other links"
        if not any(link.up for link in one.links):
            rest = "no other link is left for its source ports"
        for link in one.links:
            if not link.up:
                yield f"{one.name}: {link.port} to {link.to} is down, so it has no rule; {rest}"


def _port_names(platform: Platform, switches: Sequence[Node]) -> Iterator[str]:
    """Of the first port that has another system's name."""
    for one in switches:
        for port in one.port_names:
            if platform.port_name and not re.fullmatch(platform.port_name, port):
                yield (
                    f"{one.name}: {port} is no name of a port there; give [cluster] names of its "
                    f'ports, as host_port = "{platform.port}{{{platform.number}}}"'
                )
                return


def _range_checkers(platform: Platform, steering: Sequence[Steering]) -> Iterator[str]:
    """Of switches with more ranges of ports than some chips can tell apart."""
    most = platform.range_checkers
    needed = {one.name: one.port_ranges for one in steering}
    over = [name for name, ranges in needed.items() if most is not None and ranges > most]
    if over:
        more = f" (and {len(over) - 1} more switches)" if len(over) > 1 else ""
        yield (
            f"{over[0]}{more}: {needed[over[0]]} ranges of ports; a chip has few range checkers "
            f"(NVIDIA Spectrum {most}), and rules beyond them are refused: ask yours for "
            "SAI_SWITCH_ATTR_MAX_ACL_RANGE_COUNT before you load it"
        )


def _fill(platform: str, suffixes: Sequence[str], node: Node, way: Way = "segments") -> list[File]:
    folder = "" if way == "segments" else f"{way}/"
    filled = []
    for suffix in (*suffixes, "rollback"):
        text = _template(platform, folder + suffix).render(s=node, suffixes=suffixes)
        filled.append(File(f"{node.name}.{suffix}", text))
    return filled


@cache
def _template(platform: str, suffix: str) -> Template:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    for_all = platforms.__name__
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(f"{for_all}.{platform}", "."), PackageLoader(for_all, ".")]
        ),
        autoescape=False,  # noqa: S701 (not for browsers; names are checked by weft.cluster.nodes)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["wildcard"] = _wildcard
    environment.filters["linux_range"] = _linux_range
    environment.tests["port_channel"] = _is_port_channel
    return environment.get_template(f"{suffix}.j2")


def _wildcard(prefix: str) -> str:
    """A prefix as access lists write it: address and inverted mask."""
    network = IPv4Network(prefix)
    return f"{network.network_address} {network.hostmask}"


def _linux_range(ports: Range) -> str:
    """A range as `ip rule` takes it, which refuses one that ends at 65535."""
    first, last = ports[0], min(ports[1], 0xFFFE)
    return f"{first}-{last}"


def _is_port_channel(port: str) -> bool:
    """Whether SONiC keeps a port among its port channels."""
    return port.startswith("PortChannel")


def write(made: Sequence[File], directory: Path) -> None:
    """The files into a directory, which is made.

    Raises:
        ExperimentError: A switch or a host has a name that no file can have.
    """
    from weft.errors import writing

    for file in made:
        if "/" in file.name or len(file.name.encode()) > _LONGEST_NAME:
            raise ExperimentError(
                f"-o: {file.name!r} is no name of a file (no /, {_LONGEST_NAME} bytes at most); "
                "change the patterns of names in [cluster], or leave -o out"
            )
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for file in made:
        path = directory / file.name
        with writing(path):
            path.write_text(file.text)


def printed(made: Sequence[File]) -> str:
    """All files for a terminal, each under its name."""
    if len(made) == 1:
        return made[0].text
    return "\n".join(f"==> {file.name} <==\n{file.text}" for file in made)
