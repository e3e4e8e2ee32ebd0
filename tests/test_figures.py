"""What tables and figures say about known numbers: grouping, means, units, choices."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rc_context

import weft
from weft import units
from weft.report import tables, usual_columns
from weft.report.figures import (
    axes,
    collectives,
    draw_matplotlib,
    draw_plotly,
    drawing_matplotlib,
    fct,
    goodput,
    link_load,
    metrics,
    palette,
    queues,
    subset,
)
from weft.report.figures.model import Axis, Bars, Curve, Drawing, Figure, HeatMap, Lines, Panel
from weft.report.grouping import group
from weft.report.views import View
from weft.study import stats
from weft.study.settings import Settings


def row(scheme: str, seed: int, cct: float, **swept: Any) -> dict[str, Any]:
    """A run whose bound is 10 us."""
    return {
        "scheme": scheme,
        "seed": seed,
        "hosts": 4,
        "cct_s": cct,
        "bound_s": 1e-5,
        "slowdown": cct / 1e-5,
        "fct_p99_s": cct / 2,
        "drops": 0,
        "retransmits": 12,
        "spurious_retransmits": 3,
        "max_qps": 5,
        "peak_queue_bytes": 1.5e6,
        "swept": {"balance.scheme": scheme, **swept},
    }


TWO = [row("ecmp", 1, 2e-5), row("ecmp", 2, 4e-5), row("ethereal", 1, 1e-5)]
TWO += [row("ethereal", 2, 1e-5)]


def test_student_quantiles() -> None:
    """As printed in tables; beyond 30 the series takes over without a step."""
    assert stats.student_t95(1) == 12.706
    assert stats.student_t95(30) == 2.042
    assert stats.student_t95(31) == pytest.approx(2.0395, abs=5e-4)
    assert stats.student_t95(120) == pytest.approx(1.9799, abs=5e-4)


def test_confidence_interval_of_two() -> None:
    """Samples 2 and 4: standard error 1, one degree of freedom."""
    mean = stats.mean([2.0, 4.0])
    assert mean.value == 3.0
    assert mean.half == pytest.approx(12.706)
    assert stats.mean([7.0]) == stats.Mean(7.0, None, 1)
    assert stats.mean([0.1 + 0.2, 0.3, 0.3]).half == 0


@given(st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=50))
def test_mean_lies_within_its_samples(samples: list[float]) -> None:
    """But for rounding."""
    mean = stats.mean(samples)
    assert min(samples) * (1 - 1e-9) <= mean.value <= max(samples) * (1 + 1e-9)
    assert mean.half is not None
    assert mean.half >= 0


def test_table_compares_the_means_that_it_shows() -> None:
    """10 us over 30, though seed by seed it is 1/2 and 1/4; two seeds that differ prove nothing."""
    table = tables.summarise(group(TWO))
    ecmp, ethereal = table.sections[0].lines
    assert ethereal.cells[2].text == f"{usual_columns.MINUS}67 ± 141 % n.s."
    assert (ethereal.cells[2].unsure, ecmp.cells[2].unsure) == (True, False)
    assert table.basis == "mean of 2 seeds, ± 95 % confidence; n.s.: not significant"
    assert ecmp.cells[2].text == "0.0 %"
    assert ecmp.cells[0].value == pytest.approx(3e-5)
    assert ecmp.cells[0].text == "30.00 ± 127 µs"
    assert ecmp.cells[1].text == "3.000"
    assert ecmp.cells[5].text == "12 (3)"
    assert ecmp.cells[7].text == "1.500 MB"


def test_tiny_intervals_have_a_unit_of_their_own() -> None:
    """Of 2.6 ms a few nanoseconds are a fraction that nobody reads."""
    close = [row("ecmp", seed, 2.631e-3 + seed * 1e-8) for seed in (1, 2)]
    assert tables.summarise(group(close)).sections[0].lines[0].cells[0].text == "2.631 ms ± 64 ns"
    same = [row("ecmp", seed, 2.631e-3) for seed in (1, 2)]
    assert tables.summarise(group(same)).sections[0].lines[0].cells[0].text == "2.631 ± 0 ms"


def test_table_of_some_of_the_runs_says_so() -> None:
    """After an interrupt: not all means are of as many seeds, and not all runs are there."""
    table = tables.summarise(group(TWO[:3]), wanted=6)
    text = tables.text(table, "Title", 200)
    assert text.endswith(
        "mean of 1 to 2 seeds, ± 95 % confidence; only 3 of 6 runs; lower bound 10.00 µs; "
        "slowdown: completion time / lower bound; retransmits in parentheses: spurious ones"
    )
    assert table.sections[0].lines[1].cells[2].text == "other seeds"
    assert "runs" not in tables.text(tables.summarise(group(TWO), wanted=4), "Title", 80)
    assert "mean of 1 to 2 seeds" in metrics.completion_times(group(TWO[:3])).caption


def test_single_runs_are_of_a_seed_that_all_have() -> None:
    """A queue figure shows the same seed under every scheme."""
    grouping = group(TWO[1:])
    assert grouping.sample_seed == 2
    chosen = [grouping.sample(grouping.categories[0], name) for name in grouping.series]
    assert [one["seed"] for one in chosen if one] == [2, 2]
    assert "means over seeds" in subset.of_one_run(grouping)


def test_reference_is_the_first_scheme_without_ecmp() -> None:
    """The column says which."""
    table = tables.summarise(group([row("spray", 1, 1e-5), row("reps", 1, 2e-5)]))
    assert "vs spray" in table.columns
    assert table.sections[0].lines[1].cells[2].text == "+100.0 %"


@pytest.mark.parametrize("width", [80, 200])
def test_table_fits_a_terminal(width: int) -> None:
    """Every line within the width, numbers uncut."""
    text = tables.text(tables.summarise(group(TWO)), "Title", width)
    assert max(map(len, text.splitlines())) <= width
    assert "30.00 ± 127 µs" in text


def test_groups_tell_series_x_and_facets() -> None:
    """Schemes are series, the longest numeric key is x, the rest are facets."""
    rows = [
        row(scheme, 1, 1e-5, **{"workload.size": size, "workload.launch": launch})
        for scheme in ("ecmp", "spray")
        for size in ("4KB", "16KB", "1MB")
        for launch in ("successor", "same-rank")
    ]
    grouping = group(rows)
    assert grouping.series == ["ecmp", "spray"]
    assert grouping.x_key == "workload.size"
    assert grouping.facets == ["successor", "same-rank"]
    assert grouping.numeric_x() == {"4KB": 4e3, "16KB": 16e3, "1MB": 1e6}
    assert grouping.categories[0].label == "successor, size 4KB"
    assert all(len(cell) == 1 for cell in grouping.cells.values())


@pytest.mark.parametrize(
    ("key", "values"),
    [("workload.size", ("1M", "4M", "16M")), ("fabric.link", ("100G", "200G", "1T"))],
)
def test_letters_alone_are_numbers(key: str, values: tuple[str, ...]) -> None:
    """They go on the x axis, though nobody knows whether they are sizes or rates."""
    grouping = group([row("ecmp", 1, 1e-5, **{key: value}) for value in values])
    assert (grouping.series, grouping.x_key) == (["ecmp"], key)
    assert list(grouping.numeric_x() or ()) == list(values)


def test_named_x_wins() -> None:
    """`report.x` of the experiment decides where two keys are numeric."""
    rows = [
        row("ecmp", 1, 1e-5, **{"workload.size": size, "fabric.k": k})
        for size in ("4KB", "16KB", "1MB")
        for k in (4, 8)
    ]
    assert group(rows).x_key == "workload.size"
    assert group(rows, "fabric.k").x_key == "fabric.k"


def test_series_without_schemes() -> None:
    """Where the scheme is fixed, the first key of names tells series apart."""
    rows = [row("ecmp", 1, 1e-5) for _ in range(2)]
    for one, recovery in zip(rows, ("go-back-n", "selective-repeat"), strict=True):
        one["swept"] = {"transport.recovery": recovery}
    assert group(rows).series == ["ecmp, go-back-n", "ecmp, selective-repeat"]


def test_a_bound_is_of_those_that_share_it() -> None:
    """Where series have bounds of their own, each line tells its own, and no figure draws one."""
    rows = [row("ecmp", 1, 1e-5), row("ecmp", 1, 4e-5)]
    for one, collective, bound in zip(rows, ("all-gather", "broadcast"), (1e-5, 3e-5), strict=True):
        one |= {"swept": {"workload.collective": collective}, "workload": collective}
        one |= {"bound_s": bound}
    table = tables.summarise(group(rows))
    assert table.columns[:3] == ["CCT", "lower bound", "slowdown"]
    assert [line.cells[1].text for line in table.sections[0].lines] == ["10.00 µs", "30.00 µs"]
    assert "lower bound 2" not in tables.below(table)
    assert "vs ecmp, all-gather" not in table.columns, "they are different jobs"
    figure = metrics.completion_times(group(rows))
    assert isinstance(figure.panels[0].plot, Bars)
    assert not figure.panels[0].plot.bound
    assert "bound" not in figure.caption
    assert tables.summarise(group(TWO)).sections[0].bound == pytest.approx(1e-5)


def test_bars_of_one_category_are_the_schemes() -> None:
    """With the bound across them and the interval of each."""
    figure = metrics.completion_times(group(TWO))
    plot = figure.panels[0].plot
    assert isinstance(plot, Bars)
    assert plot.categories == ("ecmp", "ethereal")
    assert plot.series[0].values == pytest.approx((30.0, 10.0))
    assert plot.series[0].halves[1] == 0.0
    assert plot.bound == pytest.approx((10.0, 10.0))
    assert plot.y.title == "completion time [µs]"


def test_a_lone_value_does_not_press_the_others_down() -> None:
    """Far above most others: a logarithmic axis. Two groups apart from each other: none."""
    assert axes.needs_log([1.2, 1.3, 1.3, 1.5, 2.0, 12.6])
    assert axes.needs_log([1.0, 31.0])
    assert not axes.needs_log([1.2, 1.3, 5.0, 5.6, 6.2])
    assert not axes.needs_log([])


def test_sizes_become_lines_with_the_bound() -> None:
    """Three sizes: a curve a scheme and the bound, ticks as the user wrote them."""
    rows = [
        row(scheme, 1, cct, **{"workload.size": size})
        for scheme in ("ecmp", "spray")
        for size, cct in (("1MB", 9e-3), ("4KB", 2e-5), ("64KB", 1e-4))
    ]
    plot = metrics.completion_times(group(rows)).panels[0].plot
    assert isinstance(plot, Lines)
    assert [curve.label for curve in plot.curves] == ["ecmp", "spray", "lower bound"]
    assert plot.curves[0].x == (4e3, 64e3, 1e6)
    assert plot.x.title == "workload.size"
    assert plot.x.ticks == ((4e3, "4KB"), (64e3, "64KB"), (1e6, "1MB"))
    assert plot.x.log
    assert plot.y.log
    assert plot.y.ticks


@given(st.floats(1e-6, 1e3), st.floats(2.0, 1e7))
def test_log_ticks_are_few_and_inside(low: float, ratio: float) -> None:
    """Enough to read a value, not so many that they overlap."""
    ticks = axes.log_ticks(low, low * ratio)
    assert len(ticks) <= 11
    assert ratio < 10 or len(ticks) >= 1
    assert all(low * 0.99 <= place <= low * ratio * 1.01 for place, _ in ticks)


def test_panels_share_limits_only_if_alike() -> None:
    """A short run beside a long one keeps its own axis."""

    def panel(top: float) -> Panel:
        curve = Curve("ecmp", palette.BOUND, (0.0, 1.0), (0.0, top))
        return Panel("", Lines((curve,), Axis("time"), Axis("queue")))

    alike = [one.plot.y.limits for one in axes.with_limits([panel(10.0), panel(20.0)])]
    apart = [one.plot.y.limits for one in axes.with_limits([panel(10.0), panel(2000.0)])]
    assert alike[0] == alike[1]
    assert alike[0] == pytest.approx((0.0, 20.6))
    assert apart == [pytest.approx((0.0, 10.3)), pytest.approx((0.0, 2060.0))]


def test_error_bars_are_within_the_axes() -> None:
    """Bars and curves alike; near zero they run off a logarithmic axis, which has no zero."""
    near = [row("ecmp", 1, 3e-5), row("ecmp", 2, 3.1e-5)]
    limits = metrics.completion_times(group(near)).panels[0].plot.y.limits  # type: ignore[union-attr]
    assert limits is not None
    assert limits[1] > 30.5 + 6.3
    curve = Curve("ecmp", palette.BOUND, (1.0, 2.0, 3.0), (1.0, 50.0, 100.0), (0.5, 60.0, 100.0))
    panel = Panel("", Lines((curve,), Axis("size"), Axis("time", log=True)))
    low, high = axes.with_limits([panel])[0].plot.y.limits or (0, 0)  # type: ignore[union-attr]
    assert 0.1 < low < 0.5
    assert high >= 150


def test_wide_intervals_do_not_flatten_the_rest() -> None:
    """30 ± 127 of two seeds: half above the value is drawn, and nothing below zero."""
    limits = metrics.completion_times(group(TWO)).panels[0].plot.y.limits  # type: ignore[union-attr]
    assert limits == pytest.approx((0.0, 45 * 1.03))


def test_intervals_that_are_cut_are_told_of() -> None:
    """Of bars, and of lines over sizes: they would pass for shorter ones. Others need no word."""
    word = " Intervals that meet the edge end beyond it."
    over_sizes = [
        one | {"swept": {"balance.scheme": "ecmp", "workload.size": size}}
        for one in TWO[:2]
        for size in ("4KB", "64KB")
    ]
    near = [row("ecmp", 1, 2e-5), row("ecmp", 2, 2.01e-5), row("ethereal", 1, 1e-5)]
    for rows, cut in ((TWO, True), (over_sizes, True), (near, False), (TWO[2:], False)):
        first = metrics.figures(View(Settings("file"), group(rows)))[0]
        assert (first.name, first.caption.endswith(word)) == ("cct", cut)


@pytest.mark.parametrize("schemes", [12, 14])
def test_what_is_left_out_is_told_in_reports_and_in_files(schemes: int, tmp_path: Path) -> None:
    """A picture of twelve schemes that goes alone would pass for all there were."""
    names = [f"scheme-{number}" for number in range(schemes)]
    rows = [
        row(name, 1, 1e-5) | {"swept": {"balance.scheme": name, "workload.size": size}}
        for name in names
        for size in ("4KB", "64KB")
    ]
    figure = metrics.completion_times(group(rows))
    sentence = "Shown: the first 12 of 14 schemes."
    (path,) = draw_matplotlib.draw(figure, tmp_path, ["svg"])
    for text in (figure.text, path.read_text()):
        assert (sentence in text) == (schemes > 12)


def test_styles_are_distinct_and_stay() -> None:
    """A scheme looks the same whatever stands beside it."""
    names = ["ecmp", "spray", "spray-counter", "reps", "reps-sticky", "ethereal"]
    everything = palette.styles(names)
    assert len({style.colour for style in everything.values()}) == len(names)
    assert palette.styles(["ethereal", "mine"])["ethereal"] == everything["ethereal"]
    many = palette.styles([f"ecmp, {i}" for i in range(12)])
    assert len({style.colour for style in many.values()}) == 12
    mixed = palette.styles([*names, "twill", "mrc", "plb", "conga", "drill", "letflow"])
    assert len({style.colour for style in mixed.values()}) == 12
    assert {style.marker for style in mixed.values()} == set(palette.MARKERS)
    assert list(mixed)[-1] == "letflow"
    more = palette.styles([f"mine {i}" for i in range(20)])
    assert len(set(more.values())) == 20


def test_both_renderers_know_every_marker() -> None:
    """Matplotlib by a letter of its own for each; Plotly has them by these names."""
    assert set(draw_matplotlib._MARKERS) == set(palette.MARKERS)
    assert len(set(draw_matplotlib._MARKERS.values())) == len(palette.MARKERS)
    pytest.importorskip("plotly.graph_objects").scatter.Marker(symbol=list(palette.MARKERS))


def test_curves_with_many_points_have_some_markers() -> None:
    """In the report and in files; the bound has none."""
    times = tuple(map(float, range(100)))
    curve = Curve("ecmp", palette.styles(["ecmp"])["ecmp"], times, times)
    bound = Curve("lower bound", palette.BOUND, times, times, markers="none")
    panel = Panel("", Lines((curve, bound), Axis("time"), Axis("queue")))
    mine, line = draw_plotly.panel(panel)["data"]
    assert (mine["mode"], line["mode"]) == ("lines+markers", "lines")
    assert mine["marker"]["maxdisplayed"] < 20


def test_axes_of_swept_keys_have_their_unit() -> None:
    """In the title where all values are written in it, else at the ticks."""
    assert axes.key_axis("fabric.delay", ["1us", "2us"]) == ("fabric.delay [µs]", ("1", "2"))
    sizes = ("64KB", "1MB")
    assert axes.key_axis("workload.size", sizes) == ("workload.size", sizes)
    assert axes.key_axis("fabric.link", ["1G", "4G"]) == ("fabric.link", ("1G", "4G"))
    assert axes.key_axis("fabric.k", ["4", "8"]) == ("fabric.k", ("4", "8"))
    assert axes.key_axis("transport.rto", ["auto", "1ms"]) == ("transport.rto", ("auto", "1ms"))
    rows = [
        row(scheme, 1, 1e-5, **{"workload.size": size, "workload.launch": launch})
        for scheme in ("ecmp", "spray")
        for size in ("4KB", "16KB")
        for launch in ("successor", "same-rank")
    ]
    plot = metrics.completion_times(group(rows)).panels[0].plot
    assert plot.x.title == "workload.launch, workload.size"
    assert metrics.completion_times(group(TWO)).panels[0].plot.x.title == "scheme"


def test_evenly_keeps_both_ends() -> None:
    """And leaves out what lies between."""
    assert subset.evenly_spaced(list(range(10)), 4) == [0, 3, 6, 9]
    assert subset.evenly_spaced([1, 2], 4) == [1, 2]


@pytest.mark.parametrize(
    ("text", "value"),
    [("16KB", (16e3, "bytes")), ("1.5us", (1.5e-6, "time")), ("400Gbps", (4e11, "rate"))],
)
def test_quantities_parse(text: str, value: tuple[float, str]) -> None:
    """Decimal sizes, as in experiment files."""
    number, dimension = units.parse(text) or (0.0, "")
    assert number == pytest.approx(value[0])
    assert dimension == value[1]
    assert units.parse("ecmp") is None
    assert units.magnitude(True) is None
    assert [units.magnitude(one) for one in ("0.9", "4", 4, "4KB")] == [0.9, 4.0, 4.0, 4e3]
    letters = [units.magnitude(one) for one in ("64K", "1.5M", "400G", "1 T", "M", "", "a1K")]
    assert letters == [64e3, 1.5e6, 4e11, 1e12, None, None, None]


@given(st.floats(1e-12, 1e4))
def test_times_read_back(seconds: float) -> None:
    """What a table prints is the value to four digits."""
    number, unit = units.format_time(seconds).replace(",", "").split()
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert math.isclose(float(number) * scale, seconds, rel_tol=6e-4)


def test_counts_and_bytes() -> None:
    """Whole numbers stay whole; means of few seeds keep a digit."""
    assert units.format_count(1234567.0) == "1,234,567"
    assert units.format_count(2.5) == "2.5"
    assert units.format_bytes(0) == "0 B"
    assert units.format_bytes(12_345_678) == "12.35 MB"


def test_goodput_is_bytes_over_the_interval_before() -> None:
    """12,500 bytes in a microsecond are 100 Gbps, drawn where the microsecond ends."""
    kind = ["goodput"] * 3 + ["port"] * 3 + ["sent"] * 3
    name = ["all hosts"] * 3 + ["leaf-0 -> host-0"] * 6
    sampled = {"run": [0] * 9, "name": name, "kind": kind, "time_s": [0.0, 1e-6, 2e-6] * 3}
    sampled["bytes"] = [0, 12_500, 6_250, 0, 9_000, 0, 0, 12_500, 12_500]
    series = pl.LazyFrame(sampled)
    rows = [row("ecmp", 1, 2e-6) | {"run": 0}]
    (figure,) = goodput.figures(group(rows), series)
    plot = figure.panels[0].plot
    assert isinstance(plot, Lines)
    assert plot.y.title == "goodput [Gbps]"
    assert plot.curves[0].x == pytest.approx((0.0, 1.0, 2.0))
    assert plot.curves[0].y == pytest.approx((0.0, 100.0, 50.0))
    # It is no queue, and a queue is no goodput; nor is what a port has sent a queue.
    (queue,) = queues.figures(group(rows), series)
    assert queue.title.startswith("Queue")
    assert isinstance(queue.panels[0].plot, Lines)
    assert max(queue.panels[0].plot.curves[0].y) == pytest.approx(9.0)
    assert goodput.figures(group(rows), series.filter(pl.col("kind") == "port")) == []


@pytest.mark.parametrize(
    ("fabric", "rows", "first"),
    [
        ({"topology": "fat-tree", "k": 4}, {"leaf": 8, "pod/aggregation switch": 8}, ("0", "0/0")),
        (
            {"topology": "leaf-spine", "leaves": 12, "spines": 2, "hosts_per_leaf": 1, "planes": 2},
            {"plane/leaf": 24},
            ("0/0",),
        ),
        (
            {"topology": "dragonfly", "groups": 9, "routers": 4, "hosts_per_leaf": 2}
            | {"global_ports": 2},
            {"group/leaf": 36},
            ("0/0",),
        ),
    ],
)
def test_every_switch_is_a_row_of_link_load(
    fabric: dict[str, Any], rows: dict[str, int], first: tuple[str, ...]
) -> None:
    """Names of rows differ, since the page lays rows of one name over each other."""
    experiment = {
        "fabric": fabric | {"switch": {"pfc": False}},
        "workload": {"pattern": "all-to-all", "size": "1KB"},
        "balance": {"scheme": "ecmp"},
    }
    result = weft.simulate(experiment)
    runs = [one | {"swept": {}} for one in result.runs.iter_rows(named=True)]
    maps = [
        panel.plot
        for figure in link_load.figures(group(runs), result.links.lazy())
        for panel in figure.panels
        if isinstance(panel.plot, HeatMap)
    ]
    assert {one.y.title: len(set(one.rows)) for one in maps} == rows
    assert {one.rows[0] for one in maps} == set(first)
    for one in maps:
        assert len(one.rows) == len(one.values)
        numbers = [[int(part) for part in name.split("/")] for name in one.rows]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("most", "top", "title"),
    [(99.0, 100.0, ""), (10.5, 100.0, ""), (1.0, 10.0, ""), (130.0, 100.0, " and above")],
)
def test_one_colour_is_one_load(most: float, top: float, title: str) -> None:
    """All scales of load end at 100 %, or at 10 % where no link has more; then captions say so."""
    links = pl.DataFrame(
        [("leaf-0", "spine-0", "leaf-up", most), ("spine-0", "leaf-0", "spine-down", most / 3)],
        schema=["from", "to", "tier", "utilisation"],
        orient="row",
    ).with_columns(pl.lit(0).alias("run"), pl.col("utilisation") / 100)
    drawn = link_load.figures(group([row("ecmp", 1, 2e-5) | {"run": 0}]), links.lazy())
    assert len(drawn) == 2
    for figure in drawn:
        plot = figure.panels[0].plot
        assert isinstance(plot, HeatMap)
        assert plot.scale == Axis(f"utilisation [%]{title}", limits=(0.0, top))
        assert ("Colours end at 10 %" in figure.caption) is (top == 10.0)


def curves_of(samples: dict[str, list[float]]) -> list[Lines]:
    """The panels of completion times of flows, a size each."""
    rows = [row("ecmp", 1, 1e-3, **{"workload.size": size}) for size in samples]
    numbered = [one | {"run": number} for number, one in enumerate(rows)]
    flows = [(run, time) for run, times in enumerate(samples.values()) for time in times]
    frame = pl.LazyFrame(flows, schema=["run", "fct_s"], orient="row")
    (figure,) = fct.figures(group(numbered), frame)
    return [panel.plot for panel in figure.panels if isinstance(panel.plot, Lines)]


def test_distributions_are_steps() -> None:
    """Of four messages half are done at 10 us, and at 15 us still: nothing lies between two."""
    (plot,) = curves_of({"4KB": [5e-6, 10e-6, 20e-6, 40e-6]})
    (curve,) = plot.curves
    assert curve.x == pytest.approx((5.0, 5.0, 10.0, 20.0, 40.0))
    assert curve.y == (0.0, 0.25, 0.5, 0.75, 1.0)
    (trace,) = draw_plotly.panel(Panel("", plot))["data"]
    assert trace["line"]["shape"] == "hv"
    canvas = draw_matplotlib._canvas(Figure("fct", "", "", (Panel("", plot),)))
    assert {line.get_drawstyle() for line in canvas.axes[0].get_lines()} == {"steps-post"}


def test_axes_of_a_figure_begin_alike() -> None:
    """At zero in all panels if in one of them."""
    low, high = curves_of({"4KB": [1e-6, 4e-6], "1MB": [90e-6, 100e-6]})
    assert low.x.limits is not None
    assert high.x.limits is not None
    assert low.x.limits[0] == high.x.limits[0] == 0.0


STRANGE = "<b>REPS & co</b> with 256 entropies and a long name"


def test_names_may_have_dollar_signs(tmp_path: Path) -> None:
    """Matplotlib would take what is between two of them for a formula."""
    figure = metrics.completion_times(group([row("$\\mine$", 1, 2e-5), row("ecmp", 1, 1e-5)]))
    (path,) = draw_matplotlib.draw(figure, tmp_path, ["svg"])
    assert "$\\mine$" in path.read_text()


def test_names_are_shown_as_they_are() -> None:
    """Plotly would take a name for markup; long ones have lines, or bars have no room."""
    bars = metrics.completion_times(group([row(STRANGE, 1, 2e-5), row("ecmp", 1, 1e-5)])).panels[0]
    drawn = draw_plotly.panel(bars)
    (label, _) = drawn["layout"]["xaxis"]["ticktext"]
    assert label == "&lt;b&gt;REPS &amp; co&lt;/b&gt;<br>with 256 entropies<br>and a long name"
    assert drawn["layout"]["xaxis"].get("tickangle") is None
    canvas = draw_matplotlib._canvas(Figure("cct", "", "", (bars,)))
    assert canvas.axes[0].get_xticklabels()[0].get_text().count("\n") == 2
    rows = [row(STRANGE, 1, 1e-5, **{"workload.size": size}) for size in ("1KB", "2KB", "4KB")]
    (curve, _) = draw_plotly.panel(metrics.completion_times(group(rows)).panels[0])["data"]
    assert "<b>" not in curve["name"] + curve["hovertemplate"]


def test_many_names_have_room_side_by_side() -> None:
    """So many lie over each other aslant, or in several lines."""
    names = [f"switch-spray-adaptive-{number}" for number in range(43)]
    bars = metrics.completion_times(group([row(name, 1, 2e-5) for name in names])).panels[0]
    with rc_context(draw_matplotlib._STYLE):
        canvas = draw_matplotlib._canvas(Figure("cct", "", "", (bars,)))
        canvas.draw_without_rendering()
        boxes = [tick.get_window_extent() for tick in canvas.axes[0].get_xticklabels()]
    assert len(boxes) == 43
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


@pytest.mark.parametrize("panels", [0, 1, 3, 4])
def test_long_titles_have_lines(panels: int) -> None:
    """All of them is on the page, and none lies on another; without panels that of a fabric."""
    title = "$1$ MB, dcqcn, same-rank, links per pair 2, " * 4
    (plot,) = curves_of({"1MB": [1e-6, 4e-6]})
    drawn = tuple(Panel(title, plot) for _ in range(panels))
    with rc_context(draw_matplotlib._STYLE):
        figure = Figure("fct", title, "", drawn)
        canvas = (
            draw_matplotlib._canvas(figure)
            if panels
            else drawing_matplotlib.page(figure, Drawing(8.0, 2.0))
        )
        canvas.draw_without_rendering()
        texts = [canvas._suptitle, *(ax.title for ax in canvas.axes if ax.get_visible())]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        shown = [ax.get_window_extent() for ax in canvas.axes]
    assert len(boxes) == panels + 1
    for box in boxes:
        assert canvas.bbox.x0 <= box.x0 < box.x1 <= canvas.bbox.x1
        assert box.y1 <= canvas.bbox.y1
        assert not any(box.overlaps(other) for other in [*boxes, *shown] if other is not box)


def test_groups_of_collectives_are_called_groups() -> None:
    """A number alone would pass for a number of ranks."""
    times = {"run": [0] * 2, "operation": ["all-reduce"] * 2, "group": ["6", "tp"]}
    times |= {"time_s": [1e-3] * 2, "busbw_gb_s": [1.0] * 2, "ranks": [4] * 2}
    frame = pl.LazyFrame(times)
    (figure,) = collectives.figures(group([row("ecmp", 1, 1e-3) | {"run": 0}]), frame)
    assert [panel.title for panel in figure.panels] == ["all-reduce, group 6", "all-reduce, tp"]
