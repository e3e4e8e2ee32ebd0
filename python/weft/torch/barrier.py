"""A barrier at which rank 0 names those that do not come.

It needs the group's store only, so it works where channels do not, and channels are as good as
before when a rank does not come. Messages are Gloo's, since programs look for them.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from torch import distributed

PASSED = b"passed"


def pass_by(
    store: Any, number: int, who: tuple[int, int], limit_s: float | None, wait_all_ranks: bool
) -> None:
    """Pass the barrier with this number of a group, as a rank of so many.

    Raises:
        DistBackendError: Somebody has not come in time; rank 0 names the first one, or all.
    """
    rank, ranks = who
    end = time.monotonic() + (limit_s or 0)
    key = f"weft/barrier/{number}"
    if rank:
        store.set(f"{key}/{rank}", PASSED)
        if not (_there(store, f"{key}/0", end) and store.get(f"{key}/0") == PASSED):
            raise distributed.DistBackendError(
                f"weft: Rank {rank} successfully reached monitoredBarrier, but received errors "
                "while waiting for send/recv from rank 0; see what rank 0 says"
            )
        return
    if not limit_s:
        _fail(store, key, "Rank 0 timed out in monitoredBarrier after 0 ms")
    absent: list[int] = []
    for peer in range(1, ranks):
        if not _there(store, f"{key}/{peer}", end):
            absent.append(peer)
            if not wait_all_ranks:
                break
    if absent:
        named = ", ".join(map(str, absent))
        all_of = f"Ranks {named}" if len(absent) > 1 else f"Rank {named}"
        limit_ms = 1000 * (limit_s or 0)
        _fail(store, key, f"{all_of} failed to pass monitoredBarrier in {limit_ms:g} ms")
    store.set(f"{key}/0", PASSED)


def _fail(store: Any, key: str, text: str) -> None:
    store.set(f"{key}/0", "failed")
    raise distributed.DistBackendError(f"weft: {text}")


def _there(store: Any, key: str, end: float) -> bool:
    """Wait for a key until a time."""
    left = max(end - time.monotonic(), 0.001)
    try:
        store.wait([key], timedelta(seconds=left))
    except RuntimeError:
        return False
    return True
