"""Numbers with units, as people write and read them: "16KB", "1.2 ms", "400Gbps".

Sizes are decimal (1 KB is 1000 bytes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from weft import _native

_TIME = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
_BYTES = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")]
_RATE = [(1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps"), (1.0, "bps")]
_LETTERS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NUMBER = re.compile(r"\s*-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\s*")


def parse(text: str) -> tuple[float, str] | None:
    """`("16KB")` is `(16000.0, "bytes")`; None for what is not a number with a known unit."""
    return _native.quantity(text)


def magnitude(value: object) -> float | None:
    """A swept value as a number to put on an axis, or None if it is a name.

    A letter alone, `400G`, counts as decimal: it may be of a rate or, as binary, of a size.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        return float(value)
    parsed = parse(value)
    if parsed:
        return parsed[0]
    number, letter = value.strip()[:-1], value.strip()[-1:].upper()
    is_number = letter in _LETTERS and _NUMBER.fullmatch(number)
    return float(number) * _LETTERS[letter] if is_number else None


def time_unit(values: Iterable[float]) -> tuple[float, str]:
    """Seconds per unit, and the unit, in which the largest of these reads best."""
    return _unit(values, _TIME)


def bytes_unit(values: Iterable[float]) -> tuple[float, str]:
    """Bytes per unit, and the unit, in which the largest of these reads best."""
    return _unit(values, _BYTES)


def format_time(seconds: float) -> str:
    """Seconds for a reader: `123 µs`."""
    return _format(seconds, _TIME)


def format_duration(seconds: float) -> str:
    """How long a person waits: `40 s`, `4 minutes`, `1.5 hours`, `3 days`."""
    units = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"))
    scale, name = next((one for one in units if seconds >= 1.5 * one[0]), (1.0, "s"))
    count = seconds / scale
    return f"{count:.0f} {name}" if count >= 9.95 or scale <= 60 else f"{count:.2g} {name}"


def format_bytes(count: float) -> str:
    """Bytes for a reader: `1.25 MB`."""
    return _format(count, _BYTES)


def format_rate(bits_per_second: float) -> str:
    """Bits per second for a reader: `400 Gbps`."""
    scale, name = _unit([bits_per_second], _RATE)
    return f"{significant(bits_per_second / scale)} {name}"


def format_count(count: float) -> str:
    """A count for a reader, thousands set apart; means of few seeds may have a fraction."""
    if abs(count - round(count)) < 1e-9 or count >= 100:
        return f"{count:,.0f}"
    return f"{count:,.1f}"


def significant(value: float, digits: int = 4) -> str:
    """A plain decimal with this many significant digits and no trailing noise."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def rate_unit(values: Iterable[float]) -> tuple[float, str]:
    """Bits per second per unit, and the unit, in which the largest of these reads best."""
    return _unit(values, _RATE)


def _unit(values: Iterable[float], units: list[tuple[float, str]]) -> tuple[float, str]:
    largest = max((abs(value) for value in values), default=0.0)
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def _format(value: float, units: list[tuple[float, str]]) -> str:
    scale, name = _unit([value], units)
    if scale == 1.0 and name == "B":
        return f"{format_count(value)} B"
    return "0" if value == 0 else f"{significant(value / scale)} {name}"
