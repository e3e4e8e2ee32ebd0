"""What the shell offers behind a Tab; looked up only then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weft._types import CatalogueEntry


def kinds(incomplete: str) -> list[str]:
    """What `weft list` can list."""
    from weft.catalogue import KINDS

    return _starting(KINDS, incomplete)


def entries(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the kind that was typed before."""
    from weft import api
    from weft.catalogue import KINDS

    kind = ctx.params.get("kind")
    return _starting(_names(getattr(api, kind)()), incomplete) if kind in KINDS else []


def schemes(incomplete: str) -> list[str]:
    """Schemes, of a list with commas the last one."""
    from weft import api

    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    left = (name for name in _names(api.schemes()) if name not in taken)
    return [f"{before}{comma}{name}" for name in _starting(left, last)]


def fabrics(incomplete: str) -> list[str]:
    """Topologies, and behind the colon their own keys."""
    return _short(incomplete, "topologies", "fabric")


def workloads(incomplete: str) -> list[str]:
    """Patterns, collectives and models, and behind the colon their keys."""
    return _short(incomplete, "workloads", "workload")


def keys(incomplete: str) -> list[str]:
    """Keys of an experiment."""
    from weft.analysis import keys

    return _starting((key.name for key in keys.all_keys()), incomplete)


def _short(incomplete: str, kind: str, section: str) -> list[str]:
    from weft import api

    name, colon, rest = incomplete.partition(":")
    found = [entry for entry in getattr(api, kind)() if entry["name"] == name]
    if not colon:
        return [f"{one}:" for one in _starting(_names(getattr(api, kind)()), incomplete)]
    before, comma, last = rest.rpartition(",")
    own = [option["key"].removeprefix(f"{section}.") for one in found for option in one["options"]]
    taken = [pair.partition("=")[0] for pair in before.split(",")]
    left = (key for key in dict.fromkeys(own) if key not in taken)
    return [f"{name}:{before}{comma}{key}=" for key in _starting(left, last)]


def _names(entries: Iterable[CatalogueEntry]) -> list[str]:
    """What may be typed: no patterns of file names, and numbered ones without their number."""
    names = dict.fromkeys(entry["name"] for entry in entries)
    return [name.removesuffix("N") for name in names if name[:1].isalnum()]


def _starting(words: Iterable[str], start: str) -> list[str]:
    return [word for word in words if word.startswith(start)]
