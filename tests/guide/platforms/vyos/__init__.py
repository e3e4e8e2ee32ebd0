"""VyOS: policy routes that send the source ports of each link to a routing table of its own."""

from __future__ import annotations

from weft.errors import ExperimentError
from weft.switches.platform import Platform
from weft.switches.steering import Steering

_MOST_LINKS = 100
"""Tables are numbered from 1 to 200; these are 101 and up."""


def _check(steering: Steering) -> None:
    if len(steering.links) > _MOST_LINKS:
        raise ExperimentError(
            f"{steering.node}: {len(steering.links)} links are more than the {_MOST_LINKS} tables "
            "of VyOS that are free; choose another --format"
        )


PLATFORM = Platform(
    suffixes=("commands",),
    port="eth",
    remarks=(
        "vyos: written from its manual, not tried on a switch; it forwards in Linux, not in "
        "hardware",
    ),
    check=_check,
    linux_ports=True,
)
