"""What kind of job runs are: it decides which columns and figures say most of them."""

from __future__ import annotations

from collections.abc import Sequence

from weft._types import Row


def are_jobs(rows: Sequence[Row]) -> bool:
    """Whether all of these runs are of ranks at work."""
    return all(row.get("ranks", 0) > 0 for row in rows)


def compute(rows: Sequence[Row]) -> bool:
    """Whether all are of ranks that compute and communicate, as in a training iteration."""
    return are_jobs(rows) and all(row["compute_s"] > 0 for row in rows)


def communicate_only(rows: Sequence[Row]) -> bool:
    """Whether all are of ranks that do nothing but collectives."""
    return are_jobs(rows) and all(
        row["collectives"] > 0 and row["compute_s"] == 0.0 for row in rows
    )
