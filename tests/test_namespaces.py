"""Tests in Rust that need a network of their own: this makes it, in a namespace, and runs them.

Root, iproute2, nft and cargo are needed; what lacks skips its tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.testbed import system

ROOT = Path(__file__).parent.parent
MISSING = system.missing("nftables") or (
    None if shutil.which("cargo") else "cargo builds the tests, and is not there"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

SERVERS = """
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 2
link = "10Gbps"
[fabric.server]
nics = 2
gpus = 2
[cluster]
protocol = "tcp"
"""
# Both ends of a wire are here, so nothing goes over it; but an interface needs an end to be up.
INTERFACES = [
    "ip link set lo up",
    "ip link add nic0 type veth peer name nic1",
    "ip link add nic2 type veth peer name nic3",
    "ip addr add 10.0.0.2/24 dev nic0",
    "ip addr add 10.0.0.3/24 dev nic1",
    "ip addr add 10.1.0.2/24 dev nic2",
    "ip addr add 10.1.0.3/24 dev nic3",
    *(f"ip link set nic{at} up" for at in range(4)),
]

# A plane has a file and addresses of its own, and the second has faster links.
PLANES = {
    "a.toml": SERVERS,
    "b.toml": SERVERS.replace("10Gbps", "40Gbps")
    + 'host_address = "11.{leaf}.0.{place+2}"\nrack = "11.{leaf}.0.0/16"\n'
    'gateway = "11.{leaf}.0.1"\n',
}
INTERFACES_OF_PLANES = [
    "ip link set lo up",
    *(f"ip link add nic{at} type veth peer name nic{at + 1}" for at in range(0, 8, 2)),
    *(f"ip addr add {10 + at // 4}.{at // 2 % 2}.0.{at % 2 + 2}/24 dev nic{at}" for at in range(8)),
    *(f"ip link set nic{at} up" for at in range(8)),
]


def cargo(test: str, *before: str, **variables: str) -> str:
    """Run the ignored tests of a file; what it prints."""
    # For one package alone cargo would build all libraries anew, with fewer features.
    arguments = ["--workspace", "--test", test, "--", "--ignored", "--nocapture"]
    done = subprocess.run(
        [*before, "cargo", "test", "--quiet", *arguments, "--test-threads", "1"],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_lanes_leave_paths_that_die() -> None:
    """Packets of some source ports are lost, or reset: lanes go around, or say so in time."""
    cargo("dead_paths")


def test_ports_are_short_for_each_peer_alone() -> None:
    """More connections than ports, as if no two peers shared one; then none is left, by name."""
    cargo("short_of")


def test_the_plugin_uses_every_nic(tmp_path: Path) -> None:
    """Two servers of two NICs, here: each NIC carries its channel's bytes, on all paths."""
    config = tmp_path / "cluster.toml"
    config.write_text(SERVERS)
    script = "; ".join([*INTERFACES, 'exec "$@"'])
    said = cargo("nics", "unshare", "--net", "sh", "-ec", script, "sh", WEFT_CONFIG=str(config))
    line = next(line for line in said.splitlines() if line.startswith("statistics: "))
    sent = {}
    for nic in json.loads(line.removeprefix("statistics: ")):
        used = {path["path"]: path["bytes"] for path in nic["paths"] if path["bytes"]}
        sent[nic["device"]] = sum(used.values())
        if used:
            assert len(used) == 4, used
            assert max(used.values()) <= 1.01 * min(used.values()), used
    mib = 1 << 20
    assert sent == {"s0r0": 16 * mib, "s0r1": 8 * mib, "s1r0": 0, "s1r1": 0}


def test_virtual_nics_have_several_rdma_devices() -> None:
    """Devices in software, by the addresses of interfaces: each carries and flushes its half."""
    interfaces = [
        "ip link set lo up",
        *(f"ip link add nic{at} type veth peer name nic{at + 1}" for at in (0, 2)),
        *(f"ip addr add 127.0.{at % 2}.{at // 2 + 1}/32 dev nic{at}" for at in range(4)),
        *(f"ip link set nic{at} up" for at in range(4)),
    ]
    script = "; ".join([*interfaces, 'exec "$@"'])
    cargo("gpu_memory", "unshare", "--net", "sh", "-ec", script, "sh")


def test_virtual_nics_are_in_several_planes(tmp_path: Path) -> None:
    """A file for each plane: a virtual NIC uses all paths of both, by their line rates."""
    for name, text in PLANES.items():
        (tmp_path / name).write_text(text)
    configs = ",".join(str(tmp_path / name) for name in PLANES)
    script = "; ".join([*INTERFACES_OF_PLANES, 'exec "$@"'])
    said = cargo("planes", "unshare", "--net", "sh", "-ec", script, "sh", WEFT_CONFIG=configs)
    line = next(line for line in said.splitlines() if line.startswith("statistics: "))
    first = next(
        nic
        for nic in json.loads(line.removeprefix("statistics: "))
        if nic["device"] == "plane-0-s0r0+plane-1-s0r0"
    )
    sent: dict[str, dict[str, int]] = {"10.1.0.2": {}, "11.1.0.2": {}}
    for path in first["paths"]:
        paths = sent[path["peer"]]
        paths[path["path"]] = paths.get(path["path"], 0) + path["bytes"]
    one, other = (sum(paths.values()) for paths in sent.values())
    assert one + other == 3 * 2 * (8 << 20), "versions 10 to 12 share it, and send two messages"
    assert 0.19 < one / (one + other) < 0.21, sent
    for paths in sent.values():
        assert len(paths) == 4, sent
        assert max(paths.values()) <= 1.05 * min(paths.values()), sent
    line = next(line for line in said.splitlines() if line.startswith("profile: "))
    events = [event for event in json.loads(line.removeprefix("profile: ")) if event]
    planes: dict[tuple[int, str], int] = {}
    for event in events:
        if event["cat"] == "WEFT_PIECE" and event["ph"] == "b":
            piece = event["args"]
            key = (piece["Plane"], piece["Device"])
            planes[key] = planes.get(key, 0) + piece["Bytes"]
    # Of all four versions that merge.
    assert sum(planes.values()) == 4 * 2 * (12 << 20)
    by_plane = {
        number: sum(value for (plane, _), value in planes.items() if plane == number)
        for number in (0, 1)
    }
    assert 0.19 < by_plane[0] / sum(planes.values()) < 0.21, planes
    names = {f"plane-{plane}-s0r{rail}" for plane in (0, 1) for rail in (0, 1)}
    assert {name for _, name in planes} == names
