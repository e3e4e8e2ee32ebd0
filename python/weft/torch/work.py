"""What an operation returns.

PyTorch has two halves of it, one in Python and one in C++, and C++ may hold its half when nobody
holds the other (DDP's `join` does). So what is under way, `_Progress`, belongs to the half in C++:
`PythonCallbackWork` calls it. Versions of PyTorch that have no such class (before 2.9, or so) lose
what C++ alone holds.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from torch import distributed
from torch._C import _distributed_c10d as c10d

from weft import _native
from weft._native import Pending
from weft.torch.untraced import untraced

_HELD = hasattr(c10d, "PythonCallbackWork")
"""Whether the half in C++ lives by itself."""
_Base: Any = c10d.PythonCallbackWork if _HELD else distributed.Work

_FOREVER = timedelta(0)
"""PyTorch's word for no limit of its own: the operation's holds."""


_LAST_S = 1.0
"""How long the process waits at its end for those who are still told of operations."""


class _Failure:
    """The value of the future of an operation that failed.

    Futures of Python raise the error. C++ knows of none in a future that Python made: it takes the
    tensors out of the value, by pickling it.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> Any:
        raise distributed.DistBackendError(self.text)


class _Progress:
    """What is under way."""

    def __init__(
        self, pending: list[Pending], result: list[Any], finish: list[Callable[[], object]]
    ) -> None:
        self.pending = pending
        self.result = result
        self.finish = finish
        """What is left to do with what came, once."""
        self.wrong: str | None = None
        """What went wrong there."""
        self.future: Any = None
        self.is_settled = False
        """Whether somebody sets the future, or has done so."""
        self.lock = threading.Lock()

    def is_over_within(self, limit_s: float | None) -> bool:
        """Wait for so long; tell whether it is over, well or not."""
        try:
            return all(pending.wait(limit_s) for pending in self.pending)
        except _native.GroupError:
            return True

    def is_over(self) -> bool:
        """Tell whether it is over, well or not, and all is where it belongs."""
        if not all(pending.is_over() for pending in self.pending):
            return False
        self.complete()
        return True

    def error(self) -> str | None:
        """Say why it failed, if it did."""
        errors = (pending.error() for pending in self.pending)
        return next(filter(None, errors), self.wrong)

    def complete(self) -> str | None:
        """Put everything where it belongs, once the core is done; say why it failed, if it did."""
        if self.finish and not self.error():
            with self.lock:
                try:
                    while self.finish:
                        self.finish[0]()
                        del self.finish[0]
                except Exception as wrong:  # noqa: BLE001 - whoever waits hears of it.
                    self.wrong = f"weft: {wrong}"
                    self.finish.clear()
        return self.error()

    def wait(self, timeout: timedelta = _FOREVER) -> bool:
        """Wait until it is over, and put everything where it belongs."""
        limit = timeout.total_seconds() if timeout > _FOREVER else None
        if not self.is_over_within(limit):
            raise distributed.DistBackendError(f"weft: timed out: not over within {limit:g} s")
        error = self.complete()
        with self.lock:
            is_settled, self.is_settled = self.is_settled, True
        if not (is_settled or self.future.done()):
            # Calls what waits for it, which may wait in turn: no lock is held.
            self._settle(error)
        elif not self.future.done():
            # Another thread is about to.
            self.future.wait()
        if error:
            raise distributed.DistBackendError(error)
        return True

    def _settle(self, error: str | None) -> None:
        if not error:
            self.future.set_result(self.result)
            return

        def fail(_: object) -> None:
            raise distributed.DistBackendError(error)

        self.future._set_unwrap_func(fail)
        self.future.set_result(_Failure(error))


