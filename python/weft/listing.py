"""What `weft list` prints: entries of the catalogue with the keys that they understand."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from weft._types import CatalogueEntry, CatalogueOption


def text(entries: Sequence[CatalogueEntry], width: int) -> str:
    """The entries for a terminal of `width` columns; keys that all share come once, last."""
    shared = [
        option
        for option in entries[0]["options"]
        if len(entries) > 1 and all(option in entry["options"] for entry in entries)
    ]
    lines: list[str] = []
    for entry in entries:
        lines += _wrapped(f"{entry['name']}  {entry['summary']}", "", "    ", width)
        if entry["source"]:
            lines += _wrapped(entry["source"], "    ", "    ", width)
        lines += _options([one for one in entry["options"] if one not in shared], width)
        lines.append("")
    if shared:
        lines += ["All of them:", *_options(shared, width), ""]
    return "\n".join(lines[:-1])


def _options(options: Sequence[CatalogueOption], width: int) -> list[str]:
    """One option a line, meanings under each other."""
    usages = [_usage(option) for option in options]
    column = 4 + max(map(len, usages), default=0) + 2
    lines = []
    for usage, option in zip(usages, options, strict=True):
        first = f"    {usage}".ljust(column)
        lines += _wrapped(option["meaning"], first, " " * column, width)
    return lines


def _usage(option: CatalogueOption) -> str:
    if option["default"] == "required":
        return f"{option['key']} (required)"
    return f"{option['key']} = {option['default']}"


def _wrapped(content: str, first: str, then: str, width: int) -> list[str]:
    # Below this the wrapped meanings would be a column of single words.
    return textwrap.wrap(
        content,
        max(width, 80),
        initial_indent=first,
        subsequent_indent=then,
        break_on_hyphens=False,
    )
