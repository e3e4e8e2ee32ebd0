"""What `roce_capture` printed: which packets came to which leaf over which link."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PORT = 49_152
SEGMENT = 4_096
LINKS = 4


@dataclass(frozen=True)
class Packets:
    """Packets that are alike."""

    stage: str
    """The part of the test in which they came."""
    leaf: str
    interface: str
    source: str
    """The address that they come from."""
    port: int
    """Their UDP source port."""
    queue_pair: int
    """The receiving one."""
    kind: str
    """`data` or `answer`."""
    count: int
    bytes: int


def read(said: str) -> list[Packets]:
    """All lines of this kind."""
    found = []
    for line in said.splitlines():
        words = line.split()
        if len(words) == 10 and words[0] == "packets":
            port, pair, count, size = (int(words[i]) for i in (5, 6, 8, 9))
            found.append(Packets(*words[1:5], port, pair, words[7], count, size))
    return found


def link_of(port: int) -> str:
    """The link between the leaves that `fabric.sh` gives a source port."""
    return f"p{(port - FIRST_PORT) // SEGMENT + 1}"


def astray(packets: list[Packets]) -> list[Packets]:
    """Those that crossed by a link other than that of their port."""
    return [p for p in packets if p.interface != "south" and p.interface != link_of(p.port)]


def ports(packets: list[Packets], stage: str, source: str, kind: str) -> dict[int, set[int]]:
    """The source ports of each receiving queue pair, by number, of what crossed in a stage."""
    found: dict[int, set[int]] = {}
    for p in packets:
        if (p.stage, p.source, p.kind) == (stage, source, kind) and p.interface != "south":
            found.setdefault(p.queue_pair, set()).add(p.port)
    return found
