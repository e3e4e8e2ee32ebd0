"""Which source ports go over which uplink: of a plan, or as they follow from a cluster alone.

A leaf cuts the range of source ports into equal segments, one an uplink (DNLB (2025), equation 2,
with ends that do not overlap). In three tiers every segment is cut again, one part an uplink of
the aggregation switch that it leads to; members of a bundle below give that switch several ranges
an uplink. What does not divide is behind the last segment and hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

from weft.cluster import Cluster
from weft.errors import ExperimentError

Range = tuple[int, int]
"""First and last port."""
Segments = dict[str, list[list[Range]]]
"""Ranges by switch and uplink."""
Scheme = Literal["dnlb", "ethereal"]

_SHAPE = "[[first, last], ...], one an uplink, or a list of such ranges for each"


def of(cluster: Cluster, scheme: Scheme) -> Segments:
    """The segments of all leaves and, under `ethereal`, of the switches between them and cores."""
    found: Segments = {}
    whole = (cluster.first_port, cluster.last_port)
    for switch in cluster.switches:
        above = len(cluster.uplinks.get(switch.node, ()))
        if switch.tier == 0 and above:
            found[switch.node] = [[_part(whole, index, above)] for index in range(above)]
        elif switch.tier == 1 and above and scheme == "ethereal":
            found[switch.node] = _of_agg(cluster, switch.node, above)
    return found


def _of_agg(cluster: Cluster, node: str, above: int) -> list[list[Range]]:
    """Every leaf below has the same uplinks here, so the first one is enough."""
    leaf = cluster.downlinks[node][0].lower
    up = cluster.uplinks[leaf]
    whole = (cluster.first_port, cluster.last_port)
    parts = [_part(whole, i, len(up)) for i, link in enumerate(up) if link.upper == node]
    if parts[0][1] - parts[0][0] + 1 < above:
        ports = cluster.last_port - cluster.first_port + 1
        raise ExperimentError(
            f"cluster.last_port: {ports} source ports cannot be cut into {len(up)} times {above} "
            "segments; widen first_port to last_port, or steer leaves alone with --scheme dnlb"
        )
    return [[_part(part, index, above) for part in parts] for index in range(above)]


def _part(whole: Range, index: int, parts: int) -> Range:
    step = (whole[1] - whole[0] + 1) // parts
    first = whole[0] + index * step
    return first, first + step - 1


def of_plan(plan: Mapping[str, Any], cluster: Cluster, source: str) -> Segments:
    """The segments in a plan, whose switches are called by node or by name.

    Raises:
        ExperimentError: It has none, or they do not fit the cluster.
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
    segments = {}
    for name, entries in found.items():
        wrong = _Wrong(source, name)
        node = nodes.get(str(name), str(name))
        up = cluster.uplinks.get(node, ())
        if node.startswith("host-") or not up:
            raise wrong("no switch with uplinks in this cluster; correct its name")
        segments[node] = _checked(entries, len(up), wrong)
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
