"""A rank that does every operation over weft and over Gloo, and says where they differ.

Usage: python cases.py RANK RANKS MEETING weft|weft-whole [CASE ...]; the last line that it prints
is JSON, by case: "ok" or what went wrong. `weft-whole` is the back end as older versions of PyTorch
have it.
"""

import faulthandler
import json
import sys
import time
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from weft.torch.group import Whole, make


@dataclass(frozen=True)
class World:
    """What a case gets: its rank, how many there are, and a Gloo group beside the default one."""

    rank: int
    size: int
    gloo: Any
    backend: str


CASES: dict[str, Callable[[World], None]] = {}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
WHOLE = [torch.uint8, torch.int8, torch.int32, torch.int64]


def case(of: Callable[[World], None]) -> Callable[[World], None]:
    """Note a case."""
    CASES[of.__name__] = of
    return of


def draw(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The same tensor wherever it is drawn."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def same(ours: Any, theirs: Any, exact: bool = True) -> None:
    """Compare tensors, or lists of them."""
    how = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(ours, theirs, equal_nan=True, **how)


@case
def all_reduce(world: World) -> None:
    """Sums, products and extremes of all types and sizes."""
    for length in [0, 1, 7, 1000, 300_001]:
        for dtype in FLOATS + WHOLE:
            for op in [
                dist.ReduceOp.SUM,
                dist.ReduceOp.MIN,
                dist.ReduceOp.MAX,
                dist.ReduceOp.PRODUCT,
            ]:
                ours = draw(world.rank + 1, (length,), dtype)
                theirs = ours.clone()
                dist.all_reduce(ours, op)
                if length:
                    dist.all_reduce(theirs, op, group=world.gloo)
                # Rounding depends on the order of sums; in halves it is coarse.
                exact = not dtype.is_floating_point or op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX)
                if exact or dtype in (torch.float32, torch.float64):
                    same(ours, theirs, exact)
                else:
                    wide = draw(world.rank + 1, (length,), dtype).double()
                    dist.all_reduce(wide, op)
                    torch.testing.assert_close(ours.double(), wide, rtol=0.04, atol=0.04)


@case
def all_reduce_of_bits_truths_and_averages(world: World) -> None:
    """What Gloo has not, against the definition."""
    for op in [dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]:
        for dtype in [torch.uint8, torch.int32, torch.int64]:
            ours = draw(world.rank, (100,), dtype)
            theirs = ours.clone()
            dist.all_reduce(ours, op)
            dist.all_reduce(theirs, op, group=world.gloo)
            same(ours, theirs)
    truths = torch.stack([draw(other, (50,), torch.bool) for other in range(world.size)])
    for op, wanted in [
        (dist.ReduceOp.SUM, truths.any(0)),
        (dist.ReduceOp.PRODUCT, truths.all(0)),
        (dist.ReduceOp.MAX, truths.any(0)),
    ]:
        ours = truths[world.rank].clone()
        dist.all_reduce(ours, op)
        same(ours, wanted)
    for dtype in [torch.float32, torch.bfloat16]:
        all_of = torch.stack([draw(other, (50,), dtype).double() for other in range(world.size)])
        ours = draw(world.rank, (50,), dtype)
        dist.all_reduce(ours, dist.ReduceOp.AVG)
        torch.testing.assert_close(ours.double(), all_of.mean(0), rtol=0.02, atol=0.02)


@case
def all_ranks_end_with_the_same_bits(world: World) -> None:
    """Rounding is the same everywhere."""
    for length in [100, 100_000]:
        ours = draw(world.rank, (length,), torch.float32)
        dist.all_reduce(ours)
        all_of = [torch.empty_like(ours) for _ in range(world.size)]
        dist.all_gather(all_of, ours, group=world.gloo)
        for other in all_of:
            assert torch.equal(ours, other)


@case
def broadcast_and_reduce(world: World) -> None:
    """From and to every root; who is no root keeps its own."""
    for root in range(world.size):
        for dtype in [torch.float32, torch.bool, torch.complex64]:
            shape = (3, 1000)
            ours = draw(world.rank, shape, torch.float32).to(dtype)
            theirs = ours.clone()
            dist.broadcast(ours, root)
            dist.broadcast(theirs, root, group=world.gloo)
            same(ours, theirs)
        ours = draw(world.rank, (40_000,), torch.int64)
        given, theirs = ours.clone(), ours.clone()
        dist.reduce(ours, root)
        dist.reduce(theirs, root, group=world.gloo)
        same(ours, theirs if world.rank == root else given)


