"""The table of an experiment for notebooks: HTML without scripts or styles of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from weft.report import overview, tables
from weft.report.views import View
from weft.study.inputs import Experiment


def html(experiment: Experiment, view: View) -> str:
    """The table of an experiment; the meaning of a column shows under the pointer."""
    table = overview.table_of(view, len(experiment.runs))
    title = escape(experiment.title)
    return f"<table><caption>{title}</caption>{''.join(_rows(table))}</table>"


def _rows(table: tables.Table) -> Iterator[str]:
    heads = zip(table.columns, table.meanings, strict=True)
    cells = (f'<th title="{escape(meaning)}">{escape(head)}</th>' for head, meaning in heads)
    yield f"<thead><tr><th>{escape(table.series_name)}</th>{''.join(cells)}</tr></thead><tbody>"
    span = len(table.columns) + 1
    for section in table.sections:
        if section.category.label:
            yield f'<tr><th colspan="{span}">{escape(section.category.label)}</th></tr>'
        for line in section.lines:
            numbers = "".join(f"<td>{escape(_together(cell.text))}</td>" for cell in line.cells)
            yield f"<tr><th>{escape(line.series)}</th>{numbers}</tr>"
        for series, how in section.stalled:
            yield f'<tr><th>{escape(series)}</th><td colspan="{span - 1}">{escape(how)}</td></tr>'
    yield f'</tbody><tfoot><tr><td colspan="{span}">{escape(tables.below(table))}</td></tr></tfoot>'


def _together(text: str) -> str:
    """A number with its unit, which no line divides; words may be divided."""
    return text.replace(" ", "\N{NO-BREAK SPACE}") if any(map(str.isdigit, text)) else text
