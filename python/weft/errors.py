"""Exceptions under the names that users see (`weft.ExperimentError` and others), and safe writing.

The exceptions of the simulator are made in the native module; here they get the name under which
users find them, so that tracebacks show it and they can be pickled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from weft._native import Cancelled, ExperimentError, StallError

__all__ = [
    "Cancelled",
    "ClusterError",
    "DiskError",
    "ExperimentError",
    "LostRunError",
    "OutsideError",
    "StallError",
    "naming_arguments",
    "replace_text",
    "writing",
]

for _error in (ExperimentError, StallError):
    _error.__module__ = "weft"
# Between threads and workers of Weft alone: its users see a KeyboardInterrupt.
Cancelled.__module__ = "weft.errors"
StallError.result = None


class OutsideError(OSError):
    """Trouble outside of Weft that no input caused. What was finished is untouched."""

    def adding(self, remark: str) -> Self:
        """The same with something more to say."""
        return type(self)(self.errno, f"{self.strerror}; {remark}", self.filename)


class DiskError(OutsideError):
    """Results could not be written: a full disk, as a rule."""


class ClusterError(OutsideError):
    """The scheduler of a cluster is gone; `filename` is its address."""


class LostRunError(RuntimeError):
    """A run whose worker ended before it did, as often as it was tried."""


@contextmanager
def naming_arguments(*names: str, **others: str) -> Iterator[None]:
    """Let errors name arguments of Python where they name options of the command line.

    `names` are called alike in both; of `others` each is an option and the argument's name. With
    neither, all options are arguments.
    """
    known = {name: name for name in names} | others
    wanted = "|".join(known).replace("_", "-") or "[a-z][a-z-]*"

    def argument(found: re.Match[str]) -> str:
        name, after = found[1].replace("-", "_"), found[2]
        return known.get(name, name) + (":" if after == ":" else "=")

    try:
        yield
    except ExperimentError as error:
        text = re.sub(rf"--({wanted})\b(?![-\w])(:| (?=\w)|)", argument, str(error))
        raise ExperimentError(text) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make whatever goes wrong while `path` is written a `DiskError` that names it."""
    from polars.exceptions import PolarsError

    try:
        yield
    except DiskError:
        raise
    except OSError as error:
        raise DiskError(error.errno, error.strerror or str(error), str(path)) from error
    except PolarsError as error:
        # Polars tells the number of the operating system's error only within its text.
        number = re.search(r"\(os error (\d+)\)", str(error))
        why = os.strerror(int(number[1])) if number else " ".join(str(error).split())
        raise DiskError(int(number[1]) if number else None, why, str(path)) from error


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """While no other command reads or writes what several write together in a directory.

    The lock is on the directory itself. Where there is none yet, or the file system knows no
    locks, nobody waits.
    """
    import fcntl

    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def replace_text(path: Path, text: str) -> None:
    """Write a text file in one step, so that readers never see half of it.

    Raises:
        DiskError: It could not be written; the old file is untouched.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with writing(path):
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
