"""Damaged traces of every format: a result or one line, whatever is wrong with them.

The traces are made here and damaged at random with seeds that failures print.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import chakra
from weft import ExperimentError
from weft.analysis import trace_info
from weft.cli import simulations, trace_options
from weft.cli.compare import run_comparison
from weft.cli.run import run_files
from weft.errors import StallError

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
MOST_BYTES, MOST_SECONDS = 1 << 20, 0.01
"""What a run may send and compute to be simulated here."""
EXTREMES = [b"0", b"-1", b"None", b"99999999999999999999", b"1e9", b"NaN", b"\xff", b"{", b"\n"]

Files = dict[str, bytes]


def _chakra() -> Files:
    """Two ranks, a group, computation and a message; the groups beside them."""
    files: Files = {"t.json": b'{"1": [0, 1]}'}
    for rank in (0, 1):
        way = chakra.SEND if rank == 0 else chakra.RECEIVE
        peer = {"comm_dst" if rank == 0 else "comm_src": 1 - rank, "comm_size": 1000}
        work = {"num_ops": 1000, "tensor_size": 100}
        nodes = [
            chakra.collective(0, 4096, "1"),
            chakra.Node(1, chakra.COMPUTE, work, (0,), (0,), micros=2),
            chakra.Node(2, way, peer, (1,)),
            chakra.collective(3, 512, kind=chakra.ALL_GATHER),
        ]
        files[f"t.{rank}.et"] = chakra.trace(nodes, "symbolic_tensor_network")
    return files


def _gzipped() -> Files:
    return {
        name: gzip.compress(content, mtime=0) if name.endswith(".et") else content
        for name, content in _chakra().items()
    }


def _alone() -> Files:
    """One rank's file, which has nobody to talk to."""
    return {"t.0.et": chakra.trace([chakra.collective(0, 4096), chakra.collective(1, 64)])}


def _silent() -> Files:
    """Computation without communication."""
    compute = chakra.Node(0, chakra.COMPUTE, {"num_ops": 1000}, micros=2)
    return {f"t.{rank}.et": chakra.trace([compute]) for rank in (0, 1)}


def _astra_sim() -> Files:
    row = b"layer -1 3 ALLREDUCE 8000 1 NONE 0 2 ALLGATHER 800 5\n"
    return {"t.txt": b"HYBRID_DATA_MODEL\n2\n" + row + row}


def _aicb() -> Files:
    head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4"
    row = "mlp -1 70 ALLREDUCE 2000 70 ALLREDUCE 2000 70 ALLTOALL_EP 64 10"
    return {
        "t.txt": f"{head} checkpoints: 1 0 checkpoint_initiates: 1 1\n2\n{row}\n{row}\n".encode()
    }


def _list() -> Files:
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time"
    rows = [
        "CommType.all_reduce,CommGroup.dp_group,2,800,init,None,None,,None",
        "CommType.computation,None,None,((2, 3), (3, 4)),fwd,None,None,,1500",
        "CommType.all_gather,CommGroup.tp_group,2,64,step,None,None,,None",
        "CommType.barrier,None,None,0,step,None,None,,None",
    ]
    return {"t.csv": "\n".join(["[rank0 ~ rank3]", head, *rows, ""]).encode()}


GOAL = b"""num_ranks 2
rank 0 {
l1: calc 3000 cpu 1
l2: send 1000b to 1 tag 3
l2 requires l1
l3: recv 90000b from -1 tag -1
}
rank 1 {
l1: recv 1000b from 0 tag 3 cpu 0 nic 1
l2: send 90000b to 0
l2 irequires l1
}
"""


def _goal() -> Files:
    return {"t.goal": GOAL}


