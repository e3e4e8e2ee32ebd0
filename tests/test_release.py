"""Releases: one version everywhere, and wheels that load where their names say."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

import release
import wheels
from weft import _native, version

TEXTS = ("CHANGELOG.md", "CITATION.cff")


def test_one_version_everywhere() -> None:
    """Cargo.toml's is the core's, the newest of the changelog, and what is cited."""
    assert _native.version == wheels.version()
    assert release.disagreements(wheels.ROOT) == []


def test_crates_have_the_version_of_the_workspace() -> None:
    """None has one of its own."""
    manifests = [*wheels.ROOT.glob("crates/*/Cargo.toml"), wheels.ROOT / "bench/Cargo.toml"]
    assert len(manifests) > 20
    for manifest in manifests:
        assert "\nversion.workspace = true\n" in manifest.read_text(), manifest


@pytest.mark.parametrize(
    ("text", "told", "instead", "said"),
    [
        ("CHANGELOG.md", "## [{version}]", "## [9.9.9]", "CHANGELOG.md is 9.9.9, in Cargo.toml"),
        ("CHANGELOG.md", "] - 20", "], 20", "no heading `## [VERSION] - DATE`"),
        ("CITATION.cff", "version: {version}", "version: 9.9.9", "no line `version: "),
        ("CITATION.cff", "date-released: 20", "date-released: 19", "no line `date-released: 20"),
    ],
)
def test_another_version_is_named(
    text: str, told: str, instead: str, said: str, tmp_path: Path
) -> None:
    """The line says which file and what it should have."""
    for name in TEXTS:
        shutil.copy(wheels.ROOT / name, tmp_path / name)
    changed = (tmp_path / text).read_text().replace(told.format(version=wheels.version()), instead)
    (tmp_path / text).write_text(changed)
    found = release.disagreements(tmp_path)
    assert any(said in line for line in found), found


def library(processor: str, glibc: str) -> bytes:
    """The parts of an ELF file that are looked at."""
    machine = wheels.PROCESSORS[processor].to_bytes(2, "little")
    return b"\x7fELF".ljust(18, b"\0") + machine + f"\0GLIBC_2.17\0GLIBC_{glibc}\0".encode()


@pytest.mark.parametrize(
    ("processor", "glibc", "said"),
    [
        ("aarch64", wheels.GLIBC, None),
        ("x86_64", wheels.GLIBC, "so in .* is not for aarch64"),
        ("aarch64", "2.29", "needs glibc 2.29, not 2.28"),
        (None, None, "has no weft/libnccl-net-weft.so"),
    ],
)
def test_what_a_wheel_has_is_checked(
    processor: str | None, glibc: str | None, said: str | None, tmp_path: Path
) -> None:
    """A plugin for another processor, for a newer system, and none at all."""
    wheel = tmp_path / f"weft_fabric-1-cp311-abi3-{wheels.PLATFORM}_aarch64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("weft/_native.abi3.so", library("aarch64", wheels.GLIBC))
        if processor and glibc:
            packed.writestr("weft/libnccl-net-weft.so", library(processor, glibc))
    if said is None:
        wheels.check(wheel)
    else:
        with pytest.raises(SystemExit, match=said):
            wheels.check(wheel)


def test_machine_numbers_are_those_of_elf_files() -> None:
    """The core that runs here is for the processor that it says."""
    processor = _native.target.split("-")[0]
    if processor not in wheels.PROCESSORS:
        pytest.skip(f"there are no wheels for {processor}")
    core = (version.PLUGIN.parent / "_native.abi3.so").read_bytes()
    assert int.from_bytes(core[18:20], "little") == wheels.PROCESSORS[processor]


def test_wheels_that_are_there_hold_what_they_promise() -> None:
    """Those that `make wheel` has left in dist, for other processors among them."""
    built = sorted((wheels.ROOT / "dist").glob(f"weft_fabric-*-{wheels.PLATFORM}_*.whl"))
    if not built:
        pytest.skip("no wheel in dist: make wheel builds them")
    for wheel in built:
        wheels.check(wheel)


def test_the_site_has_the_page_that_is_released(tmp_path: Path) -> None:
    """Not one that was built before, nor none."""
    page = tmp_path / "index.html"
    page.write_text("new")
    assert not release.shows(tmp_path, page)
    shown = tmp_path / "demo" / "index.html"
    shown.parent.mkdir()
    shown.write_text("old")
    assert not release.shows(tmp_path, page)
    shown.write_text("new")
    assert release.shows(tmp_path, page)
