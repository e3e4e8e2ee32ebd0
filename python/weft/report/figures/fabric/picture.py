"""Chooses how a fabric is drawn, so that a person can read it at any size."""

from __future__ import annotations

import math

import numpy as np

from weft.report.figures.fabric import blocks, graph, ring, tiers, torus
from weft.report.figures.fabric.network import KINDS, Network
from weft.report.figures.fabric.sketch import plural
from weft.report.figures.model import Drawing, Figure, Panel

_WIDEST = 48
"""Switches of a tier that are drawn side by side, all planes together."""
_MOST_LINES = 700
"""Pairs of linked switches that are drawn as lines."""
_MOST_GROUPS = 12
_MOST_ROUTERS = 120
_MOST_CHORDS = 48
"""Groups that are drawn as blocks, each two linked by a line."""
_MOST_PLANES = 4
_MOST_NODES = 120
"""Switches of a graph that are drawn."""
_MOST_FAILURES = 4
"""Failures that the caption lists."""


def figure(net: Network, name: str, title: str, caption: str) -> Figure:
    """The picture as a figure of one panel."""
    sentences = [caption, _failing(net)]
    drawn = Panel("", drawing(net))
    return Figure(name, title, " ".join(part for part in sentences if part), (drawn,))


def drawing(net: Network) -> Drawing:
    """The picture."""
    top = _top(net)
    if net.is_clos:
        planes, alike = _planes(net)
        widest = int(np.bincount(net.tier[net.plane == 0]).max()) * len(planes)
        pairs = int(np.isin(net.plane[net.links.lower], planes).sum())
        if widest <= _WIDEST and pairs <= _MOST_LINES:
            return tiers.draw(net, top, planes, alike)
        return blocks.draw(net, top, planes, alike)
    switches = len(net.names)
    if net.topology == "torus":
        return torus.draw(net, top)
    if net.topology.startswith("dragonfly"):
        few = net.group.max() < _MOST_GROUPS and switches <= _MOST_ROUTERS
        if few:
            return ring.draw(net, top)
        if net.group.max() < _MOST_CHORDS and not net.has_load:
            return ring.groups(net, top)
        return graph.matrix(net, top, net.group, "group")
    if _is_tiered(net):
        return tiers.draw(net, top, [0], "")
    if switches <= _MOST_NODES and len(net.links) <= _MOST_LINES:
        return graph.draw(net, top)
    return graph.matrix(net, top, np.arange(switches), "switch")


def _top(net: Network) -> float:
    """The upper end of the scale of loads, in per cent.

    A few links far above all others, such as a dead one into which packets are sent again and
    again, do not set it: else nothing else would have a colour.
    """
    loads = 100 * np.concatenate([net.links.load, net.host_links.load])
    used = loads[loads > 0]
    if not len(used):
        return 1.0
    most, usual = float(used.max()), float(np.quantile(used, 0.98))
    return _round_up(usual if 3 * usual < most else most)


def _round_up(top: float) -> float:
    """A round upper end of a scale; of links that hardly carry anything a small one."""
    if top <= 0:
        return 1.0
    ten = 10.0 ** math.floor(math.log10(top))
    round_ones = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return min(100.0, next(ten * one for one in round_ones if top <= ten * one * (1 + 1e-9)))


def _planes(net: Network) -> tuple[list[int], str]:
    """The planes that are drawn, and what the only one of several stands for."""
    if net.planes == 1:
        return [0], ""
    if net.has_load or net.kinds():
        # Planes in which something fails first.
        bad = np.sum([net.failing_by_plane(kind) for kind in KINDS], axis=0)
        order = sorted(range(net.planes), key=lambda plane: (not bad[plane], plane))
        return sorted(order[:_MOST_PLANES]), ""
    return [0], f"one of {plural(net.planes, 'plane')}, which are all alike"


def _is_tiered(net: Network) -> bool:
    """Whether all links go from a tier to the next, and there is more than one tier."""
    low, high = net.tier[net.links.lower], net.tier[net.links.upper]
    few = len(net.links) <= _MOST_LINES and np.bincount(net.tier).max() <= _WIDEST
    return bool(len(low) and (np.abs(low - high) == 1).all() and few)


def size(net: Network) -> str:
    """The fabric in words, for a title."""
    planes = f" in {plural(net.planes, 'plane')}" if net.planes > 1 else ""
    hosts, switches = plural(net.hosts, "host"), plural(len(net.names), "switch", "switches")
    return f"{hosts}, {switches}{planes}"


def _failing(net: Network) -> str:
    if not net.failures:
        return ""
    shown = net.failures[:_MOST_FAILURES]
    more = len(net.failures) - len(shown)
    rest = f", and {more} more" if more else ""
    return f"Failures: {'; '.join(shown)}{rest}."
