"""`weft topology`: what is in topology files of other simulators, and pictures of fabrics."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options

app = typer.Typer(no_args_is_help=True, help="Show what is in topology files, and draw fabrics.")


@app.command()
def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A topology file of the ns-3 backends of ASTRA-sim and SimAI, of InfraGraph or of "
            "htsim (.topo).",
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


@app.command()
def draw(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|SHORTHAND|EXPERIMENT|DIR",
            help="A topology file, TOPOLOGY:KEY=VALUE,..., an experiment or cluster (.toml), or a "
            "directory with results of weft run -o or weft compare -o.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The picture: .svg, .png or .pdf.",
            show_default=False,
        ),
    ],
    run: Annotated[
        int | None,
        typer.Option(
            "--run",
            min=0,
            metavar="N",
            help="Show the load of this run. Runs count from 0, as in runs.parquet. Of an "
            "experiment it is simulated now. Default: of a directory its first run, of an "
            "experiment none.",
        ),
    ] = None,
    set_: options.Set = None,
    quiet: options.Quiet = False,
) -> int:
    """Draw a fabric: tiers, planes, groups or grid, hosts, bundles, rates, links that fail.

    With the results of a run also how busy each link was, in its busier direction. Large fabrics
    are folded: a pod becomes a block and its links a matrix, each cell the links between two
    switches.

    \b
    Examples:
      weft topology draw fat-tree:k=8 -o fabric.svg
      weft topology draw leaf_spine_1024.topo -o fabric.png
      weft topology draw fig4.toml --run 0 -o load.svg
      weft run fig4.toml -o out/ && weft topology draw out/ --run 3 -o load.svg
    """
    from weft.analysis import topology_picture
    from weft.cli.terminal import note, telling_warnings

    with telling_warnings():
        figure = topology_picture.draw(source, output, options.overrides(set_ or []), run)
    if not quiet:
        note(f"{output}: {figure.title}. {figure.caption}".rstrip())
    return 0
