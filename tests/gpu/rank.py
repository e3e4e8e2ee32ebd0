"""A rank of the checks on a GPU: it talks over NCCL, compares every byte, and says how it went.

Usage: python rank.py WORK RANK RANKS MEETING BACKEND. One line that it prints is JSON.
Back end `gloo` does the same on the processor, to try this file where there is no GPU.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

LENGTHS = [0, 1, 1000, 1 << 16, (1 << 20) + 3, 1 << 24]
"""Elements."""
TYPES = [torch.float32, torch.bfloat16, torch.int64]
SIZES = {"64 KiB": 1 << 16, "1 MiB": 1 << 20, "16 MiB": 16 << 20, "128 MiB": 128 << 20}
"""Bytes that a rank gives, where time is taken."""
TIMED_S = 0.5
"""About so long each operation is repeated."""

WORKS: dict[str, Callable[[World], Any]] = {}


class World:
    """What a work gets: its rank, how many there are, and where tensors are."""

    def __init__(self, rank: int, size: int, gpu: bool) -> None:
        self.rank, self.size, self.gpu = rank, size, gpu
        self.device = torch.device("cuda", 0) if gpu else torch.device("cpu")
        self.wrong: list[str] = []

    def pattern(self, length: int, dtype: torch.dtype, rank: int) -> torch.Tensor:
        """What a rank has: whole numbers, small enough that sums of eight of them are exact."""
        places = torch.arange(length, device=self.device)
        return ((places * 7 + rank * 5) % 13).to(dtype)

    def all_of(self, length: int, dtype: torch.dtype) -> list[torch.Tensor]:
        """What all ranks have."""
        return [self.pattern(length, dtype, rank) for rank in range(self.size)]

    def same(self, what: str, got: torch.Tensor, wanted: torch.Tensor) -> None:
        """Note where a result is not what it should be."""
        if not torch.equal(got, wanted):
            differ = int((got != wanted).sum())
            self.wrong.append(f"{what}: {differ} of {got.numel()} elements")


def work(of: Callable[[World], Any]) -> Callable[[World], Any]:
    """Note a work under its name."""
    WORKS[of.__name__] = of
    return of


@work
def collectives(world: World) -> None:
    """Every collective, of every length and type, against its definition."""
    rank, size = world.rank, world.size
    for dtype in TYPES:
        for length in LENGTHS:
            name = f"{length} of {dtype}"
            each = world.all_of(length, dtype)
            total = torch.stack(each).sum(0, dtype=dtype)
            got = each[rank].clone()
            dist.all_reduce(got)
            world.same(f"all_reduce {name}", got, total)
            got = each[rank].clone()
            dist.all_reduce(got, dist.ReduceOp.MAX)
            world.same(f"all_reduce max {name}", got, torch.stack(each).amax(0))
            got = each[rank].clone()
            dist.broadcast(got, size - 1)
            world.same(f"broadcast {name}", got, each[size - 1])
            got = each[rank].clone()
            dist.reduce(got, 0)
            if rank == 0:
                world.same(f"reduce {name}", got, total)
            got = torch.empty(length * size, dtype=dtype, device=world.device)
            dist.all_gather_into_tensor(got, each[rank])
            world.same(f"all_gather {name}", got, torch.cat(each))
            whole = world.all_of(length * size, dtype)
            got = torch.empty(length, dtype=dtype, device=world.device)
            dist.reduce_scatter_tensor(got, whole[rank].clone())
            own = slice(rank * length, (rank + 1) * length)
            world.same(f"reduce_scatter {name}", got, torch.stack(whole).sum(0, dtype=dtype)[own])
            got = torch.empty(length * size, dtype=dtype, device=world.device)
            dist.all_to_all_single(got, whole[rank])
            world.same(f"all_to_all {name}", got, torch.cat([one[own] for one in whole]))
            # Parts of other lengths for each pair.
            parts = [[length * (1 + (a + b) % 3) // 3 for b in range(size)] for a in range(size)]
            given = world.pattern(sum(parts[rank]), dtype, rank)
            taken = [parts[other][rank] for other in range(size)]
            got = torch.empty(sum(taken), dtype=dtype, device=world.device)
            dist.all_to_all_single(got, given, taken, parts[rank])
            wanted = [
                world.pattern(sum(parts[a]), dtype, a).split(parts[a])[rank] for a in range(size)
            ]
            world.same(f"all_to_all of other lengths {name}", got, torch.cat(wanted))
            got = torch.empty(length, dtype=dtype, device=world.device)
            exchange(world, each[rank], got)
            world.same(f"send and receive {name}", got, each[rank - 1])


@work
def groups(world: World) -> None:
    """Communicators of some ranks, at once, and many one after the other; no file stays open."""
    rank, size = world.rank, world.size
    halves = [dist.new_group(range(0, size, 2)), dist.new_group(range(1, size, 2))]
    mine = halves[rank % 2]
    length = 1 << 20
    each = world.all_of(length, torch.float32)
    for _ in range(5):
        whole, half = each[rank].clone(), each[rank].clone()
        one = dist.all_reduce(whole, async_op=True)
        other = dist.all_reduce(half, group=mine, async_op=True)
        one.wait()
        other.wait()
        world.same("all ranks", whole, torch.stack(each).sum(0))
        world.same("half of them", half, torch.stack(each[rank % 2 :: 2]).sum(0))
    opened = []
    for _ in range(4):
        group = dist.new_group(range(size))
        got = each[rank].clone()
        dist.all_reduce(got, group=group)
        world.same("a new group", got, torch.stack(each).sum(0))
        world_sync(world)
        dist.destroy_process_group(group)
        opened.append(sum(1 for _ in Path("/proc/self/fd").iterdir()))
    if opened[-1] > opened[0]:
        world.wrong.append(f"files open after each of four groups: {opened}")


@work
def graphs(world: World) -> None:
    """Collectives in a CUDA graph, replayed with other values."""
    if not world.gpu:
        return
    rank, size, length = world.rank, world.size, 1 << 20
    given = torch.zeros(length, device=world.device)
    taken = torch.zeros(length, device=world.device)
    for _ in range(2):
        taken.copy_(given)
        dist.all_reduce(taken)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        taken.copy_(given)
        dist.all_reduce(taken)
        taken.mul_(2)
        dist.all_reduce(taken)
    for repeat in range(20):
        given.copy_(world.pattern(length, torch.float32, rank) + repeat)
        graph.replay()
        torch.cuda.synchronize()
        total = torch.stack(world.all_of(length, torch.float32)).sum(0) + size * repeat
        world.same(f"replay {repeat}", taken, total * 2 * size)
    # A graph has its communicators' work in it; NCCL waits for it where they are closed.
    del graph


@work
def training(world: World) -> None:
    """DDP and FSDP train as one process does that sees all samples."""
    from torch.distributed.fsdp import fully_shard

    width, steps = 512, 5

    def model() -> torch.nn.Module:
        torch.manual_seed(1)
        return torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.ReLU(), torch.nn.Linear(4 * width, width)
        ).to(world.device)

    draw = torch.Generator().manual_seed(2)
    samples = torch.randn((steps, world.size, 8, width), generator=draw).to(world.device)

    def train(of: torch.nn.Module, own: Callable[[int], torch.Tensor]) -> None:
        optimiser = torch.optim.SGD(of.parameters(), lr=0.1)
        for step in range(steps):
            optimiser.zero_grad()
            given = own(step)
            torch.nn.functional.mse_loss(of(given), given.sin()).backward()
            optimiser.step()

    alone = model()
    train(alone, lambda step: samples[step].flatten(0, 1))
    wanted = [one.detach() for one in alone.parameters()]
    replicated = torch.nn.parallel.DistributedDataParallel(model())
    train(replicated, lambda step: samples[step, world.rank])
    sharded = model()
    for layer in (sharded[0], sharded[2]):
        fully_shard(layer)
    fully_shard(sharded)
    train(sharded, lambda step: samples[step, world.rank])
    found = {
        "DDP": [one.detach() for one in replicated.parameters()],
        "FSDP": [one.full_tensor().detach() for one in sharded.parameters()],
    }
    for name, parameters in found.items():
        for one, other in zip(parameters, wanted, strict=True):
            if not torch.allclose(one, other, rtol=1e-4, atol=1e-5):
                world.wrong.append(f"{name}: {float((one - other).abs().max()):.1e} from alone")


@work
def host_memory(world: World) -> None:
    """Sums of the host's memory over `weft.torch`, beside those of the GPU's, at once."""
    import weft.torch  # noqa: F401

    hosts = dist.new_group(backend="weft")
    for length in LENGTHS:
        each = world.all_of(length, torch.float32)
        total = torch.stack(each).sum(0)
        for _ in range(3):
            ours, theirs = each[world.rank].clone(), each[world.rank].cpu().clone()
            one = dist.all_reduce(ours, async_op=True)
            other = dist.all_reduce(theirs, group=hosts, async_op=True)
            one.wait()
            other.wait()
            world.same(f"{length} on the GPU", ours, total)
            world.same(f"{length} of the host", theirs, total.cpu())


@work
def goes_on(world: World) -> int:
    """All-reduces until rank 0 finds the file `enough`; each rank notes how many it has done.

    Where one fails, and GPU_TEST_ABORTS is set, the communicator is aborted, as applications do
    that go on without a rank.
    """
    folder = Path(os.environ["GPU_TEST_FOLDER"])
    values = torch.empty(1 << 20, device=world.device)
    end = time.monotonic() + 60
    done = 0
    while True:
        over = world.rank == 0 and ((folder / "enough").exists() or time.monotonic() > end)
        values.fill_(2.0 if over else 1.0)
        try:
            dist.all_reduce(values, async_op=True).wait()
            world_sync(world)
        except RuntimeError:
            if "GPU_TEST_ABORTS" in os.environ:
                abort(world)
            raise
        first = float(values[0])
        world.same("while others stop", values, torch.full_like(values, first))
        done += 1
        (folder / f"done-{world.rank}").write_text(str(done))
        if first > world.size:
            return done


def abort(world: World) -> None:
    """Abort the communicator, say how long that took, and end."""
    begin = time.monotonic()
    dist.distributed_c10d._get_default_group()._get_backend(world.device).abort()
    print(f"aborted in {time.monotonic() - begin:.3f} s", flush=True)
    os._exit(3)


@work
def speed(world: World) -> list[dict[str, Any]]:
    """Seconds and processor seconds of each operation and size."""
    rows = []
    for name, given in SIZES.items():
        length = given // 4
        one = torch.ones(length, device=world.device)
        whole = torch.ones(length // world.size * world.size, device=world.device)
        gathered = torch.empty(length * world.size, device=world.device)
        spread, taken = torch.empty_like(whole), torch.empty_like(one)
        part = torch.empty(length // world.size, device=world.device)
        operations: dict[str, Callable[[], Any]] = {
            "all_reduce": partial(dist.all_reduce, one, dist.ReduceOp.MAX),
            "all_gather": partial(dist.all_gather_into_tensor, gathered, one),
            "reduce_scatter": partial(dist.reduce_scatter_tensor, part, whole),
            "all_to_all": partial(dist.all_to_all_single, spread, whole),
            "send and receive": partial(exchange, world, one, taken),
        }
        for operation, call in operations.items():
            rows.append({"operation": operation, "size": name} | timed(world, call))
    return rows


def exchange(world: World, given: torch.Tensor, taken: torch.Tensor) -> None:
    """Send to the right, receive from the left."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    ops = [dist.P2POp(dist.isend, given, right), dist.P2POp(dist.irecv, taken, left)]
    for each in dist.batch_isend_irecv(ops):
        each.wait()


