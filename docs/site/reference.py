"""The reference pages of the site, made from the code: Markdown by the name of the page.

Nothing is said here that the code does not say: commands come from the command line's own tree,
keys from `weft.api`, columns from `weft.report.column_meanings` and from a run.
"""

from __future__ import annotations

import html
import importlib.util
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from weft import api, simulate
from weft._types import CatalogueEntry, CatalogueOption
from weft.cli import list as listing
from weft.cli.app import app
from weft.report import column_meanings

KINDS = {
    "schemes": "What chooses the path of packets: the values of `balance.scheme`. A name with `-N` "
    "takes a number: `subflows-8`. [Choosing a scheme](../choosing.md) helps to choose.",
    "transports": "Congestion controls (`transport.congestion`) and loss recoveries "
    "(`transport.recovery`).",
    "workloads": "What is sent: patterns, files, collectives and their algorithms, traces, models.",
    "topologies": "Fabrics (`fabric.topology`), with the keys of their switches, NICs and servers.",
    "presets": "Keys that go together (`preset`); what an experiment says itself goes first.",
    "sections": "The sections of an experiment file, with the keys that no other list has. What "
    "they are for, with examples: [experiment files](../experiments.md).",
    "variables": "What hosts of a cluster read: the [NCCL plugin](../nccl.md) and the "
    "[PyTorch back end](../torch.md). After them options of schemes whose defaults differ there.",
    "software": "What `weft plan --hosts-for` writes settings for "
    "([other people's software](../deploy.md#other-software)).",
}
"""What there is a list of (`weft list`), and what its page begins with."""
MADE = "<!-- Made from the code by docs/site/reference.py. -->\n"


def pages() -> dict[str, str]:
    """All pages."""
    made = {f"reference/{kind}.md": _catalogue(kind) for kind in KINDS if hasattr(api, kind)}
    made["reference/commands.md"] = _commands()
    if importlib.util.find_spec("weft.analysis.keys"):
        made["reference/keys.md"] = _keys()
    made["reference/columns.md"] = _columns()
    return {name: MADE + text for name, text in made.items()}


def _catalogue(kind: str) -> str:
    """The entries under the keys that choose them; options of all of them once, last."""
    entries: list[CatalogueEntry] = getattr(api, kind)()
    everywhere = listing._shared(entries)
    wanted = asked(entries) if kind == "schemes" else {}
    parts = [
        f"# {kind.capitalize()}\n",
        KINDS[kind],
        f"\nThe same in a terminal: `weft list {kind}`.\n",
    ]
    for key in dict.fromkeys(entry["key"] for entry in entries):
        mine = [entry for entry in entries if entry["key"] == key]
        shared = listing._without(listing._shared(mine), everywhere)
        parts.append(f"\n## `{key}`\n")
        parts += [
            _entry(
                one,
                listing._without(one["options"], everywhere + shared),
                wanted.get(one["name"], ()),
            )
            for one in mine
        ]
        if shared:
            parts += [f"\n### With any `{key}`\n", *_options(shared)]
    if everywhere:
        parts += ["\n## With any of them\n", *_options(everywhere)]
    return "\n".join(parts)


def _entry(entry: CatalogueEntry, options: Sequence[CatalogueOption], wanted: Sequence[str]) -> str:
    summary = entry["summary"][:1].upper() + entry["summary"][1:]
    lines = [f"\n### `{entry['name']}`\n", f"{_text(summary)}.  "]
    for whom, what in zip(("switches, beyond hashing", "NICs"), wanted, strict=False):
        lines.append(f"Asks of {whom}: {_text(what)}.  ")
    if entry["source"]:
        lines.append(f"Source: {_text(entry['source'])}.  ")
    if entry.get("runs_on"):
        lines.append(f"Runs on: {', '.join(entry['runs_on'])}.  ")
        lines.append(f"Source ports: {entry['source_ports']}.")
    return "\n".join([*lines, "", *_options(options)])


def asked(schemes: Sequence[CatalogueEntry]) -> dict[str, tuple[str, ...]]:
    """What each scheme asks of switches beyond hashing, and of NICs, as a run of each tells."""
    names = {one["name"].replace("-N", "-2"): one["name"] for one in schemes}
    experiment = {
        "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "workload": {"pattern": "permutation", "size": "4KB"},
        "sweep": {"balance.scheme": list(names)},
    }
    with warnings.catch_warnings(action="ignore"):
        runs = simulate(experiment).runs
    told = [name for name in ("switch_changes", "nic_changes") if name in runs.columns]
    return {names[row["scheme"]]: tuple(map(row.__getitem__, told)) for row in runs.to_dicts()}


def _options(options: Sequence[CatalogueOption]) -> list[str]:
    if not options:
        return []
    rows = [
        (f"`{one['key']}`", _default(one["default"]), _text(one.get("kind", "")), _meaning(one))
        for one in options
    ]
    return _table(("key", "default", "may be", "means"), rows)


def _default(text: str) -> str:
    return f"*{text}*" if listing.is_required(text) else f"`{text}`" if text else '`""`'


