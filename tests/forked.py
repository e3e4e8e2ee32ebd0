"""Runs the command line in processes forked from one that has the libraries in memory.

`python -m weft` spends most of its time on reading them, and tests start thousands of commands.
Each still has a process, a folder, an environment and an end of its own. Run as a script this is
the process that is forked; its argument is a socket, over which come commands, with the files for
what they print.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PRELOADED = ("weft.cli.app", "weft.cli.simulations", "numpy", "rich.progress", "jinja2")
"""What is read once. Polars is not: it starts threads, which no fork takes along."""


class Forks:
    """Runs commands as `weft` does; until it is closed."""

    def __init__(self) -> None:
        """Start the process that is forked."""
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Before numpy is read, as `weft` itself has it: threads would not survive a fork.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )

    def run(self, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with `text` and `capture_output`, but with no terminal for input."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            asked = json.dumps([arguments, str(cwd), dict(os.environ)]).encode()
            socket.send_fds(self._socket, [asked], [out.fileno(), err.fileno()])
            answer = self._socket.recv(64)
            if not answer:
                raise RuntimeError("the process that is forked has ended")
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(["weft", *arguments], int(answer), *said)

    def close(self) -> None:
        """End the process that is forked."""
        self._socket.close()
        self._process.wait()


def main(number: int) -> None:
    """Fork for each command; in the child, become `weft`, which ends it."""
    sys.path[0] = ""  # As `python -m` has it; here it was the folder of this file.
    for name in PRELOADED:
        importlib.import_module(name)
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise RuntimeError("what is preloaded has started threads")
    with socket.socket(fileno=number) as asked:
        while True:
            what, files, *_ = socket.recv_fds(asked, 1 << 20, 2)
            if not what:
                return
            child = os.fork()
            if child == 0:
                break
            for file in files:
                os.close(file)
            _, status = os.waitpid(child, 0)
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())
    arguments, folder, environment = json.loads(what)
    for file, its in zip(files, (1, 2), strict=True):
        os.dup2(file, its)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["weft", *arguments]
    runpy.run_module("weft", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
