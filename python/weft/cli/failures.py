"""`--fail`: failures on the command line, as the keys of `[failures.NAME]` that they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options

if TYPE_CHECKING:
    from weft.study.inputs import Overrides

Fail = Annotated[
    list[str] | None,
    typer.Option(
        "--fail",
        metavar="WHERE[@WHEN][,KIND][,KEY=VALUE]",
        help="Have a link or a switch fail: leaf-0:spine-1 is down, and routing and hosts know; "
        "@50us or @50%: it fails then, in percent of the lower bound on the completion time, and "
        "routing learns of it after `detect`, hosts by time-outs. degraded,lost=0.5 or "
        "flaky,every=100us,length=10us: another kind; keys as in [failures.NAME]. May be given "
        "several times: fail-1, fail-2, ...",
    ),
]

_LINK = re.compile(r"(?P<one>[\w-]+):(?P<other>[\w-]+(#\d+)?)")
_HOW = "write --fail leaf-0:spine-1, --fail leaf-0:spine-1@50% or --fail spine-1,degraded,lost=0.5"


def overrides(texts: Sequence[str]) -> Overrides:
    """The keys of the failures `fail-1`, `fail-2`, ... that `--fail` arguments describe."""
    found: list[tuple[str, str]] = []
    for number, text in enumerate(texts, 1):
        section = f"failures.fail-{number}"
        found += [(f"{section}.{key}", value) for key, value in _keys(text).items()]
    return found


def _keys(text: str) -> dict[str, str]:
    """The keys of one failure, values as `--set` takes them."""
    where, *rest = options.split(text) or [""]
    place, at, when = where.partition("@")
    if not place.strip() or (at and not when.strip()):
        raise _wrong(text, f"says not {'when' if place.strip() else 'what fails'}; {_HOW}")
    keys = dict([_place(place.strip()), ("kind", "down")])
    if at:
        keys["start"] = when.strip()
    given = [word for word in rest if "=" not in word]
    if len(given) > 1:
        raise _wrong(text, f"has several kinds ({', '.join(given)}); give each a --fail")
    if given:
        keys["kind"] = _kind(text, given[0])
    keys |= dict(_pair(text, word) for word in rest if "=" in word)
    # What is down before anything begins is no news.
    if keys["kind"] == "down" and "start" not in keys:
        keys.setdefault("detect", "0ns")
    return keys


def _place(place: str) -> tuple[str, str]:
    """The key that says what fails."""
    link = _LINK.fullmatch(place)
    if link:
        return "links", f'["{link["one"]} <-> {link["other"]}"]'
    if "->" in place:
        return "links", f'["{place}"]'
    if place in _words("tier"):
        return "tier", place
    return "switches", f'["{place}"]'


def _kind(text: str, word: str) -> str:
    from weft.study.fields import suggestion

    kinds = _words("kind")
    if word not in kinds:
        raise _wrong(text, f"{word} is not a kind of failure; {suggestion(word, kinds)}")
    return word


def _words(key: str) -> list[str]:
    """What a key of `[failures.NAME]` may be."""
    from weft.analysis import keys

    found = keys.find(f"failures.NAME.{key}", keys.all_keys())
    return [word for one in found for use in one.uses for word in use.words]


def _pair(text: str, word: str) -> tuple[str, str]:
    key, value = options.pair("--fail", word)
    # Half of it lost, or half of it left? The key says which.
    mend = {
        "degraded": f"degraded,lost={value}, the share of the bandwidth that is lost",
        "flaky": "flaky,every=100us,length=10us",
        "down": "down, and duration=... for how long",
    }
    if key in mend:
        raise _wrong(text, f"{key} takes no value; write {mend[key]}")
    return key, value


def _wrong(text: str, what: str) -> Exception:
    from weft.errors import ExperimentError

    return ExperimentError(f"--fail {text}: {what}")
