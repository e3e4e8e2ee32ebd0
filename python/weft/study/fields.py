"""Typed reading of tables of an experiment file that the native core does not read.

Every key must be asked for. An error is one line: file, key, what is wrong, how to correct it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from weft.errors import ExperimentError


class Fields:
    """A table whose keys are read one by one; `finish` refuses keys that were not asked for."""

    def __init__(self, source: str, place: str, table: object) -> None:
        self._source, self._place = source, place
        if not isinstance(table, Mapping):
            raise ExperimentError(f"{source}: {place}: {table!r} is not a table; write [{place}]")
        self._table: Mapping[str, Any] = table
        self._asked: list[str] = []

    def has(self, key: str) -> bool:
        """Whether the table has the key."""
        return self.get(key) is not None

    def get(self, key: str) -> Any:
        """A value of any kind, None without one."""
        if key not in self._asked:
            self._asked.append(key)
        return self._table.get(key)

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(key, f"{value!r} is not text; put it in quotes")

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of strings, or one alone."""
        value = self.get(key)
        values = [value] if isinstance(value, str) else value
        if values is None:
            return None
        if not isinstance(values, list) or any(not isinstance(one, str) for one in values):
            raise self.wrong(key, f'{value!r} is not a list of names; write ["a", "b"]')
        twice = next((one for one in values if values.count(one) > 1), None)
        if twice is not None:
            raise self.wrong(key, f"{twice} is listed twice; remove one")
        return tuple(values)

    def number(self, key: str, least: float = -math.inf) -> float | None:
        """A number from `least` on."""
        value = self.get(key)
        return None if value is None else self.as_number(key, value, least)

    def as_number(self, key: str, value: object, least: float = -math.inf) -> float:
        """A value inside one of the keys, as a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"{value!r} is not a number; write it without quotes")
        if not least <= value < math.inf:
            raise self.wrong(key, f"{value} is out of range; use {least:g} or more")
        return float(value)

    def count(self, key: str) -> int | None:
        """A whole number from 1 on."""
        value = self.number(key, 1)
        if value is not None and value != int(value):
            raise self.wrong(key, f"{value} is not a whole number; use 1 or more")
        return None if value is None else int(value)

    def table(self, key: str) -> dict[str, Any]:
        """A table of dotted keys, whether written as `"a.b" = 1` or as `a = { b = 1 }`."""
        value = self.get(key)
        return {} if value is None else self.as_table(key, value)

    def as_table(self, key: str, value: object) -> dict[str, Any]:
        """A value inside one of the keys, as such a table."""
        if not isinstance(value, Mapping):
            raise self.wrong(key, f'{value!r} is not a table; write {{ "balance.scheme" = "..." }}')
        return dict(_flat(value))

    def finish(self) -> None:
        """Refuse keys that were not asked for."""
        for key in self._table:
            if key not in self._asked:
                raise self.wrong(key, f"unknown key; {suggestion(key, self._asked)}")

    def wrong(self, key: str, what: str) -> ExperimentError:
        """The error about the value of a key; about the whole table for an empty key."""
        place = f"{self._place}.{key}" if key else self._place
        return ExperimentError(f"{self._source}: {place}: {what}")


def suggestion(text: str, names: Iterable[str]) -> str:
    """The known name most like `text`, or all of them."""
    known = list(names)
    near = difflib.get_close_matches(text, known, 1)
    return f'did you mean "{near[0]}"?' if near else f"use one of {', '.join(known)}"


def _flat(table: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
