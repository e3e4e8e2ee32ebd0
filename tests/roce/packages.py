"""Debian packages, downloaded and unpacked beside the system instead of installed into it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

KERNEL = "linux-image-amd64"
PACKAGES = (
    "busybox-static",
    "iproute2",
    "ibverbs-utils",
    "ibverbs-providers",
    "libibverbs1",
    # What these are linked with.
    "libbpf1",
    "libbsd0",
    "libcap2",
    "libelf1",
    "libmd0",
    "libmnl0",
    "libnl-3-200",
    "libnl-route-3-200",
    "libxtables12",
    "zlib1g",
)


class Missing(Exception):
    """What the test needs and cannot have here."""


def unpack(cache: Path) -> Path:
    """The folder under which all packages lie unpacked; downloads what is not there yet."""
    root = cache / "root"
    names = [kernel_package(), *PACKAGES]
    done = cache / "unpacked"
    if done.exists() and done.read_text().split() == names:
        return root
    debs = cache / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    # Without it apt's own user complains that the folder is not its.
    run(["apt-get", "-o", "APT::Sandbox::User=root", "download", *names], cwd=debs)
    root.mkdir(exist_ok=True)
    for name in names:
        newest = max(debs.glob(f"{name}_*.deb"), key=lambda deb: deb.stat().st_mtime)
        run(["dpkg-deb", "-x", str(newest), str(root)])
    done.write_text("\n".join(names))
    return root


def kernel_package() -> str:
    """The package behind `linux-image-amd64`, which is an empty one that points to it."""
    for line in run(["apt-cache", "depends", KERNEL]).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise Missing(f"apt does not know {KERNEL}: run apt-get update")


def run(command: Iterable[str], cwd: Path | None = None) -> str:
    """What a command prints; `Missing` if it is not there or fails."""
    words = list(command)
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Missing(f"{words[0]} is not installed") from error
    if done.returncode:
        raise Missing(f"{' '.join(words[:4])} ...: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
