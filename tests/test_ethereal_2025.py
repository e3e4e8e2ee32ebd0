"""Ethereal (2025): the claims that its figures make, held against runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft
from weft.analysis import trace_info

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "ethereal-2025"
THEIRS = Path(__file__).parent.parent.parent / "shared" / "traces" / "ethereal" / "Gpt_117M.txt"


def collectives(path: Path) -> dict[tuple[str, int], int]:
    """How many collectives of each operation and size a trace has; those of no bytes aside."""
    found = trace_info.info(path, ranks=256)
    rows = [row for row in found["collectives"] if row["bytes"]]
    return {(row["operation"], row["bytes"]): row["nodes"] for row in rows}


def test_the_iteration_has_the_collectives_of_the_published_trace() -> None:
    """61 of them beside those of no bytes: sizes and counts of the trace that its authors use."""
    ours = collectives(EXPERIMENTS / "common" / "gpt2.txt")
    assert sum(ours.values()) == 61
    assert ours["all-reduce", 6_291_456] == 50
    assert ours["all-gather", 1_125_888 * 256] == 1
    if not THEIRS.exists():
        pytest.skip("no ../shared/traces/ethereal/Gpt_117M.txt to compare with")
    assert ours == collectives(THEIRS)


@pytest.fixture(scope="module")
def leaf_spine() -> pl.DataFrame:
    """Figure 3 at 16 MB."""
    experiment: dict[str, Any] = {
        "extends": str(EXPERIMENTS / "fig3.toml"),
        "printed": [],
        "report": {"x": "workload.algorithm"},
        "sweep": {
            "workload.algorithm": ["direct", "recursive-doubling", "ring", "double-binary-tree"],
            "balance.scheme": ["ecmp", "subflows-8", "spray", "reps-sticky", "ethereal"],
        },
        "workload": {"size": "16MB"},
    }
    return weft.simulate(experiment).runs


def of(runs: pl.DataFrame, column: str, algorithm: str) -> dict[str, float]:
    """A column by scheme."""
    rows = runs.filter(pl.col("algorithm") == algorithm).select("scheme", column)
    return dict(rows.iter_rows())


@pytest.mark.slow
def test_ethereal_is_first_where_flows_collide(leaf_spine: pl.DataFrame) -> None:
    """All-to-all: 7.56 % before ECMP; recursive doubling: far before all on single paths."""
    direct = of(leaf_spine, "cct_s", "direct")
    assert direct["ethereal"] / direct["ecmp"] == pytest.approx(1 - 0.0756, abs=0.03)
    assert direct["ethereal"] / direct["spray"] == pytest.approx(1, abs=0.03)
    doubling = of(leaf_spine, "cct_s", "recursive-doubling")
    assert doubling["ethereal"] == min(doubling.values())
    assert doubling["ethereal"] < 0.75 * min(doubling["ecmp"], doubling["subflows-8"])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ring", "double-binary-tree"])
def test_few_neighbours_need_no_balance(leaf_spine: pl.DataFrame, algorithm: str) -> None:
    """All schemes are alike."""
    times = of(leaf_spine, "cct_s", algorithm).values()
    assert max(times) < 1.02 * min(times)


@pytest.mark.slow
def test_few_queue_pairs(leaf_spine: pl.DataFrame) -> None:
    """At most 32 with recursive doubling, 64 in all but all-to-all; sub-flows need thousands."""
    doubling = of(leaf_spine, "max_qps", "recursive-doubling")
    assert 16 < doubling["ethereal"] <= 32
    for algorithm in ("ring", "double-binary-tree"):
        assert of(leaf_spine, "max_qps", algorithm)["ethereal"] <= 64
    direct = of(leaf_spine, "max_qps", "direct")
    assert direct["subflows-8"] > 6 * direct["ethereal"]


@pytest.mark.slow
def test_short_messages_have_few_parts() -> None:
    """Figure 4's rings of 4 MB: messages of one packet, at most 64 queue pairs."""
    experiment: dict[str, Any] = {
        "extends": str(EXPERIMENTS / "fig4.toml"),
        "printed": [],
        "report": {"x": "balance.unit"},
        "sweep": {
            "workload.algorithm": ["ring"],
            "balance.scheme": ["ethereal"],
            "balance.unit": ["packet", "byte"],
        },
        "workload": {"size": "4MB"},
    }
    runs = weft.simulate(experiment).runs
    parts = dict(runs.select("balance.unit", "max_qps").iter_rows())
    assert parts["packet"] <= 64 < parts["byte"]


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "most"), [("fig5", 32), ("fig7-leaf-spine", 32)])
def test_few_queue_pairs_where_ranks_wait_for_their_sends(figure: str, most: int) -> None:
    """On GPT-2, and after a failure too; ranks that do not wait need more."""
    experiment: dict[str, Any] = {
        "extends": str(EXPERIMENTS / f"{figure}.toml"),
        "printed": [],
        "report": {"x": "workload.await_sends"},
        "sweep": {
            "workload.algorithm": ["recursive-doubling"],
            "balance.scheme": ["ethereal"],
            "workload.await_sends": ["step", "never"],
        },
    }
    if figure == "fig5":
        experiment["workload"] = {"trace": str(EXPERIMENTS / "common" / "gpt2.txt")}
    else:
        experiment["workload"] = {"size": "64MB"}
    runs = weft.simulate(experiment).runs
    pairs = dict(runs.select("workload.await_sends", "max_qps").iter_rows())
    assert pairs["step"] <= most < pairs["never"]
