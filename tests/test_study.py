"""Whole studies: directories of experiments, `--quick`, `--summary`, `[report]`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import weft as package
from conftest import SMALL, Weft
from sweeps import row_of, rows, specs
from test_sweep import run_folders
from weft.errors import ExperimentError
from weft.report import tables, views
from weft.report.figures.metrics import figures
from weft.report.grouping import group
from weft.study import inputs, progress, settings

QUICK = SMALL + '[quick]\n"balance.scheme" = ["ecmp", "ethereal"]\n"workload.size" = "4KB"\n'
PRINTED = """
[[printed]]
source = "figure 1"
column = "slowdown"
by = "balance.scheme"
values = { ecmp = 1.5, spray = 1.2 }
within = 10
"""


def test_quick_is_part_of_the_whole(weft: Weft, tmp_path: Path) -> None:
    """One seed and fewer schemes, whose results the whole does not simulate again."""
    (tmp_path / "fig.toml").write_text(SMALL + '[quick]\n"balance.scheme" = ["ecmp", "ethereal"]\n')
    run = ("run", "fig.toml", "-o", "out", "--no-report")
    done = weft(*run, "--quick")
    assert done.returncode == 0, done.stderr
    assert len(run_folders(tmp_path / "out")) == 2
    whole = weft(*run)
    assert whole.stderr.splitlines()[0] == "2 of 6 runs are done already"
    assert len(run_folders(tmp_path / "out")) == 6


def test_quick_changes_any_key(weft: Weft, tmp_path: Path) -> None:
    """And `--set` changes what it says."""
    (tmp_path / "fig.toml").write_text(QUICK)
    rows = json.loads(weft("run", "fig.toml", "--quick", "--json").stdout)
    assert [(row["scheme"], row["seed"], row["size_bytes"]) for row in rows] == [
        ("ecmp", 1, 4000),
        ("ethereal", 1, 4000),
    ]
    done = weft(
        "run", "fig.toml", "--quick", "--json", "--seeds", "2", "--set", "workload.size=8KB"
    )
    assert [(row["seed"], row["size_bytes"]) for row in json.loads(done.stdout)] == [
        (1, 8000), (2, 8000), (1, 8000), (2, 8000),
    ]  # fmt: skip
    assert len(package.simulate(tmp_path / "fig.toml", quick=True).runs) == 2


def test_a_directory_is_a_study(weft: Weft, tmp_path: Path) -> None:
    """Its experiments by number, what lies deeper is left alone."""
    folder = tmp_path / "paper"
    (folder / "common").mkdir(parents=True)
    for name in ("fig10", "fig2", "common/setup"):
        (folder / f"{name}.toml").write_text(SMALL.replace("A small", name))
    (folder / "readme.md").write_text("notes")
    done = weft("run", "paper", "--quick", "-q")
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line.endswith("all-to-all")]
    assert titles == ["fig2 all-to-all", "fig10 all-to-all"]


def test_summary_is_one_object(weft: Weft, tmp_path: Path) -> None:
    """Means and comparisons; the rows of `--json` stay rows."""
    (tmp_path / "fig.toml").write_text(SMALL + PRINTED)
    done = weft("run", "fig.toml", "--summary", "-q", "-o", "out", "--no-report")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    (fig,) = summary["experiments"]
    ecmp = fig["statistics"][0]
    assert ecmp["swept"] == {"balance.scheme": "ecmp"}
    assert ecmp["seeds"] == [1, 2]
    assert set(ecmp["slowdown"]) == {"mean", "sd", "half_95"}
    one, two = fig["printed"]
    assert one["of"] == [{"balance.scheme": "ecmp"}]
    assert one["measured"] == pytest.approx(ecmp["slowdown"]["mean"])
    assert one["difference"] == pytest.approx(one["measured"] - 1.5)
    assert (one["agrees"], two["printed"], two["seeds"]) == (True, 1.2, 2)
    array = json.loads(weft("run", "fig.toml", "--json", "-q", "-o", "out", "--no-report").stdout)
    assert len(array) == 6
    assert "printed" not in array[0]
    assert package.simulate(tmp_path / "fig.toml").summary == fig | {"name": "fig"}


def test_a_disagreement_is_no_failure(weft: Weft, tmp_path: Path) -> None:
    """It is said in words; and what --set leaves out is counted."""
    (tmp_path / "fig.toml").write_text(SMALL + PRINTED.replace("within = 10", "within = 0.0001"))
    done = weft("run", "fig.toml", "-q", "--set", "balance.scheme=ecmp")
    assert done.returncode == 0, done.stderr
    assert "differs (tolerance 0.0001)" in done.stdout
    assert "0 of 1 agree; 1 printed result has no runs here" in done.stdout


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            '[report]\ncolumns = ["slowdwn"]\n',
            'report.columns: "slowdwn" is not a result column; did',
        ),
        (
            '[report]\nseries = "fabric.k"\n',
            'report.series: "fabric.k" is not a swept key; use one of',
        ),
        ('[report]\nseries = "workload.size"\n', 'report.series: "workload.size" is not swept'),
        ('[report]\nfigures = ["cdf"]\n', 'report.figures: "cdf" is not a kind of figure'),
        ("[best]\nof = 3\n", "best.of: 3 is not text"),
        ("[[printed]]\nvalue = 3\n", "printed 1: where: leaves balance.scheme open"),
        ("[quick]\nseeds = 0\n", "quick.seeds (line"),
    ],
)
def test_mistakes_on_the_command_line(weft: Weft, tmp_path: Path, section: str, said: str) -> None:
    """One line, exit code 2, nothing printed."""
    (tmp_path / "fig.toml").write_text(SMALL + section)
    done = weft("run", "fig.toml", "-q")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: fig.toml: {said}")


def test_unknown_columns_stop_a_sweep_at_its_first_result(weft: Weft, tmp_path: Path) -> None:
    """Not after all of it; what had finished is kept."""
    many = SMALL.replace("seeds = 2", "seeds = 60")
    (tmp_path / "fig.toml").write_text(many + '[report]\ncolumns = ["slowdwn"]\n')
    done = weft("run", "fig.toml", "-o", "out", "--jobs", "1")
    assert done.returncode == 2
    assert len(run_folders(tmp_path / "out")) < 90
    assert weft("run", "fig.toml", "-o", "out", "-q").stderr.startswith("error: fig.toml: report")


RECOVERIES = specs(
    {
        "balance.scheme": ["host", "ecmp"],
        "transport.recovery": ["tcp", "roce"],
        "workload.flows": [1, 2, 4],
    }
)
BOTH = ["host, tcp", "host, roce", "ecmp, tcp", "ecmp, roce"]


@pytest.mark.parametrize(
    ("series", "names", "facets", "title"),
    [
        ("transport.recovery", ["tcp", "roce"], ["host", "ecmp"], "recovery"),
        ("balance.scheme", ["host", "ecmp"], ["tcp", "roce"], "scheme"),
        (
            ["balance.scheme", "transport.recovery"],
            BOTH,
            [""],
            "scheme, recovery",
        ),
        ("workload.flows", ["flows 1", "flows 2", "flows 4"], BOTH, "flows"),
    ],
)
def test_any_swept_key_can_tell_series_apart(
    series: str | list[str], names: list[str], facets: list[str], title: str
) -> None:
    """`[report] series`; the numeric key that is left is x."""
    chosen = settings.read({"report": {"series": series}}, RECOVERIES, [], "fig.toml")
    grouping = group(rows(RECOVERIES, lambda _: 1.0), chosen.x, chosen.series)
    assert grouping.series == names
    assert grouping.facets == facets
    assert grouping.series_name == title
    assert (grouping.x_key == "workload.flows") == (series != "workload.flows")


def test_columns_choose_table_and_figures() -> None:
    """Mean with interval, and deviation; a figure each, in their units."""
    options = {"report": {"columns": ["fct_p99_s", "drops"], "figures": []}}
    runs = specs({"balance.scheme": ["host", "ecmp"]}, seeds=2)
    measured = [row_of(spec, fct_p99_s=1e-3 * spec["seed"], drops=7) for spec in runs]
    view = views.View(settings.read(options, runs, [], "fig.toml"), group(measured))
    table = tables.of(view, 4)
    assert table.columns == ["fct p99", "sd", "drops", "sd"]
    assert [cell.text for cell in table.sections[0].lines[0].cells] == [
        "1.5 ± 6.4 ms", "0.71 ms", "7 ± 0", "0",
    ]  # fmt: skip
    drawn = figures(view)
    assert [figure.name for figure in drawn] == ["fct_p99_s", "drops"]
    assert drawn[0].panels[0].plot.y.title == "fct p99 [ms]"
    assert view.settings.figures == ()
    alone = tables.summarise(group(measured[:1]), None, ["drops"])
    assert alone.columns == ["drops"]


def test_an_empty_directory(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(ExperimentError, match="a directory without experiments"):
        inputs.experiment_files(tmp_path)


def test_clock() -> None:
    """Hours only where there are any."""
    assert [progress.clock(t) for t in (7, 754, 3723)] == ["0:07", "12:34", "1:02:03"]


def test_the_examples_of_the_guide_are_good() -> None:
    """Every TOML block of docs/experiments.md reads, against a sweep that has its keys."""
    guide = (Path(__file__).parent.parent / "docs" / "experiments.md").read_text()
    blocks = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)]
    whole = [block for block in blocks if "fabric" in block]
    assert [len(package.simulate(block).runs) for block in whole] == [6, 12]
    jobs = [block for block in blocks if "workload" in block and "fabric" not in block]
    fabric = {"topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 8}
    for job in jobs:
        experiment = {**job, "fabric": fabric, "balance": {"scheme": "ecmp"}}
        if "trace" in job["workload"]:
            with pytest.raises(package.ExperimentError, match=r"neither a file traces/gpt\.0\.et"):
                inputs.from_dict(experiment, "guide")
        else:
            assert len(inputs.from_dict(experiment, "guide").runs) == 1
    assert len(jobs) == 5
    blocks = [block for block in blocks if block.keys() != {"failures"}]
    beside = [block for block in blocks if block.keys() & {"stragglers", "background"}]
    workload = {"collective": "all-reduce", "size": "1KB", "ranks": 8}
    for block in beside:
        experiment = {**block, "fabric": fabric, "workload": workload}
        assert len(package.simulate({**experiment, "balance": {"scheme": "ecmp"}}).runs) == 1
    assert len(beside) == 2
    parts = [block for block in blocks if "workload" not in block and block not in beside]
    shown = {key: table for block in parts for key, table in block.items() if key != "quick"}
    assert set(shown) == {"report", "best", "printed"}
    swept = {
        "balance.scheme": ["host-spray", "switch-spray", "flowlet", "ecmp-ar", "ecmp"],
        "variant": ["all-to-all, large", "all-to-all, small"],
        "transport.rate_coefficient": [0.8, 1.0],
        "transport.recovery": ["tcp"],
    }
    runs = specs(swept, fabric={"failures": "none"})
    # The ratio is of another figure, with failures.
    shown["printed"] = [one for one in shown["printed"] if "over" not in one]
    read = settings.read(shown, runs, [], "guide.toml")
    assert [one.kind for one in read.printed] == ["value"] * 4 + ["order"]
    assert read.best == settings.Best("transport.rate_coefficient", "normalised", 3)
