"""The guides in `docs/extend`: what they show works, and links between documents lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hooks
import reference
from test_switch_platforms import cluster_of
from weft import ExperimentError
from weft.switches import config, platforms, segments

HERE = Path(__file__).parent
ROOT = HERE.parent
EXAMPLE = HERE / "guide" / "platforms"
GUIDE = ROOT / "docs" / "extend" / "switch-platform.md"


@pytest.fixture
def vyos(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The guide's platform, as if its folder and its line were among the others."""
    monkeypatch.setattr(platforms, "__path__", [*platforms.__path__, str(EXAMPLE)])
    monkeypatch.setattr(platforms, "PLATFORMS", (*platforms.PLATFORMS, "vyos"))
    yield "vyos"
    config._template.cache_clear()


def test_the_guide_shows_these_files() -> None:
    """To the letter."""
    text = GUIDE.read_text()
    kinds = {".py": "python", ".j2": "jinja"}
    files = [path for path in (EXAMPLE / "vyos").iterdir() if path.is_file()]
    assert len(files) == 3
    for path in files:
        assert f"```{kinds[path.suffix]}\n{path.read_text()}```\n" in text, path.name


def test_the_guides_platform_steers(vyos: str) -> None:
    """Each segment goes to a table of its own whose route is the uplink's next hop."""
    found = cluster_of("dnlb-2025", vyos)
    cut = segments.of(found, "dnlb")
    made, remarks = config.files(found, cut, vyos, "leaf-0")
    assert [file.name for file in made] == ["leaf-0.commands", "leaf-0.rollback"]
    assert remarks[0].startswith("vyos: ")
    text = made[0].text
    for number, (link, ((first, last),)) in enumerate(
        zip(found.uplinks["leaf-0"], cut["leaf-0"], strict=True), 1
    ):
        table = 100 + number
        rule = re.search(rf"rule (\d+) source port {first}-{last}\n", text)
        assert rule is not None
        assert f"rule {rule[1]} set table {table}\n" in text
        assert f"rule {rule[1]} dscp {found.dscp}\n" in text
        hop = f"set protocols static table {table} route 0.0.0.0/0 next-hop {link.upper_address}\n"
        assert hop in text
        assert f"delete protocols static table {table}\n" in made[1].text
    numbers = [int(one) for one in re.findall(r"rule (\d+) set table", text)]
    assert numbers == list(range(1, len(numbers) + 1))
    # What is local comes before the uplinks, and is routed as ever.
    assert text.index("set table main") < text.index("rule 2 source port")


def test_the_guides_platform_refuses_what_it_cannot(vyos: str) -> None:
    """More links than it has tables."""
    found = cluster_of("dnlb-2025", vyos)
    (one,) = [
        s for s in config.steerings.of(found, segments.of(found, "dnlb")) if s.name == "leaf-0"
    ]
    platform = platforms.find(vyos)
    platform.check(one)
    object.__setattr__(one, "uplinks", [one.uplinks[0]] * 101)
    with pytest.raises(ExperimentError, match="101 links are more than the 100 tables"):
        platform.check(one)


def test_links_between_documents_lead_somewhere() -> None:
    """In the guides, and from other documents to them; but to pages that the site makes."""
    made = {ROOT / "docs" / page for page in (*reference.pages(), *hooks.NOTEBOOKS)}
    for path in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", path.read_text()):
            target = (path.parent / link).resolve()
            assert target in made or target.is_file(), f"{path.name}: {link}"


def test_every_guide_is_listed() -> None:
    """By the page that says what can be added."""
    listed = (ROOT / "docs" / "extend" / "README.md").read_text()
    guides = [path.name for path in (ROOT / "docs" / "extend").glob("*.md")]
    assert [name for name in guides if name != "README.md" and f"({name})" not in listed] == []
