"""`[best]`: the best value of a swept key, found for each combination of the others.

The values are those of the sweep. With `search_seeds` all of them run with a few seeds, and then
the best one of each combination with all seeds; the choice rests on the search's seeds alone,
so that it stays the same however many runs are there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft._types import Row, RunSpec
from weft.study import averages
from weft.study.selection import combination
from weft.study.settings import Best
from weft.study.store import text_of
from weft.units import magnitude

Choice = Mapping[str, Any]
"""The best value for each combination of the other keys."""

COLUMN = "best_value"
"""Where rows carry the value that was best for them, if it is a number."""


def search_runs(runs: Sequence[RunSpec], best: Best) -> list[RunSpec]:
    """The runs that the search needs: every value, with the first seeds."""
    seeds = _search_seeds([spec["seed"] for spec in runs], best)
    return [spec for spec in runs if spec["seed"] in seeds]


def without_rejected(runs: Sequence[RunSpec], rows: Sequence[Row], best: Best) -> list[RunSpec]:
    """The runs that belong to the result, once the search's have left these rows."""
    if best.search_seeds is None:
        return list(runs)
    seeds = _search_seeds([spec["seed"] for spec in runs], best)
    choice = choose(rows, best)

    def wanted(spec: RunSpec) -> bool:
        return spec["seed"] in seeds or is_best(spec["swept"], choice, best)

    return [spec for spec in runs if wanted(spec)]


def expected(runs: Sequence[RunSpec], best: Best) -> int:
    """Expected number of runs after the search."""
    seeds = {spec["seed"] for spec in runs}
    combinations = {combination(spec["swept"], best.over) for spec in runs}
    return len(combinations) * (len(seeds) - len(_search_seeds(list(seeds), best)))


def choose(rows: Sequence[Row], best: Best) -> Choice:
    """For each combination the value with the least mean over the search's seeds.

    The first of equals. Where runs stalled, values with more seeds go before those with fewer.
    """
    seeds = _search_seeds([row["seed"] for row in rows], best)
    samples: dict[str, dict[str, list[Row]]] = {}
    values: dict[str, Any] = {}
    for row in rows:
        if row["seed"] in seeds and best.over in row["swept"]:
            value = row["swept"][best.over]
            values.setdefault(text_of(value), value)
            cells = samples.setdefault(combination(row["swept"], best.over), {})
            cells.setdefault(text_of(value), []).append(row)
    choice = {}
    for key, cells in samples.items():
        most = max(map(len, cells.values()))
        whole = {name: cell for name, cell in cells.items() if len(cell) == most}
        means = {name: averages.of(best.of, cell).value for name, cell in whole.items()}
        choice[key] = values[min(means, key=lambda name: means[name])]
    return choice


def is_best(swept: Mapping[str, Any], choice: Choice, best: Best) -> bool:
    """Whether a run is of the best value of its combination."""
    value = choice.get(combination(swept, best.over))
    return value is not None and value == swept.get(best.over)


def at_best(rows: Sequence[Row], choice: Choice, best: Best) -> list[Row]:
    """The rows of the best values; the value is in `COLUMN` and no longer among the swept keys.

    With what stalled where there is no best value.
    """
    found = []
    for row in rows:
        lost = "stalled" in row and combination(row["swept"], best.over) not in choice
        if lost or is_best(row["swept"], choice, best):
            value = row["swept"][best.over]
            swept = {key: own for key, own in row["swept"].items() if key != best.over}
            number = magnitude(value)
            found.append(row | {"swept": swept, "best": value, COLUMN: number})
    return found


def _search_seeds(seeds: Sequence[int], best: Best) -> set[int]:
    """The first ones; all without a search of its own."""
    return set(list(dict.fromkeys(seeds))[: best.search_seeds])
