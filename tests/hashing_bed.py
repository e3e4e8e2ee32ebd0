"""A test bed whose leaves only hash, for a test: questions to it as JSON on the command line.

Started as a process of its own, whose name spaces nobody else sees and which end with it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft.discover import named
from weft.discover.table import Table
from weft.testbed import discovery, failures, system
from weft.testbed.bed import Bed

DATAGRAMS = 5
"""Sent from each port that is held against the counters."""


class Asked:
    """A bed, and what a test wants of it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.cluster = clusters.for_protocol(clusters.read(Path(job["cluster"])), job["protocol"])
        system.hide_namespaces()
        self.bed = Bed(self.cluster)
        self.bed.build(job["seed"])
        switches = [switch.node for switch in self.cluster.switches]
        system.set_sysctls(switches, job.get("sysctls", {}))
        for node, rules in job.get("nft", {}).items():
            system.nft([rules], node)

    def discover(self, known: Table | None = None) -> Table:
        """What all hosts find, going on from a table."""
        rules = self.job.get("rules", {})
        return discovery.between(self.cluster, self.cluster.hosts, "", rules, known)

    def misled(self, found: Table) -> list[str]:
        """Ports whose packets do not take the uplink that the table names."""
        wrong = []
        for path in named.of(self.cluster, found).paths:
            for port in path.ports:
                used = self._uplink_of(path.src, path.dst, port)
                if used != [path.uplink]:
                    wrong.append(f"{path.src} to {path.dst} from {port}: {used}, not {path.uplink}")
        return wrong

    def _uplink_of(self, src: int, dst: int, port: int) -> list[int]:
        """The uplinks over which all packets from a port leave its leaf; others may send, too."""
        leaf = f"leaf-{self.cluster.hosts[src].leaf}"
        before = self._sent(leaf)
        with system.home():
            system.enter(f"host-{src}")
            sent = self._send(src, dst, port)
        after = self._sent(leaf)
        more = [new - old for old, new in zip(before, after, strict=True)]
        return [place for place, packets in enumerate(more) if packets >= sent]

    def _sent(self, leaf: str) -> list[int]:
        """Packets that have left by each uplink."""
        with system.home():
            system.enter(leaf)
            lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
        counters = {name.strip(): rest.split() for name, rest in (one.split(":") for one in lines)}
        return [int(counters[link.lower_port][9]) for link in self.cluster.uplinks[leaf]]

    def _send(self, src: int, dst: int, port: int) -> int:
        """Sends from a port; how many packets."""
        hosts = self.cluster.hosts
        to = (hosts[dst].address, self.cluster.port)
        kind = socket.SOCK_DGRAM if self.cluster.protocol == "udp" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, kind) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((hosts[src].address, port))
            if kind == socket.SOCK_STREAM:
                # Refused, after a packet each way.
                one.connect_ex(to)
                return 1
            for _ in range(DATAGRAMS):
                one.sendto(b"x", to)
        return DATAGRAMS

    def over(self) -> dict[str, Any]:
        """What `weft discover --over` says on the first host; some have an SSH server."""
        servers = []
        # Where namespaces are hidden, so is what the system keeps for a server.
        Path("/run/sshd").mkdir(exist_ok=True)
        for number in self.job["servers"]:
            with system.home():
                system.enter(f"host-{number}")
                # What a host sends to itself goes over it.
                subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
                servers.append(subprocess.Popen(self.job["server"]))
                wait_for(self.job["server_port"])
        try:
            with system.home():
                system.enter("host-0")
                done = subprocess.run(
                    [sys.executable, "-m", "weft", *self.job["words"]],
                    capture_output=True,
                    text=True,
                    check=False,
                )
        finally:
            for server in servers:
                server.terminate()
                server.wait()
        found = json.loads(done.stdout) if done.stdout else None
        return {"table": found, "status": done.returncode, "said": done.stderr}


def wait_for(port: int) -> None:
    """Until somebody listens here."""
    for _ in range(200):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens at port {port}")


def main() -> None:
    """Answer with the tables that were found, in order, and what does not hold of them."""
    asked = Asked(json.loads(sys.argv[1]))
    found, tables, misled, over = None, [], [], None
    for step in asked.job["steps"]:
        if step == "discover":
            found = asked.discover(found)
            tables.append(found)
            misled += asked.misled(found)
        elif step == "over":
            over = asked.over()
            misled += asked.misled(over["table"]) if over["table"] else []
        else:
            verb, link = step.split()
            failure = failures.read(link, "admin", asked.cluster)
            asked.bed.fail(failure) if verb == "fail" else asked.bed.repair(failure)
    uplinks = [
        sorted({path.uplink for path in named.of(asked.cluster, one).paths}) for one in tables
    ]
    print(json.dumps({"tables": tables, "misled": misled, "uplinks": uplinks, "over": over}))


if __name__ == "__main__":
    main()