@case
def all_gather(world: World) -> None:
    """Lists, one tensor, and objects."""
    for shape in [(1,), (2, 3), (50_000,)]:
        given = draw(world.rank, shape, torch.float32)
        ours = [torch.empty_like(given) for _ in range(world.size)]
        theirs = [torch.empty_like(given) for _ in range(world.size)]
        dist.all_gather(ours, given)
        dist.all_gather(theirs, given, group=world.gloo)
        same(ours, theirs)
        whole = torch.empty(world.size * given.numel())
        dist.all_gather_into_tensor(whole, given.flatten())
        same(whole, torch.cat([one.flatten() for one in theirs]))
    found: list[Any] = [None] * world.size
    dist.all_gather_object(found, {"rank": world.rank, "text": "x" * (10 * world.rank)})
    assert [one["rank"] for one in found] == list(range(world.size))


@case
def reduce_scatter(world: World) -> None:
    """Lists, one tensor, and in place."""
    for length in [1, 1000, 40_000]:
        rows = torch.stack(
            [draw(other, (world.size, length), torch.int64) for other in range(world.size)]
        )
        wanted = rows.sum(0)[world.rank]
        whole, out = rows[world.rank].clone(), torch.empty(length, dtype=torch.int64)
        dist.reduce_scatter_tensor(out, whole.flatten())
        same(out, wanted)
        same(whole, rows[world.rank])
        out = torch.empty(length, dtype=torch.int64)
        dist.reduce_scatter(out, list(whole))
        same(out, wanted)
        # In place, as sharded training does it.
        dist.reduce_scatter_tensor(whole[world.rank], whole.flatten())
        same(whole[world.rank], wanted)


@case
def all_to_all(world: World) -> None:
    """Equal and uneven sizes, and lists."""
    whole = draw(world.rank, (world.size * 4, 3), torch.float32)
    ours, theirs = torch.empty_like(whole), torch.empty_like(whole)
    dist.all_to_all_single(ours, whole)
    dist.all_to_all_single(theirs, whole, group=world.gloo)
    same(ours, theirs)
    # Uneven, with nothing for some.
    give = [(world.rank * other) % 5 for other in range(world.size)]
    take = [(world.rank * other) % 5 for other in range(world.size)]
    whole = draw(world.rank, (sum(give), 7), torch.float64)
    ours, theirs = torch.empty(sum(take), 7).double(), torch.empty(sum(take), 7).double()
    dist.all_to_all_single(ours, whole, take, give)
    dist.all_to_all_single(theirs, whole, take, give, group=world.gloo)
    same(ours, theirs)
    outputs = [torch.empty(world.rank + other + 1) for other in range(world.size)]
    inputs = [
        torch.full((world.rank + other + 1,), float(10 * world.rank + other))
        for other in range(world.size)
    ]
    dist.all_to_all(outputs, inputs)
    same(
        outputs,
        [torch.full((world.rank + o + 1,), float(10 * o + world.rank)) for o in range(world.size)],
    )


