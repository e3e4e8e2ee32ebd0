"""`weft testbed`: real traffic over network namespaces. `bench` is in `testbed_bench`."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli import completion, options
from weft.cli.testbed_bench import ClusterFile, bench

app = typer.Typer(
    no_args_is_help=True,
    help="Run real traffic over network namespaces (root).",
)
app.command("bench")(bench)

Seed = Annotated[
    int,
    typer.Option(
        min=1,
        max=options.LARGEST_SEED,
        metavar="N",
        help="Seed of schemes and of the switches' hashes.",
    ),
]
Rules = Annotated[
    Literal["linux", "nftables"] | None,
    typer.Option(
        help="How leaves follow source ports: by the files of `weft switch-config --format`. "
        "Default: linux, or as the standing test bed was built."
    ),
]
How = Annotated[
    Literal["admin", "carrier", "remote"],
    typer.Option(
        help="admin: the leaf's port is set down. carrier: the spine's port is set down. remote: "
        "the spine drops all packets to the leaf, and nobody gets a signal."
    ),
]


@app.command("up")
def up(
    file: ClusterFile,
    seed: Seed = 1,
    rules: Rules = None,
    hash_: Annotated[
        bool,
        typer.Option("--hash", help="Leaves only hash, as switches do that nobody configured."),
    ] = False,
) -> int:
    """Build a test bed, which stays until `down`."""
    from weft.testbed import operations

    print(operations.up(file, seed, rules or "linux", hash_))
    return 0


@app.command("down")
def down(file: ClusterFile) -> int:
    """Remove what `up` built, or what is left of it."""
    from weft.testbed import operations

    print(operations.down(file))
    return 0


@app.command("fail")
def fail(
    file: ClusterFile,
    link: Annotated[
        str, typer.Argument(metavar="LEAF:SPINE", help="The link, e.g. leaf-0:spine-1.")
    ],
    how: How = "admin",
    repair: Annotated[bool, typer.Option("--repair", help="Repair the link.")] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True)] = False,
) -> int:
    """Fail a link of a standing test bed, or repair it."""
    from weft.cli.terminal import note
    from weft.testbed import operations

    if mend:
        note("hint: --mend is now called --repair")
    print(operations.fail(file, link, how, repair or mend))
    return 0


@app.command("shrink")
def shrink(
    file: ClusterFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the copy to this file. Default: print it.",
        ),
    ] = None,
    leaves: Annotated[int, typer.Option(min=1, metavar="N", help="Leaves at most.")] = 4,
    spines: Annotated[int, typer.Option(min=1, metavar="N", help="Spines at most.")] = 4,
    hosts: Annotated[int, typer.Option(min=1, metavar="N", help="Hosts of a leaf at most.")] = 4,
    uplink: Annotated[
        str, typer.Option(metavar="RATE", help="Rate of an uplink of the copy.")
    ] = "100Mbps",
) -> int:
    """Make a copy of a cluster that fits a laptop.

    The copy has fewer switches and hosts and slower links; a leaf is as oversubscribed as before.

    \b
    Examples:
      weft testbed shrink cluster.toml -o small.toml
      weft testbed run small.toml --workload all-to-all:size=256KB
    """
    from weft.cli.terminal import note
    from weft.errors import ExperimentError, writing
    from weft.testbed import shrink as work
    from weft.units import parse

    rate = parse(uplink)
    if rate is None or rate[1] != "rate":
        raise ExperimentError(f"--uplink {uplink}: is not a rate; write one such as 100Mbps")
    text, left = work.shrink(file, work.Size(leaves, spines, hosts, round(rate[0])))
    if output is None:
        print(text, end="")
        return 0
    with writing(output):
        output.write_text(text, encoding="utf-8")
    for line in left:
        note(f"left out: {line}")
    note(f"{output}: weft testbed run {output}")
    return 0


@app.command("run")
def run(
    context: typer.Context,
    file: ClusterFile,
    scheme: Annotated[
        str,
        typer.Option(
            *options.SCHEME,
            metavar="NAME",
            help="The load balancer.",
            autocompletion=completion.schemes,
        ),
    ] = "ethereal",
    workload: Annotated[
        str,
        typer.Option(
            *options.WORKLOAD,
            metavar="SHORTHAND",
            help="What hosts send, e.g. all-to-all:size=256KB.",
        ),
    ] = "all-to-all:size=256KB",
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN.json", help="Send what this plan of `weft plan` for this cluster says."
        ),
    ] = None,
    seed: Seed = 1,
    changes: options.Set = None,
    fail: Annotated[
        str | None,
        typer.Option(
            metavar="LEAF:SPINE@N%",
            help="Fail this link when N percent of the payload has arrived.",
        ),
    ] = None,
    how: How = "admin",
    limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Stop after this time.")
    ] = 60,
    tcp: Annotated[
        bool, typer.Option("--tcp", help="Use a TCP connection for each piece.")
    ] = False,
    rules: Rules = None,
    enforce: Annotated[
        Literal["segments", "addresses", "srv6"],
        typer.Option(
            help="What makes packets take the paths of a scheme that chooses them, as in weft "
            "switch-config: rules by source port, plain routes and an address for each path, or "
            "paths that hosts write into the destination."
        ),
    ] = "segments",
    json: options.JsonObject = False,
) -> int:
    """Send a workload through a test bed.

    The test bed is the one that `up` built, or one that exists for this run only.

    \b
    Exit status: 0 everything arrived, 1 something is missing, 2 it cannot run.
    """
    from weft.testbed import operations, show

    options.require(context, "--how", "--fail")
    if plan is not None:
        # A plan has its own.
        options.refuse(context, ("--scheme", "--workload", "--seed"), "--plan, which says it")
    over = options.overrides(changes or [])
    row = operations.run_workload(
        file, scheme, workload, plan, seed, over, fail, how, limit, tcp, rules, enforce
    )
    print(json_.dumps(row, indent=2) if json else show.run(row))
    return 0 if row["complete"] and not row["wrong_bytes"] else 1
