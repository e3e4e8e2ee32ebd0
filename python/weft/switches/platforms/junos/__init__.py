"""Junos on MX: a firewall filter with next hops."""

from __future__ import annotations

from weft.switches.platform import NAMED, Platform

PLATFORM = Platform(
    suffixes=("set",),
    port="et-0/0/",
    number="place",
    port_name=NAMED,
    remarks=(
        "junos: next-ip needs line cards that know it (MX with Trio), and a route to the next "
        "hop; on others a routing instance for each uplink does the same",
    ),
)
