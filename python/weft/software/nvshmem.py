"""NVSHMEM with IBGDA, and what is built on it: all queue pairs have one source port."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cluster import FIRST_PORT
from weft.software.planned import Planned
from weft.software.program import Program


def _ports(_planned: Planned, _src: int, _dst: int) -> Sequence[int]:
    return [FIRST_PORT]


def _settings(planned: Planned, _host: int) -> Sequence[str]:
    return [
        f"# Not {planned.traffic_class}, the class of DSCP {planned.cluster.dscp}: switches would "
        "send all over one uplink.",
        "# Use a class of its own that is as free of loss: 4 times its DSCP.",
        "#NVSHMEM_IB_TRAFFIC_CLASS=",
    ]


SOFTWARE = Program(
    title="NVSHMEM with IBGDA (and DeepEP V1)",
    known="NVSHMEM commit 2d7d25f (ibgda.cpp): source port 49152 for every queue pair",
    survives="nothing: one path for any two NICs, by the switches' hash of addresses",
    uncertain=("transports other than IBGDA and IBDEVX were not looked at",),
    settings=_settings,
    ports=_ports,
    steered=False,
)
