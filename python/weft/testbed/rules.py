"""What makes leaves follow source ports: the files of `weft switch-config`, run as they are.

Rules by UDP source port (DNLB (2025), section 3); by TCP's where hosts send that. The files
lie in a folder for as long as they are loaded, since a rollback knows what it was written with.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from weft import cluster as clusters
from weft.cluster import Cluster, Protocol, Switch
from weft.switches import config, segments
from weft.testbed import system

Rules = Literal["linux", "nftables"]
"""Platforms of `weft switch-config` that Linux itself is."""
RULES: tuple[str, ...] = get_args(Rules)


def load(cluster: Cluster, prefix: str, folder: Path, rules: Rules, protocol: Protocol) -> None:
    """Write the files into a folder and run them: at leaves, and at spines of bundles."""
    cluster = clusters.for_protocol(cluster, protocol)
    made, _ = config.files(cluster, segments.of(cluster, "dnlb"), rules)
    config.write(made, folder)
    for switch, script in _scripts(cluster, folder, "sh"):
        system.run_script(prefix + switch.node, script)


def unload(cluster: Cluster, prefix: str, folder: Path) -> None:
    """Run the rollbacks of what was loaded, all of it or some, and remove its files."""
    for switch, script in _scripts(cluster, folder, "rollback"):
        system.run_script(prefix + switch.node, script)
    shutil.rmtree(folder, ignore_errors=True)


def restore_routes(cluster: Cluster, prefix: str, folder: Path, *nodes: str) -> None:
    """Have nodes that follow ports put back the routes that the kernel dropped with a link."""
    for switch, script in _scripts(cluster, folder, "sh"):
        if switch.node in nodes:
            system.run_script(prefix + switch.node, script, "routes")


def _scripts(cluster: Cluster, folder: Path, suffix: str) -> Iterator[tuple[Switch, Path]]:
    for switch in cluster.switches:
        script = folder / f"{switch.name}.{suffix}"
        if script.exists():
            yield switch, script
