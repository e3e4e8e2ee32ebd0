"""What a platform of switches says of itself: its files, its limits, its names.

The platforms are in `weft.switches.platforms`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.errors import ExperimentError
from weft.switches.steering import Steering

PLAIN = r"eth(\d+)"
"""A port that the cluster file does not name."""
NAMED = rf"(?!{PLAIN}$).+"
"""Any other."""


def _nothing(_: Steering) -> None:
    """Any switch will do."""


@dataclass(frozen=True)
class Platform:
    """A platform of switches."""

    suffixes: tuple[str, ...]
    """Suffixes of its files, each from a template; the one to load first comes first."""
    port: str
    """What it calls a port, before the port's number: `eth`."""
    number: str = "place+1"
    """The port's number, as a pattern of the cluster file counts it."""
    remarks: tuple[str, ...] = ()
    """What it cannot do, and the replacement; each begins with the platform's name."""
    check: Callable[[Steering], None] = _nothing
    """Refuses a switch that it cannot steer, with an ExperimentError."""
    port_name: str = ""
    """A regular expression of its names of ports; empty: any."""
    range_checkers: int | None = None
    """How many ranges of ports the smallest chip that is known tells apart; None: not known."""
    addresses: tuple[str, ...] = ()
    """Suffixes of its files of routes by destination address; none: it has no such templates."""
    srv6: tuple[str, ...] = ()
    """The same for SRv6."""
    linux_ports: bool = False
    """Whether its ports are interfaces of Linux: other names are refused, whatever the way."""
    by_dscp: bool = False
    """Whether it knows a path by its DSCP, since it cannot match source ports."""


class Ported(Protocol):
    """A switch or a host with ports."""

    @property
    def node(self) -> str:
        """In Weft."""

    @property
    def port_names(self) -> Sequence[str]:
        """All ports that its files name."""


_LINUX_NAME = re.compile(r"(?!\.\.?$)[^/\s:]{1,15}")


def check_linux(node: Ported, mend: str) -> None:
    """Refuses ports that Linux cannot have."""
    for port in node.port_names:
        if not _LINUX_NAME.fullmatch(port):
            raise ExperimentError(
                f"{node.node}: port {port!r} is not a Linux interface name (15 characters at "
                f"most, no / or :); {mend}"
            )
