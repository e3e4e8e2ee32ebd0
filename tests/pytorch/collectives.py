"""Collectives, and messages between two ranks, with all their options."""

from typing import Any

import torch
from torch import distributed as dist
from world import FLOATS, WHOLE, World, case, draw, same


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
def coalesced(world: World) -> None:
    """Several tensors in one go."""
    tensors = [torch.full((n,), float(world.rank)) for n in (1, 100, 5000)]
    with dist._coalescing_manager():  # As functional and sharded code does.
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, float(sum(range(world.size)))))


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
