"""NCCL's own InfiniBand and RoCE transport: how many queue pairs, and no port."""

from __future__ import annotations

from collections.abc import Sequence

from weft.plans.hosts import assignments
from weft.software.planned import Planned
from weft.software.program import Program


def _ports(planned: Planned, src: int, dst: int) -> Sequence[int]:
    """The driver derives them from the numbers of queue pairs."""
    count = int(planned.environment.get("NCCL_IB_QPS_PER_CONNECTION", 1))
    return planned.driver_ports(src, dst, count)


def _settings(planned: Planned, _host: int) -> Sequence[str]:
    return assignments(planned.environment)


SOFTWARE = Program(
    title="NCCL, its transport IB",
    known="NCCL up to 2.32 (read in 2.30.7, net_ib/connect.cc): flow label 0, no option for ports",
    survives="the number of queue pairs; Weft's NCCL plugin follows a plan",
    uncertain=(
        "the numbers of queue pairs, from which drivers derive ports: they are drawn",
        "both ends of a connection need the same values: use the files of one plan on all hosts",
    ),
    settings=_settings,
    ports=_ports,
)
