"""Linux with nftables: packets are marked, marks choose routing tables."""

from __future__ import annotations

from weft.switches.platform import Platform

PLATFORM = Platform(
    suffixes=("sh", "nft"),
    port="eth",
    linux_ports=True,
)
