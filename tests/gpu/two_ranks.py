"""Real NCCL, two ranks on one GPU, all of their traffic through Weft's plugin; sums are checked.

    python tests/gpu/two_ranks.py python/weft/libnccl-net-weft.so [--nccl FILE] [--config FILE]
                                  [--gpu-direct]

Needs PyTorch with CUDA and one GPU. NCCL from 2.30 on takes two ranks on a GPU when it is told to;
before that each rank claims a host of its own. `--nccl` loads another libnccl.so.2 than PyTorch's.
`--gpu-direct` wants an RDMA NIC that reads and writes the GPU's memory, whatever is between them.
`make gpu-test` runs it. Exit code 0: all sums right and the network was Weft's; 1: not; 2: it
could not run here, and why.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 2
SIZES = [0, 1, 1000, 1 << 16, (1 << 20) + 3, 1 << 24, 1 << 26]
"""Elements of four bytes."""
REPEATS = 5
LIMIT_S = 240
NETWORK = "Using network Weft"
"""What NCCL logs when it has taken the plugin."""
DIRECT = "GDRDMA"
"""What it logs of a channel whose NIC reaches the GPU."""


def main() -> int:
    """Start both ranks, or be one of them."""
    if "WEFT_GPU_RANK" in os.environ:
        return rank(int(os.environ["WEFT_GPU_RANK"]))
    order = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    order.add_argument("plugin", type=Path, help="libnccl-net-weft.so")
    order.add_argument("--nccl", type=Path, help="a libnccl.so.2")
    order.add_argument("--gpu-direct", action="store_true", help="over RoCE, from GPU memory")
    order.add_argument("--config", type=Path, help="WEFT_CONFIG: a cluster or plan file")
    given = order.parse_args()
    missing = [
        path for path in (given.plugin, given.nccl, given.config) if path and not path.exists()
    ]
    if missing:
        return cannot(f"{missing[0]} is not there; make plugin builds the plugin")
    if why := no_gpu():
        return cannot(why)
    with tempfile.TemporaryDirectory() as directory:
        return start(given, Path(directory))


def cannot(why: str) -> int:
    """Say why it cannot run here."""
    print(f"two_ranks: {why}", file=sys.stderr)
    return 2


def no_gpu() -> str | None:
    """Why there is no GPU to use, if there is none."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed; it brings NCCL"
    if not torch.cuda.is_available():
        return "no GPU that PyTorch can use"
    if not torch.distributed.is_nccl_available():
        return "this PyTorch has no NCCL"
    return None


def start(given: argparse.Namespace, directory: Path) -> int:
    """Run both ranks; look at what NCCL said."""
    common = {
        **os.environ,
        "NCCL_NET_PLUGIN": str(given.plugin.resolve()),
        # Without it NCCL falls back to its own sockets when the plugin fails, and says nothing.
        "NCCL_NET": "Weft",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SHM_DISABLE": "1",
        "NCCL_MULTI_RANK_GPU_ENABLE": "1",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
        "NCCL_SOCKET_IFNAME": "lo",
        "WEFT_STATS": str(directory / "stats-%p.json"),
    }
    if given.gpu_direct:
        common |= {"WEFT_BACKEND": "roce", "NCCL_NET_GDR_LEVEL": "SYS", "NCCL_DMABUF_ENABLE": "1"}
    if given.config:
        common["WEFT_CONFIG"] = str(given.config.resolve())
    elif not given.gpu_direct:
        common.setdefault("WEFT_IFNAME", "lo")
    if given.nccl:
        common["LD_PRELOAD"] = str(given.nccl.resolve())
    logs = [directory / f"rank-{number}.log" for number in range(RANKS)]
    ranks = []
    for number, log in enumerate(logs):
        own = {
            **common,
            "WEFT_GPU_RANK": str(number),
            "WEFT_GPU_MEET": str(directory / "meet"),
            "NCCL_HOSTID": f"weft-{number}",
        }
        with log.open("wb") as out:
            ranks.append(
                subprocess.Popen(
                    [sys.executable, __file__], env=own, stdout=out, stderr=subprocess.STDOUT
                )
            )
    end = time.monotonic() + LIMIT_S
    codes = []
    for one in ranks:
        try:
            codes.append(one.wait(max(0.0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            one.kill()
            codes.append(124)
    said = [log.read_text(errors="replace") for log in logs]
    through = [NETWORK in text and (not given.gpu_direct or DIRECT in text) for text in said]
    for number, text in enumerate(said):
        print(f"--- rank {number}\n{text}", end="")
    how = " from GPU memory" if given.gpu_direct else ""
    print(f"exit codes {codes}; through Weft{how}: {through}")
    return 0 if not any(codes) and all(through) else 1


def rank(number: int) -> int:
    """All-reduces of every size, checked on the GPU."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(0)
    dist.init_process_group(
        "nccl",
        init_method=f"file://{os.environ['WEFT_GPU_MEET']}",
        rank=number,
        world_size=RANKS,
    )
    print("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
    wrong = 0
    for size in SIZES:
        whole = torch.arange(size, device="cuda") % 4096
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for repeat in range(REPEATS):
            values = (whole * (number + 1) + repeat).float()
            dist.all_reduce(values)
            # Whole numbers below 2^24: sums are exact.
            expected = (whole * sum(range(1, RANKS + 1)) + RANKS * repeat).float()
            wrong += int((values != expected).sum())
        torch.cuda.synchronize()
        took = (time.perf_counter() - begin) / REPEATS
        print(f"{4 * size:>12} B {took * 1e6:>12.1f} us with the check, {wrong} wrong so far")
    dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
