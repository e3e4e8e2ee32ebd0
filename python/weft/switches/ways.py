"""The ways in which switches can be made to keep to a plan: `--enforce` of `weft switch-config`."""

from __future__ import annotations

from typing import Literal, get_args

Way = Literal["segments", "addresses", "srv6"]
"""`segments`: rules by source port. `addresses`: plain routes, and an address for each path (RLB).
`srv6`: hosts write the switches of the path into the destination (SRv6, micro segments)."""
WAYS: tuple[Way, ...] = get_args(Way)
