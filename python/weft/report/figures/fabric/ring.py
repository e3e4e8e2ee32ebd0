"""A dragonfly: its groups around a circle, global links through the middle of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.report.figures.fabric.network import Network
from weft.report.figures.fabric.sketch import Point, Sketch, least_to_most, plural
from weft.report.figures.model import Axis, Box, Drawing

_SIZE = 7.2
_CURVE = 17
"""Points of a curve."""


def draw(net: Network, scale: Axis) -> Drawing:
    """Every switch: routers (or spines) on a circle, leaves outside of them."""
    sketch = Sketch(net, scale)
    centre = (_SIZE / 2 + 1.1, _SIZE / 2)
    tiers = int(net.tier.max()) + 1
    # The tier with global links is inside; leaves that have none are outside of it.
    inner = 2.3 if tiers == 1 else 1.75
    radii = {0: inner} if tiers == 1 else {1: inner, 0: inner + 0.7}
    angles = _angles(net)

    def at(switch: int, out: float = 0.0) -> Point:
        radius, angle = radii[int(net.tier[switch])] + out, angles[switch]
        return centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)

    for row in range(len(net.links)):
        low, high = int(net.links.lower[row]), int(net.links.upper[row])
        ends = f"{net.names[low]} \N{EN DASH} {net.names[high]}"
        sketch.line(net.links, row, _curve(net, low, high, at, centre), ends, 0.8)
    size = min(0.3, 2 * math.pi * inner / max(1, len(angles) / tiers) * 0.62)
    for switch in range(len(net.names)):
        text = net.names[switch].rpartition("-")[2] if size > 0.12 else ""
        sketch.switch(switch, at(switch), size, min(size, 0.2), text)
    _hosts(sketch, at, size)
    for group in np.unique(net.group):
        inside = np.flatnonzero((net.group == group) & (net.tier == 0))
        angle = float(np.mean([angles[int(switch)] for switch in inside]))
        out = max(radii.values()) + 1.02
        x, y = centre[0] + out * math.cos(angle), centre[1] + out * math.sin(angle)
        sketch.say(x, y, f"group {group}", "center", 8)
    _left(sketch)
    return sketch.drawing(_SIZE, _SIZE + 1.3)


def groups(net: Network, scale: Axis) -> Drawing:
    """Groups as blocks around a circle, and beside it what one of them consists of."""
    sketch = Sketch(net, scale)
    count = int(net.group.max()) + 1
    centre, radius = (_SIZE / 2 + 0.9, _SIZE / 2), 2.75

    def at(group: int, _: float = 0.0) -> Point:
        angle = math.pi / 2 - 2 * math.pi * group / count
        return centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)

    merged = net.links.merged(net.group)
    for row in range(len(merged)):
        low, high = int(merged.lower[row]), int(merged.upper[row])
        if low != high:
            ends = f"group {low} \N{EN DASH} group {high}"
            sketch.line(merged, row, _bow(at(low), at(high), centre), ends, 0.7)
    size = min(0.3, 2 * math.pi * radius / count * 0.75)
    for group in range(count):
        inside = int((net.group == group).sum())
        note = f"group {group}: {plural(inside, 'switch', 'switches')}"
        text = str(group) if size > 0.17 else ""
        sketch.boxes.append(Box(*at(group), size, 0.2, "switch", text, note))
    each = merged.count[merged.lower != merged.upper]
    lines = "" if each.max() == 1 else f"\na line is {least_to_most(each)} links"
    sketch.say(0.05, 0.3, f"Every block is a group.{lines}", "left", 7.5)
    _group(sketch, (_SIZE + 1.9, 1.6))
    _left(sketch)
    return sketch.drawing(_SIZE, _SIZE + 3.1)


def _group(sketch: Sketch, centre: Point) -> None:
    """The switches of the first group in a circle, with their links among each other."""
    net = sketch.net
    mine = np.flatnonzero(net.group == 0)
    place = {int(switch): number for number, switch in enumerate(mine)}

    def at(switch: int) -> Point:
        angle = math.pi / 2 - 2 * math.pi * place[switch] / len(place)
        return centre[0] + 0.8 * math.cos(angle), centre[1] + 0.8 * math.sin(angle)

    links = net.links
    for row in range(len(links)):
        low, high = int(links.lower[row]), int(links.upper[row])
        if low in place and high in place:
            ends = f"{net.names[low]} \N{EN DASH} {net.names[high]}"
            sketch.line(links, row, [at(low), at(high)], ends, 0.8)
    size = min(0.26, 4.0 / len(place))
    for switch in place:
        sketch.switch(switch, at(switch), size, min(0.18, size), "")
    # All that have any have as many.
    hosts = plural(int(net.at[list(place)].max()), "host")
    said = f"a group: {plural(len(place), 'switch', 'switches')}\n{hosts} at each that has any"
    sketch.boxes.append(Box(*centre, 2.0, 2.1, "frame", ""))
    sketch.say(centre[0], centre[1] - 1.25, said, "center", 7.5)


def _angles(net: Network) -> dict[int, float]:
    """Where on the circle each switch is: groups clockwise from the top."""
    groups = int(net.group.max()) + 1
    angles = {}
    for group in range(groups):
        for tier in np.unique(net.tier):
            mine = np.flatnonzero((net.group == group) & (net.tier == tier))
            for place, switch in enumerate(mine):
                part = 0.14 + 0.72 * (place + 0.5) / len(mine)
                angles[int(switch)] = math.pi / 2 - 2 * math.pi * (group + part) / groups
    return angles


def _curve(
    net: Network, low: int, high: int, at: Callable[[int], Point], centre: Point
) -> list[Point]:
    """Within a tier of a group a bow outwards, between groups inwards, else a straight line."""
    a, b = at(low), at(high)
    if net.group[low] == net.group[high]:
        if net.tier[low] != net.tier[high]:
            return [a, b]
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        out = math.dist(middle, centre) or 1.0
        push = 0.55 * math.dist(a, b)
        bend = tuple(m + push * (m - c) / out for m, c in zip(middle, centre, strict=True))
        return _curved(a, bend, b)
    return _bow(a, b, centre)


def _bow(a: Point, b: Point, centre: Point) -> list[Point]:
    """A line that bends towards the centre."""
    bend = tuple(c + 0.25 * ((p + q) / 2 - c) for p, q, c in zip(a, b, centre, strict=True))
    return _curved(a, bend, b)


def _curved(a: Point, bend: tuple[float, ...], b: Point) -> list[Point]:
    """A curve from `a` to `b`, drawn towards `bend`."""
    points = []
    for step in range(_CURVE):
        t = step / (_CURVE - 1)
        points.append(
            (
                (1 - t) ** 2 * a[0] + 2 * t * (1 - t) * bend[0] + t**2 * b[0],
                (1 - t) ** 2 * a[1] + 2 * t * (1 - t) * bend[1] + t**2 * b[1],
            )
        )
    return points


def _hosts(sketch: Sketch, at: Callable[[int, float], Point], size: float) -> None:
    """The hosts of each switch, as a box outside of it."""
    net, links = sketch.net, sketch.net.host_links
    for row, switch in enumerate(map(int, links.lower)):
        ends = f"{net.names[switch]} \N{EN DASH} hosts"
        sketch.line(links, row, [at(switch, 0.5), at(switch, 0.08)], ends, 0.8)
        count = int(links.count[row])
        box = Box(
            *at(switch, 0.54),
            min(0.3, size + 0.06),
            0.16,
            "hosts",
            f"\N{MULTIPLICATION SIGN}{count}" if size > 0.2 else "",
            plural(count, "host"),
        )
        sketch.boxes.append(box)


def _left(sketch: Sketch) -> None:
    """What there is, in the upper left corner."""
    net = sketch.net
    same = net.group[net.links.lower] == net.group[net.links.upper]
    lines = [plural(int(net.group.max()) + 1, "group")]
    lines.append(plural(len(net.names), "switch", "switches"))
    lines.append(f"{plural(net.hosts, 'host')}: {net.rate_of(net.host_links)}")
    for what, rows in (("local", same), ("global", ~same)):
        mine = net.links.only(rows)
        if len(mine):
            count = int(mine.count.sum())
            lines.append(f"{count:,} {what} links: {net.rate_of(mine)}")
    sketch.say(0.05, _SIZE - 0.6, "\n".join(lines))
