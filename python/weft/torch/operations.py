"""The operations of a rank of a group, as PyTorch calls them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed import ReduceOp

from weft import _native
from weft.torch import backend, barrier, sparse
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

_MOST_TAG = 2**32 - 1


def _reduction(wanted: Any) -> str:
    for theirs, ours in _REDUCTIONS.items():
        if wanted == getattr(ReduceOp, theirs):
            return ours
    known = ", ".join(_REDUCTIONS)
    raise ValueError(f"weft: this reduction is not supported; use one of {known}")


class _Asked:
    """What a call asks for: PyTorch's object of options, or the options one by one."""

    def __init__(self, given: tuple[Any, ...], more: dict[str, Any]) -> None:
        self.reduction = "sum"
        self.root = 0
        self.limit_s: float | None = None
        self.waits = False
        """Whether the caller waits for it at once."""
        for one in (*given, *more.values()):
            self._take(one)

    def _take(self, one: Any) -> None:
        if isinstance(one, int):
            self.root = one
        elif isinstance(one, timedelta):
            # A negative one is PyTorch's word for none.
            self.limit_s = one.total_seconds() if one > timedelta(0) else None
        elif isinstance(one, (ReduceOp, ReduceOp.RedOpType)):
            self.reduction = _reduction(one)
        elif one is not None:
            self._take(one.timeout)
            self._take(getattr(one, "reduceOp", None))
            self._take(getattr(one, "rootRank", None))
            self.waits = not getattr(one, "asyncOp", True)


