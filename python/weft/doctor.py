"""What of Weft works on this machine, and what to install for the rest: `weft doctor`."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from weft import _native, version
from weft.testbed import system
from weft.units import format_bytes

State = Literal["works", "missing"]

_RDMA = Path("/sys/class/infiniband")
_VERBS = Path("/dev/infiniband")
_USES = {
    "dask": "sweeps on several machines (--on)",
    "notebook": "notebooks",
    "torch": 'PyTorch over Weft: torch.distributed with backend="weft"',
}
"""What the extras of the distribution are for."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""Names of the browser that draws pictures of reports in tests."""


@dataclass(frozen=True)
class Finding:
    """One part of Weft, and whether this machine has what it needs."""

    part: str
    state: State
    found: str
    """What was found; of what is missing, why it does not work."""
    use: str
    """What needs it."""
    remedy: str = ""
    """What to do about what is missing; empty if it works."""

    def as_dict(self) -> dict[str, str]:
        """The finding with the names that `--json` has."""
        return asdict(self)


def findings() -> list[Finding]:
    """All parts, in the order in which a new user meets them."""
    return list(_findings())


def _findings() -> Iterator[Finding]:
    yield _simulator()
    yield _plugin()
    yield _rdma()
    yield _test_bed()
    yield _tool(("nft",), "nftables", "test beds with --rules nftables", "apt-get install nftables")
    yield _tool(("vtysh",), "FRR", "tests of its configurations", "apt-get install frr")
    yield _tool(
        ("qemu-system-x86_64",),
        "QEMU",
        "tests over Soft-RoCE (make roce-test)",
        "apt-get install qemu-system-x86",
    )
    yield _tool(BROWSERS, "browser", "tests of reports and pages", "apt-get install chromium")
    for extra, packages in version.EXTRAS.items():
        yield _packages(extra, packages)


def _simulator() -> Finding:
    cores = _native.cores()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = (
        f"weft {version.__version__}, Python {sys.version.split()[0]}, "
        f"{cores} core{'s' * (cores != 1)}, {format_bytes(memory)} of memory"
    )
    return Finding("simulator", "works", found, "run, compare, plan, report")


def _plugin() -> Finding:
    use = "NCCL jobs, bench-net, testbed bench"
    if version.PLUGIN.exists():
        return Finding("NCCL plugin", "works", str(version.PLUGIN), use)
    mend = "install a wheel, or run make plugin in the sources"
    return Finding("NCCL plugin", "missing", "not in this installation", use, mend)


def _rdma() -> Finding:
    use = "the NCCL plugin over RoCE (TCP needs nothing)"
    if ctypes.util.find_library("ibverbs") is None:
        mend = "apt-get install libibverbs1 ibverbs-providers"
        return Finding("RDMA", "missing", "no libibverbs", use, mend)
    devices = sorted(path.name for path in _RDMA.glob("*"))
    if not devices:
        mend = "a NIC with RDMA, or rdma link add rxe0 type rxe netdev IFACE (Soft-RoCE)"
        return Finding("RDMA", "missing", "no device", use, mend)
    found = ", ".join(devices)
    if not any("Ethernet" in path.read_text() for path in _RDMA.glob("*/ports/*/link_layer")):
        mend = "a port whose link layer is Ethernet (mlxconfig: LINK_TYPE_P1=2)"
        return Finding("RDMA", "missing", f"{found}: InfiniBand, not Ethernet", use, mend)
    if not any(_VERBS.glob("uverbs*")):
        mend = "modprobe ib_uverbs; for a container --device /dev/infiniband"
        return Finding("RDMA", "missing", f"{found}, but no {_VERBS}/uverbs*", use, mend)
    return Finding("RDMA", "works", found, use)


def _test_bed() -> Finding:
    use = "testbed: real packets over network namespaces"
    why = system.missing()
    if why is None:
        return Finding("namespaces", "works", "root, ip and tc", use)
    what, _, mend = why.rpartition("; ")
    return Finding("namespaces", "missing", what, use, mend)


def _tool(names: tuple[str, ...], part: str, use: str, remedy: str) -> Finding:
    paths = (shutil.which(name) for name in names)
    path = next((path for path in paths if path is not None), None)
    if path is None:
        return Finding(part, "missing", f"no {names[0]} on the PATH", use, remedy)
    return Finding(part, "works", path, use)


def _packages(extra: str, packages: list[str]) -> Finding:
    found, lacking = [], []
    for name in packages:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            lacking.append(name)
    if not lacking:
        return Finding(extra, "works", ", ".join(found), _USES[extra])
    what = f"{', '.join(lacking)} not installed"
    return Finding(extra, "missing", what, _USES[extra], f"pip install {' '.join(lacking)}")
