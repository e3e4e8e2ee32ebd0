"""What McClure et al. (2025) prints, held against runs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import weft

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "study-2025"

pytestmark = pytest.mark.slow

PERMUTATIONS = """
extends = "{table}"
printed = []
[workload]
pattern = "permutation"
[report]
x = "fabric.switch.buffer"
[sweep]
"fabric.switch.buffer" = ["400KB", "32KB"]
"balance.scheme" = ["spray-label", "switch-spray", "switch-spray-adaptive", "ecmp"]
seeds = 10
"""
"""The lower half of table 2."""

PRINTED = {
    ("400KB", "spray-label"): 1.25,
    ("400KB", "switch-spray"): 1.26,
    ("400KB", "switch-spray-adaptive"): 1.22,
    ("32KB", "spray-label"): 1.30,
    ("32KB", "switch-spray"): 1.32,
    ("32KB", "switch-spray-adaptive"): 1.31,
}


def test_the_permutations_of_table_2(tmp_path: Path) -> None:
    """Spraying within 0.03, ECMP within a printed standard deviation, in the study's variant."""
    path = tmp_path / "permutations.toml"
    path.write_text(PERMUTATIONS.format(table=EXPERIMENTS / "table2-as-coded.toml"))
    runs = weft.simulate(path).runs
    rows = runs.group_by("fabric.switch.buffer", "scheme").agg(pl.col("normalised").mean())
    means = {(buffer, scheme): mean for buffer, scheme, mean in rows.iter_rows()}
    for cell, printed in PRINTED.items():
        assert abs(means[cell] - printed) <= 0.03, (cell, means[cell])
    assert abs(means["400KB", "ecmp"] - 5.60) <= 0.58
    assert abs(means["32KB", "ecmp"] - 5.25) <= 0.51
