"""`--fidelity`: what is simulated, what the cheaper one is off by, and what it does not tell."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft
from weft.report import fidelities
from weft.study import averages

PLACE = (
    "--fabric",
    "leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps,delay=500ns",
    "--workload",
    "all-to-all:size=1MB",
)


def test_both_are_run_and_the_difference_printed(weft: Weft) -> None:
    """The table of both, then a line a run, then what it comes to."""
    done = weft("compare", *PLACE, "--schemes", "ecmp,ethereal", "--fidelity", "fluid,packet")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fluid, packet" in done.stdout
    _, below = done.stdout.split("fluid against packet: completion times")
    assert [line.split()[0] for line in below.splitlines()[4:6]] == ["ecmp", "ethereal"]
    assert "difference: median" in below
    assert "warning: run.fidelity" in done.stderr


def test_rows_say_which_and_leave_out_what_they_do_not_know(weft: Weft, tmp_path: Path) -> None:
    """In JSON and in parquet, beside rows that know."""
    out = tmp_path / "out"
    done = weft(
        *("compare", *PLACE, "--schemes", "ethereal", "--fidelity", "packet,fluid"),
        *("-o", out, "--json"),
    )
    assert done.returncode == 0, done.stderr
    packet, fluid = json.loads(done.stdout)
    assert (packet["fidelity"], fluid["fidelity"]) == ("packet", "fluid")
    assert (packet["drops"], fluid["drops"]) == (0, None)
    assert fluid["cct_s"] >= fluid["bound_s"]
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.03)
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["fidelity"].to_list() == ["packet", "fluid"]
    assert runs["peak_queue_bytes"].null_count() == 1
    assert (out / "report.html").exists()


def test_one_fidelity_is_a_key_like_any_other(weft: Weft, small: Path) -> None:
    """On an experiment file; its table says so."""
    done = weft("run", small, "--fidelity", "fluid")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fluid" in done.stdout
    assert "against packet" not in done.stdout


@pytest.mark.parametrize("named", ["exact", "packet,fast-forward"])
def test_a_wrong_word_is_refused_in_one_line(weft: Weft, named: str) -> None:
    """With the words there are."""
    done = weft("compare", *PLACE, "--schemes", "ecmp", "--fidelity", named)
    assert done.returncode == 2
    assert "run.fidelity" in done.stderr
    assert "packet, fast, fluid" in done.stderr
    assert done.stderr.count("\n") == 1


def test_fast_says_where_it_took_packets(weft: Weft) -> None:
    """Under the table, and in a column: ECMP's flows meet, Ethereal's do not."""
    ring = (*PLACE[:2], "--workload", "all-reduce:algorithm=recursive-doubling,size=16MB")
    done = weft("compare", *ring, "--schemes", "ecmp,ethereal", "--fidelity", "fast,packet")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fast (packets in 1 of 2 runs), packet" in done.stdout
    assert "fast against packet: completion times" in done.stdout
    rows = json.loads(weft("compare", *ring, "--fidelity", "fast", "--json").stdout)
    skipped = {row["scheme"]: row["skipped_pct"] for row in rows}
    assert (skipped["ecmp"], skipped["ethereal"]) == (0.0, 100.0)


def _row(scheme: str, fidelity: str, cct: float) -> dict[str, object]:
    swept = {"balance.scheme": scheme, "run.fidelity": fidelity}
    return {"seed": 1, "fidelity": fidelity, "cct_s": cct, "wall_s": 1.0, "swept": swept}


def test_errors_and_order_are_of_the_same_traffic() -> None:
    """One and two differ by half and swap, three is too close to one to count."""
    times = {"one": (1.0, 1.4), "two": (1.5, 1.2), "three": (1.05, 1.05)}
    rows = [_row(name, "packet", packet) for name, (packet, _) in times.items()]
    rows += [_row(name, "fluid", fluid) for name, (_, fluid) in times.items()]
    (between,) = fidelities.of(rows) or ()
    assert between.errors == pytest.approx([0.0, 0.2, 0.4])
    assert between.order == (1, 2)
    assert fidelities.of(rows[:3]) is None


def test_an_unknown_value_makes_an_unknown_mean() -> None:
    """Not a zero."""
    assert math.isnan(averages.of("drops", [{"seed": 1, "drops": None}]).value)