def _goal_binary() -> Files:
    """The same as `txt2bin` lays it out."""
    calc, send = (3, 0, 3000, 0, 1, 0, [1], []), (1, 1, 1000, 3, 0, 0, [], [])
    receive = (2, ANY, 90000, ANY, 0, 0, [], [])
    ranks: list[list[Task]] = [
        [calc, send, receive],
        [(2, 0, 1000, 3, 0, 1, [], [1]), (1, 0, 90000, 0, 0, 0, [], [])],
    ]
    blocks = [_block(tasks) for tasks in ranks]
    head = struct.pack("<QIBB", 4223, len(blocks), 1, 1)
    at = len(head) - 8 + 16 * len(blocks)
    for block in blocks:
        head += struct.pack("<QQ", at, at + len(block))
        at += len(block)
    return {"t.bin": head + b"".join(blocks)}


ANY = 0xFFFFFFFF
Task = tuple[int, int, int, int, int, int, list[int], list[int]]
"""Type, peer, size, tag, cpu, nic, who waits for its end, and for its start."""


def _block(tasks: list[Task]) -> bytes:
    unmet = [sum(own in one[6] + one[7] for one in tasks) for own in range(len(tasks))]
    roots = [own for own, count in enumerate(unmet) if count == 0]
    out = struct.pack(f"<II{len(roots)}I", len(tasks), len(roots), *roots)
    appendix: list[int] = []
    for count, (kind, peer, size, tag, cpu, nic, ends, starts) in zip(unmet, tasks, strict=True):
        out += struct.pack("<IbIQIBB", count, kind, peer, size, tag, cpu, nic)
        for others in (ends, starts):
            out += struct.pack("<II", len(others), len(appendix))
            appendix += others
    return out + struct.pack(f"<{len(appendix)}I", *appendix)


def _kineto() -> Files:
    """Two ranks: a kernel, then an all-reduce, with their launches."""
    comm = {"Collective name": "allreduce", "dtype": "Half", "In msg nelems": 512, "Seq": 1}
    comm |= {"Out msg nelems": 512, "Group size": 2, "Process Group Ranks": "[0, 1]"}
    files: Files = {}
    for rank in (0, 1):
        events = [
            _event("cuda_runtime", "cudaLaunchKernel", 1, {"correlation": 1}),
            _event("kernel", "gemm", 2, {"correlation": 1, "stream": 7, "device": 0}),
            _event("cpu_op", "record_param_comms", 4, comm),
            _event("cuda_runtime", "cudaLaunchKernel", 5, {"correlation": 2}),
            _event("kernel", "ncclKernel_AllReduce", 6, {"correlation": 2, "stream": 20} | comm),
        ]
        info = {"rank": rank, "world_size": 2}
        whole = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}
        files[f"t{rank}.pt.json"] = json.dumps(whole).encode()
    return files


def _event(kind: str, name: str, at: float, args: dict[str, object]) -> dict[str, object]:
    return {"ph": "X", "cat": kind, "name": name, "ts": at, "dur": 1.5, "tid": 1, "args": args}


def _execution_trace() -> Files:
    values = [[5, 6, 0, 512, 2, "cuda:0"], 7, ["0", "default_pg"], 0, "all_to_allv"]
    inputs = {"values": [*values, [256, 256], [256, 256], 0, 1, 2]}
    attributes = [{"name": "rf_id", "value": 3}, {"name": "pg_size", "value": 2}]
    node = {"id": 4, "name": "record_param_comms", "inputs": inputs, "attrs": attributes}
    whole = {"schema": "1.1.0-chakra.0.0.4", "nodes": [node | {"outputs": {"values": [values[0]]}}]}
    return {f"t{rank}.json": json.dumps(whole).encode() for rank in (0, 1)}


def _chakra_json() -> Files:
    compute = {"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": False, "runtime": 5}
    comm = {"Id": 2, "Name": "b", "NodeType": 7, "comm_type": 0, "comm_size": 4096}
    nodes = [compute | {"data_deps": []}, comm | {"data_deps": [1]}]
    return {f"t.{rank}.json": json.dumps({"workload_graph": nodes}).encode() for rank in (0, 1)}


def _nccl_log() -> Files:
    lines = []
    for rank in (0, 1):
        at = f"n1:{40 + rank}:9 [0] NCCL INFO "
        lines += [
            f"{at}ncclCommInitRank comm 0x{rank} rank {rank} nranks 2 cudaDev 0 commId 0xa - Init",
            f"{at}AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 512 datatype 7 op 0 root 0 "
            f"comm 0x{rank} [nranks=2] stream 0x5",
        ]
    return {"t.log": "\n".join([*lines, ""]).encode()}


