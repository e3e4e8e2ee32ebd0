"""`[[printed]]`: reading it, refusing mistakes, and what is said about results."""

from __future__ import annotations

from typing import Any

import pytest

from sweeps import row_of, rows, specs
from weft._types import RunSpec
from weft.errors import ExperimentError
from weft.report import column_text, printed_comparison, printed_table, views
from weft.report.figures import draw_plotly
from weft.report.figures.metrics import figures
from weft.report.figures.model import Bars, Lines
from weft.report.grouping import group
from weft.study import best_value, settings

SCHEMES = ["host", "switch", "ecmp"]
BUFFERS = ["large", "small"]
RUNS = specs({"balance.scheme": SCHEMES, "variant": BUFFERS}, fabric={"link": "100Gbps"})
MEANS = {
    ("host", "large"): 1.06,
    ("switch", "large"): 1.08,
    ("ecmp", "large"): 1.40,
    ("host", "small"): 1.24,
    ("switch", "small"): 1.22,
    ("ecmp", "small"): 1.41,
}


def normalised(spec: RunSpec) -> float:
    """The mean of the cell, one hundredth up and down with the seed."""
    mean = MEANS[spec["swept"]["balance.scheme"], spec["swept"]["variant"]]
    return mean + (spec["seed"] - 2) * 0.01


def read(*printed: dict[str, Any], **options: Any) -> settings.Settings:
    """The settings of an experiment that has these tables."""
    shown = {"printed": list(printed), **options}
    return settings.read(shown, RUNS, [], "fig.toml")


def compared(*printed: dict[str, Any]) -> list[printed_comparison.Comparison]:
    """These tables against the results."""
    return printed_comparison.compare(read(*printed), rows(RUNS, normalised), {})


LARGE = {"variant": "large"}


def test_one_table_for_a_row_of_a_paper_s_table() -> None:
    """Several values with their deviations: each is compared on its own."""
    values = {"host": 1.06, "switch": 1.03, "ecmp": 1.35}
    table = {"source": "table 2", "where": LARGE, "by": "balance.scheme", "values": values}
    host, switch, ecmp = compared(table | {"sd": {"ecmp": 0.06, "switch": 0.01}})
    assert [one.what for one in (host, switch, ecmp)] == [
        "host, large",
        "switch, large",
        "ecmp, large",
    ]
    assert host.measured is not None
    assert host.measured.value == pytest.approx(1.06)
    assert host.measured.sd == pytest.approx(0.01)
    assert host.measured.half == pytest.approx(4.303 * 0.01 / 3**0.5)
    assert (host.agrees, host.words) == (None, "no tolerance given")
    assert (switch.agrees, switch.words) == (False, "differs (5.0 printed sd away)")
    assert (ecmp.agrees, ecmp.words) == (True, "agrees (0.8 printed sd away)")
    assert ecmp.difference == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("tolerance", "agrees", "words"),
    [
        ({"within": 0.05}, True, "agrees (tolerance 0.05)"),
        ({"within": 0.04}, False, "differs (tolerance 0.04)"),
        ({"sd": 0.02}, False, "differs (2.5 printed sd away)"),
        ({"sd": 0.02, "sds": 3}, True, "agrees (2.5 printed sd away)"),
        ({"value": [1.2, 1.3]}, False, "differs (outside the range)"),
        ({"value": [1.2, 1.5]}, True, "agrees (within the range)"),
        ({"value": [1.2, 1.35], "within": 0.05}, True, "agrees (tolerance 0.05)"),
    ],
)
def test_agreement(tolerance: dict[str, Any], agrees: bool, words: str) -> None:
    """1.40 is measured where 1.35 is printed; a tolerance is reached by equality."""
    where = {"balance.scheme": "ecmp", "variant": "large"}
    (one,) = compared({"where": where, "value": 1.35} | tolerance)
    assert (one.agrees, one.words) == (agrees, words)


