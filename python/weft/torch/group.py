"""A process group over channels that Weft balances.

Ranks find each other through the store that `init_process_group` has: each leaves the handle of its
listener there. Channels are made when they are first used. Collectives go on one after the
other in a thread of the native core; sends and receives beside them.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._C import _distributed_c10d as c10d
from torch.distributed import PrefixStore, ProcessGroup

from weft import _native
from weft.torch import backend
from weft.torch.operations import NAMES, Operations
from weft.torch.untraced import untraced
from weft.torch.work import Work

_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
"""Which process of its host this is, as torchrun, Slurm, Open MPI and MPICH say."""


class WeftWarning(UserWarning):
    """Something about the deployment that one should know."""


@cache
def _nic() -> _native.Nic:
    """Open the NIC of this process; of several, each process of a host takes another."""
    said = ((name, text) for name in _LOCAL_RANKS if (text := os.environ.get(name)))
    name, own = next(said, ("", "0"))
    if not (own.isdecimal() and int(own) < 1 << 32):
        raise ValueError(f"{name}: {own!r}: is no whole number; use 0 or more")
    nic = _native.Nic(int(own))
    for line in nic.warnings:
        warnings.warn(line, WeftWarning, stacklevel=2)
    if nic.chosen:
        _say(nic.chosen)
    if nic.stats:
        file = Path(nic.stats.replace("%p", str(os.getpid())))
        # What cannot be written is no news to have after hours of training.
        _write_statistics(nic, file)
        atexit.register(_leave_statistics, nic, file, os.getpid())
    return nic


def _write_statistics(nic: _native.Nic, file: Path) -> None:
    try:
        # A list, as the NCCL plugin leaves it, which may have several.
        file.write_text(f"[{nic.statistics()}]\n")
    except OSError as error:
        raise ValueError(f"WEFT_STATS: {file}: {error.strerror}") from None


def _leave_statistics(nic: _native.Nic, file: Path, process: int) -> None:
    # A child that was forked has none.
    if process == os.getpid():
        try:
            _write_statistics(nic, file)
        except ValueError as error:
            _say(str(error))


def _say(line: str) -> None:
    print(f"weft: {line}", file=sys.stderr, flush=True)


def statistics() -> str:
    """Return bytes, time-outs and re-routes by peer and path of this process, as JSON."""
    return _nic().statistics()


class _Member(Operations):
    """A rank of a group, and its end."""

    def _meet(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        """Find the other ranks."""
        self._rank, self._size, self._store = rank, size, store
        own = _nic().listen()
        # All ranks meet over a store as often as each other; handles of earlier groups stay there.
        turn = store.add(f"weft/turn/{rank}", 1)
        self._store = PrefixStore(f"weft/{turn}", store)
        self._store.set(f"handle/{rank}", own.handle().hex())
        keys = [f"handle/{other}" for other in range(size)]
        try:
            self._store.wait(keys, timeout)
        except RuntimeError:
            absent = [other for other, key in enumerate(keys) if not self._store.check([key])]
            if absent:
                named = " and ".join(f"rank {other}" for other in absent)
                raise distributed.DistBackendError(
                    f"weft: new group: timed out: nothing from {named} within the timeout of "
                    f"{timeout.total_seconds():g}s; is it still running, and making the same group?"
                ) from None
        handles = [bytes.fromhex(self._store.get(key).decode()) for key in keys]
        self._joined = own.join(handles, rank, timeout.total_seconds())
        # PyTorch holds the half of it that is C++, and calls the other.
        _here.add(self)

    def shutdown(self) -> None:
        """Close all channels; what is under way fails."""
        self._joined.close()
        _here.discard(self)

    abort = shutdown


_here: set[Any] = set()
"""All that have not been shut down."""


class Whole(_Member, ProcessGroup):
    """A rank of a group, where PyTorch has no back ends in Python (before 2.15, or so)."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        ProcessGroup.__init__(self, rank, size)
        self._name = ""
        _end_destroyed()
        self._meet(store, rank, size, timeout)

    def _get_backend(self, device: Any) -> Any:
        return self

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        """Its name; PyTorch has none for a group without back ends."""
        return self._name


for _name in NAMES:
    setattr(Whole, _name, untraced(getattr(Whole, _name)))


