"""`weft tune`: queue pairs and flowlets for ParaLet."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from weft.cli import options


def tune(
    fabric: options.Fabric,
    slowdown: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="No message may take longer than X times its time at line rate. Default: 2.",
        ),
    ] = None,
    queue_pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4096,
            metavar="M",
            help="Instead of --slowdown: the number of queue pairs per NIC.",
        ),
    ] = None,
    accelerators: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=10**9,
            metavar="N",
            help="Number of accelerators in the cluster. Default: the hosts of the fabric.",
        ),
    ] = None,
    set_: options.Set = None,
    json: options.JsonObject = False,
) -> int:
    """Choose queue pairs and flowlet size for ParaLet.

    Nothing is simulated.
    Equation 1 of ParaLet (2024) says how much slower than line rate the slowest message is with m
    queue pairs per NIC and N accelerators; a flowlet is 4 bandwidth-delay products over m.

    \b
    Examples:
      weft tune --fabric fat-tree:k=16,link=100Gbps,delay=1us --slowdown 1.5
      weft tune --fabric fat-tree:k=16,link=100Gbps,delay=1us --queue-pairs 32

    \b
    Exit status: 0 there is an answer, 2 bad input.
    """
    from weft.analysis import paralet

    if slowdown is not None and queue_pairs is not None:
        raise typer.BadParameter("--slowdown and --queue-pairs exclude each other; choose one")
    found = paralet.tune(
        fabric,
        slowdown=slowdown,
        queue_pairs=queue_pairs,
        accelerators=accelerators,
        changes=options.overrides(set_ or []),
    )
    print(json_.dumps(found, indent=1) if json else paralet.text(found))
    return 0
