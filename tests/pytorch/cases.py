"""A rank that does every operation over weft and over Gloo, and says where they differ.

Usage: python cases.py RANK RANKS MEETING weft|weft-whole [CASE ...]; the last line that it prints
is JSON, by case: "ok" or what went wrong. `weft-whole` is the back end as older versions of PyTorch
have it.
"""

import faulthandler
import json
import sys
import traceback
from datetime import timedelta

import collectives  # noqa: F401 - it notes its cases
import groups  # noqa: F401 - it notes its cases
import pytest
import tensors  # noqa: F401 - it notes its cases
import training  # noqa: F401 - it notes its cases
from torch import distributed as dist
from world import CASES, World

from weft.torch.group import Whole


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
