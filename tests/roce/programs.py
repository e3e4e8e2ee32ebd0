"""Programs of this repository that run in the test's machine."""

from __future__ import annotations

import json
from pathlib import Path

from packages import run

TOP = Path(__file__).parents[2]


def build(*what: str) -> list[Path]:
    """Where cargo put the programs of these packages and targets, built if need be.

    With the profile of the tests: emulated processors are slow enough.
    """
    command = ["cargo", "build", "--profile", "test", "--message-format", "json", *what]
    messages = (json.loads(line) for line in run(command, cwd=TOP).splitlines())
    return [Path(message["executable"]) for message in messages if message.get("executable")]
