"""What `weft discover` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.cluster import Cluster
from weft.discover import named
from weft.discover.table import Table
from weft.report.text_table import aligned

Via = Mapping[tuple[str, str, int], str]
"""Names of switches, by source address, target address and port."""

_FEW = 3
"""Targets whose paths are shown one by one without being asked."""
_PORTS = 4
"""Ports of a path that are shown."""
_UNEVEN = 0.01
"""Counts that are as uneven as this rarely are so by chance."""


def table(found: Table, sources: Sequence[str], cluster: Cluster | None, every: bool) -> str:
    """The paths that some sources have found; `every`: those of every target."""
    names = names_of(cluster)
    via = named.by_port(cluster, found) if cluster else {}
    lines: list[str] = []
    for source in (one for one in found["sources"] if one["address"] in sources):
        lines += _source(found, source, via, names, every)
    return "\n".join(lines)


def names_of(cluster: Cluster | None) -> dict[str, str]:
    """Names of hosts by address."""
    return {host.address: host.name for host in cluster.hosts} if cluster else {}


def _source(
    found: Table,
    source: Mapping[str, Any],
    via: Via,
    names: Mapping[str, str],
    every: bool,
) -> Iterator[str]:
    targets = source["targets"]
    yield (
        f"{_name(source['address'], names)}: {found['protocol']} to port {found['port']} of "
        f"{len(targets)} target{'s' * (len(targets) > 1)}, {source['probes']} "
        f"probe{'s' * (source['probes'] > 1)} ({source['lost']} without an answer), "
        f"{source['seconds']:.1f} s"
    )
    heads = ["to", "switches", "paths", "ports", "fewest", "max/mean", "sure", ""]
    yield from aligned([heads, *(_row(one, names) for one in targets)], right=range(1, 7))
    if every or len(targets) <= _FEW:
        for target in targets:
            if target["paths"]:
                yield f"\nto {_name(target['address'], names)}"
                yield from _paths(source, target, via)


def _row(target: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    counts = [len(_ports(path)) for path in target["paths"]]
    hops, even = target["hops"], target["max_over_mean"]
    return [
        _name(target["address"], names),
        "?" if hops is None else str(hops),
        str(len(counts)),
        str(sum(counts)),
        str(min(counts, default=0)),
        "" if even is None else f"{even:.2f}",
        f"{100 * target['confidence']:.1f} %" if len(counts) > 1 else "",
        _remark(target),
    ]


def _remark(target: Mapping[str, Any]) -> str:
    if target["changed"]:
        return "routing has changed: found out anew"
    if not target["done"]:
        return "unfinished"
    if target["hops"] == 0:
        return "no switch answers"
    if target["hops"] is None and not target["paths"]:
        return "no source port is free (ss -anu, ss -ant)"
    if target["checked"]:
        return f"as before ({target['checked']} ports asked again)"
    if target.get("needs"):
        return _needed(target)
    if target["hops"] and len(target["paths"]) == 1:
        return "a single path"
    if target["p_value"] is not None and target["p_value"] < _UNEVEN:
        return f"uneven (p = {target['p_value']:.1g})"
    return ""


def _ports(path: Mapping[str, Any]) -> list[int]:
    """The ports of a path, those that were asked first."""
    return [*path["ports"], *path.get("predicted", ())]


def _needed(target: Mapping[str, Any]) -> str:
    """Whether all is there that a job needs."""
    missing = sum(not _meets(target, need) for need in target["needs"])
    return f"{missing} paths that the job takes have too few ports" if missing else "as needed"


def _meets(target: Mapping[str, Any], need: Mapping[str, Any]) -> bool:
    leads = (path for path in target["paths"] if set(need["through"]) <= set(path["hops"]))
    ports: int = need["ports"]
    return sum(len(_ports(path)) for path in leads) >= ports


def _paths(source: Mapping[str, Any], target: Mapping[str, Any], via: Via) -> Iterator[str]:
    total = sum(len(_ports(path)) for path in target["paths"])
    rows = [["switches", "share", "ports", ""]]
    for path in target["paths"]:
        hops = " ".join(hop or "*" for hop in path["hops"])
        ports = _ports(path)
        count = len(ports)
        named_as = via.get((source["address"], target["address"], ports[0]), "")
        some = " ".join(str(port) for port in ports[:_PORTS])
        more = " ..." if count > _PORTS else ""
        rows.append(
            [hops, f"{count / total:.2f}", str(count), f"{some}{more}  {named_as}".rstrip()]
        )
    yield from aligned(rows, right=(1, 2))


def _name(address: str, names: Mapping[str, str]) -> str:
    return f"{names[address]} ({address})" if address in names else address
