"""The terminal that a command writes to."""

from __future__ import annotations

import shutil
import sys

_WIDE = 200
"""Columns of what is no terminal: a pipe has no width, and its reader can scroll."""


def width() -> int:
    """Columns that a table may have."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def note(message: str) -> None:
    """A line on standard error: progress, hints, warnings."""
    print(message, file=sys.stderr, flush=True)