@case
def what_is_written_where_something_is_read(world: World) -> None:
    """Elsewhere than in place: each rank reads what was there when the operation began."""
    ranks, after = range(world.size), (world.rank + 1) % world.size
    for length in [3, 200_000]:
        of = [
            torch.stack([torch.full((length,), float(10 * one + other)) for other in ranks])
            for one in ranks
        ]
        mine = torch.stack([rows[world.rank] for rows in of])
        # Into the part of another rank, and over two parts.
        for start in (after * length, length // 2):
            whole = of[world.rank].flatten().clone()
            out = whole[start : start + length]
            dist.reduce_scatter_tensor(out, whole)
            same(out, mine.sum(0))
        rows = list(of[world.rank].clone())
        dist.reduce_scatter(rows[after], rows)
        same(rows[after], mine.sum(0))
        whole = of[world.rank].clone()
        dist.all_to_all_single(whole, whole)
        same(whole, mine)
        rows = list(of[world.rank].clone())
        dist.all_to_all(rows[::-1], rows)
        same(torch.stack(rows[::-1]), mine)
        rows = list(of[0].clone())
        out = rows[after]
        dist.scatter(out, rows if world.rank == 0 else None)
        same(out, of[0][world.rank])
        whole = of[world.rank].flatten().clone()
        given = whole[length // 2 : length // 2 + length]
        wanted = [one.flatten()[length // 2 : length // 2 + length] for one in of]
        dist.all_gather_into_tensor(whole, given)
        same(whole, torch.cat(wanted))


@case
def gather_and_scatter(world: World) -> None:
    """From and to every root."""
    for root in range(world.size):
        given = draw(world.rank, (100,), torch.float32)
        out = [torch.empty(100) for _ in range(world.size)] if world.rank == root else None
        dist.gather(given, out, root)
        if out is not None:
            same(out, [draw(other, (100,), torch.float32) for other in range(world.size)])
        rows = [draw(100 + other, (20,), torch.float32) for other in range(world.size)]
        got = torch.empty(20)
        dist.scatter(got, rows if world.rank == root else None, root)
        same(got, rows[world.rank])


@case
def send_and_receive(world: World) -> None:
    """Round a ring; tags that cross."""
    after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for length in [0, 1, 200_000]:
        given, got = draw(world.rank, (length,), torch.float32), torch.empty(length)
        for one in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, given, after), dist.P2POp(dist.irecv, got, before)]
        ):
            one.wait()
        same(got, draw(before, (length,), torch.float32))
    # Everybody sends first, with tags that are received the other way round.
    works = [dist.isend(torch.full((3,), float(tag)), after, tag=tag) for tag in (1, 2)]
    for tag in (2, 1):
        got = torch.empty(3)
        dist.recv(got, before, tag=tag)
        same(got, torch.full((3,), float(tag)))
    for work in works:
        work.wait()


@case
def barriers(_: World) -> None:
    """One behind the other."""
    for _ in range(20):
        dist.barrier()


@case
def many_at_once(world: World) -> None:
    """Futures of operations that are under way together."""
    tensors = [torch.full((1000 * number + 1,), float(world.rank)) for number in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works if work is not None]
    for tensor, future in zip(tensors, futures, strict=True):
        (value,) = future.wait()
        same(value, torch.full_like(tensor, float(sum(range(world.size)))))
    assert all(work.is_completed() for work in works if work is not None)


@case
def futures_within_futures(world: World) -> None:
    """What is called when an operation is over may wait for another one."""

    def deep(left: int) -> torch.Tensor:
        future = dist.all_reduce(torch.ones(4), async_op=True).get_future()
        return future.then(lambda done: deep(left - 1) if left else done.value()[0]).wait()

    same(deep(3), torch.full((4,), float(world.size)))
    # As if a thread had been left with nobody to call.
    same(deep(0), torch.full((4,), float(world.size)))


@case
def gradients_of_low_rank(world: World) -> None:
    """PyTorch's hook that has operations wait for each other."""
    ours, theirs = (torch.nn.Linear(8, 8) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    for model, group in ((ours, None), (theirs, world.gloo)):
        shared = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        state = powerSGD_hook.PowerSGDState(group, 1, start_powerSGD_iter=2)
        shared.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for step in range(4):
            shared(draw(step + world.rank, (4, 8), torch.float32)).sum().backward()
    same(ours.weight.grad, theirs.weight.grad, exact=False)


@case
def tensors_of_what_is_over_are_let_go(world: World) -> None:
    """Not when the next operation comes."""
    for waits in (True, False):
        tensor = torch.ones(1000)
        work = dist.all_reduce(tensor, async_op=not waits)
        if work:
            work.wait()
        known = weakref.ref(tensor)
        del tensor, work
        # The thread that settles operations may have the last one for a moment.
        end = time.monotonic() + 5
        while known() is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert known() is None, (world.rank, waits)


@case
def nobody_waits(world: World) -> None:
    """Tensors that are dropped while they are under way stay where they are."""
    for _ in range(20):
        dist.all_reduce(torch.ones(100_000), async_op=True)
    last = torch.ones(10)
    dist.all_reduce(last)
    same(last, torch.full((10,), float(world.size)))


@case
def tensors_that_are_not_dense(world: World) -> None:
    """A column of a matrix."""
    whole = torch.zeros(50, 8)
    part = whole[:, ::2]
    part.fill_(world.rank + 1)
    dist.all_reduce(part)
    same(part, torch.full((50, 4), float(world.size * (world.size + 1) // 2)))
    same(whole[:, 1::2], torch.zeros(50, 4))
    # A message between two ranks, of a tensor in three dimensions.
    one = draw(world.rank, (3, 4, 5), torch.float32).permute(2, 0, 1)
    if world.rank == 0:
        dist.send(one, 1, tag=2)
    if world.rank == 1:
        dist.recv(one, 0, tag=2)
        same(one, draw(0, (3, 4, 5), torch.float32).permute(2, 0, 1))
    # Between two elements.
    odd = torch.frombuffer(bytearray(41), dtype=torch.float32, offset=1)
    odd.fill_(world.rank)
    dist.all_reduce(odd)
    same(odd, torch.full((10,), float(sum(range(world.size)))))


@case
def tensors_that_are_not_dense_have_their_result_when_it_is_over(world: World) -> None:
    """Whoever asks, and does not wait."""
    for _ in range(50):
        tensor = torch.ones(500, 400).t()
        work = dist.all_reduce(tensor, async_op=True)
        while not work.is_completed():
            pass
        assert tensor[0, 0] == world.size
        tensor = torch.ones(20).to_sparse()
        work = dist.all_reduce(tensor, async_op=True)
        while not work.is_completed():
            pass
        assert tensor.to_dense()[0] == world.size


@case
def tensors_that_are_not_dense_in_a_row(world: World) -> None:
    """Each operation takes what the one before it has made of the same memory."""
    base, sparse = torch.ones(3, 4), torch.ones(4).to_sparse()
    works = [dist.all_reduce(one, async_op=True) for one in (base.t(), base, base.t(), base[:, :2])]
    works += [dist.all_reduce(sparse, async_op=True) for _ in range(2)]
    # It waits for what comes after all of them: no operation may have waited for another one here.
    if world.rank == 0:
        dist.send(torch.ones(1), 1)
    if world.rank == 1:
        dist.recv(torch.ones(1), 0)
    for work in works:
        work.wait()
    same(base, torch.tensor([[float(world.size**power) for power in (4, 4, 3, 3)]]).expand(3, 4))
    same(sparse.to_dense(), torch.full((4,), float(world.size**2)))


@case
def tensors_that_autograd_watches(world: World) -> None:
    """Parameters, and tensors of inference outside of it, dense or not."""
    with torch.inference_mode():
        of_inference = [torch.ones(3, 4).t(), torch.ones(3), torch.ones(3).to_sparse()]
    parameter = torch.nn.Parameter(torch.ones(3, 4).t())
    for tensor in [parameter, parameter.t(), *of_inference]:
        dist.all_reduce(tensor)
    same(parameter.detach(), torch.full((4, 3), float(world.size**2)))
    for tensor in of_inference:
        assert (tensor.to_dense() == world.size).all()


@case
def coalesced(world: World) -> None:
    """Several tensors in one go."""
    tensors = [torch.full((n,), float(world.rank)) for n in (1, 100, 5000)]
    with dist._coalescing_manager():  # As functional and sharded code does.
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, float(sum(range(world.size)))))


@case
def groups_within(world: World) -> None:
    """A group of some ranks."""
    members = list(range(0, world.size, 2))
    inner = dist.new_group(members, backend=world.backend)
    if world.rank in members:
        tensor = torch.tensor([float(world.rank)])
        dist.all_reduce(tensor, group=inner)
        same(tensor, torch.tensor([float(sum(members))]))


@case
def mistakes(world: World) -> None:
    """One line each, and the group is as good as before."""
    wide = torch.ones(world.size, dtype=torch.float64)
    signed = [-1, 2, *[1] * (world.size - 2)] if world.size > 1 else [-1]
    for wrong, text in [
        (lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND), "float32 has no and"),
        (lambda: dist.all_reduce(torch.ones(1).to(torch.float8_e5m2)), "cannot be reduced"),
        (
            lambda: dist.all_gather_into_tensor(wide, torch.ones(1)),
            "of one type, not torch.float32",
        ),
        (lambda: dist.reduce_scatter_tensor(torch.ones(1), wide), "of one type, not torch.float64"),
        (
            lambda: dist.all_to_all_single(torch.tensor(0.0), torch.tensor(1.0)),
            "a tensor without dimensions",
        ),
        (
            lambda: dist.all_to_all_single(wide, wide, signed, signed),
            "sizes from 0 on that add to",
        ),
        (lambda: dist.isend(torch.ones(1), 1 - min(world.rank, 1), tag=-1), "tag -1: use 0 to"),
    ]:
        with pytest.raises((TypeError, ValueError, NotImplementedError, RuntimeError)) as caught:
            wrong()
        assert text in str(caught.value)
        assert "\n" not in str(caught.value)
    # The group is as good as before.
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    same(tensor, torch.tensor([float(world.size)]))


@case
def distributed_data_parallel(world: World) -> None:
    """Gradients are those of one process that sees all samples."""
    torch.manual_seed(0)
    make = lambda: torch.nn.Sequential(  # noqa: E731
        torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 1)
    )
    model, alone = make(), make()
    alone.load_state_dict(model.state_dict())
    shared = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    samples = draw(5, (world.size * 8, 20), torch.float32)
    optimisers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (shared, alone)]
    for _ in range(3):
        for optimiser in optimisers:
            optimiser.zero_grad()
        shared(samples[world.rank * 8 : world.rank * 8 + 8]).square().mean().backward()
        alone(samples).square().mean().backward()
        for optimiser in optimisers:
            optimiser.step()
    for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@case