def test_ratios_and_differences_are_paired_by_seed() -> None:
    """`of` over, or minus, another selection, by the means shown; `where` holds for both."""
    schemes = {"of": {"balance.scheme": "ecmp"}, "where": LARGE}
    other = {"balance.scheme": "host"}
    ratio, less = compared(
        schemes | {"over": other, "value": 1.3, "within": 0.1},
        schemes | {"minus": other, "value": 0.34},
    )
    assert ratio.measured is not None
    assert ratio.measured.value == pytest.approx(1.40 / 1.06)
    assert ratio.measured.half == pytest.approx(4.303 * 0.01 * (1.40 / 1.06 - 1) / 1.06 / 3**0.5)
    assert ratio.what == "ecmp / host, large"
    assert ratio.agrees
    assert less.measured is not None
    assert less.measured.value == pytest.approx(0.34)
    assert less.measured.half == pytest.approx(0.0, abs=1e-9)
    assert less.what == "ecmp \N{MINUS SIGN} host, large"


def test_orders_have_levels() -> None:
    """Only different levels are told apart; what stands the wrong way round is named."""
    by = {"where": LARGE, "by": "balance.scheme"}
    right, level, wrong, large = compared(
        by | {"order": ["host", "switch", "ecmp"]},
        by | {"order": [["switch", "host"], "ecmp"]},
        by | {"order": ["switch", "ecmp", "host"], "source": "figure 3"},
        by | {"order": ["ecmp", "host"], "first": "largest"},
    )
    assert right.agrees
    assert right.printed == "host < switch < ecmp"
    assert level.agrees
    assert level.printed == "switch = host < ecmp"
    assert wrong.words == "differs (host before switch; host before ecmp)"
    assert wrong.means == pytest.approx((1.08, 1.40, 1.06))
    assert large.agrees
    assert large.printed == "ecmp > host"


def test_an_order_within_noise_says_so() -> None:
    """Two means whose difference may be chance."""
    order = {"order": ["switch", "host"], "by": "balance.scheme", "where": LARGE}
    noisy = [
        row_of(
            spec,
            normalised=normalised(spec)
            + (spec["seed"] % 2 * 0.1 - 0.06) * (spec["swept"]["balance.scheme"] == "host"),
        )
        for spec in RUNS
    ]
    (one,) = printed_comparison.compare(read(order), noisy, {})
    assert one.words == "differs (host before switch, within the confidence interval)"


def test_a_selection_may_name_what_is_not_swept() -> None:
    """Any key of the experiment, in any unit; and numbers as they mean, not as written."""
    where = {"fabric.link": "0.1Tbps", "balance.scheme": "host", "variant": "small"}
    assert len(read({"where": where, "value": 1}).printed) == 1
    runs = specs({"transport.rate_coefficient": [0.9, 1.0]})
    for value in (1, 1.0, "1.0"):
        shown = {"printed": {"where": {"transport": {"rate_coefficient": value}}, "value": 1}}
        assert len(settings.read(shown, runs, [], "fig.toml").printed) == 1


