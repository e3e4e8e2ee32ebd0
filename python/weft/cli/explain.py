"""`weft explain`: what a key of an experiment means."""

from __future__ import annotations

import json as json_
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import completion, terminal
from weft.cli.list import is_required, kind_with

if TYPE_CHECKING:
    from weft.analysis.keys import Key, Use

_MANY = 6
"""More names than this are told by their number."""


def explain(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="A key, a section, or the last part of keys: failures.slow.detect, fabric.switch, "
            "detect. Default: all sections.",
            show_default=False,
            autocompletion=completion.keys,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> int:
    """Explain a key of an experiment: what it means, what it may be, its default.

    \b
    Examples:
      weft explain failures.links.detect
      weft explain fabric.switch         all keys of a section
      weft explain --json                all keys, for machines
    """
    from weft import ExperimentError
    from weft.analysis import keys

    known = keys.all_keys()
    if key is None:
        print(json_.dumps([asdict(one) for one in known], indent=1) if json else _sections(known))
        return 0
    found = keys.find(key, known)
    if not found:
        raise ExperimentError(f"weft explain {key}: is no key; {_mend(key, known)}")
    if json:
        print(json_.dumps([asdict(one) for one in found], indent=1))
    elif len(found) <= 2:
        print("\n\n".join("\n".join(_whole(one)) for one in found))
    else:
        print("\n".join(_listed(found)))
    return 0


def _mend(key: str, known: Sequence[Key]) -> str:
    """What helps: a key that is like it, or the list that has a value of this name."""
    from weft.analysis import keys

    kind = kind_with(key)
    return f"weft list {kind} {key} shows it" if kind else keys.near(key, known)


def _sections(known: Sequence[Key]) -> str:
    from weft.report import text_table

    counts: dict[str, int] = {}
    for one in known:
        name = one.section or "above all sections"
        counts[name] = counts.get(name, 0) + 1
    lines = text_table.aligned([(name, f"{count} keys") for name, count in counts.items()], {1})
    return "\n".join(
        [*lines, "", "weft explain SECTION lists its keys, weft explain KEY tells all."]
    )


def _listed(found: Sequence[Key]) -> list[str]:
    """A line for each key, or two."""
    lines = []
    for one in found:
        first = one.uses[0]
        default = first.default if is_required(first.default) else f"default {first.default}"
        lines += [f"{one.name}  ({default})", *_wrapped(first.meaning)]
    return lines


def _whole(key: Key) -> list[str]:
    """All that is known of a key; one that means several things has a paragraph for each."""
    lines = [key.name]
    for use in key.uses:
        lines += [*_wrapped(use.meaning), *_fields(use), ""]
    return lines[:-1]


def _fields(use: Use) -> list[str]:
    lines = []
    if use.words:
        lines += _field("may be", ", ".join(use.words))
    elif use.kind:
        lines += _field("may be", use.kind)
    lines += _field("default", _default(use.default))
    for chooser in dict.fromkeys(name for name, _ in use.under):
        values = [value for name, value in use.under if name == chooser]
        shown = ", ".join(values) if len(values) <= _MANY else f"one of {len(values)} values"
        lines += _field("with", f"{chooser} = {shown}")
    return lines


def _default(default: str) -> str:
    if not is_required(default):
        return default
    _, _, which = default.partition(": ")
    return f"none: {which or 'it'} has to be given"


def _field(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(terminal.width(), 80),
        initial_indent=f"  {name:9s}",
        subsequent_indent=" " * 11,
        break_on_hyphens=False,
    )


def _wrapped(text: str) -> list[str]:
    width = max(terminal.width(), 80)
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
