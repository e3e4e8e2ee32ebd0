"""`weft topology`: what is in topology files of other simulators."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options

app = typer.Typer(no_args_is_help=True, help="Show what is in topology files of other simulators.")


@app.command()
def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A topology file of ASTRA-sim's ns-3 backend or of htsim (.topo).",
            show_default=False,
        ),
    ],
    placement: Annotated[
        bool,
        typer.Option(
            "--placement",
            help="Print only the host of every rank of ASTRA-sim, one per line: a placement_file.",
        ),
    ] = False,
    json: options.JsonObject = False,
) -> int:
    """Show what is in a topology file, and whether it can be a fabric.

    Tiers, links with rates and delays, oversubscription, and the names of its nodes in Weft.

    \b
    Exit status: 0 it can be a fabric, 1 it cannot be one, 2 it cannot be read.
    """
    from weft.analysis import topology_info

    if json and placement:
        raise typer.BadParameter("--json and --placement print different things; choose one")
    found = topology_info.info(file)
    if placement:
        print("\n".join(map(str, topology_info.placement(found))))
    else:
        print(json_.dumps(found, indent=1) if json else topology_info.text(found))
    return 1 if found["problems"] else 0
