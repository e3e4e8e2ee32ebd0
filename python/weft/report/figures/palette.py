"""One colour, dash and marker for each scheme, the same in every figure.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart; without black,
which is invisible on dark paper. More colours of the same lightness follow for sweeps with up to
twelve series. Dashes and markers differ too, for print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Dash = Literal["solid", "dash", "dot", "dashdot"]


@dataclass(frozen=True)
class Style:
    """How a series looks."""

    colour: str
    dash: Dash = "solid"
    marker: str = "circle"
    """One of `MARKERS`."""


MARKERS = (
    *("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "hexagon"),
    *("pentagon", "triangle-left", "triangle-right", "diamond-tall"),
)
"""As many as a figure has series; names that both renderers map."""

BOUND = Style("#7f7f7f", "dash")
"""The lower bound, in every figure."""

LOAD = ("#A9BCCB", "#7A5CC7", "#D55E00")
"""From idle to busy, for lines and cells of drawings: seen on light and on dark paper."""
LINK = "#98A4AE"
"""A link whose load is not known."""
FAILING = {
    "down": Style("#B3003C", "dot", "x"),
    "degraded": Style("#C77F00", "dashdot", "triangle-down"),
    "flaky": Style("#0072B2", "dash", "diamond"),
}
"""Links that fail: each has a colour, a dash and a sign of its own."""
BOXES = {"switch": "#36506B", "hosts": "#7D8791", "frame": "#7D8791", "mesh": "#A9BCCB"}
"""What stands in a drawing."""

_CYCLE = (
    Style("#D55E00", "solid", "circle"),
    Style("#0072B2", "dash", "square"),
    Style("#009E73", "dashdot", "diamond"),
    Style("#CC79A7", "solid", "triangle-up"),
    Style("#E69F00", "dot", "triangle-down"),
    Style("#56B4E9", "dash", "cross"),
    Style("#8C6D31", "dashdot", "x"),
    Style("#A0A0A0", "dot", "hexagon"),
    Style("#7A5CC7", "solid", "pentagon"),
    Style("#A8A200", "dash", "triangle-left"),
    Style("#B3003C", "dashdot", "triangle-right"),
    Style("#33BBB0", "dot", "diamond-tall"),
)

_NEXT: dict[Dash, Dash] = {"solid": "dot", "dash": "solid", "dashdot": "dash", "dot": "dashdot"}

_FIXED = {
    "ecmp": Style("#D55E00", "dash", "square"),
    "spray": Style("#0072B2", "solid", "circle"),
    "spray-counter": Style("#56B4E9", "dash", "cross"),
    "reps": Style("#E69F00", "dashdot", "triangle-up"),
    "reps-sticky": Style("#CC79A7", "dot", "triangle-down"),
    "ethereal": Style("#009E73", "solid", "diamond"),
}


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """A style for each label, in order; known schemes always look the same.

    A label may say more than the scheme ("ecmp, 1ms"): the first one of a scheme gets the
    scheme's style, further ones what is left. Of twelve no two have the same colour or marker.
    """
    chosen: dict[str, Style] = {}
    for label in labels:
        fixed = _FIXED.get(label.split(",")[0].strip())
        if fixed is not None and fixed not in chosen.values():
            chosen[label] = fixed
    taken = {style.colour for style in chosen.values()}
    free = [style for style in _CYCLE if style.colour not in taken] or list(_CYCLE)
    markers = _left({style.marker for style in chosen.values()})
    for number, label in enumerate(one for one in labels if one not in chosen):
        turn, place = divmod(number, len(free))
        style = free[place]
        # After the last colour the same ones are used again, with other dashes.
        dash = _NEXT[style.dash] if turn % 2 else style.dash
        markers = markers or _left(set())
        marker = style.marker if style.marker in markers and not turn else markers[0]
        markers.remove(marker)
        chosen[label] = Style(style.colour, dash, marker)
    return {label: chosen[label] for label in labels}


def _left(taken: set[str]) -> list[str]:
    """The markers that are not taken."""
    return [marker for marker in MARKERS if marker not in taken]
