"""Licences of dependencies: those that `deny.toml` allows, as `cargo deny` reads it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import licences

ROOT = Path(__file__).parents[1]
ALLOWED = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])


def allowed(expression: str) -> bool:
    """Whether a licence of an SPDX expression may be taken; crates of old have `/` for `OR`."""

    def word(found: re.Match[str]) -> str:
        name = found[0]
        return name.lower() if name in ("OR", "AND") else str(name in ALLOWED)

    words = re.sub(r"[\w.+-]+(?: WITH [\w.-]+)?", word, expression.replace("/", " OR "))
    assert re.fullmatch(r"(?:True|False|or|and|[() ])+", words), expression
    return bool(eval(words))


@pytest.mark.parametrize(
    ("expression", "may"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT/GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
    ],
)
def test_expressions(expression: str, may: bool) -> None:
    """One of several is enough, all of several are needed."""
    assert allowed(expression) == may


def test_every_crate_has_a_licence_that_is_allowed() -> None:
    """Those of the tests and of all targets among them; and none comes from elsewhere."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    crates = [one for one in json.loads(told.stdout)["packages"] if one["source"]]
    assert len(crates) > 50
    wrong = {one["name"]: one["license"] for one in crates if not allowed(one["license"] or "none")}
    assert wrong == {}
    assert {one["source"] for one in crates} == {
        "registry+https://github.com/rust-lang/crates.io-index"
    }


def test_a_wheel_has_the_texts_of_what_is_linked() -> None:
    """Each crate of the core has one, none of the tests does, and no text is there twice."""
    told = licences.text()
    names = {f"{one['name']} {one['version']}" for one in licences.linked()}
    assert len(names) > 50
    heads = {
        name for part in told.split("=" * 80) for name in part.strip().split("\n")[0].split(", ")
    }
    assert names <= heads
    assert not any(name.startswith("proptest ") for name in names)
    assert told.count("Version 2.0, January 2004") < len(names) / 2
