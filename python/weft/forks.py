"""Children that were forked from a process in which Polars has begun to work.

They have its locks and none of its threads: whatever needs these would wait for ever.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_TASKS = Path("/proc/self/task")
_WORKER = re.compile(r"polars-\d+\n")
"""What Polars calls the threads that it works with."""


class _Watch:
    """What is known of this process."""

    has_threads = False
    """Whether the one that is forked has such threads, or has lost them itself."""
    is_lost = False
    """Whether a fork has left them behind."""

    def before(self) -> None:
        self.has_threads = self.is_lost or any(map(_is_worker, _TASKS.iterdir()))

    def in_child(self) -> None:
        self.is_lost = self.has_threads


_WATCH = _Watch()


def watch() -> None:
    """Notice forks of this process, where the system tells the names of threads."""
    if _TASKS.is_dir():
        os.register_at_fork(before=_WATCH.before, after_in_child=_WATCH.in_child)


def check(what: str) -> None:
    """Refuse to begin `what` in a child that would wait for ever.

    Raises:
        RuntimeError: Polars has lost its threads; says how to start processes.
    """
    if _WATCH.is_lost:
        raise RuntimeError(
            f"{what}: this process was forked after Polars had started its threads, and would wait "
            'for them for ever; start processes with multiprocessing.get_context("spawn")'
        )


def _is_worker(task: Path) -> bool:
    try:
        return _WORKER.fullmatch((task / "comm").read_text()) is not None
    except OSError:
        # It has just ended.
        return False
