"""The report in a real browser, and the plots beside it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from chromium import CHROMIUM, FLAGS, Browser, browser
from conftest import SMALL, Weft, command

_TO_THE_END = ["--virtual-time-budget=20000", "--enable-logging=stderr"]
pytestmark = pytest.mark.slow
SIZES = '"workload.size" = ["16KB", "64KB", "256KB"]\nseeds'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory with a report on two experiments, one of them over sizes."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "small.toml").write_text(SMALL)
    (folder / "sizes.toml").write_text(SMALL.replace("seeds", SIZES))
    made = command("run", "small.toml", "--jobs", "2", "-q", "sizes.toml", "-o", "out")
    made += ["--plots", "svg,png,pdf"]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The report's document after its scripts ran, and what the browser logged."""
    return browse(results / "report.html", tmp_path_factory.mktemp("profile"))


def browse(report: Path, profile: Path, *flags: str) -> tuple[str, str]:
    """Open a page in headless Chromium; its document and the browser's log."""
    where = [f"--user-data-dir={profile}", "--dump-dom", report.as_uri()]
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, *_TO_THE_END, *flags, *where],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, done.stderr


def plots(document: str) -> dict[str, str]:
    """The drawn part of each panel, by figure and panel."""
    # The scripts at the end of the page hold the same words.
    body = document[: document.index("<footer")]
    pieces = re.split(r'<div class="plot[^"]*" data-figure="([^"]+)" data-panel="(\d+)"', body)
    names = zip(pieces[1::3], pieces[2::3], strict=True)
    return {f"{f}/{n}": text for (f, n), text in zip(names, pieces[3::3], strict=True)}


@browser
def test_every_figure_draws(page: tuple[str, str]) -> None:
    """Every panel has an SVG with lines, bars or the image of a heat map in it."""
    drawn = plots(page[0])
    expected = {"small-cct", "small-fct", "small-queue-1", "small-links-1", "sizes-slowdown"}
    assert expected <= {name.partition("/")[0] for name in drawn}
    for name, text in drawn.items():
        assert 'class="main-svg"' in text, name
        marks = re.findall(r'class="(?:js-line|point|hm)"[^>]*>(?:<(?:path|image)[^>]*>)?', text)
        assert marks, name
        assert "NaN" not in text, name


@browser
def test_curves_and_bars_hold_a_series_a_scheme(page: tuple[str, str]) -> None:
    """Three schemes: three curves, and three bars beside the bound."""
    drawn = plots(page[0])
    assert drawn["small-fct/0"].count('class="trace scatter') == 3
    assert drawn["small-cct/0"].count('class="point"') == 3
    assert drawn["sizes-cct/0"].count('class="trace scatter') == 4


@browser
def test_no_errors_and_no_network(page: tuple[str, str]) -> None:
    """The console is silent and nothing is loaded from elsewhere."""
    document, log = page
    assert "CONSOLE" not in log
    # Plotly's own source holds addresses that it would link to in maps, which are not used.
    document = re.sub(r"<script>.*?</script>", "", document, flags=re.DOTALL)
    assert not re.findall(r'\b(?:src|href)="\s*(?:https?:)?//[^"]*"', document)
    assert "url(http" not in document


PROBE = """<script>
const right = place => place.getBoundingClientRect().right;
const shown = plot => plot.closest(".wide") ?? plot;
const drawn = [...document.querySelectorAll(".main-svg")].map(plot => right(shown(plot)));
const single = [...document.querySelectorAll(".single .svg-container")].map(right);
const content = right(document.querySelector("section"));
const wide = document.documentElement.scrollWidth;
const cut = place => place.scrollWidth - place.offsetWidth;
const hidden = [...document.querySelectorAll(".scroll")].map(cut);
const found = [innerWidth, wide, Math.max(...drawn), Math.min(...single), content];
parent.postMessage([...found, Math.max(...hidden)].join(), "*");
</script>"""


