"""Linux with policy routing: `ip rule` and routing tables."""

from __future__ import annotations

from weft.switches.platform import Platform

PLATFORM = Platform(
    suffixes=("sh",),
    addresses=("sh",),
    srv6=("sh",),
    port="eth",
    remarks=(
        "linux: ip rule takes no range that ends at 65535, so port 65535 is hashed",
        "linux: ip rule matches a DSCP from Linux 6.12 and iproute2 6.13 on; the script says "
        "so where it cannot, and then steers by ports alone (nftables always can)",
    ),
    linux_ports=True,
)
