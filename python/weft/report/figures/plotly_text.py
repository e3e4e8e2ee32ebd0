"""Names in Plotly's texts, which would take `<b>` in a name for markup."""

from __future__ import annotations

from html import escape

from weft.report.figures.axes import LETTERS, lines_of


def plain(text: str) -> str:
    """A text that is shown as it is."""
    return escape(text, quote=False)


def wrapped(name: str, letters: int = LETTERS) -> str:
    """The same in lines of so many letters."""
    return "<br>".join(map(plain, lines_of(name, letters)))