@browser
@pytest.mark.parametrize("width", [420, 800, 1300])
def test_charts_are_as_wide_as_the_page(results: Path, tmp_path: Path, width: int) -> None:
    """No wider and no narrower; tables and drawings scroll on a telephone, within themselves."""
    page = (results / "report.html").read_text().replace("</body>", f"{PROBE}</body>")
    (tmp_path / "page.html").write_text(page)
    # In a frame, since no window of the browser gets narrower than 500 pixels.
    (tmp_path / "frame.html").write_text(
        f'<iframe src="page.html" width="{width}" height="900" style="border: 0"></iframe>'
        "<script>onmessage = message => document.title = message.data</script>"
    )
    flags = ("--window-size=1400,1000", "--hide-scrollbars")
    document, _ = browse(tmp_path / "frame.html", tmp_path / "profile", *flags)
    title = re.search(r"<title>([^<]*)</title>", document)
    assert title is not None
    inner, wide, drawn, single, content, hidden = map(float, title[1].split(","))
    assert inner == width
    assert wide <= inner
    assert drawn <= content + 0.5
    assert single >= content - 1.5
    # The usual table of a scheme that asks something of switches and NICs.
    assert hidden == 0 or width < 1000


@pytest.fixture
def opened(results: Path, tmp_path: Path) -> Iterator[Browser]:
    """The report in a browser that does as it is told; in the dark."""
    with Browser(tmp_path / "profile") as chromium:
        chromium.size(1400, 1000, dark=True)
        chromium.open((results / "report.html").as_uri())
        chromium.wait_for("document.querySelectorAll('.main-svg').length > 20")
        yield chromium


WIDTHS = (
    """Math.max(...[...document.querySelectorAll(".plot, table")].map(one => one.scrollWidth))"""
)


@browser
def test_paper_has_all_of_the_report(opened: Browser) -> None:
    """Plots are drawn anew at the width of a page, on white, and for the screen afterwards."""
    before = opened.evaluate(WIDTHS)
    assert opened.evaluate(f"dispatchEvent(new Event('beforeprint')), {WIDTHS}") <= 675
    plot = "document.querySelector('.plot')"
    assert opened.evaluate(f"{plot}._fullLayout.width") <= 675
    assert opened.evaluate(f"{plot}._fullLayout.font.color") == "#1d2329"
    assert opened.evaluate(f"dispatchEvent(new Event('afterprint')), {WIDTHS}") == before
    assert opened.evaluate(f"{plot}._fullLayout.font.color") == "#e6e9ec"


@browser
def test_error_bars_are_seen_in_the_dark(opened: Browser) -> None:
    """In the colour of the text."""
    bar = "document.querySelector('[data-figure=small-cct] .errorbar path')"
    assert opened.evaluate(f"getComputedStyle({bar}).stroke") == "rgb(230, 233, 236)"


@browser
def test_an_axis_has_one_unit(opened: Browser) -> None:
    """A panel of far smaller values than the others: no prefix before that of the unit."""
    small = "figures['small-peak-queue'][0]"
    place = "document.querySelector('[data-figure=small-peak-queue]')"
    drawn = opened.evaluate(
        f"{small}.data.forEach(one => one.y = one.y.map(y => y / 1e6));"
        f"{small}.layout.yaxis.range = [0, 2.6e-4]; draw({place});"
        f"[...{place}.querySelectorAll('.ytick text')].map(one => one.textContent)"
    )
    assert drawn[:2] == ["0", "0.00005"]


@browser
def test_a_long_legend_leaves_the_plot_its_room(opened: Browser) -> None:
    """Twelve schemes on a telephone: the figure gets higher, not the plot lower."""
    opened.size(420, 900)
    place = "document.querySelector('[data-figure=small-fct]')"
    length = f"{place}._fullLayout.yaxis._length"
    few = opened.wait_for(f"{place}.layout.width < 420 && {length}")
    opened.evaluate(
        "const panel = figures['small-fct'][0]; const [curve] = panel.data;"
        "panel.data = [...Array(12).keys()].map("
        "  i => ({...curve, name: `switch-spray-adaptive-${i}`, showlegend: true}));"
        f"draw({place})"
    )
    assert opened.evaluate(length) == pytest.approx(few, abs=5)
    assert opened.evaluate(f"{place}.clientHeight - {place}._fullLayout.height") == 0


@browser
def test_the_fabric_keeps_its_size_on_a_telephone(opened: Browser) -> None:
    """It scrolls within its figure: squeezed, its names would lie over each other."""
    place = "document.querySelector('[data-figure=small-fabric]')"
    assert opened.evaluate(f"{place}._fullLayout.dragmode") == "zoom"
    opened.size(420, 900, dark=True)
    opened.wait_for(f"{place}.layout.width < 1000")
    assert opened.evaluate(f"{place}.clientWidth") == 704
    # A finger scrolls it.
    assert opened.evaluate(f"{place}._fullLayout.dragmode") is False
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


