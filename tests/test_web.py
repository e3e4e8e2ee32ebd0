"""The page with the engine in it: in a real browser, from a folder, beside the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import Browser, browser
from conftest import Weft

ROOT = Path(__file__).parent.parent
TIMES = {"wall_s", "build_s", "events", "threads"}
"""Columns that depend on the machine."""
MOST_BYTES = 5_000_000
SMALL = (
    "fabric=leaf-spine:leaves=4,spines=4,hosts_per_leaf=4,link=100Gbps,delay=500ns"
    "&collective=all-reduce:algorithm=recursive-doubling,size=1MB"
)
DEAD = (
    "&failure=dead:kind=down,start=20us,detect=100us,tier=leaf-up,count=1,groups=[0,1]"
    "&schemes=ecmp,spray,ethereal,twill&seed=7"
)
FAT_TREE = (
    "fabric=fat-tree:k=4,link=100Gbps,delay=1us&pattern=permutation:size=400KB"
    "&failure=flaky:kind=flaky,every=20us,length=2us,tier=pod-up,count=1&schemes=reps,drill&seed=3"
)


def _has_target() -> bool:
    """Whether the compiler has what code for browsers needs."""
    if shutil.which("rustc") is None:
        return False
    ask = ["rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown"]
    found = subprocess.run(ask, capture_output=True, text=True, check=False)
    return found.returncode == 0 and Path(found.stdout.strip()).is_dir()


pytestmark = [
    pytest.mark.slow,
    browser,
    pytest.mark.skipif(
        not _has_target(), reason="no wasm32: `rustup target add wasm32-unknown-unknown`"
    ),
]


@pytest.fixture(scope="module")
def page() -> Path:
    """The page, built by `make web`."""
    # Not as a part of the make that may have started the tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-s", "web"], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ROOT / "out" / "web" / "index.html"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of this file."""
    with Browser(tmp_path_factory.mktemp("profile")) as tab:
        tab.size(1400, 1000)
        yield tab


def open_page(tab: Browser, page: Path, scenario: str = "") -> dict[str, Any]:
    """Open the page with a scenario and wait for its results."""
    tab.said.clear()
    tab.open(f"{page.as_uri()}#{scenario}")
    tab.wait_for("window.weft?.state === 'done'", 120)
    found: dict[str, Any] = tab.evaluate("({toml: weft.toml, runs: weft.runs})")
    return found


def run_file(tab: Browser, text: str) -> None:
    """Run an experiment file that is written by hand; its end is to be waited for."""
    tab.evaluate(f"""(() => {{
      document.querySelector("#file").value = {json.dumps(text)};
      document.querySelector("#file").dispatchEvent(new Event("input"));
      document.querySelector("#run").click();
    }})()""")


def shown(tab: Browser, place: str) -> str:
    """What a reader sees there; nothing of what is hidden."""
    return str(tab.evaluate(f"document.querySelector({json.dumps(place)}).innerText"))


def by_command_line(weft: Weft, folder: Path, toml: str) -> tuple[list[dict[str, Any]], set[str]]:
    """The rows of `weft run` on a file, and the keys of its results."""
    (folder / "scenario.toml").write_text(toml)
    done = weft("run", "scenario.toml", "--json", "-q", "--no-report", "-o", "out")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), {run.name for run in (folder / "out" / "runs").iterdir()}


def text_of(row: dict[str, Any]) -> str:
    """A row of the command line without times of the machine and the name of the file."""
    return json.dumps({name: row[name] for name in row if name not in TIMES | {"experiment"}})


@pytest.mark.parametrize("scenario", [SMALL + DEAD, FAT_TREE], ids=["dead link", "fat-tree"])
def test_rows_are_those_of_the_command_line(
    page: Path, tab: Browser, weft: Weft, tmp_path: Path, scenario: str
) -> None:
    """The file that the page hands out gives the same rows, byte for byte, under the same keys."""
    found = open_page(tab, page, scenario)
    rows, keys = by_command_line(weft, tmp_path, found["toml"])
    assert [run["row"] for run in found["runs"]] == [text_of(row) for row in rows]
    assert {run["key"] for run in found["runs"]} == keys
    assert tab.said == []


