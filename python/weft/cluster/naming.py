"""`[cluster]`: what the nodes, ports and addresses of a cluster are called.

Each key is a number or a pattern (`weft.cluster.patterns`) over the numbers that its place has. The
defaults give valid, distinct Linux names and private addresses up to 65,536 leaves.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.cluster import patterns
from weft.errors import ExperimentError

FIRST_PORT, LAST_PORT = 0xC000, 0xFFFF
"""The UDP source ports of RoCEv2."""

_NUMBERS = {
    "dscp": (26, 0, 63),
    "port": (4791, 1, 65_535),
    "first_port": (FIRST_PORT, 1, 65_535),
    "last_port": (LAST_PORT, 1, 65_535),
}
"""Default, least and most."""

_ON_HOST = ("host", "leaf", "place", "pod", "server", "rail", "hosts", "leaves", "nics")
_ON_LEAF = ("leaf", "pod", "hosts", "leaves", "uplinks", "nics")
_ON_MID = ("spine", "agg", "pod", "leaves", "spines", "aggs", "uplinks", "downlinks")
_ON_CORE = ("core", "cores", "pods", "downlinks")
_ABOVE_LEAF = (
    *("leaf", "uplink", "spine", "agg", "member", "pod", "link", "downlink"),
    *("uplinks", "members", "hosts", "leaves", "spines", "aggs", "downlinks"),
)
_ABOVE_AGG = (
    *("agg", "uplink", "core", "member", "pod", "link", "downlink"),
    *("uplinks", "members", "aggs", "cores", "downlinks"),
)
_LINK = "100.{64+link//32768}.{link//128%256}."

_PATTERNS = {
    "host": ("h{host}", _ON_HOST),
    "host_interface": ("eth0", _ON_HOST),
    "host_address": ("", _ON_HOST),
    "host_port": ("eth{place+1}", _ON_HOST),
    "rack": ("", _ON_LEAF),
    "gateway": ("", _ON_LEAF),
    "leaf": ("leaf-{leaf}", _ON_LEAF),
    "spine": ("spine-{spine}", _ON_MID),
    "agg": ("agg-{agg}", _ON_MID),
    "core": ("core-{core}", _ON_CORE),
    "uplink_port": ("eth{hosts+uplink+1}", _ABOVE_LEAF),
    "uplink_address": (_LINK + "{link%128*2}", _ABOVE_LEAF),
    "uplink_next_hop": (_LINK + "{link%128*2+1}", _ABOVE_LEAF),
    "downlink_port": ("eth{downlink+1}", _ABOVE_LEAF),
    "agg_uplink_port": ("eth{downlinks+uplink+1}", _ABOVE_AGG),
    "agg_uplink_address": (_LINK + "{link%128*2}", _ABOVE_AGG),
    "agg_uplink_next_hop": (_LINK + "{link%128*2+1}", _ABOVE_AGG),
    "core_downlink_port": ("eth{downlink+1}", _ABOVE_AGG),
}
"""Default and names. `link` counts the links between switches; `uplink` those of the lower switch
(spine * members + member), `downlink` those below the upper one; `downlinks` of an aggregation
switch are its links to leaves. Empty defaults depend on the counts."""

KEYS = (*_NUMBERS, *_PATTERNS)
"""All of `[cluster]`."""

_RACKS = (
    (256, 51_200, ("10.{leaf}.{place//200}.{place%200+2}", "10.{leaf}.0.0/16", "10.{leaf}.0.1")),
    (
        4_096,
        3_200,
        (
            "10.{leaf//16}.{leaf%16*16+place//200}.{place%200+2}",
            "10.{leaf//16}.{leaf%16*16}.0/20",
            "10.{leaf//16}.{leaf%16*16}.1",
        ),
    ),
    (
        65_536,
        252,
        (
            "10.{leaf//256}.{leaf%256}.{place+2}",
            "10.{leaf//256}.{leaf%256}.0/24",
            "10.{leaf//256}.{leaf%256}.1",
        ),
    ),
)
"""Up to so many leaves with so many hosts each: address of a host, prefix and gateway of a rack."""

Fields = Mapping[str, int]


def unknown(source: str, key: str, known: Sequence[str], section: str = "") -> ExperimentError:
    """The refusal of a key that there is not."""
    near = difflib.get_close_matches(key, known, 1)
    mend = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
    return ExperimentError(f"{source}: {section}{key}: unknown key; {mend}")


@dataclass(frozen=True)
class Shape:
    """The counts that defaults depend on."""

    leaves: int
    """In all."""
    hosts: int
    """Below each leaf."""
    nics: int
    """Of a server."""


class Names:
    """What `[cluster]` says, with defaults."""

    def __init__(self, section: object, shape: Shape, source: str) -> None:
        if not isinstance(section, Mapping):
            raise ExperimentError(f"{source}: cluster: not a table; write [cluster]")
        for key in section:
            if key not in KEYS:
                raise unknown(source, key, KEYS, "cluster.")
        self._source = source
        self._section = section
        defaults = {key: default for key, (default, _) in _PATTERNS.items()} | _usual(shape)
        given = {key: section[key] for key in section if key in _PATTERNS}
        self._patterns = {key: self._read(key, text) for key, text in (defaults | given).items()}
        self.numbers = {key: self._number(key) for key in _NUMBERS}

    def fill(self, key: str, values: Fields) -> str:
        """The name or address that `key` gives for these numbers."""
        try:
            return self._patterns[key].fill(values)
        except patterns.PatternError as error:
            raise self.wrong(key, str(error)) from None

    def wrong(self, key: str, what: str) -> ExperimentError:
        """The mistake `what` (with its mend) at `key`."""
        return ExperimentError(f"{self._source}: cluster.{key}: {what}")

    def _read(self, key: str, text: object) -> patterns.Pattern:
        default, names = _PATTERNS[key]
        if not isinstance(text, str):
            raise self.wrong(key, f'not text; write {key} = "{default or "10.{leaf}.0.1"}"')
        if not text:
            raise self.wrong(key, "there is no default for so many leaves and hosts; write one")
        try:
            return patterns.read(text, names)
        except patterns.PatternError as error:
            raise self.wrong(key, str(error)) from None

    def _number(self, key: str) -> int:
        default, least, most = _NUMBERS[key]
        number = self._section.get(key, default)
        if not isinstance(number, int) or isinstance(number, bool):
            raise self.wrong(key, f"not a whole number; use {least} to {most}")
        if not least <= number <= most:
            raise self.wrong(key, f"{number} is out of range; use {least} to {most}")
        return number


def _usual(shape: Shape) -> dict[str, str]:
    """Defaults that depend on the counts."""
    usual = {}
    if shape.nics > 1:
        usual = {"host": "s{server}r{rail}", "host_interface": "eth{rail}"}
    for leaves, hosts, patterns_ in _RACKS:
        if shape.leaves <= leaves and shape.hosts <= hosts:
            return usual | dict(zip(("host_address", "rack", "gateway"), patterns_, strict=True))
    return usual