def _meaning(option: CatalogueOption) -> str:
    told = option["meaning"] + option.get("kind", "")
    words = [word for word in option["words"] if word not in told]
    more = f" ({', '.join(option['words'])})" if words else ""
    return _text(option["meaning"] + more)


def _keys() -> str:
    """Every key of an experiment, section by section."""
    from weft.analysis import keys

    parts = [
        "# All keys\n",
        "Every key of an experiment file, with its default and what it may be. A key that means "
        "something else, or has another default, under some choices has a line for each. "
        "`weft explain KEY` says the same in a terminal.\n",
    ]
    known = keys.all_keys()
    for section in dict.fromkeys(key.section for key in known):
        rows = [
            (
                f"`{key.name}`",
                _default(use.default),
                _kind(use),
                _text(use.meaning),
                _under(use),
            )
            for key in known
            if key.section == section
            for use in key.uses
        ]
        parts += [f"\n## `[{section}]`\n" if section else "\n## Above the first table\n"]
        parts += _table(("key", "default", "may be", "means", "with"), rows)
    return "\n".join(parts)


def _kind(use: Any) -> str:
    """What a key may be: its kind, or the words."""
    return ", ".join(f"`{word}`" for word in use.words) if use.words else _text(use.kind)


def _under(use: Any) -> str:
    """What chooses a key: some names, or how many there are."""
    names = [name for _, name in use.under]
    return _text(", ".join(names) if len(names) <= 4 else f"{len(names)} of them")


def _commands() -> str:
    """Every command with its usage, its arguments and its options."""
    parts = ["# Commands\n", "Every command says the same with `--help`.\n"]
    for words, command in _leaves(["weft"], typer.main.get_command(app)):
        context = command.make_context(words[-1], [], resilient_parsing=True)
        usage = " ".join([*words, *command.collect_usage_pieces(context)])
        parts += [
            f"\n## {' '.join(words)}\n",
            f"```text\n{usage}\n```\n",
            *_help(command.help or ""),
        ]
        for kind in ("argument", "option"):
            parts += _parameters(kind, command, context)
    return "\n".join(parts)


def _leaves(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    """The command itself and all below it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _leaves([*words, name], below)


def _help(text: str) -> Iterator[str]:
    r"""Paragraphs of a help text; those after a "\b" stand as they are."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        kept = paragraph.strip("\n").removeprefix("\b").strip("\n")
        yield (
            f"```text\n{kept}\n```\n" if "\b" in paragraph else f"{_text(' '.join(kept.split()))}\n"
        )


def _parameters(kind: str, command: Any, context: Any) -> list[str]:
    """A table of the command's arguments, or of its options."""
    own = [one for one in command.params if one.param_type_name == kind and one.name != "help"]
    records = [record for one in own if (record := one.get_help_record(context)) is not None]
    rows = [(f"`{name}`", _text(told)) for name, told in records]
    return ["", *_table((kind, "means"), rows), ""] if rows else []


def _columns() -> str:
    """The data dictionary: names and types from a run, meanings from the package."""
    result = simulate(EVERY_TABLE)
    parts = [
        "# Result columns\n",
        "What `weft run -o DIR` leaves as tables, and `weft.simulate` returns as data frames. The "
        "type is that of Polars. An empty cell (null) means that a run does not tell. How columns "
        "that need more words are counted: "
        "[experiment files](../experiments.md#what-a-run-leaves).\n",
    ]
    for table, meanings in column_meanings.TABLES.items():
        frame = getattr(result, table, None)
        types = {} if frame is None else dict(zip(frame.columns, frame.dtypes, strict=True))
        rows = [
            (f"`{name}`", str(types.get(name, "")), column_meanings.unit_of(name), _text(meaning))
            for name, meaning in meanings.items()
        ]
        parts += [f"\n## `{table}.parquet`\n", f"{column_meanings.ROWS[table]}\n"]
        parts += _table(("column", "type", "unit", "means"), rows)
    return "\n".join(parts)


EVERY_TABLE = {
    "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "workload": {"collective": "all-reduce", "size": "16KB"},
    "background": {"load": 0.1, "size": "4KB"},
    "probe": {"interval": "100ns", "ports": ["leaf-0 -> host-0"], "timeline": True},
    "balance": {"scheme": "ecmp"},
}
"""An experiment whose results have all tables and all columns."""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; columns that no row fills are left out."""
    kept = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    lines = [
        [columns[at] for at in kept],
        ["---"] * len(kept),
        *([row[at] for at in kept] for row in rows),
    ]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _text(text: str) -> str:
    """Plain text that Markdown leaves as it is, within a table too; `code` in it stays code."""
    parts = " ".join(text.split()).split("`")
    plain = [re.sub(r"([\\*_|\[\]])", r"\\\1", html.escape(part, False)) for part in parts]
    if len(parts) % 2 == 0:
        return "\\`".join(plain)
    return "`".join(part if at % 2 else plain[at] for at, part in enumerate(parts))
