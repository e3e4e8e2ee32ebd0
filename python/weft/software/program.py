"""What a software that moves data over RoCEv2 says of itself: its settings, its source ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.software.planned import Planned


@dataclass(frozen=True)
class Program:
    """A software that has queue pairs of its own."""

    title: str
    """Its full name."""
    known: str
    """Of which versions the settings are known, and from where."""
    survives: str
    """Which part of a plan it can keep."""
    uncertain: tuple[str, ...]
    """What is not known for certain."""
    settings: Callable[[Planned, int], Sequence[str]]
    """Lines for the host of this number: variables, or a shell script."""
    ports: Callable[[Planned, int, int], Sequence[int]]
    """The source ports of its queue pairs from a host to another; each sends an equal share."""
    suffix: str = "env"
    """Of a host's file: `env` has variables, `sh` commands."""
    steered: bool = True
    """Whether its packets should have the cluster's DSCP, so that switches steer them."""
