"""A folded Clos of many switches: a block a pod, and the links within it as a matrix.

A cell of a matrix is the links between two switches: its column the lower one, its row the upper
one. Links between blocks are one line with their number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.report.figures.fabric.network import Floats, Ints, Links, Network
from weft.report.figures.fabric.sketch import LEFT, LETTER, WIDTH, Sketch, plural
from weft.report.figures.fabric.tiers import between, kind
from weft.report.figures.model import Axis, Box, Cells, Drawing

MOST_CELLS = 128
"""Rows or columns of a matrix; more are drawn together, the busiest counting."""
_MOST_SIGNS = 300
_ROOM = 0.5
"""Inches for a text beside a line."""
_STRIP = 0.2
_HOSTS = 0.48
_HOST_LOAD = 0.14
"""Inches of a row of cells: the busiest host of each leaf."""
_BELOW = 0.58
"""Inches from leaves down to hosts."""
_RISE = 0.75
"""Inches from pods up to the cores."""


def draw(net: Network, scale: Axis, planes: list[int], alike: str) -> Drawing:
    """The pods of some planes side by side; `alike` says what the others are like."""
    sketch = Sketch(net, scale)
    tiers = int(net.tier.max()) + 1
    # Without load there is nothing to see in the cells.
    tall = (2.2 if tiers == 2 else 1.0) if net.has_load or net.kinds() else 0.5
    levels = [_HOSTS + 0.32]
    for _ in range(min(tiers, 3) - 1):
        levels.append(levels[-1] + tall + _STRIP + 0.04)
    height = levels[-1] + (_RISE + 0.3 if tiers == 3 else 0.3)
    span = (WIDTH - LEFT - 0.1) / len(planes)
    base = 0.3 if net.planes > 1 else 0.0
    levels = [level + base for level in levels]
    height += base
    for place, plane in enumerate(planes):
        left = LEFT + place * span + 0.08
        _plane(sketch, plane, left, span - 0.16, levels, tall)
        if net.planes > 1:
            title = alike or f"plane {plane}"
            low, high = levels[0] - _BELOW - 0.2, height - 0.2
            middle = (left + span / 2 - 0.08, (low + high) / 2)
            sketch.boxes.append(Box(*middle, span - 0.06, high - low, "frame", title))
    _left(sketch, planes[0], levels, tall)
    sketch.note_below(len(planes), alike)
    return sketch.drawing(height)


def _plane(
    sketch: Sketch, plane: int, left: float, room: float, levels: list[float], tall: float
) -> None:
    net = sketch.net
    mine = net.plane == plane
    pods = np.unique(net.group[mine & (net.tier == 0)])
    pitch = room / len(pods)
    wide = pitch * (0.9 if len(pods) > 1 else 1.0)
    for place, pod in enumerate(map(int, pods)):
        x = left + pitch * (place + 0.5)
        inside = [np.flatnonzero(mine & (net.group == pod) & (net.tier == tier)) for tier in (0, 1)]
        # Spines of a Clos of two tiers are a group with its leaves.
        _pod(sketch, inside, (x, wide), levels, tall)
        if len(levels) > 2:
            cores = np.flatnonzero(mine & (net.tier == 2))
            _uplinks(sketch, inside[1], cores, (x, wide), levels, tall)
        if len(pods) > 1:
            low, high = levels[0] - 0.14, levels[-1] - 0.08
            frame = Box(x, (low + high) / 2, wide + 0.04, high - low, "frame")
            sketch.boxes.append(frame)
        if len(pods) > 1 and (len(pods) <= 16 or place % (len(pods) // 16) == 0):
            sketch.say(x, levels[-1] + 0.02, f"pod {pod}" if wide > 0.45 else str(pod), "center", 7)
    if len(levels) > 2:
        _cores(sketch, plane, (left, room), pods, levels)


def _pod(
    sketch: Sketch,
    inside: list[Ints],
    across: tuple[float, float],
    levels: list[float],
    tall: float,
) -> None:
    net = sketch.net
    leaves, mids = inside
    x, wide = across
    hosts = int(net.at[leaves].sum())
    own = net.host_links.only(np.isin(net.host_links.lower, leaves))
    if len(own):
        block = np.zeros(len(net.names), dtype=np.int64)
        line = own.merged(block)
        low = levels[0] - _BELOW + _STRIP / 2
        if net.has_load:
            loads: Floats = np.full((1, len(leaves)), np.nan)
            loads[0, own.lower - leaves[0]] = 100 * own.load
            cells = Cells(x - wide / 2, low + 0.02, wide, _HOST_LOAD, as_cells(folded(loads)))
            sketch.cells.append(cells)
            low += 0.02 + _HOST_LOAD
        ways = [(x, low), (x, levels[0] - _STRIP / 2)]
        sketch.line(line, 0, ways, f"{net.names[leaves[0]]}, ... \N{EN DASH} hosts")
    _strip(sketch, "hosts", x, levels[0] - _BELOW, wide, hosts, "host")
    _strip(sketch, "switch", x, levels[0], wide, len(leaves), "leaf", "leaves")
    _strip(sketch, "switch", x, levels[1], wide, len(mids), "switch", "switches")
    low = levels[0] + _STRIP / 2 + 0.02
    rows = np.flatnonzero(np.isin(net.links.lower, leaves) & np.isin(net.links.upper, mids))
    column = net.links.lower[rows] - leaves[0]
    line_of = net.links.upper[rows] - mids[0]
    _matrix(
        sketch,
        net.links.only(rows),
        (line_of, column),
        (len(mids), len(leaves)),
        (x - wide / 2, low, wide, tall),
    )


def _uplinks(
    sketch: Sketch,
    mids: Ints,
    cores: Ints,
    across: tuple[float, float],
    levels: list[float],
    tall: float,
) -> None:
    """The links of a pod's aggregation switches to the cores: a column each, a row each core."""
    net = sketch.net
    x, wide = across
    rows = np.flatnonzero(np.isin(net.links.lower, mids) & np.isin(net.links.upper, cores))
    per = len(cores) // len(mids)
    column = net.links.lower[rows] - mids[0]
    line_of = (net.links.upper[rows] - cores[0]) % per
    low = levels[1] + _STRIP / 2 + 0.02
    _matrix(
        sketch,
        net.links.only(rows),
        (line_of, column),
        (per, len(mids)),
        (x - wide / 2, low, wide, tall),
    )