def sharded_training(world: World) -> None:
    """What is built on functional collectives: parameters in parts, gathered when needed."""
    if world.backend != "weft":
        return
    mesh = init_device_mesh("cpu", (world.size,))
    torch.manual_seed(0)
    model, alone = (torch.nn.Linear(16, 12) for _ in range(2))
    alone.load_state_dict(model.state_dict())
    fully_shard(model, mesh=mesh)
    optimisers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, alone)]
    samples = draw(5, (world.size * 4, 16), torch.float32)
    model(samples[world.rank * 4 : world.rank * 4 + 4]).square().mean().backward()
    alone(samples).square().mean().backward()
    for optimiser in optimisers:
        optimiser.step()
    for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours.full_tensor(), theirs)


@case
def calls_without_options(world: World) -> None:
    """As communication hooks make them: of the group itself, with options one by one or none."""
    group, ranks, last = dist.group.WORLD, range(world.size), world.size - 1
    own, total = torch.full((3,), float(world.rank)), torch.full((3,), float(sum(ranks)))
    expected = [torch.full((3,), float(rank)) for rank in ranks]
    tensor = own.clone()
    group.allreduce([tensor]).wait()
    same(tensor, total)
    tensor = own.clone()
    group.allreduce(tensor, op=dist.ReduceOp.MAX).wait()
    same(tensor, expected[last])
    tensor = own.clone()
    group.broadcast(tensor, root=last).wait()
    same(tensor, expected[last])
    tensor = own.clone()
    group.reduce(tensor, root=last).wait()
    same(tensor, total if world.rank == last else own)
    outputs = [torch.empty(3) for _ in ranks]
    group.allgather(outputs, own).wait()
    same(outputs, expected)
    outputs = [torch.empty(3) for _ in ranks] if world.rank == last else []
    group.gather(outputs, own, root=last).wait()
    same(outputs, expected if world.rank == last else [])
    tensor = torch.empty(3)
    group.scatter(tensor, expected if world.rank == last else [], root=last).wait()
    same(tensor, own)
    group.reduce_scatter(tensor, [own.clone() for _ in ranks]).wait()
    same(tensor, total)
    group.barrier().wait()


