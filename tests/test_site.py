"""The documentation site: what is made from the code, and numbers that it takes from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import hooks
import notebook
import reference
import weft
from conftest import command
from weft.report import column_meanings
from weft.study import check, store

ROOT = Path(__file__).parents[1]
CHOOSING = (ROOT / "docs" / "choosing.md").read_text()
HEAT_MAP = (ROOT / "docs" / "images" / "all-schemes.svg").read_text()


@pytest.fixture(scope="module")
def result() -> weft.Result:
    """A run that fills every table."""
    return weft.simulate(reference.EVERY_TABLE)


@pytest.mark.parametrize("table", [name for name in column_meanings.TABLES if name != "check"])
def test_every_column_has_a_meaning(table: str, result: weft.Result) -> None:
    """And every meaning a column, in the order of the table."""
    assert list(column_meanings.TABLES[table]) == getattr(result, table).columns


def test_tables_without_rows_have_the_columns_of_others(
    result: weft.Result, tmp_path: Path
) -> None:
    """With their types, in memory as on the disk."""
    nothing = store.MemoryStore()
    store.assemble(tmp_path, [], nothing)
    for name in store.OF_JOBS:
        empty = getattr(result, name).clear()
        assert_frame_equal(store.table([], nothing, name), empty)
        assert_frame_equal(pl.read_parquet(tmp_path / f"{name}.parquet"), empty)


def test_every_column_of_a_check_has_a_meaning() -> None:
    """The same."""
    assert tuple(column_meanings.TABLES["check"]) == check.OF_CHECK


def test_pages_are_made() -> None:
    """Of every command, every scheme and every variable."""
    pages = reference.pages()
    for words in ("weft run", "weft testbed bench", "weft trace info"):
        assert f"\n## {words}\n" in pages["reference/commands.md"]
    schemes = pages["reference/schemes.md"]
    assert schemes.count("Asks of switches") == len(weft.schemes())
    assert "\n### `twill`\n" in schemes
    assert "`WEFT_CONFIG`" in pages["reference/variables.md"]


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    """But for those that only the site shows: to pages made with it, which its build checks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", hooks.ONLY_HERE.sub("", text))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_notebook_is_a_page(tmp_path: Path) -> None:
    """Text as it is, cells in their language, tables as tables, what was printed as text."""
    frame = weft.list("schemes")[:2]
    table = pl.DataFrame([{"name": one["name"]} for one in frame])._repr_html_()
    shown = {"text/html": [table], "text/plain": ["shape: ..."]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%%sh\n", "weft list"], "outputs": [{"text": ["ecmp\n"]}]},
        {"cell_type": "code", "source": ["frame"], "outputs": [{"data": shown}]},
    ]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    page = notebook.page(tmp_path / "one.ipynb")
    assert page.startswith("# Title\n\n```sh\nweft list\n```\n\n```text\necmp\n```\n\n```python\n")
    assert "<table><thead>" in page
    assert "shape: ..." not in page


def test_choosing_has_the_numbers_of_the_heat_map() -> None:
    """Every cell of its table that is a number."""
    measured = _heat_map()
    rows = _table(CHOOSING, "| scheme | asks of switches |")
    scenarios = rows[0][3:]
    assert len(rows) > 10
    for name, _, _, *cells in rows[1:]:
        found = [measured[name.strip("`")][scenario] for scenario in scenarios]
        assert cells == found, name


def test_choosing_says_what_switches_and_nics_must_do() -> None:
    """As the schemes do themselves."""
    entries = weft.schemes()
    asked = {re.sub(r"-N$", "", name): told for name, told in reference.asked(entries).items()}
    for name, *says in _table(CHOOSING, "| scheme | asks of switches |")[1:]:
        told = asked[re.sub(r"-\d+$", "", name.strip("`"))]
        assert tuple(says[: len(told)]) == told, name


MISTAKES = (
    "run figure.toml",
    "run examples/first.toml --set workload.sise=1MB",
    "run examples/first.toml --set workload.size=1000000",
    "run examples/flows.csv --fabric leaf-spine:leaves=2,spines=2,hosts=2",
    "compare --fabric leaf-spine:leaves=4,spines=4,hosts=4 --schemes ecmp "
    "--workload all-reduce:algorithm=recursive-doubling,size=1MB,ranks=12",
    "compare --fabric dragonfly:groups=9,routers=4,hosts_per_leaf=2,global_ports=2 "
    "--workload permutation:size=64KB --schemes conga",
    "switch-config examples/cluster.toml --scheme ecmp --format sonic -o switches",
)
"""Commands, each of which gives a line that `docs/troubleshooting.md` explains."""


@pytest.mark.slow
@pytest.mark.parametrize("words", MISTAKES)
def test_troubleshooting_has_the_lines_as_they_are(words: str) -> None:
    """To the letter."""
    done = subprocess.run(
        command(*words.split()), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    line = done.stderr.strip().splitlines()[-1]
    assert f"| `{line}` |" in (ROOT / "docs" / "troubleshooting.md").read_text()


@pytest.mark.slow
def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    """No link or anchor leads nowhere, nothing is loaded from elsewhere, no escape is visible."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not there: `make docs` installs it")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (tmp_path / "index.html").read_text()
    assert re.findall(r'(?:src|href)="https?:[^"]*\.(?:js|css|woff2?)', home) == []
    assert (tmp_path / "search" / "search_index.js").is_file()
    for page in tmp_path.rglob("*.html"):
        text = re.sub(r"<(pre|script)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        assert re.findall(r".{20}\\(?:\||&[lg]t;).{20}", text) == [], page


def _table(text: str, begins: str) -> list[list[str]]:
    """The cells of the table that begins so: head, then rows."""
    lines = text[text.index(begins) :].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


def _heat_map() -> dict[str, dict[str, str]]:
    """By scheme and scenario, what the picture says."""
    place = r'(?:x="([\d.]+)" y="([\d.]+)"|translate\(([\d.]+) ([\d.]+)\))'
    heads, cells = [], []
    for text in re.findall(r'<g id="text_\d+">(.*?)</g>', HEAT_MAP, re.DOTALL):
        lines = re.findall(rf"<text[^>]*{place}[^>]*>([^<]*)", text)
        # Names that are too long have lines, broken behind a hyphen or at a space.
        words = " ".join(line[-1] for line in lines).replace("- ", "-")
        x, y = (fmean(float(line[at] or line[at + 2]) for line in lines) for at in (0, 1))
        if "rotate(-30)" in text:
            heads.append(words)
        else:
            cells.append((x, y, words))
    names = [(y, text) for _, y, text in cells if re.fullmatch(r"[a-z][a-z0-9-]+", text)]
    found = {}
    for height, name in names:
        line = [
            (x, text)
            for x, y, text in cells
            if abs(y - height) < 5 and re.fullmatch(r"[\d.]+|\N{EN DASH}", text)
        ]
        found[name] = dict(zip(heads, [text for _, text in sorted(line)], strict=False))
    return found
