"""A process group over channels that Weft balances.

Ranks find each other through the store that `init_process_group` has: each leaves the handle of its
listener there. Channels are made when they are first used. Collectives go on one after the
other in a thread of the native core; sends and receives beside them.
"""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._C._distributed_c10d import Backend
from torch.distributed import ProcessGroup

from weft import _native
from weft.torch.memory import BYTES, Span, Tensors, element, parts, rows
from weft.torch.work import Work

_REDUCTIONS = {
    "SUM": "sum",
    "AVG": "avg",
    "PRODUCT": "product",
    "MIN": "min",
    "MAX": "max",
    "BAND": "and",
    "BOR": "or",
    "BXOR": "xor",
}


class WeftWarning(UserWarning):
    """Something about the deployment that one should know."""


@cache
def _nic() -> _native.Nic:
    """Open the NIC of this process; of several, each process of a host takes another."""
    nic = _native.Nic(int(os.environ.get("LOCAL_RANK", "0")))
    for line in nic.warnings:
        warnings.warn(line, WeftWarning, stacklevel=2)
    if nic.stats:
        atexit.register(_leave_statistics, nic)
    return nic


def _leave_statistics(nic: _native.Nic) -> None:
    if nic.stats:
        # A list, as the NCCL plugin leaves it, which may have several.
        Path(nic.stats.replace("%p", str(os.getpid()))).write_text(f"[{nic.statistics()}]\n")


def statistics() -> str:
    """Return bytes, time-outs and re-routes by peer and path of this process, as JSON."""
    return _nic().statistics()


def _reduction(wanted: Any) -> str:
    for theirs, ours in _REDUCTIONS.items():
        if wanted == getattr(distributed.ReduceOp, theirs):
            return ours
    known = ", ".join(_REDUCTIONS)
    raise ValueError(f"weft: this reduction is not there; use one of {known}")


