"""What is installed: versions, `weft doctor`, and a wheel on a machine with nothing but Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import weft as package
from conftest import Weft
from weft import _native, doctor, version

ROOT = Path(__file__).parents[1]


def test_version_says_commit_and_features(weft: Weft) -> None:
    """The first line is the one of a release, the others say what results and features are."""
    first, results, built, features = weft("--version").stdout.splitlines()
    assert first == f"weft {package.__version__}"
    assert re.fullmatch(r"weft \d+\.\d+\.\d+(\+[0-9a-f]{10}(\.dirty)?)?", first)
    assert results.split() == ["results", package.code_version]
    assert built.split(",")[0].split()[-1] == _native.target
    assert ("assertions" in built) == _native.has_assertions
    assert ("nccl-plugin" in features) == version.PLUGIN.exists()


def test_doctor_names_what_is_missing_and_the_mend(weft: Weft, tmp_path: Path) -> None:
    """With a PATH on which nothing is, everything that is a program is missing."""
    assert "one object per part" in weft("doctor", "--help").stdout
    everything = json.loads(weft("doctor", "--json").stdout)
    assert everything[0]["part"] == "simulator"
    assert everything[0]["state"] == "works"
    bare = subprocess.run(
        [sys.executable, "-m", "weft", "doctor", "--json"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = {one["part"]: one for one in json.loads(bare.stdout)}
    assert found.keys() == {one["part"] for one in everything}
    for part in ("namespaces", "nftables", "FRR", "QEMU", "browser"):
        assert found[part]["state"] == "missing"
        assert found[part]["remedy"]
    bare = subprocess.run(
        [sys.executable, "-m", "weft", "doctor"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    _, mends = bare.stdout.split("\n\nFor what is missing:\n")
    assert "    apt-get install nftables\n" in mends
    assert max(map(len, mends.splitlines())) <= 80
    assert "apt-get install nftables" in weft("doctor").stdout or shutil.which("nft")


def test_doctor_knows_rdma_devices_that_nobody_can_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container sees those of its host in /sys; RoCE needs Ethernet."""
    monkeypatch.setattr(doctor, "_RDMA", tmp_path / "class")
    monkeypatch.setattr(doctor, "_VERBS", tmp_path / "dev")
    monkeypatch.setattr("ctypes.util.find_library", lambda _: "libibverbs.so.1")
    layer = tmp_path / "class/mlx5_0/ports/1/link_layer"
    layer.parent.mkdir(parents=True)
    layer.write_text("InfiniBand\n")

    def rdma() -> tuple[str, str]:
        (one,) = (one for one in doctor.findings() if one.part == "RDMA")
        return one.state, one.found

    assert rdma() == ("missing", "mlx5_0: InfiniBand, not Ethernet")
    layer.write_text("Ethernet\n")
    assert rdma() == ("missing", f"mlx5_0, but no {tmp_path}/dev/uverbs*")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/uverbs0").touch()
    assert rdma() == ("works", "mlx5_0")


def test_extras_are_those_of_the_project() -> None:
    """`weft doctor` asks for the packages that pyproject.toml names."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, packages in version.EXTRAS.items():
        assert [re.split(r"[<>=]", one)[0] for one in told[extra]] == packages


def test_plugin_path_is_a_file_or_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is what `NCCL_NET_PLUGIN` takes."""
    if version.PLUGIN.exists():
        assert Path(package.nccl_plugin_path()).is_file()
    monkeypatch.setattr(version, "PLUGIN", tmp_path / "no.so")
    with pytest.raises(package.ExperimentError, match="install a wheel, which has it, or run make"):
        package.nccl_plugin_path()


def least() -> list[str]:
    """The least versions that a wheel promises to run with; what there is for the least Python."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = [re.match(r"([\w-]+)>=([\d.]+)", one) for one in told]
    assert all(found), "without a least version pip keeps one that fails"
    return [f"{one[1]}=={one[2]}" for one in found if one and sys.version_info[:2] == (3, 11)]


def test_what_is_needed_has_a_least_version() -> None:
    """What an older environment has is replaced."""
    assert least() or sys.version_info[:2] != (3, 11)


@pytest.mark.slow
def test_a_wheel_needs_python_alone(tmp_path: Path) -> None:
    """Packed from what is built, installed without a compiler: command, plugin and demo."""
    if not version.PLUGIN.exists():
        pytest.skip("the plugin is not built: `make plugin` builds it")
    profile = "dev" if _native.has_assertions else "release"
    words = [sys.executable, str(ROOT / "packaging/wheels.py"), str(tmp_path), "--built", profile]
    subprocess.run(words, check=True, capture_output=True, text=True)
    (wheel,) = tmp_path.glob("weft_fabric-*-abi3-*.whl")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", bare], check=True)
    alone = {"PATH": f"{bare / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    alone |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    assert shutil.which("cargo", path=alone["PATH"]) is None
    got = in_place(tmp_path, alone, "pip", "install", "--quiet", "--no-compile", wheel, *least())
    if got.returncode != 0 and "No matching distribution" in got.stderr:
        pytest.skip("no package registry can be reached")
    assert got.returncode == 0, got.stderr
    said = in_place(tmp_path, alone, "weft", "demo", "--seeds", "1", "-q")
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "out/demo/report.html").is_file()
    path = in_place(tmp_path, alone, "python", "-c", "import weft; print(weft.nccl_plugin_path())")
    assert Path(path.stdout.strip()).is_relative_to(bare)
    ran = in_place(
        tmp_path, alone, "weft", "bench-net", "--ranks", "2", "-b", "1MiB", "-e", "1MiB", "-n", "1"
    )
    assert ran.returncode == 0, ran.stderr


def in_place(
    folder: Path, environment: dict[str, str], *words: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder with that environment and no other."""
    command = [str(word) for word in words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, ["Python 3.11 or newer (python3)", "Rust 1.88 or newer (cargo, rustc)", "(cc)"]),
        ({"rustc": "echo 'rustc 1.70.0 (0000)'"}, ["Rust 1.88 or newer; rustc is 1.70.0"]),
        ({"rustc": "echo 'rustc 1.101.0 (0000)'"}, []),
        ({"rustc": "exit 1"}, ["Rust 1.88 or newer; rustc does not run"]),
        ({"python3": '[ "$1" != -c ] || exit 1'}, ["Python 3.11 or newer; python3 is"]),
    ],
)
def test_make_says_what_it_lacks(programs: dict[str, str], said: list[str], tmp_path: Path) -> None:
    """All at once, before anything is built, and how to get it."""
    fine = {"python3": "exit 0", "cargo": "exit 0", "cc": "exit 0", "rustc": "echo rustc 1.88.0"}
    there = fine | programs if programs else {}
    for name, script in there.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "cut", "sort", "head"):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    done = subprocess.run(
        ["sh", ROOT / "packaging/prerequisites.sh", "python3", "1.88"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    missing = [line for line in done.stdout.splitlines() if line.startswith("missing:")]
    assert len(missing) == len(said)
    assert all(what in line for what, line in zip(said, missing, strict=True))
    assert done.stdout.count("  get it: ") == len(said)
    assert done.returncode == (1 if said else 0)
