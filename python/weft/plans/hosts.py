"""What hosts need of a plan: queue pairs, their source ports and flow labels, environment."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from weft import _native
from weft.cluster import Cluster, from_json
from weft.plans.file import Plan

FIRST_PORT = 0xC000
"""The first UDP source port of RoCEv2."""
NONE = 0xFFFFFFFF
"""What the core writes for no source port and for no queue pair that stands."""


def flow_label(source_port: int) -> int:
    """The flow label from which an RDMA driver derives this source port.

    Drivers fold the label to 14 bits and set the two highest (`ibv_flow_label_to_udp_sport`); zero
    would mean none, so the first port has another of its labels.
    """
    return source_port - FIRST_PORT or 0x4001


def tables(cluster: Cluster, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queue pairs of every host over all steps that hold their pieces, by destination.

    Where some step does not, hosts are not told how many NCCL needs.
    """
    known: dict[tuple[int, int, int, int], dict[str, Any]] = {}
    for number, step in enumerate(steps):
        pieces = step["pieces"]
        if pieces is None:
            continue
        names = ("src", "dst", "source_port", "path", "queue_pair")
        columns = [np.asarray(_filled(pieces[name])) for name in names]
        for src, dst, port, path, _ in zip(*columns, strict=True):
            key = (int(src), int(dst), int(port), int(path))
            known.setdefault(key, {"steps": []})["steps"].append(number)
    hosts: list[dict[str, Any]] = [
        {"host": host.name, "queue_pairs": [], "environment": {}} for host in cluster.hosts
    ]
    for (src, dst, port, path), found in sorted(known.items()):
        pair: dict[str, Any] = {"to": cluster.hosts[dst].name, "path": path}
        if port != NONE:
            pair["source_port"] = port
        if FIRST_PORT <= port <= 0xFFFF:
            pair["flow_label"] = flow_label(port)
        pair["steps"] = sorted(set(found["steps"]))
        hosts[src]["queue_pairs"].append(pair)
    are_all = all(step["pieces"] is not None for step in steps)
    for host in hosts:
        host["environment"] = environment(cluster, host["queue_pairs"] if are_all else None)
    return hosts


def of_host(plan: Plan, name: str) -> list[dict[str, Any]] | None:
    """The queue pairs of one host over all steps; None if there is no such host.

    Pieces that the plan does not hold are planned again.
    """
    number, found = next(
        ((at, one) for at, one in enumerate(plan["hosts"]) if one["host"] == name), (0, None)
    )
    if found is None:
        return None
    if all(step["pieces"] is not None for step in plan["steps"]):
        pairs: list[dict[str, Any]] = found["queue_pairs"]
        return pairs
    experiment, seed = json.dumps(plan["experiment"]), plan["seed"]
    steps = [
        {"pieces": step["pieces"] or _native.plan_pieces(experiment, seed, at, number, number + 1)}
        for at, step in enumerate(plan["steps"])
    ]
    again: list[dict[str, Any]] = tables(from_json(plan["cluster"]), steps)[number]["queue_pairs"]
    return again


def _filled(column: list[int | None]) -> list[int]:
    return [NONE if value is None else value for value in column]


def environment(cluster: Cluster, queue_pairs: list[dict[str, Any]] | None) -> dict[str, str]:
    """NCCL's variables for a host.

    As many queue pairs a connection as some peer needs (NCCL takes 1 to 128), every message cut
    over all of them, and the traffic class of the DSCP. NCCL has no variable for source ports.
    `None`: nobody knows the queue pairs.
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
