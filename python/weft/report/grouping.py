"""Which runs belong together in tables and figures.

The swept keys of an experiment have three roles. *Series* are what is compared (schemes, unless the
experiment names other keys); one numeric key may be the *x* axis; the combinations of all other
keys are the *facets*. Runs that differ only in their seed are samples of one cell. A *category* is
a facet at one x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from weft._types import Row
from weft.study import stats
from weft.study.selection import combination
from weft.study.store import text_of
from weft.units import magnitude

SCHEME = "balance.scheme"
T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Category:
    """A combination of all swept values but those that tell the series apart."""

    facet: str
    x: str = ""
    """The value on the x axis, as written in the experiment; empty without one."""
    x_name: str = ""

    @property
    def label(self) -> str:
        """For a tick or a panel title; empty if nothing else is swept."""
        x = f"{self.x_name} {self.x}" if self.x else ""
        return ", ".join(part for part in (self.facet, x) if part)


@dataclass(frozen=True)
class Grouping:
    """Rows in cells of category and series; orders are those of the runs."""

    x_key: str | None
    facets: list[str]
    categories: list[Category]
    series: list[str]
    cells: dict[tuple[Category, str], list[Row]]
    """One row a seed. A cell whose runs all stalled is missing, here and in what is above."""
    series_name: str = "scheme"
    """What the series are."""
    facet_keys: tuple[str, ...] = ()
    """The swept keys of facets."""
    stalled: Mapping[tuple[Category, str], int] = field(default_factory=dict)
    """In how many seeds of a cell the run stalled, where it did in some."""
    all_categories: Sequence[Category] = ()
    """Those in which nothing finished, too."""

    @property
    def reference(self) -> str:
        """The series that others are compared with."""
        return "ecmp" if "ecmp" in self.series else self.series[0]

    def rows(self, category: Category, series: str) -> list[Row]:
        """The rows of a cell, empty if none finished."""
        return self.cells.get((category, series), [])

    def bound(self, category: Category) -> float | None:
        """The lower bound of a category, mean over seeds; None if not that of all its series."""
        bounds: dict[int, float] = {}
        for series in self.series:
            for row in self.rows(category, series):
                if bounds.setdefault(row["seed"], row["bound_s"]) != row["bound_s"]:
                    return None
        return stats.mean(list(bounds.values())).value

    @property
    def shares_bounds(self) -> bool:
        """Whether the series of each category have one bound."""
        return all(self.bound(category) is not None for category in self.categories)

    def sample(self, category: Category, series: str) -> Row | None:
        """The run that represents a cell where there is no mean: the same seed in all cells."""
        rows = self.rows(category, series)
        return next(
            (row for row in rows if row["seed"] == self.sample_seed), next(iter(rows), None)
        )

    @property
    def sample_seed(self) -> int:
        """The first seed that all cells have, or just the first if there is none."""
        seeds: list[list[int]] = [[row["seed"] for row in rows] for rows in self.cells.values()]
        common = set(seeds[0]).intersection(*seeds)
        return next((seed for seed in seeds[0] if seed in common), seeds[0][0])

    def numeric_x(self) -> dict[str, float] | None:
        """Every x as a number, if there are at least three: worth a line, not bars."""
        values = {category.x: magnitude(category.x) for category in self.categories}
        numbers = {x: value for x, value in values.items() if value is not None}
        return numbers if len(numbers) == len(values) >= 3 else None


def group(
    rows: Sequence[Row], x_key: str | None = None, series_keys: Sequence[str] = ()
) -> Grouping:
    """Group rows, each with its `swept`; the keys as the experiment's `[report]` has them.

    Of runs that stalled there are `scheme`, `seed` and `swept`, and why: `stalled`.
    """
    varying = _varying(rows)
    named = [key for key in series_keys if key in varying and key != x_key]
    series_keys = named or [key for key in _series_keys(varying) if key != x_key]
    if x_key not in varying:
        x_key = _natural_x(varying, series_keys)
    facet_keys = [key for key in varying if key not in series_keys and key != x_key]

    def cell(row: Row) -> tuple[Category, str]:
        label = _named_series(row, named) if named else _series(row, series_keys)
        return _category(row["swept"], facet_keys, x_key), label

    name = _names([row for row in rows if "stalled" not in row], series_keys)
    cells: dict[tuple[Category, str], list[Row]] = {}
    stalled: Counter[tuple[Category, str]] = Counter()
    for row in rows:
        place = cell(row | {"scheme": name(row)} if "stalled" in row else row)
        stalled[place] += "stalled" in row
        cells.setdefault(place, []).extend([row] * ("stalled" not in row))
    finished = [place for place, own in cells.items() if own]
    categories = _distinct(category for category, _ in finished)
    return Grouping(
        x_key=x_key,
        facets=_distinct(category.facet for category in categories),
        categories=categories,
        series=_distinct(series for _, series in finished),
        cells={place: cells[place] for place in finished},
        series_name=", ".join(map(key_name, named)) or "scheme",
        facet_keys=tuple(facet_keys),
        stalled=+stalled,
        all_categories=_distinct(category for category, _ in cells),
    )


def key_name(key: str) -> str:
    """`balance.start_jitter` as a reader says it: `start jitter`."""
    return key.rsplit(".", 1)[-1].replace("_", " ")


def _names(rows: Sequence[Row], keys: Sequence[str]) -> Callable[[Row], str]:
    """What results would call the scheme of a run without any: perhaps with a number behind it."""

    def identities(row: Row) -> list[str]:
        swept = row["swept"]
        return [combination(swept), text_of([swept.get(key) for key in keys])]

    known: dict[str, set[str]] = {}
    for row in rows:
        for identity in identities(row):
            known.setdefault(identity, set()).add(row["scheme"])

    def name(row: Row) -> str:
        found = (known.get(identity, set()) for identity in identities(row))
        return next((next(iter(one)) for one in found if len(one) == 1), row["scheme"])

    return name


def _series(row: Row, keys: Sequence[str]) -> str:
    """What a row's series is called: its scheme, and what else tells it from others."""
    swept = row["swept"]
    extra = [text_of(swept[key]) for key in keys if key != SCHEME and key in swept]
    return ", ".join([_scheme(row), *extra])


