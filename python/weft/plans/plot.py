"""The load of every link between switches, as a picture: one panel a direction and tier.

A cell is a link: its row the lower switch, its column the uplink. Its colour is how long it takes
over its payload, against the lower bound of the step: one is what the busiest link takes at least.
Links that are down are crossed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from weft.plans import network
from weft.plans.file import Plan
from weft.plans.network import Network, Numbers
from weft.units import format_time, significant

_LARGEST = 16
"""Cells with numbers in them, a side."""
_ROWS = 40
"""Rows with names."""


@dataclass(frozen=True)
class _Panel:
    """Links of one direction between two tiers."""

    title: str
    names: list[str]
    links: Numbers
    """By row and column; -1 for none."""


def draw(plan: Plan, path: Path) -> None:
    """Draw the step that keeps links between switches busy longest; nothing where there is none."""
    if not plan["steps"]:
        path.unlink(missing_ok=True)
        return
    net = network.of(plan["links"])
    panels = _panels(net)
    alive = net.capacities > 0
    used = np.concatenate([panel.links[panel.links >= 0] for panel in panels])

    def seconds(step: dict[str, Any]) -> NDArray[np.float64]:
        taken = np.zeros(len(alive))
        loads = np.asarray(step["loads"], dtype=np.float64)
        taken[alive] = loads[alive] * 8 / net.capacities[alive]
        return taken

    steps = plan["steps"]
    spent = [step["times"] * seconds(step)[used].max(initial=0.0) for step in steps]
    number = int(np.argmax(spent))
    step = steps[number]
    bound = step["bound_s"] or 1.0
    relative = seconds(step) / bound
    most = max(1.0, float(relative[used].max(initial=0.0)))
    rows, columns = max(len(p.names) for p in panels), max(p.links.shape[1] for p in panels)
    width = min(18.0, 3 + 0.45 * columns) * 2
    height = min(14.0 / (len(panels) // 2), 1.6 + 0.3 * rows) * (len(panels) // 2)
    figure = Figure(figsize=(min(max(width, 9), 16), max(height, 3.2)), layout="constrained")
    grid = figure.subplots(len(panels) // 2, 2, squeeze=False)
    images = []
    for axes, panel in zip(grid.flat, panels, strict=True):
        values = np.where(panel.links >= 0, relative[panel.links], np.nan)
        image = axes.imshow(values, vmin=0, vmax=most, cmap="viridis", aspect="auto")
        images.append(image)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel("uplink")
        axes.set_xticks(_ticks(panel.links.shape[1]))
        if len(panel.names) <= _ROWS:
            axes.set_yticks(range(len(panel.names)), panel.names, fontsize=8)
        else:
            axes.set_yticks(_ticks(len(panel.names)))
            axes.set_ylabel(f"{panel.names[0].rstrip('0123456789-')} number")
        _mark(axes, panel, values, alive, most)
    bar = figure.colorbar(images[0], ax=grid.ravel().tolist(), shrink=0.9)
    bar.set_label(f"time / lower bound ({format_time(bound)})")
    figure.suptitle(f"{plan['title']}: {plan['scheme']}, step {number + 1} ({step['name']})")
    figure.savefig(path, dpi=110)


def _ticks(count: int) -> list[int]:
    stride = max(1, -(-count // 16))
    return list(range(0, count, stride))


def _mark(
    axes: Axes,
    panel: _Panel,
    values: NDArray[np.float64],
    alive: NDArray[np.bool_],
    most: float,
) -> None:
    """Cross out dead links; write the numbers where there is room."""
    small = max(panel.links.shape) <= _LARGEST
    for (row, column), link in np.ndenumerate(panel.links):
        if link < 0:
            continue
        if not alive[link]:
            axes.plot(column, row, marker="x", color="#D55E00", markersize=9, markeredgewidth=2)
        elif small:
            colour = "white" if values[row, column] < 0.6 * most else "black"
            number = significant(float(values[row, column]), 3)
            axes.text(column, row, number, ha="center", va="center", fontsize=7, color=colour)


def _panels(net: Network) -> list[_Panel]:
    """Up and down, tier by tier."""
    tiers = [(np.arange(net.leaves), "leaf", "spine")]
    middle = np.unique(net.above[: net.leaves][net.above[: net.leaves] >= 0])
    if (net.ups[middle] >= 0).any():
        tiers = [(np.arange(net.leaves), "leaf", "aggregation"), (middle, "aggregation", "core")]
    panels = []
    for switches, lower, upper in tiers:
        ups = net.ups[switches]
        ups = ups[:, : int((ups >= 0).sum(axis=1).max())]
        labels = [net.switches[switch] for switch in switches]
        panels.append(_Panel(f"{lower} to {upper}", labels, ups))
        panels.append(_Panel(f"{upper} to {lower}", labels, _downs(net, switches, ups.shape[1])))
    return panels


def _downs(net: Network, switches: Numbers, columns: int) -> Numbers:
    """The links that lead back, in the places of those up."""
    downs = np.full((len(switches), columns), -1, dtype=np.int64)
    for row, switch in enumerate(switches):
        seen: dict[int, int] = {}
        for place in range(columns):
            upper = int(net.above[switch, place])
            if upper < 0:
                continue
            member = seen.get(upper, 0)
            seen[upper] = member + 1
            downs[row, place] = net.between[upper, switch] + member
    return downs
