"""`weft discover --report`: what the hash of switches does to a cluster, for whoever runs it.

How evenly it shares ports, where connections of this machine are now, what a job would have under
planned ports, and what it loses where switches hash its queue pairs.
"""

from __future__ import annotations

import random
import statistics
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.cluster import Cluster
from weft.discover import named
from weft.discover.named import Named
from weft.discover.table import Table
from weft.report.text_table import aligned

_CONNECTIONS = Path("/proc/net/tcp")
_ESTABLISHED = "01"
_DRAWS = 400
"""Times that queue pairs are thrown onto uplinks."""
_QUEUE_PAIRS = (1, 4, 16)
"""Queue pairs of each uplink for which it is said what ECMP loses."""
_SEEDS = 5
"""Hashes under which a job is planned with ECMP."""


def of(
    cluster_path: Path, cluster: Cluster, table: Table, job: str | None, scheme: str
) -> dict[str, Any]:
    """All of it, as `--json` prints it."""
    found = named.of(cluster, table)
    return {
        "leaves": list(_leaves(cluster, found)),
        "unnamed_ports": found.unnamed,
        "strangers": list(found.strangers),
        "now": _now(cluster, table, found),
        "job": _job(cluster_path, table, job, scheme) if job else None,
    }


def _leaves(cluster: Cluster, found: Named) -> Iterator[dict[str, Any]]:
    """For each leaf whose hosts have looked: how its hash shares ports, and what that costs."""
    counts: dict[int, Counter[int]] = {}
    for path in found.paths:
        # Only what was asked is a sample.
        counts.setdefault(cluster.hosts[path.src].leaf, Counter())[path.uplink] += len(path.ports)
    for leaf, by_uplink in sorted(counts.items()):
        links = cluster.uplinks[f"leaf-{leaf}"]
        shares = [by_uplink[place] / by_uplink.total() for place in range(len(links))]
        yield {
            "leaf": leaf,
            "uplinks": [
                {
                    "uplink": place,
                    "to": cluster.by_node[link.upper].name,
                    "ports": by_uplink[place],
                    "share": shares[place],
                }
                for place, link in enumerate(links)
            ],
            "ecmp_busiest_over_mean": {
                str(each): _busiest(shares, each * len(links)) for each in _QUEUE_PAIRS
            },
        }


def _busiest(shares: Sequence[float], queue_pairs: int) -> float:
    """The load of the busiest uplink over the mean, if so many equal queue pairs are hashed."""
    draw = random.Random(1)  # noqa: S311 - no secret.
    places = range(len(shares))
    most = [
        max(Counter(draw.choices(places, shares, k=queue_pairs)).values()) for _ in range(_DRAWS)
    ]
    return statistics.fmean(most) * len(shares) / queue_pairs


def connections(text: str) -> Iterator[tuple[str, int, str, int]]:
    """Addresses and ports of the connections in `/proc/net/tcp` that are established."""
    for line in text.splitlines()[1:]:
        _, local, remote, state, *_ = line.split()
        if state == _ESTABLISHED:
            (address, port), (to, at) = (_end(end) for end in (local, remote))
            yield address, port, to, at


def _end(text: str) -> tuple[str, int]:
    address, _, port = text.partition(":")
    quads = struct.pack("=I", int(address, 16))
    return ".".join(str(quad) for quad in quads), int(port, 16)


def _now(cluster: Cluster, table: Table, found: Named) -> dict[str, Any]:
    """Connections of this machine to the port of the table, by leaf and uplink."""
    numbers = {host.address: host.number for host in cluster.hosts}
    by_port = {
        (path.src, path.dst, port): path.uplink for path in found.paths for port in path.ports
    }
    by_uplink: Counter[str] = Counter()
    unknown = 0
    text = _CONNECTIONS.read_text() if _CONNECTIONS.exists() else ""
    for address, port, to, at in connections(text):
        if at != table["port"] or not {address, to} <= set(numbers):
            continue
        src, dst = numbers[address], numbers[to]
        if cluster.hosts[src].leaf == cluster.hosts[dst].leaf:
            continue
        uplink = by_port.get((src, dst, port))
        if uplink is None:
            unknown += 1
        else:
            by_uplink[f"leaf-{cluster.hosts[src].leaf} uplink {uplink}"] += 1
    return {"connections": dict(sorted(by_uplink.items())), "of_unknown_path": unknown}


def _job(cluster_path: Path, table: Table, job: str, scheme: str) -> dict[str, Any]:
    """A job under the ports of the table, and under ECMP."""
    import tempfile

    from weft.discover import table as tables
    from weft.plans import make

    work = make.job(job)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "paths.json"
        tables.write(table, paths)
        planned = make.make(cluster_path, work, scheme, paths=paths)
    hashed = [
        make.make(cluster_path, work, "ecmp", seed)["seconds"] for seed in range(1, _SEEDS + 1)
    ]
    return {
        "job": job,
        "scheme": scheme,
        "busiest_links_s": planned["seconds"],
        "bound_s": planned["steps_bound_s"],
        "ecmp_busiest_links_s": statistics.fmean(hashed),
        "ecmp_over_planned": statistics.fmean(hashed) / planned["seconds"],
    }


def text(found: Mapping[str, Any]) -> str:
    """The lines of `weft discover --report`."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for leaf in found["leaves"]:
        yield f"leaf-{leaf['leaf']}: how its hash shares source ports"
        rows = [["uplink", "to", "ports", "share"]]
        rows += [
            [str(one["uplink"]), one["to"], str(one["ports"]), f"{one['share']:.2f}"]
            for one in leaf["uplinks"]
        ]
        yield from aligned(rows, right=(0, 2, 3))
        losses = ", ".join(
            f"{busiest:.2f} with {each}" for each, busiest in leaf["ecmp_busiest_over_mean"].items()
        )
        yield f"busiest uplink over the mean under ECMP, by queue pairs an uplink: {losses}\n"
    yield "members of a LAG are one uplink here: no answer to a probe tells them apart\n"
    if found["unnamed_ports"]:
        yield f"{found['unnamed_ports']} ports take paths that have no name here"
    yield from _now_lines(found["now"])
    job = found["job"]
    if job:
        yield (
            f"\n{job['job']}: how long its busiest links take\n"
            f"{job['scheme']} with these ports: {job['busiest_links_s']:.4g} s "
            f"(lower bound {job['bound_s']:.4g} s)\n"
            f"ECMP: {job['ecmp_busiest_links_s']:.4g} s, "
            f"{job['ecmp_over_planned']:.2f} times as long"
        )


def _now_lines(now: Mapping[str, Any]) -> Iterator[str]:
    if not now["connections"] and not now["of_unknown_path"]:
        yield "no connections of this machine to other racks now"
        return
    yield "connections of this machine to other racks now"
    rows = [[name, str(count)] for name, count in now["connections"].items()]
    rows += [["of unknown path", str(now["of_unknown_path"])]] if now["of_unknown_path"] else []
    yield from aligned(rows, right=(1,))