class Work(_Base):
    """An operation under way. Its tensors are kept until it is over."""

    def __init__(
        self,
        pending: list[Pending],
        result: list[Any],
        finish: list[Callable[[], object]],
        *,
        sequence: int = 0,
        profiled: tuple[str, list[Any]] | None = None,
        is_awaited: bool = False,
    ) -> None:
        self._progress = progress = _Progress(pending, result, finish)
        if _HELD:
            super().__init__(progress.wait)
            progress.future = _Base.get_future(self)
        else:
            super().__init__()
            progress.future = torch.futures.Future()
        self._sequence = sequence
        self._profiled = profiled
        """What a profiler is to see: name and tensors."""
        self._is_awaited = is_awaited
        self._is_begun = False
        self._settled = threading.Event()

    def begin(self) -> Work:
        """Have it settled as soon as it is over, whoever still holds it.

        Where the caller waits at once, there is no need. An event of the profiler must not begin
        within one that ends earlier, as PyTorch's own for the call does.
        """
        if self._is_begun:
            return self
        self._is_begun = True
        if self._profiled:
            name, tensors = self._profiled
            shapes = str([list(tensor.shape) for tensor in tensors])
            # It ends with the future, in the thread that settles it.
            event = torch.ops.profiler._record_function_enter_new(name, shapes)
            torch.ops.profiler._call_end_callbacks_on_jit_fut(event, self._progress.future)
        if self._profiled or not self._is_awaited:
            _watch().add(self)
        return self

    @untraced
    def wait(self, timeout: timedelta = _FOREVER) -> bool:
        """Wait until it is over.

        Raises:
            DistBackendError: It failed, or not all of it was over in time.
        """
        limit = timeout.total_seconds() if timeout > _FOREVER else None
        if not self._progress.is_over_within(limit):
            raise distributed.DistBackendError(f"weft: timed out: not over within {limit:g} s")
        if self._profiled and self._is_begun and not _watch().is_here():
            # The profiler takes for asynchronous what another thread ends.
            self._settled.wait()
        return self._end()

    def _end(self) -> bool:
        # The half in C++ takes note of it, too.
        return bool(_Base.wait(self)) if _HELD else self._progress.wait()

    @untraced
    def is_completed(self) -> bool:
        """Tell whether it is over, well or not."""
        return self._progress.is_over()

    def is_success(self) -> bool:
        """Tell whether it is over and all went well."""
        return self.is_completed() and self._progress.error() is None

    def exception(self) -> Exception | None:
        """Say why it failed, if it did."""
        error = self._progress.error()
        return distributed.DistBackendError(error) if error else None

    def result(self) -> list[Any]:
        """Return the tensors that it wrote."""
        return self._progress.result

    def source_rank(self) -> int:
        """Return the rank that has sent what was received.

        Raises:
            DistBackendError: It is no receive, or not over.
        """
        for pending in self._progress.pending:
            source = pending.source()
            if source is not None:
                return source
        raise distributed.DistBackendError("weft: only a receive that is over has a source")

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Wait: on a processor there are no streams to hold back."""
        self.wait()

    @untraced
    def get_future(self) -> Any:
        """Return a future of the tensors that it writes."""
        if self._is_awaited:
            _watch().add(self)
        self.begin()
        return self._progress.future

    def _get_sequence_number(self) -> int:
        return self._sequence

    def settle(self) -> None:
        """Do what is left to do once it is over."""
        try:
            self._end()
        except Exception:  # noqa: BLE001, S110 - whoever waits for it hears of it.
            pass
        finally:
            self._settled.set()


class _Watch:
    """Threads that settle operations as they end.

    What settling one calls may wait for another, so one thread more is there than are busy.
    """

    def __init__(self) -> None:
        self._vigil = _native.Vigil()
        self._works: dict[int, Work] = {}
        self._numbers = iter(range(1 << 62))
        self._lock = threading.Lock()
        self._idle = 0
        """Threads that wait, or are about to."""
        self._here = threading.local()
        self._threads: list[threading.Thread] = []
        self._start()
        atexit.register(self._close)

    def _start(self) -> None:
        thread = threading.Thread(target=self._go, name="weft-works", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        thread.start()
        self._threads.append(thread)
        self._idle += 1

    def _close(self) -> None:
        self._vigil.close()
        # An interpreter that ends stops threads wherever they are, which C++ does not survive.
        end = time.monotonic() + _LAST_S
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0))

    def is_here(self) -> bool:
        return hasattr(self._here, "watches")

    def add(self, work: Work) -> None:
        number = next(self._numbers)
        self._works[number] = work
        self._vigil.add(work._progress.pending, number)

    def _go(self) -> None:
        self._here.watches = True
        done = False
        while (number := self._vigil.next(done)) is not None:
            done = True
            with self._lock:
                self._idle -= 1
                if not self._idle:
                    self._relieve()
            self._works.pop(number).settle()
            with self._lock:
                if self._idle > 1:
                    self._vigil.leave()
                    return
                self._idle += 1

    def _relieve(self) -> None:
        # If no thread is to be had, this one comes back.
        with suppress(RuntimeError):
            self._start()


@cache
def _watch() -> _Watch:
    return _Watch()


# A child has no such thread.
os.register_at_fork(after_in_child=_watch.cache_clear)
