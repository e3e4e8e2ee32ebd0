"""The summary of results as one JSON object: means, best values, comparisons with printed results.

`weft run --summary` prints it and `weft run -o DIR` writes it to `DIR/summary.json`;
docs/experiments.md describes each key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._types import Row
from weft.errors import replace_text
from weft.report import verdict, views
from weft.report.grouping import Category, Grouping
from weft.report.usual_columns import against, is_significant
from weft.report.views import View
from weft.study import averages
from weft.study.check import Check
from weft.study.inputs import Experiment

if TYPE_CHECKING:
    from weft.study.study import Study

FILE = "summary.json"


def of(experiment: Experiment, view: View, runs: int) -> dict[str, Any]:
    """The summary of one experiment, `runs` of whose runs are there."""
    settings = view.settings
    columns = settings.statistics()
    whole = view.curve or view.grouping
    found: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "runs": runs,
        "wanted": len(experiment.runs),
        "statistics": [
            _statistics(rows, columns) | _against(whole, cell, rows)
            for cell, rows in whole.cells.items()
        ],
        "verdict": verdict.of(view),
        "stalled": list(view.stalled),
    }
    if settings.best is not None:
        best = settings.best
        found["best"] = {
            "over": best.over,
            "of": best.of,
            "search_seeds": best.search_seeds,
            "choices": [
                {"value": rows[0]["best"], **_statistics(rows, columns)}
                for rows in view.grouping.cells.values()
            ],
        }
    if settings.printed or settings.left_out:
        found["printed"] = [one.as_json() for one in view.comparisons]
        found["printed_left_out"] = settings.left_out
    return found


def of_study(whole: Study, rows_of: Callable[[Experiment], Sequence[Row]]) -> list[dict[str, Any]]:
    """The summary of each experiment of which something has finished, or stalled."""
    return [
        of(experiment, view, len(rows)) for experiment, rows, view in views.of_study(whole, rows_of)
    ]


def text(summaries: Iterable[dict[str, Any]], check: Check | None = None) -> str:
    """The object of a whole study, with `check` where `--check` was asked for."""
    checked = {} if check is None else {"check": check.as_json()}
    return json.dumps({"experiments": list(summaries), **checked}, indent=1)


def save(summaries: Iterable[dict[str, Any]], directory: Path, check: Check | None = None) -> None:
    """Write `directory/summary.json`."""
    replace_text(directory / FILE, text(summaries, check) + "\n")


def _against(grouping: Grouping, cell: tuple[Category, str], rows: Sequence[Row]) -> dict[str, Any]:
    """The completion time over that of the series that tables compare with."""
    category, series = cell
    base = grouping.rows(category, grouping.reference)
    found = against(rows, base)
    if found is None or series == grouping.reference:
        return {}
    return {
        "against": {
            "reference": grouping.reference,
            "column": "cct_s",
            "ratio": found.value,
            "half_95": found.half,
            "significant": is_significant(found),
        }
    }


def _statistics(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"swept": rows[0]["swept"], "scheme": rows[0]["scheme"]}
    found["seeds"] = [row["seed"] for row in rows]
    means = {column: averages.of(column, rows) for column in columns}
    return found | {
        column: {"mean": mean.value, "sd": mean.sd, "half_95": mean.half}
        for column, mean in means.items()
    }
