"""The terminal that a command writes to."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from weft import WeftWarning
from weft.cli import exit_status

_WIDE = 200
"""Columns of what is no terminal: a pipe has no width, and its reader can scroll."""


def width() -> int:
    """Columns that a table may have; COLUMNS says so for what is no terminal as well."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return shutil.get_terminal_size().columns if known else _WIDE


class Output:
    """Standard output, whose trouble (a reader that has gone) waits until all else is done."""

    def __init__(self) -> None:
        self._trouble: OSError | None = None

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Note what goes wrong with what is printed within; from then on it goes nowhere."""
        try:
            yield
            sys.stdout.flush()
        except OSError as error:
            if error.filename is not None:
                raise
            exit_status.drop_output()
            self._trouble = error

    def close(self) -> None:
        """Raise what went wrong."""
        if self._trouble is not None:
            raise self._trouble


def note(message: str) -> None:
    """A line on standard error: progress, hints, warnings."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def telling_warnings() -> Iterator[None]:
    """Say on standard error what Weft's own code warns of, each once."""
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("default")
        yield
    told = dict.fromkeys(str(one.message) for one in met if one.category is WeftWarning)
    for message in told:
        note(f"warning: {message}")
    for one in met:
        if one.category is not WeftWarning:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
