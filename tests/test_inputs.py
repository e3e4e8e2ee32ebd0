"""Experiments around bare workload files, and names within a study."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft._native import ExperimentError
from weft.study import default_fabric, inputs


@given(st.integers(2, 60_000))
def test_fitting_fabric_has_room_and_does_not_block(hosts: int) -> None:
    """Enough hosts, as many uplinks as hosts under a leaf, switches of at most 64 ports."""
    fabric = default_fabric.fabric(hosts)
    if fabric["topology"] == "leaf-spine":
        assert fabric["leaves"] * fabric["hosts_per_leaf"] >= hosts
        assert fabric["spines"] >= fabric["hosts_per_leaf"]
        assert max(fabric["leaves"], 2 * fabric["spines"]) <= 64
    else:
        assert fabric["k"] % 2 == 0
        assert fabric["k"] ** 3 // 4 >= hosts > (fabric["k"] - 2) ** 3 // 4


def test_fitting_fabric_is_the_one_of_the_papers() -> None:
    """Where hosts divide evenly no port stays empty."""
    shape = {"leaves": 16, "spines": 8, "hosts_per_leaf": 8}
    assert default_fabric.fabric(128).items() >= shape.items()
    assert default_fabric.fabric(2046)["spines"] == 32
    assert default_fabric.fabric(8192)["k"] == 32


@pytest.mark.parametrize(
    ("name", "text", "hosts"),
    [
        ("a.cm", "Nodes 48\nConnections 1\n0->5 start 0 size 20000\n", 48),
        ("a.cm", "\ufeff# made by hand\n\nConnections 1\nNodes 48\n0->5 start 0 size 20000\n", 48),
        ("a.csv", "# flows\nsrc,dst,size\n0,5,20KB\n39,4,1MB\n", 40),
        ("a.csv", "\ufeffsrc,dst,size\r\n39,4,1MB\r\n", 40),
        ("a.csv", "\n  \nsize, dst , src\n1MB, 39 ,4\n# 99,99\n", 40),
    ],
)
def test_fabric_fits_the_hosts_that_a_file_names(
    tmp_path: Path, name: str, text: str, hosts: int
) -> None:
    """A connection matrix says how many, a CSV has a largest number."""
    (tmp_path / name).write_text(text)
    experiment, chosen = inputs.from_workload(tmp_path / name, schemes=["ecmp"])
    assert len(experiment.runs) == 1
    shape = default_fabric.fabric(hosts)
    assert f"leaves {shape['leaves']}, spines {shape['spines']}" in chosen


def test_a_byte_order_mark_is_no_text(small: Path) -> None:
    """Editors and spreadsheets write one."""
    text = small.read_text()
    small.write_text(f"\ufeff{text}")
    assert inputs.from_file(small).text == text
    as_json = small.with_suffix(".json")
    as_json.write_text(f"\ufeff{json.dumps(tomllib.loads(text))}")
    assert len(inputs.from_file(as_json).runs) == len(inputs.from_file(small).runs)


def test_the_largest_fitting_fabric(tmp_path: Path) -> None:
    """It is chosen; one host more is not, and a shorthand helps."""
    (tmp_path / "most.csv").write_text(f"src,dst,size\n0,{default_fabric.LARGEST - 1},20KB\n")
    (tmp_path / "more.csv").write_text(f"src,dst,size\n0,{default_fabric.LARGEST},20KB\n")
    assert "k 64" in inputs.from_workload(tmp_path / "most.csv", schemes=["ecmp"])[1]
    with pytest.raises(
        ExperimentError, match=r"automatically \(65536\); give --fabric, or correct"
    ):
        inputs.from_workload(tmp_path / "more.csv")
    assert inputs.from_workload(tmp_path / "more.csv", "fat-tree:k=66,link=1Gbps,delay=1us")


@pytest.mark.parametrize("host", ["9" * 5000, "²", "-1", "x" * 200_000])
def test_odd_host_ids_are_left_to_the_core(tmp_path: Path, host: str) -> None:
    """They do not stop the choice of a fabric, and get the core's line."""
    (tmp_path / "odd.csv").write_text(f"src,dst,size\n0,{host},20KB\n")
    with pytest.raises(ExperimentError, match=r"odd\.csv"):
        inputs.from_workload(tmp_path / "odd.csv")


def test_names_are_distinct(small: Path) -> None:
    """Two files of the same name in different folders get figures of different names."""
    one = inputs.from_file(small)
    names = [experiment.name for experiment in inputs.distinct_names([one, one, one])]
    assert names == ["small", "small-2", "small-3"]
    assert dataclasses.replace(one, name="x") != one


def test_unknown_types_are_named() -> None:
    """A dict may hold what a TOML file cannot."""
    with pytest.raises(ExperimentError, match="type object"):
        inputs.from_dict({"title": object()})
