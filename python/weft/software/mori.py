"""MORI: four source ports that queue pairs take in turn."""

from __future__ import annotations

from collections.abc import Sequence

from weft.software.planned import Planned
from weft.software.program import Program

_PORTS = 4


def _ports(planned: Planned, src: int, _dst: int) -> Sequence[int]:
    """Queue pair q has port q modulo 4."""
    return planned.slots(src, _PORTS)


def _settings(planned: Planned, host: int) -> Sequence[str]:
    return [
        "MORI_MLX5_ENABLE_UDP_SPORT=1",
        "MORI_BNXT_ENABLE_UDP_SPORT=1",
        f"MORI_GOR_PORT={','.join(map(str, planned.slots(host, _PORTS)))}",
        f"MORI_NUM_QP_PER_PE={_PORTS}",
        f"MORI_RDMA_TC={planned.traffic_class}",
    ]


SOFTWARE = Program(
    title="MORI",
    known="commit 624002c (rdma.cpp, mlx5.cpp, bnxt.cpp); NICs of mlx5 and bnxt, not ionic",
    survives="how much each uplink of a leaf carries, where its hosts have enough ports together; "
    "four uplinks for what a host sends",
    uncertain=(
        "that data is cut evenly over the queue pairs to a peer: kernels choose them",
        "that they are numbered from 0 for every peer",
    ),
    settings=_settings,
    ports=_ports,
)
