"""One line a scheme, one column a case: the table and the heat map of everything."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft as library
from conftest import Weft

EXPERIMENT = """
title = "Two cases"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
link = "100Gbps"
delay = "500ns"
[sweep]
"balance.scheme" = ["ecmp", "ethereal", "drill"]
variant = [
    { name = "ring", workload = { pattern = "ring", size = "100KB" } },
    { name = "all", workload = { pattern = "all-to-all", size = "20KB" } },
]
seeds = 2
[report]
columns = ["slowdown"]
overview = ["max_qps", "switch_changes"]
figures = []
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def mean(runs: pl.DataFrame, scheme: str, variant: str) -> float:
    """Of the slowdown over seeds."""
    rows = runs.filter((pl.col("scheme") == scheme) & (pl.col("variant") == variant))
    return math.fsum(rows["slowdown"]) / len(rows)


def test_one_line_a_scheme(path: Path, tmp_path: Path, weft: Weft) -> None:
    """Means, their geometric mean, the largest of a number, all there is of words."""
    done = weft("run", path, "-o", tmp_path / "out", "--plots", "png")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    for scheme, asks in [("ecmp", "nothing"), ("drill", "queue lengths")]:
        (line,) = [line for line in shown if line.startswith(scheme)]
        ring, everybody = mean(runs, scheme, "ring"), mean(runs, scheme, "all")
        numbers = [float(word) for word in line.split()[1:4]]
        both = math.sqrt(ring * everybody)
        assert numbers == pytest.approx([ring, everybody, both], rel=0.006)
        most = runs.filter(pl.col("scheme") == scheme)["max_qps"].max()
        assert line.split()[4] == str(most)
        assert line.endswith(asks)
    assert next(line for line in shown if line.startswith("ethereal")).endswith("route by path id")
    words = " ".join(done.stdout.split())
    assert "in each scenario: slowdown (completion time / lower bound); mean: geometric" in words
    assert "max QPs, asks of switches: largest of all scenarios" in words
    assert "±" not in done.stdout
    assert (tmp_path / "out" / "plots" / "two-overview.png").stat().st_size > 10_000


def test_a_scheme_with_all_that_goes_with_it_is_a_line(
    path: Path, tmp_path: Path, weft: Weft
) -> None:
    """A table among the schemes is known by its name, beside the scheme that it has."""
    own = '{ name = "slow start", balance = { scheme = "ecmp", start_jitter = "1ms" } }'
    text = EXPERIMENT.replace('["ecmp", ', f'["ecmp", {own}, ').replace("seeds = 2", "seeds = 1")
    path.write_text(text, encoding="utf-8")
    done = weft("run", path, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ecmp", "slow start"))]
    assert [line.split()[0] for line in lines] == ["ecmp", "slow"]
    quick, slow = (float(line.removeprefix("slow start").split()[-3]) for line in lines)
    assert slow > 10 * quick


def test_unknown_columns_are_refused(path: Path, tmp_path: Path, weft: Weft) -> None:
    """With the nearest known one."""
    text = EXPERIMENT.replace('"max_qps", ', '"max_qp", ')
    path.write_text(text, encoding="utf-8")
    done = weft("run", path, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert (
        'report.overview: "max_qp" is not a result column; did you mean "max_qps"?' in done.stderr
    )


def test_every_scheme_says_what_it_asks_of_switches() -> None:
    """Schemes that act in switches ask for something; those that do not, for nothing more."""
    experiment: dict[str, Any] = {
        "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "workload": {"pattern": "ring", "size": "1KB"},
        "sweep": {"balance.scheme": ["ecmp", "spray", "reps", "ethereal", "dnlb-2", "conweave"]},
    }
    rows = library.simulate(experiment).runs.select("scheme", "switch_changes").iter_rows()
    asks = dict(rows)
    assert [asks[name] for name in ("ecmp", "spray", "reps")] == ["nothing"] * 3
    assert "nothing" not in [asks[name] for name in ("ethereal", "dnlb-2", "conweave")]
