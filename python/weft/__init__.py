"""Weft: load balancing for the traffic of AI training jobs, simulated packet by packet.

`simulate` runs an experiment and returns data frames; the command line (`weft.cli`) does the
same and leaves plots and a report. The simulator itself is native (`weft._native`).

Everything is imported on first use, so that `weft --help` answers at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import forks

if TYPE_CHECKING:
    from weft import api
    from weft._native import code_version
    from weft.api import (
        capacity,
        compare,
        load,
        plan,
        presets,
        schemes,
        simulate,
        switch_config,
        topologies,
        trace_info,
        transports,
        workloads,
    )
    from weft.errors import ExperimentError, StallError
    from weft.result import Plan, Result, SwitchConfig, TraceInfo
    from weft.version import __version__, nccl_plugin_path

    list = api.list_

__all__ = [
    "ExperimentError",
    "Plan",
    "Result",
    "StallError",
    "SwitchConfig",
    "TraceInfo",
    "WeftWarning",
    "__version__",
    "capacity",
    "code_version",
    "compare",
    "load",
    "nccl_plugin_path",
    "plan",
    "presets",
    "schemes",
    "simulate",
    "switch_config",
    "topologies",
    "trace_info",
    "transports",
    "workloads",
]

_PUBLIC = (*__all__, "errors", "list")
"""`from weft import *` must not replace Python's `list`."""
_HOME = {
    "ExperimentError": "weft.errors",
    "StallError": "weft.errors",
    "__version__": "weft.version",
    "code_version": "weft._native",
    "nccl_plugin_path": "weft.version",
}


forks.watch()


class WeftWarning(UserWarning):
    """Something is odd about an experiment though it runs."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    if name == "Cancelled":
        return _old_cancelled()
    if name not in _PUBLIC:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    if name == "errors":
        return importlib.import_module("weft.errors")
    home = importlib.import_module(_HOME.get(name, "weft.api"))
    # In `weft.api` the type `list` is needed, too.
    value = getattr(home, "list_" if name == "list" else name)
    globals()[name] = value
    return value


def _old_cancelled() -> type[RuntimeError]:
    """What code may still have in `except weft.Cancelled`."""
    import warnings

    from weft.errors import Cancelled

    what = "weft.Cancelled is never raised: Ctrl-C raises KeyboardInterrupt; remove it"
    warnings.warn(what, DeprecationWarning, stacklevel=3)
    return Cancelled


def __dir__() -> Sequence[str]:
    return _PUBLIC
