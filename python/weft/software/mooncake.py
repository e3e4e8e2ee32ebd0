"""Mooncake's transfer engine: a list of source ports, the same for all peers."""

from __future__ import annotations

from collections.abc import Sequence

from weft.software.planned import Planned
from weft.software.program import Program


def _ports(planned: Planned, src: int, _dst: int) -> Sequence[int]:
    """Queue pair i of each pair of endpoints has port i of the list; slices are cut evenly."""
    return planned.slots(src)


def _settings(planned: Planned, host: int) -> Sequence[str]:
    ports = planned.slots(host)
    return [
        f"MC_NUM_QP_PER_EP={len(ports)}",
        f"MC_MLX5_QP_UDP_SPORTS={','.join(map(str, ports))}",
        f"MC_IB_TC={planned.traffic_class}",
    ]


SOFTWARE = Program(
    title="Mooncake transfer engine",
    known="commit 3b5a594 (rdma_endpoint.cpp, config.cpp), built with USE_MLX5DV=ON; NICs of mlx5",
    survives="how much each uplink carries; not the path of a single message",
    uncertain=(
        "data that is read takes the list of the host that it is read from",
        "endpoints refuse each other where MC_NUM_QP_PER_EP differs: use the files of one plan on "
        "all hosts",
        "one wrong entry has the whole list ignored, with a warning only: look at its log",
    ),
    settings=_settings,
    ports=_ports,
)
