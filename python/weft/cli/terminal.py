"""The terminal that a command writes to."""

from __future__ import annotations

import os
import shutil
import sys

_WIDE = 200
"""Columns of what is no terminal: a pipe has no width, and its reader can scroll."""


def width() -> int:
    """Columns that a table may have; COLUMNS says so for what is no terminal as well."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return shutil.get_terminal_size().columns if known else _WIDE


def note(message: str) -> None:
    """A line on standard error: progress, hints, warnings."""
    print(message, file=sys.stderr, flush=True)
