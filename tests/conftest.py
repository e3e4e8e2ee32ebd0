"""What the Python tests share: a small experiment, and the command line as a process."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forked import Forks

SMALL = """
title = "A small all-to-all"
notes = "What to expect: nothing <strange>."
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
link = "100Gbps"
delay = "500ns"
[workload]
pattern = "all-to-all"
size = "16KB"
[probe]
interval = "100ns"
ports = ["leaf-0 -> host-0", "leaf-0 -> spine-0", "leaf-0 -> spine-1"]
switches = ["leaf-0"]
[sweep]
"balance.scheme" = ["ecmp", "spray", "ethereal"]
seeds = 2
"""

STALLS = """
title = "Stalls"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[workload]
pattern = "permutation"
size = "256KB"
[failures.dead]
links = ["leaf-0 <-> spine-0"]
kind = "down"
start = "3us"
detect = "never"
[sweep]
"balance.scheme" = ["ecmp", "spray", "twill"]
seeds = 2
"""
"""ECMP stalls with both seeds: nobody tells it of the dead link."""

Weft = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure() -> None:
    """Without the native module nothing here can run: say so once."""
    if importlib.util.find_spec("weft._native") is None:
        raise pytest.UsageError("the native module is not built: `make build` builds it")


def pytest_runtest_setup() -> None:
    """Readline, which pytest loads, tells processes that are started how wide the terminal is."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
        os.unsetenv(name)


BEDS = "beds"
"""The group of tests that build networks of name spaces, in whichever file they are.

They measure rates, and look for what a network leaves behind: one of them at a time.
"""
_OF_BEDS = {
    "test_discover",
    "test_discover_ssh",
    "test_namespaces",
    "test_nccl_fabric",
    "test_standing_bed",
    "test_switch_config_live",
    "test_testbed",
}


# Before that of pytest-xdist, which reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file stay together where several processes share the tests.

    Those that name a group of their own do not.
    """
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        group = BEDS if item.path.stem in _OF_BEDS else item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_last)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that are not kept would let two networks measure at once."""
    together = getattr(session.config.option, "loadgroup", False)
    if together and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError(
            "pytest-xdist does not group the tests of this pytest: use pytest<9.2"
        )


def _last(item: pytest.Item) -> tuple[bool, bool, bool]:
    """What takes long comes first, so that no process waits for another one at the end."""
    beds = item.path.stem in _OF_BEDS
    longest = item.path.stem in ("test_roce", "test_web")
    return not beds, not longest, item.get_closest_marker("slow") is None


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The path of a small experiment: three schemes, two seeds."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """What runs the command line without reading its libraries each time."""
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def weft(tmp_path: Path, forks: Forks) -> Weft:
    """Run the command line in `tmp_path`."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return forks.run([*map(str, arguments)], tmp_path)

    return run


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def processes_of(token: str) -> list[str]:
    """Processes that have a word in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes()
        except OSError:
            continue
        if token.encode() in words:
            found.append(process.name)
    return found


def left_by(look: Callable[[], list[str]]) -> list[str]:
    """What is left when nothing more goes: empty once nothing has been seen for a second.

    A process that becomes another program is not to be seen for a moment.
    """
    end, quiet, last = time.monotonic() + 20, 0, look()
    while quiet < 10 and time.monotonic() < end:
        time.sleep(0.1)
        found = look()
        quiet, last = (0, found) if found else (quiet + 1, last)
    return [] if quiet == 10 else last


def rows(weft: Weft, *words: str | Path) -> list[dict[str, Any]]:
    """What a command prints under --json."""
    done = weft(*words, "--json", "-q")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def command(*arguments: str | Path) -> list[str]:
    """The command line of `weft` with these arguments."""
    return [sys.executable, "-m", "weft", *map(str, arguments)]


def start(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Start the command line, so that a signal can be sent to it."""
    with heard(signal.SIGINT):
        return subprocess.Popen(
            command(*arguments),
            cwd=cwd,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def heard(*numbers: signal.Signals) -> Iterator[None]:
    """Have new processes hear signals that this one ignores, in the background or under nohup."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)
