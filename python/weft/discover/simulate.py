"""`weft discover --simulate`: what discovery would cost, over simulated switches of a cluster.

The survey is the one that hosts carry out; only switches, and time, are simulated.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host
from weft.discover import everywhere, needs, peers
from weft.discover.needs import Needs
from weft.errors import ExperimentError
from weft.report.text_table import aligned

DEFAULTS: dict[str, str] = {
    "hash": "mixed",
    "burst": "6",
    "per-second": "1",
    "silent": "0",
    "lost": "0",
    "seed": "1",
}
"""How simulated switches hash and answer: as Linux does."""
_LARGEST = (1 << 32) - 1
_MOST: dict[str, float] = {
    "burst": _LARGEST,
    "per-second": 1e9,
    "silent": _LARGEST,
    "lost": 1,
    "seed": _LARGEST,
}
"""The largest number of each key; the least is 0."""
_MOST_PROBES = 100_000
"""Probes that are simulated for a job, about: some seconds."""
_FEWEST = 4
"""Hosts that are simulated at least."""


def switches(text: str, seed: int = 1) -> dict[str, Any]:
    """Read `hash=crc32,per-second=10`; `seed` is that of texts that name none.

    Raises:
        ExperimentError: A key is not known, or its value is no number, or out of range.
    """
    given = {**DEFAULTS, "seed": str(seed)}
    for part in (one.strip() for one in text.split(",")):
        key, equals, value = part.partition("=")
        if part and (not equals or key not in DEFAULTS):
            raise ExperimentError(
                f"--simulate: {part!r}: write KEY=VALUE with a key of {', '.join(DEFAULTS)}"
            )
        if part:
            given[key] = value
    try:
        found: dict[str, Any] = {
            "hash": given["hash"],
            "burst": int(given["burst"]),
            "per_second": float(given["per-second"]),
            "silent": int(given["silent"]),
            "lost": float(given["lost"]),
            "seed": int(given["seed"]),
        }
    except ValueError:
        raise ExperimentError(f"--simulate: {text!r}: all but the hash are numbers") from None
    for key, most in _MOST.items():
        # No number is in no range.
        if not 0 <= found[key.replace("-", "_")] <= most:
            raise ExperimentError(
                f"--simulate: {key}: {given[key]} is out of range; use 0 to {most:g}"
            )
    return found


def run(
    cluster: Cluster,
    source: Host,
    targets: Sequence[Host],
    answers: Mapping[str, Any],
    rules: Mapping[str, Any],
) -> dict[str, Any]:
    """What a survey of one host costs, and what comes out wrong.

    Raises:
        ExperimentError: The hash is not known.
    """
    found = _of_host(
        cluster, json.dumps(clusters.as_json(cluster)), source, targets, answers, rules
    )
    # Of the probes that were lost there is a count as well.
    return {"source": source.name, **answers, "lost_share": answers["lost"], **found}


def _of_host(
    cluster: Cluster,
    cluster_json: str,
    source: Host,
    targets: Sequence[Host],
    answers: Mapping[str, Any],
    rules: Mapping[str, Any],
    wanted: Mapping[int, Sequence[needs.Need]] | None = None,
) -> dict[str, Any]:
    survey = peers.survey_of(cluster, source, targets, None, None, rules, wanted)
    found: dict[str, Any] = _native.simulate_discovery(
        cluster_json,
        source.number,
        [host.number for host in targets],
        needs=[list(wanted[host.number]) for host in targets] if wanted else [],
        **answers,
        target_answers=False,
        round_trip_s=200e-6,
        rules=survey.rules(),
    )
    return found


def of_job(
    cluster: Cluster,
    pairs: Sequence[tuple[Host, Sequence[Host]]],
    answers: Mapping[str, Any],
    rules: Mapping[str, Any],
    job: Needs,
) -> dict[str, Any]:
    """What the surveys of all hosts cost that a job needs.

    Where these are many, some hosts are drawn and stand for the rest: the total is that of the
    drawn ones by what was expected of each (a ratio estimate), with its 95 % confidence interval.

    Raises:
        ExperimentError: The hash is not known.
    """
    slots = everywhere.slots([host for host, _ in pairs])
    rates = peers.rates(cluster, pairs, rules, job, slots)
    expected = {
        host.number: needs.probes(cluster, host, to, rules["unseen"], job) for host, to in pairs
    }
    drawn = _drawn(pairs, expected, answers["seed"])
    cluster_json = json.dumps(clusters.as_json(cluster))
    of_hosts = {}
    for host, to in drawn:
        its = {**rules, "rate": rates[host.number]}
        wanted = job[host.number]
        of_hosts[host.number] = _of_host(cluster, cluster_json, host, to, answers, its, wanted)
    probes, margin = _total(
        [(one["probes"], expected[number]) for number, one in of_hosts.items()],
        sum(expected.values()),
        len(pairs),
    )
    rows = [row for one in of_hosts.values() for row in one["targets"]]
    return {
        **answers,
        "lost_share": answers["lost"],
        "hosts": len(pairs),
        "hosts_simulated": len(drawn),
        "pairs": sum(len(to) for _, to in pairs),
        "pairs_simulated": len(rows),
        "leaf_rate": needs.of_leaf(cluster, [host for host, _ in pairs], rules["rate"]),
        "probes": probes,
        "probes_margin": margin,
        "lost": sum(one["lost"] for one in of_hosts.values()),
        "probes_simulated": sum(one["probes"] for one in of_hosts.values()),
        "seconds": _seconds(pairs, of_hosts, slots),
        "linear": sum(row["linear"] for row in rows),
        "complete": sum(row["complete"] for row in rows),
        "wrong": sum(row["wrong"] for row in rows),
    }


def _drawn(
    pairs: Sequence[tuple[Host, Sequence[Host]]], expected: Mapping[int, float], seed: int
) -> Sequence[tuple[Host, Sequence[Host]]]:
    """Hosts that are simulated: all, or as many as a few seconds allow."""
    mean = sum(expected.values()) / len(pairs)
    count = max(int(_MOST_PROBES / mean), _FEWEST)
    if count >= len(pairs):
        return pairs
    return random.Random(seed).sample(pairs, count)  # noqa: S311 - no secret.


def _total(
    seen: Sequence[tuple[float, float]], expected: float, hosts: int
) -> tuple[float, float | None]:
    """Of all hosts, by what was seen and what was expected of some; and half the interval."""
    ratio = sum(one for one, _ in seen) / sum(of for _, of in seen)
    if len(seen) == hosts:
        return ratio * expected, 0.0
    spread = statistics.stdev(one - ratio * of for one, of in seen)
    share = (1 - len(seen) / hosts) / len(seen)
    return ratio * expected, 1.96 * hosts * spread * math.sqrt(share)


def _seconds(
    pairs: Sequence[tuple[Host, Sequence[Host]]],
    of_hosts: Mapping[int, Mapping[str, Any]],
    slots: int,
) -> float | None:
    """Until the last leaf is done, of which so many hosts look at once."""
    times = [one["seconds"] for one in of_hosts.values()]
    if None in times:
        return None
    below = Counter(host.leaf for host, _ in pairs)
    most = max(below.values())
    # Hosts of a leaf that all look at once end when the slowest does.
    return max(times) if most <= slots else statistics.fmean(times) * math.ceil(most / slots)


def text_of_job(found: Mapping[str, Any]) -> str:
    """The lines of `weft discover --simulate --job`."""
    simulated, pairs = found["pairs_simulated"], found["pairs"]
    margin = f" +- {found['probes_margin']:.0f} (95 %)" if found["probes_margin"] else ""
    took = "more than a month" if found["seconds"] is None else _span(found["seconds"])
    hosts = f"{found['hosts']}"
    if found["hosts_simulated"] < found["hosts"]:
        hosts += f", of which {found['hosts_simulated']} were drawn and simulated"
    table = [
        ["hosts that look", hosts],
        ["pairs that the job needs", f"{pairs}"],
        ["probes", f"{found['probes']:.0f}{margin}, {found['probes'] / pairs:.1f} a pair"],
        ["without an answer", f"{100 * found['lost'] / found['probes_simulated']:.1f} %"],
        ["probes a second of a leaf", f"{found['leaf_rate']:g} at most"],
        ["time, all leaves at once", took],
        ["pairs with all ports", f"{found['complete']} of {simulated}"],
        ["linear hash", f"known for {found['linear']} of {simulated}"],
        ["ports under a wrong path", f"{found['wrong']}"],
    ]
    return "\n".join([_head("all hosts", found), *aligned(table)])


def text(found: Mapping[str, Any]) -> str:
    """The lines of `weft discover --simulate`."""
    rows = found["targets"]
    time = found["seconds"]
    took = "more than a month" if time is None else _span(time)
    paths = [row["paths"] for row in rows]
    ports = sum(row["ports"] for row in rows) / len(rows)
    table = [
        ["targets", str(len(rows))],
        ["probes", f"{found['probes']}, {found['probes'] / len(rows):.0f} a target"],
        ["without an answer", f"{found['lost']}"],
        ["time", took],
        ["ports asked", f"{ports:.0f} a target"],
        ["paths", f"{min(paths)} to {max(paths)} a target"],
        ["linear hash", f"known for {sum(row['linear'] for row in rows)} targets"],
        ["ports under a wrong path", f"{sum(row['wrong'] for row in rows)}"],
    ]
    return "\n".join([_head(found["source"], found), *aligned(table)])


def _head(who: str, found: Mapping[str, Any]) -> str:
    limit = f"{found['burst']} answers at once, then {found['per_second']:g} a second"
    if found["per_second"] == 0:
        limit = "all probes answered"
    return (
        f"{who}: simulated switches, hash {found['hash']}, {limit}, {found['silent']} silent, "
        f"{100 * found['lost_share']:g} % lost"
    )


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
