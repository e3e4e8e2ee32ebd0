"""`weft report`: plots and report.html from stored results."""

from __future__ import annotations

from collections.abc import Sequence
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
    plots: options.Plots = None,
    quiet: options.Quiet = False,
) -> int:
    """Make report.html again from tables, and plots as files.

    \b
    Examples:
      weft report out/
      weft report out/ --plots svg,pdf
    """
    make(directory, quiet, options.formats(plots))
    return 0


def remove(directory: Path) -> bool:
    """Remove the report; whether there was one."""
    path = directory / "report.html"
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def make(directory: Path, quiet: bool, formats: Sequence[str]) -> None:
    """Write the report, and plots in these formats; say so on standard error unless `quiet`."""
    from weft.cli.terminal import note, telling_warnings
    from weft.errors import alone
    from weft.report import html
    from weft.study import study

    with alone(directory):
        results = study.load(directory)
        if not quiet:
            note("drawing plots and the report" if formats else "writing the report")
        with study.naming_damage(directory, results.study), telling_warnings():
            written = html.make(results, directory, formats)
    if not quiet:
        files = f" and {len(written) - 1} plots in {directory / 'plots'}" if formats else ""
        note(f"{written[-1]}{files}")
