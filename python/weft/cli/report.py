"""`weft report`: plots and report.html from stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A directory with results of weft run -o or weft compare -o.",
            show_default=False,
        ),
    ],
    quiet: options.Quiet = False,
) -> int:
    """Make plots and report.html again from tables."""
    make(directory, quiet)
    return 0


def make(directory: Path, quiet: bool) -> None:
    """Draw all plots and write the report, and say so on standard error unless `quiet`."""
    from weft.cli.terminal import note
    from weft.report import html
    from weft.study import study

    results = study.load(directory)
    if not quiet:
        note("drawing plots and the report")
    written = html.make(results, directory)
    if not quiet:
        note(f"{written[-1]} and {len(written) - 1} plots in {directory / 'plots'}")
