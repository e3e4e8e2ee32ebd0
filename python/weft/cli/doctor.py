"""`weft doctor`: what works on this machine, and what to install for the rest."""

from __future__ import annotations

import json as json_
import textwrap
from typing import Annotated

import typer

from weft.cli import terminal


def doctor(
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object per part.")
    ] = False,
) -> int:
    """Say what of Weft works on this machine, and what to install for the rest.

    Only the simulator is needed to simulate, compare and plan; each other line says what needs it.
    """
    from weft import doctor
    from weft.report import text_table

    found = doctor.findings()
    if json:
        print(json_.dumps([one.as_dict() for one in found], indent=1))
        return 0
    marks = {"works": "works", "missing": "-"}
    rows = [[one.part, marks[one.state], one.found] for one in found]
    print("\n".join(text_table.aligned(rows)))
    lacking = [one for one in found if one.remedy]
    if lacking:
        print("\nFor what is missing:")
        for one in lacking:
            print("\n".join(_remedy(one.use, one.remedy)))
    return 0


def _remedy(use: str, remedy: str) -> list[str]:
    """What needs something that is missing, and below it what to do."""
    width = max(terminal.width(), 80)
    above = textwrap.wrap(use, width, initial_indent="  ", subsequent_indent="  ")
    below = textwrap.wrap(
        remedy,
        width,
        initial_indent=" " * 4,
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return above + below