@case
def all_gather_coalesced(world: World) -> None:
    """Several tensors of different shapes, by rank."""
    shapes = [(2, 3), (5,)]
    of = [
        [torch.full(shape, float(10 * rank + shape[0])) for shape in shapes]
        for rank in range(world.size)
    ]
    outputs = [[torch.empty(shape) for shape in shapes] for _ in range(world.size)]
    dist.all_gather_coalesced(outputs, of[world.rank])
    same(outputs, of)


@case
def from_anybody(world: World) -> None:
    """Each message once, with its sender; beside receives that name one."""
    for tag in (0, 7):
        if world.rank:
            for part in range(4):
                dist.send(torch.tensor([float(world.rank), float(part)]), 0, tag=tag)
            continue
        heard = []
        for turn in range(4 * (world.size - 1)):
            tensor = torch.empty(2)
            if turn % 3 == 1:
                work = dist.irecv(tensor, tag=tag)
                work.wait()
                source = work.source_rank()
            else:
                source = dist.recv(tensor, tag=tag)
            assert tensor[0] == source
            heard.append((source, int(tensor[1])))
        for rank in range(1, world.size):
            assert [part for source, part in heard if source == rank] == [0, 1, 2, 3], heard


@case
def from_anybody_what_was_sent_before(world: World) -> None:
    """A short send is over when the system has it, before anybody asks who sends."""
    if world.rank:
        for part in range(3):
            dist.send(torch.tensor([float(world.rank), float(part)]), 0)
    dist.barrier(world.gloo)
    if world.rank == 0:
        tensor = torch.empty(2)
        dist.recv(tensor, 1)
        heard = [tensor.tolist()]
        # What is left.
        for _ in range(3 * (world.size - 1) - 1):
            assert dist.recv(tensor) == tensor[0]
            heard.append(tensor.tolist())
        for rank in range(1, world.size):
            assert [part for source, part in heard if source == rank] == [0, 1, 2], heard


