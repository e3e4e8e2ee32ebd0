"""The verbs back end over Soft-RoCE, in a machine that QEMU emulates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_MISSING = 77


@pytest.mark.slow
def test_queue_pairs_take_the_planned_ports_and_links() -> None:
    """As `make roce-test`, which says what is looked at."""
    run = Path(__file__).parent / "roce/run.py"
    done = subprocess.run([sys.executable, run], capture_output=True, text=True, check=False)
    if done.returncode == _MISSING:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
