"""What hosts need of a plan: queue pairs, their source ports and flow labels, environment.

The core writes it; `tables` computes it again, from the file alone, for `weft plan --verify`.
"""

from __future__ import annotations

import json
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
    known = all(pieces is not None for pieces in held)
    return [
        {
            "host": host.name,
            "queue_pairs": pairs,
            "environment": environment(cluster, pairs if known else None),
        }
        for host, pairs in zip(cluster.hosts, _queue_pairs(cluster, held), strict=True)
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
    number = find(clusters.from_json(plan["cluster"]), name).number
    steps = plan["steps"]
    if all(step["pieces"] is not None for step in steps):
        return dict(plan["hosts"][number])
    experiment, cluster = json.dumps(plan["experiment"]), json.dumps(plan["cluster"])
    found = _native.plan_host(experiment, plan["seed"], cluster, number, len(steps))
    return dict(json.loads(found))


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


def environment(cluster: Cluster, queue_pairs: list[dict[str, Any]] | None) -> dict[str, str]:
    """NCCL's variables for a host.

    As many queue pairs a connection as some peer needs (NCCL takes 1 to 128), every message cut
    over all of them, and the traffic class of the DSCP. NCCL has no variable for source ports.
    `None`: the queue pairs are not known.
    """
    found = {"NCCL_IB_TC": str(cluster.dscp << 2)}
    if queue_pairs is None:
        return found | cluster.nccl
    peers: dict[str, int] = {}
    for pair in queue_pairs:
        peers[pair["to"]] = peers.get(pair["to"], 0) + 1
    most = min(max(peers.values(), default=1), 128)
    found["NCCL_IB_QPS_PER_CONNECTION"] = str(most)
    if most > 1:
        found["NCCL_IB_SPLIT_DATA_ON_QPS"] = "1"
    return found | cluster.nccl