@case
def sparse_sums(world: World) -> None:
    """Ranks with different entries, and one with none."""
    for columns in (0, 2):
        shape = (6, columns) if columns else (6,)
        rows = torch.arange(world.rank)  # Rank 0 has none.
        values = torch.ones((world.rank, columns) if columns else (world.rank,))
        ours = torch.sparse_coo_tensor(rows.unsqueeze(0), values, shape)
        theirs = ours.clone()
        dist.all_reduce(ours)
        dist.all_reduce(theirs, group=world.gloo)
        same(ours.to_dense(), theirs.to_dense())


@case
def inputs_that_end_early(world: World) -> None:
    """Ranks with fewer samples join the others, and gradients are of those that are left."""
    model = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    shared = torch.nn.parallel.DistributedDataParallel(model)
    for divides in (True, False):
        with shared.join(divide_by_initial_world_size=divides):
            for _ in range(3 + world.rank):
                shared(torch.ones(2, 4)).sum().backward()
    dist.barrier()


@case
def compiled_training(world: World) -> None:
    """Dynamo goes through DDP, and stops at nothing of ours."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
    )
    plain = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
    )
    plain.load_state_dict(model.state_dict())
    shared = torch.nn.parallel.DistributedDataParallel(model)
    control = torch.nn.parallel.DistributedDataParallel(plain, process_group=world.gloo)
    compiled = torch.compile(shared, backend="eager")
    for step in range(2):
        sample = draw(step + world.rank, (8, 4), torch.float32)
        compiled(sample).sum().backward()
        control(sample).sum().backward()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        same(ours.grad, theirs.grad, exact=False)


@case
def what_a_profiler_sees(_: World) -> None:
    """An event for each operation, which lasts until it is over."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(3, 2))
        dist.all_reduce(torch.ones(5), async_op=True).wait()
        dist.barrier()
    of = [event for event in profile.function_events if event.name.startswith("weft:")]
    assert [event.name for event in of] == ["weft:all_reduce", "weft:all_reduce", "weft:barrier"]
    assert all(event.is_async for event in of), of


@case
def numbers_of_operations(world: World) -> None:
    """Collectives are counted, at all ranks alike."""
    group = dist.new_group(backend=world.backend)
    assert group._get_sequence_number_for_group() == 0
    for number in range(1, 4):
        work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
        work.wait()
        assert group._get_sequence_number_for_group() == number
        assert work._get_sequence_number() == number


