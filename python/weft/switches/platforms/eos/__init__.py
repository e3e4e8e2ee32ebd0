"""Arista EOS: a traffic policy with redirects."""

from __future__ import annotations

from weft.switches.platform import Platform

PLATFORM = Platform(
    suffixes=("cfg",),
    addresses=("cfg",),
    port="Ethernet",
    remarks=(
        "eos: the match lines are written from templates, not tried on a switch; load them in "
        "a configure session and look at the diff",
    ),
)
