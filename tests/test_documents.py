"""Every block of the documentation runs: commands, Python, TOML, files that it shows.

A page's blocks run one after the other in a folder of its own, beside copies of `examples` and
`experiments`. A block with `title="NAME"` is a file of that name. What cannot run here has a line
`<!-- not run: REASON -->` before it; how many there are for each reason is held here.

The commands in notes of experiments, which take minutes, are checked without simulating.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import BEDS
from weft import internal_errors
from weft.cli import app, simulations
from weft.study.inputs import Experiment

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")),
]
NOTES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("experiments/**/README.md"))
NOT_RUN = {
    "root": 6,  # Name spaces of the network.
    "hardware": 9,  # Switches, GPUs, several hosts, other simulators.
    "minutes": 2,
    "recordings": 1,  # Of real jobs, which are too large to ship.
    "PyTorch": 3,
    "build": 10,  # Changes the code, or sets it up.
}
"""Reasons why a block does not run, and how many blocks there are that do not."""
SHOWN = {"text", "rust", "jinja", "json"}
"""Languages of blocks that are shown only: output, and code that other tests compile."""
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*?) -->\n)?"
    r"^```(?P<language>\w*)(?:,\w+)?(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"`(weft [\w-]+ [^`]+|make [\w-]+)`")
"""In a text; a command without arguments is only spoken of."""


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    page: str
    line: int
    language: str
    title: str | None
    reason: str | None
    text: str

    @property
    def place(self) -> str:
        """Where it begins, as editors understand it."""
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (ROOT / page).read_text()
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            *(found[name] for name in ("language", "title", "reason", "text")),
        )
        for found in _BLOCK.finditer(text)
    ]


def test_no_block_is_overlooked() -> None:
    """Two fences each."""
    for page in PAGES + NOTES:
        fences = re.findall(r"^ *```", (ROOT / page).read_text(), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


SHOW_OUTPUT = {"docs/start/first-comparison.md"}
"""Pages whose blocks of text are a part of what the commands before them print."""


def runs(block: Block) -> bool:
    """Whether there is something to do about it."""
    return block.reason is None and (block.title is not None or block.language not in SHOWN)


def test_blocks_say_what_they_are() -> None:
    """Each has a language that is known here."""
    known = SHOWN | {"sh", "python", "toml", "csv"}
    every = [one for page in PAGES + NOTES for one in blocks(page)]
    assert [one.place for one in every if one.language not in known] == []


def test_few_blocks_are_not_run() -> None:
    """Those that are not say why."""
    every = [one for page in PAGES + NOTES for one in blocks(page)]
    found = Counter(one.reason for one in every if one.reason)
    assert dict(found) == NOT_RUN


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a page's blocks run: `weft` is a command there."""
    for name in ("examples", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "images" / "fabric.toml", tmp_path / "docs" / "images")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "weft").write_text(f'#!/bin/sh\nexec {sys.executable} -m weft "$@"\n')
    (programs / "weft").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    # As wide as pages show tables.
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _pages() -> Iterator[object]:
    """Pages with something to run; any process may take those that build no network."""
    for page in PAGES:
        if text := "\n".join(one.text for one in filter(runs, blocks(page))):
            group = BEDS if "weft testbed" in text else page
            yield pytest.param(page, marks=pytest.mark.xdist_group(group))


@pytest.mark.slow
@pytest.mark.parametrize("page", list(_pages()))
def test_a_page_runs(page: str, folder: Path) -> None:
    """From its first block to its last."""
    names: dict[str, object] = {"__name__": "page"}
    said = ""
    for block in blocks(page):
        if block.language == "text" and page in SHOW_OUTPUT:
            assert block.text in said, block.place
        if not runs(block):
            continue
        if block.title is not None:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)
        elif block.language == "sh":
            said = _shell(block.text, block.place)


def _shell(text: str, place: str) -> str:
    """What lines print; the first that fails ends them."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{place}: {done.stderr or done.stdout}"
    return done.stdout


def commands(page: str) -> list[str]:
    """The command lines of a page, in its blocks and in its text, without remarks."""
    inside = "\n".join(block.text for block in blocks(page) if block.language == "sh")
    outside = _BLOCK.sub("", (ROOT / page).read_text())
    lines = [*inside.replace("\\\n", " ").splitlines(), *_COMMAND.findall(outside)]
    return [line for line in lines if shlex.split(line, comments=True)]


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page in NOTES if commands(page)])
def test_commands_in_notes(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads its options and its experiments, which have runs; nothing is simulated."""
    loaded: list[Experiment] = []

    def simulate(experiments: list[Experiment], _: simulations.Options) -> int:
        loaded.extend(experiments)
        return 0

    monkeypatch.setattr(simulations, "simulate", simulate)
    monkeypatch.setattr(internal_errors.HANDLER, "install", lambda: None)
    targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in commands(page):
        program, *words = shlex.split(line, comments=True)
        if program == "make":
            assert words[0] in " ".join(targets).split(), line
            continue
        assert program == "weft", line
        assert app.status(words) == 0, line
        if words[0] in ("run", "compare"):
            assert min(len(one.runs) for one in loaded) > 0, line
        loaded.clear()


def _notebooks() -> Iterator[object]:
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        group = BEDS if "weft testbed" in path.read_text() else path.name
        yield pytest.param(path.name, marks=pytest.mark.xdist_group(group))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(_notebooks()))
def test_a_notebook_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its cells say what is saved in it; one that begins with `%%sh` is of the shell."""
    monkeypatch.chdir(folder / "examples")
    monkeypatch.setenv("MPLBACKEND", "agg")
    pl.Config.restore_defaults()
    cells = json.loads((ROOT / "examples" / name).read_text())["cells"]
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        text, place = "".join(cell["source"]), f"{name}, cell {number}"
        if cell["cell_type"] != "code":
            continue
        if text.startswith("%%sh\n"):
            said = _shell(text.removeprefix("%%sh\n"), place)
        else:
            said = _cell(text, place, names)
        if "weft bench-net" not in text:  # Which measures.
            assert _saved(cell) - _words(said) == set(), place


def _cell(text: str, place: str, names: dict[str, object]) -> str:
    """What a cell prints; its last expression, too."""
    body = ast.parse(text).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as said:
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if isinstance(last, ast.Expr):
            print(repr(eval(compile(ast.Expression(last.value), place, "eval"), names)))
    return said.getvalue()


def _saved(cell: dict[str, Any]) -> set[str]:
    """The words that a notebook has of what a cell said."""
    shown = [one for one in cell["outputs"] if one["output_type"] != "display_data"]
    lines = [one["text"] if "text" in one else one["data"]["text/plain"] for one in shown]
    return set().union(*(_words("".join(text)) for text in lines))


def _words(text: str) -> set[str]:
    """Words and numbers, wherever lines end."""
    return set(re.findall(r"\w[\w.]*", text))
