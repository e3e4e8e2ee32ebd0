"""All measurements of `weft testbed bench`, in a process of its own that ends when its parent ends.

Started as a module, with the parent's process id. The job comes on standard input; a line of JSON
for each measurement goes to standard output. The bed is for this run only, as in `session`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster, Host
from weft.discover import table
from weft.plans import file as plans
from weft.switches import addresses
from weft.testbed import counters, discovery, rank_processes, system
from weft.testbed.bed import Bed
from weft.testbed.failures import Failure
from weft.testbed.rank_processes import Measurement, Ranks

_LOOK = 0.02
"""Seconds between looks at the ranks, and at the link that is to fail."""


def main() -> int:
    """Do what the job says; returns the exit status."""
    return system.serve(_all)


def _all(job: dict[str, Any]) -> Any:
    cluster = clusters.for_protocol(clusters.from_json(job["cluster"]), "tcp")
    hosts = rank_processes.placed(cluster, job["ranks"])
    system.hide_namespaces()
    bed = Bed(cluster, rules=job["rules"])
    bed.build(job["seeds"][0])
    rank_processes.connect(hosts, "")
    discovery.answer(cluster, "", job["answers"], job["mute"])
    follows = ""
    for seed in job["seeds"]:
        bed.reseed(seed)
        for scheme in job["schemes"]:
            if follows != scheme["follows"]:
                follows = scheme["follows"]
                if follows:
                    bed.enforce(follows, "tcp")
                else:
                    bed.hash_all()
            yield {
                "scheme": scheme["name"],
                "seed": seed,
                **_One(job, cluster, hosts, bed, scheme, seed).run(),
            }


class _One:
    """One measurement."""

    def __init__(
        self,
        job: dict[str, Any],
        cluster: Cluster,
        hosts: list[Host],
        bed: Bed,
        scheme: dict[str, Any],
        seed: int,
    ) -> None:
        self._job, self._cluster, self._hosts, self._bed = job, cluster, hosts, bed
        self._folder = Path(tempfile.mkdtemp(dir="/run"))
        self._discovery: dict[str, Any] | None = None
        self._what = Measurement(
            **job["measurement"],
            plugin=job["plugin"] if scheme["config"] else None,
            environment=self._environment(scheme, seed),
        )
        self._failure = Failure(**job["failure"]) if job["failure"] else None
        self._failed_at: float | None = None
        self._failed_at_percent: float | None = None
        self._healed_at_percent: float | None = None
        self._kill = job["kill"]
        self._start = time.monotonic()

    def _environment(self, scheme: dict[str, Any], seed: int) -> dict[str, str]:
        """Hosts read what a plan says of its cluster, and nothing of its steps."""
        if not scheme["config"]:
            return {}
        config = self._folder / plans.NAME
        # Its seed draws failures: those of the bed.
        seed_of_failures = self._job["cluster_seed"]
        by_path = scheme["follows"] == "addresses"
        # Without those, hosts have one address each, whatever the file has for paths.
        told = (
            addresses.with_network(self._cluster)
            if by_path
            else dataclasses.replace(self._cluster, path_addresses=None)
        )
        cluster = json.dumps(clusters.as_json(told))
        config.write_text(_native.plan_for_hosts(scheme["scheme"], seed_of_failures, cluster))
        paths = {"WEFT_PATHS": str(self._discover())} if scheme["discovers"] else {}
        return {
            "WEFT_CONFIG": str(config),
            **paths,
            "WEFT_SEED": str(seed),
            "WEFT_BACKEND": "tcp",
            "WEFT_CONNECTIONS": str(self._job["measurement"]["connections"]),
            **self._job["environment"],
        }

    def _discover(self) -> Path:
        """Have the hosts of all ranks find out paths to each other; their table."""
        begin = time.monotonic()
        found = discovery.between(self._cluster, self._hosts, self._bed.prefix)
        path = self._folder / "paths.json"
        table.write(found, path)
        self._discovery = {
            "seconds": time.monotonic() - begin,
            "probes": sum(source["probes"] for source in found["sources"]),
            "lost": sum(source["lost"] for source in found["sources"]),
        }
        return path

    def run(self) -> dict[str, Any]:
        before = counters.read(self._cluster, self._bed.prefix)
        self._start = time.monotonic()
        processes = Ranks(self._hosts, self._bed.prefix, self._what, self._folder)
        late = False
        try:
            while not processes.finished():
                if time.monotonic() - self._start > self._job["limit"]:
                    late = True
                    processes.kill()
                self._inject_failures(before, processes)
                time.sleep(_LOOK)
        finally:
            if self._failed_at is not None and self._failure and self._healed_at_percent is None:
                self._bed.repair(self._failure)
        seconds = time.monotonic() - self._start
        after = counters.read(self._cluster, self._bed.prefix)
        found: dict[str, Any] = {
            "wall_s": seconds,
            "failed_at_s": self._failed_at,
            "failed_at_percent": self._failed_at_percent,
            "healed_at_percent": self._healed_at_percent,
            "discovery": self._discovery,
            "links": [dataclasses.asdict(link) for link in counters.between(before, after)],
            "ranks": list(processes.reports()),
        }
        if late:
            found["error"] = f"not done after {self._job['limit']:g} s"
        return found

    def _inject_failures(self, before: list[counters.LinkCounters], processes: Ranks) -> None:
        """By what the uplinks of a leaf have sent of what they will send in all."""
        failure, kill, heal = self._failure, self._kill, self._job["heal"]
        if failure is not None and self._failed_at is None:
            if self._sent(before, failure.leaf) >= failure.at_percent:
                self._bed.fail(failure)
                self._failed_at = time.monotonic() - self._start
                # On a busy machine that took a while, in which the link still worked.
                self._failed_at_percent = self._sent(before, failure.leaf)
        elif failure is not None and self._healed_at_percent is None and heal is not None:
            sent = self._sent(before, failure.leaf)
            if sent >= heal:
                self._healed_at_percent = sent
                self._bed.repair(failure)
        if kill is not None:
            leaf = f"leaf-{self._hosts[kill].leaf}"
            if self._sent(before, leaf) >= self._job["kill_percent"]:
                processes.kill(kill)
                self._kill = None

    def _sent(self, before: list[counters.LinkCounters], leaf: str) -> float:
        """What the uplinks of a leaf have sent, in percent of what they will send in all."""
        now = counters.sent_up(self._cluster, self._bed.prefix, leaf)
        then = sum(one.bytes for one in before if one.up and one.sender == leaf)
        whole = self._job["bytes_up"]
        return 100 * (now - then) / whole if whole else 100.0


if __name__ == "__main__":
    sys.exit(main())
