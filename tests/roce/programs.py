"""Programs of this repository that run in the test's machine."""

from __future__ import annotations

import json
from pathlib import Path

from packages import run

TOP = Path(__file__).parents[2]


def build(*what: str) -> list[Path]:
    """Where cargo put the programs and plugins of these packages and targets, built if need be.

    With the profile of the tests: emulated processors are slow enough.
    """
    command = ["cargo", "build", "--profile", "test", "--message-format", "json", *what]
    found = []
    for line in run(command, cwd=TOP).splitlines():
        message = json.loads(line)
        if message.get("executable"):
            found.append(Path(message["executable"]))
        elif "cdylib" in message.get("target", {}).get("crate_types", ()):
            found += [Path(name) for name in message["filenames"] if name.endswith(".so")]
    return found
