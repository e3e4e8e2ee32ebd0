"""`[best]`: the search for the best value of a key, and what is shown of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import SMALL, Weft
from sweeps import rows, specs
from test_sweep import run_folders
from weft._types import RunSpec
from weft.errors import ExperimentError
from weft.report import tables, views
from weft.report.figures.metrics import figures
from weft.report.figures.model import Lines
from weft.study import best_value, settings
from weft.study.forecast import Forecast
from weft.study.inputs import Experiment
from weft.study.selection import combination
from weft.study.settings import Best

OVER = "transport.rate_coefficient"
RATES = [0.8, 0.9, 1.0]
RUNS = specs({"balance.scheme": ["host", "ecmp"], OVER: RATES}, seeds=5)
BEST = Best(OVER, "normalised", 2)


def normalised(spec: RunSpec) -> float:
    """Spraying is best at full rate, ECMP at 0.9; seeds beyond the second say otherwise."""
    rate, scheme = spec["swept"][OVER], spec["swept"]["balance.scheme"]
    top = 1.0 if scheme == "host" else 0.9
    return 1.2 + abs(rate - top) + (5.0 if spec["seed"] > 2 and rate == top else 0.0)


ROWS = rows(RUNS, normalised)


def at(scheme: str) -> str:
    """The combination of a scheme."""
    return combination({"balance.scheme": scheme})


def test_each_combination_has_a_best_of_its_own() -> None:
    """By the search's seeds alone, or by all if the search has all."""
    assert best_value.choose(ROWS, BEST) == {at("host"): 1.0, at("ecmp"): 0.9}
    assert best_value.choose(ROWS, Best(OVER, "normalised", None)) == {
        at("host"): 0.9,
        at("ecmp"): 0.8,
    }


def test_a_search_runs_all_values_with_few_seeds_and_the_best_with_all() -> None:
    """The choice is the same however many of the other runs are there."""
    first = best_value.search_runs(RUNS, BEST)
    assert [spec["seed"] for spec in first] == [1, 2] * 6
    assert best_value.expected(RUNS, BEST) == 2 * 3
    wanted = best_value.without_rejected(RUNS, [row for row in ROWS if row["seed"] <= 2], BEST)
    assert len(wanted) == 12 + 6
    assert best_value.without_rejected(RUNS, ROWS, BEST) == wanted
    assert {spec["swept"][OVER] for spec in wanted if spec["seed"] == 5} == {0.9, 1.0}
    # The narrowed runs are searched alike.
    assert best_value.search_runs(wanted, BEST) == first


def test_stalled_runs_do_not_win() -> None:
    """A value that lacks a seed stands behind those that have all."""
    some = [
        row
        for row in ROWS
        if row["swept"] != {"balance.scheme": "host", OVER: 1.0} or row["seed"] > 1
    ]
    assert best_value.choose(some, BEST)[at("host")] == 0.9


def test_who_stalled_at_all_values_is_told() -> None:
    """What stalled at one that is not the best is no result of the best."""
    shown = experiment({"best": {"over": OVER}})
    host, ecmp = (
        [row for row in ROWS if row["swept"]["balance.scheme"] == scheme]
        for scheme in ("host", "ecmp")
    )
    grouping = views.of(shown, ecmp, [row | {"stalled": "why"} for row in host]).grouping
    assert (grouping.series, list(grouping.stalled.values())) == (["ecmp"], [15])
    better = [row for row in ecmp if row["swept"][OVER] != 0.9]
    lost = [row | {"stalled": "why"} for row in ecmp if row["swept"][OVER] == 0.9]
    assert not views.of(shown, better, lost).grouping.stalled


def experiment(shown: dict[str, Any], runs: list[RunSpec] = RUNS) -> Experiment:
    """An experiment that wants its results shown in this way."""
    return Experiment("fig8", "Figure 8", "", "", runs, [], "fig8.toml", shown)


SHOWN = {"best": {"over": OVER, "search_seeds": 2}, "report": {"columns": ["normalised", "drops"]}}


def test_tables_have_the_best_value() -> None:
    """One line a scheme, with the coefficient before the numbers."""
    table = tables.of(views.of(experiment(SHOWN), ROWS), len(RUNS))
    assert table.columns == ["best rate coefficient", "normalised", "sd", "drops", "sd"]
    (section,) = table.sections
    assert [line.series for line in section.lines] == ["host", "ecmp"]
    assert [line.cells[0].text for line in section.lines] == ["1.0", "0.9"]
    assert table.basis == "mean of 5 seeds, ± 95 % confidence"
    text = tables.text(table, "Figure 8", 200)
    assert "best rate" in text.splitlines()[2]
    assert " sd" not in tables.text(table, "Figure 8", 40)


