"""`weft merge`: results of several directories in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def merge(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="The -o directories of one command with different --shard.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write the results to this directory. It may be one of the others.",
            show_default=False,
        ),
    ],
    json: options.Json = False,
    summary: options.Summary = False,
    no_report: options.NoReport = False,
    quiet: options.Quiet = False,
) -> int:
    """Put the results of shards together and show them.

    \b
    Example:
      weft run fig3.toml --shard 1/2 -o one/             on one machine
      weft run fig3.toml --shard 2/2 -o two/             on another one
      weft merge one/ two/ -o out/                       what weft run -o out/ would have left

    \b
    Exit status: 0 all runs are there, 1 some stalled, or are missing (the command for them is
    told), 2 bad input, such as results of different experiments or versions.
    """
    from weft.cli import simulations
    from weft.cli.terminal import note
    from weft.study import merge as merging

    options.exclude(json, summary)
    merged = merging.merge(directories, output)
    for flaw in merged.flaws:
        note(f"warning: {flaw}; left out")
    stalls = merged.stalls()
    for stall in stalls:
        note(f"stalled: {stall}")
    compared = merged.study.command.startswith("weft compare ")
    given = simulations.Options(
        *(output, None, None, json, not no_report, quiet, summary), verdict=compared
    )
    simulations.show(merged.study, merged.store, given)
    missing = merged.missing()
    if missing:
        total = len({spec["key"] for spec in merged.study.runs()})
        note(f"{missing} of {total} runs are missing; to run them: {merged.study.command}")
    return 1 if missing or stalls else 0