class Operations:
    """What a rank of a group does, whatever PyTorch takes it for."""

    _size: int
    _rank: int
    _joined: _native.Joined

    def _meet(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        """Find the other ranks."""
        self._rank, self._size = rank, size
        own = _nic().listen()
        store.set(f"weft/{rank}", own.handle().hex())
        handles = [bytes.fromhex(store.get(f"weft/{other}").decode()) for other in range(size)]
        self._joined = own.join(handles, rank, timeout.total_seconds())
        # PyTorch holds the half of it that is C++, and calls the other.
        _here.add(self)

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name.
        """Return the name of the back end."""
        return "weft"

    def name(self) -> str:
        """Return the same."""
        return "weft"

    def shutdown(self) -> None:
        """Close all channels; what is under way fails."""
        self._joined.close()
        _here.discard(self)

    def abort(self) -> None:
        """Do the same."""
        self.shutdown()

    # Operations. Signatures are PyTorch's.

    def allreduce(self, tensors: list[Any], opts: Any = None) -> Work:
        """Reduce each tensor over all ranks, in place."""
        reduction = _reduction(opts.reduceOp)
        calls = []
        for tensor in tensors:
            use = Tensors()
            span = use.write(tensor, also_read=True)
            calls.append(self._call("all-reduce", use, [], [span], element(tensor), reduction))
        return _work(calls, tensors)

    def allreduce_coalesced(self, tensors: list[Any], opts: Any = None) -> Work:
        """Do the same."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: list[Any], opts: Any) -> Work:
        """Reduce a tensor over all ranks, in place at the root."""
        tensor, use = _single(tensors), Tensors()
        span = use.write(tensor, also_read=True)
        reduction, root = _reduction(opts.reduceOp), opts.rootRank
        call = self._call("reduce", use, [], [span], element(tensor), reduction, root)
        return _work([call], tensors)

    def broadcast(self, tensors: list[Any], opts: Any) -> Work:
        """Give all ranks the root's tensor."""
        use = Tensors()
        span = use.write(_single(tensors), also_read=True)
        return _work([self._call("broadcast", use, [], [span], peer=opts.rootRank)], tensors)

    def allgather(
        self, output_tensors: list[list[Any]], input_tensors: list[Any], opts: Any = None
    ) -> Work:
        """Give all ranks the tensors of all."""
        outputs, use = _single(output_tensors), Tensors()
        given = use.read(_single(input_tensors))
        taken = [use.write(output) for output in outputs]
        return _work([self._call("all-gather", use, [given], taken)], [outputs])

    def allgather_coalesced(
        self, output_lists: list[list[Any]], input_list: list[Any], opts: Any = None
    ) -> Work:
        """Do so with several tensors."""
        calls = []
        for outputs, given in zip(output_lists, input_list, strict=True):
            use = Tensors()
            span = use.read(given)
            calls.append(
                self._call("all-gather", use, [span], [use.write(output) for output in outputs])
            )
        return _work(calls, output_lists)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Work:
        """Give all ranks the tensors of all, one behind the other."""
        return self.all_gather_single_coalesced([output], [input], opts)

    def all_gather_single_coalesced(
        self, outputs: list[Any], inputs: list[Any], opts: Any = None
    ) -> Work:
        """Do so with several tensors."""
        calls = []
        for output, given in zip(outputs, inputs, strict=True):
            use = Tensors()
            span = use.read(given)
            taken = parts(use.write(output), self._size, "all-gather")
            calls.append(self._call("all-gather", use, [span], taken))
        return _work(calls, outputs)

    def reduce_scatter(
        self, output_tensors: list[Any], input_tensors: list[list[Any]], opts: Any
    ) -> Work:
        """Give each rank its tensor of those reduced over all ranks."""
        output, inputs, use = _single(output_tensors), _single(input_tensors), Tensors()
        given = [use.read(tensor) for tensor in inputs]
        taken, kind = use.write(output), (element(output), _reduction(opts.reduceOp))
        return _work([self._call("reduce-scatter", use, given, [taken], *kind)], output_tensors)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any) -> Work:
        """Give each rank its part of a tensor that is reduced over all ranks."""
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Any], inputs: list[Any], opts: Any
    ) -> Work:
        """Do so with several tensors."""
        calls = []
        for output, whole in zip(outputs, inputs, strict=True):
            use = Tensors()
            given = parts(use.read(whole), self._size, "reduce-scatter")
            taken, kind = use.write(output), (element(output), _reduction(opts.reduceOp))
            calls.append(self._call("reduce-scatter", use, given, [taken], *kind))
        return _work(calls, outputs)

    def alltoall(self, output_tensors: list[Any], input_tensors: list[Any], opts: Any) -> Work:
        """Give each rank the tensors that are its own."""
        use = Tensors()
        given = [use.read(tensor) for tensor in input_tensors]
        taken = [use.write(tensor) for tensor in output_tensors]
        return _work([self._call("all-to-all", use, given, taken)], output_tensors)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
    ) -> Work:
        """Give each rank its rows of everybody's tensor."""
        use, ranks = Tensors(), self._size
        given = rows(use.read(input), input, input_split_sizes, ranks, "all-to-all")
        taken = rows(use.write(output), output, output_split_sizes, ranks, "all-to-all")
        return _work([self._call("all-to-all", use, given, taken)], [output])

    def gather(self, output_tensors: list[list[Any]], input_tensors: list[Any], opts: Any) -> Work:
        """Give the root the tensors of all."""
        use = Tensors()
        given = use.read(_single(input_tensors))
        outputs = output_tensors[0] if self._rank == opts.rootRank else []
        taken = [use.write(tensor) for tensor in outputs]
        call = self._call("gather", use, [given], taken, peer=opts.rootRank)
        return _work([call], [outputs])

    def gather_single(self, output: Any, input: Any, opts: Any) -> Work:
        """Give the root the tensors of all, one behind the other."""
        use = Tensors()
        given, is_root = use.read(input), self._rank == opts.rootRank
        taken = parts(use.write(output), self._size, "gather") if is_root else []
        return _work([self._call("gather", use, [given], taken, peer=opts.rootRank)], [output])

    def scatter(self, output_tensors: list[Any], input_tensors: list[list[Any]], opts: Any) -> Work:
        """Give each rank its tensor of the root's."""
        use = Tensors()
        inputs = input_tensors[0] if self._rank == opts.rootRank else []
        given = [use.read(tensor) for tensor in inputs]
        taken = use.write(_single(output_tensors))
        call = self._call("scatter", use, given, [taken], peer=opts.rootRank)
        return _work([call], output_tensors)

    def barrier(self, opts: Any = None) -> Work:
        """Wait for all ranks."""
        return _work([self._call("barrier", Tensors(), [], [])], [])

    def send(self, tensors: list[Any], dstRank: int, tag: int = 0) -> Work:  # noqa: N803
        """Send a tensor to one rank. It is over when it has been received."""
        use = Tensors()
        span = use.read(_single(tensors))
        return _work([self._call("send", use, [span], [], peer=dstRank, tag=tag)], [])

    def recv(self, tensors: list[Any], srcRank: int, tag: int = 0) -> Work:  # noqa: N803
        """Receive a tensor from one rank."""
        use = Tensors()
        span = use.write(_single(tensors))
        return _work([self._call("receive", use, [], [span], peer=srcRank, tag=tag)], tensors)

    def recv_anysource(self, tensors: list[Any], tag: int = 0) -> Work:
        """Refuse: channels are between two ranks each."""
        raise NotImplementedError("weft: a receive needs the rank that sends; give src")

    # As they were called before PyTorch 2.15.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
    gather_into_tensor = gather_single

    def _call(
        self,
        operation: str,
        use: Tensors,
        inputs: list[Span],
        outputs: list[Span],
        kind: str = BYTES,
        reduction: str = "sum",
        peer: int = 0,
        tag: int = 0,
    ) -> tuple[_native.Pending, Tensors]:
        try:
            pending = self._joined.submit(
                operation, kind, reduction, inputs, outputs, use.kept, peer, tag
            )
        except _native.GroupError as error:
            raise distributed.DistBackendError(str(error)) from None
        return pending, use


