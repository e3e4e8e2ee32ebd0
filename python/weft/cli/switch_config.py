"""`weft switch-config`: configurations of switches that steer by source port."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weft.cli import options
from weft.switches.platforms import PLATFORMS
from weft.switches.ways import WAYS, Way

if TYPE_CHECKING:
    Format = str
    Enforce = Way
else:
    Format, Enforce = Literal[PLATFORMS], Literal[WAYS]


def switch_config(
    context: typer.Context,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="A plan (plan.json of weft plan -o), or a cluster (.toml) with --scheme.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        Format,
        typer.Option("--format", help="The platform of the switches.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write the files to this directory, each with its rollback. Without it, they are "
            "printed.",
        ),
    ] = None,
    switch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only this switch, by its name in the cluster or in Weft."
        ),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            *options.SCHEME,
            metavar="NAME",
            help="With a cluster file: port segments at leaves (dnlb), or in three tiers also at "
            "aggregation switches (ethereal).",
        ),
    ] = None,
    enforce: Annotated[
        Enforce,
        typer.Option(
            help="What makes packets keep to a path. segments: rules by source port. addresses: "
            "plain routes; each host has an address for each path (RLB), in the network that "
            "path_addresses of the cluster names. srv6: hosts write the path into the destination "
            "(SRv6 with micro segments). The last two also write files for hosts."
        ),
    ] = "segments",
    srv6_block: Annotated[
        str,
        typer.Option(
            metavar="PREFIX", help="With --enforce srv6: the block of the locators, a /32."
        ),
    ] = "fcbb:bb00::/32",
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=16,
            metavar="N",
            help="With --format sonic, where the cluster names no ports: lanes of a port. 4 gives "
            "Ethernet0, Ethernet4, ... Default: 4.",
        ),
    ] = None,
    port_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --format sonic: names of ports from the switch's port_config.ini, in its "
            "order.",
        ),
    ] = None,
    protocol: Annotated[
        Literal["udp", "tcp"] | None,
        typer.Option(
            help="Protocol of the steered traffic: udp (RoCEv2) or tcp (sockets). Default: as the "
            "cluster file says, else udp."
        ),
    ] = None,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice",
            help="Instead of configurations, say what else the scheme wants of switches: packet "
            "trimming, adaptive routing, queue-pair hashing. Any scheme will do.",
        ),
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Write switch configurations for a plan.

    One for every switch that steers by source port, or for all switches and hosts with --enforce
    addresses and srv6. With rules by source port, traffic that comes from hosts with the cluster's
    DSCP leaves over the uplink whose segment contains its source port. Traffic inside a rack does
    not change, and where an uplink is down its traffic is hashed as usual. What a platform cannot
    do is printed on standard error.

    \b
    Examples:
      weft switch-config plan.json --format nftables -o switches/
      weft switch-config cluster.toml --scheme dnlb --format ios --switch leaf-0
      weft switch-config cluster.toml --enforce srv6 --format sonic -o switches/
      weft switch-config cluster.toml --scheme mrc --format sonic --advice

    \b
    Exit status: 0 written, 2 bad input.
    """
    from weft.cli.terminal import note
    from weft.plans import for_switches
    from weft.switches import config

    if enforce != "srv6":
        options.refuse(context, ("--srv6-block",), f"--enforce {enforce}")
    if port_config is not None:
        options.refuse(context, ("--lanes",), "--port-config")
    if advice:
        others = ("--switch", "--enforce", "--lanes", "--port-config", "--protocol")
        options.refuse(context, others, "--advice")
    asked = for_switches.Request(
        format_, enforce, scheme, switch, protocol, srv6_block, lanes, port_config, advice
    )
    made, remarks = for_switches.files(plan, asked)
    if output is None:
        print(config.printed(made), end="")
    else:
        config.write(made, output)
    if not quiet:
        where = f"{len(made)} files in {output}" if output else ""
        for line in filter(None, (*remarks, where)):
            note(line)
    return 0
