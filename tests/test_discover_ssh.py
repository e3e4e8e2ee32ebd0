"""`weft discover --over "ssh {address}"` with OpenSSH's server, on this machine and on a test bed.

Keys are made for the test. Without a server of SSH on this machine, or without root, nothing is
tried.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft as package
from conftest import Weft
from hashing_bed import wait_for
from test_discover import CLUSTER, UNLIMITED, asked
from weft.testbed import system

SERVER = Path("/usr/sbin/sshd")
pytestmark = pytest.mark.skipif(
    not SERVER.exists() or system.missing() is not None,
    reason=f"{SERVER} is not there; install openssh-server"
    if not SERVER.exists()
    else str(system.missing()),
)
THERE = f"env PYTHONPATH={Path(package.__file__).parents[1]} {sys.executable} -m weft"
"""How the other end finds weft."""


class Keys:
    """Keys of a server and of who may come, and words for both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("host", "user"):
            words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
            subprocess.run(words, check=True, timeout=60)
        Path("/run/sshd").mkdir(exist_ok=True)

    def server(self, address: str, port: int) -> list[str]:
        """The command of a server."""
        config = self.folder / f"config-{port}"
        config.write_text(
            f"ListenAddress {address}\nPort {port}\nHostKey {self.folder / 'host'}\n"
            f"PidFile none\nAuthorizedKeysFile {self.folder / 'user.pub'}\n"
            "PasswordAuthentication no\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"
        )
        return [str(SERVER), "-D", "-f", str(config), "-E", str(self.folder / "log")]

    def client(self, port: int) -> str:
        """The words before a host's name."""
        return (
            f"ssh -F none -p {port} -i {self.folder / 'user'} -o BatchMode=yes -o ConnectTimeout=5 "
            "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Keys for this file."""
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def port(keys: Keys) -> Iterator[int]:
    """The port of a server on this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        free: int = one.getsockname()[1]
    server = subprocess.Popen(keys.server("127.0.0.1", free))
    try:
        wait_for(free)
        yield free
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two hosts under two leaves, with four spines between."""
    path = tmp_path / "small.toml"
    path.write_text(CLUSTER)
    return path


def over(cluster: Path, keys: Keys, servers: list[int], *words: str) -> dict[str, Any]:
    """What comes out where these hosts of a bed have a server, over the bed itself."""
    template = f"{keys.client(2222)} root@{{address}} {THERE}"
    return asked(
        cluster,
        ["over"],
        sysctls=UNLIMITED,
        servers=servers,
        server_port=2222,
        server=keys.server("0.0.0.0", 2222),
        words=["discover", str(cluster), "--protocol", "udp", "--over", template, "--json", *words],
    )


def test_hosts_look_over_ssh(small: Path, keys: Keys) -> None:
    """Each host finds its own paths, and packets of their ports take them."""
    found = over(small, keys, [0, 1])
    assert (found["over"]["status"], found["over"]["said"]) == (0, "")
    assert found["misled"] == []
    sources = found["over"]["table"]["sources"]
    assert [len(one["targets"][0]["paths"]) for one in sources] == [4, 4]


def test_a_host_that_does_not_answer_leaves_the_others_theirs(small: Path, keys: Keys) -> None:
    """One line says which, and why; what the others have found is there."""
    found = over(small, keys, [0], "--ports-per-path", "1")
    said = found["over"]["said"]
    assert (found["over"]["status"], len(said.splitlines())) == (1, 1), said
    assert said.startswith("weft: --over: h1: ssh: ")
    assert "Connection refused" in said
    assert [one["address"] for one in found["over"]["table"]["sources"]] == ["10.0.0.2"]
    assert found["misled"] == []


def test_what_goes_wrong_over_ssh_is_told_in_one_line(
    weft: Weft, small: Path, keys: Keys, port: int
) -> None:
    """No weft there, no such name, a wrong key, not the host of that address."""
    to = f"{keys.client(port)} root@127.0.0.1"
    for template, says in [
        (f"{to} PATH=/nowhere", "weft: command not found; install it there, or say where it is"),
        (f"{keys.client(port)} root@{{host}}.invalid", "Could not resolve hostname h0.invalid"),
        (
            to.replace(f"-i {keys.folder / 'user'}", "-i /dev/null -o IdentitiesOnly=yes"),
            "Permission denied",
        ),
        (f"{to} {THERE}", "10.0.0.2 is no address of this host"),
        (f"{to} echo", "is the same version of weft there?"),
    ]:
        done = weft("discover", small, "--over", template)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert says in done.stderr


def test_words_are_quoted_once(
    weft: Weft, small: Path, keys: Keys, port: int, tmp_path: Path
) -> None:
    """A path of weft with a blank, and a shell that says something before."""
    folder = tmp_path / "a b"
    folder.mkdir()
    program = folder / "weft"
    here = "s/10[.]0[.]0[.]2/127.0.0.1/g; s/10[.]1[.]0[.]2/127.0.0.1/g"
    program.write_text(f"#!/bin/sh\necho 'welcome to {{}}'\nsed '{here}' | {THERE} \"$@\"\n")
    os.chmod(program, 0o700)  # noqa: PTH101
    template = f"{keys.client(port)} root@127.0.0.1 \"'{program}'\""
    done = weft("discover", small, "--over", template, "--json")
    # What it answers is read to the end.
    assert (done.returncode, done.stderr) == (1, "")
    assert '"127.0.0.1"' in done.stdout
