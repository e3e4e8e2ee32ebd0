"""A fabric in tiers, with every switch and every pair of linked switches drawn."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from weft.report.figures.fabric.network import Ints, Network
from weft.report.figures.fabric.sketch import LEFT, WIDTH, Sketch, least_to_most, plural, short
from weft.report.figures.model import Axis, Box, Drawing

_BOX = 0.24
_GAP = 1.35
"""Inches from one tier to the next."""
_MOST_HOSTS = 40
"""So many hosts are drawn one by one."""
_NAMES = {
    "leaf": ("leaf", "leaves"),
    "spine": ("spine", "spines"),
    "agg": ("aggregation switch", "aggregation switches"),
    "core": ("core", "cores"),
}
"""What a tier of switches with such names is, in words."""


def draw(net: Network, scale: Axis, planes: list[int], alike: str) -> Drawing:
    """The switches of some planes side by side; `alike` says what the others are like."""
    sketch = Sketch(net, scale)
    tiers = int(net.tier.max()) + 1
    several = net.planes > 1
    pods = (tiers > 2 and net.is_clos) or bool(_rails(net, np.arange(len(net.names))))
    floor = 0.7 + 0.3 * several + 0.2 * pods
    height = floor + _GAP * (tiers - 1) + (0.6 if several else 0.2)
    span = (WIDTH - LEFT - 0.1) / len(planes)
    for place, plane in enumerate(planes):
        left = LEFT + place * span
        room = span - (0.16 if several else 0.0)
        _plane(sketch, plane, left + (0.08 if several else 0.0), room, floor)
        if several:
            low = floor - 0.68 - 0.2 * pods
            high = height - 0.27
            title = alike or f"plane {plane}"
            middle = (left + span / 2, (low + high) / 2)
            sketch.boxes.append(Box(*middle, span - 0.08, high - low, "frame", title))
    _left(sketch, planes[0], floor, tiers)
    sketch.note_below(len(planes), alike)
    return sketch.drawing(height)


def _plane(sketch: Sketch, plane: int, left: float, room: float, floor: float) -> None:
    net = sketch.net
    mine = np.flatnonzero(net.plane == plane)
    rows = [mine[net.tier[mine] == tier] for tier in range(int(net.tier.max()) + 1)]
    places = _places(net, rows, left, room)
    heights = {tier: floor + _GAP * tier for tier in range(len(rows))}

    def at(switch: int) -> tuple[float, float]:
        return places[switch], heights[int(net.tier[switch])]

    _pods(sketch, rows, places, floor)
    for row in range(len(net.links)):
        low, high = int(net.links.lower[row]), int(net.links.upper[row])
        if net.plane[low] != plane:
            continue
        if net.tier[low] > net.tier[high]:
            low, high = high, low
        ends = f"{net.names[low]} \N{EN DASH} {net.names[high]}"
        sketch.line(net.links, row, _way(at(low), at(high)), ends)
        if not net.is_clos:
            sketch.label(net.links, row, _way(at(low), at(high)))
    for tier, switches in enumerate(rows):
        pitch = room / max(1, len(switches))
        width = min(0.85, 0.84 * pitch)
        texts = short(net.own_names(switches), width)
        for switch, text in zip(switches, texts, strict=True):
            sketch.switch(int(switch), (places[switch], heights[tier]), width, _BOX, text)
    _hosts(sketch, rows[0], places, floor, room / max(1, len(rows[0])))


def _way(low: tuple[float, float], high: tuple[float, float]) -> list[tuple[float, float]]:
    """From the top of one box to the bottom of another; between neighbours of a tier in a bow."""
    if low[1] != high[1]:
        return [(low[0], low[1] + _BOX / 2), (high[0], high[1] - _BOX / 2)]
    middle = ((low[0] + high[0]) / 2, low[1] + _BOX / 2 + 0.25)
    return [(low[0], low[1] + _BOX / 2), middle, (high[0], high[1] + _BOX / 2)]


def _places(net: Network, rows: list[Ints], left: float, room: float) -> dict[int, float]:
    """The x of every switch, tiers being spread over the width.

    In a Clos by their numbers, in other networks by what is below: hosts, then switches.
    """
    places: dict[int, float] = {}
    first = {
        switch: number for number, (homes, _) in enumerate(net.homes) for switch in homes[::-1]
    }
    for tier, switches in enumerate(rows):
        order = list(map(int, switches))
        if not net.is_clos and tier:
            order.sort(key=lambda one: _middle(net, one, places))
        elif not net.is_clos:
            order.sort(key=lambda one: first.get(one, len(net.names)))
        for number, switch in enumerate(order):
            places[switch] = left + room * (number + 0.5) / max(1, len(order))
    return places


def _middle(net: Network, switch: int, places: dict[int, float]) -> float:
    """The mean x of what is below a switch."""
    links = net.links
    peers = [*links.upper[links.lower == switch], *links.lower[links.upper == switch]]
    below = [places[int(peer)] for peer in peers if int(peer) in places]
    return sum(below) / len(below) if below else 0.0


def _pods(sketch: Sketch, rows: list[Ints], places: dict[int, float], floor: float) -> None:
    """A frame around each pod, or rail."""
    net = sketch.net
    rails = _rails(net, rows[0])
    if rails:
        framed, tiers = [(f"rail {rail}", leaves) for rail, leaves in rails.items()], len(rows)
    elif len(rows) > 2 and net.is_clos:
        group = net.group[rows[0]]
        framed, tiers = [(f"pod {pod}", rows[0][group == pod]) for pod in np.unique(group)], 2
    else:
        return
    pitch = np.diff([places[int(switch)] for switch in rows[0]]).min() if len(rows[0]) > 1 else 0.6
    for name, leaves in framed:
        left, right = places[int(leaves[0])], places[int(leaves[-1])]
        middle, width = (left + right) / 2, right - left + 0.93 * pitch
        low, high = floor - 0.67, floor + _GAP * (tiers - 1) + 0.2
        sketch.boxes.append(Box(middle, (low + high) / 2, width, high - low, "frame"))
        sketch.say(middle, low - 0.1, name, "center", 7.5)


def _rails(net: Network, switches: Ints) -> dict[int, Ints]:
    """Some switches by their rails, if the fabric has any."""
    found: dict[int, list[int]] = {}
    for switch in map(int, switches):
        rail = re.match(r"rail-(\d+)-", net.names[switch])
        if rail:
            found.setdefault(int(rail[1]), []).append(switch)
    return {rail: np.asarray(these) for rail, these in found.items()}


def _hosts(
    sketch: Sketch, leaves: Ints, places: dict[int, float], floor: float, pitch: float
) -> None:
    """The hosts of each leaf, or of the same leaves: one by one, or as a box with their number."""
    net, links = sketch.net, sketch.net.host_links
    rows = {int(switch): row for row, switch in enumerate(links.lower)}
    mine = set(map(int, leaves))
    one_by_one = net.hosts * net.planes <= _MOST_HOSTS
    top, bottom = floor - _BOX / 2, floor - 0.48
    for homes, count in net.homes:
        if not mine.issuperset(homes):
            continue
        x = sum(places[leaf] for leaf in homes) / len(homes)
        alone = one_by_one and all(links.worst(rows[leaf]) is None for leaf in homes)
        shown = count if alone else 1
        step = min(0.2, 0.9 * pitch / count)
        for place in range(shown):
            own = x + step * (place - (shown - 1) / 2)
            for leaf in homes:
                these = links.only(np.array([rows[leaf]]))
                these = replace(these, count=np.array([1])) if alone else these
                ends = f"{net.names[leaf]} \N{EN DASH} hosts"
                way = [(own, bottom), (places[leaf], top)]
                sketch.line(these, 0, way, ends, 0.7 if alone else 1.0)
            if alone:
                box = Box(own, bottom - 0.05, 0.8 * step, 0.1, "hosts", "", "a host")
            else:
                width = min(0.62, 0.84 * pitch)
                text = f"\N{MULTIPLICATION SIGN}{count}"
                text = text if len(text) * 0.07 <= width else ""
                box = Box(x, bottom - 0.09, width, 0.18, "hosts", text, f"{count} hosts")
            sketch.boxes.append(box)


def _left(sketch: Sketch, plane: int, floor: float, tiers: int) -> None:
    """What the tiers are, and the links between them."""
    net = sketch.net
    mine = net.plane == plane
    for tier in range(tiers):
        text = plural(int((mine & (net.tier == tier)).sum()), *kind(net, plane, tier))
        sketch.beside(floor + _GAP * tier, text)
        if tier:
            sketch.beside(floor + _GAP * (tier - 0.5), between(net, plane, tier, "a line is"), 7.0)
    each = np.unique(net.at[mine & (net.at > 0)])
    per = f", {each[0]} a leaf" if len(each) == 1 and net.is_clos else ""
    ports = max((len(homes) for homes, _ in net.homes), default=1)
    per = f",\n{ports} ports each" if ports > 1 else per
    rate = net.rate_of(net.host_links)
    sketch.beside(floor - 0.5, f"{plural(net.hosts, 'host')}{per}\n{rate}", 7.0)


def kind(net: Network, plane: int, tier: int) -> tuple[str, str]:
    """What a switch of a tier is, and several of them."""
    these = np.flatnonzero((net.plane == plane) & (net.tier == tier))
    kinds = {re.sub(r".*-(?=\D)|-\d+$", "", net.names[one]) for one in these}
    return _NAMES.get(kinds.pop() if len(kinds) == 1 else "", ("switch", "switches"))


def between(net: Network, plane: int, tier: int, each: str) -> str:
    """The links between a tier and the one below, in words; `each` counts those of two switches."""
    links = net.links
    tiers = np.maximum(net.tier[links.lower], net.tier[links.upper])
    rows = np.flatnonzero((net.plane[links.lower] == plane) & (tiers == tier))
    mine = links.only(rows)
    if not len(mine):
        return ""
    said = f"{plural(int(mine.count.sum()), 'link')}\n{net.rate_of(mine)}"
    return said if mine.count.max() == 1 else f"{said}\n{each} {least_to_most(mine.count)}"
