"""What a job needs of discovered paths: who sends to whom over which paths, and how many ports.

Where a host has so many messages that each takes few of its paths, any path will do: a plan fits
messages to paths that are known (`weft plan --paths`). Else each path of the plan needs ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host
from weft.discover import named
from weft.plans import make

Need = tuple[int | None, int]
"""A path id (None: any path) and how many ports."""
Needs = Mapping[int, Mapping[int, Sequence[Need]]]
"""By number of the sending and of the receiving host."""
Addresses = list[tuple[list[str], int]]
"""The same by the addresses of the switches that a path meets."""

CHOICES = 2
"""Ports for each piece of a message, where any path will do: a plan takes the better one."""
_MANY = 4
"""Pieces of a host for each of its paths, from which any path will do."""


def of_job(
    cluster_path: Path,
    cluster: Cluster,
    job: str,
    scheme: str,
    ports: int | None = None,
    seed: int = 1,
) -> Needs:
    """What a job needs under a scheme; with `ports`, so many of every path that its plan takes.

    Raises:
        ExperimentError: One of the files is wrong, or the scheme takes no discovered ports.
    """
    place = clusters.text_of(cluster_path)
    found = _native.path_needs(place, make.text_of(make.job(job)), scheme, seed, [])
    rows = zip(*(found[name].tolist() for name in ("src", "dst", "path", "subflows")), strict=True)
    exact: dict[int, dict[int, list[Need]]] = {}
    for src, dst, path, subflows in rows:
        exact.setdefault(src, {}).setdefault(dst, []).append((path, max(subflows, ports or 1)))
    if ports is not None:
        return exact
    return {src: _loosened(cluster, src, to) for src, to in exact.items()}


def _loosened(cluster: Cluster, src: int, to: dict[int, list[Need]]) -> dict[int, list[Need]]:
    """Any path instead of those of the plan, where a host has many pieces for each of its paths."""
    pieces = sum(count for needs in to.values() for _, count in needs)
    if pieces < _MANY * paths(cluster, cluster.hosts[src]):
        return to
    return {dst: [(None, CHOICES * sum(count for _, count in all_))] for dst, all_ in to.items()}


def paths(cluster: Cluster, host: Host) -> int:
    """The most paths that a host has to another rack."""
    links = cluster.uplinks.get(f"leaf-{host.leaf}", ())
    above = (len(cluster.uplinks.get(link.upper, ())) or 1 for link in links)
    return max(sum(above), 1)


def through(cluster: Cluster, src: Host, dst: Host, needs: Sequence[Need]) -> Addresses:
    """The same needs by the addresses from which switches answer."""
    return [(_addresses(cluster, src, dst, path), count) for path, count in needs]


def _addresses(cluster: Cluster, src: Host, dst: Host, path: int | None) -> list[str]:
    if path is None:
        return []
    return [link.upper_address for link in named.links(cluster, src, dst, path)]


def probes(
    cluster: Cluster, src: Host, targets: Sequence[Host], unseen: float, job: Needs | None = None
) -> float:
    """About how many probes a host sends that looks for these; without a job: for all paths."""
    ways = paths(cluster, src)
    mine = (job or {}).get(src.number, {})
    return sum(_probes_of(ways, mine.get(host.number, ()), unseen) for host in targets)


def _probes_of(ways: int, needs: Sequence[Need], unseen: float) -> float:
    if not needs:
        return ways * sum(1 / share for share in range(1, ways + 1)) / (1 - unseen)
    if needs[0][0] is None:
        return sum(count for _, count in needs)
    # The coupon collector's time for some of all coupons.
    return ways * sum(1 / share for share in range(1, len(needs) + 1))


def of_leaf(cluster: Cluster, looking: Sequence[Host], rate: float) -> float:
    """Probes a second of a leaf at which no switch is asked more than `rate` times.

    Switches above are fewer than leaves, perhaps, and are asked from all of them.
    """
    leaves = len({host.leaf for host in looking})
    tiers = Counter(switch.tier for switch in cluster.switches if switch.tier > 0)
    return rate * min([1.0, *(count / leaves for count in tiers.values())])
