"""Builds wheels that run on any Linux with Python 3.11 or newer: `make wheel`.

A wheel has the command, the native core (one for all versions of Python, abi3), the NCCL plugin and
the experiments of `weft demo`. The linker is zig's, which builds for old C libraries and for other
processors without their systems.

    python packaging/wheels.py dist x86_64 aarch64
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/weft"
PLUGIN = PACKAGE / "libnccl-net-weft.so"
DEMO = ROOT / "experiments/ethereal-2024"
EXPERIMENTS = PACKAGE / "experiments"
"""Where `weft demo` looks first."""
GLIBC = "2.28"
"""The oldest C library that wheels run with: RHEL 8, Debian 10, Ubuntu 20.04."""
PROCESSORS = ("x86_64", "aarch64")


def main(words: list[str]) -> int:
    """Build wheels for processors into a folder; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("processors", nargs="*", help=f"{', '.join(PROCESSORS)}; default: both")
    options.add_argument(
        "--built", action="store_true", help="pack what `make build plugin` has built, for here"
    )
    given = options.parse_args(words)
    folder = given.folder.resolve()
    if given.built:
        with packed(PLUGIN):
            run("maturin", "build", "--release", "--compatibility", "linux", "--out", str(folder))
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
    target = f"{processor}-unknown-linux-gnu"
    run("rustup", "target", "add", target)
    run("cargo-zigbuild", "zigbuild", "--release", "-p", "weft-nccl-plugin",
        "--target", f"{target}.{GLIBC}")  # fmt: skip
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    with packed(built / target / "release/libnccl_net_weft.so"):
        run("maturin", "build", "--release", "--zig", "--target", target, "--compatibility",
            f"manylinux_{GLIBC.replace('.', '_')}", "--out", str(folder))  # fmt: skip


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
        yield
    finally:
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
