"""Damaged traces of every format: a result or one line, whatever is wrong with them.

The traces are made here and damaged at random with seeds that failures print.
"""

from __future__ import annotations

import gzip
import random
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


def _goal() -> Files:
    return {"t.txt": b"num_ranks 2\nrank 0 {\nl1: send 10b to 1 tag 0\n}\n"}


FORMATS: list[Callable[[], Files]] = [
    _chakra, _gzipped, _alone, _silent, _astra_sim, _aicb, _list, _goal,
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
    return folder / min(name for name in files if not name.endswith(".json"))


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
    assert described > 0 or made is _goal


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
