"""`weft testbed bench`: collectives over the NCCL plugin between hosts of a test bed."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli import completion, options

ClusterFile = Annotated[Path, typer.Argument(metavar="CLUSTER.toml", help="The cluster.")]


def bench(
    context: typer.Context,
    file: ClusterFile,
    op: Annotated[
        Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "sendrecv"],
        typer.Option(help="The collective; all but all-to-all are rings."),
    ] = "all-to-all",
    size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Size per rank: 8MiB, 2MB; or as in nccl-tests 64K, 8M (powers of 1024).",
        ),
    ] = "8MiB",
    schemes: Annotated[
        str,
        typer.Option(
            *options.SCHEMES,
            autocompletion=completion.schemes,
            metavar="A,B,...",
            help="Load balancers; sockets: plain TCP sockets without the plugin.",
        ),
    ] = "ethereal,dnlb,ecmp,sockets",
    enforce: Annotated[
        str,
        typer.Option(
            metavar="segments[,...]",
            help="What makes packets take the paths of schemes that choose them. segments: rules "
            "at leaves, by source port. addresses: plain routes, and an address of each host for "
            "each path (RLB). srv6: hosts write the path into the destination. discovered: nothing "
            "at leaves; hosts find out by probes which port "
            "takes which path. Of several, each scheme runs with each.",
        ),
    ] = "segments",
    seeds: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Seeds of the switches' hashes: 1 to N."),
    ] = 10,
    ranks: Annotated[int, typer.Option(min=2, metavar="N", help="Number of ranks.")] = 4,
    iterations: Annotated[
        int, typer.Option("-n", min=1, metavar="N", help="Number of timed runs.")
    ] = 20,
    warm_up: Annotated[
        int,
        typer.Option(
            "-w",
            min=0,
            metavar="N",
            help="Number of runs before them, in which TCP opens its windows.",
        ),
    ] = 5,
    checks: Annotated[
        int,
        typer.Option(
            "-c", min=0, metavar="N", help="Number of runs after them whose results are checked."
        ),
    ] = 1,
    channels: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Channels per peer, as in NCCL.")
    ] = 1,
    chunk: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest message, with units as --size.")
    ] = "512KiB",
    connections: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            metavar="N",
            help="Connections per channel with ecmp and sockets. Default: the number of uplinks.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Environment variable of all ranks, e.g. WEFT_CHECKSUM=1."
        ),
    ] = None,
    fail: Annotated[
        str | None,
        typer.Option(
            metavar="LEAF:SPINE@N%",
            help="Fail this link when N percent of its leaf's traffic has left the leaf.",
        ),
    ] = None,
    how: Annotated[
        Literal["admin", "carrier", "remote", "corrupt", "reset"],
        typer.Option(
            help="As in weft testbed run. corrupt: the spine changes bytes of some packets. reset: "
            "it answers some packets with a TCP reset. Both need nft."
        ),
    ] = "admin",
    heal: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, metavar="N", help="With --fail: repair the link at N percent."
        ),
    ] = None,
    answers: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Probes of a host that a switch answers in a second (0: all), for --enforce "
            "discovered. Default: as Linux, 1 after 6.",
        ),
    ] = None,
    mute: Annotated[
        str | None,
        typer.Option(metavar="SWITCH", help="This switch answers no probes, e.g. spine-2."),
    ] = None,
    kill: Annotated[
        str | None,
        typer.Option(
            metavar="RANK@N%",
            help="Kill this rank when N percent of its leaf's traffic has left the leaf.",
        ),
    ] = None,
    rules: Annotated[
        Literal["linux", "nftables"],
        typer.Option(help="How leaves follow source ports, with schemes that choose them."),
    ] = "linux",
    limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Stop a run after this time.")
    ] = 60,
    plugin: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another NCCL network plugin.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write all rows to testbed-bench.json in this directory.",
        ),
    ] = None,
    json: options.JsonObject = False,
) -> int:
    """Measure collectives with the NCCL plugin.

    Ranks run on hosts of a test bed, with one scheme after the other. Each rank is a process in its
    own network namespace. Leaves follow source ports if the scheme chooses them, and hash
    otherwise. The test bed exists for this command only.

    \b
    Examples:
      weft testbed bench cluster.toml
      weft testbed bench cluster.toml --op all-reduce --size 16MiB --seeds 3 -o out
      weft testbed bench cluster.toml --fail leaf-0:spine-1@50% --how remote
      weft testbed bench cluster.toml --schemes ethereal,ecmp --enforce segments,discovered
      weft testbed bench cluster.toml --enforce discovered --answers 10 --mute spine-2

    \b
    Exit status: 0 all results are correct, 1 a run failed or a result is wrong, 2 it cannot run.
    """
    from weft.testbed import bench as work
    from weft.testbed import show

    options.require(context, "--how", "--fail")
    options.require(context, "--heal", "--fail")
    given = work.Options(
        operation=op,
        size=size,
        schemes=schemes,
        enforce=enforce,
        seeds=seeds,
        ranks=ranks,
        iterations=iterations,
        warm_up=warm_up,
        checks=checks,
        channels=channels,
        chunk=chunk,
        connections=connections,
        environment=tuple(env or ()),
        fail=fail,
        how=how,
        heal=heal,
        answers=answers,
        mute=mute,
        kill=kill,
        rules=rules,
        limit=limit,
        plugin=plugin,
    )
    found = work.run(file, given)
    if output is not None:
        work.write(found, output)
    print(json_.dumps(found, indent=2) if json else show.bench(file, found))
    return 1 if any(row["error"] or row["wrong"] for row in found["runs"]) else 0