def test_figures_have_the_best_and_the_curve() -> None:
    """The best, at which value, and all values; a printed value at the best or at one of them."""
    printed = [
        {"where": {"balance.scheme": "ecmp"}, "value": 1.2},
        {"where": {"balance.scheme": "host", OVER: 0.8}, "value": 1.4},
    ]
    view = views.of(experiment(SHOWN | {"printed": printed}), ROWS)
    drawn = {figure.name: figure for figure in figures(view)}
    assert list(drawn) == ["normalised", "drops", "best", "normalised-curve", "drops-curve"]
    assert drawn["normalised"].title == "Normalised CCT at the best rate coefficient"
    bars = drawn["normalised"].panels[0].plot
    assert bars.series[0].values == pytest.approx((1.2 + 3.0, 1.2 + 3.0))
    assert bars.series[0].notes == ("at 1.0", "at 0.9")
    assert bars.series[0].printed[0] is None
    assert bars.series[0].printed[1].value == 1.2
    assert drawn["best"].panels[0].plot.series[0].values == (1.0, 0.9)
    curve = drawn["normalised-curve"].panels[0].plot
    assert isinstance(curve, Lines)
    assert [one.label for one in curve.curves] == ["host", "ecmp", "lower bound"]
    assert curve.curves[0].x == (0.8, 0.9, 1.0)
    assert [(spot.label, spot.x) for spot in curve.spots] == [("host", 0.8)]
    means = [one.measured.value for one in view.comparisons if one.measured]
    assert means == pytest.approx([1.2 + 3.0, 1.4])


def test_mistakes_in_best() -> None:
    """One line each."""
    for table, said in (
        (
            {"over": "transport.rate"},
            'best.over: "transport.rate" is not a swept key; did you mean',
        ),
        ({"of": "drops"}, "best.over: is missing"),
        ({"over": OVER, "search_seeds": 0}, "best.search_seeds: 0 is out of range"),
        ({"over": OVER, "search_seeds": 1.5}, "best.search_seeds: 1.5 is not a whole number"),
        ({"over": OVER, "most": 1}, "best.most: unknown key; use one of over, of, search_seeds"),
        (3, "best: 3 is not a table; write [best]"),
    ):
        with pytest.raises(ExperimentError) as caught:
            settings.read({"best": table}, RUNS, [], "fig.toml")
        assert str(caught.value).startswith(f"fig.toml: {said}")


def test_a_key_that_an_option_ended_is_searched_no_more() -> None:
    """`--set` gave it one value."""
    runs = specs({"balance.scheme": ["host"]})
    assert settings.read(SHOWN, runs, [OVER], "fig.toml", changed=True).best is None


def test_time_left() -> None:
    """What differs in its seed takes as long; for what has not run the mean of all stands."""
    first, second = ({"experiment": {"n": n}} for n in (1, 2))
    forecast = Forecast(2)
    forecast.add([first, first, second, second], later=1)
    assert forecast.time_left() is None
    forecast.ended(first, 2.0)
    assert forecast.time_left() == (2.0 + 2 * 2.0 + 2.0) / 2
    forecast.ended(second, 10.0)
    assert forecast.time_left() == (2.0 + 10.0 + 6.0) / 2


SEARCH = (
    SMALL.replace("seeds = 2", '"balance.start_jitter" = ["0ns", "500ns", "20us"]\nseeds = 4')
    + '[best]\nover = "balance.start_jitter"\nof = "cct_s"\nsearch_seeds = 2\n'
    + '[[printed]]\nwhere = { "balance.scheme" = "ecmp" }\ncolumn = "cct_s"\nvalue = 6e-6\n'
)


def test_search_on_the_command_line(weft: Weft, tmp_path: Path) -> None:
    """18 runs of the search and 2 seeds for each of 3 schemes; resumed, nothing runs again."""
    (tmp_path / "search.toml").write_text(SEARCH)
    run = ("run", "search.toml", "-o", "out", "--no-report")
    done = weft(*run)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(lines) == 10  # Of so many runs one for each tenth.
    assert lines[-1].startswith("[24/24] ")
    assert "best start" in done.stdout.splitlines()[2]
    before = run_folders(tmp_path / "out")
    assert len(before) == 24
    (found,) = json.loads((tmp_path / "out" / "summary.json").read_text())["experiments"]
    assert found["runs"] == found["wanted"] == 24
    choices = found["best"]["choices"]
    assert [one["swept"] for one in choices] == [
        {"balance.scheme": scheme} for scheme in ("ecmp", "spray", "ethereal")
    ]
    assert {len(one["seeds"]) for one in choices} == {4}
    assert {one["value"] for one in choices} <= {"0ns", "500ns"}
    assert len(found["statistics"]) == 9
    assert found["printed"][0]["measured"] == choices[0]["cct_s"]["mean"]
    again = weft(*run)
    assert again.stdout == done.stdout
    assert not [line for line in again.stderr.splitlines() if line.startswith("[")]
    assert run_folders(tmp_path / "out") == before


def test_lost_runs_of_a_search_are_run_again(weft: Weft, tmp_path: Path) -> None:
    """Whichever they are: the tables are the same."""
    import shutil

    (tmp_path / "search.toml").write_text(SEARCH)
    run = ("run", "search.toml", "-o", "out", "--no-report", "-q")
    assert weft(*run).returncode == 0
    runs = (tmp_path / "out" / "runs.parquet").read_bytes()
    for name in sorted(run_folders(tmp_path / "out"))[::5]:
        shutil.rmtree(tmp_path / "out" / "runs" / name)
    assert weft(*run).returncode == 0
    assert (tmp_path / "out" / "runs.parquet").read_bytes() == runs
