"""`weft plan`, behind the command line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from weft.errors import DiskError
from weft.inputs import Overrides
from weft.plans import file, hosts, network, optimum, show
from weft.plans import make as making
from weft.plans import verify as verifying
from weft.plans.file import Plan
from weft.quantities import format_time, significant


def make(
    cluster: Path,
    job: Path,
    scheme: str,
    seed: int,
    changes: Overrides,
    output: Path | None,
) -> Plan:
    """Make a plan and write all of it."""
    plan = making.make(cluster, job, scheme, seed, changes)
    if output is not None:
        from weft.plans import plot

        file.write(plan, output / file.NAME)
        try:
            show.tables(plan, output)
            plot.draw(plan, output / "loads.png")
        except OSError as error:
            raise DiskError(f"{output}: cannot be written: {error.strerror}") from None
    return plan


def written(output: Path) -> list[str]:
    """What a plan has left in a directory: no pieces if there are too many."""
    names = (file.NAME, "loads.parquet", "pieces.parquet", "loads.png")
    return [name for name in names if (output / name).exists()]


def text(plan: Plan, host: str | None, with_optimum: bool) -> str:
    """What is printed."""
    parts = [show.text(plan)]
    if with_optimum:
        parts.append(_optima(plan))
    if host is not None:
        table = hosts.of_host(plan, host)
        pairs = [json.dumps(pair) for pair in table["queue_pairs"]]
        settings = [f"{name}={value}" for name, value in table["environment"].items()]
        parts.append("\n".join([*(pairs or [f"{host} sends nothing"]), "", *settings]))
    return "\n\n".join(parts)


def verified(path: Path, as_json: bool) -> str:
    """Check a plan file."""
    found = verifying.verify(file.read(path))
    if as_json:
        return json.dumps([dataclasses.asdict(one) for one in found], indent=1)
    return show.checked(found)


def _optima(plan: Plan) -> str:
    """The exact optimum of every step beside the plan."""
    net = network.of(plan["links"])
    lines = []
    for number, step in enumerate(plan["steps"]):
        demand = np.zeros((net.leaves, net.leaves), dtype=np.int64)
        loads = np.zeros(len(net.names), dtype=np.int64)
        for pieces in verifying.pieces_of(plan, number):
            demand += optimum.demands(net, pieces)
            loads += net.loads(pieces)
        best = max(optimum.solve(net, demand).seconds, optimum.at_hosts(net, loads))
        takes = step["congestion"]["seconds"]
        gap = 100 * (takes / best - 1) if best else 0.0
        lines.append(
            f"optimum of step {number + 1} by linear program: {format_time(best)}; "
            f"the plan takes {format_time(takes)} (+{significant(max(gap, 0.0), 3)} %)"
        )
    return "\n".join(lines)
