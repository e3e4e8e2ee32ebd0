"""`weft top`: what jobs move right now, by peer and path."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli import options


def top(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS|FILE|DIR]...",
            help="HOST:PORT or HOST:PORT-PORT where jobs run with WEFT_PROMETHEUS, its directory, "
            "or files of WEFT_STATS. Default: 127.0.0.1:9400-9463.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            metavar="S",
            help="Seconds between two looks.",
            callback=options.number,
        ),
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look for one interval, then end.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object; without --once one a line.")
    ] = False,
) -> int:
    """Show what jobs over the NCCL plugin send, by peer and path, live.

    Each path to a peer has its bytes per second, its share of what goes to the peer, and that share
    over an even one (1.00: all paths have the same). Without a plan connections take the place of
    paths, by their source ports. Time-outs and re-routes are since the job began, and in brackets
    since the last look. Ctrl-C ends it.

    \b
    Examples:
      weft top                                     jobs on this host, ports 9400 to 9463
      weft top node-1:9400-9407 node-2:9400-9407   8 processes each on two hosts
      weft top /run/weft-counters                  WEFT_PROMETHEUS=/run/weft-counters
      weft top weft-*.json --once --json           WEFT_STATS=weft-%p.json

    \b
    Exit status: 0 done, 2 bad input, or with --once nothing at an address or in a file.
    """
    from weft.top import watch
    from weft.top.sources import named

    look = watch.once if once else watch.again
    return look(named(sources or []), interval, json)