class Group(Operations, ProcessGroup):
    """A rank of a group, for the tensors of a processor.

    A whole group and not a `Backend` of one, since PyTorch tells nobody when the work of a back end
    written in Python is over (`Work.is_completed`).
    """

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta, *, named: bool = True
    ) -> None:
        ProcessGroup.__init__(self, rank, size)
        self._meet(store, rank, size, timeout)
        self._part = _Part.of(self) if named else None
        if self._part is not None:
            kind = ProcessGroup.BackendType.CUSTOM
            self._set_default_backend(kind)
            self._register_backend(torch.device("cpu"), kind, self._part)

    def _get_backend(self, device: Any) -> Any:
        return self._part or self


class _Part(Operations, Backend):
    """The group as a back end of itself: what PyTorch keeps the group's name in.

    With a name functional collectives find it, and what is built on them: `DeviceMesh`,
    `fully_shard`. Older versions of PyTorch (before 2.15, or so) have no back ends in Python.
    """

    supports_coalescing = False
    supports_splitting = False

    @classmethod
    def of(cls, group: Group) -> _Part | None:
        """Make it, if this version has such a thing."""
        try:
            part = cls(group._rank, group._size)
        except TypeError:
            return None
        part._rank, part._size, part._joined = group._rank, group._size, group._joined
        return part


_here: set[Operations] = set()
"""All that have not been shut down."""


def _work(calls: list[tuple[_native.Pending, Tensors]], result: list[Any]) -> Work:
    finish = [one for _, use in calls for one in use.finish]
    return Work([pending for pending, _ in calls], result, finish)


def _single(tensors: Sequence[Any]) -> Any:
    if len(tensors) != 1:
        raise ValueError(f"weft: one tensor is to be given, not {len(tensors)}")
    return tensors[0]
