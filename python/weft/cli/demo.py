"""`weft demo`: figures 2 to 4 of Ethereal (2024), a report to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where tables and report go.")
    ] = Path("out/demo"),
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> int:
    """Simulate ECMP, spraying and Ethereal on 256 GPUs; tables, plots and a report.

    These are figures 2 to 4 of Ethereal (2024). Open DIR/report.html when it has ended.
    """
    from weft.cli import run
    from weft.cli.simulations import Options
    from weft.study import demo

    given = Options(output, jobs, None, json=False, report=True, quiet=quiet)
    return run.run_files([str(path) for path in demo.files()], given, seeds, [], None, None)
