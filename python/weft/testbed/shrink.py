"""A copy of a cluster that fits a laptop: fewer switches and hosts, slower links, the same shape.

What stays is how many times the hosts of a leaf could send what its uplinks carry, how many links a
leaf has to a spine, and failures of links that the copy still has. Three tiers become two, as leaf
and everything above it; names, addresses and servers of several NICs are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft.cluster import Cluster, Link
from weft.errors import ExperimentError
from weft.testbed import layout
from weft.units import format_rate

_LEAST_RATE = 1_000_000
"""Bits per second: slower links carry a packet in more than ten milliseconds."""
_NODE = re.compile(r"(leaf|spine)-\d+(#\d+)?")


@dataclass(frozen=True)
class Size:
    """The most of each that a copy may have, and the rate of its uplinks in bits per second."""

    leaves: int = 4
    spines: int = 4
    hosts: int = 4
    """Of a leaf."""
    uplink_bps: int = 100_000_000


def shrink(path: Path, size: Size) -> tuple[str, list[str]]:
    """The text of a smaller CLUSTER.toml, and what it leaves out of the one at `path`.

    Raises:
        ExperimentError: The file is wrong, or its copy is no test bed.
    """
    cluster = clusters.read(path)
    leaves = [switch for switch in cluster.switches if switch.tier == 0]
    ups = cluster.uplinks[leaves[0].node]
    # In three tiers what is above a leaf is its pod's: of another pod's nobody asks.
    spines = len({link.upper for link in ups})
    shape = {
        "leaves": min(len(leaves), size.leaves),
        "spines": min(spines, size.spines),
        "hosts_per_leaf": min(sum(host.leaf == 0 for host in cluster.hosts), size.hosts),
        "links_per_pair": max(1, len(ups) // spines),
    }
    link_bps = _link_rate(cluster, ups, shape, size.uplink_bps)
    rates = {"link": _rate(link_bps), "uplink": _rate(size.uplink_bps)}
    fabric = {"topology": "leaf-spine", **shape, **rates}
    failures, lost = _failures(cluster, shape)
    left = [*_left_out(cluster, path), *lost]
    title = f"{cluster.title or path.stem}, made smaller for a test bed"
    small = {"title": title, "fabric": fabric, "failures": failures}
    layout.check(clusters.from_dict(small, f"{path} (smaller)"))
    return _text(title, fabric, failures, [_scale(cluster, fabric), *left]), left


def _link_rate(
    cluster: Cluster, ups: tuple[Link, ...], shape: Mapping[str, int], uplink_bps: int
) -> int:
    """The rate of a host's link at which a leaf is as oversubscribed as it was."""
    own = [host.node for host in cluster.hosts if host.leaf == 0]
    below = sum(link.line_bps for node in own for link in cluster.uplinks[node])
    above = sum(link.line_bps for link in ups)
    uplinks = shape["spines"] * shape["links_per_pair"]
    rate = round(uplink_bps * uplinks * below / above / shape["hosts_per_leaf"])
    if rate < _LEAST_RATE:
        what = f"uplinks of {format_rate(uplink_bps)} leave hosts {format_rate(rate)}"
        raise ExperimentError(f"--uplink: {what}, too little for packets; use a higher rate")
    return rate


def _failures(cluster: Cluster, shape: Mapping[str, int]) -> tuple[dict[str, Any], list[str]]:
    """The failures whose links the copy has, and a line for each other."""
    kept, lost = {}, []
    for name, failure in cluster.failures.items():
        links = failure.get("links", [])
        if links and all(_is_there(link, shape) for link in links):
            kept[name] = failure
        else:
            lost.append(f"failures.{name}: the copy has not all that fails there")
    return kept, lost


def _is_there(link: str, shape: Mapping[str, int]) -> bool:
    """Whether a link by name is one between a leaf and a spine of the copy."""
    ends = [end.strip() for end in re.split(r"<->|->", link)]
    most = {"leaf": shape["leaves"], "spine": shape["spines"]}
    for end in ends:
        if _NODE.fullmatch(end) is None:
            return False
        node, _, member = end.partition("#")
        tier, _, number = node.partition("-")
        if int(number) >= most[tier] or int(member or 0) >= shape["links_per_pair"]:
            return False
    return True


def _left_out(cluster: Cluster, path: Path) -> list[str]:
    """What of the whole cluster no test bed has."""
    left = []
    if any(switch.tier == 2 for switch in cluster.switches):
        left.append("fabric: three tiers became two, a leaf and what is above it in its pod")
    if cluster.nics > 1:
        left.append(f"fabric.server: each of its {cluster.nics} NICs is a host here")
    text = path.read_text(encoding="utf-8")
    if re.search(r"^\s*\[cluster", text, re.MULTILINE):
        left.append("cluster: names and addresses are those of the test bed")
    return left


def _scale(cluster: Cluster, fabric: Mapping[str, Any]) -> str:
    hosts = fabric["leaves"] * fabric["hosts_per_leaf"]
    return f"{hosts} of {len(cluster.hosts)} hosts"


def _rate(bps: int) -> str:
    """A rate as files have it, exact."""
    return f"{bps / 1e6:.6f}".rstrip("0").rstrip(".") + "Mbps"


def _text(
    title: str, fabric: Mapping[str, Any], failures: Mapping[str, Any], notes: list[str]
) -> str:
    lines = [*(f"# {note}" for note in notes), f"title = {json.dumps(title)}", "[fabric]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in fabric.items()]
    for name, failure in failures.items():
        lines += ["", f"[failures.{json.dumps(name)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in failure.items()]
    return "\n".join([*lines, ""])
