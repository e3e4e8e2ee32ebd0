"""The variables of hosts: what `weft list` says of them is what the guide says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Weft
from weft import api
from weft._types import CatalogueEntry

GUIDE = Path(__file__).parents[1] / "docs" / "nccl.md"


@pytest.mark.parametrize("entry", api.variables(), ids=lambda entry: str(entry["name"]))
def test_the_guide_has_every_one_as_it_is(entry: CatalogueEntry) -> None:
    """A row each, word for word."""
    guide = GUIDE.read_text()
    for option in entry["options"]:
        row = f"| `{option['key']}` | {option['default']} | {option['meaning']} |"
        assert row in guide, row


def test_weft_list_shows_them(weft: Weft) -> None:
    """As JSON and as text."""
    assert json.loads(weft("list", "variables", "--json").stdout) == api.variables()
    assert "WEFT_CONFIG = none" in weft("list", "variables").stdout


def test_weft_list_shows_one(weft: Weft) -> None:
    """By its name, and counts them; other commands say where it is."""
    (entry, *_) = api.variables()
    (found,) = json.loads(weft("list", "variables", "WEFT_IFNAME", "--json").stdout)
    assert found["options"] == [one for one in entry["options"] if one["key"] == "WEFT_IFNAME"]
    text = weft("list", "variables", "WEFT_IFNAME").stdout
    assert "WEFT_IFNAME = " in text
    assert "WEFT_CONFIG =" not in text
    counts = {one["kind"]: one["count"] for one in json.loads(weft("list", "--json").stdout)}
    assert counts["variables"] == len(entry["options"])
    for words, said in (
        (("list", "variables", "WEFT_IFNAM"), "did you mean WEFT_IFNAME?"),
        (("list", "WEFT_IFNAME"), "did you mean weft list variables WEFT_IFNAME?"),
        (("explain", "WEFT_IFNAME"), "weft list variables WEFT_IFNAME shows it"),
    ):
        done = weft(*words)
        assert done.returncode == 2
        assert said in done.stderr
