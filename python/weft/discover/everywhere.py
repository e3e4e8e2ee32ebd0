"""`weft discover --over`: all hosts of a cluster look, each for itself.

Over a standing test bed these are its namespaces; else a command, such as `ssh {host}`, runs
`weft discover` there. Hosts below one leaf share its answers: each gets a part of the rate.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from weft.cluster import Cluster, Host, Protocol
from weft.discover import peers, table
from weft.discover.survey import Survey
from weft.discover.table import Table
from weft.errors import ExperimentError

TESTBED = "testbed"
"""The word for the standing test bed of the cluster file."""

_REMOTE = ("weft", "discover", "--survey", "-")
_SIDE_BY_SIDE = 64
"""Hosts that look at the same time."""


def surveys(
    cluster: Cluster,
    sources: Sequence[str] | None,
    targets: Sequence[str] | None,
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
) -> list[tuple[Host, Survey]]:
    """A survey for every host, or for those that are named; the rate is that of a leaf."""
    mine = list(cluster.hosts) if sources is None else peers.named(cluster, sources)
    wanted = list(cluster.hosts) if targets is None else peers.named(cluster, targets)
    below = Counter(host.leaf for host in mine)
    found = []
    for host in mine:
        to = peers.towards(host, wanted)
        if to:
            one = peers.survey_of(cluster, host, to, protocol, port, rules)
            rate = max(one.rate / below[host.leaf], 0.1)
            found.append((host, dataclasses.replace(one, rate=rate)))
    if not found:
        raise ExperimentError("discover: no two of the hosts are in different racks")
    return found


def run(
    cluster: Path,
    over: str,
    wanted: Sequence[tuple[Host, Survey]],
    path: Path | None,
    fresh: bool,
    tell: Callable[[str], None],
) -> Table:
    """Have hosts look; the table of all of them, which `path` keeps host by host."""
    first = wanted[0][1]
    found = table.new(first.protocol, first.port)
    if path is not None and not fresh:
        found = table.of_traffic(path, first.protocol, first.port)
    known = found if found["sources"] else None
    results = (
        _over_testbed(cluster, wanted, known) if over == TESTBED else _over(over, wanted, known)
    )
    for number, source in enumerate(results):
        tell(f"{number + 1} of {len(wanted)} hosts: {source['address']}")
        table.put(found, source)
        if path is not None:
            table.write(found, path)
    return found


def _over_testbed(
    cluster: Path, wanted: Sequence[tuple[Host, Survey]], known: Table | None
) -> Iterator[dict[str, Any]]:
    from weft.testbed import bed, discovery, system

    system.require()
    standing = bed.standing(cluster)
    if standing is None:
        raise ExperimentError(
            f"--over testbed: {cluster}: nothing is up; weft testbed up {cluster} builds it"
        )
    for start in range(0, len(wanted), _SIDE_BY_SIDE):
        some = wanted[start : start + _SIDE_BY_SIDE]
        yield from discovery.run(some, standing[0].prefix, known)


def _over(
    template: str, wanted: Sequence[tuple[Host, Survey]], known: Table | None
) -> Iterator[dict[str, Any]]:
    def one(of: tuple[Host, Survey]) -> dict[str, Any]:
        host, survey = of
        mine = table.only(known, survey.source) if known else None
        return _remote(_command(template, host), survey, mine)

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        yield from pool.map(one, wanted)


def _command(template: str, host: Host) -> list[str]:
    try:
        text = template.format(host=host.name, address=host.address, node=host.node)
        return [*shlex.split(text), *_REMOTE]
    except (KeyError, IndexError, ValueError):
        raise ExperimentError(
            f"--over: {template!r}: write a command that runs another one on a host, as "
            '"ssh {host}"; there are {host}, {address} and {node}'
        ) from None


def _remote(command: Sequence[str], survey: Survey, known: Table | None) -> dict[str, Any]:
    """Have another machine carry out a survey."""
    given = json.dumps({"survey": survey.as_json(), "known": known})
    try:
        done = subprocess.run(  # noqa: S603
            list(command), input=given, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ExperimentError(
            f"--over: {command[0]}: {(error.strerror or 'cannot be run').lower()}; name a command"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise ExperimentError(f"--over: {' '.join(command[:-2])}: {said}")
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        raise ExperimentError(
            f"--over: {' '.join(command[:-2])}: answers {done.stdout[:80]!r}; is the same version "
            "of weft there?"
        ) from None


def serve(text: str) -> str:
    """Be the other end of `--over`: a survey as JSON comes in, what was found goes out."""
    from weft.discover import survey

    try:
        given = json.loads(text)
        one, known = survey.from_json(given["survey"]), given["known"]
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"--survey: not as weft discover --over sends it ({error})") from None
    return json.dumps(survey.run(one, known))
