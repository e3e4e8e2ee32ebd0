"""The claims of ParaLet (2024) that the notes beside the experiments make, held against a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import weft
from weft.analysis import paralet

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "paralet-2024"

pytestmark = pytest.mark.slow


def test_the_slowest_is_as_slow_as_equation_1_expects() -> None:
    """Section 4.1: within 15 %, over m and N, in the mean over ten seeds."""
    figure = weft.simulate(EXPERIMENTS / "equation1.toml", seeds=10)
    means = figure.runs.group_by("hosts", "balance.queue_pairs").agg(pl.col("slowdown").mean())
    assert len(means) == 12
    for hosts, queue_pairs, slowdown in means.iter_rows():
        expected = paralet.slowdown(queue_pairs, hosts)
        assert slowdown == pytest.approx(expected, rel=0.15), f"N = {hosts}, m = {queue_pairs}"
        # The mean of the largest of N is above the 1 - 1/N quantile.
        assert slowdown > expected


def test_throughput_and_completion_times_of_128_accelerators() -> None:
    """Figures 4 and 5: ParaLet before DRILL before ECMP, and LetFlow no better than ECMP."""
    figure = weft.simulate(EXPERIMENTS / "fig4-5-small.toml", quick=True)
    for workload in ("ring", "tree"):
        runs = figure.runs.filter(pl.col("swept.workload") == workload)
        most = dict(runs.select("variant", "max_goodput_gb_s").iter_rows())
        last = dict(runs.select("variant", "fct_max_s").iter_rows())
        assert most["ParaLet, m = 32"] > most["ParaLet, m = 8"] > 1.2 * most["ECMP"]
        assert most["ParaLet, m = 32"] > 1.05 * most["DRILL"]
        assert last["ECMP"] > 2 * last["ParaLet, m = 32"]
        assert last["LetFlow, 50 us"] > 0.9 * last["ECMP"]
        # All hosts at 100 Gb/s, headers apart.
        assert max(most.values()) < 128 * 12.5 * 1000 / 1048 * 1.001
    sampled = figure.series.filter(pl.col("kind") == "goodput")
    received = sampled.group_by("run").agg(pl.col("bytes").sum()).sort("run")["bytes"]
    assert received.to_list() == figure.runs.sort("run")["payload_bytes"].to_list()
