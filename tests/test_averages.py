"""Averages over seeds and comparisons of them: known numbers, and columns that never contradict."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.report import tables
from weft.report.grouping import group
from weft.study import averages, stats
from weft.testbed import bench, show


def row(scheme: str, seed: int, cct: float, bound: float = 1.0, **more: Any) -> dict[str, Any]:
    """A run of a job of one collective, whose bandwidth is one over its time."""
    return {
        "scheme": scheme,
        "seed": seed,
        "hosts": 4,
        "cct_s": cct,
        "bound_s": bound,
        "slowdown": cct / bound,
        "normalised": cct / bound * 2,
        "busbw_gb_s": 1 / cct,
        "ranks": 4,
        "collectives": 1,
        "compute_s": 0.0,
        "fct_p99_s": cct,
        "drops": 0,
        "retransmits": 0,
        "spurious_retransmits": 0,
        "max_qps": 1,
        "peak_queue_bytes": 0,
        "swept": {"balance.scheme": scheme},
        **more,
    }


def cell(
    scheme: str, times: list[float], bounds: list[float] | None = None
) -> list[dict[str, Any]]:
    """A row a seed."""
    bounds = bounds or [1.0] * len(times)
    pairs = zip(times, bounds, strict=True)
    return [row(scheme, seed, time, bound) for seed, (time, bound) in enumerate(pairs, start=1)]


def test_a_mean_of_ratios_does_not_turn_the_order_of_means() -> None:
    """Paired ratios of 0.5, 1.25, 1.25 have the mean 1.0; the times have 8.0 against 10.0."""
    base, mine = cell("ecmp", [20.0, 4.0, 6.0]), cell("weft", [10.0, 5.0, 7.5])
    assert [a["cct_s"] / b["cct_s"] for a, b in zip(mine, base, strict=True)] == [0.5, 1.25, 1.25]
    found = averages.ratio("cct_s", mine, base)
    assert found is not None
    assert found.value == pytest.approx(22.5 / 30)
    # By hand: (10 - 0.75 * 20) / 10, (5 - 0.75 * 4) / 10, (7.5 - 0.75 * 6) / 10.
    off = stats.mean([-0.5, 0.2, 0.3])
    assert found.half == pytest.approx(off.half)
    assert found.includes(1.0)


def test_a_ratio_that_every_seed_has_is_certain() -> None:
    """However much seeds differ among each other."""
    base, mine = cell("ecmp", [1.0, 2.0, 9.0]), cell("weft", [3.0, 6.0, 27.0])
    found = averages.ratio("cct_s", mine, base)
    assert found is not None
    assert (found.value, found.half) == (pytest.approx(3.0), pytest.approx(0.0, abs=1e-12))
    assert not found.includes(1.0)


def test_bandwidths_are_all_bytes_over_all_time() -> None:
    """1 and 1/3 bytes a second for as many bytes: 2 bytes in 4 s."""
    assert averages.of("busbw_gb_s", cell("a", [1.0, 3.0])).value == pytest.approx(0.5)
    # A time over one of the run's own: 2 + 6 over 1 + 4.
    slowed = cell("a", [2.0, 6.0], [1.0, 4.0])
    assert averages.of("slowdown", slowed).value == pytest.approx(8 / 5)
    assert averages.of("normalised", slowed).value == pytest.approx(16 / 5)


def test_where_all_bounds_are_alike_it_is_the_usual_mean() -> None:
    """With the usual interval."""
    rows = cell("a", [2.0, 3.0, 7.0], [2.0, 2.0, 2.0])
    usual = stats.mean([one["slowdown"] for one in rows])
    found = averages.of("slowdown", rows)
    assert (found.value, found.half, found.sd) == pytest.approx((usual.value, usual.half, usual.sd))


def test_only_seeds_that_both_have_are_compared() -> None:
    """And a table compares nothing where they are not the same."""
    base, mine = cell("ecmp", [1.0, 2.0, 3.0]), cell("weft", [1.0, 4.0])
    assert averages.ratio("cct_s", mine, base) == averages.ratio("cct_s", mine, base[:2])
    assert averages.ratio("cct_s", mine, [row("ecmp", 7, 1.0)]) is None
    assert averages.difference("cct_s", mine, [row("ecmp", 7, 1.0)]) is None
    lines = tables.summarise(group(base + mine)).sections[0].lines
    assert [line.cells[2].text for line in lines] == ["0.0 %", "other seeds"]


def test_what_is_zero_is_no_reference() -> None:
    """Drops that nobody had."""
    assert averages.ratio("drops", cell("a", [1.0]), cell("b", [1.0])) is None


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(2, 5))
def test_columns_of_a_table_never_contradict_each_other(seed: int, seeds: int, count: int) -> None:
    """Whatever times and bounds: by mean time, distance from the bound, ratio and bandwidth."""
    draw = random.Random(seed)
    bounds = [draw.uniform(0.01, 1.0) for _ in range(seeds)]
    rows = [
        row(f"scheme-{scheme}" if scheme else "ecmp", at, bound * draw.uniform(1, 9), bound)
        for scheme in range(count)
        for at, bound in enumerate(bounds)
    ]
    lines = tables.summarise(group(rows)).sections[0].lines
    cct, over_bound, against, busbw = ([line.cells[i].value for line in lines] for i in range(4))
    for values, sign in ((over_bound, 1), (against, 1), (busbw, -1)):
        by_time = sorted(range(count), key=lambda i: cct[i])
        assert [sign * values[i] for i in by_time] == sorted(sign * one for one in values)
    for line, time, change in zip(lines, cct, against, strict=True):
        assert change == pytest.approx(100 * (time / cct[0] - 1), abs=1e-9)
        assert line.cells[2].unsure == line.cells[2].text.endswith("n.s.")


def test_intervals_cover_what_they_should() -> None:
    """Of 400 draws of 5 seeds with a true ratio of 0.9 about 95 % have it in their interval."""
    draw = random.Random(1)
    hits = 0
    for _ in range(400):
        hard = [draw.uniform(1.0, 2.0) for _ in range(5)]
        base = cell("ecmp", [one * draw.gauss(1.0, 0.05) for one in hard])
        mine = cell("weft", [0.9 * one * draw.gauss(1.0, 0.05) for one in hard])
        found = averages.ratio("cct_s", mine, base)
        assert found is not None
        hits += found.includes(0.9)
    assert 0.92 <= hits / 400 <= 0.98


def test_beds_compare_in_the_same_way() -> None:
    """All bytes over all time, the ratio of these, its interval; failed seeds are not compared."""
    times = {"ecmp": [4.0, 6.0, 5.0], "ethereal": [2.0, 3.2, 2.3], "sockets": [4.1, 5.8, None]}
    rows = [
        {
            "scheme": scheme,
            "seed": seed,
            "error": None if time else "lost",
            "wrong": 0,
            "time_s": time,
            "bound_left_s": None,
            "of_bound": time and 2.0 / time,
            "bus_bytes_per_s": time and 1e9 / time,
            "hottest_uplink": 1.0,
            "time_outs": 0,
            "re_routes": 0,
        }
        for scheme, own in times.items()
        for seed, time in enumerate(own, start=1)
    ]
    found = {one["scheme"]: one for one in bench.by_scheme(rows)}
    assert found["ecmp"]["of_bound_mean"] == pytest.approx(2.0 / 5.0)
    assert found["ecmp"]["bus_bytes_per_s_mean"] == pytest.approx(1e9 / 5.0)
    fast = found["ethereal"]
    assert fast["over_ecmp"] == pytest.approx(5.0 / 2.5)
    assert fast["over_ecmp"] == pytest.approx(fast["of_bound_mean"] / 0.4)
    assert (fast["over_ecmp_significant"], found["sockets"]["over_ecmp"]) == (True, None)
    shown = {"operation": "all-to-all", "size_bytes": 8, "ranks": 2, "channels": 1}
    shown |= {"bound_s": 2.0, "connections": 2, "schemes": list(found.values()), "runs": rows}
    text = show.bench(Path("lab.toml"), shown)
    assert f"2.00 ± {fast['over_ecmp_half_95']:.2f}" in text
    assert "n.s." in text
    assert "left" not in text
    # A link that was gone for longer in some runs than in others: all bounds over all times.
    for row in rows:
        row["bound_left_s"] = 2.0 + row["seed"] / 4
    shown["schemes"] = list(bench.by_scheme(rows))
    text = show.bench(Path("lab.toml"), shown | {"bound_left_s": 2.5})
    assert "2.5000 s with what the failure leaves" in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("ecmp ")] == ["0.500"]
