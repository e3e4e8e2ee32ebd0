"""Real NCCL over Weft's plugin: several ranks on one GPU, every byte of their results checked.

    python tests/gpu/run.py python/weft/libnccl-net-weft.so [CHECK ...] [--nccl FILE]
                            [--config FILE] [--gpu-direct] [--keep DIR]

Needs PyTorch with CUDA and one GPU. Nothing but the network is between the ranks: peer to peer and
shared memory are off. NCCL from 2.30 on takes several ranks on a GPU when it is told to; before
that each rank claims a host of its own. If `nvidia-cuda-mps-control` is there, kernels of all ranks
run at once, by a server of each check's own; else the GPU gives each process a slice of time in
turn, and times say little. `--nccl` loads another libnccl.so.2 than PyTorch's. `--gpu-direct` wants
an RDMA NIC that reads and writes the GPU's memory, whatever is between them. `make gpu-test` runs
it.

Exit code 0: all checks passed, over Weft; 1: not; 2: it could not run here, and why.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RANK = Path(__file__).parent / "rank.py"
COMMAND = Path(__file__).parents[2] / ".venv/bin/weft"
LIMIT_S = 150
"""Of one check."""
WEFT = "Using network Weft"
"""What NCCL logs when it has taken the plugin."""
SOCKETS = "Using network Socket"
GONE = "the process there is gone"
"""What the plugin says of a process that was killed."""
NAMED_S = 10
NOT_MERGED = "has no PCI device"
"""What it says where NCCL wants to merge NICs that it could not place."""
DIRECT = "GDRDMA"
"""What it logs of a channel whose NIC reaches the GPU."""


@dataclass
class Setting:
    """What all checks have in common."""

    plugin: Path
    folder: Path
    backend: str = "nccl"
    gpu_direct: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    """Environment of all ranks."""


class Wrong(Exception):
    """A check found what should not be."""


class Ranks:
    """Processes that do a work together; killed at the end of a `with`."""

    def __init__(
        self,
        setting: Setting,
        work: str,
        count: int,
        variables: Mapping[str, str] | None = None,
        namespaces: Sequence[str] = (),
    ) -> None:
        self.setting = setting
        self.folder = Path(tempfile.mkdtemp(prefix=f"{work}-", dir=setting.folder))
        common = {**os.environ, **setting.variables, **(variables or {})}
        self._logs = [self.folder / f"rank-{rank}.log" for rank in range(count)]
        self.processes = []
        for rank, log in enumerate(self._logs):
            own = {
                **common,
                "NCCL_HOSTID": f"weft-{rank}",
                "GPU_TEST_FOLDER": str(self.folder),
            }
            meeting = str(self.folder / "meeting")
            command = [sys.executable, str(RANK), work, str(rank), str(count), meeting]
            if namespaces:
                command = ["ip", "netns", "exec", namespaces[rank], *command]
            with log.open("wb") as out:
                self.processes.append(
                    subprocess.Popen(
                        [*command, setting.backend], env=own, stdout=out, stderr=subprocess.STDOUT
                    )
                )

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.processes:
            one.kill()
            one.wait()

    def log(self, rank: int) -> str:
        """What a rank has printed."""
        return self._logs[rank].read_text(errors="replace")

    def wait(self, limit_s: float = LIMIT_S) -> list[int]:
        """Exit codes; 124 of those that are not done in time."""
        end = time.monotonic() + limit_s
        codes = []
        for one in self.processes:
            try:
                codes.append(one.wait(max(0.0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                one.kill()
                codes.append(124)
        return codes

    def done(self, rank: int) -> int:
        """How many rounds of `goes_on` it has done."""
        file = self.folder / f"done-{rank}"
        return int(file.read_text() or 0) if file.exists() else 0

    def wait_for(self, rank: int, rounds: int) -> None:
        """Wait until it has done so many."""
        end = time.monotonic() + LIMIT_S
        while self.done(rank) < rounds:
            if time.monotonic() > end or self.processes[rank].poll() is not None:
                raise Wrong(f"rank {rank} did {self.done(rank)} of {rounds} rounds")
            time.sleep(0.02)

    def answers(self, network: str = WEFT) -> list[dict[str, Any]]:
        """What each rank said in the end.

        Raises:
            Wrong: One failed, or had another network.
        """
        codes = self.wait()
        if any(codes):
            raise Wrong(f"exit codes {codes}: {self.last_words()}")
        said = [self._answer(rank) for rank in range(len(codes))]
        if self.setting.backend == "nccl":
            for rank in range(len(codes)):
                if network not in self.log(rank):
                    raise Wrong(f"rank {rank} did not say {network!r}")
                if self.setting.gpu_direct and DIRECT not in self.log(rank):
                    raise Wrong(f"rank {rank} did not say {DIRECT}")
        return said

    def _answer(self, rank: int) -> dict[str, Any]:
        # NCCL has last words of its own.
        lines = [line for line in self.log(rank).splitlines() if line.startswith('{"wrong"')]
        answer: dict[str, Any] = json.loads(lines[-1])
        version = re.search(r"NCCL version (\S+)", self.log(0))
        return answer | {"nccl": version[1] if version else "none"}

    def last_words(self) -> str:
        """The last line of each rank."""
        lines = [
            (self.log(rank).splitlines() or ["nothing"])[-1] for rank in range(len(self._logs))
        ]
        return " | ".join(line[:300] for line in lines)


CHECKS: dict[str, Callable[[Setting], str]] = {}


def check(of: Callable[[Setting], str]) -> Callable[[Setting], str]:
    """Note a check under its name; it returns what it found, in words."""
    CHECKS[of.__name__] = of
    return of


def plain(setting: Setting, work: str, ranks: int) -> str:
    """A work that checks itself."""
    with Ranks(setting, work, ranks) as group:
        said = group.answers()
        return f"NCCL {said[0]['nccl']}, {ranks} ranks, {said[0]['seconds']:.1f} s"


@check
def collectives(setting: Setting) -> str:
    """All collectives, lengths and types, of two ranks."""
    return plain(setting, "collectives", 2)


@check
def collectives_of_four(setting: Setting) -> str:
    """The same of four."""
    return plain(setting, "collectives", 4)


@check
def groups(setting: Setting) -> str:
    """Communicators of some ranks, at once and one after the other."""
    return plain(setting, "groups", 4)


@check
def graphs(setting: Setting) -> str:
    """Collectives in a CUDA graph."""
    return plain(setting, "graphs", 2)


@check
def training(setting: Setting) -> str:
    """DDP and FSDP."""
    return plain(setting, "training", 2)


@check
def killed(setting: Setting) -> str:
    """A rank that is killed is named by the others at once; their communicators can be aborted."""
    # PyTorch is to say what has failed, and to end nothing by itself.
    own = {
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
        "TORCH_NCCL_BLOCKING_WAIT": "1",
        "GPU_TEST_ABORTS": "1",
    }
    with Ranks(setting, "goes_on", 3, own) as ranks:
        for rank in range(3):
            ranks.wait_for(rank, 5)
        begin = time.monotonic()
        ranks.processes[1].kill()
        took = 0.0
        while setting.backend == "nccl" and not all(GONE in ranks.log(rank) for rank in (0, 2)):
            took = time.monotonic() - begin
            if took > NAMED_S:
                raise Wrong(f"not named within {took:.0f} s: {ranks.last_words()}")
            time.sleep(0.02)
        codes = ranks.wait(30)
        if 124 in codes or 0 in codes:
            raise Wrong(f"exit codes {codes} half a minute later: {ranks.last_words()}")
        aborted = re.findall(r"aborted in (\S+) s", ranks.log(0) + ranks.log(2))
        if setting.backend == "nccl" and len(aborted) != 2:
            raise Wrong(f"of two ranks {len(aborted)} were aborted: {ranks.last_words()}")
        return f"named after {took:.1f} s; aborted in {' and '.join(aborted)} s"


@check
def stopped(setting: Setting) -> str:
    """A rank that stands still for two seconds is waited for."""
    with Ranks(setting, "goes_on", 2) as ranks:
        ranks.wait_for(0, 5)
        ranks.processes[1].send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        before = ranks.done(0)
        time.sleep(1.5)
        if ranks.done(0) > before + 1:
            raise Wrong("rank 0 went on without rank 1")
        ranks.processes[1].send_signal(signal.SIGCONT)
        ranks.wait_for(0, before + 5)
        (ranks.folder / "enough").touch()
        rounds = ranks.answers()[0]["said"]
        return f"{before} rounds before, {rounds - before} after"


@check
def host_memory(setting: Setting) -> str:
    """Tensors of the GPU over NCCL and the plugin, those of the host over `weft.torch`."""
    if setting.backend != "nccl":
        return "left out: needs NCCL"
    with Ranks(setting, "host_memory", 2) as ranks:
        said = ranks.answers()
        return f"{said[0]['seconds']:.1f} s"


@check
def profile(setting: Setting) -> str:
    """Weft's messages in a profile belong to NCCL's steps, and these to collectives."""
    if setting.backend != "nccl":
        return "left out: needs NCCL"
    traces = setting.folder / "profile"
    with Ranks(setting, "graphs", 2, {"WEFT_PROFILE": str(traces)}) as ranks:
        ranks.answers()
    files = sorted(traces.glob("weft-*.json"))
    if len(files) != 2:
        raise Wrong(f"{len(files)} files of two ranks")
    events = [one for one in json.loads(files[0].read_text()) if "cat" in one]
    kinds = Counter(one["cat"] for one in events)
    by_number = {one["args"]["Event"]: one for one in events if "Event" in one.get("args", {})}
    tops: Counter[str] = Counter()
    for one in events:
        if one["cat"] != "WEFT":
            continue
        seen = [one["cat"]]
        while (parent := by_number.get(one.get("args", {}).get("Parent"))) is not None:
            one = parent
            seen.append(one["cat"])
        tops[" < ".join(seen)] += 1
    if not any("COLL" in one for one in tops):
        raise Wrong(f"no message is part of a collective: {dict(tops)}; events: {dict(kinds)}")
    return f"{dict(kinds)}; messages: {dict(tops)}"


@check
def two_nics(setting: Setting) -> str:
    """Two NICs without PCI devices: NCCL merges them if it may, and then finds no way to them."""
    if why := no_cables(setting):
        return why
    with two_cables() as names:
        own = {"WEFT_IFNAME": "rail", "NCCL_SOCKET_IFNAME": "=rail0"}
        with Ranks(setting, "goes_on", 2, own, names) as ranks:
            ranks.wait_for(0, 10)
            (ranks.folder / "enough").touch()
            ranks.answers()
            if NOT_MERGED not in ranks.log(0):
                raise Wrong(f"rank 0 did not say {NOT_MERGED!r}")
        return f"bytes by NIC: {sent(names[0])}"


@check
def virtual_nic(setting: Setting) -> str:
    """Two NICs that NCCL makes one carry half each; when one's cable is pulled, the other all."""
    if why := no_cables(setting):
        return why
    topology = setting.folder / "topology.xml"
    topology.write_text(TOPOLOGY)
    with two_cables() as names:
        own = {
            "WEFT_IFNAME": "rail",
            "NCCL_SOCKET_IFNAME": "=rail0",
            "NCCL_NET_FORCE_MERGE": "rail0,rail1",
            "NCCL_TOPO_FILE": str(topology),
            "GPU_TEST_MERGE_ANYWHERE": "1",
            "WEFT_PATH_TIMEOUT": "200ms",
        }
        with Ranks(setting, "goes_on", 2, own, names) as ranks:
            for rank in range(2):
                ranks.wait_for(rank, 20)
            both = sent(names[0])
            ip("-n", names[0], "link", "set", "rail1", "down")
            begin = time.monotonic()
            ranks.wait_for(0, ranks.done(0) + 20)
            took = time.monotonic() - begin
            (ranks.folder / "enough").touch()
            ranks.answers()
        share = both[1] / sum(both)
        if not 0.4 < share < 0.6:
            raise Wrong(f"rail1 has sent {share:.2f} of all")
        return f"rail1 sent {share:.2f} of all; 20 rounds after it was pulled took {took:.1f} s"


