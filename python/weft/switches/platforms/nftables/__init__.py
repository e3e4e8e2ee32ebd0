"""Linux with nftables: packets are marked, marks choose routing tables."""

from __future__ import annotations

from weft.switches.platform import Platform, linux_names

PLATFORM = Platform(
    suffixes=("sh", "nft"),
    port="eth",
    check=linux_names,
)
