"""A torus or a mesh: in perspective, or for many switches the load of each dimension by layers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.report.figures.fabric.blocks import as_cells
from weft.report.figures.fabric.network import Floats, Ints, Network
from weft.report.figures.fabric.sketch import LEFT, WIDTH, Point, Sketch, plural
from weft.report.figures.model import Axis, Box, Cells, Drawing, Stroke

_MOST_FLAT = 1100
"""Switches of a grid of two dimensions that are drawn."""
_MOST_DEEP = 150
"""The same of three."""
_STUB = 0.22
_MOST_LINES = 40
"""Rows of a layer that are drawn as lines."""
_NARROWEST = 6.5


def draw(net: Network, scale: Axis) -> Drawing:
    """All switches where they are few enough."""
    sizes = [int(size) for size in str(net.keys["sizes"]).split("x")]
    long = [size for size in sizes if size > 1]
    if len(long) <= 2 and len(net.names) <= _MOST_FLAT:
        return _whole(net, scale, sizes)
    if len(long) == 3 and len(net.names) <= _MOST_DEEP:
        return _whole(net, scale, sizes)
    return _layers(net, scale, sizes)


def _coordinates(net: Network, sizes: list[int]) -> Ints:
    """By switch, its place in each dimension."""
    numbers = np.arange(len(net.names))
    places = []
    for size in sizes:
        places.append(numbers % size)
        numbers = numbers // size
    return np.stack(places, axis=1)


def _whole(net: Network, scale: Axis, sizes: list[int]) -> Drawing:
    sketch = Sketch(net, scale)
    where = _coordinates(net, sizes)
    order = sorted(range(len(sizes)), key=lambda one: sizes[one] < 2)
    across, down = order[0], order[1] if len(order) > 1 else None
    deep = order[2] if len(order) > 2 and sizes[order[2]] > 1 else None
    cell = min(1.3 if deep is not None else 1.0, (WIDTH - LEFT - 0.8) / sizes[across])
    layers = sizes[deep] if deep is not None else 1
    # Layers stand behind each other: aslant, within what a cell leaves.
    slant = (0.72 * cell / layers, 0.6 * cell / layers)
    rows = sizes[down] if down is not None else 1
    height = rows * cell + 0.9

    def at(place: Ints) -> Point:
        layer = int(place[deep]) if deep is not None else 0
        row = int(place[down]) if down is not None else 0
        x = LEFT + 0.4 + cell * (int(place[across]) + 0.15) + slant[0] * layer
        return x, height - 0.55 - cell * (row + 0.85) + slant[1] * layer + 0.35 * cell

    for row in range(len(net.links)):
        low, high = int(net.links.lower[row]), int(net.links.upper[row])
        ends = f"{net.names[low]} \N{EN DASH} {net.names[high]}"
        _link(sketch, row, (where[low], where[high]), at, ends)
    wide = min(0.3, 0.8 * slant[0] if deep is not None else 0.5 * cell)
    for switch in range(len(net.names)):
        sketch.switch(switch, at(where[switch]), wide, min(0.2, wide), "")
    _left(sketch, sizes, height)
    return sketch.drawing(height, max(_NARROWEST, LEFT + 0.9 + cell * sizes[across]))


def _link(
    sketch: Sketch, row: int, ends: tuple[Ints, Ints], at: Callable[[Ints], Point], names: str
) -> None:
    """A line between neighbours; a link around the grid as a stub at both ends."""
    links = sketch.net.links
    low, high = ends
    step = high - low
    if np.abs(step).sum() == 1:
        sketch.line(links, row, [at(low), at(high)], names)
        return
    dimension = int(np.argmax(np.abs(step)))
    unit = np.zeros(len(step), dtype=np.int64)
    unit[dimension] = 1
    (ax, ay), (bx, by) = at(low), at(high)
    far, near = at(high + unit), at(low - unit)
    size = math.dist(far, (bx, by)) or 1.0
    share = min(0.5, _STUB / size)
    sketch.line(
        links, row, [(bx + share * (far[0] - bx), by + share * (far[1] - by)), (bx, by)], names
    )
    before = len(sketch.signs)
    sketch.line(
        links, row, [(ax, ay), (ax + share * (near[0] - ax), ay + share * (near[1] - ay))], names
    )
    # One sign a link is enough.
    del sketch.signs[before:]


def _layers(net: Network, scale: Axis, sizes: list[int]) -> Drawing:
    """A row of matrices a dimension: a cell is the link of a switch to the next one there."""
    sketch = Sketch(net, scale)
    where = _coordinates(net, sizes)
    wide, tall = sizes[0], sizes[1] if len(sizes) > 1 else 1
    layers = len(net.names) // (wide * tall)
    room = (WIDTH - LEFT - 0.1) / layers
    cell = min(0.92 * room / wide, 1.5 / tall)
    across, high = cell * wide, cell * tall
    # Without load or failures all dimensions look alike.
    shown = len(sizes) if net.has_load or net.kinds() else 1
    height = shown * (high + 0.4) + 0.6
    layer_of = np.arange(len(net.names)) // (wide * tall)
    for dimension in range(shown):
        y = height - 0.4 - (dimension + 1) * (high + 0.4) + 0.3
        grids: list[Floats] = [np.full((tall, wide), np.nan) for _ in range(layers)]
        rows = []
        for row in range(len(net.links)):
            low, upper = int(net.links.lower[row]), int(net.links.upper[row])
            step = where[upper] - where[low]
            if not step[dimension]:
                continue
            owner = low
            rows.append(row)
            if abs(int(step[dimension])) > 1:
                owner = upper
            place = where[owner]
            line = int(place[1]) if len(sizes) > 1 else 0
            grids[layer_of[owner]][line, int(place[0])] = 100 * net.links.load[row]
            worst = net.links.worst(row)
            if worst is not None:
                left = LEFT + room * int(layer_of[owner])
                spot = (left + cell * (int(place[0]) + 0.5), y + high - cell * (line + 0.5))
                ends = f"{net.names[low]} \N{EN DASH} {net.names[upper]}"
                sketch.sign(spot, worst, net.note(net.links, row, ends))
        for layer, grid in enumerate(grids):
            x = LEFT + room * layer
            if net.has_load:
                sketch.cells.append(Cells(x, y, across, high, as_cells(grid)))
            else:
                sketch.boxes.append(Box(x + across / 2, y + high / 2, across, high, "frame"))
                _lines(sketch, (x, y), (wide, tall), cell)
        links, which = net.links, "all dimensions"
        if shown > 1:
            links = links.only(np.array(rows, dtype=np.int64))
            which = f"dimension {dimension + 1}"
        text = f"{which}\n{plural(int(links.count.sum()), 'link')}\n{net.rate_of(links)}"
        sketch.say(0.05, y + high / 2, text)
    if layers > 1:
        step = -(-layers // 16)
        for layer in range(0, layers, step):
            said = f"layer {layer}" if room > 0.5 else str(layer)
            sketch.say(LEFT + room * layer + across / 2, height - 0.3, said, "center", 7)
    counts = f"{plural(len(net.names), 'switch', 'switches')}, {plural(net.hosts, 'host')}"
    text = f"{net.keys['sizes']}: {counts}"
    text += (
        "; a cell is the link of a switch to the next one in that dimension" if net.has_load else ""
    )
    sketch.say(0.05, 0.12, text)
    return sketch.drawing(height)


def _lines(sketch: Sketch, corner: Point, counts: tuple[int, int], cell: float) -> None:
    """The links of a layer between its switches, where there is no load to show."""
    (x, y), (wide, tall) = corner, counts
    if max(counts) > _MOST_LINES:
        return
    rows = [
        [(x + 0.5 * cell, at), (x + (wide - 0.5) * cell, at)]
        for at in (y + cell * (row + 0.5) for row in range(tall))
    ]
    columns = [
        [(at, y + 0.5 * cell), (at, y + (tall - 0.5) * cell)]
        for at in (x + cell * (column + 0.5) for column in range(wide))
    ]
    sketch.strokes += [Stroke(tuple(points), 0.5) for points in rows + columns]


def _left(sketch: Sketch, sizes: list[int], height: float) -> None:
    net = sketch.net
    each = np.unique(net.at)
    lines = [
        "\N{MULTIPLICATION SIGN}".join(map(str, sizes)),
        plural(len(net.names), "switch", "switches"),
    ]
    lines.append(f"{plural(net.hosts, 'host')}" + (f", {each[0]} each" if len(each) == 1 else ""))
    lines.append(f"{plural(int(net.links.count.sum()), 'link')}:")
    lines.append(net.rate_of(net.links))
    # Of two switches each is the next one of the other, with one link.
    if net.keys.get("edges") != "ends" and max(sizes) > 2:
        lines.append("stubs go around")
    sketch.say(0.05, height - 0.65, "\n".join(lines))
