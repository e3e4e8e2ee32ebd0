"""What hosts need of a plan: queue pairs, their source ports and flow labels, environment.

The core writes it; `tables` computes it again, from the file alone, for `weft plan --verify`.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import FIRST_PORT, LAST_PORT, Cluster, Host
from weft.errors import ExperimentError
from weft.plans.file import Plan
from weft.switches import addresses

NONE = 0xFFFFFFFF
"""What the core writes for no source port and for no permanent queue pair."""


def flow_label(source_port: int) -> int:
    """The flow label from which an RDMA driver derives this source port.

    Drivers fold the label to 14 bits and set the two highest (`ibv_flow_label_to_udp_sport`); zero
    would mean none, so the first port has another of its labels.
    """
    return source_port - FIRST_PORT or 0x4001


def tables(cluster: Cluster, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queue pairs of every host over all steps that hold their pieces, by destination.

    If a step does not hold its pieces, the number of queue pairs for NCCL is left out.
    """
    held = [step["pieces"] for step in steps]
    found = _queue_pairs(cluster, held)
    known = all(pieces is not None for pieces in held)
    variables = environment(cluster, _most(found) if known else None)
    return [
        {"host": host.name, "queue_pairs": pairs, "environment": dict(variables)}
        for host, pairs in zip(cluster.hosts, found, strict=True)
    ]


def find(cluster: Cluster, name: str) -> Host:
    """The host that --host names.

    Raises:
        ExperimentError: There is none.
    """
    found = clusters.find(cluster.hosts, name)
    if found is None:
        first, last = cluster.hosts[0].name, cluster.hosts[-1].name
        raise ExperimentError(f"--host: {name} is none of {first} to {last}; name one of them")
    return found


def of_host(plan: Plan, name: str) -> dict[str, Any]:
    """The table of one host, pieces that the plan does not hold planned again.

    Raises:
        ExperimentError: There is no such host.
    """
    # Late, since checks of plans go by this module.
    from weft.plans import pairs

    cluster = clusters.from_json(plan["cluster"])
    number = find(cluster, name).number
    steps = plan["steps"]
    if all(step["pieces"] is not None for step in steps):
        return dict(plan["hosts"][number])
    experiment, place = json.dumps(plan["experiment"]), json.dumps(plan["cluster"])
    found = json.loads(_native.plan_host(experiment, plan["seed"], place, number, len(steps)))
    return {**found, "environment": environment(cluster, pairs.most_of(plan))}


def _queue_pairs(
    cluster: Cluster, steps: Sequence[Mapping[str, Any] | None]
) -> list[list[dict[str, Any]]]:
    """By host: its queue pairs, from the pieces of every step that has some."""
    known: dict[tuple[int, int, int, int], set[int]] = {}
    for number, pieces in enumerate(steps):
        if pieces is None:
            continue
        columns = [_filled(pieces[name]) for name in ("src", "dst", "source_port", "path")]
        for src, dst, port, path in zip(*columns, strict=True):
            known.setdefault((int(src), int(dst), int(port), int(path)), set()).add(number)
    found: list[list[dict[str, Any]]] = [[] for _ in cluster.hosts]
    by_path = addresses.paths_of(cluster) if cluster.path_addresses else None
    for (src, dst, port, path), uses in sorted(known.items()):
        pair: dict[str, Any] = {"to": cluster.hosts[dst].name, "path": path}
        if by_path is not None:
            # The first byte of a path is the uplink.
            pair["to_address"] = by_path.hosts[dst][path >> 8]
        if port != NONE:
            pair["source_port"] = port
        if FIRST_PORT <= port <= LAST_PORT:
            pair["flow_label"] = flow_label(port)
        found[src].append({**pair, "steps": sorted(uses)})
    return found


def _filled(column: Iterable[int | None]) -> list[int]:
    return [NONE if value is None else value for value in column]


def _most(found: list[list[dict[str, Any]]]) -> int:
    """The most queue pairs between two hosts."""
    counts = (Counter(pair["to"] for pair in pairs).values() for pairs in found)
    return max((count for some in counts for count in some), default=1)


def environment(cluster: Cluster, most: int | None) -> dict[str, str]:
    """NCCL's variables, the same for all hosts.

    Both ends of a connection have to have as many queue pairs, and NCCL does not ask the other one:
    so as many as some two hosts need (NCCL takes 1 to 128), every message cut over all of them, and
    the traffic class of the DSCP. NCCL has no variable for source ports. `most` None: not known.
    """
    found = {"NCCL_IB_TC": str(cluster.dscp << 2)}
    if most is None:
        return found | cluster.nccl
    most = min(most, 128)
    found["NCCL_IB_QPS_PER_CONNECTION"] = str(most)
    if most > 1:
        found["NCCL_IB_SPLIT_DATA_ON_QPS"] = "1"
    return found | cluster.nccl


def assignments(variables: Mapping[str, str]) -> list[str]:
    """Lines for a shell that set variables."""
    return [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
