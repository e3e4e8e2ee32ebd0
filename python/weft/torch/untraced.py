"""Keeps `torch.compile` away from code that is no part of any graph: it calls the native core."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def untraced(function: Callable[..., Any]) -> Any:
    """A function that `torch.compile` calls as it is.

    As `torch.compiler.disable`, which loads Dynamo: seconds, for programs that compile nothing.
    """
    disabled: Callable[..., Any] | None = None

    @wraps(function)
    def called(*given: Any, **more: Any) -> Any:
        nonlocal disabled
        if disabled is None:
            if "torch._dynamo.decorators" not in sys.modules:
                return function(*given, **more)
            disabled = torch._dynamo.disable(function)
        return disabled(*given, **more)

    # Its calls are not traced, and neither is it itself.
    called._torchdynamo_disable = True  # type: ignore[attr-defined]
    _skip(called)
    return called


def _skip(function: Any) -> None:
    """Have Dynamo leave the function's own lines alone, but not what it calls."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        frames.skip_code(function.__code__)
    elif hasattr(frames, "set_code_exec_strategy"):  # From PyTorch 2.8 or so on.
        do = frames._FrameAction
        only_this = frames._FrameExecStrategy(do.SKIP, do.DEFAULT)
        frames.set_code_exec_strategy(function.__code__, only_this)
