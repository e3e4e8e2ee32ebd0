"""What must be true of a run, by what the test's machine said."""

from __future__ import annotations

import json
import re
from typing import Any

import packets

HOSTS = ("10.0.1.2", "10.0.2.2")
GOOD = {
    "pingpong": r"^.*usec/iter",
    "pairs": r"^ok \d+ bytes",
    "channel": r"^ok \d+ bytes",
    "merged": r"^ok \d+ bytes",
    # Host memory alone; then DMA-BUFs as well, all that was sent, each with its flush.
    "host": r"^pointers 1\n(.*\n)*refused regMrDmaBuf",
    "gpu": r"^pointers 5\n(.*\n)*message 3 1000001\nok 4 messages",
}
PLUGIN = ("plugin", "old", "fault", "cable", "still")


def judge(said: str) -> list[str]:
    """What is wrong; nothing if all is well."""
    seen = packets.read(said)
    stages = dict(re.findall(r"^== (\S+)\n(.*?)(?=^== |\Z)", said, re.M | re.S))
    wrong = [f"{p} went over the wrong link" for p in packets.astray(seen)]
    wrong += [
        f"{stage}: no line like {pattern!r}"
        for stage, pattern in GOOD.items()
        if not re.search(pattern, stages.get(stage, ""), re.M)
    ]
    wrong += _pairs(stages.get("pairs", ""), seen)
    wrong += _merged(stages.get("merged", ""), seen)
    for stage in PLUGIN:
        wrong += [f"{stage}: {text}" for text in _plugin(stage, stages.get(stage, ""), seen)]
    if "guest: ends" not in said:
        wrong.append("the test's machine did not come to its end")
    return wrong


def _pairs(said: str, seen: list[packets.Packets]) -> list[str]:
    """Queue pairs of `roce_pairs`: each used its own port both ways, and all did."""
    planned = re.findall(r"^pair (\d+) (\d+) (\d+)$", said, re.M)
    data = packets.ports(seen, "pairs", HOSTS[0], "data")
    answers = packets.ports(seen, "pairs", HOSTS[1], "answer")
    wrong = [] if planned else ["pairs: no queue pairs were made"]
    for port, ours, theirs in planned:
        for what, found in (("data", data.get(int(theirs))), ("answers", answers.get(int(ours)))):
            if found != {int(port)}:
                wrong.append(f"pairs: {what} of port {port} came from {found or 'nowhere'}")
    return wrong


def _merged(said: str, seen: list[packets.Packets]) -> list[str]:
    """Two devices as one: half of the bytes goes by each, and is seen on the wire."""
    counted = re.search(r'^{"device".*}$', said, re.M)
    by_peer: dict[str, int] = {}
    for path in json.loads(counted[0])["paths"] if counted else []:
        by_peer[path["peer"]] = by_peer.get(path["peer"], 0) + path["bytes"]
    whole = sum(by_peer.values())
    wrong = []
    if len(by_peer) != len(HOSTS) or min(by_peer.values()) < whole * 0.45:
        wrong.append(f"merged: bytes by device {by_peer}, not evenly over both")
    wrong += [
        f"merged: no data of {host} on the wire"
        for host in HOSTS
        if not packets.ports(seen, "merged", host, "data")
    ]
    return wrong


def _plugin(stage: str, said: str, seen: list[packets.Packets]) -> list[str]:
    """Two ranks over the plugin: results right, ports of the wire those that the plan gave."""
    wrong = []
    moved = 0
    # What receivers say goes back by the queue pair, from the port that data came from.
    all_ports = {path["port"] for rank in range(len(HOSTS)) for path in _paths(said, rank)}
    for rank, host in enumerate(HOSTS):
        rows = re.findall(rf"rank {rank}: row (\d+) \S+ \S+ (\S+)$", said, re.M)
        ok = f"rank {rank}: ok" in said
        if not rows or not ok or any(bad != "0" for _, bad in rows):
            wrong.append(f"rank {rank} ended with {rows or 'no results'}{'' if ok else ', not ok'}")
        paths = _paths(said, rank)
        planned = {path["port"] for path in paths if path["bytes"]}
        found = packets.ports(seen, stage, host, "data")
        several = [ports for ports in found.values() if len(ports) != 1]
        wire = set().union(*found.values())
        if several or not planned <= wire:
            wrong.append(f"rank {rank}: planned {sorted(planned)}, on the wire {sorted(wire)}")
        if stray := wire - all_ports:
            wrong.append(f"rank {rank}: nobody planned {sorted(stray)}")
        by_link = _by_link(paths)
        moved += sum(path["re_routes"] for path in paths)
        if stage == "plugin" and not _even(by_link):
            wrong.append(f"rank {rank}: bytes by link {by_link}, not evenly over four")
    if stage == "fault" and not moved:
        wrong.append("a link died, and nobody took another route")
    late = sum(path["time_outs"] for path in _paths(said, 0))
    if stage == "still" and (late or "it goes on" not in said):
        wrong.append(f"a rank stood still, and {late} paths were taken for dead")
    return wrong


def _paths(said: str, rank: int) -> list[dict[str, Any]]:
    """What the plugin of a rank has counted, by path and port."""
    found = re.search(rf"^stats \S+ {rank} (\[.*\])$", said, re.M)
    return [path for nic in json.loads(found[1]) for path in nic["paths"]] if found else []


def _by_link(paths: list[dict[str, Any]]) -> dict[str, int]:
    loads: dict[str, int] = {}
    for path in paths:
        link = packets.link_of(path["port"])
        loads[link] = loads.get(link, 0) + path["bytes"]
    return loads


def _even(loads: dict[str, int]) -> bool:
    return len(loads) == packets.LINKS and min(loads.values()) > 0.9 * max(loads.values())
