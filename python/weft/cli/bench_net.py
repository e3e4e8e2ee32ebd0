"""`weft bench-net`: measures NCCL's network plugins without NCCL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli import options as command

_SIZE = "SIZE"
_MOST_RANKS = 1024
_WITHOUT_CLASS = ("v8", "v9")
"""Versions of the interface that say no traffic class."""


def bench_net(
    context: typer.Context,
    op: Annotated[
        Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "sendrecv"],
        typer.Option(help="The collective."),
    ] = "all-reduce",
    ranks: Annotated[
        int, typer.Option(min=2, max=_MOST_RANKS, metavar="N", help="Number of ranks.")
    ] = 2,
    rank: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="R",
            help="The rank of this process. Without it, all ranks run on this machine, over "
            "loopback unless WEFT_CONFIG or WEFT_IFNAME says otherwise.",
        ),
    ] = None,
    rendezvous: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="With --rank: the address where rank 0 waits for the others."
        ),
    ] = None,
    meet: Annotated[str | None, typer.Option(hidden=True)] = None,
    first: Annotated[
        str,
        typer.Option(
            "-b", metavar=_SIZE, help="The first size: 1MiB, 2MB; also as 8, 64K, 1M, 1G."
        ),
    ] = "1MiB",
    last: Annotated[str, typer.Option("-e", metavar=_SIZE, help="The last size.")] = "16MiB",
    factor: Annotated[
        int, typer.Option("-f", min=2, metavar="N", help="Each size is N times the one before.")
    ] = 2,
    iterations: Annotated[
        int, typer.Option("-n", min=1, metavar="N", help="Number of timed runs.")
    ] = 20,
    warm_up: Annotated[
        int,
        typer.Option("-w", min=0, metavar="N", help="Number of untimed runs before."),
    ] = 2,
    checks: Annotated[
        int,
        typer.Option("-c", min=0, metavar="N", help="Number of checked runs after."),
    ] = 1,
    channels: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Channels per peer, as in NCCL.")
    ] = 2,
    chunk: Annotated[
        str, typer.Option(metavar=_SIZE, help="The largest message; 512KiB in NCCL.")
    ] = "512KiB",
    plugin: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Any NCCL network plugin. Default: Weft's."),
    ] = None,
    abi: Annotated[
        Literal["v8", "v9", "v10", "v11", "v12"],
        typer.Option(help="The version of NCCL's plugin interface."),
    ] = "v12",
    device: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]",
            help="The NIC's number. Several are made one virtual NIC, as NCCL does.",
        ),
    ] = "0",
    traffic_class: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=255,
            metavar="N",
            help="The traffic class of the communicator, with --abi v10 or later: the upper six "
            "bits are the DSCP.",
        ),
    ] = None,
    over: Annotated[
        Literal["plugin", "sockets"],
        typer.Option(help="sockets: plain TCP sockets without a plugin, as a baseline."),
    ] = "plugin",
    connections: Annotated[
        int,
        typer.Option(
            min=1, max=64, metavar="N", help="With --over sockets: connections per channel."
        ),
    ] = 4,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="IP",
            help="With --over sockets: the listening address. Default: the one that reaches "
            "--rendezvous.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            metavar="S",
            help="Seconds to wait for all ranks.",
            callback=command.number,
        ),
    ] = 60,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show all messages of the plugin."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure a network plugin of NCCL.

    It is used as NCCL uses it, without NCCL or a GPU. Columns and bus bandwidth are those of
    nccl-tests; all results are checked, and where a plugin's test tells no sizes those that were
    posted are taken. Sizes have units (2MB is 2,000,000 bytes, 2MiB is 2,097,152
    bytes), or are written as in nccl-tests: a number without a unit is bytes, and K, M and G are
    powers of 1024.

    \b
    Examples:
      weft bench-net --ranks 4                               on this machine, over loopback
      weft bench-net --ranks 4 --op all-to-all -b 1MiB -e 64MiB
      weft bench-net --ranks 4 --over sockets                plain sockets, for comparison
      weft bench-net --ranks 2 --rank 0 --rendezvous 10.0.0.1:29500          on the first host
      weft bench-net --ranks 2 --rank 1 --rendezvous 10.0.0.1:29500          on the second
      weft bench-net --plugin /usr/lib/libnccl-net-ofi.so --abi v8

    \b
    Exit status: 0 all results are correct, 1 the network failed or a result is wrong, 2 bad input.
    """
    from weft import bench_net as work
    from weft.cli.terminal import note

    if over == "sockets":
        useless = ("--plugin", "--abi", "--device", "--traffic-class", "--verbose")
        command.refuse(context, useless, "--over sockets, which has no plugin")
    else:
        command.refuse(context, ("--connections",), "a plugin, which has connections of its own")
        command.refuse(context, ("--address",), "a plugin, which has addresses of its own")
    if abi in _WITHOUT_CLASS:
        command.refuse(context, ("--traffic-class",), f"--abi {abi}, which has none")
    if meet is not None:
        note("hint: --meet is now called --rendezvous")
        rendezvous = rendezvous or meet
    options = work.Options(
        operation=op,
        first=first,
        last=last,
        factor=factor,
        iterations=iterations,
        warm_up=warm_up,
        checks=checks,
        channels=channels,
        chunk=chunk,
        ranks=ranks,
        plugin=plugin,
        abi=abi,
        device=device,
        traffic_class=traffic_class,
        sockets=over == "sockets",
        connections=connections,
        address=address,
        patience_s=wait,
        verbose=verbose,
        json=json,
    )
    return work.run(options, rank, rendezvous)