@check
def planned(setting: Setting) -> str:
    """NCCL's all-reduce has the algorithm of a plan, and its bytes the ports of that plan."""
    if why := no_cables(setting):
        return why
    if not COMMAND.exists():
        return "left out: needs .venv/bin/weft, which make build makes"
    found = []
    with two_cables() as names:
        for algorithm, nccl in (("ring", "RING"), ("double-binary-tree", "TREE")):
            plan = setting.folder / f"plan-{algorithm}"
            job = f"all-reduce:size=4MiB,algorithm={algorithm}"
            file = setting.folder / "two-hosts.toml"
            file.write_text(TWO_HOSTS)
            command = [str(COMMAND), "plan", str(file), "--workload", job, "-o", str(plan)]
            run_quietly(*command)
            own = {
                "WEFT_CONFIG": str(plan),
                "NCCL_SOCKET_IFNAME": "=rail0",
                "GLOO_SOCKET_IFNAME": "rail0",
            }
            with Ranks(setting, "goes_on", 2, own, names) as ranks:
                ranks.wait_for(0, 10)
                (ranks.folder / "enough").touch()
                ranks.answers()
                log = ranks.log(0)
                if f"{algorithm}, as planned" not in log:
                    raise Wrong(f"{algorithm}: the tuner did not say that it follows the plan")
                used = re.findall(r"AllReduce: \d+ Bytes -> Algo (\w+) proto (\w+)", log)
                if {one for one, _ in used} != {nccl}:
                    raise Wrong(f"{algorithm} is planned, NCCL used {Counter(used)}")
                found.append(f"{algorithm}: {dict(Counter(used))}")
    return "; ".join(found)


