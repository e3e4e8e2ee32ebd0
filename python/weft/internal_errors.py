"""Internal errors of Weft: any unexpected exception or panic becomes one line and exit status 70.

In any thread or child process. Bad input, full disks and interrupts are handled in
`weft.cli.exit_status`.
"""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

STATUS = 70
"""The exit status of a command that met an internal error: EX_SOFTWARE of sysexits.h."""
OPTION = "--debug"
"""Shows tracebacks. It may be anywhere on a command line."""

_HERE = Path(__file__).parent


class ChildError(Exception):
    """A child process met an internal error and printed it."""

    def __init__(self, said: str) -> None:
        """Take all that it said: perhaps a traceback, and the line of `tell` behind it."""
        *before, self.line = said.strip().splitlines() or ["a process of Weft's ended early"]
        self.before = "\n".join(before)
        super().__init__(self.line)


class Handler:
    """Catches and reports internal errors."""

    def __init__(self) -> None:
        self.debug = False
        """Tracebacks, and panics as Rust tells them, come before the line."""
        self._told = False

    def take_option(self, words: list[str]) -> list[str]:
        """Remove the option from a command line; returns the other words."""
        end = words.index("--") if "--" in words else len(words)
        left = [word for word in words[:end] if word != OPTION]
        self.debug = len(left) < end
        return left + words[end:]

    def install(self) -> None:
        """Also catch errors of other threads; what they would print is held back."""
        from weft import _native

        threading.excepthook = lambda met: self.report(met.exc_value, met.exc_traceback)
        sys.unraisablehook = lambda met: self.report(met.exc_value, met.exc_traceback)
        if not self.debug:
            _native.hold_panics()

    def status(self, status: int) -> int:
        """The exit status of a command that would end with `status`."""
        native = sys.modules.get("weft._native")
        for panic in native.held_panics() if native and not self._told else []:
            self._say(f"panic: {panic}")
        return STATUS if self._told else status

    def report(self, error: BaseException | None, trace: TracebackType | None = None) -> int:
        """Print the line, the first time in a command; returns the exit status."""
        if error is None or isinstance(error, KeyboardInterrupt | SystemExit):
            return STATUS
        if self.debug:
            traceback.print_exception(type(error), error, trace or error.__traceback__)
        if isinstance(error, ChildError):
            if self.debug and error.before:
                print(error.before, file=sys.stderr)
            self._print(error.line)
        else:
            self._say(describe(error, trace))
        return STATUS

    def _say(self, met: str) -> None:
        from weft import code_version

        self._print(
            f"error: unexpected {met}; this is a bug in Weft {code_version}: please report this "
            f"line and the command, with its files, as CONTRIBUTING.md says"
            + ("" if self.debug else f" ({OPTION} shows the traceback)")
        )

    def _print(self, line: str) -> None:
        if not self._told:
            print(" ".join(line.split()), file=sys.stderr, flush=True)
        self._told = True


def describe(error: BaseException, trace: TracebackType | None = None) -> str:
    """`KeyError: 'a' (weft/store.py:7), in ecmp seed 1`."""
    kind, text = type(error).__name__, str(error)
    place = _place(trace or error.__traceback__)
    if kind == "PanicException":
        from weft import _native

        # The first of them: others may only have found what it left.
        kind, text = "panic", next(iter(_native.held_panics()), f"{text}{place}")
        place = ""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    return f"{kind}: {text}{place}{notes}" if text else f"{kind}{place}{notes}"


def _place(trace: TracebackType | None) -> str:
    """Where it was raised: the last line of Weft's code."""
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if _HERE in Path(frame.filename).parents] or frames
    if not ours:
        return ""
    path = Path(ours[-1].filename)
    name = path.relative_to(_HERE.parent) if _HERE in path.parents else path.name
    return f" ({name}:{ours[-1].lineno})"


HANDLER = Handler()
"""The handler of this process, which is one command."""
