"""Small Chakra traces, written from their schema: protobuf's wire format, without protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER = 0, 2


@dataclass
class Node:
    """A node; `data` and `control` are the ids that it waits for."""

    id: int
    kind: int
    attributes: Mapping[str, int | str] = field(default_factory=dict)
    data: tuple[int, ...] = ()
    control: tuple[int, ...] = ()
    micros: int = 0
    name: str = "node"


def collective(number: int, size: int, group: str = "", kind: int = ALL_REDUCE) -> Node:
    """A collective of so many bytes that waits for the node before it."""
    attributes: dict[str, int | str] = {"comm_type": kind, "comm_size": size}
    if group:
        attributes["pg_name"] = group
    data = (number - 1,) if number else ()
    return Node(number, COLLECTIVE, attributes, data)


def trace(nodes: Iterable[Node], schema: str = "") -> bytes:
    """A file of one rank, with metadata that name a schema."""
    metadata = _bytes(1, b"0.0.4") + (_bytes(2, _attribute("schema", schema)) if schema else b"")
    return b"".join(_framed(message) for message in [metadata, *map(_encoded, nodes)])


def _encoded(node: Node) -> bytes:
    numbers = [(1, node.id), (3, node.kind), (7, node.micros)]
    waits = [(4, wait) for wait in node.control] + [(5, wait) for wait in node.data]
    return (
        b"".join(_varint(number << 3) + _varint(value) for number, value in numbers + waits)
        + _bytes(2, node.name.encode())
        + b"".join(_bytes(10, _attribute(*item)) for item in node.attributes.items())
    )


def _attribute(name: str, value: int | str) -> bytes:
    told = _bytes(29, value.encode()) if isinstance(value, str) else b"\x48" + _varint(value)
    return _bytes(1, name.encode()) + told


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _framed(message: bytes) -> bytes:
    return _varint(len(message)) + message


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
