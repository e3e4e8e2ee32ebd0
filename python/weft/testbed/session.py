"""One run through a test bed, in a process of its own that ends when its parent ends.

Started as a module, with the parent's process id. The job comes on standard input and the results
go to standard output, both as JSON. A bed for this run only lives in this process's own /run:
however it ends, nothing stays.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.testbed import counters, system
from weft.testbed.bed import Bed
from weft.testbed.failures import Failure

_READY_WITHIN = 60.0
"""Seconds until all hosts are there."""
_HEAD_START = 0.1
"""Seconds from the word to the start, so that all have heard it."""
_SETTLE = 0.1
"""Seconds until the last answers have left the queues."""


def main() -> int:
    """Do what the job says; returns the exit status."""
    return system.serve(lambda job: [_run(job)])


def _run(job: dict[str, Any]) -> dict[str, Any]:
    cluster, rules = clusters.from_json(job["cluster"]), job["rules"]
    failure = Failure(**job["failure"]) if job["failure"] else None
    if job["prefix"]:
        bed = Bed(cluster, job["prefix"], rules)
        folder = Path(tempfile.mkdtemp(dir=job["folder"]))
        bed.reseed(job["seed"])
    else:
        system.hide_namespaces()
        folder = Path(tempfile.mkdtemp(dir="/run"))
        bed = Bed(cluster, rules=rules)
        bed.build(job["seed"])
    if job["enforce"]:
        bed.enforce(job["enforce"], "tcp" if job["options"]["tcp"] else "udp")
    else:
        bed.hash_all()
    try:
        return _Session(job, cluster, bed, folder, failure).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if job["prefix"] and failure:
            bed.repair(failure)


class _Session:
    """The hosts of a run, as this process talks to them."""

    def __init__(
        self,
        job: dict[str, Any],
        cluster: Cluster,
        bed: Bed,
        folder: Path,
        failure: Failure | None,
    ) -> None:
        self._job, self._cluster, self._bed, self._folder = job, cluster, bed, folder
        self._failure = failure
        self._failed_at: float | None = None
        self._hosts = len(cluster.hosts)
        self._selector = selectors.DefaultSelector()
        self._heard: dict[socket.socket, bytes] = {}
        self._ready = self._done = 0
        self._expected = 0
        self._come: dict[socket.socket, int] = {}
        self._start_ns = 0

    def run(self) -> dict[str, Any]:
        path = self._folder / "control"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(self._hosts)
            self._selector.register(listener, selectors.EVENT_READ)
            agents = self._launch(path)
            try:
                return self._conduct(agents)
            finally:
                for talker in list(self._heard):
                    talker.close()
                agents.kill()
                agents.wait()

    def _launch(self, control: Path) -> subprocess.Popen[str]:
        job = {
            "experiment": self._job["experiment"],
            "seed": self._job["seed"],
            "namespaces": [self._bed.prefix + host.node for host in self._cluster.hosts],
            "addresses": [host.address for host in self._cluster.hosts],
            "path_addresses": self._job["path_addresses"],
            "port": self._cluster.port,
            "dscp": self._cluster.dscp,
            "control": str(control),
            "folder": str(self._folder),
            "planned": self._job["planned"],
            "options": self._job["options"],
        }
        agents = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "weft.testbed.host_processes", str(os.getpid())],
            stdin=subprocess.PIPE,
            text=True,
        )
        if agents.stdin is None:
            raise AssertionError
        with agents.stdin as stdin:
            json.dump(job, stdin)
        return agents

    def _conduct(self, agents: subprocess.Popen[str]) -> dict[str, Any]:
        self._until(lambda: self._ready == self._hosts, _READY_WITHIN, agents)
        before = counters.read(self._cluster, self._bed.prefix)
        self._start_ns = time.time_ns() + int(_HEAD_START * 1e9)
        self._tell(f"go {self._start_ns}\n")
        limit = self._job["options"]["limit_s"]
        complete = self._until(lambda: self._done == self._hosts, limit, agents)
        time.sleep(_SETTLE)
        after = counters.read(self._cluster, self._bed.prefix)
        self._tell("stop\n")
        agents.wait(_READY_WITHIN)
        return {
            "complete": complete,
            "failed_at_s": self._failed_at,
            "links": [asdict(link) for link in counters.between(before, after)],
            "hosts": self._reports(),
        }

    def _reports(self) -> list[dict[str, Any]]:
        reports = []
        for number in range(self._hosts):
            path = self._folder / f"{number}.json"
            report = json.loads(path.read_text()) if path.exists() else {"error": "no report"}
            if "fault" in report:
                raise RuntimeError(f"host-{number}: {report['error']}")
            if "error" in report:
                raise ExperimentError(f"testbed: host-{number}: {report['error']}")
            reports.append(report)
        return reports

    def _until(self, reached: Any, limit: float, agents: subprocess.Popen[str]) -> bool:
        """Listen until something is reached, at most for so many seconds; whether it was."""
        end = time.monotonic() + limit
        while not reached():
            left = end - time.monotonic()
            if left <= 0:
                break
            for key, _ in self._selector.select(min(left, 0.2)):
                self._listen(key.fileobj)
            self._inject_failure()
            if agents.poll() is not None:
                # A host ends early only after an error: report the first one.
                self._reports()
                raise ExperimentError("testbed: a host ended early")
        if not reached() and not self._start_ns:
            raise ExperimentError(f"testbed: not all hosts were ready within {limit:g} s")
        return bool(reached())

    def _listen(self, talker: Any) -> None:
        if talker not in self._heard:
            if talker.family == socket.AF_UNIX and talker.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            ):
                new, _ = talker.accept()
                self._heard[new] = b""
                self._selector.register(new, selectors.EVENT_READ)
            return
        text = talker.recv(4096)
        if not text:
            self._selector.unregister(talker)
            return
        *lines, self._heard[talker] = (self._heard[talker] + text).split(b"\n")
        for word, *rest in (line.split() for line in lines):
            if word == b"ready":
                self._ready += 1
                self._expected += int(rest[1])
            elif word == b"come":
                self._come[talker] = int(rest[0])
            elif word == b"done":
                self._done += 1

    def _inject_failure(self) -> None:
        failure = self._failure
        if failure is None or self._failed_at is not None or not self._start_ns:
            return
        if sum(self._come.values()) * 100 >= self._expected * failure.at_percent:
            self._bed.fail(failure)
            self._failed_at = (time.time_ns() - self._start_ns) / 1e9

    def _tell(self, line: str) -> None:
        for talker in self._heard:
            # A host whose own limit is over has ended by itself.
            with suppress(BrokenPipeError):
                talker.sendall(line.encode())


if __name__ == "__main__":
    sys.exit(main())
