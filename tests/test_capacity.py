"""`weft capacity`: whether there is enough of it, and which links are too few."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import weft as package
from conftest import Weft

SLOW = """
title = "Slow links"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
link = "100Gbps"
delay = "500ns"
[failures.slow]
tier = "leaf-up"
kind = "degraded"
lost = 0.5
count = 4
groups = [0]
direction = "up"
[workload]
pattern = "all-to-all"
size = "16KB"
[sweep]
"failures.slow.count" = [2, 4]
"balance.scheme" = ["ecmp", "spray"]
seeds = [3, 4]
"""
HEADS = ["count", "scheme", "enough", "carried", "limit", "bottleneck"]


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """The path of an experiment with slow uplinks."""
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    return path


def test_table_has_a_line_for_each_combination(weft: Weft, slow: Path) -> None:
    """Four hosts send 4/7 of 100 Gb/s to the other leaf: 2.29 links, of which 3 or 2 are left."""
    done = weft("capacity", slow)
    assert (done.returncode, done.stderr) == (0, "")
    title, _, head, _, *rows, _, below = done.stdout.splitlines()
    assert title == "Slow links"
    assert head.split() == HEADS
    cells = [row.split(maxsplit=5) for row in rows]
    assert [(count, scheme) for count, scheme, *_ in cells] == [
        *(("2", "ecmp"), ("2", "spray"), ("4", "ecmp"), ("4", "spray"))
    ]
    assert [row[2:5] for row in cells] == [["yes", "1.0000", "1.0000"]] * 2 + [
        ["no", "0.8750", "0.8750"]
    ] * 2
    assert cells[0][5] == "host-0 -> leaf-0: 100 Gbps for 100 Gbps"
    assert cells[3][5] == "4 links up from leaf 0: 200 Gbps for 229 Gbps"
    assert below.startswith("seed 3; ")


def test_json_holds_what_the_table_rounds(weft: Weft, slow: Path) -> None:
    """And the links one by one. Python gets the same."""
    done = weft("capacity", slow, "--json", "--seed", "9", "--set", "failures.slow.count=4")
    assert done.returncode == 0
    rows = json.loads(done.stdout)
    assert [(row["experiment"], row["label"], row["seed"]) for row in rows] == [
        *(("slow", "ecmp", 9), ("slow", "spray", 9))
    ]
    first = rows[0]
    assert first["swept"] == {"balance.scheme": "ecmp"}
    assert first["answer"] == "no"
    assert first["factor"] == pytest.approx(7 / 8, abs=1e-6)
    assert first["factor"] <= first["limit"] == pytest.approx(7 / 8, abs=1e-9)
    bottleneck = first["bottleneck"]
    assert bottleneck["capacity_bps"] == 200e9
    assert bottleneck["demand_bps"] == pytest.approx(1600e9 / 7, rel=1e-9)
    names = [f"leaf-0 -> spine-{spine}" for spine in range(4)]
    assert [link["name"] for link in bottleneck["links"]] == names
    assert {(link["capacity_bps"], link["weight"]) for link in bottleneck["links"]} == {(50e9, 1)}
    assert first["times"] == [{key: first[key] for key in ("at_s", "answer", "factor", "limit")}]
    assert first["inequality"] is None
    given = tomllib.loads(SLOW)
    given["failures"]["slow"]["count"] = 4
    del given["sweep"]["failures.slow.count"]
    assert [one | {"experiment": "slow"} for one in package.capacity(given, seed=9)] == rows


def test_the_worst_time_has_a_column(weft: Weft, slow: Path) -> None:
    """Only where something changes."""
    later = ["failures.slow.start=20us", "failures.slow.duration=5us", "failures.slow.count=4"]
    done = weft("capacity", slow, *(word for change in later for word in ("--set", change)))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[2].split() == ["scheme", "enough", "carried", "limit", "from", "bottleneck"]
    assert lines[4].split()[1:6] == ["no", "0.8750", "0.8750", "20.00", "µs"]


def test_the_printed_inequality_where_it_applies(weft: Weft, tmp_path: Path) -> None:
    """A fat-tree of k = 4: 3.2 of 4 links are needed, 3.5 are left, 3.8 or 2.2 printed."""
    for name, pattern in [("all", "all-to-all"), ("one", "permutation")]:
        (tmp_path / f"{name}.toml").write_text(
            f'[fabric]\ntopology = "fat-tree"\nk = 4\n[workload]\npattern = "{pattern}"\n'
            'size = "1MB"\n[balance]\nscheme = "spray"\n[failures.slow]\ntier = "pod-up"\n'
            'kind = "degraded"\ncount = 2\nlost = 0.25\n'
        )
    rows = json.loads(weft("capacity", "all.toml", "one.toml", "--json").stdout)
    assert rows[0]["answer"] == "yes"
    assert rows[0]["inequality"] == {"with_part_lost": False, "with_part_kept": True}
    assert rows[1]["inequality"] is None
    table = weft("capacity", "all.toml", "one.toml").stdout
    assert table.count("eq. 2: the inequality of McClure et al. (2025)") == 1
    line = next(line for line in table.splitlines() if line.startswith("spray"))
    assert line.split()[1:6] == ["yes", "1.0000", "1.0000", "no", "yes"]


def test_what_is_not_enough_never_looks_like_all(weft: Weft, slow: Path) -> None:
    """A share just below one gets more digits."""
    told = {"congestion": "fixed-rate", "rate": "fair", "rate_coefficient": "1.000025"}
    changes = [("--set", f"transport.{key}={value}") for key, value in told.items()]
    done = weft("capacity", slow, *(word for change in changes for word in change))
    line = next(line for line in done.stdout.splitlines() if "host-0" in line)
    assert line.split()[2:5] == ["no", "0.99998", "0.99998"]
    assert line.endswith("host-0 -> leaf-0: 100 Gbps for 100.002 Gbps")


BAD = {
    "no file": (["missing.toml"], "missing.toml: no such file"),
    "malformed": (["bad.toml"], "bad.toml"),
    "--set": (["slow.toml", "--set", "count"], "--set count"),
    "key": (["slow.toml", "--set", "failures.slow.cont=2"], 'did you mean "count"?'),
    "too many": (["slow.toml", "--set", "failures.slow.count=5"], "failures.slow.count"),
    "--seed": (["slow.toml", "--seed", "-1"], "--seed"),
    "traffic": (["traffic.cm"], "traffic.cm: is a workload without a fabric"),
    "nothing": ([], "FILE"),
}


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("case", BAD)
def test_mistakes_take_one_line(weft: Weft, tmp_path: Path, case: str) -> None:
    """Exit code 2, nothing on standard output."""
    arguments, named = BAD[case]
    (tmp_path / "bad.toml").write_text("[fabric")
    (tmp_path / "traffic.cm").write_text("Nodes 2\n")
    done = weft("capacity", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


def test_python_callers_are_told_as_well() -> None:
    """Seeds are whole and not negative."""
    for seed, said in [
        (-1, "seed: -1 is out of range; use 0 or more"),
        (1.5, "not a whole number"),
    ]:
        with pytest.raises(package.ExperimentError, match=said):
            package.capacity(tomllib.loads(SLOW), seed=seed)  # type: ignore[arg-type]


def test_help_teaches_by_example(weft: Weft) -> None:
    """Each example stands on a line of its own."""
    assert "Examples:\n    weft capacity fig4.toml\n" in weft("capacity", "--help").stdout