OVERLAPS = """(() => {
  const texts = [...document.querySelectorAll("[data-figure=small-cct] .xtick text")];
  const boxes = texts.map((one) => one.getBoundingClientRect());
  const over = boxes.slice(1).filter(({ left }, at) => left < boxes[at].right - 1);
  return boxes.length && [boxes.length, over.length];
})()"""


@browser
def test_names_of_many_bars_have_room(weft: Weft, small: Path, tmp_path: Path) -> None:
    """Those of 36 schemes, on a screen, on a telephone, where they scroll, and on paper."""
    listed = json.loads(weft("list", "schemes", "--json").stdout)
    names = [scheme["name"].replace("-N", "-4") for scheme in listed][:36]
    schemes = ("--schemes", ",".join(names), "--seeds", "1", "-q", "-o", "out")
    assert weft("run", small, "--set", 'sweep.refused="left-out"', *schemes).returncode == 0
    with Browser(tmp_path / "profile") as chromium:
        for width in (1400, 420):
            chromium.size(width, 900)
            chromium.open((tmp_path / "out" / "report.html").as_uri())
            drawn, over = chromium.wait_for(OVERLAPS)
            assert drawn > 30
            assert over == 0
            assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth")
        chromium.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert chromium.evaluate(OVERLAPS) == [drawn, 0]


STRANGE = """
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 2
[workload]
pattern = "permutation"
size = "64KB"
[report]
overview = ["max_qps", "switch_changes"]
[sweep]
"balance.scheme" = ["ecmp", "twill", "drill", "letflow", "ethereal"]
failures = [
    { name = "<!--<script>" },
    { name = "dead", dead = { links = ["leaf-0 <-> spine-0"], kind = "down", detect = "1s" } },
]
"""


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """An overview in a browser, with gaps where runs stalled and a case with a hostile name."""
    folder = tmp_path_factory.mktemp("strange")
    (folder / "strange.toml").write_text(STRANGE)
    made = command("run", "strange.toml", "-q", "-o", "out")
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=False)
    assert "stalled" in done.stderr
    with Browser(folder / "profile") as chromium:
        chromium.open((folder / "out" / "report.html").as_uri())
        chromium.wait_for("document.readyState === 'complete'")
        yield chromium


@browser
def test_a_name_does_not_end_the_script(strange: Browser) -> None:
    """Nor hide its end: without the script there are no figures."""
    assert strange.evaluate("document.body.innerText").count("<!--<script>") > 0
    count = "document.querySelectorAll('{}').length".format
    assert strange.evaluate(count(".plot .svg-container")) == strange.evaluate(count(".plot")) > 0


@browser
@pytest.mark.parametrize("head", ["dead", "mean", "asks of switches"])
def test_a_click_sorts_a_column(strange: Browser, head: str) -> None:
    """Numbers among which some are missing, and words."""
    shown = f"""(() => {{
      const heads = [...document.querySelectorAll("thead th")];
      const at = heads.findIndex((one) => one.textContent === {json.dumps(head)});
      heads[at].querySelector("button").click();
      return [...document.querySelector("tbody").rows].map((row) => row.cells[at].textContent);
    }})()"""

    def place(text: str) -> tuple[bool, float, str]:
        known = re.fullmatch(r"[\d.]+", text)
        return (known is None, float(text) if known else 0.0, text)

    for down in (False, True):
        cells = strange.evaluate(shown)
        assert cells == sorted(cells, key=place, reverse=down)
        assert len(set(cells)) > 2
    assert ("\N{EN DASH}" in cells) == (head != "asks of switches")


def test_text_is_escaped_and_the_source_is_shown(results: Path) -> None:
    """Notes may hold anything; the command and the code version make it repeatable."""
    from weft import code_version

    text = (results / "report.html").read_text()
    assert "nothing &lt;strange&gt;." in text
    assert "<strange>" not in text
    assert "weft run small.toml sizes.toml -o out\n" in text.replace("</code>", "\n")
    assert code_version in text
    assert "links_per_pair" not in text
    assert "hosts_per_leaf = 2" in text


