"""ParaLet's equation 1, and the choice of its parameters for a fabric, without simulation.

ParaLet (2024), sections 4.1 and 5.2: m is the number of queue pairs of a NIC, each at 1/m of line
rate; S is the payload of a flowlet.
"""

from __future__ import annotations

import json

from weft import _native
from weft._types import Tuning
from weft.study import inputs
from weft.study.inputs import Overrides
from weft.units import format_bytes, format_rate

DEFAULT_SLOWDOWN = 2.0
"""What section 5.2 asks for."""


def slowdown(queue_pairs: int, ports: int) -> float:
    """Evaluate equation 1: expected time of the slowest message over that at line rate.

    Args:
        queue_pairs: m.
        ports: N, as many as there are accelerators (of one switch: its uplinks).
    """
    return _native.paralet_slowdown(queue_pairs, ports)


def queue_pairs(slowdown: float, ports: int) -> int:
    """Tell the least m with which equation 1 promises a slowdown, or less."""
    return _native.paralet_queue_pairs(slowdown, ports)


def ports(deviations: float) -> float:
    """Tell of how many ports the fullest is so many standard deviations above its mean: table 3."""
    return _native.paralet_ports(deviations)


def tune(
    fabric: str,
    *,
    slowdown: float | None = None,
    queue_pairs: int | None = None,
    accelerators: int | None = None,
    changes: Overrides = (),
) -> Tuning:
    """Choose m and S for a fabric, with the round trip and the packets of its simulation.

    Args:
        fabric: In short, as `weft compare` takes it, or a topology file.
        slowdown: How many times its time at line rate a message may take; default 2.
        queue_pairs: m instead, and what slowdown that leads to.
        accelerators: N; default: the hosts of the fabric.
        changes: Pairs of key and value, such as `("fabric.nic.mtu", "1000B")`.

    Raises:
        ExperimentError: The fabric is wrong, or no m leads there.
    """
    if slowdown is None and queue_pairs is None:
        slowdown = DEFAULT_SLOWDOWN
    experiment = {
        "fabric": inputs.table_of("fabric", fabric),
        "workload": {"pattern": "permutation", "size": "1MB"},
        "balance": {"scheme": "paralet"},
    }
    run = inputs.from_dict(experiment, "command line", list(changes)).runs[0]
    text = json.dumps(run["experiment"])
    return _native.paralet_tuning(text, slowdown, queue_pairs, accelerators)


def text(found: Tuning) -> str:
    """What `weft tune` prints."""
    return "\n".join(
        [
            f"queue pairs per NIC (m)   {found['queue_pairs']}, "
            f"each at {format_rate(found['rate_bps'])}",
            f"payload of a flowlet (S)  {format_bytes(found['flowlet_bytes'])}",
            f"expected slowdown         {found['slowdown']:.3f} (equation 1 of ParaLet)",
            f"to simulate               --schemes paralet-{found['queue_pairs']}",
        ]
    )
