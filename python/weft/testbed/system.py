"""What the test bed needs of Linux: `ip`, `tc`, namespaces, children that end with their parent."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weft import internal_errors
from weft.errors import ExperimentError

_AHEAD = -15
"""Nice value of sessions: before hosts, which are before other work."""
NAMES = Path("/run/netns")
"""Where `ip netns` keeps its names."""

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWNET = 0x4000_0000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)
_PR_SET_PDEATHSIG = 1


def missing(rules: str = "linux") -> str | None:
    """What this machine lacks for a test bed with such rules, and what to do; None: nothing."""
    if sys.platform != "linux":
        return "the test bed needs Linux network namespaces; use a Linux machine"
    if os.geteuid() != 0:
        return "making network namespaces needs root; run it with sudo"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; install iproute2"
    if rules == "nftables" and not _has_nft():
        return "--rules nftables: nft is not installed; install nftables, or use --rules linux"
    if _refuses_namespaces():
        return "the kernel refuses namespaces; a container needs --privileged (CAP_SYS_ADMIN)"
    return None


def _refuses_namespaces() -> bool:
    """Whether a process here may make none, though it is root."""
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "--mount", "--net", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode != 0  # noqa: S603


def _has_nft() -> bool:
    return shutil.which("nft") is not None


def require_nft(option: str) -> None:
    """Refuse an option that needs `nft` where there is none.

    Raises:
        ExperimentError: It is not there.
    """
    if not _has_nft():
        raise ExperimentError(
            f"{option}: nft is not installed; install nftables, or leave {option} out"
        )


def require(rules: str = "linux") -> None:
    """Refuse to go on where something is missing.

    Raises:
        ExperimentError: What is missing, and what to do.
    """
    what = missing(rules)
    if what is not None:
        raise ExperimentError(f"testbed: {what}")


def batch(tool: str, lines: Iterable[str], namespace: str | None = None) -> None:
    """Have `ip` or `tc` carry out lines, in a namespace or here.

    Raises:
        ExperimentError: A line failed; the first one, and why.
    """
    text = "".join(f"{line}\n" for line in lines)
    if not text:
        return
    where = ["-n", namespace] if namespace else []
    done = subprocess.run(  # noqa: S603
        [tool, *where, "-batch", "-"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = " ".join(done.stderr.split())
        raise ExperimentError(f"testbed: {tool} in {namespace or 'this namespace'}: {why}")


def nft(lines: Iterable[str], namespace: str) -> None:
    """Have `nft` carry out lines in a namespace.

    Raises:
        ExperimentError: It refused them; why.
    """
    command = ["ip", "netns", "exec", namespace, "nft", "-f", "-"]
    text = "\n".join(lines) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise ExperimentError(f"testbed: nft in {namespace}: {' '.join(done.stderr.split())}")


def run_script(namespace: str, script: Path, *words: str) -> None:
    """Have `sh` run a script in a namespace.

    Raises:
        ExperimentError: It failed; what it said.
    """
    command = ["ip", "netns", "exec", namespace, "sh", str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        why = " ".join(done.stderr.split()) or f"ended with status {done.returncode}"
        raise ExperimentError(f"testbed: {script.name} in {namespace}: {why}")


def ask(tool: str, *words: str, namespace: str) -> str:
    """What `ip` or `tc` prints."""
    command = [tool, "-n", namespace, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise ExperimentError(f"testbed: {' '.join(command)}: {' '.join(done.stderr.split())}")
    return done.stdout


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise ExperimentError(
            f"testbed: {what}: {os.strerror(number).lower()}; run it as root with all capabilities"
        )


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the process `parent` is gone, however that ends."""
    _checked(_libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        # It went before it could be watched.
        os._exit(1)


def serve(work: Callable[[Any], Iterable[Any]]) -> int:
    """Be a session: a job as JSON comes in, a line of JSON for each result goes out.

    Dies with the process that the command line names. Returns the exit status.
    """
    die_with(int(sys.argv[1]))
    # Failures must happen in time, also when hosts keep this machine busy. A container may not ask.
    with suppress(PermissionError):
        os.nice(_AHEAD)
    try:
        for result in work(json.load(sys.stdin)):
            print(json.dumps(result), flush=True)
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 - the parent reports it.
        internal_errors.HANDLER.debug = True
        return internal_errors.HANDLER.report(error)
    return 0


def session_error(status: int, said: str) -> Exception:
    """What a session that ended with `status` said on standard error, as an exception here."""
    if status == internal_errors.STATUS:
        return internal_errors.ChildError(said)
    lines = said.strip().splitlines() or [f"testbed: the session ended early (status {status})"]
    return ExperimentError(lines[-1])


def hide_namespaces() -> None:
    """Give this process a /run of its own, so that names of namespaces die with it.

    The kernel takes apart a namespace when its last process and its last name are gone. In here
    names are mounts that nobody else sees, and go with the last process that does: whatever kills
    those leaves nothing behind.
    """
    libc = _libc()
    _checked(libc.unshare(_CLONE_NEWNS), "unshare")
    _checked(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None), "mount")
    _checked(libc.mount(b"weft", b"/run", b"tmpfs", 0, b"mode=755"), "mount")
    NAMES.mkdir()


def enter(namespace: str) -> None:
    """Move this process into a network namespace."""
    with (NAMES / namespace).open() as file:
        _checked(_libc().setns(file.fileno(), _CLONE_NEWNET), f"setns {namespace}")


@contextmanager
def home() -> Iterator[None]:
    """Come back from wherever `enter` went."""
    with Path("/proc/self/ns/net").open() as file:
        try:
            yield
        finally:
            _checked(_libc().setns(file.fileno(), _CLONE_NEWNET), "setns")


def set_sysctls(namespaces: Iterable[str], values: dict[str, object]) -> None:
    """Write kernel parameters, as `net/ipv4/ip_forward`, in namespaces."""
    with home():
        for namespace in namespaces:
            enter(namespace)
            for key, value in values.items():
                Path("/proc/sys", key).write_text(str(value))