ALL = """
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[workload]
collective = "all-reduce"
algorithm = "recursive-doubling"
size = "256KB"
[failures.dead]
tier = "leaf-up"
groups = [0]
kind = "down"
start = "5us"
detect = "50us"
duration = "300us"
[sweep]
refused = "left-out"
"balance.scheme" = SCHEMES
"""
RUN_ALL = """(async () => {
  const { answer } = await weft.ask({ ask: "runs", text: TEXT });
  const rows = await Promise.all(answer.runs.map((one) => weft.ask({ ask: "run", ...one })));
  return rows.map(({ answer }) => answer.row);
})()"""


def test_every_scheme_runs_alike(page: Path, tab: Browser, weft: Weft, tmp_path: Path) -> None:
    """Addresses of 32 bits change nothing, whatever the scheme."""
    listed = json.loads(weft("list", "schemes", "--json").stdout)
    names = [scheme["name"].replace("-N", "-4") for scheme in listed]
    text = ALL.replace("SCHEMES", json.dumps(names))
    rows, _ = by_command_line(weft, tmp_path, text)
    assert len(rows) > 30
    open_page(tab, page, SMALL)
    found = tab.evaluate(RUN_ALL.replace("TEXT", json.dumps(text)))
    assert found == [text_of(row) for row in rows]


def test_the_page_is_small_and_whole(page: Path, tab: Browser) -> None:
    """One file below 5 MB, which asks no network for anything and shows a panel a scheme."""
    assert page.stat().st_size < MOST_BYTES
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    found = open_page(tab, page)
    assert tab.said == []
    assert tab.evaluate("document.querySelectorAll('article').length") == len(found["runs"])
    # What is drawn is more than paper: each canvas has several colours.
    colours = tab.evaluate("""[...document.querySelectorAll("canvas")].map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    })""")
    assert len(colours) == 1 + 4 * len(found["runs"])
    assert min(colours) > 3


def test_a_link_holds_the_whole_scenario(page: Path, tab: Browser) -> None:
    """What the address bar says after a run gives the same file again; so does a file by hand."""
    first = open_page(tab, page, SMALL + DEAD)
    again = open_page(tab, page, tab.evaluate("location.hash").removeprefix("#"))
    assert again == first
    by_hand = first["toml"].replace('"1MB"', '"500KB"')
    run_file(tab, by_hand)
    tab.wait_for(f"weft.state === 'done' && weft.toml === {json.dumps(by_hand)}")
    other = open_page(tab, page, tab.evaluate("location.hash").removeprefix("#"))
    assert other["toml"] == by_hand
    assert other["runs"] != first["runs"]


def test_runs_have_bounds_of_their_own(page: Path, tab: Browser) -> None:
    """A bound for all is said where it is one for all."""
    open_page(tab, page, SMALL)
    assert shown(tab, "#bound").startswith("The bound is ")
    toml = tab.evaluate("weft.toml")
    run_file(tab, toml + '"workload.size" = ["1MB", "64KB"]\n')
    tab.wait_for("weft.state === 'done' && weft.runs.length === 6")
    assert shown(tab, "#bound").startswith("Each run has a bound of its own, ")
    run_file(tab, toml + '[failures.dead]\nlinks = ["host-0 -> leaf-0"]\nkind = "down"\n')
    tab.wait_for("weft.state === 'done' && weft.runs.every(({ refusal }) => refusal)")
    assert [shown(tab, "#bound"), shown(tab, "#note")] == ["", "no run finished"]
    assert tab.evaluate("document.querySelector('canvas').clientWidth") == 0


