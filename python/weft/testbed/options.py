"""Options of schemes on a bed: its hosts are real ones, and leave a path that is dead for as long.

Of the options whose default is another on hosts (`weft list variables`) these two matter here:
what hosts are told of links in a file, or learn by time-outs of a second, is not forgotten within
100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft import api

_MATTER = ("bad_for", "dead_for")


def of(scheme: str) -> dict[str, str]:
    """What hosts take for the options of a scheme that say nothing else."""
    entries = (one for one in api.variables() if one["name"] == "schemes")
    on_hosts = {one["key"]: one["default"] for entry in entries for one in entry["options"]}
    return {key: on_hosts[key] for key in _published(scheme)}


def chosen(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a plan that somebody chose: it has all of them written out."""
    published = _published(scheme)
    return {key: value for key, value in options.items() if published.get(key) != value}


def _published(scheme: str) -> dict[str, str]:
    """Their defaults in the simulator, of those that a scheme has."""
    plain = scheme.rstrip("0123456789").rstrip("-")
    for entry in api.schemes():
        if entry["name"].removesuffix("-N") in (scheme, plain):
            pairs = {one["key"]: one["default"] for one in entry["options"]}
            return {key: pairs[f"balance.{key}"] for key in _MATTER if f"balance.{key}" in pairs}
    return {}
