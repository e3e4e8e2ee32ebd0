"""Tensors as addresses, for the native core.

The contract with it: an address and a number of bytes are given for every tensor or part of one,
and whatever holds the memory goes along and is kept until the operation is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Span = tuple[int, int]
"""Address and bytes."""

Strided = tuple[int, int, int, Sequence[int], Sequence[int]]
"""Addresses of a tensor and of dense memory for it, bytes of an element, shape, strides."""

_ELEMENTS = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.bool: "bool",
}

BYTES = "uint8"
"""What is only moved has no type."""


def element(tensor: Any) -> str:
    """Name the type of what is reduced.

    Raises:
        TypeError: There is no arithmetic on it here.
    """
    name = _ELEMENTS.get(tensor.dtype)
    if name is None:
        known = ", ".join(_ELEMENTS.values())
        raise TypeError(f"weft: {tensor.dtype} cannot be reduced; use one of {known}")
    return name


class Tensors:
    """The tensors of one operation."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self._dtype: Any = None
        self.before: list[Strided] = []
        """What the core makes dense as the operation begins: not sooner, or it would miss what the
        operation before it does to the same tensor."""
        self.after: list[Strided] = []
        """What it copies back before the operation is over."""

    def read(self, tensor: Any) -> Span:
        """Take a tensor that is read."""
        return self._take(tensor, [self.before])

    def write(self, tensor: Any, *, also_read: bool = False) -> Span:
        """Take a tensor that is written; of one that is read first, say so."""
        return self._take(tensor, [self.before, self.after] if also_read else [self.after])

    def apart(self, inputs: list[Span], outputs: list[Span], rank: int) -> list[Span]:
        """Have what would be written over before it is read copied as the operation begins.

        What a rank gives itself may be where it takes it: that is how operations are done in place.
        """
        if (
            not inputs
            or not outputs
            or _end(inputs) <= min(outputs)
            or _end(outputs) <= min(inputs)
        ):
            return inputs
        given, taken = (rank if len(spans) > 1 else 0 for spans in (inputs, outputs))
        is_in_place = inputs[given : given + 1] == outputs[taken : taken + 1]
        found = []
        for number, span in enumerate(inputs):
            others = list(outputs)
            if is_in_place and number == given:
                del others[taken : taken + 1]
            found.append(self._copied(span) if any(_meet(span, one) for one in others) else span)
        return found

    def _copied(self, span: Span) -> Span:
        start, size = span
        room = torch.empty(size, dtype=torch.uint8)
        self.kept.append(room)
        self.before.append((start, room.data_ptr(), 1, [size], [1]))
        return room.data_ptr(), size

    def _take(self, tensor: Any, copies: list[list[Strided]]) -> Span:
        self.kept.append(self._checked(tensor))
        start, size = tensor.data_ptr(), tensor.element_size()
        if not tensor.is_contiguous() or start % size:
            dense = torch.empty(tensor.shape, dtype=tensor.dtype)
            self.kept.append(dense)
            for of in copies:
                of.append((start, dense.data_ptr(), size, tensor.shape, tensor.stride()))
            start = dense.data_ptr()
        return start, tensor.numel() * size

    def _checked(self, tensor: Any) -> Any:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            where = f"{tensor.layout} on {tensor.device}"
            raise TypeError(f"weft: tensors must be dense and on the cpu, not {where}")
        if self._dtype not in (None, tensor.dtype):
            both = f"{self._dtype} and {tensor.dtype}"
            raise TypeError(f"weft: tensors of one operation must be of one type, not {both}")
        self._dtype = tensor.dtype
        return tensor


def _end(spans: list[Span]) -> Span:
    """The first address behind all of them, as a part of no length."""
    return max(start + size for start, size in spans), 0


def _meet(one: Span, other: Span) -> bool:
    """Whether two parts of memory have a byte in common."""
    return max(one[0], other[0]) < min(sum(one), sum(other))


def parts(span: Span, ranks: int, what: str) -> list[Span]:
    """Cut memory into as many equal parts.

    Raises:
        ValueError: It does not divide.
    """
    start, size = span
    each, rest = divmod(size, ranks)
    if rest:
        raise ValueError(f"weft: {what}: {size} bytes do not divide by {ranks} ranks")
    return [(start + rank * each, each) for rank in range(ranks)]


def rows(span: Span, tensor: Any, sizes: Sequence[int], ranks: int, what: str) -> list[Span]:
    """Cut memory along the first dimension of its tensor; without sizes into equal parts.

    Raises:
        ValueError: Sizes are not what the tensor has.
    """
    if not tensor.dim():
        raise ValueError(f"weft: {what}: a tensor without dimensions has no rows; give it one")
    length = tensor.shape[0]
    if not sizes:
        if length % ranks:
            raise ValueError(f"weft: {what}: {length} rows do not divide by {ranks} ranks")
        sizes = [length // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"weft: {what}: {list(sizes)} are not {ranks} sizes from 0 on that add to {length}"
        )
    start, size = span
    row = size // length if length else 0
    found = []
    for count in sizes:
        found.append((start, count * row))
        start += count * row
    return found