def no_cables(setting: Setting) -> str | None:
    """Why there can be no namespaces for NCCL, if there cannot."""
    if setting.backend != "nccl":
        return "left out: needs NCCL"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "left out: needs root and iproute2"
    return None


TOPOLOGY = """<system version="1">
  <cpu numaid="-1">
    <pci busid="0000:fe:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="rail0"/></nic>
    </pci>
    <pci busid="0000:ff:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="rail1"/></nic>
    </pci>
  </cpu>
</system>
"""
"""PCI devices for the NICs of a namespace, in the words of NCCL_TOPO_FILE."""
IN_TURN = {"killed", "stopped"}
"""A client of the server for kernels that is killed or stands still takes all others along."""

TWO_HOSTS = """
[fabric]
topology = "leaf-spine"
leaves = 1
spines = 1
hosts_per_leaf = 2
link = "1Gbps"
[cluster]
protocol = "tcp"
host_address = "10.{leaf}.0.{place+2}"
"""


@contextmanager
def two_cables() -> Iterator[list[str]]:
    """Two namespaces with two cables of 1 Gb/s between them; their names."""
    names = [f"gpu-test-{os.getpid()}-{side}" for side in range(2)]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for rail in range(2):
            device = f"rail{rail}"
            ip(
                "-n",
                names[0],
                "link",
                "add",
                device,
                "type",
                "veth",
                "peer",
                "name",
                device,
                "netns",
                names[1],
            )
            for side, name in enumerate(names):
                ip("-n", name, "address", "add", f"10.{rail}.0.{side + 2}/24", "dev", device)
                ip("-n", name, "link", "set", device, "up")
                shaped = ["root", "tbf", "rate", "1gbit", "burst", "64kb", "latency", "20ms"]
                run_quietly("tc", "-n", name, "qdisc", "add", "dev", device, *shaped)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def sent(namespace: str) -> list[int]:
    """Bytes that each rail has sent."""
    links = json.loads(run_quietly("ip", "-n", namespace, "-s", "-j", "link"))
    by_name = {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links}
    return [by_name["rail0"], by_name["rail1"]]


