"""The Chakra trace of `examples/chakra`: an iteration of a small GPT on eight GPUs.

Two GPUs share each layer (tensor), four pairs have a share of the data each. Forward and backward,
a layer computes and then adds up its activations within the pair; gradients are added up over the
pairs while the layers before compute on. `python tests/example_trace.py` writes the files.
"""

from __future__ import annotations

import json
from pathlib import Path

from chakra import ALL_REDUCE, COLLECTIVE, COMPUTE, Node, trace

FOLDER = Path(__file__).parents[1] / "examples" / "chakra"
RANKS, TENSOR, LAYERS = 8, 2, 4
ACTIVATIONS, GRADIENTS = 2_000_000, 6_000_000
FORWARD, BACKWARD, UPDATE = 100, 200, 80
"""Microseconds."""
OPERATIONS, MEMORY = 150_000_000, 500_000
"""Floating-point operations, and bytes of memory, in a microsecond: 150 TFLOP/s and 500 GB/s."""


def groups() -> dict[str, list[int]]:
    """Ranks by group: the pairs from "1" on, then those at the same place of all pairs."""
    pairs = [[first, first + 1] for first in range(0, RANKS, TENSOR)]
    data = [list(range(place, RANKS, TENSOR)) for place in range(TENSOR)]
    return {str(number): ranks for number, ranks in enumerate(pairs + data, 1)}


class _Rank:
    """The nodes of one rank, as they are added."""

    def __init__(self, rank: int) -> None:
        self.nodes: list[Node] = []
        self.pair = str(1 + rank // TENSOR)
        self.data = str(1 + RANKS // TENSOR + rank % TENSOR)

    def compute(self, name: str, micros: int, *after: int) -> int:
        told = {"num_ops": micros * OPERATIONS, "tensor_size": micros * MEMORY}
        return self._add(Node(len(self.nodes), COMPUTE, told, after, micros=micros, name=name))

    def all_reduce(self, name: str, size: int, group: str, *after: int) -> int:
        told = {"comm_type": ALL_REDUCE, "comm_size": size, "pg_name": group}
        return self._add(Node(len(self.nodes), COLLECTIVE, told, after, name=name))

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return node.id


def nodes(rank: int) -> list[Node]:
    """What a rank does in an iteration."""
    made = _Rank(rank)
    last: tuple[int, ...] = ()
    for layer in range(LAYERS):
        done = made.compute(f"forward {layer}", FORWARD, *last)
        last = (made.all_reduce(f"activations {layer}", ACTIVATIONS, made.pair, done),)
    gradients = []
    for layer in reversed(range(LAYERS)):
        done = made.compute(f"backward {layer}", BACKWARD, *last)
        gradients.append(made.all_reduce(f"gradients {layer}", GRADIENTS, made.data, done))
        last = (made.all_reduce(f"errors {layer}", ACTIVATIONS, made.pair, done),)
    made.compute("update", UPDATE, *last, *gradients)
    return made.nodes


def files() -> dict[str, bytes]:
    """The files of the trace by name."""
    made = {f"gpt.{rank}.et": trace(nodes(rank)) for rank in range(RANKS)}
    return made | {"gpt.json": json.dumps(groups()).encode() + b"\n"}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