def _end_destroyed() -> None:
    """Shut down what PyTorch has destroyed: of groups without back ends it leaves that undone."""
    known = distributed.distributed_c10d._world.pg_map
    named = [one for one in _here if isinstance(one, Whole) and one.group_name]
    for one in named:
        if one not in known:
            one.shutdown()


class _Latest(threading.local):
    """The work that a thread has handed out last."""

    work: Work | None = None

    def take(self) -> Work | None:
        work, self.work = self.work, None
        return work


_latest = _Latest()


class _Part(_Member, c10d.Backend):
    """A rank of a group, as the back end of a `Group`."""

    supports_coalescing = False
    supports_splitting = True

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        c10d.Backend.__init__(self, rank, size)
        self._meet(store, rank, size, timeout)

    def _hand_out(self, work: Work) -> Work:
        _latest.work = work
        return work


class Group(ProcessGroup):
    """A rank of a group, for the tensors of a processor.

    PyTorch does with a call what it does for all back ends: it profiles, checks (where
    ``TORCH_DISTRIBUTED_DEBUG`` asks for it) and passes it to the back end. The work that comes back
    is PyTorch's wrapping of ours, which tells nobody when it is over (`Work.is_completed`); ours is
    returned instead.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        ProcessGroup.__init__(self, store, rank, size)
        self._timeout, self._splits = timeout, 0
        self._part = part = _Part(store, rank, size, timeout)
        self._checked = _checked(part, timeout)
        kind = ProcessGroup.BackendType.CUSTOM
        self._set_default_backend(kind)
        self._register_backend(torch.device("cpu"), kind, self._checked)
        _here.add(self)

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name.
        """Return the name of the back end."""
        return backend.NAME

    name = getBackendName

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long operations that begin from now on may take."""
        self._timeout = timeout
        self._part.set_timeout(timeout)

    def split_group(
        self,
        new_ranks: list[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> Group | None:
        """Make a group of some ranks, each of which calls this with the same ones."""
        self._splits += 1
        if self.rank() not in new_ranks:
            return None
        name = group_name or f"{self.group_name}:split:{self._splits}"
        store = PrefixStore(f"{name}/", self.get_group_store())
        own, limit = new_ranks.index(self.rank()), timeout or self._timeout
        group = Group(store, own, len(new_ranks), limit)
        group._set_group_name(name)
        group._set_group_desc(group_desc or f"{self.group_desc}:split:{self._splits}")
        return group

    def shutdown(self) -> None:
        """Close all channels; what is under way fails."""
        self._part.shutdown()
        _here.discard(self)

    abort = shutdown


def _checked(part: _Part, timeout: timedelta) -> Any:
    """A back end, with PyTorch's checks in front if they are asked for.

    They compare what all ranks call, over Gloo.
    """
    level = c10d.get_debug_level()
    if level != c10d.DebugLevel.DETAIL or not distributed.is_gloo_available():
        return part
    apart = PrefixStore("weft/checks", part._store)
    helper = c10d.ProcessGroupGloo(apart, part._rank, part._size, timeout=timeout)
    return c10d._ProcessGroupWrapper(part, helper)


_OLD = {
    "_allgather_base": "all_gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "gather_into_tensor": "gather_single",
}
"""What operations were called before PyTorch 2.15. C++ looks up others' old names beside the new
ones, so they are left to it."""


def _through_pytorch(name: str) -> Any:
    """The operation of `Group` with this name."""
    theirs = getattr(ProcessGroup, name)

    def operation(self: Group, *given: Any, **more: Any) -> Any:
        wrapped = theirs(self, *given, **more)
        work = _latest.take()
        return work.begin() if work else wrapped

    # By this name PyTorch sees that it calls itself, and does not come back here.
    operation.__code__ = operation.__code__.replace(co_name=name)
    operation.__name__, operation.__doc__ = name, getattr(Operations, name).__doc__
    return untraced(operation)


def make(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """Make the group that this version of PyTorch has a use for."""
    return (Group if HAS_BACK_ENDS else Whole)(store, rank, size, timeout)


HAS_BACK_ENDS = hasattr(ProcessGroup, "all_gather_single")
"""Whether back ends may be written in Python."""
if HAS_BACK_ENDS:
    for _name in NAMES:
        setattr(Group, _name, _through_pytorch(_name))
    for _name, _new in _OLD.items():
        setattr(Group, _name, getattr(Group, _new))
