"""The platforms that `weft switch-config` writes for.

One folder a platform, with what it says of itself (`PLATFORM`) and its templates, one for each
suffix of its files and `rollback.j2`; here one line. Templates that begin with `_` are for all.
Nothing else in Weft lists platforms: the command line and the tests go by the registry
(docs/extend/switch-platform.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.switches.platform import Platform

PLATFORMS = (
    "linux",
    "nftables",
    "frr",
    "ios",
    "eos",
    "sonic",
    "junos",
    "cumulus",
)
"""The registry: one line a platform, the name of its folder and of `--format`."""


def find(name: str) -> Platform:
    """The platform of this name.

    Raises:
        ExperimentError: There is none.
    """
    # Late, since the command line goes by the registry as soon as it begins.
    from weft.errors import ExperimentError

    if name not in PLATFORMS:
        raise ExperimentError(f"platform: {name!r} is unknown; use one of {', '.join(PLATFORMS)}")
    found: Platform = import_module(f"{__name__}.{name}").PLATFORM
    return found
