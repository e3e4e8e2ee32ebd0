"""A fabric as a picture needs it: links between the same two ends summed up.

Everything is arrays, so that a fabric of a million links takes no longer to sum up than to build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _native
from weft.units import format_rate, format_time

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS = ("down", "degraded", "flaky")
"""What may be wrong with a link, the worst first."""
_NONE = (1 << 32) - 1


@dataclass(frozen=True)
class Links:
    """Links by their two ends: a row is all links between the same two."""

    lower: Ints
    """A switch; of links of hosts the switch that these are at."""
    upper: Ints
    """A switch; of links of hosts the same again."""
    count: Ints
    """How many links a row is."""
    rate: Floats
    """Bits per second of one of them; the lowest, where they differ."""
    up: Floats
    """Utilisation of the busiest of them towards `upper` (from hosts), 0 to 1; NaN: not known."""
    down: Floats
    """The same in the other direction."""
    failing: dict[str, Ints]
    """By kind, how many of them ever fail so."""

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def load(self) -> Floats:
        """Utilisation of the busier direction."""
        return np.fmax(self.up, self.down)

    def only(self, rows: NDArray[Any]) -> Links:
        """Some of the rows."""
        return Links(
            self.lower[rows],
            self.upper[rows],
            self.count[rows],
            self.rate[rows],
            self.up[rows],
            self.down[rows],
            {kind: counts[rows] for kind, counts in self.failing.items()},
        )

    def worst(self, row: int) -> str | None:
        """The worst that ever befalls a link of the row; None: nothing."""
        return next((kind for kind in KINDS if self.failing[kind][row]), None)

    def merged(self, of: Ints) -> Links:
        """The rows again with their ends replaced, those between the same two ends summed up.

        `of` has the new number of each switch. An order of ends that is the other way round is
        kept by none: the smaller number is the lower end.
        """
        return _summed(of[self.lower], of[self.upper], self)


@dataclass(frozen=True)
class Network:
    """What is drawn."""

    topology: str
    """As `[fabric]` names it."""
    keys: dict[str, Any]
    """The keys of `[fabric]`."""
    is_clos: bool
    hosts: int
    planes: int
    names: list[str]
    tier: Ints
    plane: Ints
    group: Ints
    at: Ints
    """How many hosts each switch has."""
    homes: list[tuple[tuple[int, ...], int]]
    """Switches of one plane that have hosts in common, and how many; in the order of hosts."""
    links: Links
    """Between switches."""
    host_links: Links
    """Between a switch and its hosts."""
    failures: list[str]
    """What fails, in words: a line each failure of a link."""

    @property
    def has_load(self) -> bool:
        """Whether any load is known."""
        return bool(np.isfinite(self.links.load).any() or np.isfinite(self.host_links.load).any())

    def kinds(self) -> list[str]:
        """What ever befalls any link."""
        both = (self.links, self.host_links)
        return [kind for kind in KINDS if any(links.failing[kind].any() for links in both)]

    def failing_by_plane(self, kind: str) -> Ints:
        """How many links of each plane ever fail so."""
        total = np.zeros(self.planes, dtype=np.int64)
        for links in (self.links, self.host_links):
            np.add.at(total, self.plane[links.lower], links.failing[kind])
        return total

    def own_names(self, switches: Iterable[int]) -> list[str]:
        """Names of switches without that of their plane."""
        return [self.names[one].removeprefix(f"plane-{self.plane[one]}-") for one in switches]

    def rate_of(self, links: Links) -> str:
        """The rates of some links in words: one, or the lowest and the highest."""
        if not len(links):
            return ""
        rates = sorted({float(rate) for rate in np.unique(links.rate)})
        texts = [
            short_rate(rate) for rate in (rates if len(rates) < 2 else rates[:: len(rates) - 1])
        ]
        return " to ".join(texts)

    def note(self, links: Links, row: int, ends: str) -> str:
        """All about a row, for whoever points at it."""
        parts = [f"{ends}: {_times(links.count[row])}{short_rate(links.rate[row])}"]
        loads = [
            f"{way} {100 * value:.3g} %"
            for way, value in (("up", links.up[row]), ("down", links.down[row]))
            if np.isfinite(value)
        ]
        parts += [" / ".join(loads)] if loads else []
        parts += [
            f"{counts[row]} of {links.count[row]} {kind}" if links.count[row] > 1 else kind
            for kind, counts in links.failing.items()
            if counts[row]
        ]
        return ", ".join(parts)


def of(experiment: Mapping[str, Any], seed: int, load: Floats | None = None) -> Network:
    """The network of one resolved experiment; `load` is the utilisation of each port, by number."""
    found = _native.fabric_tables(json.dumps(experiment), seed)
    switches, table = found["switches"], found["links"]
    columns = {
        name: np.asarray(values, dtype=np.int64)
        for name, values in table.items()
        if name not in ("delay_s", "rate_bps")
    }
    ports = 2 * len(columns["port"])
    used = np.full(ports, np.nan) if load is None else load
    flaws = _flaws(found["failures"], ports)
    is_host = columns["switch"] == _NONE
    lower = np.where(is_host, columns["upper"], columns["switch"])
    each = Links(
        lower,
        columns["upper"],
        np.ones(len(lower), dtype=np.int64),
        np.asarray(table["rate_bps"], dtype=np.float64),
        used[columns["port"]],
        used[columns["reverse"]],
        {
            kind: (one[columns["port"]] | one[columns["reverse"]]).astype(np.int64)
            for kind, one in flaws.items()
        },
    )
    names = list(switches["name"])
    numbers = {key: np.asarray(switches[key], dtype=np.int64) for key in ("tier", "plane", "group")}
    at = np.bincount(columns["upper"][is_host], minlength=len(names))
    fabric = dict(experiment["fabric"])
    return Network(
        topology=str(fabric.get("topology", "")),
        keys=fabric,
        is_clos=found["is_clos"],
        hosts=found["hosts"],
        planes=found["planes"],
        names=names,
        at=at,
        homes=_homes(columns["host"][is_host], columns["upper"][is_host], numbers["plane"]),
        links=_summed(each.lower[~is_host], each.upper[~is_host], each.only(~is_host)),
        host_links=_summed(each.lower[is_host], each.upper[is_host], each.only(is_host)),
        failures=_in_words(found["failures"], columns, names),
        **numbers,
    )


def _homes(hosts: Ints, switches: Ints, plane: Ints) -> list[tuple[tuple[int, ...], int]]:
    """Those of links of hosts."""
    place = np.lexsort((switches, plane[switches], hosts))
    hosts, switches = hosts[place], switches[place]
    starts = np.flatnonzero(np.diff(hosts, prepend=-1) | np.diff(plane[switches], prepend=-1))
    found: dict[tuple[int, ...], int] = {}
    for these in np.split(switches, starts[1:]):
        homes = tuple(map(int, these))
        found[homes] = found.get(homes, 0) + 1
    return list(found.items())


def short_rate(bits_per_second: float) -> str:
    """A rate without needless zeros: `400 Gb/s`."""
    number, blank, unit = format_rate(float(bits_per_second)).partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + blank + unit


def _times(count: int) -> str:
    return f"{count} \N{MULTIPLICATION SIGN} " if count > 1 else ""


def _flaws(failures: Mapping[str, Any], ports: int) -> dict[str, NDArray[np.bool_]]:
    flaws = {kind: np.zeros(ports, dtype=bool) for kind in KINDS}
    kinds = np.asarray(failures["kind"], dtype=object)
    which = np.asarray(failures["port"], dtype=np.int64)
    for kind, flawed in flaws.items():
        flawed[which[kinds == kind]] = True
    return flaws


def _in_words(
    failures: Mapping[str, Any], columns: Mapping[str, Ints], names: list[str]
) -> list[str]:
    """`leaf-0 - spine-1 down from 10 us`, each link once; an arrow where one direction fails so."""
    link_of = np.zeros(2 * len(columns["port"]), dtype=np.int64)
    is_up = np.zeros(2 * len(columns["port"]), dtype=np.bool_)
    is_up[columns["port"]] = True
    for way in ("port", "reverse"):
        link_of[columns[way]] = np.arange(len(columns["port"]))
    ways: dict[tuple[str, str, str], set[bool]] = {}
    rows = zip(
        *(failures[key] for key in ("port", "kind", "lost", "start_s", "end_s")), strict=True
    )
    for port, kind, lost, start, end in rows:
        link = link_of[port]
        host, low, high = (int(columns[key][link]) for key in ("host", "switch", "upper"))
        lower = names[low] if host == _NONE else f"host-{host}"
        share = {
            "down": "down",
            "degraded": f"degraded by {100 * lost:.3g} %",
            "flaky": f"flaky: down {100 * lost:.3g} % of the time",
        }[kind]
        since = f" from {format_time(float(start))}" if start else ""
        until = f" until {format_time(float(end))}" if np.isfinite(end) else ""
        one = (lower, names[high], f"{share}{since}{until}")
        ways.setdefault(one, set()).add(bool(is_up[port]))

    def ends(lower: str, upper: str, up: set[bool]) -> str:
        if len(up) == 2:
            return f"{lower} \N{EN DASH} {upper}"
        arrow = " \N{RIGHTWARDS ARROW} "
        return arrow.join((lower, upper) if True in up else (upper, lower))

    return [f"{ends(low, high, up)} {what}" for (low, high, what), up in ways.items()]


def _summed(lower: Ints, upper: Ints, links: Links) -> Links:
    """One row for each two ends; which of them is the lower one is turned so that all agree."""
    turned = lower > upper
    low, high = np.where(turned, upper, lower), np.where(turned, lower, upper)
    up, down = np.where(turned, links.down, links.up), np.where(turned, links.up, links.down)
    size = int(high.max()) + 1 if len(high) else 1
    keys, row = np.unique(low * size + high, return_inverse=True)
    most = len(keys)

    def largest(values: Floats) -> Floats:
        found = np.full(most, np.nan)
        np.fmax.at(found, row, values)
        return found

    rate = np.full(most, np.inf)
    np.minimum.at(rate, row, links.rate)

    def total(values: Ints) -> Ints:
        return np.bincount(row, weights=values, minlength=most).astype(np.int64)

    return Links(
        keys // size,
        keys % size,
        total(links.count),
        rate,
        largest(up),
        largest(down),
        {kind: total(counts) for kind, counts in links.failing.items()},
    )
