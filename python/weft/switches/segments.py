"""Which source ports go over which uplink: of a plan, or as they follow from a cluster alone.

The core cuts (`crates/config/src/cluster/segments.rs`); here segments of a plan are checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster
from weft.errors import ExperimentError

Range = tuple[int, int]
"""First and last port."""
Segments = dict[str, list[list[Range]]]
"""Ranges by switch and uplink."""

_SHAPE = "[[first, last], ...], one an uplink, or a list of such ranges for each"


def of(cluster: Cluster, scheme: str) -> Segments:
    """The segments of all leaves and, where paths are pinned, of those between them and cores.

    Raises:
        ExperimentError: Leaves hash the source ports of this scheme, or there are too few ports.
    """
    found = json.loads(_native.port_segments(json.dumps(clusters.as_json(cluster)), scheme))
    return {
        switch: [[(first, last) for first, last in ranges] for ranges in uplinks]
        for switch, uplinks in found.items()
    }


def of_plan(plan: Mapping[str, Any], cluster: Cluster, source: str) -> Segments:
    """The segments in a plan, whose switches are called by node or, where there is none, by name.

    Weft writes nodes, and a cluster may give a switch the name of another one's node.

    Raises:
        ExperimentError: It has none, or they do not fit the cluster, or a leaf has none.
    """
    found = plan.get("segments")
    if not found:
        how, scheme = plan.get("enforce"), plan.get("scheme")
        raise ExperimentError(
            f"{source}: segments: none, as the paths of {scheme} are enforced by {how}; plan with "
            '--scheme dnlb, or ethereal with enforce = "segments"'
        )
    if not isinstance(found, Mapping):
        raise ExperimentError(f"{source}: segments: not a table; write one entry a switch")
    nodes = {switch.name: switch.node for switch in cluster.switches}
    nodes |= {switch.node: switch.node for switch in cluster.switches}
    segments: Segments = {}
    for name, entries in found.items():
        wrong = _Wrong(source, name)
        node = nodes.get(str(name), "")
        up = cluster.uplinks.get(node, ())
        if not up:
            raise wrong("no switch with uplinks in this cluster; correct its name")
        if node in segments:
            raise wrong(f"{node} is there twice, by its name as well; keep one entry")
        segments[node] = _checked(entries, len(up), wrong)
    for leaf in cluster.switches:
        if leaf.tier == 0 and leaf.node in cluster.uplinks and leaf.node not in segments:
            raise _Wrong(source, leaf.node)("is missing; make the plan again with weft plan")
    return segments


class _Wrong:
    """Makes errors about the segments of a switch."""

    def __init__(self, source: str, node: str) -> None:
        self._place = f"{source}: segments.{node}"

    def __call__(self, what: str) -> ExperimentError:
        return ExperimentError(f"{self._place}: {what}")


def _checked(entries: object, uplinks: int, wrong: _Wrong) -> list[list[Range]]:
    if not isinstance(entries, list) or len(entries) != uplinks:
        count = len(entries) if isinstance(entries, list) else "no list of"
        raise wrong(f"{count} segments for {uplinks} uplinks; write {_SHAPE}")
    found = [_ranges(entry, wrong) for entry in entries]
    ordered = sorted(one for ranges in found for one in ranges)
    for before, after in pairwise(ordered):
        if after[0] <= before[1]:
            raise wrong(f"{_text(before)} and {_text(after)} overlap; let each port be in one")
    return found


def _ranges(entry: object, wrong: _Wrong) -> list[Range]:
    if not isinstance(entry, list):
        raise wrong(f"{entry!r} is not a segment; write {_SHAPE}")
    ranges = [entry] if entry and isinstance(entry[0], int) else entry
    found = []
    for one in ranges:
        match one:
            case [int(first), int(last)] if 0 < first <= last <= 0xFFFF:
                found.append((first, last))
            case _:
                raise wrong(f"{one!r} is not a range of ports; write [first, last]")
    return found


def _text(ports: Range) -> str:
    return f"{ports[0]}-{ports[1]}"
