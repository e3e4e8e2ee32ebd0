"""What each host gets: a file of variables or a script, with a note of what is known."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from weft import software
from weft.plans import hosts
from weft.software.planned import Planned
from weft.software.program import Program
from weft.switches import config
from weft.switches.config import File


def of(name: str, planned: Planned, host: str | None = None) -> list[File]:
    """The files of a software for all hosts, or for one.

    Raises:
        ExperimentError: There is no such software or host.
    """
    program = software.find(name)
    cluster = planned.cluster
    chosen = cluster.hosts if host is None else (hosts.find(cluster, host),)
    made = []
    for one in chosen:
        lines = [*_header(program, planned, one.name), *program.settings(planned, one.number)]
        made.append(File(f"{one.name}.{program.suffix}", "\n".join(lines) + "\n"))
    return made


def write(name: str, made: list[File], directory: Path) -> None:
    """The files of a software into a folder of its name."""
    config.write(made, directory / name)


def _header(program: Program, planned: Planned, host: str) -> Iterator[str]:
    plan = planned.plan
    if program.suffix == "sh":
        yield "#!/bin/sh"
    yield from _comment(f"{program.title} on {host}: {plan['title']}, {plan['scheme']}.")
    yield from _comment(f"Known of: {program.known}.")
    yield from _comment(f"Of the plan survives: {program.survives}.")
    if not planned.has_segments:
        why = f"The paths of this plan are enforced by {plan['enforce']}, so no port stands for an"
        if plan["enforce"] == "segments":
            why = "All of this plan stays below its leaves, so no port is planned for any"
        yield from _comment(f"{why} uplink: ports are spread evenly.")
    for one in program.uncertain:
        yield from _comment(f"Not certain, or to mind: {one}.")
    if planned.cluster.nics > 1 and program.suffix == "env":
        yield from _comment(
            f"A process that uses all {planned.cluster.nics} NICs of its server takes the file of "
            "one of them for all."
        )
    if program.suffix == "env":
        yield from _comment(f"Load it: set -a; . ./{host}.env; set +a")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, 98, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )
