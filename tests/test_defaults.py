"""Somebody who compares schemes with defaults gets the ranking right.

Nobody sends again what is only late, and spraying is not behind ECMP where nothing fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft as package
from conftest import Weft

EXPERIMENT = Path(__file__).parents[1] / "experiments/defaults/defaults.toml"
FREE_OF_ORDER = {"conweave"}
"""Reorders where its timers, made for 100 Gb/s, are too short: its README says so."""
SPRAYING = ["spray", "spray-counter", "spray-bitmap", "switch-spray", "switch-rotation", "reps"]


@pytest.mark.slow
def test_no_default_misleads(tmp_path: Path, weft: Weft) -> None:
    """The smaller form of the experiment."""
    out = tmp_path / "out"
    weft("run", EXPERIMENT, "--quick", "-q", "--no-report", "-o", out)
    runs = pl.read_parquet(out / "runs.parquet")
    assert len(runs) > 500
    late = runs.filter(pl.col("spurious_retransmits") > 0.001 * pl.col("packets"))
    assert set(late["scheme"]) <= FREE_OF_ORDER, late.select("scheme", "fabric", "variant")
    place = ["fabric", "variant", "size_bytes"]
    ecmp = runs.filter(pl.col("scheme") == "ecmp").select(*place, ecmp="cct_s")
    both = runs.filter(pl.col("scheme").is_in(SPRAYING)).join(ecmp, on=place)
    assert len(both) == len(SPRAYING) * len(ecmp)
    behind = both.filter(pl.col("cct_s") > 1.02 * pl.col("ecmp"))
    assert behind.is_empty(), behind.select("scheme", *place, "cct_s", "ecmp")


@pytest.mark.parametrize("delay", ["50ns", "10us", "50us"])
@pytest.mark.parametrize("link", ["1Gbps", "10Gbps", "400Gbps"])
def test_swift_aims_beyond_the_round_trip_of_the_fabric(link: str, delay: str) -> None:
    """A target below it would have windows shrink to nothing: hundreds of times the bound."""
    run: dict[str, Any] = {
        "fabric": {"topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4},
        "workload": {"pattern": "permutation", "size": "1MB"},
        "balance": {"scheme": "ethereal"},
        "transport": {"congestion": "swift"},
    }
    run["fabric"] |= {"link": link, "delay": delay}
    assert package.simulate(run).runs["slowdown"].item() < 1.6
