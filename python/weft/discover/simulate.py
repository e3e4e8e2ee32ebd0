"""`weft discover --simulate`: what discovery would cost, over simulated switches of a cluster.

The survey is the one that hosts carry out; only switches, and time, are simulated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host
from weft.discover import peers
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


def switches(text: str) -> dict[str, Any]:
    """Read `hash=crc32,per-second=10`.

    Raises:
        ExperimentError: A key is not known, or its value is no number.
    """
    given = dict(DEFAULTS)
    for part in (one.strip() for one in text.split(",")):
        key, equals, value = part.partition("=")
        if part and (not equals or key not in DEFAULTS):
            raise ExperimentError(
                f"--simulate: {part!r}: write KEY=VALUE with a key of {', '.join(DEFAULTS)}"
            )
        if part:
            given[key] = value
    try:
        return {
            "hash": given["hash"],
            "burst": int(given["burst"]),
            "per_second": float(given["per-second"]),
            "silent": int(given["silent"]),
            "lost": float(given["lost"]),
            "seed": int(given["seed"]),
        }
    except ValueError:
        raise ExperimentError(f"--simulate: {text!r}: all but the hash are numbers") from None


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
    survey = peers.survey_of(cluster, source, targets, None, None, {**rules})
    found: dict[str, Any] = _native.simulate_discovery(
        json.dumps(clusters.as_json(cluster)),
        source.number,
        [host.number for host in targets],
        **answers,
        target_answers=False,
        round_trip_s=200e-6,
        rules=survey.rules(),
    )
    # Of the probes that were lost there is a count as well.
    return {"source": source.name, **answers, "lost_share": answers["lost"], **found}


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
    limit = f"{found['burst']} answers at once, then {found['per_second']:g} a second"
    if found["per_second"] == 0:
        limit = "all probes answered"
    return "\n".join(
        [
            f"{found['source']}: simulated switches, hash {found['hash']}, {limit}, "
            f"{found['silent']} silent, {100 * found['lost_share']:g} % lost",
            *aligned(table),
        ]
    )


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
