"""SONiC: an access list with redirects in CONFIG_DB."""

from __future__ import annotations

from weft.switches.platform import Platform

PLATFORM = Platform(
    suffixes=("json", "readme"),
    addresses=("json", "readme"),
    srv6=("json", "readme"),
    port="Ethernet",
    number="4*place",
    port_name=r"(Ethernet|PortChannel)\d+",
    # NVIDIA Spectrum: a range is one bit of a key of 16 (Linux, mlxsw, spectrum_port_range.c).
    range_checkers=16,
    remarks=(
        "sonic: the YANG model of ACL_RULE has no redirect target, so commands that validate "
        "refuse this file; it goes into CONFIG_DB directly",
        "sonic: the built-in type L3 has no DSCP, so the file brings a table type of its own",
        "sonic: a redirect keeps its next hop when an uplink dies; the readme has the command "
        "that takes such a rule out",
    ),
)
