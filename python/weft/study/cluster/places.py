"""Where `--on` finds workers: at a scheduler's address, or in a cluster of one command's own."""

from __future__ import annotations

import atexit
import importlib
import logging
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weft import _native
from weft.errors import ExperimentError
from weft.study.cluster import slurm, worker
from weft.study.cluster.dispatcher import Dispatcher, Supply
from weft.study.fields import suggestion

_ANSWERS_S = 10
"""Seconds for a scheduler to answer for the first time."""
_LEAST_MEMORY = 256_000_000
"""Bytes for a worker on this machine: alone it has about 140 MB."""


@dataclass(frozen=True)
class Place:
    """What follows `--on`."""

    kind: str
    """One of `KINDS`, or the address of a scheduler."""
    given: Mapping[str, str]
    text: str
    """As it was written, for messages."""


@contextmanager
def opened(place: Place, jobs: int | None, threads: int | None) -> Iterator[Dispatcher]:
    """The workers of a place; what was started for this goes away at the end.

    `jobs` runs at once, if there is a limit, with `threads` cores each.

    Raises:
        ExperimentError: There is no such place, or what it needs is not installed.
    """
    distributed = _needed("distributed", place)
    # Its lines about workers that come and go: what matters of them is told by us.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    kind = KINDS.get(place.kind)
    with _started(kind, place, threads) if kind else _nothing(place.kind) as (there, supply):
        client = _connected(distributed, there, place)
        dispatcher = Dispatcher(client, jobs, threads, supply)
        try:
            yield dispatcher
            # Not after an error, such as a scheduler that is gone: then workers do when they end.
            dispatcher.close()
        finally:
            client.close()


def _connected(distributed: Any, there: Any, place: Place) -> Any:
    try:
        return distributed.Client(there, timeout=_ANSWERS_S, set_as_default=False, name="weft")
    except (OSError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise ExperimentError(
            f"--on {place.text}: no scheduler answers there ({why}); "
            "start one with dask scheduler, and workers with dask worker HOST:PORT"
        ) from None
    except TypeError as error:
        # What Dask raises for tls:// without certificates.
        if not place.kind.startswith("tls://"):
            raise
        raise ExperimentError(
            f"--on {place.text}: there are no certificates for TLS; name them in Dask's "
            "configuration: ca-file, client.cert and client.key of distributed.comm.tls"
        ) from error


@contextmanager
def _nothing(address: str) -> Iterator[tuple[str, None]]:
    """A scheduler that is there already, and stays."""
    yield address, None


@contextmanager
def _started(kind: Kind, place: Place, threads: int | None) -> Iterator[tuple[Any, Supply | None]]:
    """A cluster for one command."""
    given, module = _read(kind.keys, place), _needed(kind.module, place)
    with _interrupted_by(signal.SIGTERM, signal.SIGHUP):
        try:
            cluster, supply = kind.start(module, given, threads)
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            first = " ".join(str(error).split())
            raise ExperimentError(f"--on {place.text}: {first}") from None
        try:
            yield cluster, supply
        finally:
            cluster.close()


@contextmanager
def _interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Have what ends this process interrupt it instead, unless it is ignored (nohup).

    Else jobs would stay in their queue.
    """
    ends = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ends = []
    for number in ends:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


def _read(keys: Mapping[str, Callable[[str], Any]], place: Place) -> dict[str, Any]:
    found = {}
    for key, text in place.given.items():
        if key not in keys:
            what = f"unknown key {key}; {suggestion(key, keys)}"
            raise ExperimentError(f"--on {place.text}: {what}")
        try:
            found[key] = keys[key](text)
        except ValueError as error:
            what = f"{key} = {text!r} is {error}"
            raise ExperimentError(f"--on {place.text}: {what}") from None
    return found


def _needed(module: str, place: Place) -> Any:
    # dask-jobqueue has Ctrl-C end the process with status 0: nothing would be told of what is kept.
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        missing = package if package == "distributed" else f"distributed {package}"
        raise ExperimentError(
            f"--on {place.text} needs {package} ({error}); pip install {missing}"
        ) from None
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise ValueError("not a number from 1 on; correct it")
    return number


def _memory(text: str) -> str:
    """As Dask reads it, but a number alone, which it takes for bytes."""
    if not re.fullmatch(r"[0-9]*\.?[0-9]+ *([kMGTP]i?B?|B)", text, re.IGNORECASE):
        raise ValueError("not a size with a unit; write 4GB, for example")
    return text


def _local_memory(text: str) -> str:
    """What a process needs for itself is refused: Dask would start it again for ever."""
    from dask.utils import parse_bytes

    if text == "auto":
        return text
    if parse_bytes(_memory(text)) < _LEAST_MEMORY:
        least = f"{_LEAST_MEMORY // 1_000_000}MB"
        raise ValueError(f"too little for a process; give it at least {least}")
    return text


def _list(text: str) -> list[str]:
    """`[a, b]`, or `a` alone."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [part.strip() for part in inner.split(",") if part.strip()]


@dataclass(frozen=True)
class Kind:
    """A way to get workers."""

    module: str
    """What has to be installed for it."""
    keys: Mapping[str, Callable[[str], Any]]
    """What may be said of it, each with what reads it."""
    start: Callable[[Any, dict[str, Any], int | None], tuple[Any, Supply | None]]
    """Makes the cluster; each run has as many threads as the last argument says, if it does."""


def _local(distributed: Any, given: dict[str, Any], threads: int | None) -> tuple[Any, None]:
    """Processes on this machine."""
    cluster = distributed.LocalCluster(
        n_workers=given.get("workers", max(1, _native.cores() // (threads or 1))),
        threads_per_worker=threads or 1,
        memory_limit=given.get("memory", "auto"),
        # A process near its limit would wait for memory for ever; one above it is ended.
        config={"distributed.worker.memory.pause": False},
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
        preload=[worker.__name__],
    )
    return cluster, None


def _kubernetes(operator: Any, given: dict[str, Any], _: int | None) -> tuple[Any, None]:
    """Pods, through the operator of dask-kubernetes."""
    amounts = {"cpu": given.pop("cores", None), "memory": given.pop("memory", None)}
    amounts = {name: amount for name, amount in amounts.items() if amount is not None}
    if amounts:
        given["resources"] = {"requests": amounts, "limits": amounts}
    try:
        return operator.KubeCluster(n_workers=given.pop("workers", 1), quiet=True, **given), None
    except ValueError:
        # Without credentials nothing was made, and removing it at exit would fail again.
        atexit.unregister(operator.kubecluster.kubecluster.reap_clusters)
        raise


KINDS: Mapping[str, Kind] = {
    "local": Kind("distributed", {"workers": _count, "memory": _local_memory}, _local),
    "slurm": Kind(
        "dask_jobqueue",
        {
            "jobs": _count,
            "queue": str,
            "account": str,
            "cores": _count,
            "memory": _memory,
            "walltime": str,
            "processes": _count,
            "interface": str,
            "python": str,
            "local_directory": str,
            "log_directory": str,
            "job_extra_directives": _list,
            "job_script_prologue": _list,
            "worker_extra_args": _list,
        },
        slurm.start,
    ),
    "kubernetes": Kind(
        "dask_kubernetes.operator",
        {
            "workers": _count,
            "image": str,
            "namespace": str,
            "name": str,
            "cores": str,
            "memory": str,
        },
        _kubernetes,
    ),
}
"""What may stand in place of an address; keys are those of Dask's packages but for the number of
jobs or workers."""
