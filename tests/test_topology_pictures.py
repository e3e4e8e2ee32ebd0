"""Pictures of fabrics: every link is in them once, with what it carried and how it fails."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import STALLS, Weft
from weft import _native
from weft.analysis import topology_picture
from weft.report.figures import drawing_plotly
from weft.report.figures.fabric import network, picture, sketch
from weft.report.figures.fabric.sketch import LEFT, LETTER
from weft.report.figures.model import Drawing
from weft.study import inputs

DRAGONFLY = {"topology": "dragonfly", "groups": 9, "routers": 4, "hosts_per_leaf": 2}
WITH_GLOBAL = {**DRAGONFLY, "global_ports": 2}
LARGE_DRAGONFLY = {**WITH_GLOBAL, "groups": 33, "routers": 8, "global_ports": 4}
PLUS = {"topology": "dragonfly+", "groups": 5, "leaves": 4, "spines": 4, "hosts_per_leaf": 2}
RING = {
    "topology": "graph",
    "host_switches": list(range(9)),
    "links": [f"{a} {(a + 1) % 9}" for a in range(9)],
}
LEAVES = {"topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4}


def network_of(
    fabric: dict[str, Any], failures: dict[str, Any] | None = None, load: bool = False
) -> network.Network:
    """The network of a fabric; with a load of 1, 2, 3, ... per cent of a thousand by port."""
    table: dict[str, Any] = {
        "fabric": fabric,
        "failures": failures or {},
        **topology_picture.NO_TRAFFIC,
    }
    spec = inputs.from_dict(table).runs[0]
    net = network.of(spec["experiment"], spec["seed"])
    if not load:
        return net
    ports = 2 * int(net.links.count.sum() + net.host_links.count.sum())
    return network.of(spec["experiment"], spec["seed"], np.arange(ports) / ports)


def ends(drawn: Drawing) -> list[str]:
    """The links that are drawn as lines, as their notes name them."""
    return [
        one.note.split(":")[0]
        for one in drawn.strokes
        if one.kind == "link" and "hosts" not in one.note
    ]


@pytest.mark.parametrize(
    ("fabric", "links", "pairs"),
    [
        (LEAVES, 16, 16),
        ({"topology": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 1}, 1, 1),
        ({**LEAVES, "links_per_pair": 3}, 48, 16),
        ({"topology": "fat-tree", "k": 8}, 256, 256),
        (WITH_GLOBAL, 54 + 36, 90),
        ({**PLUS, "global_ports": 2}, 80 + 20, 100),
        ({"topology": "torus", "sizes": "4x4x4"}, 192, 192),
        ({"topology": "torus", "sizes": "5x3", "edges": "ends"}, 22, 22),
        (RING, 9, 9),
    ],
)
def test_every_link_of_a_small_fabric_is_a_line(
    fabric: dict[str, Any], links: int, pairs: int
) -> None:
    """Also in plain words: as many links as the topology has, one line between two switches."""
    net = network_of(fabric)
    assert int(net.links.count.sum()) == links
    drawn = picture.drawing(net)
    # A link around a torus has a stub at both ends.
    assert len(set(ends(drawn))) == pairs
    assert sum(box.kind == "switch" for box in drawn.boxes) == len(net.names)


@pytest.mark.parametrize(
    "fabric",
    [
        {"topology": "fat-tree", "k": 16},
        {**LEAVES, "leaves": 300, "spines": 40},
        LARGE_DRAGONFLY,
        {"topology": "torus", "sizes": "8x8x8"},
    ],
)
def test_a_large_fabric_is_folded(fabric: dict[str, Any]) -> None:
    """Few lines, and the busiest link is as busy as before, whatever shares its cell."""
    net = network_of(fabric, load=True)
    drawn = picture.drawing(net)
    assert len(drawn.strokes) < 70
    cells = [cell for one in drawn.cells for row in one.values for cell in row if cell is not None]
    most = 100 * float(np.nanmax(net.links.load))
    assert max(cells) == pytest.approx(most, rel=1e-3)
    assert all(len(one.values) <= 128 and len(one.values[0]) <= 128 for one in drawn.cells)


def test_without_load_a_matrix_shows_what_is_linked() -> None:
    """A ring is no mesh: two cells a row, and all cells only where all are linked."""
    ring = {
        "topology": "graph",
        "host_switches": list(range(125)),
        "links": [f"{a} {(a + 1) % 125}" for a in range(125)],
    }
    drawn = picture.drawing(network_of(ring))
    cell = drawn.boxes[0].width / 125
    lengths = [one.points[1][0] - one.points[0][0] for one in drawn.strokes]
    assert [round(length / cell) for length in lengths] == [1] * 250
    assert [one.kind for one in drawn.boxes] == ["frame"]
    groups = {**DRAGONFLY, "groups": 57, "routers": 8, "global_ports": 7}
    drawn = picture.drawing(network_of(groups))
    assert ([one.kind for one in drawn.boxes], drawn.strokes) == (["mesh"], ())


@pytest.mark.parametrize("sizes", ["2x16x32", "8x8x16"])
@pytest.mark.parametrize("edges", ["around", "ends"])
def test_links_of_all_dimensions_are_counted(sizes: str, edges: str) -> None:
    """Dimensions may have unequal numbers of links."""
    net = network_of({"topology": "torus", "sizes": sizes, "edges": edges})
    words = [one.text for one in picture.drawing(net).words]
    assert any(f"\n{int(net.links.count.sum()):,} links\n" in text for text in words)


BUNDLES = {"topology": "clos", "tiers": 3, "pods": 12, "leaves": 16, "aggs": 16, "cores": 64}


@pytest.mark.parametrize("load", [False, True])
@pytest.mark.parametrize(
    "fabric",
    [
        {"topology": "fat-tree", "k": 8},
        {"topology": "fat-tree", "k": 16},
        {**BUNDLES, "hosts_per_leaf": 8, "links_per_pair": 2, "core_links_per_pair": 2},
    ],
)
def test_texts_beside_a_fabric_have_room(fabric: dict[str, Any], load: bool) -> None:
    """They end where the drawing begins, and none lies on the next."""
    drawn = picture.drawing(network_of(fabric, load=load))
    beside = sorted((one for one in drawn.words if one.x < LEFT / 2), key=lambda one: one.y)
    assert len(beside) == 6
    height = []
    for one in beside:
        lines = one.text.split("\n")
        assert max(map(len, lines)) * LETTER * one.size / 8 <= LEFT
        height.append(len(lines) * 1.25 * one.size / 72)
    for low, high in pairwise(range(len(beside))):
        assert beside[low].y + (height[low] + height[high]) / 2 < beside[high].y
    # Of none of these fabrics a line is several links.
    assert "a line is" not in str(beside)


def test_a_link_has_its_load_and_its_failure() -> None:
    """The busier direction counts, and of failures a sign of their kind."""
    failures = {
        "a": {"kind": "down", "links": ["leaf-1 -> spine-2"]},
        "b": {"kind": "degraded", "lost": 0.5, "links": ["leaf-2 <-> spine-0"]},
        "c": {"kind": "flaky", "every": "1us", "length": "100ns", "links": ["host-3 <-> leaf-0"]},
    }
    net = network_of(LEAVES, failures, load=True)
    drawn = picture.drawing(net)
    assert drawn.kinds == ["down", "degraded", "flaky"]
    assert {sign.kind for sign in drawn.signs} == {"down", "degraded", "flaky"}
    said = {one.note.split(":")[0]: one for one in drawn.strokes if one.kind == "link"}
    names = [f"leaf-{leaf} \N{EN DASH} spine-{spine}" for leaf in range(4) for spine in range(4)]
    assert set(names) <= set(said)
    row = next(
        row
        for row in range(len(net.links))
        if (net.links.lower[row], net.links.upper[row]) == (1, 6)
    )
    dead = said["leaf-1 \N{EN DASH} spine-2"]
    assert dead.value == pytest.approx(100 * max(net.links.up[row], net.links.down[row]))
    assert dead.note.endswith("down")
    words = " ".join(net.failures)
    assert "leaf-1 \N{RIGHTWARDS ARROW} spine-2 down" in words
    assert "leaf-2 \N{EN DASH} spine-0 degraded by 50 %" in words
    assert "host-3 \N{EN DASH} leaf-0 flaky: down 10 % of the time" in words


def test_the_caption_says_which_direction_fails() -> None:
    """An arrow, where the other one works on."""
    failures = {
        "a": {"kind": "down", "links": ["spine-2 -> leaf-1"]},
        "b": {"kind": "down", "links": ["leaf-0 -> host-1"], "start": "10us"},
    }
    assert network_of(LEAVES, failures).failures == [
        "leaf-0 \N{RIGHTWARDS ARROW} host-1 down from 10.00 \N{MICRO SIGN}s",
        "spine-2 \N{RIGHTWARDS ARROW} leaf-1 down",
    ]


def test_part_of_a_bundle_that_fails_is_said_so() -> None:
    """The line stays whole; beside its sign is how many links it is about."""
    failures = {"a": {"kind": "down", "links": ["leaf-1 -> spine-2#1"]}}
    drawn = picture.drawing(network_of({**LEAVES, "links_per_pair": 3}, failures))
    assert {one.kind for one in drawn.strokes} == {"link"}
    assert [sign.kind for sign in drawn.signs] == ["down"]
    assert "1 of 3" in [words.text for words in drawn.words]


def test_no_line_goes_through_what_is_said_of_it() -> None:
    """Rates and parts of bundles stand beside links, whichever way these run."""
    links = ["0 1", "1 2 200Gbps", "1 2 200Gbps", "2 0", "2 0"]
    graph = {"topology": "graph", "host_switches": [0, 1, 2], "links": links}
    failures = {"a": {"kind": "down", "links": ["switch-1 <-> switch-2#1"]}}
    drawn = picture.drawing(network_of(graph, failures))
    said = [one for one in drawn.words if one.x > LEFT]
    assert sorted(one.text for one in said) == [
        *("1 of 2", "100 Gbps", "2\N{MULTIPLICATION SIGN}100 Gbps"),
        "2\N{MULTIPLICATION SIGN}200 Gbps",
    ]
    lines = [one.points for one in drawn.strokes]
    for one in said:
        wide, tall = LETTER * one.size / 8 * len(one.text), one.size / 72
        left = one.x - {"left": 0.0, "center": 0.5, "right": 1.0}[one.align] * wide
        for line in lines:
            for part in np.linspace(0.0, 1.0, 200):
                x, y = sketch.along(line, part)
                assert not (left <= x <= left + wide and abs(y - one.y) < tall / 2), one


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        ({"topology": "torus", "sizes": "2x2"}, False),
        ({"topology": "torus", "sizes": "3x2"}, True),
        ({"topology": "torus", "sizes": "3x2", "edges": "ends"}, False),
    ],
)
def test_stubs_are_spoken_of_where_there_are_some(fabric: dict[str, Any], said: bool) -> None:
    """A grid of two is as long as a ring of two."""
    drawn = picture.drawing(network_of(fabric))
    assert (len(ends(drawn)) > len(set(ends(drawn)))) is said
    assert ("stubs go around" in str(drawn.words)) is said


def test_as_many_links_everywhere_are_one_number() -> None:
    """Beside the groups of a dragonfly."""
    drawn = picture.drawing(network_of({**LARGE_DRAGONFLY, "global_ports": 8}))
    (said,) = (one.text for one in drawn.words if "block" in one.text)
    assert said == "Every block is a group.\na line is 2 links"


def test_planes_are_drawn_where_they_differ() -> None:
    """Of eight planes that are alike one; of those in which something fails at least these."""
    fabric = {**LEAVES, "planes": 8}
    alike = picture.drawing(network_of(fabric))
    assert len(ends(alike)) == 16
    failures = {"a": {"kind": "down", "links": ["plane-6-leaf-1 -> plane-6-spine-2"]}}
    drawn = picture.drawing(network_of(fabric, failures))
    assert len(ends(drawn)) == 4 * 16
    assert any("plane-6-leaf-1" in one.note and "down" in one.note for one in drawn.strokes)


def test_the_page_has_the_same_lines() -> None:
    """Plotly's traces hold a point list for each stroke of the drawing."""
    drawn = picture.drawing(network_of(LEAVES, load=True))
    traces = drawing_plotly.draw(drawn)["data"]
    lines = [trace for trace in traces if trace["type"] == "scatter" and trace["mode"] == "lines"]
    assert sum(trace["x"].count(None) for trace in lines) == len(drawn.strokes)