def _cores(
    sketch: Sketch, plane: int, span: tuple[float, float], pods: Ints, levels: list[float]
) -> None:
    net = sketch.net
    left, room = span
    mine = net.plane == plane
    cores = np.flatnonzero(mine & (net.tier == 2))
    above = np.isin(net.links.upper, cores)
    of = np.where(net.tier == 2, len(pods), net.group)
    merged = net.links.only(above).merged(of)
    high = levels[-1] + _RISE
    pitch = room / len(pods)
    for row in range(len(merged)):
        x = left + pitch * (int(merged.lower[row]) + 0.5)
        to = left + room / 2 + (x - left - room / 2) * 0.9
        ways = [(x, levels[-1] + 0.13), (to, high - _STRIP / 2)]
        ends, tells = f"pod {merged.lower[row]} \N{EN DASH} cores", pitch > _ROOM
        sketch.line(merged, row, ways, ends, 0.6, tells=tells)
        if tells and merged.worst(row) is None:
            text = f"\N{MULTIPLICATION SIGN}{merged.count[row]}"
            sketch.say(x + 0.08, levels[-1] + 0.2, text, "left", 6.5)
    per = len(np.unique(net.group[mine & (net.tier == 1)]))
    aggs = int((mine & (net.tier == 1)).sum()) // max(1, per)
    text = (
        f"{len(cores)} cores, {len(cores) // max(1, aggs)} above each aggregation switch of a pod"
    )
    if len(text) * LETTER > room:
        text = f"{len(cores)} cores"
    sketch.boxes.append(Box(left + room / 2, high, room, _STRIP, "switch", text))


