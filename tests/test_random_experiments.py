"""Twill in random experiments: beside Ethereal and ECMP, whatever fabric, job and failure."""

from __future__ import annotations

import json
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


def test_means_are_those_of_single_runs(tmp_path: Path) -> None:
    """The first run of a case is that without `--seeds`, and none counts twice."""
    both = PROGRAM["run"](1, 17, ["twill"], 2)
    alone = PROGRAM["run"](1, 17, ["twill"])
    second = PROGRAM["mean_slowdown"](alone["experiment"], "twill", [18 + PROGRAM["SEEDS_APART"]])
    assert second != alone["slowdown"]["twill"]
    mean = statistics.fmean([alone["slowdown"]["twill"], second])
    assert math.isclose(both["slowdown"]["twill"], mean)
    results = tmp_path / "out.jsonl"
    results.write_text("".join(json.dumps(case) + "\n" for case in (alone, both)))
    for seeds, case in ((1, alone), (2, both)):
        assert PROGRAM["read"](results, 1, ["twill"], seeds) == {17: case}
    assert PROGRAM["read"](results, 1, ["twill"], 3) == {}
