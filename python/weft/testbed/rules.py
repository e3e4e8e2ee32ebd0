"""What makes switches keep to planned paths: the files of `weft switch-config`, run as they are.

Rules by UDP source port (DNLB (2025), section 3); by TCP's where hosts send that. The files
lie in a folder for as long as they are loaded, since a rollback knows what it was written with.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from weft import cluster as clusters
from weft.cluster import Cluster, Host, Protocol, Switch
from weft.switches import addresses, config, segments, srv6
from weft.switches.ways import Way
from weft.testbed import layout, system

Rules = Literal["linux", "nftables"]
"""Platforms of `weft switch-config` that Linux itself is."""
RULES: tuple[str, ...] = get_args(Rules)
_WRAPPED = "wrapped"
"""A file in the folder that says that links take longer packets."""


def load(
    cluster: Cluster, prefix: str, folder: Path, rules: Rules, protocol: Protocol, way: Way
) -> None:
    """Write the files into a folder and run them, at all nodes that have some.

    `rules` is for segments: the other ways are Linux's own.
    """
    cluster = clusters.for_protocol(cluster, protocol)
    if way == "addresses":
        made, _ = config.files_by_address(addresses.with_network(cluster), "linux")
    elif way == "srv6":
        cut = segments.of(cluster, "dnlb")
        made, _ = config.files_by_segment_routing(cluster, cut, "linux")
        _allow_wrapping(cluster, prefix, *srv6.of(cluster, cut))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _WRAPPED).touch()
    else:
        made, _ = config.files(cluster, segments.of(cluster, "dnlb"), rules)
    config.write(made, folder)
    for node, script in _scripts(cluster, folder, "sh"):
        system.run_script(prefix + node.node, script)


def _allow_wrapping(
    cluster: Cluster,
    prefix: str,
    switches: Sequence[srv6.Locator],
    hosts: Sequence[srv6.Wrapping],
) -> None:
    """Have IPv6, of which a bed has none, and room for longer packets; it asks nobody's address."""
    ports = layout.ports(cluster)
    hops = {one.node: {n.port: n.next_hop for n in one.neighbours} for one in switches}
    hops |= {one.node: {one.interface: one.gateway} for one in hosts}
    for node, own in ports.items():
        system.batch("ip", layout.lengths(cluster, own, layout.WRAPPING), prefix + node)
        for port in own:
            quiet = {"addr_gen_mode": 1, "accept_ra": 0, "disable_ipv6": 0}
            values: dict[str, object] = {
                f"net/ipv6/conf/{port.name}/{key}": value for key, value in quiet.items()
            }
            system.set_sysctls([prefix + node], values)
        system.batch("ip", layout.neighbours(own, hops[node]), prefix + node)


def unload(cluster: Cluster, prefix: str, folder: Path) -> None:
    """Run the rollbacks of what was loaded, all of it or some, and remove its files."""
    for node, script in _scripts(cluster, folder, "rollback"):
        system.run_script(prefix + node.node, script)
    if (folder / _WRAPPED).exists():
        for name, own in layout.ports(cluster).items():
            system.batch("ip", layout.lengths(cluster, own), prefix + name)
    shutil.rmtree(folder, ignore_errors=True)


def restore_routes(cluster: Cluster, prefix: str, folder: Path, *nodes: str) -> None:
    """Have nodes that follow ports put back the routes that the kernel dropped with a link."""
    for node, script in _scripts(cluster, folder, "sh"):
        if node.node in nodes:
            system.run_script(prefix + node.node, script, "routes")


def _scripts(cluster: Cluster, folder: Path, suffix: str) -> Iterator[tuple[Host | Switch, Path]]:
    nodes: list[Host | Switch] = [*cluster.hosts, *cluster.switches]
    for node in nodes:
        script = folder / f"{node.name}.{suffix}"
        if script.exists():
            yield node, script
