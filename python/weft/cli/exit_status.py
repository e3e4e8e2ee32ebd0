"""The exit status of a command, and the one line that says why it failed.

0 done, 1 a stalled run, a full disk or what the command's help says, 2 bad input, 70 an internal
error of Weft, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import errno
import os
import re
import sys

from weft import internal_errors

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Trouble of the system, not of what the user typed."""
_ELSEWHERE = "name another path"
_REFUSED = {
    errno.EEXIST: _ELSEWHERE,
    errno.ENOTDIR: _ELSEWHERE,
    errno.EISDIR: "name a file",
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: _ELSEWHERE,
    errno.ENAMETOOLONG: "name a shorter one",
}
"""What helps where nothing can be at the path that the user named."""


_NUMBERS = {"int(eger)?( range)?": "whole number", "float( range)?": "number"}
"""What the parser calls them, and how to say it."""


def of(error: BaseException) -> int:
    """Print one line about the error that ended a command; returns the exit status."""
    match error:
        case KeyboardInterrupt():
            return 130
        case BrokenPipeError():
            # The reader of our output has gone (`| head`): nothing to say, nobody to say it to.
            drop_output()
            return 141
        case OSError():
            return _of_disk(error)
        case MemoryError():
            return _complain("out of memory; use fewer --jobs, or a smaller experiment", 1)
    from weft import ExperimentError, StallError

    if isinstance(error, ExperimentError):
        return _complain(str(error))
    if isinstance(error, StallError):
        return _complain(str(error), 1)
    # Wrong usage, or an interrupt inside the option parser. The parser's classes have
    # moved between Typer's versions, so they are told by what they can do.
    if type(error).__name__ == "Abort":
        return 130
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error, file=sys.stderr)
        return 2
    if not hasattr(error, "format_message"):
        return internal_errors.HANDLER.report(error)
    command = getattr(getattr(error, "ctx", None), "command_path", None) or "weft"
    said = error.format_message().rstrip(".")
    for pattern, word in _NUMBERS.items():
        said = re.sub(rf"is not a valid {pattern}\b", f"is not a {word}", said)
    return _complain(f"{said}{';' * (not said.endswith('?'))} see {command} --help")


def _of_disk(error: OSError) -> int:
    from weft.errors import OutsideError

    what, why = error.filename or "output", error.strerror or str(error)
    if error.filename is None:
        drop_output()
    mend = _REFUSED.get(error.errno or 0) if error.filename else None
    outside = isinstance(error, OutsideError) and mend is None
    said = f"{what}: {why[:1].lower()}{why[1:]}" + (f"; {mend}" if mend else "")
    return _complain(said, 1 if error.errno in _FULL or outside else 2)


def drop_output() -> None:
    """Send standard output nowhere: what could not be printed would be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, status: int = 2) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return status
