"""What an operation returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed import Work as TorchWork

from weft import _native
from weft._native import Pending

_FOREVER = timedelta(0)
"""PyTorch's word for no limit of its own: the group's holds."""


class Work(TorchWork):
    """An operation under way. Its tensors are kept until it is over."""

    def __init__(
        self, pending: list[Pending], result: list[Any], finish: list[Callable[[], object]]
    ) -> None:
        super().__init__()
        self._pending = pending
        self._result = result
        self._finish = finish
        """What is left to do with what came, once."""
        self._lock = threading.Lock()
        self._future: Any = None

    def wait(self, timeout: timedelta = _FOREVER) -> bool:
        """Wait until it is over.

        Raises:
            DistBackendError: It failed, or not all of it was over in time.
        """
        limit = timeout.total_seconds() if timeout > _FOREVER else None
        for pending in self._pending:
            try:
                is_over = pending.wait(limit)
            except _native.GroupError as error:
                raise distributed.DistBackendError(str(error)) from None
            if not is_over:
                raise distributed.DistBackendError(f"weft: not over within {limit:g} s")
        with self._lock:
            while self._finish:
                self._finish.pop(0)()
        return True

    def is_completed(self) -> bool:
        """Tell whether it is over, well or not."""
        return all(pending.is_over() for pending in self._pending)

    def is_success(self) -> bool:
        """Tell whether it is over and all went well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Say why it failed, if it did."""
        errors = (pending.error() for pending in self._pending)
        error = next(filter(None, errors), None)
        return distributed.DistBackendError(error) if error else None

    def result(self) -> list[Any]:
        """Return the tensors that it wrote."""
        return self._result

    def synchronize(self) -> None:
        """Wait: on a processor there are no streams to hold back."""
        self.wait()

    def get_future(self) -> Any:
        """Return a future of the tensors that it writes."""
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = torch.futures.Future()
        if self.is_completed():
            self._settle()
        else:
            watch(self)
        return self._future

    def _settle(self) -> None:
        try:
            self.wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for the future shall have it.
            self._future.set_exception(error)
        else:
            self._future.set_result(self._result)


def watch(work: Work) -> None:
    """Settle a work's future as soon as it can be.

    A thread each: how long operations take has no order that could be relied on.
    """
    threading.Thread(target=work._settle, name="weft-future", daemon=True).start()
