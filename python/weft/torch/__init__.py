"""PyTorch's collectives over a fabric that Weft balances: the back end ``weft``.

Importing it makes ``torch.distributed.init_process_group("weft")`` work, for tensors in the
memory of the processor. Where ``weft`` is installed, PyTorch imports it by itself. Which scheme on
which fabric is told by the variables ``WEFT_CONFIG``, ``WEFT_SCHEME`` and so on; without them
connections are hashed as those of any other program. ``group`` is the process group, ``operations``
what it does, ``work`` what an operation returns, ``memory`` turns tensors into addresses.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "weft.torch needs PyTorch, which is not installed; run: pip install torch",
        name="torch",
    ) from None

from weft.torch.backend import register

__all__ = ["register"]

register()