def _strip(
    sketch: Sketch, kind: str, x: float, y: float, wide: float, count: int, one: str, more: str = ""
) -> None:
    """Some switches or hosts as one box with their number."""
    long = plural(count, one, more)
    texts = [long, f"\N{MULTIPLICATION SIGN}{count}", str(count), ""]
    text = next(text for text in texts if len(text) * LETTER <= wide or not text)
    sketch.boxes.append(Box(x, y, wide, _STRIP, kind, text, long))  # type: ignore[arg-type]


def _matrix(
    sketch: Sketch,
    links: Links,
    places: tuple[Ints, Ints],
    shape: tuple[int, int],
    where: tuple[float, float, float, float],
) -> None:
    """Loads of links by row and column, and signs where some fail."""
    x, y, wide, tall = where
    if not (sketch.net.has_load or sketch.net.kinds()):
        text = f"{shape[1]} \N{MULTIPLICATION SIGN} {shape[0]}"
        text = text if len(text) * LETTER < wide else ""
        sketch.boxes.append(Box(x + wide / 2, y + tall / 2, wide, tall, "mesh", text))
        return
    full: Floats = np.full(shape, np.nan)
    full[places] = 100 * links.load
    if sketch.net.has_load:
        sketch.cells.append(Cells(x, y, wide, tall, as_cells(folded(full))))
    else:
        sketch.boxes.append(Box(x + wide / 2, y + tall / 2, wide, tall, "mesh"))
    bad = (
        [row for row in range(len(links)) if links.worst(row) is not None]
        if any(counts.any() for counts in links.failing.values())
        else []
    )
    for row in bad[:_MOST_SIGNS]:
        across = x + wide * (places[1][row] + 0.5) / shape[1]
        # The first row is on top.
        along = y + tall * (1 - (places[0][row] + 0.5) / shape[0])
        names = sketch.net.names
        ends = f"{names[links.lower[row]]} \N{EN DASH} {names[links.upper[row]]}"
        worst = links.worst(row) or ""
        sketch.sign((across, along), worst, sketch.net.note(links, row, ends))


def folded(values: Floats) -> Floats:
    """At most `MOST_CELLS` rows and columns: of neighbours that share a cell the busiest counts."""
    for axis in (0, 1):
        step = -(-values.shape[axis] // MOST_CELLS)
        if step > 1:
            starts = np.arange(0, values.shape[axis], step)
            values = np.fmax.reduceat(values, starts, axis=axis)
    return values


def as_cells(values: NDArray[np.float64]) -> tuple[tuple[float | None, ...], ...]:
    """Rows of numbers; None where there is none."""
    return tuple(
        tuple(float(f"{cell:.4g}") if np.isfinite(cell) else None for cell in row) for row in values
    )


def _left(sketch: Sketch, plane: int, levels: list[float], tall: float) -> None:
    """What the rows are."""
    net = sketch.net
    mine = net.plane == plane
    tiers = int(net.tier.max()) + 1
    heights = [*levels[:2], levels[-1] + _RISE]
    for tier in range(tiers):
        count = int((mine & (net.tier == tier)).sum())
        text = plural(count, *kind(net, plane, tier))
        sketch.beside(heights[tier], text)
        if tier:
            said = between(net, plane, tier, "a pair has")
            if net.has_load:
                size = int((mine & (net.tier == tier)).sum()) if tiers == 2 else 0
                column, row = (kind(net, plane, one)[0] for one in (tier - 1, tier))
                said += f"\ncolumn: {column}\nrow: {row}"
                step = -(-size // MOST_CELLS)
                said += (
                    f"\na cell: busiest of {step}\N{MULTIPLICATION SIGN}{step}" if step > 1 else ""
                )
            low = levels[tier - 1] + _STRIP / 2 + tall / 2
            sketch.beside(low, said, 7.0)
    each = np.unique(net.at[mine & (net.at > 0)])
    per = f", {each[0]} a leaf" if len(each) == 1 else ""
    text = f"{plural(int(net.at[mine].sum()), 'host')}{per}\n{net.rate_of(net.host_links)}"
    sketch.beside(levels[0] - _BELOW, text, 7.0)
