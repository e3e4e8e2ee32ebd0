"""`weft list`: schemes, transports, workloads, topologies and more, with their keys."""

from __future__ import annotations

import json as json_
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from weft.catalogue import KINDS
from weft.cli import completion

if TYPE_CHECKING:
    from weft._types import CatalogueEntry, CatalogueOption

NOTHING = '""'
_LONG = 34
"""A key with its default that is longer has its meaning below it."""


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="What to list. Default: what can be listed.",
            metavar=f"[{'|'.join(KINDS)}]",
            show_default=False,
            autocompletion=completion.kinds,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="One of them, e.g. reps: all that is known of it.",
            metavar="[NAME]",
            show_default=False,
            autocompletion=completion.entries,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> int:
    """List schemes, workloads and what else there is.

    Each has its keys and its source. The keys are those of an experiment file; weft compare takes
    the same ones.

    \b
    Examples:
      weft list                        what can be listed
      weft list schemes
      weft list schemes reps           one of them, with its options
      weft list variables WEFT_HOST    one variable
      weft explain balance.entropies   what a key means
    """
    from weft import ExperimentError, api

    if kind is None:
        print(_kinds(json))
        return 0
    if kind not in KINDS:
        raise ExperimentError(f"weft list {kind}: unknown; {_mend(kind)}")
    entries: list[CatalogueEntry] = getattr(api, kind)()
    if name is not None:
        entries = _named(kind, entries, name)
    if json:
        print(json_.dumps(entries, indent=1))
    else:
        print(text(entries, shutil.get_terminal_size().columns))
    return 0


def _kinds(json: bool) -> str:
    """What can be listed, and how many there are of each."""
    from weft import api
    from weft.report import text_table

    counts = {kind: len(names(kind, getattr(api, kind)())) for kind in KINDS}
    if json:
        rows = [{"kind": kind, "count": counts[kind], "what": KINDS[kind]} for kind in KINDS]
        return json_.dumps(rows, indent=1)
    lines = text_table.aligned([(kind, str(counts[kind]), KINDS[kind]) for kind in KINDS], {1})
    hints = [
        "",
        "weft list KIND lists them, weft list KIND NAME shows one, weft explain KEY a key.",
    ]
    return "\n".join([*lines, *hints])


def _mend(word: str) -> str:
    """What somebody may have meant by a word that is no kind."""
    from weft.study.fields import suggestion

    near = next((one for one in KINDS if word and one.startswith(word)), None)
    if near:
        return f"did you mean {near}?"
    kind = kind_with(word)
    return f"did you mean weft list {kind} {word}?" if kind else suggestion(word, KINDS)


def kind_with(word: str) -> str | None:
    """The first kind that has something of this name."""
    from weft import api

    return next((kind for kind in KINDS if _called(getattr(api, kind)(), kind, word)), None)


def names(kind: str, entries: Sequence[CatalogueEntry]) -> list[str]:
    """What `weft list KIND` takes as a name: of variables each one, elsewhere the entries."""
    if kind == "variables":
        first, *_ = entries
        return [option["key"] for option in first["options"]]
    return [entry["name"] for entry in entries]


def _called(entries: Sequence[CatalogueEntry], kind: str, name: str) -> list[CatalogueEntry]:
    """The entries of this name; of a variable its entry, with it alone."""
    found = [entry for entry in entries if _is(entry["name"], name)]
    if found or kind != "variables":
        return found
    alone = ([one for one in entry["options"] if one["key"] == name] for entry in entries)
    pairs = zip(entries, alone, strict=True)
    return [{**entry, "options": options} for entry, options in pairs if options]


def _named(kind: str, entries: Sequence[CatalogueEntry], name: str) -> list[CatalogueEntry]:
    """The entries of this name: several where two keys take the same one."""
    from weft import ExperimentError
    from weft.study.fields import suggestion

    found = _called(entries, kind, name)
    if not found:
        known = dict.fromkeys(names(kind, entries))
        longer = [one for one in known if name.lower() in one.lower()]
        near = f"did you mean {' or '.join(longer[:3])}?" if longer else suggestion(name, known)
        raise ExperimentError(f"weft list {kind} {name}: there is none of this name; {near}")
    return found


def _is(entry: str, name: str) -> bool:
    """Whether an entry is called so: `subflows-8` is `subflows-N`, `gpt.0.et` is `*.et`."""
    if entry.startswith("*"):
        return any(name == end or name.endswith(end[1:]) for end in entry.split(", "))
    stem, _, number = name.rpartition("-")
    numbered = entry.removesuffix("-N") if entry.endswith("-N") else None
    return name in (entry, entry.strip("[]"), numbered) or (number.isdigit() and stem == numbered)


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
            if len(entries) == 1:
                lines += _places(entry)
            lines += [*_options(_without(entry["options"], everywhere + shared), width), ""]
        if shared:
            lines += [f"  With any {key}:", *_options(shared, width), ""]
    if everywhere:
        lines += ["With any of them:", *_options(everywhere, width), ""]
    return "\n".join(lines[:-1])


def _places(entry: CatalogueEntry) -> list[str]:
    """Of a scheme: where it runs, and what leaves of real hosts have to do."""
    places = entry.get("runs_on")
    if not places:
        return []
    ports = {"segments": "map source ports to uplinks", "hashed": "hash, as they do anyway"}
    leaves = ports[entry["source_ports"]]
    return [f"    runs on: {', '.join(places)}; leaves of real fabrics {leaves}"]


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
    """One option a line, meanings under each other; behind a long one they begin below it."""
    usages = [_usage(option) for option in options]
    column = 4 + max((len(usage) for usage in usages if len(usage) <= _LONG), default=4) + 2
    lines = []
    for usage, option in zip(usages, options, strict=True):
        first = f"    {usage}".ljust(column)
        if not first.endswith("  "):
            lines += _wrapped(usage, "    ", "        ", width)
            first = " " * column
        lines += _wrapped(_meaning(option), first, " " * column, width)
    return lines


def _usage(option: CatalogueOption) -> str:
    if is_required(option["default"]):
        return f"{option['key']} ({option['default']})"
    return f"{option['key']} = {option['default'] or NOTHING}"


def is_required(default: str) -> bool:
    """Whether a key with this default has to be given, or one of several."""
    return default.partition(":")[0] == "required"


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
        break_long_words=False,
    )
