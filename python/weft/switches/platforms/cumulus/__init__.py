"""Cumulus Linux by NVUE: policy routing by the DSCP, a DSCP for each path."""

from __future__ import annotations

from weft.errors import ExperimentError
from weft.switches.platform import NAMED, Platform
from weft.switches.steering import Steering

_MOST_RULES = 255


def _check(steering: Steering) -> None:
    if steering.what in ("aggregation switch", "core"):
        raise ExperimentError(
            f"{steering.node}: Cumulus knows a path by its DSCP, which has no room for a second "
            "tier; plan with --scheme dnlb and without bundles, or choose another --format"
        )
    last = max(link.dscp for link in steering.links)
    if last > 63:
        raise ExperimentError(
            f"{steering.node}: a DSCP for each uplink would go up to {last}, and 63 is the last; "
            "lower cluster.dscp, or choose another --format"
        )
    rules = len(steering.links) + len(steering.local)
    if rules > _MOST_RULES:
        raise ExperimentError(
            f"{steering.node}: {rules} rules are more than the {_MOST_RULES} of Cumulus; "
            "choose another --format"
        )


PLATFORM = Platform(
    suffixes=("nvue",),
    port="swp",
    port_name=NAMED,
    remarks=(
        "cumulus: policy routing of NVUE matches no ports, so hosts have to set one DSCP for "
        "each path (cluster.dscp and those that follow), all of one traffic class; NCCL sets "
        "one for all its queue pairs (NCCL_IB_TC)",
    ),
    check=_check,
    linux_ports=True,
    by_dscp=True,
)
