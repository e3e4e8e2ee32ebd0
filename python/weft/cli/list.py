"""`weft list`: schemes, transports, workloads, topologies, presets, variables, with their keys."""

from __future__ import annotations

import json as json_
import shutil
import textwrap
from collections.abc import Sequence
from typing import Annotated

import typer

from weft._types import CatalogueEntry, CatalogueOption

NOTHING = '""'
KINDS = ("schemes", "transports", "workloads", "topologies", "presets", "variables")


def list_(
    kind: Annotated[
        str,
        typer.Argument(help="What to list.", metavar=f"[{'|'.join(KINDS)}]", show_default=False),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> int:
    """List schemes, workloads and what else there is.

    Each has its keys and its source. The keys are those of an experiment file; weft compare takes
    the same ones. Variables are the environment variables of the NCCL plugin and the PyTorch back
    end.
    """
    from weft import ExperimentError, api

    if kind not in KINDS:
        near = next((one for one in KINDS if kind and one.startswith(kind)), None)
        mend = f"did you mean {near}?" if near else f"use one of {', '.join(KINDS)}"
        raise ExperimentError(f"weft list {kind}: unknown; {mend}")
    entries: list[CatalogueEntry] = getattr(api, kind)()
    if json:
        print(json_.dumps(entries, indent=1))
    else:
        print(text(entries, shutil.get_terminal_size().columns))
    return 0


def text(entries: Sequence[CatalogueEntry], width: int) -> str:
    """The entries for a terminal of `width` columns, under the keys that choose them.

    Options that all entries share, or all under one key, come once, last.
    """
    everywhere = _shared(entries)
    lines: list[str] = []
    for key in dict.fromkeys(entry["key"] for entry in entries):
        mine = [entry for entry in entries if entry["key"] == key]
        shared = _without(_shared(mine), everywhere)
        lines += [f"{key} =", ""]
        for entry in mine:
            lines += _wrapped(f"  {entry['name']}  {entry['summary']}", "", "    ", width)
            lines += _wrapped(entry["source"], "    ", "    ", width)
            lines += [*_options(_without(entry["options"], everywhere + shared), width), ""]
        if shared:
            lines += [f"  With any {key}:", *_options(shared, width), ""]
    if everywhere:
        lines += ["With any of them:", *_options(everywhere, width), ""]
    return "\n".join(lines[:-1])


def _shared(entries: Sequence[CatalogueEntry]) -> list[CatalogueOption]:
    """The options of all entries, if there are several."""
    first, *others = entries
    all_have = (one for one in first["options"] if all(one in other["options"] for other in others))
    return list(all_have) if others else []


def _without(
    options: Sequence[CatalogueOption], others: Sequence[CatalogueOption]
) -> list[CatalogueOption]:
    return [option for option in options if option not in others]


def _options(options: Sequence[CatalogueOption], width: int) -> list[str]:
    """One option a line, meanings under each other."""
    usages = [_usage(option) for option in options]
    column = 4 + max(map(len, usages), default=0) + 2
    lines = []
    for usage, option in zip(usages, options, strict=True):
        first = f"    {usage}".ljust(column)
        lines += _wrapped(_meaning(option), first, " " * column, width)
    return lines


def _usage(option: CatalogueOption) -> str:
    if option["default"] == "required":
        return f"{option['key']} (required)"
    return f"{option['key']} = {option['default'] or NOTHING}"


def _meaning(option: CatalogueOption) -> str:
    """With the words that it may be, unless it names them itself."""
    meaning, words = option["meaning"], option["words"]
    if all(word in meaning for word in words):
        return meaning
    return f"{meaning} ({', '.join(words)})"


def _wrapped(content: str, first: str, then: str, width: int) -> list[str]:
    # Below this the wrapped meanings would be a column of single words.
    return textwrap.wrap(
        content,
        max(width, 80),
        initial_indent=first,
        subsequent_indent=then,
        break_on_hyphens=False,
    )