def timed(world: World, call: Callable[[], Any]) -> dict[str, Any]:
    """Repeat an operation, the same number of times at all ranks; seconds of one, alone."""
    for _ in range(2):
        call()
    world_sync(world)
    begin = time.perf_counter()
    call()
    world_sync(world)
    guess = torch.tensor([TIMED_S / max(time.perf_counter() - begin, 1e-6)], device=world.device)
    dist.all_reduce(guess, dist.ReduceOp.MIN)
    count = int(min(max(guess.item(), 3), 1000))
    dist.barrier()
    world_sync(world)
    used = processor_s()
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        world_sync(world)
        seconds.append(time.perf_counter() - begin)
    return {
        "count": count,
        "median_s": statistics.median(seconds),
        "mean_s": statistics.fmean(seconds),
        "best_s": min(seconds),
        "processor_s": (processor_s() - used) / count,
    }


def processor_s() -> float:
    """Processor time of all threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def world_sync(world: World) -> None:
    """Wait until the GPU is done, without spinning."""
    if world.gpu:
        event = torch.cuda.Event(blocking=True)
        event.record()
        event.synchronize()


def main() -> int:
    """Do the work that one is told."""
    name, rank, size, meeting, backend = sys.argv[1:]
    world = World(int(rank), int(size), "nccl" in backend)
    if "GPU_TEST_MERGE_ANYWHERE" in os.environ:
        # NICs of a namespace have no PCI device; a topology file places them instead.
        ctypes.CDLL(os.environ["NCCL_NET_PLUGIN"]).weft_merge_anywhere(True)
    if world.gpu:
        torch.cuda.set_device(0)
    dist.init_process_group(
        backend,
        init_method=f"file://{meeting}",
        rank=world.rank,
        world_size=world.size,
        timeout=timedelta(seconds=90),
    )
    begin = time.perf_counter()
    said = WORKS[name](world)
    world_sync(world)
    took = time.perf_counter() - begin
    dist.destroy_process_group()
    print(json.dumps({"wrong": world.wrong, "said": said, "seconds": took}), flush=True)
    return 1 if world.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