def test_what_is_not_known_is_no_number(page: Path, tab: Browser) -> None:
    """By rates of flows nobody knows what is lost, and what is known is compared without that."""
    open_page(tab, page, SMALL)
    toml = tab.evaluate("weft.toml")
    sweep = '"run.fidelity" = ["packet", "fluid"]\n"balance.scheme" = ["ecmp", "ethereal"]\n'
    run_file(tab, toml[: toml.index("[probe]")] + "[sweep]\n" + sweep)
    tab.wait_for("weft.state === 'done' && weft.runs.length === 4")

    def column(head: str) -> list[str]:
        texts = "[...row.cells].map((one) => one.innerText.trim())"
        heads, *rows = tab.evaluate(
            f"[...document.querySelector('table').rows].map(row => {texts})"
        )
        return [row[heads.index(head)] for row in rows]

    assert column("lost") == ["0", "0", "\N{EN DASH}", "\N{EN DASH}"]
    best = "[...document.querySelectorAll('td.best')].map((one) => one.innerText)"
    queues = [json.loads(row)["peak_queue_bytes"] for row in tab.evaluate(ROWS)]
    assert queues[1] < queues[0]
    assert queues[2:] == [None, None]
    assert column("peak queue")[1] in tab.evaluate(best)


ROWS = "weft.runs.map(({ row }) => row)"


def test_what_was_not_sampled_is_not_drawn(page: Path, tab: Browser) -> None:
    """An empty frame from 0 to 0 would pass for a queue that is always empty."""
    open_page(tab, page, SMALL)
    assert shown(tab, "#warnings") == ""
    every = tab.evaluate("document.querySelectorAll('article canvas').length")
    toml = tab.evaluate("weft.toml")
    probes, rest = (
        toml[toml.index("[probe]") : toml.index("[sweep]")],
        toml[toml.index("[sweep]") :],
    )
    run_file(tab, toml.replace(probes, ""))
    tab.wait_for(f"weft.state === 'done' && weft.toml.length === {len(toml) - len(probes)}")
    assert "under [probe]" in shown(tab, "#warnings")
    assert tab.evaluate("document.querySelectorAll('article canvas').length") == every * 2 // 4
    # A file that is refused leaves what there is, and what is said of it.
    run_file(tab, rest)
    tab.wait_for("weft.state === 'refused'")
    assert "under [probe]" in shown(tab, "#warnings")
    assert shown(tab, "#note") == "What is shown is of the run before."
    run_file(tab, 'extends = "other.toml"\n' + toml)
    tab.wait_for("document.querySelector('#error').textContent.startsWith('extends')")
    assert shown(tab, "#error").endswith("and use weft run: a page reads no files")


@pytest.mark.parametrize(
    ("link", "why"),
    [
        (SMALL.split("&")[0] + "&colle", "colle is not known"),
        (SMALL.split("&")[0], "there is no job in it"),
        (SMALL + "&failure=boom", "failure boom is not known"),
        (SMALL + "&failure=constructor", "failure constructor is not known"),
        (SMALL + "&seed=1&seed=2", "seed is there twice"),
        (SMALL.replace("spines=4", "leaves=8"), "leaves is there twice"),
        (SMALL + "&pattern=ring:size=1MB", "there are two jobs in it, collective and pattern"),
        (SMALL + "&toml=S85ILUktAgA", "there is a whole file in it, and more"),
        ("toml=cut", "its file is damaged"),
    ],
)
def test_a_link_that_cannot_be_read_runs_nothing(
    page: Path, tab: Browser, link: str, why: str
) -> None:
    """What the page begins with would pass for what the link says."""
    tab.open(f"{page.as_uri()}#{link}")
    tab.wait_for("['refused', 'done'].includes(window.weft?.state)")
    assert shown(tab, "#error").startswith(f"The link cannot be read: {why}.")
    assert tab.evaluate("[weft.runs.length, location.hash]") == [0, f"#{link}"]


def test_mistakes_are_said_in_one_line(
    page: Path, tab: Browser, weft: Weft, tmp_path: Path
) -> None:
    """The page says what the command line says."""
    wrong = SMALL.replace("leaves=4", "leaves=zero")
    tab.open(f"{page.as_uri()}#{wrong}")
    tab.wait_for("window.weft?.state === 'refused'")
    line = shown(tab, "#error")
    # In sight, below a form that is longer than the window.
    place = "document.querySelector('#error').getBoundingClientRect()"
    assert tab.evaluate(f"document.querySelector('form').offsetHeight > {place}.bottom")
    assert tab.evaluate(f"{place}.bottom <= innerHeight")
    (tmp_path / "wrong.toml").write_text(tab.evaluate("document.querySelector('#file').value"))
    done = weft("run", "wrong.toml")
    assert done.returncode == 2
    assert done.stderr.strip() == f"error: wrong.toml: {line}"


