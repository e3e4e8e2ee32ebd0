"""Ranks as processes of this machine."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT = 240
"""Seconds that all ranks may take."""


def ranks(script: str, count: int, *words: str, **variables: str) -> list[subprocess.Popen[str]]:
    """Start so many ranks of a script on this machine."""
    of = [(str(rank), str(count), *words) for rank in range(count)]
    return [alone(script, *one, LOCAL_RANK=one[0], **variables) for one in of]


def alone(script: str, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start a script."""
    environment = os.environ | {
        "WEFT_IFNAME": "lo",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    for name in ("WEFT_CONFIG", "WEFT_SCHEME"):
        if name not in variables:
            environment.pop(name, None)
    return subprocess.Popen(
        [sys.executable, HERE / script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def outcome(
    processes: list[subprocess.Popen[str]], limit: float = LIMIT
) -> list[tuple[int, str, str]]:
    """Wait for all; status, output and errors of each."""
    found = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=limit)
            found.append((process.returncode, out, err))
    finally:
        for process in processes:
            process.kill()
    return found


@cache
def cases_of(count: int, folder: str, backend: str) -> list[dict[str, Any]]:
    """What each of so many ranks says of all cases."""
    reports = []
    meeting = Path(folder) / f"store-{count}-{backend}"
    for status, out, err in outcome(ranks("cases.py", count, str(meeting), backend)):
        assert status == 0, err
        reports.append(json.loads(out.splitlines()[-1]))
    return reports
