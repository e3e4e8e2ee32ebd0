"""The software that `weft plan --hosts-for` writes for.

One module a software, with what it says of itself (`SOFTWARE`); here one line. Nothing else in
Weft lists them: the command line, `weft list software` and the tests go by the registry.

| module | what it does |
|---|---|
| `program` | what a software says of itself |
| `planned` | what a plan has for it: shares of uplinks, ports of pairs of hosts |
| `files` | what each host gets |
| `distance` | how far from the plan a job is with the ports that it can have |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.software.program import Program

SOFTWARE = (
    "mooncake",
    "uccl",
    "mori",
    "perftest",
    "nccl-ib",
    "nvshmem",
)
"""The registry: one line a software, its name on the command line; its module has `_` for `-`."""


def find(name: str) -> Program:
    """What the software of this name says of itself.

    Raises:
        ExperimentError: There is none.
    """
    # Late, since the command line goes by the registry as soon as it begins.
    from weft.errors import ExperimentError

    if name not in SOFTWARE:
        raise ExperimentError(f"--hosts-for: {name!r} is unknown; use one of {', '.join(SOFTWARE)}")
    found: Program = import_module(f"{__name__}.{name.replace('-', '_')}").SOFTWARE
    return found