MISTAKES = [
    ({"vaule": 1}, "printed 1.value: is missing; write value = 1.5"),
    (
        {"value": 1, "where": LARGE, "colum": "x"},
        'printed 1.colum: unknown key; did you mean "column"?',
    ),
    ({"value": "x"}, "printed 1.value: 'x' is not a number; write it without quotes"),
    ({"value": [2, 1]}, "printed 1.value: [2, 1] is not a range; write the smaller end first"),
    ({"value": 1, "within": -1}, "printed 1.within: -1 is out of range; use 0 or more"),
    ({"value": 1, "sds": 1}, "printed 1.sds: there is no sd to count in; give sd, or use within"),
    ({"value": 1, "where": 3}, "printed 1.where: 3 is not a table"),
    (
        {"value": 1, "where": {"balance.sheme": "host"}},
        'printed 1: where: "balance.sheme" is not a key of the experiment; did',
    ),
    (
        {"value": 1, "where": {"balance.scheme": "hots"} | LARGE},
        'printed 1: where: no run has balance.scheme = hots; did you mean "host"?',
    ),
    (
        {"value": 1, "where": LARGE},
        "printed 1: where: leaves balance.scheme open; say which of host",
    ),
    (
        {"values": {"host": 1}, "where": LARGE},
        "printed 1.by: is missing; say whose values these are",
    ),
    (
        {"values": {"host": 1}, "where": LARGE, "by": "balance.scheme", "sd": {"ecm": 1}},
        "printed 1.sd: ecm has no value",
    ),
    (
        {"of": {"balance.scheme": "host"}, "where": LARGE, "value": 1},
        "printed 1.of: needs one other selection",
    ),
    ({"order": ["host"], "by": "balance.scheme"}, "printed 1.order: is not an order"),
    ({"order": ["host", "ecmp"]}, "printed 1.by: is missing; say whose values are in order"),
    (
        {"order": ["host", "ecmp"], "by": "balance.scheme", "where": LARGE, "first": "best"},
        'printed 1.first: "best" is unknown',
    ),
    ({"nccl_tests": "none.txt"}, "printed 1.nccl_tests: none.txt: no such file; give the output"),
    ({"nccl_tests": "a\0b"}, "printed 1.nccl_tests: a\0b: cannot be read; give the output"),
]


@pytest.mark.parametrize(("table", "said"), MISTAKES)
def test_mistakes_take_one_line(table: dict[str, Any], said: str) -> None:
    """They name the file, the table and the mend."""
    with pytest.raises(ExperimentError) as caught:
        read(table)
    assert str(caught.value).startswith(f"fig.toml: {said}")
    assert "\n" not in str(caught.value)


def test_columns_are_checked_with_the_first_result() -> None:
    """Unknown ones and text are refused by name, wherever they are asked for."""
    row = row_of(RUNS[0])
    where = {"balance.scheme": "host", "variant": "large"}
    for options, said in (
        (
            {"report": {"columns": ["normalise"]}},
            'report.columns: "normalise" is not a result column; did',
        ),
        ({"report": {"columns": ["scheme"]}}, 'report.columns: "scheme" is not a number'),
        ({"best": {"over": "variant", "of": "cct"}}, 'best.of: "cct" is not a result column'),
        (
            {"printed": [{"where": where, "value": 1, "column": "x"}]},
            'printed 1.column: "x" is not a result column',
        ),
    ):
        with pytest.raises(ExperimentError) as caught:
            settings.read(options, RUNS, [], "fig.toml").check(row)
        assert str(caught.value).startswith(f"fig.toml: {said}")


def test_what_options_left_out_is_counted() -> None:
    """`--quick` or `--set` may leave runs out that something is printed of; that is no mistake."""
    few = [spec for spec in RUNS if spec["swept"]["balance.scheme"] != "ecmp"]
    table = {"where": LARGE, "by": "balance.scheme", "values": {"host": 1.0, "ecmp": 1.35}}
    shown = {"printed": [table]}
    short = settings.read(shown, few, [], "fig.toml", changed=True)
    assert (len(short.printed), short.left_out) == (1, 1)
    with pytest.raises(ExperimentError, match=r"no run has balance\.scheme = ecmp"):
        settings.read(shown, few, [], "fig.toml")


def view(options: dict[str, Any]) -> views.View:
    """The results as an experiment with these options wants them."""
    read_settings = settings.read(options, RUNS, [], "fig.toml")
    measured = rows(RUNS, normalised)
    grouping = group(measured, read_settings.x, read_settings.series)
    return views.View(
        read_settings, grouping, None, printed_comparison.compare(read_settings, measured, {})
    )


TABLE = {"where": LARGE, "by": "balance.scheme", "values": {"host": 1.06, "ecmp": 1.35}}


