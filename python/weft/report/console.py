"""The results of one experiment as a terminal shows them: the table and what stands below it."""

from __future__ import annotations

from collections.abc import Sequence

from weft._types import Row
from weft.report import fidelities, overview, printed_table, tables
from weft.report.views import View
from weft.study.inputs import Experiment


def text(experiment: Experiment, rows: Sequence[Row], view: View, width: int) -> str:
    """Tables of an experiment's rows, each with `wall_s`, in `width` columns."""
    table = overview.table_of(view, len(experiment.runs))
    parts = [tables.text(table, experiment.title, width)]
    compared = printed_table.of(view)
    if compared is not None:
        parts.append(printed_table.text(compared, width))
    between = fidelities.of(rows)
    if between is not None:
        parts.append(fidelities.text(between))
    return "\n\n".join(parts)