def test_links_that_hardly_carry_anything_are_pale() -> None:
    """At 1 % a line is thin, and the scale ends at 10 %, which the caption says."""
    spec = inputs.from_dict({"fabric": LEAVES, **topology_picture.NO_TRAFFIC}).runs[0]
    net = network.of(spec["experiment"], spec["seed"], np.full(64, 0.01))
    figure = picture.figure(net, "fabric", "Title", "Load.")
    drawn = figure.panels[0].plot
    assert isinstance(drawn, Drawing)
    assert drawn.scale is not None
    assert drawn.scale.limits == (0.0, 10.0)
    assert max(stroke.width for stroke in drawn.strokes) < 1.1
    assert figure.caption == "Load. Colours end at 10 %: no link had more load."


def test_load_is_that_of_the_run(weft: Weft, tmp_path: Path) -> None:
    """The same picture from results and from the experiment, and files of the kind asked for."""
    (tmp_path / "e.toml").write_text(
        "fabric = { topology = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 2 }\n"
        "workload = { pattern = 'all-to-all', size = '16KB' }\n"
        "sweep = { 'balance.scheme' = ['ecmp', 'spray'] }\n"
    )
    assert weft("run", "e.toml", "-o", "out", "--no-report", "-q").returncode == 0
    for words in (["out", "--run", "1"], ["e.toml", "--run", "1"]):
        done = weft("topology", "draw", *words, "-o", f"{words[0]}.svg")
        assert done.returncode == 0, done.stderr
        assert "Run 1 (spray, seed 1)" in done.stderr
    drawn = [(tmp_path / f"{name}.svg").read_text() for name in ("out", "e.toml")]
    assert drawn[0] == drawn[1]
    assert "utilisation" in drawn[0]
    assert weft("topology", "draw", "e.toml", "-o", "bare.png", "-q").returncode == 0
    (tmp_path / "fabric.toml").write_text("fabric = { topology = 'fat-tree', k = 4 }\n")
    done = weft("topology", "draw", "fabric.toml", "-o", "alone.pdf")
    assert "16 hosts, 20 switches" in done.stderr
    assert (tmp_path / "bare.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["leaf-spine:leaves=2,spines=2,hosts=2", "-o", "a.gif"], "use a name that ends in .svg"),
        (
            ["leaf-spine:leaves=2,spines=2,hosts=2", "-o", "a.svg", "--run", "0"],
            "fabric without traffic",
        ),
        (["e.toml", "-o", "a.svg", "--run", "9"], "--run 9: no such run in e.toml; use 0 to 0"),
        (["nothing.toml", "-o", "a.svg"], "nothing.toml: no such file"),
        (["nothing.toml", "-o", "a.svg", "--run", "0"], "nothing.toml: no such file"),
        (["nothing.topo", "-o", "a.svg"], "nothing.topo"),
        ([".", "-o", "a.svg"], "no results there"),
        (["ring:leaves=2", "-o", "a.svg"], "ring"),
    ],
)
def test_mistakes_take_one_line(weft: Weft, tmp_path: Path, words: list[str], says: str) -> None:
    """And exit with 2."""
    (tmp_path / "e.toml").write_text(
        "fabric = { topology = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 2 }\n"
        "workload = { pattern = 'all-to-all', size = '16KB' }\nbalance.scheme = 'ecmp'\n"
    )
    done = weft("topology", "draw", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "a.svg").exists()


