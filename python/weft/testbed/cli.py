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
