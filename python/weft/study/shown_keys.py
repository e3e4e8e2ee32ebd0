"""What `[best]` and `[[printed]]` may say: the keys that this package reads, for lists of keys.

Those that the native core reads are in its catalogue.
"""

from __future__ import annotations

from weft._types import CatalogueEntry, CatalogueOption

_COLUMN = "a result column"
_USUAL = "the first of report.columns, or normalised"
_RUNS = "a table of keys and values"
_NUMBER = "a number, 0 or more"

_BEST = (
    ("over", "required", "a swept key", "the key whose best value is searched"),
    ("of", _USUAL, _COLUMN, "the best value is the one with the least mean of this"),
    (
        "search_seeds",
        "all",
        "a whole number, 1 or more",
        "search with so many seeds, and run only the best value with all",
    ),
)
_PRINTED = (
    ("source", "none", "text", "where it is printed"),
    ("column", _USUAL, _COLUMN, "what is printed"),
    ("where", "all runs", _RUNS, "the runs: swept keys, or any key, and their values"),
    ("value", "required", "a number, or a range of two", "a printed value, ratio or difference"),
    ("by", "none", "a swept key", "the swept key that `values` and `order` name the values of"),
    ("values", "none", _RUNS, "several printed values, by the value of the key in by"),
    (
        "nccl_tests",
        "none",
        "a path from the experiment's folder",
        "the output of nccl-tests: a printed value for each of its sizes",
    ),
    ("of", "none", _RUNS, "of a ratio or difference: its runs, beside where"),
    ("over", "none", _RUNS, "of a ratio: the runs that are divided by"),
    ("minus", "none", _RUNS, "of a difference: the runs that are taken away"),
    ("order", "none", "a list, with lists of equals", "an order, the best first"),
    ("first", "smallest", '"smallest" or "largest"', "of an order: what comes first"),
    ("sd", "none", f"{_NUMBER}, or a table of them", "the printed standard deviation"),
    ("sds", "1", _NUMBER, "how many standard deviations are tolerated"),
    ("within", "none", _NUMBER, "the tolerance, in the column's unit or of the ratio"),
)


def entries() -> list[CatalogueEntry]:
    """Both sections, as `weft list` shows them."""
    best = "the best value of a swept key, for each combination of the others"
    printed = "what a paper prints of a column, to stand beside what is measured"
    return [
        _entry("[best]", best, "best", _BEST),
        _entry("[[printed]]", printed, "printed", _PRINTED),
    ]


def _entry(
    name: str, summary: str, section: str, keys: tuple[tuple[str, str, str, str], ...]
) -> CatalogueEntry:
    options: list[CatalogueOption] = [
        {"key": f"{section}.{key}", "default": default, "words": [], "kind": kind, "meaning": means}
        for key, default, kind, means in keys
    ]
    return {
        "key": "section",
        "name": name,
        "summary": summary,
        "source": "Weft",
        "options": options,
        "runs_on": [],
        "source_ports": "",
    }
