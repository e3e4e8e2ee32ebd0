"""The claims of Ethereal (2024) that the notes beside the experiments make, held against a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import weft

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "ethereal-2024"

pytestmark = pytest.mark.slow


def simulated(name: str) -> weft.Result:
    """Two seeds of a figure."""
    return weft.simulate(EXPERIMENTS / f"{name}.toml", seeds=2)


def mean(result: weft.Result, column: str) -> dict[str, float]:
    """The mean of a column over seeds, by scheme."""
    rows = result.runs.group_by("scheme").agg(pl.col(column).mean())
    return dict(rows.iter_rows())


def longest(result: weft.Result, tier: str) -> dict[str, float]:
    """The longest queue of a tier in bytes, by scheme."""
    ports = result.links.filter(pl.col("tier") == tier)
    return dict(ports.group_by("scheme").agg(pl.col("peak_queue_bytes").max()).iter_rows())


def peaks(result: weft.Result, scheme: str, above: float) -> int:
    """How often the receiver's queue rises above a size, in bytes."""
    run = result.runs.filter(pl.col("scheme") == scheme).row(0, named=True)["run"]
    queue = result.series.filter((pl.col("run") == run) & (pl.col("name") == "leaf-0 -> host-0"))
    high = queue.sort("time_s").select(pl.col("bytes") > above).to_series()
    return int((high & ~high.shift(1, fill_value=False)).sum())


def test_incasts_repeat_under_every_scheme_and_collisions_only_under_ecmp() -> None:
    """Figure 2: the last link queues under both schemes, the core only under ECMP."""
    figure = simulated("fig2")
    # 16 packets a flow, sent round robin from the same rank on: 16 incasts.
    assert peaks(figure, "ecmp", 100e3) == peaks(figure, "spray", 100e3) == 16
    cct = mean(figure, "cct_s")
    assert cct["spray"] == pytest.approx(cct["ecmp"], rel=0.02)
    core = longest(figure, "leaf-up")
    assert core["ecmp"] > 100e3
    assert core["ecmp"] > 2.5 * core["spray"]


def test_randomised_starts_end_the_incasts() -> None:
    """Figure 3: no peaks at the receiver; what is left is load balancing."""
    figure = simulated("fig3")
    for scheme in ("ecmp", "spray", "ethereal"):
        assert peaks(figure, scheme, 50e3) == 0
    cct = mean(figure, "cct_s")
    assert cct["ethereal"] <= 1.005 * cct["spray"] < cct["ecmp"]
    core = longest(figure, "leaf-up")
    assert core["ethereal"] < core["spray"] < core["ecmp"] / 2.5


def test_short_all_to_all_equals_spraying_on_single_paths() -> None:
    """Figures 4a and 4c: all are as fast as spraying but for ECMP."""
    figure = simulated("fig4-all-to-all-short")
    cct = mean(figure, "cct_s")
    for scheme in ("reps", "reps-sticky", "ethereal"):
        assert cct[scheme] == pytest.approx(cct["spray"], rel=0.005)
    assert cct["ecmp"] > 1.02 * cct["spray"]
    assert mean(figure, "max_qps")["ethereal"] == 255


def test_short_ring() -> None:
    """Figures 4e and 4g: Ethereal before spraying before ECMP."""
    cct = mean(simulated("fig4-ring-short"), "cct_s")
    assert cct["ethereal"] < cct["spray"] < cct["ecmp"] / 1.5
    assert cct["ecmp"] > 1.8 * cct["ethereal"]


def test_long_ring_wants_entropy_that_sticky_reps_has_not() -> None:
    """Figures 4f and 4h: the few paths that sticky REPS keeps cost it a fifth."""
    figure = simulated("fig4-ring-long")
    cct = mean(figure, "cct_s")
    assert cct["ethereal"] < cct["spray"] < cct["reps-sticky"] < cct["ecmp"]
    assert cct["reps-sticky"] > 1.2 * cct["spray"]
    assert cct["ecmp"] > 2 * cct["ethereal"]
    assert cct["ethereal"] < 1.1 * mean(figure, "bound_s")["ethereal"]
    core = longest(figure, "leaf-up")
    assert core["ethereal"] * 5 < core["spray"]


def test_the_literal_fabric_splits_in_two_as_the_text_says() -> None:
    """One link a pair of leaf and spine: each flow becomes two parts, and the order stays."""
    figure = simulated("single-link/fig4-ring-short")
    # 4 flows over 8 uplinks: gcd 4, each flow in 2 parts.
    assert mean(figure, "max_qps") == {
        "ecmp": 4, "spray": 4, "reps": 4, "reps-sticky": 4, "ethereal": 8,
    }  # fmt: skip
    cct = mean(figure, "cct_s")
    assert cct["ethereal"] < cct["spray"] < cct["ecmp"]
