"""What a Tab does in a real bash, which takes ":" and "=" as ends of words."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from conftest import command

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(not BASH, reason="bash is not installed")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the command `weft` in `bin` and the script that `--show-completion` prints."""
    path = tmp_path / "bin" / "weft"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    path.chmod(0o755)
    told = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        command("--show-completion", "bash"),
        env=os.environ | told,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "completion.sh").write_text(done.stdout)
    return tmp_path


def offered(home: Path, line: str, breaks: str | None = None) -> list[str]:
    """What bash would put in for the word at the end of a line."""
    change = "" if breaks is None else f"COMP_WORDBREAKS={shlex.quote(breaks)}\n"
    script = f"""
        source completion.sh
        {change}COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        compopt() {{ :; }}
        _weft_completion weft
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = os.environ | {"PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [BASH, "--norc", "-c", script],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("weft compare --workload all-reduce:si", ["size="]),
        ("weft compare --fabric leaf-spine:leaves=4,sp", ["4,spines="]),
        ("weft compare --fabric=leaf-spine:leaves=4,sp", ["4,spines="]),
        ("weft compare --workload all-reduce:algorithm=rin", ["ring"]),
        ("weft compare --schemes=ecmp,ethereal-", ["ecmp,ethereal-weighted"]),
        ("weft list sch", ["schemes"]),
    ],
)
def test_behind_colons_and_equals_signs(home: Path, line: str, expected: list[str]) -> None:
    """Only what stands behind the last of them is put in."""
    assert offered(home, line) == expected


def test_where_they_end_no_word(home: Path) -> None:
    """With another COMP_WORDBREAKS the whole word is put in; an empty word offers all."""
    line = "weft compare --fabric leaf-spine:leaves=4,sp"
    assert offered(home, line, " \t\n") == ["leaf-spine:leaves=4,spines="]
    assert {"schemes", "presets"} <= set(offered(home, "weft list "))
    keys = offered(home, "weft compare --fabric leaf-spine:")
    assert "leaves=" in keys
    assert not [key for key in keys if ":" in key]


def test_typed_at_a_terminal(home: Path) -> None:
    """A Tab completes the word, without a space behind it where a value follows."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        environment = {
            **{"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home)},
            **{"PS1": "$ ", "TERM": "dumb", "INPUTRC": os.devnull},
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        }
        os.execve(BASH, [BASH, "--norc", "--noprofile", "-i"], environment)
    try:
        os.write(terminal, b"source completion.sh; echo read\\y\n")
        _until(terminal, "ready")
        os.write(terminal, b"weft compare --workload all-reduce:si\t")
        _until(terminal, "size=")
        os.write(terminal, b"64KB,algorithm=rin\t")
        _until(terminal, "ring")
        # To the start of the line: what stands there is an argument now.
        os.write(terminal, b"\x01echo \n")
        whole = "weft compare --workload all-reduce:size=64KB,algorithm=ring\r\n"
        assert f"\n{whole}" in _until(terminal, f"\n{whole}")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _until(terminal: int, wanted: str) -> str:
    """All that comes until `wanted` has come, or for half a minute."""
    seen, end = "", time.monotonic() + 30
    while wanted not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            seen += os.read(terminal, 4096).decode()
    return seen
