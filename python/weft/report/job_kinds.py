"""What kind of job runs are: which columns and figures say most of them, and what is compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft._types import Row
from weft.study.store import text_of


def are_alike(rows: Iterable[Row]) -> bool:
    """Whether all of these runs do the same work, wherever and in whatever steps."""
    return len({_work(row) for row in rows}) < 2


def _work(row: Row) -> tuple[str | None, int | None, int | None]:
    """Not the algorithm and the placement: they are ways of doing it."""
    size, payload = row.get("size_bytes"), row.get("payload_bytes")
    # Where it is all payload it depends on both.
    return row.get("workload"), row.get("ranks"), None if size == payload else size


def depend_on(key: str, rows: Iterable[Row]) -> bool:
    """Whether runs do other work where a swept key has another value."""
    works: dict[str, set[object]] = {}
    for row in rows:
        works.setdefault(text_of(row["swept"].get(key)), set()).add(_work(row))
    found = list(works.values())
    return any(other != found[0] for other in found)


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
