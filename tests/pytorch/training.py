"""What training does: many operations at once, futures, hooks, whole back ends of PyTorch."""

import torch
from torch import distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from world import World, case, draw, same


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
def nobody_waits(world: World) -> None:
    """Tensors that are dropped while they are under way stay where they are."""
    for _ in range(20):
        dist.all_reduce(torch.ones(100_000), async_op=True)
    last = torch.ones(10)
    dist.all_reduce(last)
    same(last, torch.full((10,), float(world.size)))


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