def test_a_job_that_there_is_not_is_shown_as_it_is(page: Path, tab: Browser) -> None:
    """The form says what is refused, not the first job of its list; any other one can be chosen."""
    tab.open(f"{page.as_uri()}#{SMALL.split('&')[0]}&model=gpt&schemes=ecmp")
    tab.wait_for("window.weft?.state === 'refused'")
    assert 'unknown value "gpt"' in shown(tab, "#error")
    job = "document.querySelector('select[aria-label=Job]')"
    assert tab.evaluate(f"{job}.selectedOptions[0].textContent") == "gpt"
    tab.evaluate(f"{job}.value = 'pattern:ring', {job}.dispatchEvent(new Event('change'))")
    tab.evaluate("document.querySelector('#run').click()")
    tab.wait_for("weft.state === 'done'")
    assert json.loads(tab.evaluate("weft.runs[0].row"))["workload"] == "ring"


def test_a_run_can_be_stopped_and_begun_again(page: Path, tab: Browser) -> None:
    """Also while its engines start."""
    press = "document.querySelector('#{}').click()"
    for wait in ("", "await new Promise((done) => setTimeout(done, 100));"):
        open_page(tab, page, SMALL)
        tab.evaluate(f"(async () => {{ {press.format('run')}; {wait} {press.format('stop')} }})()")
        assert tab.evaluate("weft.state") in ("stopped", "done")
        assert tab.evaluate("document.querySelector('#run').disabled") is False
        tab.evaluate(press.format("run"))
        tab.wait_for("weft.state === 'done'")
        assert tab.said == []


def engine(text_bytes: int) -> list[int]:
    """A compiled engine that traps at each question, with so many bytes of text left (below 64)."""

    def section(number: int, *parts: bytes) -> bytes:
        content = bytes([len(parts)]) + b"".join(parts)
        return bytes([number, len(content)]) + content

    def export(name: str, kind: int, index: int) -> bytes:
        return bytes([len(name)]) + name.encode() + bytes([kind, index])

    def number(value: int) -> bytes:
        return bytes([4, 0, 0x41, value, 0x0B])

    functions = ["weft_room", "weft_answer", "weft_text", "weft_text_bytes"]
    exports = [export(name, 0, at) for at, name in enumerate(functions)]
    return list(
        b"\0asm\1\0\0\0"
        + section(1, b"\x60\1\x7f\1\x7f", b"\x60\0\0", b"\x60\0\1\x7f")
        + section(3, b"\0", b"\1", b"\2", b"\2")
        + section(5, b"\0\1")
        + section(7, export("memory", 2, 0), *exports)
        + section(10, number(0), b"\3\0\0\x0b", number(0), number(text_bytes))
    )


ASK_ENGINE = """new Promise((resolve) => {
  const { textContent } = document.querySelector("#worker");
  const worker = new Worker(URL.createObjectURL(new Blob([textContent])));
  worker.onmessage = ({ data }) => {
    if (data.ready) return worker.postMessage({ question: "panicked" });
    worker.terminate();
    resolve(data.error.line);
  };
  worker.postMessage({ bytes: new Uint8Array(BYTES) });
})"""


def test_an_engine_that_ends_says_why(page: Path, tab: Browser) -> None:
    """A panic with its text, a fault of Weft; without one there was no memory left."""
    open_page(tab, page, SMALL)
    panic, memory = (
        tab.evaluate(ASK_ENGINE.replace("BYTES", json.dumps(engine(length)))) for length in (10, 0)
    )
    assert panic == 'unexpected: "panicked"; please report it with this scenario'
    assert memory.startswith("the run needs more memory than a page has, 4 GB at most; use fewer")


