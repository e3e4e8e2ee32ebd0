"""Result columns as text: titles, units, numbers with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from weft.units import bytes_unit, format_count, time_unit

# Of two that fit the first counts: a rate is no time.
_UNITS: dict[str, Callable[[Iterable[float]], tuple[float, str]]] = {
    "_gb_s": lambda _: (1.0, "GB/s"),
    "_s": time_unit,
    "_bytes": bytes_unit,
    "_pct": lambda _: (1.0, "%"),
    "_pct2": lambda _: (1.0, "%²"),
}
_TITLES = {
    "max_qps": "max QPs",
    "established_qps": "established QPs",
    "switch_changes": "asks of switches",
    "nic_changes": "asks of NICs",
}
"""What the usual columns call them."""
_NAMES = {
    "cct_s": "completion time",
    "normalised": "normalised CCT",
    "busbw_gb_s": "bus bandwidth",
    "algbw_gb_s": "algorithm bandwidth",
    "compute_s": "computation",
    "exposed_s": "exposed communication",
}
UNKNOWN = "\N{EN DASH}"
"""Stands for a value that a run does not tell."""
_DIGITS, _MOST_PLACES = 4, 9
_MOST = 1e4
"""Beyond this no digit after the point says anything."""


def title_of(column: str) -> str:
    """`worst_flow_loss` as a reader says it, without its unit: `worst flow loss`."""
    suffix = _suffix(column)
    return _TITLES.get(column) or (column[: -len(suffix)] if suffix else column).replace("_", " ")


def name_of(column: str) -> str:
    """The same where there is room for more words."""
    return _NAMES.get(column, title_of(column))


def unit_of(column: str, values: Iterable[float]) -> tuple[float, str]:
    """How much of a column's own unit makes one of the unit in which these values read best."""
    suffix = _suffix(column)
    return _UNITS[suffix](values) if suffix else (1.0, "")


def axis_title(column: str, unit: str) -> str:
    """The title of an axis."""
    return f"{name_of(column)} [{unit}]" if unit else name_of(column)


def shown(column: str, value: float, half: float | None = None) -> str:
    """A value of a column, with what it may be off by: `1.234 ± 0.012`, `12.3 ± 0.4 ms`.

    A dash for what is not a number: the run does not tell.
    """
    if math.isnan(value):
        return UNKNOWN
    scale, unit = unit_of(column, [value])
    value, half = value / scale, None if half is None else half / scale
    places = decimals(value, half)
    text = plain(value, places)
    if half is not None:
        text += f" ± {plain(half, places)}"
    return f"{text} {unit}".strip()


def deviation(column: str, value: float, by: float, half: float | None = None) -> str:
    """How far something is from a mean, in the unit and with the digits of the mean."""
    scale, unit = unit_of(column, [value])
    text = plain(by / scale, decimals(value / scale, (by if half is None else half) / scale))
    return f"{text} {unit}".strip()


def signed_percent(share: float, places: int = 1) -> str:
    """A share as percent with its sign: `+1.2 %` for 0.012."""
    return f"{100 * share:+.{places}f} %".replace("-", "\N{MINUS SIGN}")


def decimals(value: float, half: float | None = None) -> int:
    """Digits after the point: four that count, or fewer where two of what it is off by say less."""
    size = abs(value) or abs(half or 0.0)
    if size == 0.0 or (size == int(size) and not half):
        return 0
    places = _DIGITS - 1 - math.floor(math.log10(size))
    if half:
        places = min(places, 1 - math.floor(math.log10(half)))
    return min(_MOST_PLACES, max(0, places))


def exact(column: str, value: float) -> str:
    """A printed value, with the digits that are printed."""
    scale, unit = unit_of(column, [value])
    return f"{value / scale:.6g} {unit}".strip()


def plain(value: float, places: int) -> str:
    """A decimal with thousands set apart."""
    if abs(value) >= _MOST:
        return format_count(round(value))
    return f"{value:,.{places}f}"


def _suffix(column: str) -> str:
    return next((suffix for suffix in _UNITS if column.endswith(suffix)), "")
