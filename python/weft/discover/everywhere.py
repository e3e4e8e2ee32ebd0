"""`weft discover --over`: all hosts of a cluster look, each for itself.

Over a standing test bed these are its namespaces; else a command, such as `ssh {host}`, runs
`weft discover` there. Hosts below one leaf share its answers: each gets a part of the rate.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from weft import _native
from weft.cluster import Cluster, Host, Protocol
from weft.discover import peers, table
from weft.discover.needs import Needs
from weft.discover.survey import Survey
from weft.discover.table import Table
from weft.errors import ExperimentError

TESTBED = "testbed"
"""The word for the standing test bed of the cluster file."""

_REMOTE = ("weft", "discover", "--survey", "-")
_SIDE_BY_SIDE = 256
"""Hosts that look at the same time, over all leaves."""
_FORKS = 64
"""The same on a test bed, which is this machine."""
_NO_COMMAND = 127
"""How shells end that find no command."""


def surveys(
    cluster: Cluster,
    wanted: Sequence[tuple[Host, list[Host]]],
    protocol: Protocol | None,
    port: int | None,
    rules: Mapping[str, Any],
    job: Needs | None = None,
) -> list[tuple[Host, Survey]]:
    """A survey for each host that looks (`peers.pairs`); the rate is that of a switch."""
    rates = peers.rates(cluster, wanted, rules, job, slots([host for host, _ in wanted]))
    return [
        (host, dataclasses.replace(one, rate=rates[host.number]))
        for host, one in peers.surveys(cluster, wanted, protocol, port, rules, job)
    ]


def slots(looking: Sequence[Host]) -> int:
    """Hosts of a leaf that look at the same time."""
    return max(_SIDE_BY_SIDE // len({host.leaf for host in looking}), 1)


def run(
    cluster: Path,
    over: str,
    wanted: Sequence[tuple[Host, Survey]],
    path: Path | None,
    fresh: bool,
    tell: Callable[[str], None],
) -> tuple[Table, list[str]]:
    """Have hosts look; the table of all of them, which `path` keeps host by host.

    And of each host that could not: its name and why.

    Raises:
        ExperimentError: None of them could, or the command is wrong.
    """
    first = wanted[0][1]
    found = table.new(first.protocol, first.port)
    if path is not None and not fresh:
        found = table.of_traffic(path, first.protocol, first.port)
    known = found if found["sources"] else None
    results = (
        _over_testbed(cluster, wanted, known) if over == TESTBED else _over(over, wanted, known)
    )
    failed: list[str] = []
    for number, source in enumerate(results):
        if isinstance(source, str):
            failed.append(source)
            continue
        tell(f"{number + 1} of {len(wanted)} hosts: {source['address']}")
        table.put(found, source)
        if path is not None:
            table.write(found, path)
    failed.sort()
    if len(failed) == len(wanted):
        more = f" (and so on: none of {len(failed)} hosts)" if len(failed) > 1 else ""
        raise ExperimentError(f"--over: {failed[0]}{more}")
    return found, failed


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
    for start in range(0, len(wanted), _FORKS):
        some = wanted[start : start + _FORKS]
        yield from discovery.run(some, standing[0].prefix, known)


def _over(
    template: str, wanted: Sequence[tuple[Host, Survey]], known: Table | None
) -> Iterator[dict[str, Any] | str]:
    """What each host has found, as they end; or a line that says why it has not."""
    most = slots([host for host, _ in wanted])
    commands = [(host, survey, _command(template, host)) for host, survey in wanted]

    def one(host: Host, survey: Survey, command: list[str]) -> dict[str, Any] | str:
        mine = table.only(known, survey.source) if known else None
        try:
            return _remote(command, survey, mine)
        except _RemoteError as error:
            return f"{host.name}: {error}"

    with ExitStack() as stack:
        # A leaf bears so much, whoever else looks.
        pools: dict[int, ThreadPoolExecutor] = {}
        futures = []
        for host, survey, command in commands:
            if host.leaf not in pools:
                pools[host.leaf] = stack.enter_context(ThreadPoolExecutor(most))
            futures.append(pools[host.leaf].submit(one, host, survey, command))
        for future in as_completed(futures):
            yield future.result()


def _command(template: str, host: Host) -> list[str]:
    try:
        text = template.format(host=host.name, address=host.address, node=host.node)
        words = shlex.split(text)
    except (KeyError, IndexError, ValueError, AttributeError):
        raise ExperimentError(
            f"--over: {template!r}: write a command that runs another one on a host, as "
            '"ssh {host}"; there are {host}, {address} and {node}'
        ) from None
    if not words:
        raise ExperimentError(
            '--over: no command; write one that runs another on a host, as "ssh {host}"'
        )
    # A path of weft there, quoted for its shell, which without a terminal looks into few folders.
    own = Path(words[-1].strip("'\"")).name == "weft"
    return [*words, *(_REMOTE[1:] if own else _REMOTE)]


class _RemoteError(Exception):
    """A host could not look; why, in a line."""


def _remote(command: Sequence[str], survey: Survey, known: Table | None) -> dict[str, Any]:
    """Have another machine carry out a survey."""
    given = json.dumps({"survey": survey.as_json(), "known": known})
    try:
        done = subprocess.run(  # noqa: S603
            list(command),
            input=given,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # what launchers and shells say is in the encoding of their locale
            check=False,
        )
    except OSError as error:
        raise ExperimentError(
            f"--over: {command[0]}: {(error.strerror or 'cannot be run').lower()}; name a command"
        ) from None
    nothing = f"{command[0]} ended with status {done.returncode}"
    lines = done.stderr.strip().splitlines() or [nothing]
    # Launchers as srun and mpirun say behind it that it ended.
    said = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1])
    if done.returncode == _NO_COMMAND:
        raise _RemoteError(f'{said}; install it there, or say where it is: "ssh {{host}} DIR/weft"')
    if done.returncode != 0:
        raise _RemoteError(said.removeprefix("error: "))
    try:
        # Shells may say something before.
        found = dict(json.loads(done.stdout.splitlines()[-1]))
        whole = {**table.new(survey.protocol, survey.port), "sources": [found]}
        _native.check_paths(json.dumps(whole), "answer")
        return found
    except (ValueError, TypeError, IndexError):
        raise _RemoteError(
            f"answers {done.stdout[-80:]!r}; is the same version of weft there?"
        ) from None


def serve(text: str) -> str:
    """Be the other end of `--over`: a survey as JSON comes in, what was found goes out."""
    from weft.discover import survey

    if not text.strip():
        raise ExperimentError(
            "--survey -: nothing comes on standard input; --over needs a command that passes it on "
            "(kubectl exec -i, srun without --input=none)"
        )
    try:
        given = json.loads(text)
        one, known = survey.from_json(given["survey"]), given["known"]
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(
            f"--survey: not as weft discover --over sends it ({error}); have the same version of "
            "weft at both ends"
        ) from None
    return json.dumps(survey.run(one, known))
