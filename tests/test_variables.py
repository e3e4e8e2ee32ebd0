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
