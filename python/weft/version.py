"""Which Weft this is: version, commit, and what is in it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from weft import _native
from weft.errors import ExperimentError

__version__ = f"{_native.version}+{_native.commit}" if _native.commit else _native.version
"""Version and, behind the plus sign, the commit of the native core (PEP 440's local version)."""

PLUGIN = Path(__file__).parent / "libnccl-net-weft.so"
"""NCCL's network plugin: in wheels, or where `make plugin` puts it."""

EXTRAS = {
    "dask": ["distributed"],
    "notebook": ["ipykernel", "pandas", "pyarrow"],
    "torch": ["torch"],
}
"""Extras of the distribution, as in pyproject.toml; each package has a module of the same name."""


def nccl_plugin_path() -> str:
    """The path of NCCL's network plugin, for `NCCL_NET_PLUGIN`.

    Raises:
        ExperimentError: This installation has none; the line says how to get one.
    """
    if not PLUGIN.exists():
        raise ExperimentError(
            f"the NCCL plugin is not in {PLUGIN.parent}; install a wheel, which has it, or run "
            "make plugin in the sources"
        )
    return str(PLUGIN)


def features() -> list[str]:
    """What this installation has beyond simulating: `nccl-plugin`, and extras by their names."""
    extras = [
        name for name, packages in EXTRAS.items() if all(map(importlib.util.find_spec, packages))
    ]
    return [*(["nccl-plugin"] if PLUGIN.exists() else []), *extras]


def text() -> str:
    """What `weft --version` prints: version and commit, then a line for each of the rest."""
    slower = ", with assertions, which take time: make build builds it without"
    return "\n".join(
        [
            f"weft {__version__}",
            f"results   {_native.code_version}",
            f"built for {_native.target}{slower if _native.has_assertions else ''}",
            f"features  {', '.join(features()) or 'none beyond simulating'}",
        ]
    )
