"""Collects what a drawing of a fabric consists of, and turns links into lines."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence

import numpy as np

from weft.report.figures.fabric.network import Ints, Links, Network, short_rate
from weft.report.figures.model import (
    Axis,
    Box,
    Cells,
    Drawing,
    Kind,
    Sign,
    Stroke,
    Words,
)

Point = tuple[float, float]

WIDTH = 10.0
"""Inches of every drawing."""
LEFT = 1.45
"""Inches left of it for what its rows are."""
LETTER = 0.075
"""Inches of a letter of 8 points."""
_MOST_LABELS = 40
"""Lines that have their rates written beside them."""
_SMALL = 6.5
"""Points of letters beside lines."""
_STEEP = 0.4
"""Lines that rise less have their texts above them."""
_CLEAR = 0.02
"""Inches between a line and the letters beside it."""
_SIGN_AT = 0.3
"""Where along a line its sign is: not in the middle, where most lines cross."""


class Sketch:
    """A drawing that is being made."""

    def __init__(self, net: Network, scale: Axis) -> None:
        """`scale` is that of loads, in per cent."""
        self.net = net
        self.scale = scale
        self.strokes: list[Stroke] = []
        self.boxes: list[Box] = []
        self.cells: list[Cells] = []
        self.signs: list[Sign] = []
        self.words: list[Words] = []

    def drawing(self, height: float, width: float = WIDTH) -> Drawing:
        """What has been collected."""
        return Drawing(
            width,
            height,
            tuple(self.strokes),
            tuple(self.boxes),
            tuple(self.cells),
            tuple(self.signs),
            tuple(self.words),
            self.scale if self.net.has_load else None,
        )

    def value(self, links: Links, row: int) -> float | None:
        """The load of a row in per cent."""
        load = float(links.load[row])
        return 100 * load if math.isfinite(load) else None

    def line(
        self,
        links: Links,
        row: int,
        points: Sequence[Point],
        ends: str,
        thin: float = 1.0,
        *,
        tells: bool = True,
    ) -> None:
        """Draw a row of links along `points`, from its lower end on.

        `thin` scales its width; `tells`: of a row that fails in part a text says how much of it.
        """
        value = self.value(links, row)
        worst = links.worst(row)
        failed = 0 if worst is None else int(links.failing[worst][row])
        count = int(links.count[row])
        if value is None:
            width = 0.9 + 0.55 * math.log2(count)
        else:
            width = 0.7 + 3.3 * min(1.0, value / (self.scale.limits or (0.0, 100.0))[1])
        note = self.net.note(links, row, ends)
        self.strokes.append(Stroke(tuple(points), thin * width, "link", value, note))
        if worst is not None:
            if failed == count:
                # Over its load, which it may have had before.
                kind: Kind = worst  # type: ignore[assignment]
                self.strokes.append(Stroke(tuple(points), 1.4, kind, value))
            self.sign(along(points, _SIGN_AT), worst, note)
            if failed < count and tells:
                self._say_by(points, _SIGN_AT, f"{failed} of {count}", 0.1)

    def label(self, links: Links, row: int, points: Sequence[Point]) -> None:
        """How many links a line is and their rate, where lines differ in that."""
        counts, rates = len(np.unique(links.count)) > 1, len(np.unique(links.rate)) > 1
        if not (counts or rates) or len(links) > _MOST_LABELS:
            return
        count, rate = int(links.count[row]), short_rate(float(links.rate[row]))
        times = f"{count}\N{MULTIPLICATION SIGN}" if count > 1 else ""
        text = times + rate if rates else times
        if text:
            self._say_by(points, 0.62, text, 0.06)

    def _say_by(self, points: Sequence[Point], part: float, text: str, gap: float) -> None:
        """A text at a part of a line's way: right of it, and of a flat line above it."""
        (x, y), low, high = (along(points, part + step) for step in (0.0, -0.02, 0.02))
        across, up = abs(high[0] - low[0]), abs(high[1] - low[1])
        width, height = _SMALL / 8 * LETTER * len(text), 1.2 * _SMALL / 72
        if up >= _STEEP * across:
            clear = _CLEAR + height / 2 * across / (up or 1.0)
            self.say(x + max(gap, clear), y, text, "left", _SMALL)
        else:
            self.say(x, y + gap + (width * up / across + height) / 2, text, "center", _SMALL)

    def sign(self, at: Point, kind: str, note: str = "") -> None:
        """A sign for a link that fails."""
        self.signs.append(Sign(at[0], at[1], kind, note))  # type: ignore[arg-type]

    def switch(self, number: int, at: Point, width: float, height: float, text: str) -> None:
        """A switch; pointing at it tells its whole name."""
        hosts = int(self.net.at[number])
        note = self.net.names[number] + (f", {hosts} hosts" if hosts else "")
        self.boxes.append(Box(*at, width, height, "switch", text, note))

    def note_below(self, planes: int, alike: str) -> None:
        """That hosts are in all planes, where there are several."""
        net = self.net
        if net.planes > 1:
            part = "" if alike or planes == net.planes else f"; {planes} of {net.planes} are drawn"
            self.say(0.05, 0.12, f"The same {plural(net.hosts, 'host')} in every plane{part}.")

    def say(self, x: float, y: float, text: str, align: str = "left", size: float = 8.0) -> None:
        """A text."""
        self.words.append(Words(x, y, text, align, size))  # type: ignore[arg-type]

    def beside(self, y: float, text: str, size: float = 8.0) -> None:
        """A text left of the drawing, in lines that fit there."""
        room = int(LEFT / (LETTER * size / 8.0))
        lines = (textwrap.fill(line, room, break_long_words=False) for line in text.split("\n"))
        self.say(0.05, y, "\n".join(lines), "left", size)


def along(points: Sequence[Point], part: float) -> Point:
    """The point at a part of the way along a line."""
    lengths = [math.dist(a, b) for a, b in itertools.pairwise(points)]
    left = part * sum(lengths)
    for (a, b), length in zip(itertools.pairwise(points), lengths, strict=True):
        if left <= length and length:
            share = left / length
            return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
        left -= length
    return points[-1]


def short(names: Sequence[str], room: float) -> list[str]:
    """The names if they all fit into `room` inches, else their numbers, else nothing."""
    if not names or max(map(len, names)) * LETTER <= room:
        return list(names)
    numbers = [name.rpartition("-")[2] for name in names]
    return numbers if max(map(len, numbers)) * LETTER <= room else [""] * len(names)


def plural(count: int, one: str, more: str = "") -> str:
    """`1 leaf`, `4 leaves`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def least_to_most(counts: Ints) -> str:
    """`2`, or `2 to 4`."""
    return " to ".join(map(str, sorted({int(counts.min()), int(counts.max())})))
