"""A scheduler of Dask in this process, and workers in processes of their own, over loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
import distributed


class Scheduler:
    """A scheduler, and the workers that were started for it."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self._folder = folder
        self.workers: list[subprocess.Popen[str]] = []

    def start(self, count: int = 1, preload: str = "") -> None:
        """Start workers; each runs the Python code `preload` first."""
        for _ in range(count):
            more: list[str] = []
            if preload:
                code = self._folder / f"preload{len(self.workers)}.py"
                code.write_text(preload)
                more = ["--preload", str(code)]
            self.workers.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "distributed.cli.dask_worker", self.address),
                        *("--no-nanny", "--nthreads", "1", "--no-dashboard"),
                        *("--local-directory", str(self._folder), *more),
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )

    def has(self, count: int) -> bool:
        """Whether so many workers have come."""
        with distributed.Client(self.address, set_as_default=False) as client:
            return len(client.nthreads()) >= count


@contextmanager
def scheduler(folder: Path) -> Iterator[Scheduler]:
    """A scheduler without workers; all are gone afterwards."""
    with distributed.LocalCluster(
        n_workers=0, dashboard_address=":0", silence_logs=50, host="127.0.0.1"
    ) as cluster:
        found = Scheduler(cluster.scheduler_address, folder)
        try:
            yield found
        finally:
            for process in found.workers:
                process.kill()
                process.wait()
