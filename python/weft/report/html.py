"""The report: one HTML file with tables and interactive figures that needs no network.

Figures are handed to the page as Plotly traces and layouts in JSON; the page's own script
(in the template) adds the colours of light or dark paper and draws them.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft._types import Row
from weft.errors import replace_text, writing
from weft.report import check_table, overview, printed_table, timeline, views
from weft.report.figures import all_figures, draw_plotly
from weft.report.figures.model import Figure
from weft.report.views import View
from weft.study import store
from weft.study.check import Check
from weft.study.inputs import Experiment
from weft.study.study import Results
from weft.units import format_time

Json = dict[str, Any]

_OURS = (
    "cct",
    "slowdown",
    "fct",
    "peak-queue",
    "best",
    "overview",
    "fabric",
    r"queue-\d+",
    r"links-\d+",
    r"collectives-\d+",
)
"""How `figures` names what it draws, columns that an experiment chooses apart."""


FORMATS = ("svg", "png", "pdf")
"""What figures may be drawn as, beside the report."""


def make(results: Results, directory: Path, formats: Sequence[str] = ()) -> list[Path]:
    """Write `directory/report.html`, and each figure in each of `formats` into `directory/plots`.

    Without formats those that are there already are drawn anew: they were asked for once, and would
    pass for results of this report. Returns what was written, the report last.
    """
    folder = directory / "plots"
    drawn_before = {path.suffix.removeprefix(".") for path in _ours(folder, results.runs.columns)}
    formats = formats or [form for form in FORMATS if form in drawn_before]
    written: list[Path] = []
    sections = []
    for experiment, rows, view in views.of_study(results.study, results.rows):
        drawn = all_figures.of_experiment(experiment, results, view) if rows else []
        written += _draw(drawn, folder, formats)
        sections.append(_section(experiment, view, drawn))
    path = directory / "report.html"
    for stale in set(_ours(folder, results.runs.columns)).difference(written):
        stale.unlink()
    replace_text(path, _page(results, sections, formats, directory / "timeline"))
    return [*written, path]


def _draw(figures: Sequence[Figure], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draw figures as files; returns these."""
    if not formats:
        return []
    from weft.report.figures import draw_matplotlib

    with writing(folder):
        folder.mkdir(exist_ok=True)
        return [path for one in figures for path in draw_matplotlib.draw(one, folder, formats)]


def _ours(folder: Path, columns: Sequence[str]) -> list[Path]:
    """The plots in a folder that a report has drawn, perhaps of other results than are here now."""
    if not folder.is_dir():
        return []
    names = re.compile(f".+-({'|'.join([*_OURS, *map(re.escape, columns)])})(-curve)?")
    files = (path for path in folder.iterdir() if path.suffix.removeprefix(".") in FORMATS)
    return [path for path in files if names.fullmatch(path.stem)]


def _page(results: Results, sections: list[Json], formats: Sequence[str], timelines: Path) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("weft.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["time"] = format_time
    titles = [section["title"] for section in sections]
    tables = _tables(results)
    figures_json = {
        figure["name"]: figure["panels"] for section in sections for figure in section["figures"]
    }
    return environment.get_template("report.html").render(
        title=titles[0] if len(titles) == 1 else "Weft report",
        sections=sections,
        study=results.study,
        tables=[f"{name}.parquet" for name in tables],
        formats=[form.upper() for form in formats],
        has_jobs="collectives" in tables,
        has_timelines="nodes" in tables and timeline.written(results.runs, timelines),
        check=_check(results.check),
        # In a string "</script>" would end the script element, and "<!--<script" hide its end.
        figures_json=Markup(_compact(figures_json).replace("<", "\\u003c")),  # noqa: S704
        plotly=Markup(get_plotlyjs()),  # noqa: S704
    )


def _tables(results: Results) -> list[str]:
    """The tables that have rows, to link to."""
    frames = {name: getattr(results, name) for name in store.TABLES}
    return ["runs", *(name for name, frame in frames.items() if frame.head(1).collect().height)]


def _check(found: Check | None) -> Json | None:
    if found is None:
        return None
    return {
        "title": check_table.TITLE,
        "heads": check_table.HEADS,
        "text_columns": check_table.TEXT_COLUMNS,
        "rows": check_table.cells(found),
        "below": check_table.below(found),
    }


def _section(
    experiment: Experiment,
    view: View,
    drawn: list[Figure],
) -> Json:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "notes": [part.strip() for part in experiment.notes.split("\n\n") if part.strip()],
        "text": experiment.text,
        "warnings": [*experiment.warnings, *_stalled(view)],
        "table": overview.table_of(view, len(experiment.runs)),
        "printed": printed_table.of(view),
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                "caption": figure.text,
                "panels": [draw_plotly.panel(panel) for panel in figure.panels],
            }
            for figure in drawn
        ],
    }


def _stalled(view: View) -> list[str]:
    """Who stalled, one line for each scheme, with what waited for what in the first run."""
    runs: dict[str, list[Row]] = {}
    for run in view.stalled:
        runs.setdefault(run["scheme"], []).append(run)
    said = []
    for scheme, own in runs.items():
        count = f"{len(own)} runs" if len(own) > 1 else "one run"
        why = f"{own[0]['label']} seed {own[0]['seed']}: {own[0]['stalled']}"
        rest = " ... (all of it in summary.json)"
        said.append(f"{scheme} stalled in {count}; {textwrap.shorten(why, 300, placeholder=rest)}")
    return said


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
