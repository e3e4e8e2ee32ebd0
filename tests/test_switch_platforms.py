"""Every platform in the registry keeps what the registry promises, whichever there are."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from weft import ExperimentError, cluster
from weft.cli import app
from weft.cluster import Cluster
from weft.switches import config, platforms, segments
from weft.switches.platforms import PLATFORMS
from weft.switches.steering import Steering
from weft.switches.steering import of as steerings

HERE = Path(__file__).parent
CLUSTERS = HERE / "golden" / "switch-config"


def cluster_of(name: str, platform: str) -> Cluster:
    """A golden cluster with the ports of a platform."""
    text = (CLUSTERS / f"{name}.toml").read_text()
    return cluster.from_dict(
        tomllib.loads(text.replace("PORT", platforms.find(platform).port)), name
    )


def test_folders_and_registry_are_the_same() -> None:
    """A folder without its line would be dead, and nothing stands twice."""
    folder = Path(str(resources.files(platforms)))
    assert sorted(PLATFORMS) == sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    for name in PLATFORMS:
        templates = {path.name for path in (folder / name).glob("*.j2")}
        suffixes = platforms.find(name).suffixes
        assert templates == {f"{suffix}.j2" for suffix in (*suffixes, "rollback")}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_says_what_it_is(platform: str) -> None:
    """Remarks by its name; its row in the guide for operators; its name on the command line."""
    found = platforms.find(platform)
    assert found.suffixes
    assert found.port
    assert all(remark.startswith(f"{platform}: ") for remark in found.remarks)
    guide = (HERE.parent / "docs" / "deploy.md").read_text().splitlines()
    row = "\n".join(line for line in guide if line.startswith(f"| `{platform}` |"))
    assert row, f"the table of docs/deploy.md has no row `{platform}`"
    assert [suffix for suffix in found.suffixes if f"`.{suffix}`" not in row] == []


def test_the_command_line_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    """In the help of `--format`."""
    assert app.status(["switch-config", "--help"]) == 0
    assert f"<{'|'.join(PLATFORMS)}>" in capsys.readouterr().out


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [path.stem for path in sorted(CLUSTERS.glob("*.toml"))])
def test_rules_are_there_and_are_taken_back(platform: str, name: str) -> None:
    """Every live link has its rule and a dead one has none; a rollback is there for each switch."""
    chosen = platforms.find(platform)
    scheme: segments.Scheme = "dnlb" if chosen.by_dscp else "ethereal"
    found = cluster_of(name, platform)
    cut = segments.of(found, scheme)
    for steering in steerings(found, cut):
        try:
            made, remarks = config.files(found, cut, platform, steering.name)
        except ExperimentError as error:
            if steering.what == "leaf" or "choose another --format" not in str(error):
                raise
            continue  # A shape that the platform cannot do.
        assert [file.name for file in made] == [
            f"{steering.name}.{suffix}" for suffix in (*chosen.suffixes, "rollback")
        ]
        assert remarks[: len(chosen.remarks)] == list(chosen.remarks)
        _check_rules(steering, "\n".join(file.text for file in made[:-1]), chosen.by_dscp)
        assert made[-1].text.strip()
        assert all("\t\n" not in file.text and " \n" not in file.text for file in made)
        assert all(file.text.isascii() and file.text.endswith("\n") for file in made)


def _check_rules(steering: Steering, text: str, by_dscp: bool) -> None:
    """Without what people read, which names the links in every state."""
    rules = "\n".join(line for line in text.splitlines() if not re.match(r"[#!/]", line))
    words = set(re.findall(r"\d+", rules))
    for link in steering.live:
        ends = [str(link.dscp)] if by_dscp else [str(first) for first, _ in link.ranges]
        assert [end for end in ends if end not in words] == [], link
        assert link.next_hop in rules or link.port in rules, link
    # Two links may have equal ports, one up and one down.
    used = {first for link in steering.live for first, _ in link.ranges}
    dead = {first for link in steering.links for first, _ in link.ranges} - used
    assert by_dscp or [first for first in dead if str(first) in words] == []
    for prefix in steering.local:
        assert prefix.partition("/")[0] in rules
    assert [port for port in steering.inputs if port not in rules] == []