def ip(*words: str) -> None:
    """Have `ip` do something."""
    run_quietly("ip", *words)


def run_quietly(*command: str) -> str:
    """What a command prints; what it says against it is the check's failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@check
def speed(setting: Setting) -> str:
    """Beside NCCL's own sockets, in turn; no time is a failure."""
    ways = {"Weft": {}, "sockets": {"NCCL_NET_PLUGIN": "none", "NCCL_NET": "Socket"}}
    found: dict[str, list[list[dict[str, Any]]]] = {way: [] for way in ways}
    for _ in range(int(os.environ.get("GPU_TEST_ROUNDS", "2"))):
        for way, variables in ways.items():
            with Ranks(setting, "speed", 2, variables) as ranks:
                said = ranks.answers(SOCKETS if way == "sockets" else WEFT)
                for row, other in zip(said[0]["said"], said[1]["said"], strict=True):
                    row["processor_s"] += other["processor_s"]
                found[way].append(said[0]["said"])
    print(f"{'operation':<18} {'size':>8} {'Weft':>12} {'sockets':>12} {'ratio':>6} {'CPU':>6}")
    ratios = []
    for place, row in enumerate(found["Weft"][0]):

        def best(way: str, key: str, place: int = place) -> float:
            return min(float(each[place][key]) for each in found[way])

        ours, theirs = best("Weft", "median_s"), best("sockets", "median_s")
        ratios.append(ours / theirs)
        cpu = best("Weft", "processor_s") / best("sockets", "processor_s")
        print(
            f"{row['operation']:<18} {row['size']:>8} {ours * 1e6:>9,.0f} us "
            f"{theirs * 1e6:>9,.0f} us {ratios[-1]:>6.2f} {cpu:>6.2f}"
        )
    (setting.folder / "speed.json").write_text(json.dumps(found))
    return f"Weft's time is {statistics.geometric_mean(ratios):.2f} of sockets' (geometric mean)"


