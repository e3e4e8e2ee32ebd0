"""The weighted plan beside the exact optimum, on random fabrics of unequal links."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linear_program
from weft.plans import make, network, verify

CASES = 200
NEAR = 1.01


def fabric(draw: random.Random) -> dict[str, Any]:
    """A leaf-spine of which links are slow or down, so that no pair of leaves is cut off."""
    leaves, spines = draw.randint(2, 6), draw.randint(2, 6)
    table: dict[str, Any] = {
        "fabric": {
            "topology": "leaf-spine",
            "leaves": leaves,
            "spines": spines,
            "hosts_per_leaf": draw.randint(1, 6),
            "link": "100Gbps",
            "delay": "500ns",
            "links_per_pair": draw.choice([1, 1, 2]),
        }
    }
    failures: dict[str, Any] = {}
    kept = draw.randrange(spines)
    for leaf in range(leaves):
        for spine in range(spines):
            fate = draw.random()
            link = {"links": [f"leaf-{leaf} <-> spine-{spine}"]}
            if fate < 0.1 and spine != kept:
                failures[f"d{leaf}-{spine}"] = {"kind": "down", **link}
            elif fate < 0.5:
                lost = draw.choice([0.25, 0.5, 0.75, 0.9])
                failures[f"s{leaf}-{spine}"] = {"kind": "degraded", "lost": lost, **link}
    return table | ({"failures": failures} if failures else {})


def job(draw: random.Random, hosts: int) -> dict[str, Any]:
    """Uniform, random and sparse traffic by turns."""
    kind = draw.choice(["all-to-all", "permutation", "matrix"])
    if kind == "matrix":
        pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
        chosen = draw.sample(pairs, max(1, len(pairs) // 3))
        rows = [f"{a},{b},{draw.randint(1, 50) * 20}KB" for a, b in chosen]
        return {"rows": rows}
    return {"workload": {"pattern": kind, "size": "1MB"}}


def gap(case: int, folder: Path) -> float:
    """How many times the optimum the plan of a random case takes."""
    draw = random.Random(case)
    place = fabric(draw)
    hosts = place["fabric"]["leaves"] * place["fabric"]["hosts_per_leaf"]
    work = job(draw, hosts)
    if "rows" in work:
        (folder / "m.csv").write_text("\n".join(["src,dst,size", *work["rows"]]) + "\n")
        work = {"workload": {"file": str(folder / "m.csv")}}
    options = {"unit": "byte"}
    plan = make.of(place, work | {"balance": options}, "ethereal-weighted", "random", case)
    found = verify.verify(plan)
    net = network.of(plan["links"])
    worst = 1.0
    for number, step in enumerate(plan["steps"]):
        pieces = next(verify.pieces_of(plan, number))
        best = linear_program.solve(net, linear_program.demands(net, pieces)).seconds
        best = max(best, linear_program.at_hosts(net, np.asarray(step["loads"])))
        # The certificate and the program prove the same, from two sides. In bundles the program
        # has the paths that plans have, where a member up goes with one member down; the
        # certificate holds for all.
        assert found[number].bound_s <= best * (1 + 1e-5)
        if place["fabric"]["links_per_pair"] == 1:
            assert found[number].bound_s == pytest.approx(best, rel=1e-5)
        worst = max(worst, found[number].seconds / best)
    return worst


@pytest.mark.slow
def test_the_weighted_plan_is_within_a_percent_of_the_optimum(tmp_path: Path) -> None:
    """In 95 of 100 cases at least; the others are named."""
    gaps = {case: gap(case, tmp_path) for case in range(CASES)}
    far = {case: round(over, 5) for case, over in gaps.items() if over > NEAR}
    print(f"beyond 1 %: {far}; the worst {max(gaps.values()):.5f}")
    assert len(far) <= CASES // 20, f"more than 1 % above the optimum: {far}"
