"""Makes the back end known to PyTorch. PyTorch calls `register` itself where it loads back ends.

Only names it: the native core is loaded when the first group is made.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

NAME = "weft"


def register() -> None:
    """Make ``init_process_group("weft")`` work; as often as one likes."""
    from torch import distributed

    # A build without it imports, and has nothing to register at.
    if distributed.is_available() and NAME not in distributed.Backend.backend_list:
        distributed.Backend.register_backend(NAME, _create, devices=["cpu"])


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    from weft.torch.group import make

    return make(store, rank, size, timeout)
