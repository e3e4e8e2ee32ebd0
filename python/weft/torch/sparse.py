"""Sums of sparse tensors: all ranks get the entries of all, and each adds them up."""

from __future__ import annotations

from typing import Any

import torch


def gather(group: Any, tensor: Any, calls: Any) -> None:
    """Begin the sum of a sparse tensor over all ranks of a group, in place.

    How many entries each rank has must be known first; this waits for it, and so for all that was
    begun before.
    """
    own, ranks = tensor.coalesce(), range(group._size)
    counts = [torch.zeros(1, dtype=torch.int64) for _ in ranks]
    group.allgather([counts], [torch.tensor([own._nnz()])]).wait()
    given = [own.indices(), own.values()]
    indices = [given[0].new_empty((given[0].shape[0], int(count))) for count in counts]
    values = [given[1].new_empty((int(count), *given[1].shape[1:])) for count in counts]
    calls.gather(given, [indices, values])

    def add_up() -> None:
        entries = torch.cat(indices, 1), torch.cat(values)
        with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
            tensor.copy_(torch.sparse_coo_tensor(*entries, own.shape).coalesce())

    calls.then(add_up)
