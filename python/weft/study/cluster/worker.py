"""What a worker of a cluster does: it simulates runs and packs what comes out.

It keeps no result: what has been answered is forgotten.
"""

from __future__ import annotations

import json
import pickle
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import _native, internal_errors
from weft.errors import Cancelled, ExperimentError, StallError
from weft.study.cluster import files
from weft.study.store import Packed, pack

State = tuple[int, float, float, tuple[float, float], int]
"""How far a run is, as `_native.Progress` says."""


@dataclass(frozen=True)
class Task:
    """A run to simulate."""

    key: str
    experiment: str
    """JSON."""
    seed: int


@dataclass(frozen=True)
class Chunk:
    """Some runs, one after the other."""

    sweep: str
    """Tells the sweeps of different commands apart."""
    code_version: str
    """Of the one who asks."""
    tasks: Sequence[Task]
    threads: int | None
    """Cores for each run; None: the run chooses, `share` at most."""
    share: int
    with_tables: bool
    folders: Mapping[str, str]
    """Those of `keep_files`, if the experiments name files: see `files.folders`."""


@dataclass(frozen=True)
class Done:
    """What became of a run: either `packed` or `error`."""

    key: str
    seconds: float = 0.0
    packed: Packed | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class Answer:
    """What became of a chunk. Without those runs that another version or a cancelled sweep left."""

    code_version: str
    runs: Sequence[Done] = ()


@dataclass
class _Sweep:
    stop: _native.Cancel = field(default_factory=_native.Cancel)
    active: dict[str, _native.Progress] = field(default_factory=dict)


_SWEEPS: dict[str, _Sweep] = {}


def request(function: Callable[..., Any], *arguments: Any) -> bytes:
    """A call as bytes: `pickle.loads` makes it, on a worker.

    The scheduler unpacks what it is given to see what depends on what, and need not have Weft.
    """
    return pickle.dumps(_Call(function, arguments))


class _Call:
    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def dask_setup(_: object) -> None:
    """Leave Ctrl-C to the command that has started this worker; Dask calls this (`--on local`)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def code_version() -> str:
    """The version of the native code here."""
    return _native.code_version


def simulate(chunk: Chunk) -> Answer:
    """Simulate a chunk; results of another version are never made."""
    done: list[Done] = []
    if chunk.code_version == _native.code_version:
        sweep = _SWEEPS.setdefault(chunk.sweep, _Sweep())
        for task in chunk.tasks:
            try:
                done.append(_one(task, chunk, sweep))
            except Cancelled:
                break
    return Answer(_native.code_version, done)


def cancel(sweep: str) -> None:
    """End what is simulated of a sweep, and never begin anything else of it."""
    _SWEEPS.setdefault(sweep, _Sweep()).stop.cancel()


def states(sweep: str) -> dict[str, State]:
    """How far the runs of a sweep are that go on here, by key."""
    active = list(_SWEEPS[sweep].active.items()) if sweep in _SWEEPS else []
    found = {key: progress.state() for key, progress in active}
    return {key: state for key, state in found.items() if state is not None}


def keep_files(sweep: str, contents: Mapping[str, bytes], dask_worker: Any = None) -> None:
    """Write files that experiments name, by their path in `_folder`; Dask gives the worker."""
    for name, content in contents.items():
        path = _folder(sweep, dask_worker) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def drop_files(sweep: str, dask_worker: Any = None) -> None:
    """Remove the files of a sweep that is over."""
    shutil.rmtree(_folder(sweep, dask_worker), ignore_errors=True)


def _folder(sweep: str, dask_worker: Any = None) -> Path:
    """Where files of a sweep are kept; within a task the worker is known.

    Others may have other files of the same name, and more ranks of a trace.
    """
    from distributed import get_worker

    return Path((dask_worker or get_worker()).local_directory) / "weft" / sweep


def _one(task: Task, chunk: Chunk, sweep: _Sweep) -> Done:
    began = time.monotonic()
    sweep.active[task.key] = _native.Progress()
    try:
        packed = _outcome(task, chunk, sweep)
    except Cancelled:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the native core is no Exception.
        return Done(task.key, error=_for_others(error, chunk))
    finally:
        del sweep.active[task.key]
    return Done(task.key, time.monotonic() - began, packed)


def _outcome(task: Task, chunk: Chunk, sweep: _Sweep) -> Packed:
    experiment = task.experiment
    if chunk.folders:
        experiment = _with_files(task, _folder(chunk.sweep))
    outcome = _native.run(
        experiment,
        task.seed,
        sweep.stop,
        threads=chunk.threads,
        share=chunk.share,
        progress=sweep.active[task.key],
    )
    outcome["warnings"] = [_as_named(text, chunk) for text in outcome["warnings"]]
    return pack(outcome, chunk.with_tables)


def _with_files(task: Task, folder: Path) -> str:
    """The experiment with its files in a folder here, which are the same as at its sweep.

    Raises:
        ExperimentError: They are not: the run would be another one.
    """
    moved = files.moved(json.loads(task.experiment), folder)
    # A key stands for what files contain, not for where they lie.
    alone = json.dumps({**moved, "sweep": {"seeds": [task.seed]}})
    here = json.loads(_native.expand(alone, "json", "experiment", []))["runs"]
    if [spec["key"] for spec in here] != [task.key]:
        raise ExperimentError(
            "the files that it names are not the same on the worker; run it again, without --on "
            "if that stays so"
        )
    return json.dumps(moved)


def _as_named(text: str, chunk: Chunk) -> str:
    return files.as_named(text, _folder(chunk.sweep), chunk.folders) if chunk.folders else text


def _for_others(error: BaseException, chunk: Chunk) -> Exception:
    """An error that another process can read: not each can be sent."""
    if isinstance(error, ExperimentError | StallError):
        return type(error)(_as_named(str(error), chunk))
    if isinstance(error, MemoryError):
        return error
    return RuntimeError(f"{internal_errors.describe(error)} on a worker")
