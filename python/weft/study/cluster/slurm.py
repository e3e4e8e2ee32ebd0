"""Workers that are jobs of Slurm, through dask-jobqueue, and what has become of the jobs.

Dask submits in a loop of its own and says nothing of what fails there. So the jobs tell it here,
where the command waits for the first one, and the dispatcher asks for the rest.
"""

from __future__ import annotations

import getpass
import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from weft.study.executor import taken

_SQUEUE_S = 10.0
"""Seconds that squeue may take to answer."""
_GONE_S = 30.0
"""Seconds between questions whether jobs that bring no worker are there at all."""


def start(jobqueue: Any, given: dict[str, Any], threads: int | None) -> tuple[Any, Jobs]:
    """Submit jobs; what is not said here is as `jobqueue.yaml` of dask-jobqueue has it.

    Raises:
        ValueError: Something is missing, or `sbatch` takes none of the jobs.
    """
    from dask import config

    wanted = given.pop("jobs", 1)
    for key in ("cores", "memory"):
        if key not in given and config.get(f"jobqueue.slurm.{key}", None) is None:
            raise ValueError(f"no {key} of a job; add cores=16,memory=32GB, or what a node has")
    if shutil.which("sbatch") is None:
        raise ValueError("there is no sbatch here; run this where jobs are submitted")
    if "cores" in given:
        # A process a run: what ends one leaves the others alone.
        given.setdefault("processes", max(1, given["cores"] // (threads or 1)))
    jobs = Jobs(wanted)
    job = jobs.telling(jobqueue.SLURMCluster.job_cls)
    # On a login node others have the usual port.
    options = {"dashboard": False, "dashboard_address": ":0"}
    cluster = jobqueue.SLURMCluster(**given, job_cls=job, scheduler_options=options)
    try:
        # Not only now: jobs that end before the sweep does, by their walltime, are submitted again.
        cluster.adapt(minimum_jobs=wanted, maximum_jobs=wanted)
        jobs.wait()
    except BaseException:
        cluster.close()
        raise
    return cluster, jobs


class Jobs:
    """The jobs of a command: what `sbatch` said, and which of them bring workers."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._first: Future[None] = Future()
        self._taken: dict[str, int] = {}
        """Workers of each job, by its number."""
        self._refused = 0
        self._why: SimpleQueue[str] = SimpleQueue()
        self._last = ""
        self._gone: frozenset[str] = frozenset()
        """All jobs, if the last answer of squeue had none of them."""
        self._ask_at = 0.0

    def telling(self, job: Any) -> Any:
        """The same class of jobs, which tell how their submission ends; in Dask's thread."""
        from distributed.core import Status

        jobs = self

        class Telling(job):  # type: ignore[misc]
            async def start(self) -> None:
                try:
                    await super().start()
                except (OSError, RuntimeError, ValueError) as error:
                    # Else Dask would submit it again whenever it looks.
                    self.status = Status.failed
                    jobs._refuse(_words(error))
                    raise
                jobs._take(self.job_id, self.worker_processes)

            async def close(self) -> None:
                jobs._taken.pop(self.job_id, None)
                await super().close()
                # dask-jobqueue leaves it running, and Dask asserts at its end that no job is.
                self.status = Status.closed

        return Telling

    def wait(self) -> None:
        """Wait until a job is taken.

        Raises:
            ValueError: `sbatch` takes none, with what it said.
        """
        self._first.result()

    def told(self) -> list[str]:
        """Jobs that have been refused since the last call."""
        every = Counter(taken(self._why, 0))
        return [
            f"sbatch refuses {'a job' if count == 1 else f'{count} jobs'}: {why}; "
            "the sweep goes on without"
            for why, count in every.items()
        ]

    def missing(self, there: int) -> str | None:
        """What to say while there are so many workers, if more are on their way."""
        jobs = dict(self._taken)
        missing = sum(jobs.values()) - there
        if missing <= 0:
            return None
        states = _states(jobs)
        workers = "a worker" if missing == 1 else f"{missing} workers"
        return f"waiting for {workers}; see squeue{f' ({states})' if states else ''}"

    def over(self) -> str | None:
        """Why no worker will come any more, if none will; asked while there is none."""
        if self._taken:
            return self._ended()
        if self._refused < self._wanted:
            return None
        return f"no job is left, and sbatch takes no other: {self._last}"

    def _ended(self) -> str | None:
        """That all jobs have ended, if squeue says so twice: Dask submits again what had some."""
        if time.monotonic() < self._ask_at:
            return None
        self._ask_at = time.monotonic() + _GONE_S
        jobs, known, before = frozenset(self._taken), _known(), self._gone
        self._gone = jobs if known is not None and not jobs & known.keys() else frozenset()
        if not self._gone or self._gone != before:
            return None
        first, *others = sorted(jobs)
        return (
            f"all jobs have ended ({first}{f' and {len(others)} more' if others else ''}), and no "
            f"worker is there; what they said is in slurm-{first}.out, or in log_directory"
        )

    def _take(self, number: str, workers: int) -> None:
        self._taken[number] = workers
        if not self._first.done():
            self._first.set_result(None)

    def _refuse(self, why: str) -> None:
        self._refused += 1
        self._last = why
        self._why.put(why)
        if self._refused == self._wanted and not self._first.done():
            self._first.set_exception(ValueError(f"sbatch takes no such job: {why}"))


def _words(error: Exception) -> str:
    """What `sbatch` said, in one line; dask-jobqueue quotes it last."""
    _, quoted, said = str(error).partition("stderr:\n")
    lines = [line.strip() for line in (said if quoted else str(error)).splitlines()]
    return "; ".join(filter(None, lines)) or "no reason given"


def _states(jobs: dict[str, int]) -> str:
    """What squeue knows of jobs, such as `2 PENDING (Priority)`; nothing without an answer."""
    known = _known()
    if known is None:
        return ""
    every = Counter(known.get(number, "not there any more") for number in jobs)
    return ", ".join(f"{count} {state.removesuffix(' (None)')}" for state, count in every.items())


def _known() -> dict[str, str] | None:
    """The state of each job of this user that has not ended; None without an answer."""
    words = ["squeue", "-h", "-u", getpass.getuser(), "-o", "%A %T (%r)"]
    try:
        said = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=True, timeout=_SQUEUE_S
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.split(maxsplit=1) for line in said.splitlines() if " " in line.strip())
