"""The options of `weft testbed`; `weft.testbed.commands` does the work, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Run real traffic over network name spaces on this machine (Linux, root).",
)

ClusterFile = Annotated[Path, typer.Argument(metavar="CLUSTER.toml", help="The cluster.")]
Seed = Annotated[
    int,
    typer.Option(min=1, max=(1 << 32) - 1, metavar="N", help="Of schemes and of switches' hashes."),
]
Rules = Annotated[
    Literal["linux", "nftables"] | None,
    typer.Option(
        help="How leaves follow source ports: what `weft switch-config --format` writes. "
        "Without it linux, or what a bed that stands was built with."
    ),
]
How = Annotated[
    Literal["admin", "carrier", "remote"],
    typer.Option(
        help="admin: the link is set down at the leaf. carrier: at its spine. remote: the spine "
        "swallows what goes to the leaf, and nobody gets a signal."
    ),
]


AnyHow = Annotated[
    Literal["admin", "carrier", "remote", "corrupt", "reset"],
    typer.Option(
        help="As with run; corrupt: the spine changes bytes of some packets. reset: it answers "
        "some with a TCP reset. Both need nft."
    ),
]


@app.command("up")
def up(file: ClusterFile, seed: Seed = 1, rules: Rules = None) -> int:
    """Build a leaf-spine of network name spaces and let it stand."""
    from weft.testbed import commands

    return commands.up(file, seed, rules or "linux")


@app.command("down")
def down(file: ClusterFile) -> int:
    """Take down what `up` built, or what is left of it."""
    from weft.testbed import commands

    return commands.down(file)


@app.command("fail")
def fail(
    file: ClusterFile,
    link: Annotated[str, typer.Argument(metavar="LEAF:SPINE", help="As leaf-0:spine-1.")],
    how: How = "admin",
    mend: Annotated[bool, typer.Option("--mend", help="Bring it back.")] = False,
) -> int:
    """Fail a link of a bed that stands, or mend it."""
    from weft.testbed import commands

    return commands.fail(file, link, how, mend)


@app.command("run")
def run(
    file: ClusterFile,
    scheme: Annotated[str, typer.Option(metavar="NAME", help="The load balancer.")] = "ethereal",
    workload: Annotated[
        str, typer.Option(metavar="SHORT", help="What is sent, as all-to-all:size=256KB.")
    ] = "all-to-all:size=256KB",
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN.json", help="Send what `weft plan` wrote for this cluster."),
    ] = None,
    seed: Seed = 1,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the experiment."),
    ] = None,
    fail: Annotated[
        str | None,
        typer.Option(
            metavar="LEAF:SPINE@N%", help="Fail this link when N percent of all have arrived."
        ),
    ] = None,
    how: How = "admin",
    limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Give up after this.")
    ] = 60,
    tcp: Annotated[bool, typer.Option("--tcp", help="A TCP connection for each piece.")] = False,
    rules: Rules = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> int:
    """Send a workload through a bed: the one that stands, or one for this run alone.

    \b
    Exit status: 0 all has arrived, 1 not all has, 2 it cannot run.
    """
    from weft.commands import overrides
    from weft.testbed import commands

    over = overrides(changes or [])
    return commands.run_and_show(
        file, scheme, workload, plan, seed, over, fail, how, limit, tcp, rules, json
    )


@app.command("bench")
def bench(
    file: ClusterFile,
    op: Annotated[
        Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "sendrecv"],
        typer.Option(help="The collective; all but all-to-all are rings."),
    ] = "all-to-all",
    size: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Of each rank: 8MiB, 2MB; or as in nccl-tests 64K, 8M (of 1024)."
        ),
    ] = "8MiB",
    schemes: Annotated[
        str, typer.Option(metavar="LIST", help="Load balancers; sockets are plain ones.")
    ] = "ethereal,dnlb,ecmp,sockets",
    seeds: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Seeds of the switches' hashes: 1 to N."),
    ] = 10,
    ranks: Annotated[int, typer.Option(min=2, metavar="N", help="Hosts that take part.")] = 4,
    iterations: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Timed runs.")] = 20,
    warm_up: Annotated[
        int,
        typer.Option("-w", min=0, metavar="N", help="Runs before, in which TCP opens its windows."),
    ] = 5,
    checks: Annotated[int, typer.Option("-c", min=0, metavar="N", help="Checked runs after.")] = 1,
    channels: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Channels to a peer, as NCCL's.")
    ] = 1,
    chunk: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest message, likewise.")
    ] = "512KiB",
    connections: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            metavar="N",
            help="Of a channel under ecmp and sockets; else the uplinks.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable on all hosts, as WEFT_CHECKSUM=1."),
    ] = None,
    fail: Annotated[
        str | None,
        typer.Option(
            metavar="LEAF:SPINE@N%", help="Fail this link when N percent have left its leaf."
        ),
    ] = None,
    how: AnyHow = "admin",
    kill: Annotated[
        str | None,
        typer.Option(metavar="RANK@N%", help="End this rank's process, likewise."),
    ] = None,
    rules: Annotated[
        Literal["linux", "nftables"],
        typer.Option(help="How leaves follow source ports under schemes that choose them."),
    ] = "linux",
    limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="End a run after this.")
    ] = 60,
    plugin: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another NCCL network plugin.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Keep all rows in testbed-bench.json."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> int:
    """Measure collectives over the NCCL plugin between hosts of a bed, scheme beside scheme.

    Each rank is a process in a name space of its own; leaves follow source ports where a scheme
    chooses them, and hash elsewhere. The bed is for this command alone.

    \b
    Examples:
      weft testbed bench cluster.toml
      weft testbed bench cluster.toml --op all-reduce --size 16MiB --seeds 3 -o out
      weft testbed bench cluster.toml --fail leaf-0:spine-1@50% --how remote

    \b
    Exit status: 0 all measured and right, 1 some run failed or was wrong, 2 it cannot run.
    """
    from weft.testbed import bench as work

    given = work.Options(
        operation=op,
        size=size,
        schemes=schemes,
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
        kill=kill,
        rules=rules,
        limit=limit,
        plugin=plugin,
        output=output,
        json=json,
    )
    return work.run(file, given)
