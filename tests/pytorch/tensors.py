"""Tensors that are no plain ones: not dense, sparse, watched by autograd, let go early."""

import time
import weakref

import torch
from torch import distributed as dist
from world import World, case, draw, same


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