def test_runs_that_there_are_end_with_the_last(weft: Weft, small: Path) -> None:
    """The first few alone would pass for all of them."""
    words = ("-o", "out", "--seeds", "4", "-q", "--no-report")
    assert weft("run", small, *words).returncode == 0
    done = weft("topology", "draw", "out", "-o", "a.svg", "--run", "12")
    assert done.stderr.endswith("no such run in out; there are 0, 1, 2, 3, 4, 5, 6, ..., 11\n")


def test_a_run_that_stalls_has_no_load(weft: Weft, tmp_path: Path) -> None:
    """That is a line on the experiment, and no internal error."""
    (tmp_path / "e.toml").write_text(STALLS)
    done = weft("topology", "draw", "e.toml", "-o", "a.svg", "--run", "0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: the run stalled: ")


def test_ports_are_those_of_the_links_table() -> None:
    """`fabric_tables` numbers ports as results do, so that load lands on its own link."""
    table = {"fabric": {"topology": "fat-tree", "k": 4}, **topology_picture.NO_TRAFFIC}
    spec = inputs.from_dict(table).runs[0]
    text = json.dumps(spec["experiment"])
    found, run = _native.fabric_tables(text, 1), _native.run(text, 1)
    names, links = found["switches"]["name"], found["links"]
    for port, back, low, high in zip(
        links["port"], links["reverse"], links["switch"], links["upper"], strict=True
    ):
        if low != 2**32 - 1:
            assert (run["links"]["from"][port], run["links"]["to"][port]) == (
                names[low],
                names[high],
            )
            assert run["links"]["to"][back] == names[low]
