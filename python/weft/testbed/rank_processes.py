"""The ranks of a benchmark: one process each, in the namespace of a host of the test bed.

Hosts have a control network beside the fabric, as in clusters: ranks find each other over it, so
that this traffic is not counted and a failed link does not separate them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import _native, internal_errors
from weft.cluster import Cluster, Host
from weft.errors import ExperimentError
from weft.testbed import system

OWN = ("WEFT_STATS", "WEFT_LOG")
"""Variables of the plugin that each rank sets itself."""
_OF_HOST = (
    *("WEFT_CONFIG", "WEFT_PATHS", "WEFT_SCHEME", "WEFT_OPTIONS"),
    *("WEFT_HOST", "WEFT_IFNAME", "WEFT_BACKEND", "WEFT_RDMA_DEVICE"),
)
"""Those whose values are right or wrong by a host's interfaces and the cluster."""

_CONTROL = "control"
"""The namespace between the control ports of all hosts."""
_PORT = 29500
"""Where the first rank waits for the others."""
_AHEAD = 5
"""Behind the session, as the hosts of other runs are."""


def placed(cluster: Cluster, ranks: int) -> list[Host]:
    """A host for each rank: neighbours share a leaf, and every leaf has as many, as far as it goes.

    Raises:
        ExperimentError: There are too few hosts.
    """
    leaves = sum(switch.tier == 0 for switch in cluster.switches)
    each = -(-ranks // leaves)
    hosts = [host for host in cluster.hosts if host.place < each]
    if ranks > len(cluster.hosts) or len(hosts) < ranks:
        raise ExperimentError(
            f"testbed: --ranks {ranks}: {leaves} leaves have {len(cluster.hosts)} hosts, and each "
            "rank has one of its own; use fewer, or raise fabric.hosts_per_leaf"
        )
    return hosts[:ranks]


def _address(rank: int) -> str:
    """A rank's address in the control network (a range for benchmarks, RFC 2544)."""
    return f"198.18.{rank // 250}.{rank % 250 + 1}"


def connect(hosts: Sequence[Host], prefix: str) -> None:
    """Build the control network of the ranks' hosts."""
    wires = [f"netns add {prefix}{_CONTROL}"]
    inside = ["link set lo up"]
    for rank, host in enumerate(hosts):
        ends = f"name ctl netns {prefix}{host.node} type veth peer name r{rank}"
        wires.append(f"link add {ends} netns {prefix}{_CONTROL}")
        inside += [f"link set r{rank} up", f"route add {_address(rank)}/32 dev r{rank}"]
    system.batch("ip", wires)
    control: dict[str, object] = {"net/ipv4/ip_forward": 1, "net/ipv4/conf/all/proxy_arp": 1}
    control |= {f"net/ipv4/conf/r{rank}/proxy_arp": 1 for rank in range(len(hosts))}
    system.set_sysctls([prefix + _CONTROL], control)
    system.batch("ip", inside, prefix + _CONTROL)
    for rank, host in enumerate(hosts):
        own = ["link set ctl up", f"addr add {_address(rank)}/15 dev ctl"]
        system.batch("ip", own, prefix + host.node)


@dataclass(frozen=True)
class Measurement:
    """What ranks measure: the arguments of `_native.bench_net` that are equal for all ranks."""

    operation: str
    size: int
    iterations: int
    warm_up: int
    checks: int
    channels: int
    chunk: int
    connections: int
    plugin: str | None
    """None: plain sockets."""
    environment: dict[str, str]


class Ranks:
    """The processes of one measurement."""

    def __init__(self, hosts: Sequence[Host], prefix: str, what: Measurement, folder: Path) -> None:
        self._folder = folder
        parent = os.getpid()
        self.processes: dict[int, int] = {}
        for rank, host in enumerate(hosts):
            child = os.fork()
            if child == 0:
                # Whatever happens in there, this program's own way out is not its.
                try:
                    _rank(rank, hosts, prefix + host.node, what, folder, parent)
                finally:
                    os._exit(1)
            self.processes[child] = rank

    def finished(self) -> bool:
        """Whether all have ended."""
        for process in list(self.processes):
            if os.waitpid(process, os.WNOHANG)[0]:
                del self.processes[process]
        return not self.processes

    def kill(self, rank: int | None = None) -> None:
        """End one, or all that are left."""
        for process, number in self.processes.items():
            if rank in (None, number):
                os.kill(process, 9)

    def reports(self) -> Iterator[dict[str, Any]]:
        """What each has left: `rows` or `error`, and `statistics` of its NICs."""
        for path in sorted(self._folder.glob("*.rank.json")):
            yield json.loads(path.read_text())


def check_variables(given: dict[str, str]) -> None:
    """Refuse values that no rank could have, whatever its host is.

    Raises:
        ExperimentError: Variable and mend.
    """
    before = dict(os.environ)
    alone = {name: value for name, value in given.items() if name not in _OF_HOST}
    try:
        _set_variables({**alone, "WEFT_IFNAME": "=lo"})
        _native.check_environment()
    finally:
        _set_variables({name: text for name, text in before.items() if name.startswith("WEFT_")})


def _set_variables(values: dict[str, str]) -> None:
    """Give this process these variables of Weft, and no others."""
    for name in [name for name in os.environ if name.startswith("WEFT_")]:
        del os.environ[name]
    os.environ.update(values)


def _with_reason(error: str, said: str) -> str:
    """An error with what the plugin has said of it, of which its own result is only a number."""
    reason = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("NET/")]
    return error.replace("NCCL's log says why", reason[-1]) if reason else error


def _rank(
    rank: int, hosts: Sequence[Host], namespace: str, what: Measurement, folder: Path, parent: int
) -> None:
    system.die_with(parent)
    os.nice(_AHEAD)
    system.enter(namespace)
    statistics = folder / f"{rank}.statistics.json"
    _set_variables({**what.environment, "WEFT_STATS": str(statistics), "WEFT_LOG": "error"})
    report: dict[str, Any] = {"rank": rank, "rows": []}
    said = folder / f"{rank}.said"
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    try:
        _native.bench_net(
            rank=rank,
            ranks=len(hosts),
            meet=f"{_address(0)}:{_PORT}",
            patience_s=30.0,
            operation=what.operation,
            sizes=[what.size],
            iterations=what.iterations,
            warm_up=what.warm_up,
            checks=what.checks,
            channels=what.channels,
            chunk=what.chunk,
            plugin=(Path(what.plugin), "v12", [0], None) if what.plugin else None,
            connections=what.connections,
            address=hosts[rank].address,
            verbose=False,
            begin=lambda _: None,
            row=report["rows"].append,
        )
    except (RuntimeError, ExperimentError) as error:
        report["error"] = _with_reason(str(error), said.read_text(errors="replace"))
    except BaseException as error:  # noqa: BLE001 - the parent reports it.
        report["error"] = f"unexpected {internal_errors.describe(error)}"
    if statistics.exists():
        report["statistics"] = json.loads(statistics.read_text())
    draft = folder / f"{rank}.draft"
    draft.write_text(json.dumps(report))
    draft.rename(folder / f"{rank}.rank.json")
    os._exit(1 if "error" in report else 0)
