"""Path discovery on hosts of a test bed: a process each, in the namespace of its host."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft import internal_errors
from weft.cluster import Cluster, Host
from weft.discover import peers, survey, table
from weft.discover.survey import Survey
from weft.discover.table import Table
from weft.errors import ExperimentError
from weft.testbed import system


def between(
    cluster: Cluster,
    hosts: Sequence[Host],
    prefix: str,
    rules: Mapping[str, Any] | None = None,
    known: Table | None = None,
) -> Table:
    """The paths between some hosts of a bed, found out side by side, for the cluster's traffic.

    With a table of before these are checked, and found out anew where they have changed.
    """
    surveys = []
    for host in hosts:
        targets = peers.towards(host, hosts)
        if targets:
            surveys.append((host, peers.survey_of(cluster, host, targets, None, None, rules or {})))
    found = table.new(cluster.protocol, cluster.port)
    for source in run(surveys, prefix, known):
        table.put(found, source)
    return found


def run(
    surveys: Sequence[tuple[Host, Survey]], prefix: str, known: Table | None
) -> list[dict[str, Any]]:
    """Carry out surveys side by side, each in the namespace of its host; what each has found.

    Raises:
        ExperimentError: One failed; why.
    """
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for number, (host, one) in enumerate(surveys):
            child = os.fork()
            if child == 0:
                # Whatever happens in there, this program's own way out is not its.
                try:
                    _host(prefix + host.node, one, known, Path(folder) / str(number))
                finally:
                    os._exit(1)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        return [_result(Path(folder) / str(number)) for number in range(len(surveys))]


def _host(namespace: str, one: Survey, known: Table | None, report: Path) -> None:
    found: dict[str, Any]
    try:
        system.die_with(os.getppid())
        system.enter(namespace)
        mine = table.only(known, one.source) if known else None
        found = survey.run(one, mine)
    except ExperimentError as error:
        found = {"error": str(error)}
    except BaseException as error:  # noqa: BLE001 - the parent reports it.
        found = {"fault": internal_errors.describe(error)}
    report.write_text(json.dumps(found))
    os._exit(0)


def _result(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    if "fault" in found:
        raise RuntimeError(found["fault"])
    if "error" in found or not found:
        raise ExperimentError(f"testbed: {found.get('error', 'a host ended without a report')}")
    return found


def answer(cluster: Cluster, prefix: str, per_second: float | None, mute: str | None) -> None:
    """Have switches answer so many probes of a host a second (0: all), and one of them none."""
    nodes = [switch.node for switch in cluster.switches]
    if per_second is not None:
        limit = round(1000 / per_second) if per_second > 0 else 0
        system.set_sysctls([prefix + node for node in nodes], {"net/ipv4/icmp_ratelimit": limit})
    if mute is not None:
        chain = "chain out { type filter hook output priority 0;"
        drop = ["icmp type time-exceeded drop", "}", "}"]
        system.nft([f"table ip weft_mute {{ {chain}", *drop], prefix + mute)