@case
def barriers_that_name_who_is_missing(world: World) -> None:
    """Rank 0 names them; the group is as good as before."""
    if world.backend != "weft":
        return
    limit = timedelta(seconds=20)
    dist.monitored_barrier(timeout=limit)
    inner = dist.new_group(backend=world.backend)
    if world.rank == 0:
        with pytest.raises(dist.DistBackendError) as caught:
            dist.monitored_barrier(inner, timedelta(seconds=0.2), wait_all_ranks=True)
        missing = ", ".join(map(str, range(1, world.size)))
        assert f"{missing} failed to pass monitoredBarrier in 200 ms" in str(caught.value)
    dist.barrier(inner)


@case
def limits_of_time(world: World) -> None:
    """Of a group, set later, and of a single operation; whoever waits too long is told so."""
    for own in (False, True):
        group = dist.new_group(backend=world.backend)
        dist.barrier(group)
        if not own:
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=0.3), group)
        if world.rank == 0:
            begun = time.monotonic()
            limit = {"timeout": timedelta(seconds=0.3)} if own else {}
            text = "weft: barrier: timed out: nothing from rank"
            with pytest.raises(dist.DistBackendError, match=text):
                group.barrier(**limit).wait()
            assert 0.3 <= time.monotonic() - begun < 2
    dist.barrier(world.gloo)
    if world.rank == 0:
        work = dist.irecv(torch.ones(1), 1, tag=9)
        with pytest.raises(dist.DistBackendError, match=r"timed out: not over within 0\.1 s"):
            work.wait(timedelta(seconds=0.1))
        assert not work.is_completed()
    dist.barrier(world.gloo)
    if world.rank == 1:
        dist.send(torch.ones(1), 0, tag=9)
    if world.rank == 0:
        work.wait()
        assert work.is_completed()


@case
def groups_that_split(world: World) -> None:
    """From a parent that is split."""
    if world.backend != "weft":
        return
    halves = [list(range(0, world.size, 2)), list(range(1, world.size, 2))]
    mine = halves[world.rank % 2]
    group = dist.split_group(split_ranks=halves)
    assert dist.get_process_group_ranks(group) == mine
    tensor = torch.tensor([world.rank])
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    same(tensor, torch.tensor([sum(mine)]))


@case
def one_store_twice(world: World) -> None:
    """What an earlier group left in a store does not mislead a later one."""
    store = dist.PrefixStore("twice", dist.distributed_c10d._get_default_store())
    for _ in range(2):
        group = make(store, world.rank, world.size, timedelta(seconds=30))
        tensor = torch.ones(1)
        group.allreduce([tensor]).wait()
        same(tensor, torch.tensor([float(world.size)]))
        group.barrier().wait()
        group.shutdown()


@case
def groups_come_and_go(world: World) -> None:
    """A group that is destroyed leaves no threads and no files that are open."""
    left = []
    for _ in range(6):
        group = dist.new_group(backend=world.backend)
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        same(tensor, torch.tensor([float(world.size)]))
        dist.destroy_process_group(group)
        # All have closed it, or see that others did.
        dist.barrier(world.gloo)
        left.append([sum(1 for _ in Path(f"/proc/self/{of}").iterdir()) for of in ("task", "fd")])
    # PyTorch may shut down one with the next, and its own come and go.
    grown = [last - second for second, last in zip(left[1], left[-1], strict=True)]
    assert max(grown) <= 2, left


def main(rank: int, size: int, meeting: str, backend: str, names: list[str]) -> None:
    """Do cases in turn; all, if none is named."""
    # A case that stands still says where, before its ranks are ended.
    faulthandler.dump_traceback_later(100)
    if backend != "weft":
        dist.Backend.register_backend(backend, Whole, devices=["cpu"])
    dist.init_process_group(
        backend,
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
    )
    gloo = dist.new_group(backend="gloo")
    world = World(rank, size, gloo, backend)
    found = {}
    for name in names or CASES:
        try:
            CASES[name](world)
            found[name] = "ok"
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 - it goes into the report.
            found[name] = traceback.format_exc()
        print(f"{name}: {found[name]}", file=sys.stderr)
        dist.barrier(gloo)
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5], sys.argv[5:])
