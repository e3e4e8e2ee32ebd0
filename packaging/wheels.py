"""Builds wheels that run on any Linux with Python 3.11 or newer: `make wheel`.

A wheel has the command, the native core (one for all versions of Python, abi3), the NCCL plugin,
the experiments of `weft demo`, and the licences of the crates that are in its libraries. The linker
is zig's, which builds for old C libraries and for other processors without their systems. What
comes out is checked: a library for another processor or a newer C library is refused.

    python packaging/wheels.py dist x86_64 aarch64
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import licences

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/weft"
PLUGIN = PACKAGE / "libnccl-net-weft.so"
DEMO = ROOT / "experiments/ethereal-2024"
EXPERIMENTS = PACKAGE / "experiments"
"""Where `weft demo` looks first."""
LICENCES = PACKAGE / "licences.txt"
GLIBC = "2.28"
"""The oldest C library that wheels run with: RHEL 8, Debian 10, Ubuntu 20.04."""
PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}"
"""The same in the name of a wheel (PEP 600)."""
PROCESSORS = {"x86_64": 62, "aarch64": 183}
"""Processors that wheels are for, with their numbers in ELF files (`e_machine`)."""
LIBRARIES = ("weft/_native.abi3.so", "weft/libnccl-net-weft.so")
"""What a wheel has beside Python's files."""


def main(words: list[str]) -> int:
    """Build wheels for processors into a folder; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("processors", nargs="*", help=f"{', '.join(PROCESSORS)}; default: both")
    options.add_argument(
        "--built",
        metavar="PROFILE",
        help="pack what is built, for here, with a profile of Cargo.toml: release, dev",
    )
    given = options.parse_args(words)
    folder = given.folder.resolve()
    if given.built:
        with packed(PLUGIN):
            run("maturin", "build", "--profile", given.built, "--compatibility", "linux",
                "--out", str(folder))  # fmt: skip
        return 0
    for processor in given.processors or PROCESSORS:
        if processor not in PROCESSORS:
            options.error(f"no wheel for {processor}; use {', '.join(PROCESSORS)}")
        build(processor, folder)
    return 0


def build(processor: str, folder: Path) -> None:
    """Build the wheel for a processor into a folder."""
    # Lines for profilers are two thirds of the core.
    os.environ["CARGO_PROFILE_RELEASE_STRIP"] = "symbols"
    # Told, since cargo asks git anew only where a file of the core has changed.
    os.environ.setdefault("WEFT_COMMIT", commit())
    target = f"{processor}-unknown-linux-gnu"
    run("rustup", "target", "add", target)
    run("cargo-zigbuild", "zigbuild", "--release", "-p", "weft-nccl-plugin",
        "--target", f"{target}.{GLIBC}")  # fmt: skip
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    with packed(built / target / "release/libnccl_net_weft.so"):
        run("maturin", "build", "--release", "--zig", "--target", target, "--compatibility",
            PLATFORM, "--out", str(folder))  # fmt: skip
    check(folder / f"weft_fabric-{version()}-cp311-abi3-{PLATFORM}_{processor}.whl")


def version() -> str:
    """The version of these sources. Cargo.toml is its one place: pip and the core have it, too."""
    told = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(told["workspace"]["package"]["version"])


def commit() -> str:
    """The commit at hand as crates/python/build.rs has it, or nothing outside of a repository."""
    words = ["describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=.dirty"]
    told = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip()


def check(wheel: Path) -> None:
    """Refuse a wheel that lacks a library, or has one that its name does not promise."""
    processor = next((one for one in PROCESSORS if wheel.stem.endswith(f"{PLATFORM}_{one}")), "")
    if not processor or not wheel.is_file():
        raise SystemExit(f"wheels: {wheel} is no wheel of {PLATFORM}")
    with zipfile.ZipFile(wheel) as packed:
        inside = {name: packed.read(name) for name in packed.namelist() if name.endswith(".so")}
    for name in LIBRARIES:
        if name not in inside:
            raise SystemExit(f"wheels: {wheel.name} has no {name}")
    for name, content in inside.items():
        if int.from_bytes(content[18:20], "little") != PROCESSORS[processor]:
            raise SystemExit(f"wheels: {name} in {wheel.name} is not for {processor}")
        newest = max(map(int, re.findall(rb"GLIBC_2\.(\d+)", content)), default=0)
        if newest > int(GLIBC.removeprefix("2.")):
            raise SystemExit(f"wheels: {name} in {wheel.name} needs glibc 2.{newest}, not {GLIBC}")


@contextmanager
def packed(plugin: Path) -> Iterator[None]:
    """The package with what only wheels have in it, for as long as one is packed."""
    mine = PLUGIN.with_suffix(".mine")
    swaps = plugin != PLUGIN
    if mine.exists():
        # Somebody was killed in here.
        mine.replace(PLUGIN)
    if swaps and PLUGIN.exists():
        PLUGIN.rename(mine)
    try:
        if swaps:
            shutil.copy(plugin, PLUGIN)
        for path in (*DEMO.glob("*.toml"), *DEMO.glob("common/*.toml")):
            copy = EXPERIMENTS / path.relative_to(DEMO.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        LICENCES.write_text(licences.text())
        yield
    finally:
        LICENCES.unlink(missing_ok=True)
        shutil.rmtree(EXPERIMENTS, ignore_errors=True)
        if swaps:
            PLUGIN.unlink(missing_ok=True)
        if mine.exists():
            mine.rename(PLUGIN)


def run(*command: str) -> None:
    """Run a command from the root of the sources; the environment's programs come first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"PATH": path})


if __name__ == "__main__":
    # So that `packed` puts things back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
