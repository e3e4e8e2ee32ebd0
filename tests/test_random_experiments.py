"""Twill in random experiments: beside Ethereal and ECMP, whatever fabric, job and failure."""

from __future__ import annotations

import math
import runpy
import statistics
from pathlib import Path
from typing import Any

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "bench/random_experiments.py"))
SCHEMES = ["twill", "ethereal", "ecmp"]


def ratio(case: dict[str, Any]) -> float:
    """Its slowdown over the better of the others'."""
    mine, *others = (case["slowdown"][scheme] or math.inf for scheme in SCHEMES)
    return float(mine / min(others))


def test_it_is_never_far_behind_and_often_ahead() -> None:
    """Where nothing fails it is within a tenth; where something does, mostly ahead."""
    cases = [PROGRAM["run"](1, number, SCHEMES) for number in range(40)]
    whole = [ratio(case) for case in cases if "failures" not in case["experiment"]]
    failing = [ratio(case) for case in cases if "failures" in case["experiment"]]
    assert len(whole) > 10
    assert len(failing) > 10
    assert max(whole) < 1.1, whole
    assert max(failing) < 1.25, failing
    assert statistics.geometric_mean(failing) < 0.95, failing


def test_a_case_is_the_same_every_time() -> None:
    """A number names an experiment and its times."""
    assert PROGRAM["run"](1, 3, ["twill"]) == PROGRAM["run"](1, 3, ["twill"])
    assert PROGRAM["run"](2, 3, ["twill"]) != PROGRAM["run"](1, 3, ["twill"])