def test_by_keyboard_and_by_ear(page: Path, tab: Browser) -> None:
    """A form that is built anew keeps the focus and what is open; all has a name of its own."""
    open_page(tab, page, SMALL)
    focused = "document.activeElement.ariaLabel ?? document.activeElement.id"
    tab.evaluate("document.querySelector('fieldset details').open = true")
    for label in ("Fabric", "Job", "Scheme 2", "Failure"):
        tab.evaluate(f"""(() => {{
          const list = document.querySelector("select[aria-label='{label}']");
          list.focus();
          list.selectedIndex += 1;
          list.dispatchEvent(new Event("change"));
        }})()""")
        assert tab.evaluate(focused) == label
    assert tab.evaluate("document.querySelector('fieldset details').open")
    open_page(tab, page, SMALL)
    tab.evaluate(
        "(() => { const run = document.querySelector('#run'); run.focus(); run.click(); })()"
    )
    assert tab.evaluate(focused) == "stop"
    tab.wait_for("weft.state === 'done'")
    assert tab.evaluate(focused) == "run"
    names = tab.evaluate("""[...document.querySelectorAll("input, select, canvas, progress")].map(
      (one) => one.ariaLabel ?? one.labels?.[0]?.textContent)""")
    assert None not in names
    drawn = [name for name in names if ": " in name]
    assert len(set(drawn)) == len(drawn) == 15


def test_marks_change_their_colours_with_the_lines(page: Path, tab: Browser) -> None:
    """When the system turns dark while the page is open."""
    open_page(tab, page, SMALL)
    marks = (
        "[...document.querySelectorAll('.swatch line')].map((one) => one.getAttribute('stroke'))"
    )
    light = tab.evaluate(marks)
    tab.size(1400, 1000, dark=True)
    tab.wait_for(f"!{marks}.some((colour) => {json.dumps(light)}.includes(colour))", 10)
    tab.size(1400, 1000)


LATE = """(async () => {
  const { flow_lines } = await import("weft/charts");
  const finishes = [...Array(20).keys()].map((at) => at + 1);
  const flows = finishes.map((finish) => ({ start: 0, finish }));
  const { canvas, draw } = flow_lines({ finishes, flows });
  document.body.append(canvas);
  const colours = { soft: "#000", text: "#000", paper: "#fff" };
  draw({ queue: "#ff0000", ramp: Array(9).fill("#0000ff"), ...colours }, 20, 20);
  const { data } = canvas.getContext("2d").getImageData(60, 0, 1, canvas.height);
  canvas.remove();
  const rows = [...Array(canvas.height).keys()];
  const red = rows.map((y) => data[4 * y] > 200 && data[4 * y + 2] < 50);
  return red.filter((one, y) => one && !red[y - 1]).length;
})()"""


def test_one_of_twenty_flows_is_late(page: Path, tab: Browser) -> None:
    """What is later than 95 % of all is a flow of twenty, not none."""
    open_page(tab, page, SMALL)
    assert tab.evaluate(LATE) == 1


def test_a_long_run_counts_its_seconds(page: Path, tab: Browser) -> None:
    """Until it is over, or is stopped."""
    tab.open(f"{page.as_uri()}#fabric=fat-tree:k=32&collective=all-reduce:size=64MB&schemes=ecmp")
    seconds = "document.querySelector('#elapsed')?.textContent"
    tab.wait_for(f"{seconds}?.startsWith('2 s so far')")
    tab.evaluate("document.querySelector('#stop').click()")
    assert tab.evaluate(seconds) == ""


def test_nothing_is_cut_or_covered_on_paper(page: Path, tab: Browser) -> None:
    """What scrolls or floats on the screen lies over something, or ends, on paper."""
    open_page(tab, page, SMALL)
    tab.size(700, 1000)
    tab.command("Emulation.setEmulatedMedia", media="print")
    cut = "((one) => one.scrollWidth - one.clientWidth)(document.querySelector('#table'))"
    floats = "getComputedStyle(document.querySelector('.player')).position"
    try:
        assert tab.evaluate(f"[{cut}, {floats}]") == [0, "static"]
    finally:
        tab.command("Emulation.setEmulatedMedia", media="")
        tab.size(1400, 1000)


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_nothing_is_wider_than_the_page(page: Path, tab: Browser, width: int) -> None:
    """On a telephone, too, only the table scrolls, inside itself."""
    tab.size(width, 900)
    open_page(tab, page, SMALL)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
