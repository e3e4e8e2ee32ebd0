"""What nobody foresaw is one line and exit status 70; finished runs stay; `--debug` shows more."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Weft
from weft import internal_errors

_BROKEN = """
import sys, threading
import weft.cli.report
from weft import _native
def fault(*_, **__):
    {fault}
    return 0

{where} = fault
sys.argv = ["weft", *{words!r}]
from weft.cli.app import main
main()
"""

_ANSWER = "weft.internal_errors.HANDLER.status"

FAULTS = {
    "{}['a key']": "KeyError: 'a key'",
    "_native.panic_for_tests('a panic')": "panic: a panic (crates/python/src/panics.rs:",
    "_native.panic_for_tests('a panic', alone=True)": "panic: a panic (crates/python/src/panics.rs",
    "_t = threading.Thread(target=lambda: 1 / 0); _t.start(); _t.join()": "ZeroDivisionError",
}
"""What happens, and what is said of it."""


def _run(
    fault: str, *words: str, where: str = "weft.cli.report.make", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    code = _BROKEN.format(fault=fault, where=where, words=words)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_ours_is_one_line_that_says_how_to_report_it(fault: str) -> None:
    """Exceptions and panics alike, of the main thread and of others."""
    done = _run(fault, "report", "out")
    assert (done.returncode, done.stdout) == (internal_errors.STATUS, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: unexpected {FAULTS[fault]}")
    for word in ("please report", "CONTRIBUTING.md", "--debug", "a bug in Weft 0."):
        assert word in done.stderr


@pytest.mark.parametrize("words", [["--debug", "report", "out"], ["report", "--debug", "out"]])
def test_debug_shows_the_traceback_before_the_line(words: list[str]) -> None:
    """It stands where it likes."""
    done = _run("{}['a key']", *words)
    assert done.returncode == internal_errors.STATUS
    first, *_, last = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith("error: unexpected KeyError: 'a key'")
    panicked = _run("_native.panic_for_tests('a panic')", *words)
    assert "panicked at crates/python/src/panics.rs" in panicked.stderr


def test_debug_changes_nothing_else(weft: Weft) -> None:
    """Mistakes of users have no traceback."""
    done = weft("run", "nothing.toml", "--debug")
    assert done.returncode == 2
    assert done.stderr.startswith("error: nothing.toml: no such file")
    assert weft("--debug", "list", "schemes").stdout == weft("list", "schemes", "--debug").stdout
    assert "--debug" in weft("--help").stdout


def test_finished_runs_stay_when_one_meets_a_fault(weft: Weft, small: Path, tmp_path: Path) -> None:
    """The line says which run it was and what is kept; the same command goes on there."""
    fault = (
        "simulated.append(_)\n"
        "    if len(simulated) == 3: _native.panic_for_tests('in the core')\n"
        "    return native(*_, **__)"
    )
    where = "simulated, native = [], _native.run\n_native.run"
    words = ("run", str(small), "-o", "out", "--jobs", "1")
    done = _run(fault, *words, where=where, cwd=tmp_path)
    assert done.returncode == internal_errors.STATUS
    line = done.stderr.splitlines()[-1]
    assert "unexpected panic: in the core" in line
    # The next run may begin before the fault is seen.
    kept = re.search(r"in small ethereal seed 1, ([23]) of 6 runs had finished and are kept", line)
    assert kept, line
    again = weft("run", small, "-o", "out", "--no-report", "--json")
    assert again.returncode == 0
    assert again.stderr.startswith(f"{kept[1]} of 6 runs are done already")
    assert len(json.loads(again.stdout)) == 6


@pytest.mark.skipif(os.geteuid() != 0, reason="sessions of a test bed need root")
def test_a_child_of_a_test_bed_tells_its_parent() -> None:
    """The line goes on to the user, with status 70; the traceback only under `--debug`."""
    code = (
        "import os, sys\n"
        "sys.argv = ['session', str(os.getppid())]\n"
        "from weft.testbed import system\n"
        "sys.exit(system.serve(lambda job: [job['missing']]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="{}", capture_output=True, text=True, check=False
    )
    assert done.returncode == internal_errors.STATUS
    from weft.testbed import system

    error = system.session_error(done.returncode, done.stderr)
    assert isinstance(error, internal_errors.ChildError)
    assert error.line.startswith("error: unexpected KeyError: 'missing'")
    assert error.before.startswith("Traceback")
    assert type(system.session_error(2, "first\nlast")).__name__ == "ExperimentError"


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("weft list schemes | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("weft list schemes >&-", 0, ""),
        (
            "PYTHONIOENCODING=ascii weft compare --fabric leaf-spine:leaves=2,spines=2,hosts=1 "
            "--workload permutation:size=16KB --schemes ecmp,spray -q > all.txt",
            0,
            "",
        ),
        ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 weft list workloads > all.txt", 0, ""),
    ],
)
def test_nobody_reads_or_cannot(tmp_path: Path, command: str, status: int, said: str) -> None:
    """A reader that has gone, an output that is closed, an encoding without all letters."""
    run = f"weft() {{ '{sys.executable}' -m weft \"$@\"; }}; {command}"
    done = subprocess.run(["bash", "-c", run], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, said)


def test_a_second_interrupt_shows_no_traceback() -> None:
    """It comes while the first one is answered, as where a whole group of processes gets both."""
    words = ["list", "presets"]
    code = _BROKEN.format(fault="raise KeyboardInterrupt", where=_ANSWER, words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(
    ("output", "status"), [("| true; exit ${PIPESTATUS[0]}", 141), ("> /dev/full", 1)]
)
def test_a_report_needs_no_reader(small: Path, tmp_path: Path, output: str, status: int) -> None:
    """Who asked for the first lines, or has no room for more, finds all results."""
    words = [sys.executable, "-m", "weft", "run", str(small), "-o", "out", "-q"]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(words)} {output}"], cwd=tmp_path, check=False
    )
    assert done.returncode == status
    assert (tmp_path / "out" / "report.html").is_file()


def test_an_interrupt_while_libraries_are_read_shows_no_traceback() -> None:
    """As of Ctrl-C right behind Enter."""
    code = """
import sys, weft
class Interrupt:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from weft.cli import main
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
