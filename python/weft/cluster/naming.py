"""What `[cluster]` may say, by the native core; and the source ports of RoCEv2."""

from __future__ import annotations

from weft import _native

FIRST_PORT, LAST_PORT = 0xC000, 0xFFFF
"""The UDP source ports of RoCEv2."""

KEYS: tuple[str, ...] = tuple(_native.cluster_keys())
"""All of `[cluster]`."""
