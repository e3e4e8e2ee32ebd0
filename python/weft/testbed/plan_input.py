"""A plan file (`weft plan`) as what each host sends, step by step: messages, pieces and ports.

A host begins a step when it has sent and received everything of the step before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft._types import Planned as Message
from weft.cluster import Protocol
from weft.errors import ExperimentError
from weft.plans import file
from weft.testbed import host_defaults

Planned = tuple[list[Message], int]
"""What a host sends, and payload that it will receive."""

STAND_IN = "all-to-all:size=4KB"
"""An experiment has a workload; a planned run does not look at it."""


@dataclass(frozen=True)
class Plan:
    """What the test bed takes from a plan file."""

    scheme: str
    changes: list[tuple[str, str]]
    """Options of the scheme, as changes to an experiment."""
    seed: int
    planned: list[Planned]
    hashed: Protocol | None
    """The protocol whose packets take the plan's paths, where its ports were discovered."""


def read(path: Path, cluster_path: Path) -> Plan:
    """Read a plan for the cluster in a file.

    Raises:
        ExperimentError: It is no plan, one for another cluster, or one without its pieces.
    """
    table = file.read(path, keys=("scheme", "options", "seed", "cluster", "steps"))
    try:
        cluster = clusters.read(cluster_path, int(table["seed"]))
        mine = json.loads(json.dumps(clusters.as_json(cluster)))
        if table["cluster"] != mine:
            raise ExperimentError(f"{path}: cluster: for another cluster; make the plan again")
        scheme, chosen = table["scheme"], host_defaults.chosen(table["scheme"], table["options"])
        changes = [(f"balance.{key}", _text(value)) for key, value in chosen.items()]
        planned = _by_host(table["steps"], len(cluster.hosts), path)
        hashed = cluster.protocol if table.get("enforce") == "discovered" else None
        return Plan(scheme, changes, int(table["seed"]), planned, hashed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ExperimentError):
            raise
        raise ExperimentError(f"{path}: not as weft plan writes it ({error})") from None


def _text(value: object) -> str:
    """A value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_host(steps: list[Mapping[str, Any]], hosts: int, path: Path) -> list[Planned]:
    out: list[list[Message]] = [[] for _ in range(hosts)]
    expected = [0] * hosts
    # Of the step before, by host: what it sent and what it received.
    sent: list[list[int]] = [[] for _ in range(hosts)]
    received: list[list[int]] = [[] for _ in range(hosts)]
    number = 0
    for step in (one for one in steps for _ in range(one.get("times", 1))):
        if step["pieces"] is None:
            raise ExperimentError(
                f"{path}: step {step['name']!r} has no pieces; make the plan with all of them"
            )
        now_sent: list[list[int]] = [[] for _ in range(hosts)]
        now_received: list[list[int]] = [[] for _ in range(hosts)]
        for (src, dst), pieces in _messages(step["pieces"]):
            out[src].append((number, dst, sent[src], received[src], pieces))
            expected[dst] += sum(size for size, _, _ in pieces)
            now_sent[src].append(number)
            now_received[dst].append(number)
            number += 1
        # Who does nothing in a step waits for what it waited for before.
        sent = [new or old for new, old in zip(now_sent, sent, strict=True)]
        received = [new or old for new, old in zip(now_received, received, strict=True)]
    return list(zip(out, expected, strict=True))


_Piece = tuple[int, int | None, int | None]


def _messages(table: Mapping[str, list[Any]]) -> list[tuple[tuple[int, int], list[_Piece]]]:
    """Ends and pieces of each message of a step, the pieces in the order of their parts."""
    columns = ("message", "part", "src", "dst", "bytes", "path", "source_port")
    found: dict[int, tuple[tuple[int, int], list[_Piece]]] = {}
    rows = zip(*(table[column] for column in columns), strict=True)
    for message, _, src, dst, size, way, port in sorted(rows, key=lambda row: row[:2]):
        found.setdefault(message, ((src, dst), []))[1].append((size, way, port))
    return list(found.values())
