"""The queue pairs that hosts have between them, over all steps of a plan.

A queue pair is two hosts, a source port and a path. Arrays of packed numbers: plans have millions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.plans import verify
from weft.plans.file import Plan
from weft.plans.hosts import NONE
from weft.plans.network import Numbers

Packed = NDArray[np.uint64]


def of_pieces(pieces: dict[str, Numbers], hosts: int) -> Packed:
    """Different ones among these pieces: sender * hosts + receiver, source port (0: none), path."""
    pair = (pieces["src"] * hosts + pieces["dst"]).astype(np.uint64)
    port = np.where(pieces["source_port"] == NONE, 0, pieces["source_port"])
    return np.unique(pair << np.uint64(32) | (port << 16 | pieces["path"]).astype(np.uint64))


def all_of(found: list[Packed]) -> tuple[Numbers, Numbers]:
    """Different ones among all of these: pairs of hosts, ascending, and source port and path."""
    whole = np.unique(np.concatenate([np.empty(0, dtype=np.uint64), *found]))
    low = np.uint64(0xFFFF_FFFF)
    return (whole >> np.uint64(32)).astype(np.int64), (whole & low).astype(np.int64)


def most(pairs: Numbers) -> int:
    """The most that are between two hosts."""
    return int(np.unique(pairs, return_counts=True)[1].max(initial=1))


def most_of(plan: Plan) -> int:
    """The same of a plan; pieces that it does not hold are planned again."""
    count = len(plan["cluster"]["hosts"])
    steps = range(len(plan["steps"]))
    blocks = (block for number in steps for block in verify.pieces_of(plan, number))
    return most(all_of([of_pieces(block, count) for block in blocks])[0])
