"""The hosts of a run: one process each, forked from one that has loaded the native core.

Started as a module, with the id of the process that it ends with; the job comes on standard input.
A host enters its namespace, runs the native `net_host` until the control socket tells it to stop,
and writes its report to a file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from weft import _native, internal_errors
from weft._types import Planned
from weft.errors import ExperimentError
from weft.testbed import system

_AHEAD = 5
"""Behind the session, which is at -15; ahead of other work on this machine."""


def main() -> int:
    """Fork the hosts and wait for them; returns the exit status."""
    system.die_with(int(sys.argv[1]))
    # Links idle while their hosts wait for a core.
    os.nice(_AHEAD)
    job = json.load(sys.stdin)
    job["parent"] = os.getpid()
    children = []
    for number, namespace in enumerate(job["namespaces"]):
        child = os.fork()
        if child == 0:
            os._exit(_host(job, number, namespace))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def _host(job: dict[str, Any], number: int, namespace: str) -> int:
    report: dict[str, Any]
    try:
        system.die_with(job["parent"])
        system.enter(namespace)
        report = _native.net_host(
            job["experiment"],
            job["seed"],
            number,
            job["addresses"],
            job["port"],
            job["dscp"],
            job["control"],
            planned=_planned(job["planned"][number]) if job["planned"] else None,
            path_addresses=job["path_addresses"],
            **job["options"],
        )
    except (ExperimentError, OSError, RuntimeError) as error:
        report = {"host": number, "error": str(error)}
    except BaseException as error:  # noqa: BLE001 - the parent reports it.
        report = {"host": number, "error": internal_errors.describe(error), "fault": True}
    # In one step, so that nobody reads half of it.
    draft = Path(job["folder"], f"{number}.draft")
    draft.write_text(json.dumps(report))
    draft.rename(Path(job["folder"], f"{number}.json"))
    return 1 if "error" in report else 0


def _planned(read: Any) -> tuple[list[Planned], int]:
    """As the native core takes it: tuples, which JSON does not have."""
    messages, expected = read
    rows = [
        (message, dst, sent, received, [tuple(piece) for piece in pieces])
        for message, dst, sent, received, pieces in messages
    ]
    return rows, expected


if __name__ == "__main__":
    sys.exit(main())
