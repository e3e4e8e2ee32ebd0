"""DNLB (2025): the claims that its figures make, held against short runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "dnlb-2025"

pytestmark = pytest.mark.slow


def simulated(name: str, x: str, **changes: Any) -> weft.Result:
    """A figure with other values."""
    experiment = {
        "extends": str(EXPERIMENTS / f"{name}.toml"),
        "printed": [],
        "report": {"x": x, "series": "balance.scheme"},
    }
    return weft.simulate({**experiment, **changes})


def test_dnlb_balances_where_equation_4_holds() -> None:
    """Figures 6b and 6c: near zero with 8 queue pairs, where ECMP's variance is large.

    With one for each of two nodes six uplinks of eight stay idle, and the user is told.
    """
    nodes = [
        {"name": "2 nodes", "workload": {"ranks": 16, "group": 8}},
        {"name": "8 nodes", "workload": {"ranks": 64, "group": 32}},
    ]
    schemes = ["e-ecmp-8", "dnlb-1", "dnlb-8"]
    sweep = {"variant": nodes, "balance.scheme": schemes}
    with pytest.warns(weft.WeftWarning, match="equation 4"):
        result = simulated("fig6c", "variant", sweep=sweep, workload={"size": "16MB"})
    found = {
        (row["scheme"], row["ranks"]): row["uplink_variance_pct2"]
        for row in result.runs.iter_rows(named=True)
    }
    assert found["dnlb-8", 64] < 0.06
    assert found["dnlb-8", 16] < 0.06
    assert found["e-ecmp-8", 64] > 50
    assert found["dnlb-1", 16] > 500


def test_collisions_cost_a_ring_a_quarter_of_its_bandwidth() -> None:
    """Figure 6a: DNLB at line rate, ECMP far below."""
    runs = simulated(
        "fig6a",
        "balance.scheme",
        sweep={"balance.scheme": ["e-ecmp-8", "dnlb-8"]},
        workload={"size": "64MB"},
    )
    busbw = dict(runs.runs.select("scheme", "busbw_gb_s").iter_rows())
    assert 23 < busbw["dnlb-8"] < 25
    assert busbw["e-ecmp-8"] < 0.85 * busbw["dnlb-8"]


def test_live_uplinks_are_alike_after_a_failure() -> None:
    """Figure 7: within 1 % of each other, and the dead one idle; path pinning cannot do that."""
    result = simulated("fig7", "failures", workload={"size": "128MB"})
    after = result.runs.filter(pl.col("wire_drops") > 0)
    usage = {row["scheme"]: row for row in after.iter_rows(named=True)}
    assert usage["dnlb-8"]["uplink_spread_pct"] < 0.01 * usage["dnlb-8"]["uplink_usage_pct"]
    assert usage["path-pinning"]["uplink_spread_pct"] > 20
    dead = result.links.filter(
        (pl.col("run") == usage["dnlb-8"]["run"])
        & (pl.col("from") == "leaf-0")
        & (pl.col("to") == "spine-0")
    )
    assert dead["utilisation"].item() < 0.05
