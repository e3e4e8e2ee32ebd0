"""`weft testbed shrink`: a copy of a cluster that fits a laptop."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from weft import cluster as clusters
from weft.testbed import layout
from weft.units import magnitude

LARGE = """
title = "Large"
[fabric]
topology = "leaf-spine"
leaves = 16
spines = 8
hosts_per_leaf = 32
link = "400Gbps"
uplink = "800Gbps"
[failures.near]
links = ["leaf-0 <-> spine-1"]
kind = "degraded"
lost = 0.5
[failures.far]
links = ["leaf-12 <-> spine-1"]
kind = "down"
[cluster]
dscp = 24
"""
THREE_TIERS = """
[fabric]
topology = "fat-tree"
k = 8
link = "100Gbps"
"""


def shrunk(weft: Weft, folder: Path, text: str, *words: str) -> dict[str, Any]:
    """The copy, which is a cluster of which a test bed can be built."""
    (folder / "large.toml").write_text(text)
    done = weft("testbed", "shrink", "large.toml", "-o", "small.toml", *words)
    assert done.returncode == 0, done.stderr
    layout.check(clusters.read(folder / "small.toml"))
    printed = weft("testbed", "shrink", "large.toml", *words)
    assert printed.stdout == (folder / "small.toml").read_text()
    return tomllib.loads(printed.stdout)


def oversubscription(fabric: dict[str, Any]) -> float:
    """What the hosts of a leaf can send over what its uplinks carry."""
    below = fabric["hosts_per_leaf"] * (magnitude(fabric["link"]) or 0)
    above = fabric["spines"] * fabric.get("links_per_pair", 1)
    return below / (above * (magnitude(fabric.get("uplink", fabric["link"])) or 1))


def test_a_copy_is_small_and_as_oversubscribed(weft: Weft, tmp_path: Path) -> None:
    """32 x 400G over 8 x 800G is 2 : 1, and so is the copy; failures of links that it has stay."""
    small = shrunk(weft, tmp_path, LARGE)
    fabric = small["fabric"]
    assert (fabric["leaves"], fabric["spines"], fabric["hosts_per_leaf"]) == (4, 4, 4)
    assert fabric["uplink"] == "100Mbps"
    assert oversubscription(fabric) == oversubscription(tomllib.loads(LARGE)["fabric"]) == 2
    assert list(small["failures"]) == ["near"]
    assert small["failures"]["near"]["lost"] == 0.5
    text = (tmp_path / "small.toml").read_text()
    assert "# failures.far: the copy has not all that fails there" in text
    assert "# cluster: names and addresses are those of the test bed" in text


def test_three_tiers_become_two(weft: Weft, tmp_path: Path) -> None:
    """A fat-tree of eight ports: four hosts of a leaf under four switches above it."""
    small = shrunk(weft, tmp_path, THREE_TIERS, "--leaves", "3", "--uplink", "50Mbps")
    fabric = small["fabric"]
    assert (fabric["topology"], fabric["leaves"], fabric["spines"]) == ("leaf-spine", 3, 4)
    assert (fabric["uplink"], fabric["link"]) == ("50Mbps", "50Mbps")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--uplink", "fast"), "--uplink fast: is not a rate; write one such as 100Mbps"),
        (("--uplink", "1Mbps", "--spines", "1"), "too little for packets; use a higher rate"),
    ],
)
def test_what_is_no_rate_is_refused(
    weft: Weft, tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    """In one line."""
    (tmp_path / "large.toml").write_text(LARGE)
    done = weft("testbed", "shrink", "large.toml", *words)
    assert done.returncode == 2
    assert what in done.stderr
