"""The type stubs of the native module say what the module is."""

from __future__ import annotations

import subprocess
import sys


def test_stubs_match_the_module() -> None:
    """Names, signatures and classes, as mypy's stubtest compares them."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "weft._native", "--ignore-missing-stub"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