def _named_series(row: Row, keys: Sequence[str]) -> str:
    """The same where the experiment names the keys: these, and no others."""
    return ", ".join(_scheme(row) if key == SCHEME else _named(key, row["swept"]) for key in keys)


def _scheme(row: Row) -> str:
    """What a scheme is called: by its name and number, or by its table in the sweep."""
    name: str = row["scheme"]
    swept = row["swept"].get(SCHEME)
    number = name.removeprefix(f"{swept}-")
    is_own = swept is None or name == swept or (number != name and number.isdigit())
    return name if is_own else text_of(swept)


def _varying(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The swept keys with more than one value, and their values."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for key, value in row["swept"].items():
            known = values.setdefault(key, [])
            if value not in known:
                known.append(value)
    return {key: known for key, known in values.items() if len(known) > 1}


def _series_keys(varying: dict[str, list[Any]]) -> list[str]:
    if SCHEME in varying:
        return [SCHEME]
    names = [key for key, values in varying.items() if not _numeric(values)]
    return names[:1]


def _natural_x(varying: dict[str, list[Any]], series_keys: list[str]) -> str | None:
    numeric = [
        key for key, values in varying.items() if key not in series_keys and _numeric(values)
    ]
    return max(numeric, key=lambda key: len(varying[key]), default=None)


def _numeric(values: Iterable[Any]) -> bool:
    return all(magnitude(value) is not None for value in values)


def _named(key: str, swept: dict[str, Any]) -> str:
    """A swept value with its name, where the value alone would not say what it is."""
    value = swept.get(key)
    if value is None:
        return f"no {key_name(key)}"
    if isinstance(value, str) and magnitude(value) is None:
        return value
    return f"{key_name(key)} {text_of(value)}"


def _category(swept: dict[str, Any], facet_keys: list[str], x_key: str | None) -> Category:
    facet = ", ".join(_named(key, swept) for key in facet_keys)
    if x_key is None:
        return Category(facet)
    return Category(facet, text_of(swept.get(x_key, "")), key_name(x_key))


def _distinct(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))