@contextmanager
def kernels_at_once(wanted: bool) -> Iterator[dict[str, str]]:
    """A server by which kernels of several processes run at once, where there is one."""
    tool = shutil.which("nvidia-cuda-mps-control")
    if tool is None or not wanted:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **own}
        started = subprocess.run([tool, "-d"], env=environment, check=False)
        try:
            yield own if started.returncode == 0 else {}
        finally:
            subprocess.run([tool], input=b"quit\n", env=environment, check=False, timeout=30)


def variables(given: argparse.Namespace, folder: Path) -> dict[str, str]:
    """What NCCL and Weft are told."""
    found = {
        "NCCL_NET_PLUGIN": str(given.plugin.resolve()),
        # Without it NCCL falls back to its own sockets when the plugin fails, and says nothing.
        "NCCL_NET": "Weft",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SHM_DISABLE": "1",
        "NCCL_MULTI_RANK_GPU_ENABLE": "1",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,TUNING",
        "NCCL_SOCKET_IFNAME": "lo",
        "WEFT_STATS": str(folder / "stats-%p.json"),
    }
    if given.gpu_direct:
        found |= {"WEFT_BACKEND": "roce", "NCCL_NET_GDR_LEVEL": "SYS", "NCCL_DMABUF_ENABLE": "1"}
    if given.config:
        found["WEFT_CONFIG"] = str(given.config.resolve())
    elif not given.gpu_direct:
        found["WEFT_IFNAME"] = os.environ.get("WEFT_IFNAME", "lo")
    if given.nccl:
        found["LD_PRELOAD"] = str(given.nccl.resolve())
    return found


def no_gpu() -> str | None:
    """Why there is no GPU to use, if there is none."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed; it brings NCCL"
    if not torch.cuda.is_available():
        return "no GPU that PyTorch can use"
    if not torch.distributed.is_nccl_available():
        return "this PyTorch has no NCCL"
    return None


def main() -> int:
    """Run checks; returns the exit status."""
    order = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    order.add_argument("plugin", type=Path, help="libnccl-net-weft.so")
    order.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    order.add_argument("--nccl", type=Path, help="a libnccl.so.2")
    order.add_argument("--gpu-direct", action="store_true", help="over RoCE, from GPU memory")
    order.add_argument("--config", type=Path, help="WEFT_CONFIG: a cluster or plan file")
    order.add_argument("--keep", type=Path, help="leave logs and traces in this directory")
    order.add_argument(
        "--rehearse", action="store_true", help="Gloo on the processor: try this file"
    )
    given = order.parse_args()
    for path in (given.plugin, given.nccl, given.config):
        if path and not path.exists():
            return cannot(f"{path} is not there; make plugin builds the plugin")
    for name in given.checks:
        if name not in CHECKS:
            return cannot(f"no check {name!r}; there are {', '.join(CHECKS)}")
    if not given.rehearse and (why := no_gpu()):
        return cannot(why)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        setting = Setting(
            given.plugin, folder, "gloo" if given.rehearse else "nccl", given.gpu_direct
        )
        setting.variables = variables(given, folder)
        return run(setting, given.checks or list(CHECKS))


def run(setting: Setting, names: list[str]) -> int:
    """Each check and what it found, in a line."""
    failed = 0
    for name in names:
        begin = time.monotonic()
        with kernels_at_once(name not in IN_TURN) as server:
            own = dataclasses.replace(setting, variables=setting.variables | server)
            how = "kernels at once" if server else "kernels in turn"
            try:
                verdict, found = "passed", CHECKS[name](own)
            except (Wrong, OSError, ValueError, LookupError) as error:
                verdict, found = "FAILED", f"{type(error).__name__}: {error}"
                failed += 1
        took = time.monotonic() - begin
        print(f"{name:<20} {verdict} in {took:.0f} s ({how}): {found}", flush=True)
    return 1 if failed else 0


def cannot(why: str) -> int:
    """Say why it cannot run here."""
    print(f"gpu-test: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
