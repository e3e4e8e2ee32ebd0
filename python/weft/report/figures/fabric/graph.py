"""Any other network: laid out by distances, or as a matrix where there is too much to draw."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.report.figures.fabric.blocks import as_cells, folded
from weft.report.figures.fabric.network import Floats, Ints, Network
from weft.report.figures.fabric.sketch import LEFT, WIDTH, Sketch, least_to_most, plural, short
from weft.report.figures.model import Axis, Box, Cells, Drawing, Stroke

_HEIGHT = 6.2
_ROUNDS = 300
"""Steps of the layout; it is at rest long before."""


def draw(net: Network, scale: Axis) -> Drawing:
    """All switches, linked ones near each other."""
    sketch = Sketch(net, scale)
    places = _layout(net)
    for row in range(len(net.links)):
        low, high = int(net.links.lower[row]), int(net.links.upper[row])
        ends = f"{net.names[low]} \N{EN DASH} {net.names[high]}"
        way = [tuple(places[low]), tuple(places[high])]
        sketch.line(net.links, row, way, ends)
        sketch.label(net.links, row, way)
    rows = {int(switch): row for row, switch in enumerate(net.host_links.lower)}
    room = 0.75 if len(net.names) <= 24 else 0.3
    texts = short(net.names, room)
    for switch, text in enumerate(texts):
        x, y = map(float, places[switch])
        if switch in rows:
            ends = f"{net.names[switch]} \N{EN DASH} hosts"
            sketch.line(net.host_links, rows[switch], [(x, y - 0.32), (x, y - 0.1)], ends)
            count = int(net.at[switch])
            text_of = f"\N{MULTIPLICATION SIGN}{count}"
            sketch.boxes.append(
                Box(x, y - 0.36, 0.34, 0.16, "hosts", text_of, plural(count, "host"))
            )
        width = max(0.26, 0.075 * len(text) + 0.08)
        sketch.switch(switch, (x, y), width, 0.2, text)
    lines = [
        plural(len(net.names), "switch", "switches"),
        plural(net.hosts, "host"),
        net.rate_of(net.host_links),
        f"{plural(int(net.links.count.sum()), 'link')}:",
        net.rate_of(net.links),
    ]
    sketch.say(0.05, _HEIGHT - 0.6, "\n".join(lines))
    return sketch.drawing(_HEIGHT)


def _layout(net: Network) -> Floats:
    """Places whose distances are in proportion to numbers of links.

    Stress majorisation (Gansner, Koren and North 2004) from a circle, so that the same network
    always looks the same.
    """
    count = len(net.names)
    far = _distances(net)
    angle = 2 * np.pi * np.arange(count) / max(1, count)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1) * far.max() / 2
    # Nothing of a switch stands at a distance of zero but itself.
    weight = np.where(far > 0, 1.0 / np.maximum(far, 1) ** 2, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        apart = places[:, None, :] - places[None, :, :]
        length = np.sqrt((apart**2).sum(axis=2))
        pull = np.where(length > 1e-9, weight * far / np.maximum(length, 1e-9), 0.0)
        places = inverse @ (np.diag(pull.sum(axis=1)) - pull) @ places
    size = np.ptp(places, axis=0)
    if size[1] > size[0]:
        places, size = places[:, ::-1], size[::-1]
    room = np.array([WIDTH - LEFT - 1.2, _HEIGHT - 1.3])
    start = np.array([LEFT + 0.55, 0.75])
    found: Floats = start + room * (places - places.min(axis=0)) / np.maximum(size, 1e-9)
    return found


def _distances(net: Network) -> Floats:
    """How many links each switch is from each other one."""
    count = len(net.names)
    near = np.zeros((count, count), dtype=bool)
    near[net.links.lower, net.links.upper] = near[net.links.upper, net.links.lower] = True
    far = np.full((count, count), np.inf)
    np.fill_diagonal(far, 0)
    reached = np.eye(count, dtype=bool)
    for step in range(1, count + 1):
        wider = reached | ((reached.astype(np.float32) @ near.astype(np.float32)) > 0)
        far[wider & ~reached] = step
        if (wider == reached).all():
            break
        reached = wider
    return np.where(np.isfinite(far), far, count)


def _linked(
    sketch: Sketch, corner: tuple[float, float], size: float, linked: NDArray[np.bool_]
) -> None:
    """Cells with links, where there is no load to show: neighbours in a row are one line."""
    x, y = corner
    kind: Literal["mesh", "frame"] = "mesh" if linked.all() else "frame"
    sketch.boxes.append(Box(x + size / 2, y + size / 2, size, size, kind))
    if kind == "mesh":
        return
    cell = size / len(linked)
    padded = np.pad(linked.astype(np.int8), ((0, 0), (1, 1)))
    rows, starts = np.nonzero(np.diff(padded, axis=1) == 1)
    _, ends = np.nonzero(np.diff(padded, axis=1) == -1)
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        at = y + size - cell * (row + 0.5)
        way = ((x + cell * start, at), (x + cell * end, at))
        sketch.strokes.append(Stroke(way, 72 * cell))


def matrix(net: Network, scale: Axis, of: Ints, what: str) -> Drawing:
    """Groups, or switches, by each other: a cell is all links between two; below it hosts."""
    sketch = Sketch(net, scale)
    count = int(of.max()) + 1
    merged = net.links.merged(of)
    size = 5.6
    left, low = LEFT + 1.0, 0.95
    values: Floats = np.full((count, count), np.nan)
    shown = 100 * merged.load if net.has_load else np.where(merged.count > 0, 1.0, np.nan)
    values[merged.lower, merged.upper] = values[merged.upper, merged.lower] = shown
    if net.has_load:
        sketch.cells.append(Cells(left, low, size, size, as_cells(folded(values))))
    else:
        _linked(sketch, (left, low), size, np.isfinite(folded(values)))
    for row in range(len(merged)):
        worst = merged.worst(row)
        if worst is not None:
            a, b = int(merged.lower[row]), int(merged.upper[row])
            spot = (left + size * (b + 0.5) / count, low + size * (1 - (a + 0.5) / count))
            ends = f"{what} {a} \N{EN DASH} {what} {b}"
            sketch.sign(spot, worst, net.note(merged, row, ends))
    hosts = net.host_links.merged(of) if len(net.host_links) else net.host_links
    if net.has_load and len(hosts):
        strip: Floats = np.full((1, count), np.nan)
        strip[0, hosts.lower] = 100 * hosts.load
        sketch.cells.append(Cells(left, 0.55, size, 0.22, as_cells(folded(strip))))
        sketch.say(left - 0.08, 0.66, "hosts", "right", 7)
    step = -(-count // 16)
    for one in range(0, count, step):
        part = size * (one + 0.5) / count
        sketch.say(left - 0.08, low + size - part, str(one), "right", 7)
        sketch.say(left + part, low + size + 0.12, str(one), "center", 7)
    sketch.say(left + size / 2, low + size + 0.32, what, "center")
    within = merged.lower == merged.upper
    lines = [] if what == "switch" else [plural(count, what)]
    lines += [
        plural(len(net.names), "switch", "switches"),
        plural(net.hosts, "host"),
        f"  {net.rate_of(net.host_links)}",
    ]
    for name, rows in (("within a group", within), ("between groups", ~within)):
        mine = merged.only(rows)
        if len(mine):
            place = f" {name}" if what != "switch" else ""
            lines.append(f"{plural(int(mine.count.sum()), 'link')}{place}")
            lines.append(f"  {net.rate_of(mine)}")
    if what != "switch" and not within.all():
        lines.append(f"links of a cell: {least_to_most(merged.count[~within])}")
    sketch.say(0.05, low + size - 0.9, "\n".join(lines))
    return sketch.drawing(low + size + 0.5, left + size + 0.3)
