"""Results of a run from what hosts and the kernel counted: times, loads, losses, recovery."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from weft.cluster import Cluster
from weft.testbed.layout import ANSWER, BURST, DATA_HEADER, HEADERS

Report = Mapping[str, Any]


def summary(cluster: Cluster, found: Mapping[str, Any]) -> dict[str, Any]:
    """One row about a run; `found` is what a session says."""
    hosts: Sequence[Report] = found["hosts"]
    came = {(one["src"], one["message"]): one for host in hosts for one in host["received"]}
    sent = [(host["host"], one) for host in hosts for one in host["sent"]]
    times = sorted(came[src, one["message"]]["received_s"] - one["posted_s"] for src, one in sent)
    completion = max((one["received_s"] for one in came.values()), default=0.0)
    bound = lower_bound(cluster, sent)
    uplinks = loads(cluster, found)
    again = sum(port["again_packets"] for host in hosts for port in _ports(host))
    return {
        "complete": found["complete"],
        "hosts": len(hosts),
        "messages": len(came),
        "payload_bytes": sum(host["received_bytes"] for host in hosts),
        "missing_bytes": sum(host["missing_bytes"] for host in hosts),
        "wrong_bytes": sum(host["wrong_bytes"] + host["overlapping_bytes"] for host in hosts),
        "completion_s": completion,
        "bound_s": bound,
        # What idle links send at once has no bound, and what has not come is not over.
        "slowdown": completion / bound if bound and found["complete"] else None,
        "fct_mean_s": statistics.fmean(times) if times else 0.0,
        "fct_p50_s": _rank(times, 0.5),
        "fct_p99_s": _rank(times, 0.99),
        "fct_max_s": _rank(times, 1.0),
        "packets": sum(port["packets"] for host in hosts for port in _ports(host)),
        "retransmits": again,
        "repeated": sum(host["repeated"] for host in hosts),
        "drops": sum(link["drops"] for link in found["links"]),
        "time_outs": sum(host["time_outs"] for host in hosts),
        "remaps": sum(len(host["remaps_s"]) for host in hosts),
        "uplink_variance_pct2": variance(uplinks),
        "hottest_uplink": hottest(uplinks),
        "uplinks": uplinks,
        "failure": _recovery(found, hosts),
    }


def _ports(host: Report) -> list[Report]:
    return [*host["ports"], host["local"]]


def _rank(values: Sequence[float], share: float) -> float:
    return values[max(0, -(-int(len(values) * share * 1000) // 1000) - 1)] if values else 0.0


def wire_bytes(cluster: Cluster, payload: int) -> int:
    """Bytes on a wire for a message sent whole: its packets with all their headers."""
    return payload + -(-payload // cluster.mtu) * (DATA_HEADER + HEADERS)


def lower_bound(cluster: Cluster, sent: Sequence[tuple[int, Report]]) -> float:
    """Seconds that no scheme can beat: what leaves or enters a rack over the rates of its uplinks.

    A link that was idle sends a burst for nothing, which is taken off. Answers are not counted.
    """
    leaf = [host.leaf for host in cluster.hosts]
    out: dict[int, int] = defaultdict(int)
    into: dict[int, int] = defaultdict(int)
    for src, one in sent:
        if leaf[src] != leaf[one["dst"]]:
            out[leaf[src]] += wire_bytes(cluster, one["bytes"])
            into[leaf[one["dst"]]] += wire_bytes(cluster, one["bytes"])
    bound = 0.0
    for switch in (switch for switch in cluster.switches if switch.tier == 0):
        links = [link for link in cluster.uplinks[switch.node] if link.state != "down"]
        most = max(out[switch.index], into[switch.index]) - BURST * len(links)
        rate = sum(link.rate_bps for link in links)
        bound = max(bound, most * 8 / rate if rate else 0.0)
    return bound


def loads(cluster: Cluster, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The uplinks of leaves: what the kernel counted, and what hosts sent into their segments."""
    # All that was counted had come by then, answers and what came twice included.
    end = max((host["heard_s"] for host in found["hosts"]), default=0.0)
    payload: dict[tuple[str, int], int] = defaultdict(int)
    first: dict[tuple[str, int], int] = defaultdict(int)
    wire: dict[tuple[str, int], int] = defaultdict(int)
    for host in found["hosts"]:
        leaf = f"leaf-{cluster.hosts[host['host']].leaf}"
        count = len(cluster.uplinks[leaf])
        for port in host["ports"]:
            packets = port["packets"] + port["again_packets"]
            key = leaf, port["segment"]
            payload[key] += port["bytes"]
            first[key] += port["packets"]
            wire[key] += port["bytes"] + port["again_bytes"] + packets * (DATA_HEADER + HEADERS)
        for number, answers in host["answers"].items():
            segment = (int(number) - 0xC000) // (0x4000 // count)
            wire[leaf, segment] += answers * (ANSWER + HEADERS)
    rows = []
    for link in (link for link in found["links"] if link["up"]):
        wired = cluster.uplinks[link["sender"]]
        place = next(
            number
            for number, one in enumerate(wired)
            if (one.upper, one.member) == (link["receiver"], link["member"])
        )
        key = link["sender"], place
        rows.append(
            {
                "leaf": link["sender"],
                "spine": link["receiver"],
                "member": link["member"],
                "uplink": place,
                "bytes": link["bytes"],
                "packets": link["packets"],
                "drops": link["drops"],
                "utilisation_pct": _percent(link, end),
                "segment_payload_bytes": payload[key],
                "segment_packets": first[key],
                "segment_bytes": wire[key],
            }
        )
    return rows


def _percent(link: Mapping[str, Any], seconds: float) -> float:
    """Of what a link can carry in this time: its rate, and once the burst of one that was idle.

    The kernel counts what a packet takes in whole nanoseconds, rounded down.
    """
    if not seconds:
        return 0.0
    carried = link["rate_bps"] / 8 * (seconds + link["packets"] * 1e-9) + BURST
    return float(link["bytes"] / carried * 100)


def _by_leaf(uplinks: Sequence[Report], key: str) -> list[list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in uplinks:
        found[row["leaf"]].append(row[key])
    return [values for values in found.values() if sum(values)]


def variance(uplinks: Sequence[Report]) -> float:
    """Variance of the utilisation of a leaf's uplinks, in squared percentage points: the mean."""
    leaves = _by_leaf(uplinks, "utilisation_pct")
    return statistics.fmean(map(statistics.pvariance, leaves)) if leaves else 0.0


def hottest(uplinks: Sequence[Report], key: str = "bytes") -> float:
    """The most loaded uplink of a leaf over the mean of that leaf; of the leaf where it is most."""
    leaves = _by_leaf(uplinks, key)
    return max((max(one) / statistics.fmean(one) for one in leaves), default=0.0)


def _recovery(found: Mapping[str, Any], hosts: Sequence[Report]) -> dict[str, Any] | None:
    """How flows took a failure: those that stood still and went on after it."""
    at = found["failed_at_s"]
    if at is None:
        return None
    stops = [stop for host in hosts for stop in host["recoveries"] if stop["until_s"] > at]
    return {
        "at_s": at,
        "flows_stopped": len(stops),
        "longest_stop_s": max((stop["until_s"] - stop["since_s"] for stop in stops), default=0.0),
        "recovered_s": max((stop["until_s"] - at for stop in stops), default=0.0),
        "time_outs_in_a_row": max((stop["time_outs"] for stop in stops), default=0),
    }
