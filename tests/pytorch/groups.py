"""Groups: that are made within others, split, end, or hear of mistakes and limits."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from world import World, case, same

from weft.torch.group import make


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
