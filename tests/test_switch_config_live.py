"""Switch configurations for Linux, loaded into a namespace of its own and sent packets through.

A leaf with two hosts and four spines stands between a namespace of hosts and one of spines.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from weft import cluster
from weft.switches import config as switchconfig
from weft.switches import segments

FABRIC = {"topology": "leaf-spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 2}
HOSTS, SPINES = 2, 4
PAYLOAD, FRAME = 1000, 1042
"""Bytes of a packet without and with headers; address resolution takes far fewer."""
PACKETS = 10

SENDER = """
import socket, sys
ports, dscp, size, count = map(int, sys.argv[1].split(",")), *map(int, sys.argv[2:5])
for port in ports:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        out.bind(("10.0.0.2", port))
        for _ in range(count):
            out.sendto(bytes(size), (sys.argv[5], int(sys.argv[6])))
"""


def why_not() -> str | None:
    """Why namespaces cannot be had here."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("ip") is None:
        return "needs iproute2"
    name = f"weft-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "needs network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


class Leaf:
    """The leaf between its hosts and spines."""

    members = SPINES
    """Links on which packets arrive."""

    def __init__(self) -> None:
        self.leaf, self.hosts, self.spines = (
            f"weft-{os.getpid()}-{kind}" for kind in ("leaf", "hosts", "spines")
        )

    def up(self) -> None:
        """Make it, with routes over all uplinks."""
        for name in (self.leaf, self.hosts, self.spines):
            self.run("ip", "netns", "add", name)
            self.exec(name, "sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1")
        for port in range(HOSTS):
            self._wire(f"eth{port + 1}", self.hosts, f"h{port}")
        self.ip(self.leaf, "addr add 10.0.0.1/16 dev eth1")
        self.ip(self.hosts, "addr add 10.0.0.2/16 dev h0")
        self.ip(self.hosts, "route add default via 10.0.0.1")
        for spine in range(SPINES):
            self._wire(f"eth{HOSTS + spine + 1}", self.spines, f"s{spine}")
            self.ip(self.leaf, f"addr add 100.64.0.{2 * spine}/31 dev eth{HOSTS + spine + 1}")
            self.ip(self.spines, f"addr add 100.64.0.{2 * spine + 1}/31 dev s{spine}")
        for name in ("ip_forward=1", "fib_multipath_hash_policy=1", "fib_multipath_hash_seed=1"):
            self.exec(self.leaf, "sysctl", "-q", "-w", f"net.ipv4.{name}")
        hops = " ".join(f"nexthop via 100.64.0.{2 * spine + 1}" for spine in range(SPINES))
        self.ip(self.leaf, f"route add 10.1.0.0/16 {hops}")

    def down(self) -> None:
        """Take it away."""
        for name in (self.leaf, self.hosts, self.spines):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _wire(self, port: str, namespace: str, peer: str) -> None:
        self.ip(self.leaf, f"link add {port} type veth peer name {peer} netns {namespace}")
        self.ip(self.leaf, f"link set {port} up")
        self.ip(namespace, f"link set {peer} up")

    def run(self, *words: str) -> str:
        """What a command prints; it has to succeed."""
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout

    def ip(self, namespace: str, words: str) -> str:
        """Of ip in a namespace."""
        return self.run("ip", "-n", namespace, *words.split())

    def exec(self, namespace: str, *words: str) -> str:
        """Of a command in a namespace."""
        return self.run("ip", "netns", "exec", namespace, *words)

    def sh(self, path: Path, *words: str) -> str:
        """Of a script at the leaf."""
        return self.exec(self.leaf, "sh", str(path), *words)

    def received(self) -> list[int]:
        """Bytes that each spine has received."""
        shown = json.loads(self.run("ip", "-j", "-s", "-n", self.spines, "link"))
        by_name: dict[str, Any] = {one["ifname"]: one["stats64"]["rx"]["bytes"] for one in shown}
        return [by_name[f"s{member}"] for member in range(self.members)]

    def send(self, ports: Sequence[int], dscp: int = 26, port: int = 4791) -> list[int]:
        """How many of ten packets from each source port each spine receives."""
        before = self.received()
        listed = ",".join(map(str, ports))
        words = (listed, str(dscp), str(PAYLOAD), str(PACKETS), "10.1.0.2", str(port))
        self.exec(self.hosts, "python3", "-c", SENDER, *words)
        return [(after - old) // FRAME for after, old in zip(self.received(), before, strict=True)]

    def routed(self, to: str, source: str, iif: str, sport: int) -> str:
        """The port that a packet leaves by."""
        words = f"route get {to} from {source} iif {iif} ipproto udp sport {sport} dport 4791"
        return str(self.ip(self.leaf, words)).partition(" dev ")[2].split()[0]


class Spine(Leaf):
    """A spine with two links to each of two leaves, of which the second receives."""

    members = 2

    def up(self) -> None:
        """Make it, with routes over both members."""
        for name in (self.leaf, self.hosts, self.spines):
            self.run("ip", "netns", "add", name)
            self.exec(name, "sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1")
        for member in range(2):
            for leaf, (space, peer) in enumerate(((self.hosts, "h"), (self.spines, "s"))):
                port, link = f"eth{1 + 2 * leaf + member}", 2 * leaf + member
                self._wire(port, space, f"{peer}{member}")
                self.ip(self.leaf, f"addr add 100.64.0.{2 * link + 1}/31 dev {port}")
                self.ip(space, f"addr add 100.64.0.{2 * link}/31 dev {peer}{member}")
        self.ip(self.hosts, "addr add 10.0.0.2/32 dev h0")
        self.ip(self.hosts, "route add default via 100.64.0.1")
        for name in ("ip_forward=1", "fib_multipath_hash_policy=1", "fib_multipath_hash_seed=1"):
            self.exec(self.leaf, "sysctl", "-q", "-w", f"net.ipv4.{name}")
        for rack in range(2):
            hops = " ".join(f"nexthop via 100.64.0.{4 * rack + 2 * link}" for link in range(2))
            self.ip(self.leaf, f"route add 10.{rack}.0.0/16 {hops}")


def standing(made: Leaf) -> Iterator[Leaf]:
    """It without steering, for as long as a test takes."""
    reason = why_not()
    if reason:
        pytest.skip(f"switch configurations are not loaded: {reason}")
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def leaf() -> Iterator[Leaf]:
    """A leaf without steering."""
    yield from standing(Leaf())


@pytest.fixture
def spine() -> Iterator[Leaf]:
    """A spine without steering."""
    yield from standing(Spine())


def written(
    platform: str, directory: Path, fabric: dict[str, Any] = FABRIC, switch: str = "leaf-0"
) -> Path:
    """Where the files of a switch are."""
    found = cluster.from_dict({"fabric": fabric})
    files, _ = switchconfig.files(found, segments.of(found, "dnlb"), platform, switch)
    switchconfig.write(files, directory)
    return directory


MIDDLES = [49152, 53247, 53248, 57343, 57344, 61439, 61440, 65534]
"""First and last port of each segment; the very last is hashed under `ip rule`."""


@pytest.mark.parametrize("platform", ["linux", "nftables"])
def test_source_ports_choose_uplinks(leaf: Leaf, tmp_path: Path, platform: str) -> None:
    """As loaded, loaded again, with a dead uplink, with it back, and taken back."""
    if platform == "nftables" and shutil.which("nft") is None:
        pytest.skip("switch configurations are not loaded: needs nftables")
    files = written(platform, tmp_path)
    # What the kernel has for VRFs, and a table as the first of them gets.
    leaf.ip(leaf.leaf, "rule add pref 1000 from all lookup 1001")
    leaf.ip(leaf.leaf, "route add blackhole 198.51.100.0/24 table 1001")
    rules = leaf.ip(leaf.leaf, "rule")
    for _ in range(2):
        leaf.sh(files / "leaf-0.sh")
        assert leaf.send(MIDDLES) == [2 * PACKETS] * SPINES
    loaded = leaf.ip(leaf.leaf, "rule")
    # Neither another port, nor what arrives from a spine, nor what stays in the rack is steered.
    others = [49152 + step for step in range(0, 1600, 100)]
    assert sum(1 for count in leaf.send(others, port=4792) if count) > 1
    assert leaf.routed("10.0.0.3", "10.1.0.2", "eth3", 60_000) == "eth1"
    assert leaf.routed("10.0.0.3", "10.0.0.2", "eth2", 60_000) == "eth1"
    if platform == "nftables":
        assert sum(1 for count in leaf.send(others, dscp=0) if count) > 1
        assert leaf.send([65535]) == [0, 0, 0, PACKETS]
    leaf.ip(leaf.leaf, "link set eth4 down")
    survived = leaf.send([53248, 53249, 53250, 53251])
    assert (survived[1], sum(survived)) == (0, 4 * PACKETS)
    leaf.ip(leaf.leaf, "link set eth4 up")
    leaf.sh(files / "leaf-0.sh", "routes")
    assert leaf.send([53248, 53251]) == [0, 2 * PACKETS, 0, 0]
    assert leaf.ip(leaf.leaf, "rule") == loaded
    leaf.sh(files / "leaf-0.rollback")
    assert leaf.ip(leaf.leaf, "rule") == rules
    left = leaf.ip(leaf.leaf, "route show table all")
    assert "table 70" not in left
    assert "blackhole 198.51.100.0/24 table 1001" in left
    assert sum(1 for count in leaf.send(others) if count) > 1


@pytest.mark.parametrize("platform", ["linux", "nftables"])
def test_bundles_go_down_over_the_member_of_the_source_port(
    spine: Leaf, tmp_path: Path, platform: str
) -> None:
    """Until a member dies: then the other has all."""
    if platform == "nftables" and shutil.which("nft") is None:
        pytest.skip("switch configurations are not loaded: needs nftables")
    fabric = {**FABRIC, "spines": 1, "hosts_per_leaf": 1, "links_per_pair": 2}
    files = written(platform, tmp_path, fabric, "spine-0")
    rules = spine.ip(spine.leaf, "rule")
    first, second = list(range(49152, 57344, 1024)), list(range(57344, 65535, 1024))
    spine.sh(files / "spine-0.sh")
    assert spine.send(first) == [8 * PACKETS, 0]
    assert spine.send(second) == [0, 8 * PACKETS]
    assert min(spine.send(first, port=4792)) > 0
    spine.ip(spine.leaf, "link set eth3 down")
    assert spine.send(first) == [0, 8 * PACKETS]
    spine.ip(spine.leaf, "link set eth3 up")
    spine.sh(files / "spine-0.sh", "routes")
    assert spine.send(first) == [8 * PACKETS, 0]
    spine.sh(files / "spine-0.rollback")
    assert spine.ip(spine.leaf, "rule") == rules
    assert min(spine.send(first)) > 0


class Frr:
    """FRR's zebra and pbrd in the leaf's namespace, with files of their own."""

    DAEMONS = Path("/usr/lib/frr")

    def __init__(self, leaf: Leaf) -> None:
        self.leaf, self.name = leaf, leaf.leaf
        self.state, self.settings = Path("/var/run/frr") / self.name, Path("/etc/frr") / self.name

    def up(self) -> None:
        """Start them."""
        for directory in (self.state, self.settings):
            directory.mkdir(parents=True)
            shutil.chown(directory, "frr", "frr")
        (self.settings / "vtysh.conf").touch()
        for daemon in ("zebra", "pbrd"):
            path = str(self.DAEMONS / daemon)
            self.leaf.exec(self.name, path, "-d", "-N", self.name, "-f", "/dev/null")
            self.wait(lambda daemon=daemon: (self.state / f"{daemon}.vty").exists())

    def down(self) -> None:
        """End them, by the numbers that they wrote down."""
        numbers = [int(path.read_text()) for path in self.state.glob("*.pid")]
        for number in numbers:
            os.kill(number, signal.SIGTERM)
        self.wait(lambda: not any(self._runs(number) for number in numbers))
        for directory in (self.state, self.settings):
            shutil.rmtree(directory)

    @staticmethod
    def _runs(number: int) -> bool:
        """Whether a process is there and is more than its remains."""
        try:
            return ") Z " not in Path(f"/proc/{number}/stat").read_text()
        except OSError:
            return False

    def vtysh(self, *words: str) -> str:
        """What it prints."""
        return self.leaf.exec(self.name, "vtysh", "-N", self.name, *words)

    def installed(self) -> int:
        """Sequences of the map that are in the kernel."""
        return self.vtysh("-c", "show pbr map").count("Installed: yes Reason")

    @staticmethod
    def wait(done: Callable[[], bool]) -> None:
        """Until it is so, ten seconds at most."""
        end = time.monotonic() + 10
        while not done():
            assert time.monotonic() < end, "FRR does not get there"
            time.sleep(0.1)


def test_frr_takes_rules_out_while_an_uplink_is_dead(leaf: Leaf, tmp_path: Path) -> None:
    """And puts them back, without anybody's help."""
    if not (Frr.DAEMONS / "pbrd").exists() or shutil.which("nft") is None:
        pytest.skip("FRR's configuration is not loaded: needs frr and nftables")
    files = written("frr", tmp_path)
    rules = leaf.ip(leaf.leaf, "rule")
    frr = Frr(leaf)
    try:
        frr.up()
        leaf.exec(leaf.leaf, "nft", "-f", str(files / "leaf-0.nft"))
        frr.vtysh("-f", str(files / "leaf-0.conf"))
        frr.wait(lambda: frr.installed() == SPINES)
        assert leaf.send(MIDDLES) == [2 * PACKETS] * SPINES
        leaf.ip(leaf.leaf, "link set eth4 down")
        frr.wait(lambda: frr.installed() == SPINES - 1)
        survived = leaf.send([53248, 53249, 53250, 53251])
        assert (survived[1], sum(survived)) == (0, 4 * PACKETS)
        leaf.ip(leaf.leaf, "link set eth4 up")
        frr.wait(lambda: frr.installed() == SPINES)
        assert leaf.send([53248, 53251]) == [0, 2 * PACKETS, 0, 0]
        back = (files / "leaf-0.rollback").read_text().replace("vtysh", f"vtysh -N {frr.name}")
        (files / "leaf-0.rollback").write_text(back)
        leaf.sh(files / "leaf-0.rollback")
        frr.wait(lambda: leaf.ip(leaf.leaf, "rule") == rules)
        assert leaf.exec(leaf.leaf, "nft", "list", "ruleset") == ""
    finally:
        frr.down()


def test_tools_take_every_shape(leaf: Leaf, tmp_path: Path) -> None:
    """Large and bundled fabrics, aggregation switches, segments of one port: each file whole."""
    if shutil.which("nft") is None:
        pytest.skip("switch configurations are not loaded: needs nftables")
    for fabric in (
        {"topology": "leaf-spine", "leaves": 3, "spines": 64, "hosts_per_leaf": 64},
        {**{"topology": "clos", "tiers": 3, "pods": 2, "leaves": 2, "aggs": 3, "cores": 6}}
        | {"hosts_per_leaf": 3, "links_per_pair": 2, "core_links_per_pair": 2},
    ):
        for first in (49_152, 65_472):
            found = cluster.from_dict({"fabric": fabric, "cluster": {"first_port": first}})
            cut = segments.of(found, "ethereal")
            for platform in ("nftables", "frr", "linux"):
                files, _ = switchconfig.files(found, cut, platform)
                switchconfig.write(files, tmp_path / f"{platform}-{first}-{len(fabric)}")
    for path in tmp_path.glob("*/*.nft"):
        leaf.exec(leaf.leaf, "nft", "-c", "-f", str(path))
    for path in (*tmp_path.glob("*/*.sh"), *tmp_path.glob("*/*.rollback")):
        leaf.exec(leaf.leaf, "sh", "-n", str(path))
    rules = leaf.ip(leaf.leaf, "rule")
    for path in tmp_path.glob("linux-*/leaf-1.sh"):
        leaf.sh(path)
        # Ranges of single ports are whole too; the one of 65535 is left out.
        assert leaf.ip(leaf.leaf, "rule").count("lookup 70") in (63, 64, 6)
        leaf.sh(path.with_suffix(".rollback"))
        assert leaf.ip(leaf.leaf, "rule") == rules
