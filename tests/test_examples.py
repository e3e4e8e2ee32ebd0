"""The files of `examples`: each runs or is planned, as its guide says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import example_trace
from conftest import Weft, rows
from weft.study import inputs

EXAMPLES = Path(__file__).parents[1] / "examples"
MODELS = sorted(path.name for path in (EXAMPLES / "models").glob("*.toml"))


def test_every_file_is_in_the_list() -> None:
    """By its path; those of a trace by one of them."""
    listed = (EXAMPLES / "README.md").read_text()
    files = [
        path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()
    ]
    # What notebooks write, too.
    others = ("README.md", "out/", ".ipynb_checkpoints/", "failure-study.pdf")
    apart = [name for name in files if not name.startswith(others) and not name.endswith(".et")]
    assert [name for name in apart if f"`{name}`" not in listed] == []
    assert "`chakra/gpt.0.et`" in listed


def test_the_first_comparison(weft: Weft) -> None:
    """Four schemes, five seeds; Ethereal is within a few percent of the bound, ECMP far off."""
    found = rows(weft, "run", EXAMPLES / "first.toml")
    worst = {row["scheme"]: row["slowdown"] for row in sorted(found, key=lambda r: r["slowdown"])}
    assert len(found) == 20
    assert worst["ethereal"] < 1.05 < 1.5 < worst["ecmp"]


@pytest.mark.parametrize("name", ["flows.csv", "shift.cm"])
def test_messages(name: str, weft: Weft) -> None:
    """All of them arrive."""
    found = rows(weft, "run", EXAMPLES / name, "--schemes", "ecmp,ethereal")
    assert [row["messages"] for row in found] == [{"flows.csv": 9, "shift.cm": 17}[name]] * 2
    assert all(row["slowdown"] >= 1 for row in found)


def test_the_trace_is_what_its_maker_writes() -> None:
    """`python tests/example_trace.py` writes it again."""
    for name, content in example_trace.files().items():
        assert (EXAMPLES / "chakra" / name).read_bytes() == content, name


def test_the_trace_runs(weft: Weft) -> None:
    """Its bound has its computation and the gradients of the last layer."""
    (found,) = rows(weft, "run", EXAMPLES / "chakra" / "gpt.0.et", "--schemes", "ethereal")
    assert found["ranks"] == example_trace.RANKS
    assert found["collectives"] == 4 * 8 + 2 * 4
    assert found["compute_s"] == pytest.approx(4 * 100e-6 + 4 * 200e-6 + 80e-6)
    assert found["slowdown"] < 1.3


def test_the_cluster_is_planned(weft: Weft, tmp_path: Path) -> None:
    """With the job, and verified."""
    done = weft(
        *("plan", EXAMPLES / "cluster.toml", "--job", EXAMPLES / "job.toml"),
        *("--scheme", "ethereal", "-o", "plan"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["scheme"] == "ethereal"
    assert weft("plan", "--verify", "plan/plan.json").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name != "fabric.toml"])
def test_models(name: str, weft: Weft) -> None:
    """All layers of each, by rates of flows; what they send crosses the fabric."""
    done = weft("run", EXAMPLES / "models" / name, "--json", "-q")
    assert "stays under one leaf" not in done.stderr
    (found,) = json.loads(done.stdout)
    assert found["ranks"] == 64
    assert 1 <= found["slowdown"] < 1.1


def test_llama_has_its_parameters() -> None:
    """70.6 billion, of which the keys of its file are the numbers."""
    (run,) = inputs.from_file(EXAMPLES / "models" / "llama3-70b.toml").runs
    w = run["experiment"]["workload"]
    keys = w["hidden"] * w["kv_heads"] // w["heads"]
    attention = 2 * w["hidden"] * (w["hidden"] + keys)
    layer = attention + 3 * w["hidden"] * w["feed_forward"] + 2 * w["hidden"]
    parameters = w["layers"] * layer + (2 * w["vocabulary"] + 1) * w["hidden"]
    assert parameters == 70_553_706_496
