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
from urllib.parse import unquote

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import hooks
import notebook
import reference
import weft
from chromium import Browser, browser
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: no link or anchor leads nowhere."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not there: `make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_whole(site: Path) -> None:
    """Nothing is loaded from elsewhere, no escape is visible, and home says what it is."""
    home = (site / "index.html").read_text()
    assert "<title>Weft: Load balancing for AI training fabrics</title>" in home
    assert re.findall(r'(?:src|href)="https?:[^"]*\.(?:js|css|woff2?)', home) == []
    assert (site / "search" / "search_index.js").is_file()
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|script)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        assert re.findall(r".{20}\\(?:\||&[lg]t;).{20}", text) == [], page


@pytest.mark.slow
def test_links_lead_to_pages_not_to_folders(site: Path) -> None:
    """From a disk a folder is a list of files, also behind the logo."""
    for page in site.rglob("*.html"):
        # Its addresses begin at the root of a server.
        if page.name == "404.html":
            continue
        links = re.findall(r'<a [^>]*href="([^"#:]+)(?:#[^"]*)?"', page.read_text())
        assert [link for link in set(links) if (page.parent / unquote(link)).is_dir()] == [], page


PALE = """(() => {
  const numbers = (colour) => [...colour.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const over = ([r, g, b, share], below) =>
    [r, g, b].map((one, at) => share * one + (1 - share) * below[at]);
  const light = (colour) => colour
    .map((one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const parents = (place) => place ? [place, ...parents(place.parentElement)] : [];
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const place = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !place.checkVisibility({ visibilityProperty: true }))
      continue;
    const all = parents(place).map((one) => getComputedStyle(one));
    const opacity = all.reduce((product, one) => product * one.opacity, 1);
    // What comes when it is pointed at.
    if (opacity < 0.1 || !place.getBoundingClientRect().width) continue;
    const paper = all.reduceRight((below, one) => over(numbers(one.backgroundColor), below),
      [255, 255, 255]);
    const [r, g, b, share] = numbers(all[0].color);
    const both = [light(over([r, g, b, share * opacity], paper)), light(paper)];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    const large = parseFloat(all[0].fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5))
      found.add(`${ratio.toFixed(2)} ${place.className || place.tagName}: ${all[0].color}`);
  }
  return [...found];
})()"""
"""Letters that are hard to tell from what they stand on: less than 4.5 to 1 (WCAG AA)."""


@browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_letters_are_not_pale(site: Path, tmp_path: Path, dark: bool) -> None:
    """On pages with tables, code and what is made from the code."""
    scheme = "document.body.dataset.mdColorScheme"
    with Browser(tmp_path) as chromium:
        chromium.size(1280, 1000, dark=dark)
        for page in ("index", "start/first-comparison", "experiments", "reference/python"):
            chromium.open((site / f"{page}.html").as_uri())
            wanted = "slate" if dark else "default"
            chromium.wait_for(f"document.readyState === 'complete' && {scheme} === '{wanted}'")
            assert chromium.evaluate(PALE) == [], page


@browser
@pytest.mark.slow
def test_colours_follow_the_system(site: Path, tmp_path: Path) -> None:
    """Also of a reader who has been there by day."""
    with Browser(tmp_path) as chromium:
        for dark in (False, True, False):
            chromium.size(1280, 1000, dark=dark)
            chromium.open((site / "index.html").as_uri())
            wanted = "slate" if dark else "default"
            chromium.wait_for(f"document.body?.dataset.mdColorScheme === '{wanted}'", 20)


@browser
@pytest.mark.slow
def test_the_demonstration_has_room_for_results(site: Path, tmp_path: Path) -> None:
    """Beside its form, where there are 1000 pixels; and the home page never scrolls aside."""
    style = (ROOT / "crates" / "web" / "page" / "style.css").read_text()
    narrow = max(map(int, re.findall(r"max-width: (\d+)px\) {\s*main", style)))
    demo = "document.querySelector('.weft-demo')"
    # Where `make web` has not been run there is none.
    place = f"""{demo} ?? document.querySelector("article").insertAdjacentHTML(
      "afterbegin", "<iframe class='weft-demo'></iframe>")"""
    with Browser(tmp_path) as chromium:
        for width in (375, 1000, 1280, 1920):
            chromium.size(width, 900)
            chromium.open((site / "index.html").as_uri())
            chromium.wait_for("document.readyState === 'complete'")
            chromium.evaluate(f"({place}) && null")
            assert (chromium.evaluate(f"{demo}.clientWidth") > narrow) == (width >= 1000)
            assert chromium.evaluate("document.documentElement.scrollWidth") <= width


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