class Operations:
    """What a rank of a group does, whatever PyTorch takes it for.

    Signatures are PyTorch's. What follows the tensors is an object of options, or options one by
    one: ``op``, ``root``, ``timeout``.
    """

    _size: int
    _rank: int
    _joined: _native.Joined
    _store: Any
    _latest_sparse: weakref.ref[Work] | None = None

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name.
        """Return the name of the back end."""
        return backend.NAME

    name = getBackendName

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long operations that begin from now on may take."""
        self._joined.set_limit(timeout.total_seconds())

    def allreduce(self, tensors: Any, *given: Any, **more: Any) -> Work:
        """Reduce each tensor over all ranks, in place."""
        tensors, asked = _listed(tensors), _Asked(given, more)
        if any(tensor.layout == torch.sparse_coo for tensor in tensors):
            return self._allreduce_sparse(tensors, asked)
        calls = self._calls("all_reduce", tensors, asked)
        for tensor in tensors:
            use = Tensors()
            span = use.write(tensor, also_read=True)
            calls.add("all-reduce", use, [], [span], kind=element(tensor))
        return calls.work(tensors)

    allreduce_coalesced = allreduce

    def _allreduce_sparse(self, tensors: list[Any], asked: _Asked) -> Work:
        if asked.reduction != "sum":
            raise ValueError("weft: all-reduce: sparse tensors have a sum only; use SUM")
        # Which may add to the same tensor; to wait for it here is to wait no longer than below.
        earlier = self._latest_sparse() if self._latest_sparse else None
        if earlier:
            with suppress(distributed.DistBackendError):
                earlier.wait()
        calls = self._calls("all_reduce", tensors, asked)
        for tensor in tensors:
            sparse.gather(self, tensor, calls)
        work = calls.work(tensors)
        self._latest_sparse = weakref.ref(work)
        return work

    def reduce(self, tensors: Any, *given: Any, **more: Any) -> Work:
        """Reduce a tensor over all ranks, in place at the root."""
        tensors, asked, use = _listed(tensors), _Asked(given, more), Tensors()
        calls = self._calls("reduce", tensors, asked)
        tensor = _single(tensors)
        span = use.write(tensor, also_read=True)
        calls.add("reduce", use, [], [span], kind=element(tensor), peer=asked.root)
        return calls.work(tensors)

    def broadcast(self, tensors: Any, *given: Any, **more: Any) -> Work:
        """Give all ranks the root's tensor."""
        tensors, asked, use = _listed(tensors), _Asked(given, more), Tensors()
        calls = self._calls("broadcast", tensors, asked)
        span = use.write(_single(tensors), also_read=True)
        calls.add("broadcast", use, [], [span], peer=asked.root)
        return calls.work(tensors)

    def allgather(self, output_tensors: Any, input_tensors: Any, *given: Any, **more: Any) -> Work:
        """Give all ranks the tensors of all."""
        inputs, outputs = _listed(input_tensors), _single(_lists(output_tensors))
        calls = self._calls("all_gather", inputs, _Asked(given, more))
        calls.gather([_single(inputs)], [outputs])
        return calls.work([outputs])

    def allgather_coalesced(
        self, output_lists: list[list[Any]], input_list: list[Any], *given: Any, **more: Any
    ) -> Work:
        """Do so with several tensors: of each rank a list of them."""
        calls = self._calls("all_gather", input_list, _Asked(given, more))
        calls.gather(input_list, [list(of) for of in zip(*output_lists, strict=True)])
        return calls.work(output_lists)

    def all_gather_single(self, output: Any, input: Any, *given: Any, **more: Any) -> Work:
        """Give all ranks the tensors of all, one behind the other."""
        return self.all_gather_single_coalesced([output], [input], *given, **more)

    def all_gather_single_coalesced(
        self, outputs: list[Any], inputs: list[Any], *given: Any, **more: Any
    ) -> Work:
        """Do so with several tensors."""
        calls = self._calls("all_gather", inputs, _Asked(given, more))
        for output, one in zip(outputs, inputs, strict=True):
            use = Tensors()
            span = use.read(one)
            taken = parts(use.write(output), self._size, "all-gather")
            calls.add("all-gather", use, [span], taken)
        return calls.work(outputs)

    def reduce_scatter(
        self, output_tensors: Any, input_tensors: Any, *given: Any, **more: Any
    ) -> Work:
        """Give each rank its tensor of those reduced over all ranks."""
        outputs, inputs, use = _listed(output_tensors), _single(_lists(input_tensors)), Tensors()
        calls = self._calls("reduce_scatter", inputs, _Asked(given, more))
        read = [use.read(tensor) for tensor in inputs]
        output = _single(outputs)
        calls.add("reduce-scatter", use, read, [use.write(output)], kind=element(output))
        return calls.work(outputs)

    def reduce_scatter_single(self, output: Any, input: Any, *given: Any, **more: Any) -> Work:
        """Give each rank its part of a tensor that is reduced over all ranks."""
        return self.reduce_scatter_single_coalesced([output], [input], *given, **more)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Any], inputs: list[Any], *given: Any, **more: Any
    ) -> Work:
        """Do so with several tensors."""
        calls = self._calls("reduce_scatter", inputs, _Asked(given, more))
        for output, whole in zip(outputs, inputs, strict=True):
            use = Tensors()
            read = parts(use.read(whole), self._size, "reduce-scatter")
            calls.add("reduce-scatter", use, read, [use.write(output)], kind=element(output))
        return calls.work(outputs)

    def alltoall(
        self, output_tensors: list[Any], input_tensors: list[Any], *given: Any, **more: Any
    ) -> Work:
        """Give each rank the tensors that are its own."""
        calls, use = self._calls("all_to_all", input_tensors, _Asked(given, more)), Tensors()
        read = [use.read(tensor) for tensor in input_tensors]
        calls.add("all-to-all", use, read, [use.write(tensor) for tensor in output_tensors])
        return calls.work(output_tensors)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        *given: Any,
        **more: Any,
    ) -> Work:
        """Give each rank its rows of everybody's tensor."""
        calls, use = self._calls("all_to_all", [input], _Asked(given, more)), Tensors()
        read = rows(use.read(input), input, input_split_sizes, self._size, "all-to-all")
        taken = rows(use.write(output), output, output_split_sizes, self._size, "all-to-all")
        calls.add("all-to-all", use, read, taken)
        return calls.work([output])

    def gather(self, output_tensors: Any, input_tensors: Any, *given: Any, **more: Any) -> Work:
        """Give the root the tensors of all."""
        inputs, asked, use = _listed(input_tensors), _Asked(given, more), Tensors()
        calls = self._calls("gather", inputs, asked)
        read = use.read(_single(inputs))
        outputs = _single(_lists(output_tensors)) if self._rank == asked.root else []
        taken = [use.write(tensor) for tensor in outputs]
        calls.add("gather", use, [read], taken, peer=asked.root)
        return calls.work([outputs])

    def gather_single(self, output: Any, input: Any, *given: Any, **more: Any) -> Work:
        """Give the root the tensors of all, one behind the other."""
        asked, use = _Asked(given, more), Tensors()
        calls, is_root = self._calls("gather", [input], asked), self._rank == asked.root
        read = use.read(input)
        taken = parts(use.write(output), self._size, "gather") if is_root else []
        calls.add("gather", use, [read], taken, peer=asked.root)
        return calls.work([output])

    def scatter(self, output_tensors: Any, input_tensors: Any, *given: Any, **more: Any) -> Work:
        """Give each rank its tensor of the root's."""
        outputs, asked, use = _listed(output_tensors), _Asked(given, more), Tensors()
        calls = self._calls("scatter", outputs, asked)
        inputs = _single(_lists(input_tensors)) if self._rank == asked.root else []
        read = [use.read(tensor) for tensor in inputs]
        calls.add("scatter", use, read, [use.write(_single(outputs))], peer=asked.root)
        return calls.work(outputs)

    def barrier(self, *given: Any, **more: Any) -> Work:
        """Wait for all ranks."""
        calls = self._calls("barrier", [], _Asked(given, more))
        calls.add("barrier", Tensors(), [], [])
        return calls.work([])

    def monitored_barrier(self, *given: Any, wait_all_ranks: bool = False, **more: Any) -> None:
        """Wait for all ranks; rank 0 names those that do not come.

        Raises:
            DistBackendError: Somebody has not come in time.
        """
        flags = [one for one in given if isinstance(one, bool)]
        asked = _Asked(tuple(one for one in given if not isinstance(one, bool)), more)
        self._barriers = number = getattr(self, "_barriers", 0) + 1
        who = (self._rank, self._size)
        barrier.pass_by(self._store, number, who, asked.limit_s, any(flags) or wait_all_ranks)

    def send(self, tensors: list[Any], dstRank: int, tag: int = 0) -> Work:  # noqa: N803
        """Send a tensor to one rank. It is over when it has been received."""
        calls, use = self._calls("send", tensors, _Asked((), {})), Tensors()
        calls.add("send", use, [use.read(_single(tensors))], [], peer=dstRank, tag=tag)
        return calls.work([])

    def recv(self, tensors: list[Any], srcRank: int, tag: int = 0) -> Work:  # noqa: N803
        """Receive a tensor from one rank."""
        calls, use = self._calls("recv", tensors, _Asked((), {})), Tensors()
        calls.add("receive", use, [], [use.write(_single(tensors))], peer=srcRank, tag=tag)
        return calls.work(tensors)

    def recv_anysource(self, tensors: list[Any], tag: int = 0) -> Work:
        """Receive a tensor from whoever sends first."""
        calls, use = self._calls("recvAnySource", tensors, _Asked((), {})), Tensors()
        calls.add("receive", use, [], [use.write(_single(tensors))], peer=None, tag=tag)
        return calls.work(tensors)

    # As they were called before PyTorch 2.15.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
    gather_into_tensor = gather_single
    _set_default_timeout = set_timeout

    def _get_sequence_number_for_group(self) -> int:
        return getattr(self, "_sequence", 0)

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin with 0 at all ranks."""

    def _hand_out(self, work: Work) -> Work:
        return work.begin()

    def _calls(self, title: str, tensors: Sequence[Any], asked: _Asked) -> _Calls:
        if title not in ("send", "recv", "recvAnySource"):
            self._sequence = self._get_sequence_number_for_group() + 1
        return _Calls(self, title, tensors, asked)


class _Calls:
    """The calls of the native core that one operation makes."""

    def __init__(self, of: Operations, title: str, tensors: Sequence[Any], asked: _Asked) -> None:
        self._of, self._asked = of, asked
        is_profiled = torch.autograd._profiler_enabled()
        self._profiled = (f"{of.getBackendName()}:{title}", list(tensors)) if is_profiled else None
        self._pending: list[_native.Pending] = []
        self._finish: list[Any] = []

    def add(
        self,
        operation: str,
        use: Tensors,
        inputs: list[Span],
        outputs: list[Span],
        *,
        kind: str = BYTES,
        peer: int | None = 0,
        tag: int = 0,
    ) -> None:
        """Begin one."""
        if not 0 <= tag <= _MOST_TAG:
            raise ValueError(f"weft: {operation}: tag {tag}: use 0 to {_MOST_TAG}")
        inputs = use.apart(inputs, outputs, self._of._rank)
        how = (self._asked.reduction, inputs, outputs, use.kept, peer, tag, self._asked.limit_s)
        try:
            pending = self._of._joined.submit(operation, kind, *how, use.before, use.after)
        except _native.GroupError as error:
            raise distributed.DistBackendError(str(error)) from None
        self._pending.append(pending)

    def gather(self, inputs: Sequence[Any], outputs: Sequence[list[Any]]) -> None:
        """Begin to give all ranks each of the inputs: of each the outputs, by rank."""
        for one, taken in zip(inputs, outputs, strict=True):
            use = Tensors()
            span = use.read(one)
            self.add("all-gather", use, [span], [use.write(output) for output in taken])

    def then(self, finish: Any) -> None:
        """Have something done when all of them are over."""
        self._finish.append(finish)

    def work(self, result: list[Any]) -> Work:
        """What the operation returns."""
        work = Work(
            self._pending,
            result,
            self._finish,
            sequence=self._of._get_sequence_number_for_group(),
            profiled=self._profiled,
            is_awaited=self._asked.waits,
        )
        return self._of._hand_out(work)


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _lists(tensors: Any) -> list[list[Any]]:
    """A list of lists, where there is only one of them."""
    flat = len(tensors) > 0 and isinstance(tensors[0], torch.Tensor)
    return [tensors] if flat else tensors


def _single(tensors: Sequence[Any]) -> Any:
    if len(tensors) != 1:
        raise ValueError(f"weft: expected one tensor, not {len(tensors)}")
    return tensors[0]


NAMES = [
    "allreduce",
    "allreduce_coalesced",
    "reduce",
    "broadcast",
    "allgather",
    "allgather_coalesced",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "alltoall",
    "all_to_all_single",
    "gather",
    "gather_single",
    "scatter",
    "barrier",
    "send",
    "recv",
    "recv_anysource",
]
"""Operations that return a work."""
