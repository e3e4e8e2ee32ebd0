"""Cisco IOS and those like it: route-maps over extended access lists."""

from __future__ import annotations

from weft.switches.platform import NAMED, Platform

PLATFORM = Platform(
    suffixes=("cfg",),
    port="FHGigabitEthernet0/",
    port_name=NAMED,
    remarks=(
        "ios: next hops must be neighbours; whether a route-map is done in hardware, and how "
        "many entries it may have, is the model's",
    ),
)
