"""PyTorch's own tests of a back end, from the installed wheel: `DistributedTest`.

A test's ranks are forked from one process that has PyTorch loaded, which takes a second where
spawned ones take ten. What PyTorch's tests skip for any back end that is not called "gloo" is done
over weft a second time, under that name (`--as gloo`).

Usage: python suite.py weft|gloo RANKS [--as NAME] [--list] [TEST ...]; prints a line for each test:
its name, "ok", "skipped" or "failed", and why.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

LIMIT = 60
"""Seconds for a test, before its ranks are ended."""


def main() -> None:
    """Do the tests that are asked for; all of them, if none is named."""
    words = argparse.ArgumentParser()
    words.add_argument("backend", choices=["weft", "gloo"])
    words.add_argument("ranks", type=int)
    words.add_argument("--as", dest="name", help="what PyTorch takes the back end for")
    words.add_argument("--list", action="store_true", help="only name the tests")
    words.add_argument("tests", nargs="*")
    asked = words.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        tests = suite(asked.backend, asked.name or asked.backend, asked.ranks, Path(folder))
        names = asked.tests or unittest.defaultTestLoader.getTestCaseNames(tests)
        for name in names:
            print(name if asked.list else "\t".join((name, *outcome(tests(name)))), flush=True)


def suite(backend: str, name: str, ranks: int, folder: Path) -> type[Any]:
    """Load the tests, for a back end that goes by a name."""
    os.environ |= {
        "BACKEND": name,
        "WORLD_SIZE": str(ranks),
        "INIT_METHOD": f"file://{folder}/meeting",
        "MASTER_ADDR": "127.0.0.1",
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(LIMIT),
        "OMP_NUM_THREADS": "1",
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
    }
    from torch.distributed import Backend
    from torch.testing._internal.distributed import distributed_test as theirs

    from weft.torch import backend as ours
    from weft.torch.group import Group

    logging.disable(logging.WARNING)
    if backend != name:
        Backend._plugins[name.upper()] = Backend._plugins[backend.upper()]
        ours.NAME = name
        # PyTorch's C++ asks a back end of the name "gloo" for what only Gloo has.
        Group.getBackendName = lambda _: backend  # type: ignore[method-assign]

    class Suite(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):  # type: ignore[misc, name-defined]
        def setUp(self) -> None:
            Path(folder, "meeting").unlink(missing_ok=True)
            super().setUp()
            self._start_processes(theirs.torch.multiprocessing.get_context("fork").Process)

    Suite.setUpClass()
    return Suite


def outcome(test: Any) -> tuple[str, str]:
    """Do a test; how it went and why."""
    found = unittest.TestResult()
    # What ranks print is theirs.
    with Path(os.devnull).open("w") as nowhere:
        kept = [os.dup(1), os.dup(2)]
        sys.stdout.flush()
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
        try:
            test.run(found)
        finally:
            sys.stdout.flush()
            for stream, old in zip((1, 2), kept, strict=True):
                os.dup2(old, stream)
                os.close(old)
    if found.skipped:
        return "skipped", found.skipped[0][1]
    wrong = found.errors + found.failures
    return ("failed", reason(wrong[0][1])) if wrong else ("ok", "")


def reason(text: str) -> str:
    """What the end of a traceback says, in one line."""
    *_, last = re.split(r"^(?=\w*(?:Error|Exception)\b)", text, flags=re.MULTILINE)
    return " ".join(last.split())[:300]


if __name__ == "__main__":
    main()