def _nccl_profile() -> Files:
    files: Files = {}
    for rank in (0, 1):
        header = {"id": "0x7", "rank": rank, "n_ranks": 2}
        perf = {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096}
        files[f"t{rank}.jsonl"] = json.dumps({"header": header, "coll_perf": perf}).encode()
    return files


FORMATS: list[Callable[[], Files]] = [
    _chakra, _gzipped, _alone, _silent, _astra_sim, _aicb, _list, _goal, _goal_binary, _kineto,
    _execution_trace, _chakra_json, _nccl_log, _nccl_profile,
]  # fmt: skip


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content with one to three pieces changed, removed, doubled, or put in."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice([1, 2, 8, 64]))
        way = draw.randrange(6)
        if way == 0:
            data[at:end] = draw.randbytes(end - at)
        elif way == 1:
            del data[at:end]
        elif way == 2:
            data[at:at] = data[at:end]
        elif way == 3:
            data[at:end] = draw.choice(EXTREMES)
        elif way == 4:
            del data[at:]
        else:
            lines = bytes(data).split(b"\n")
            lines.pop(draw.randrange(len(lines)))
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def _written(files: Files, folder: Path, draw: random.Random) -> Path:
    """The files with one of them damaged or, where there are several, perhaps gone."""
    victim = draw.choice(sorted(files))
    for name, content in files.items():
        if name != victim:
            (folder / name).write_bytes(content)
        elif len(files) == 1 or draw.random() > 0.2:
            (folder / name).write_bytes(damaged(content, draw))
    return folder / min(name for name in files if name != "t.json")


def _line(error: Exception) -> None:
    line = str(error)
    assert line.strip(), "an error without words"
    assert "\n" not in line
    assert "Traceback" not in line


@pytest.mark.parametrize("made", FORMATS, ids=lambda made: made.__name__.strip("_"))
def test_damaged_traces_give_a_result_or_a_line(
    made: Callable[[], Files], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For `trace info`, and through `run` and `compare` where little is to be simulated."""
    described, runs = 0, 0
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        draw = random.Random(f"{made.__name__} {seed}")
        path = _written(made(), folder, draw)
        try:
            found = trace_info.info(
                path, trace_options.workload_keys(bytes_per_element=draw.choice([None, 2]))
            )
            assert trace_info.text(found)
            described += 1
            if _is_small(found) and runs < 8:
                runs += 1
                _run(path, draw)
        except (ExperimentError, StallError) as error:
            _line(error)
        except BaseException:
            print(f"seed {seed} of {made.__name__}: {path}")
            raise
    capsys.readouterr()
    # Some damage does no harm, or there would be nothing to see.
    assert described > 0


def _is_small(found: dict[str, object]) -> bool:
    """Whether all that is sent and computed takes no time to simulate."""
    rows = found["collectives"]
    assert isinstance(rows, list)
    sends = found["sends"]
    assert isinstance(sends, dict)
    nodes = found["nodes"]
    assert isinstance(nodes, int)
    bytes_ = sum(row["total"] * (row["ranks"] or 4) for row in rows) + sends["bytes"]
    seconds = found["compute_s"]
    assert isinstance(seconds, float)
    return bytes_ <= MOST_BYTES and seconds <= MOST_SECONDS and nodes <= 100


def _run(path: Path, draw: random.Random) -> None:
    """Through one of the commands; what it refuses is the caller's to judge."""
    quiet = simulations.Options(None, 1, 1, json=False, report=False, quiet=True)
    of_trace = trace_options.workload_keys(peak_tflops=draw.choice([None, 1.0]))
    if draw.random() < 0.5:
        fabric = draw.choice([None, FABRIC])
        status = run_files([str(path)], quiet, None, [], fabric, ["ecmp"], of_trace=of_trace)
    else:
        status = run_comparison(FABRIC, str(path), ["ecmp"], None, quiet, 1, [], of_trace)
    assert status == 0
