"""The output of nccl-tests (`all_reduce_perf` and its like) as a measured series.

A table has a line of heads that begins with `#` and names `size`, then a line for each size; what a
launcher puts in front of lines is left out. Of the two halves the first, out of place, is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from weft.errors import ExperimentError

COLUMNS = {"busbw_gb_s": "busbw", "algbw_gb_s": "algbw", "cct_s": "time"}
"""What a column of results is called there; times are in microseconds there."""

_PREFIX = re.compile(r"^(?:\[?[\w,.:-]+\]?(?:<\w+>)?:\s|\s*\d+:\s)")
"""What mpirun and srun put in front of lines: `[1,0]<stdout>: ` or `0: `."""


@dataclass(frozen=True)
class Measured:
    """One table of nccl-tests."""

    path: str
    values: dict[int, dict[str, float]]
    """By size in bytes: `time` (us), `algbw` and `busbw` (GB/s)."""
    test: str | None
    """`all_reduce_perf`, where the output says so."""
    ranks: int | None
    """How many GPUs took part, where the output says so."""

    def column(self, name: str) -> dict[int, float]:
        """The values of a column of results, by size, in its unit."""
        known = COLUMNS.get(name)
        if known is None:
            listed = ", ".join(COLUMNS)
            raise ExperimentError(f"{self.path}: has no {name}; use one of {listed}")
        scale = 1e-6 if known == "time" else 1.0
        return {size: row[known] * scale for size, row in self.values.items() if known in row}


def read(path: Path) -> Measured:
    """The table in a file; of several, the sizes of all of them, the last one counting."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        # ValueError: no file has such a name.
        why = (getattr(error, "strerror", None) or "cannot be read").lower()
        mend = "give the output of nccl-tests, such as all_reduce_perf"
        raise ExperimentError(f"{path}: {why.replace(' or directory', '')}; {mend}") from None
    heads: list[str] = []
    values: dict[int, dict[str, float]] = {}
    test, ranks = None, 0
    for number, whole in enumerate(text.splitlines(), 1):
        line = _bare(whole)
        words = line.lstrip("#").split()
        if line.startswith("#"):
            if "size" in words and "time" in words:
                heads = words
            if words[:3] == ["Collective", "test", "starting:"] and len(words) > 3:
                test = words[3]
            ranks += words[:1] == ["Rank"]
        elif heads and words and words[0].isdigit() and len(words) > 1:
            values[int(words[0])] = _row(heads, words, f"{path}:{number}")
    if not values:
        what = "has no table of nccl-tests; give the output of all_reduce_perf or its like"
        raise ExperimentError(f"{path}: {what}")
    return Measured(str(path), values, test, ranks or None)


def _bare(line: str) -> str:
    """A line without what a launcher puts in front."""
    prefix = _PREFIX.match(line)
    rest = line[prefix.end() :] if prefix else line
    return rest.strip()


def _row(heads: list[str], words: list[str], place: str) -> dict[str, float]:
    """The first value of each column that is a number."""
    if len(words) != len(heads):
        what = f"{len(words)} values for {len(heads)} columns; the line is cut off: run it again"
        raise ExperimentError(f"{place}: {what}")
    row: dict[str, float] = {}
    for head, word in zip(heads, words, strict=True):
        if head in COLUMNS.values() and head not in row:
            try:
                row[head] = float(word)
            except ValueError:
                what = f"{head} is {word}, which is no number; the line is damaged: run it again"
                raise ExperimentError(f"{place}: {what}") from None
    return row
