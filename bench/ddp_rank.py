"""A rank of the training that `ddp.py` measures. It knows PyTorch, and of Weft only the name.

The job comes as the first line of standard input, as JSON. Then each line ``train N`` is answered
with the seconds of N iterations, and ``save FILE`` with how many bits of the parameters differ
from rank 0's, after rank 0 has left them there.
"""

import json
import os
import sys
import time
from datetime import timedelta
from typing import Any

AHEAD = -10
"""Of other work on this machine."""


def main() -> None:
    """Train as one is told."""
    job = json.loads(sys.stdin.readline())
    # Before anything starts a thread: a namespace is a thread's.
    from weft.testbed import system

    system.die_with(os.getppid())
    system.enter(job["namespace"])
    # Links idle while their hosts wait for a core.
    os.nice(AHEAD)
    os.environ.update(job["variables"])

    import torch
    from torch import distributed

    torch.set_num_threads(1)
    device = torch.device("cuda", 0) if job["backend"] == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group(
        job["backend"],
        init_method=f"file://{job['meeting']}",
        rank=job["rank"],
        world_size=job["ranks"],
        timeout=timedelta(seconds=60),
    )
    training = Training(torch, job, device)
    say({"gradient_bytes": training.gradient_bytes})
    for line in sys.stdin:
        word, rest = line.split()
        if word == "train":
            say({"seconds": [training.step() for _ in range(int(rest))]})
        else:
            say({"differ": training.save(rest)})
    distributed.destroy_process_group()


class Training:
    """A model and its data: the same at every rank but for the samples."""

    def __init__(self, torch: Any, job: dict[str, Any], device: Any) -> None:
        self._torch, self._rank, self._device = torch, job["rank"], device
        torch.manual_seed(1)
        width = job["width"]
        model = torch.nn.Sequential(
            torch.nn.Linear(width // 2, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width // 2),
        ).to(device)
        self._samples = torch.Generator().manual_seed(job["rank"] + 100)
        self._shape = (job["samples"], width // 2)
        self.gradient_bytes = sum(4 * one.numel() for one in model.parameters())
        self._model = torch.nn.parallel.DistributedDataParallel(model)
        self._optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(self) -> float:
        """One iteration; its seconds, from all ranks being there."""
        torch = self._torch
        given = torch.randn(self._shape, generator=self._samples).to(self._device)
        torch.distributed.barrier()
        begun = time.perf_counter()
        self._optimiser.zero_grad()
        torch.nn.functional.mse_loss(self._model(given), given.sin()).backward()
        self._optimiser.step()
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    def save(self, path: str) -> int:
        """Leave the parameters in a file; how many of rank 0's are others here."""
        torch = self._torch
        own = torch.cat([one.detach().flatten() for one in self._model.parameters()])
        first = own.clone()
        torch.distributed.broadcast(first, 0)
        if self._rank == 0:
            torch.save(own.cpu(), path)
        return int((own.view(torch.int32) != first.view(torch.int32)).sum())


def say(what: dict[str, Any]) -> None:
    """Answer with a line."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