def test_the_table_beside_the_paper() -> None:
    """A line for each printed number, and how many agree below."""
    text = printed_table.text(
        printed_table.of(view({"printed": [TABLE | {"within": 0.01, "source": "table 2"}]})), 120
    )
    _, _, head, _, host, ecmp, _, below = text.splitlines()
    assert head.split() == [
        "source",
        "result",
        "printed",
        "measured",
        "sd",
        "difference",
        "verdict",
    ]
    assert host.split("  ")[0] == "table 2"
    assert "1.060 ± 0.025" in host
    assert "agrees (tolerance 0.01)" in host
    assert "+0.050 (+3.7 %)" in ecmp
    assert below == "mean of 3 seeds, ± 95 % confidence; 1 of 2 agree"
    assert printed_table.of(view({})) is None


def test_a_narrow_terminal_breaks_no_line() -> None:
    """What does not fit goes below."""
    order = {"where": LARGE, "by": "balance.scheme", "order": SCHEMES, "source": "figure 3"}
    text = printed_table.text(
        printed_table.of(view({"printed": [TABLE | {"source": "table 2"}, order]})), 80
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "agrees (the same order)" in text
    assert "    printed 1.06; measured 1.060 ± 0.025; sd 0.010;" in text


def test_printed_values_stand_on_their_bars() -> None:
    """With deviation or range, in both renderers' data."""
    options = {"printed": [TABLE | {"sd": {"ecmp": 0.05}}], "report": {"columns": ["normalised"]}}
    (figure,) = figures(view(options))
    plot = figure.panels[0].plot
    assert isinstance(plot, Bars)
    host, switch, ecmp = plot.series
    assert plot.categories == ("large", "small")
    assert switch.printed == (None, None)
    assert host.printed[0] is not None
    assert (host.printed[0].value, host.printed[0].half) == (1.06, 0.0)
    assert ecmp.printed[0] is not None
    assert (ecmp.printed[0].value, ecmp.printed[0].half) == (1.35, 0.05)
    stars = draw_plotly._bars(plot)["data"][-1]
    assert stars["name"] == "printed"
    assert stars["x"] == pytest.approx([-0.8 / 3, 0.8 / 3])
    assert "Stars" in figure.caption


def test_printed_values_stand_among_curves() -> None:
    """At their x, in the colour of their series."""
    runs = specs({"balance.scheme": ["host", "ecmp"], "workload.flows": [1, 2, 4]})
    where = {"balance.scheme": "ecmp", "workload.flows": 2}
    options = {
        "printed": [{"where": where, "value": [2.0, 3.0]}],
        "report": {"columns": ["normalised"]},
    }
    chosen = settings.read(options, runs, [], "fig.toml")
    measured = rows(runs, lambda _: 2.0)
    (figure,) = figures(views.View(chosen, group(measured)))
    plot = figure.panels[0].plot
    assert isinstance(plot, Lines)
    (spot,) = plot.spots
    assert (spot.label, spot.x, spot.mark.value, spot.mark.half) == ("ecmp", 2.0, 2.5, 0.5)
    assert spot.style == next(curve.style for curve in plot.curves if curve.label == "ecmp")
    assert plot.y.limits is not None
    assert plot.y.limits[1] > 3.0


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (1.0636, 0.0042, "1.0636 ± 0.0042"),
        (1.0636, 0.042, "1.064 ± 0.042"),
        (5.6, 5.1, "5.6 ± 5.1"),
        (123.4, 56.7, "123 ± 57"),
        (12345.0, 0.0, "12,345 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (0.00123, None, "0.001230"),
    ],
)
def test_numbers_have_the_digits_that_count(value: float, half: float | None, text: str) -> None:
    """Four of the value, fewer where its interval says that they mean nothing."""
    assert column_text.shown("normalised", value, half) == text.replace(
        "1.0636 ± 0.0042", "1.064 ± 0.004"
    )


def test_units_of_columns() -> None:
    """Told from the column's name."""
    assert column_text.shown("fct_p99_s", 1.5e-3, 0.2e-3) == "1.50 ± 0.20 ms"
    assert column_text.exact("cct_s", 22.5e-3) == "22.5 ms"
    assert column_text.title_of("peak_queue_bytes") == "peak queue"
    assert best_value.COLUMN not in column_text.title_of("normalised")
