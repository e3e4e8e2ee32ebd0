"""Chooses how a fabric is drawn, so that a person can read it at any size."""

from __future__ import annotations

import numpy as np

from weft.report.figures.axes import ends_early, load_scale
from weft.report.figures.fabric import blocks, graph, ring, tiers, torus
from weft.report.figures.fabric.network import KINDS, Network
from weft.report.figures.fabric.sketch import plural
from weft.report.figures.model import Axis, Drawing, Figure, Panel

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


def figure(net: Network, name: str, title: str, caption: str, scale: Axis | None = None) -> Figure:
    """The picture as a figure of one panel; `scale`: of loads, where other pictures share it."""
    scale = scale or _scale(net)
    sentences = [caption + ends_early(scale) * net.has_load, _failing(net)]
    drawn = Panel("", drawing(net, scale))
    return Figure(name, title, " ".join(part for part in sentences if part), (drawn,))


def drawing(net: Network, scale: Axis | None = None) -> Drawing:
    """The picture."""
    scale = scale or _scale(net)
    if net.is_clos:
        planes, alike = _planes(net)
        widest = int(np.bincount(net.tier[net.plane == 0]).max()) * len(planes)
        pairs = int(np.isin(net.plane[net.links.lower], planes).sum())
        if widest <= _WIDEST and pairs <= _MOST_LINES:
            return tiers.draw(net, scale, planes, alike)
        return blocks.draw(net, scale, planes, alike)
    switches = len(net.names)
    if net.topology == "torus":
        return torus.draw(net, scale)
    if net.topology.startswith("dragonfly"):
        few = net.group.max() < _MOST_GROUPS and switches <= _MOST_ROUTERS
        if few:
            return ring.draw(net, scale)
        if net.group.max() < _MOST_CHORDS and not net.has_load:
            return ring.groups(net, scale)
        return graph.matrix(net, scale, net.group, "group")
    if _is_tiered(net):
        return tiers.draw(net, scale, [0], "")
    if switches <= _MOST_NODES and len(net.links) <= _MOST_LINES:
        return graph.draw(net, scale)
    return graph.matrix(net, scale, np.arange(switches), "switch")


def _scale(net: Network) -> Axis:
    """The scale of the loads of this network alone."""
    loads = np.concatenate([net.links.load, net.host_links.load])
    return load_scale(100 * float(np.nanmax(loads)) if net.has_load else 0.0)


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
