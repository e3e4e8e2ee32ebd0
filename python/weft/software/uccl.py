"""UCCL-EP: one source port to count up from."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cluster import LAST_PORT
from weft.software.planned import Planned
from weft.software.program import Program

_DATA_QUEUE_PAIRS = 8
"""Of a proxy thread."""
_ACKNOWLEDGING = 2
"""Queue pairs for acknowledgements, on the ports behind those."""


def _ports(planned: Planned, src: int, _dst: int) -> Sequence[int]:
    """Data goes over the ports behind the base."""
    base = _base(planned, src)
    return [base + 1 + number for number in range(_DATA_QUEUE_PAIRS)]


def _base(planned: Planned, host: int) -> int:
    # The last segments may have fewer ports than there are queue pairs.
    return min(planned.slots(host, 1)[0], LAST_PORT - _DATA_QUEUE_PAIRS - _ACKNOWLEDGING)


def _settings(planned: Planned, host: int) -> Sequence[str]:
    return [
        f"UCCL_UDP_SPORT_BASE={_base(planned, host)}",
        f"UCCL_IB_TC={planned.traffic_class}",
    ]


SOFTWARE = Program(
    title="UCCL-EP",
    known="commit da914a2 (ep/src/rdma.cpp); NICs of mlx5. UCCL's collectives have no such setting",
    survives="one uplink for all that a host sends; hosts of a leaf take different ones",
    uncertain=(
        "older commits do not have the variable, and say nothing: look for it in yours",
        f"that a thread has {_DATA_QUEUE_PAIRS} data queue pairs (kChannelPerProxy), which a build "
        "may change; acknowledgements have the two ports behind them",
    ),
    settings=_settings,
    ports=_ports,
)