def test_each_figure_is_a_file_of_each_format(results: Path) -> None:
    """Beside the report, not empty, with axis titles as text."""
    images = {path.stem for path in (results / "plots").glob("*.png")}
    vectors = {path.stem for path in (results / "plots").glob("*.svg")}
    assert images == vectors == {path.stem for path in (results / "plots").glob("*.pdf")}
    assert len(images) >= 10
    for path in (results / "plots").iterdir():
        if path.suffix == ".svg":
            ET.fromstring(path.read_text())
        else:
            assert path.read_bytes().startswith((b"\x89PNG", b"%PDF"))
    assert "completion time [" in (results / "plots" / "small-cct.svg").read_text()


def test_letters_without_a_font_are_told_once(weft: Weft, tmp_path: Path) -> None:
    """In one line for all plots; in SVG text stays text, which others look up fonts for."""
    # Of the last plane of Unicode: no font has them.
    odd = chr(0x10FFFD)
    variants = f'variant = [{{ name = "{odd}" }}, {{ name = "b", workload = {{ size = "8KB" }} }}]'
    (tmp_path / "odd.toml").write_text(SMALL.replace("[sweep]", f"[sweep]\n{variants}"))
    assert weft("run", "odd.toml", "-o", "out", "-q", "--no-report").returncode == 0
    done = weft("report", "out", "-q", "--plots", "svg")
    assert (done.returncode, done.stderr) == (0, "")
    done = weft("report", "out", "-q", "--plots", "svg,png,pdf")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert done.stderr.startswith(f"warning: plots: no font has {odd}, so they are boxes in .png, ")


def test_report_can_be_made_again(results: Path, weft: Weft) -> None:
    """From the tables alone, the same to the byte, without `runs/`."""
    copy = results.parent / "copy"
    shutil.copytree(results, copy, ignore=shutil.ignore_patterns("plots", "runs", "*.html"))
    (copy / "plots").mkdir()
    for name in ("earlier-cct.png", "earlier-links-2.svg", "mine.png", "earlier-cct.txt"):
        (copy / "plots" / name).touch()
    done = weft("report", copy, "--plots", "svg,png,pdf")
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in (results / "plots").iterdir()}
    # What an earlier report drew would pass for a result of this one.
    left = {path.name for path in (copy / "plots").iterdir()}
    assert left == drawn | {"mine.png", "earlier-cct.txt"}
    assert (copy / "report.html").read_bytes() == (results / "report.html").read_bytes()
    for path in (results / "plots").iterdir():
        assert (copy / "plots" / path.name).read_bytes() == path.read_bytes()


def test_nothing_is_drawn_that_nobody_asked_for(weft: Weft, small: Path) -> None:
    """No plots without `--plots`; the report's own part is small, and links to its numbers."""
    assert weft("run", small, "-o", "out", "-q").returncode == 0
    folder = small.parent / "out"
    assert not (folder / "plots").exists()
    page = (folder / "report.html").read_text()
    assert len(page) - len(get_plotlyjs()) < 1_000_000
    for name in ("runs.parquet", "flows.parquet", "links.parquet", "series.parquet"):
        assert f'href="{name}"' in page
        assert (folder / name).exists()
    assert "collectives.parquet" not in page
    assert weft("report", "out", "--plots", "pdf").returncode == 0
    drawn = {path.name for path in (folder / "plots").iterdir()}
    assert {name.rpartition(".")[2] for name in drawn} == {"pdf"}
    # What was asked for once is kept as the results are.
    (folder / "plots" / "small-cct.pdf").write_text("old")
    (folder / "plots" / "gone-cct.pdf").write_text("old")
    assert weft("report", "out").returncode == 0
    assert {path.name for path in (folder / "plots").iterdir()} == drawn
    assert (folder / "plots" / "small-cct.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ("report", "out", "--plots", "gif"),
            "gif: is no format; use one of svg, png, pdf",
        ),
        (("run", "small.toml", "--plots", "svg"), "add -o DIR to say where"),
        (("run", "small.toml", "-o", "out", "--no-report", "--plots", "svg"), "remove --no-report"),
    ],
)
def test_plots_that_cannot_be_are_refused(
    weft: Weft, small: Path, words: tuple[str, ...], what: str
) -> None:
    """In one line."""
    assert small.exists()
    done = weft(*words)
    assert done.returncode == 2
    assert what in done.stderr
