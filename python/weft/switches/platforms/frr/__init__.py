"""FRRouting on Linux: nftables marks packets, a pbr-map matches the marks."""

from __future__ import annotations

from weft.errors import ExperimentError
from weft.switches.platform import Platform
from weft.switches.steering import Steering

_MOST_SEQUENCES = 700
"""A pbr-map is numbered from 1 to this."""


def _check(steering: Steering) -> None:
    if len(steering.links) > _MOST_SEQUENCES:
        raise ExperimentError(
            f"{steering.node}: {len(steering.links)} links are more than the {_MOST_SEQUENCES} "
            "that a pbr-map has; choose --format nftables"
        )


PLATFORM = Platform(
    suffixes=("nft", "conf"),
    addresses=("conf",),
    srv6=("conf",),
    port="eth",
    remarks=(
        "frr: match src-port takes one port and does not reach the kernel, so nftables marks "
        "packets and the pbr-map matches marks; not for switches that forward in hardware",
    ),
    check=_check,
    linux_ports=True,
)
