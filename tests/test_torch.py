"""`weft.torch` where PyTorch is not; where it is: `tests/pytorch`, which `make torch-test` runs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_without_pytorch_one_line_says_so() -> None:
    """And what to install."""
    done = subprocess.run(
        [sys.executable, "-c", "import weft.torch"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert line == (
        "ModuleNotFoundError: weft.torch needs PyTorch, which is not installed; "
        "run: pip install torch"
    )
