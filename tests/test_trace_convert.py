"""`weft trace convert`, and formats of other tools, as a user meets them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft, rows

FABRIC = "leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps,delay=500ns"
REAL = Path(__file__).parent.parent.parent / "shared" / "traces"

GOAL = """num_ranks 3
rank 0 {
c: calc 5000 cpu 1
s: send 200000b to 1 tag 4
s requires c
r: recv 70000b from 2
d: calc 7000
d requires r
}
rank 1 {
r: recv 200000b from 0 tag 4
s: send 80000b to 2
s requires r
}
rank 2 {
r: recv 80000b from 1
s: send 70000b to 0
s requires r
}
"""


def compared(weft: Weft, workload: Path | str, *more: str) -> dict[str, Any]:
    """The result of a workload under ECMP."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload", workload, *more)
    (row,) = rows(weft, *words)
    return row


def convert(weft: Weft, workload: Path | str, output: Path, *more: str) -> str:
    """Convert; returns what was noted."""
    done = weft("trace", "convert", workload, "-o", output, *more)
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(weft: Weft, *words: object) -> str:
    """The one line of a refusal."""
    done = weft("trace", *words)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("error: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("end", ["goal", "bin"])
def test_goal_written_and_read_again_is_the_same_run(weft: Weft, tmp_path: Path, end: str) -> None:
    """Computation, sends and receives: the same times, to the picosecond."""
    path = tmp_path / "a.goal"
    path.write_text(GOAL)
    assert convert(weft, path, tmp_path / f"b.{end}") == ""
    first, again = compared(weft, path), compared(weft, tmp_path / f"b.{end}")
    assert first["cct_s"] == again["cct_s"]
    assert first["compute_s"] == pytest.approx(7e-6)


@pytest.mark.parametrize("algorithm", ["ring", "double-binary-tree", "recursive-doubling"])
def test_a_collective_as_goal_takes_as_long(weft: Weft, tmp_path: Path, algorithm: str) -> None:
    """The messages of an algorithm, in its order."""
    workload = f"all-reduce:size=1MB,algorithm={algorithm},ranks=16"
    convert(weft, workload, tmp_path / "a.goal")
    first, again = compared(weft, workload), compared(weft, tmp_path / "a.goal")
    assert again["cct_s"] == pytest.approx(first["cct_s"], rel=0.02)
    assert again["messages"] == first["messages"]


def test_a_ring_as_a_connection_matrix_takes_as_long(weft: Weft, tmp_path: Path) -> None:
    """Triggers start each message when the one before it has come."""
    workload = "all-reduce:size=1MB,algorithm=ring,ranks=16"
    assert "arrive after those" in convert(weft, workload, tmp_path / "a.cm")
    first, again = compared(weft, workload), compared(weft, tmp_path / "a.cm")
    assert again["cct_s"] == pytest.approx(first["cct_s"], rel=0.02)


def test_a_matrix_as_goal_and_back_is_the_same(weft: Weft, tmp_path: Path) -> None:
    """Starts, triggers and sizes survive the way through ranks."""
    lines = ["Nodes 4", "Connections 3", "Triggers 1", "0->1 id 1 start 2000000 size 100000"]
    lines += ["2->3 id 2 start 0 size 90000 recv_done_trigger 1", "3->0 id 3 trigger 1 size 80000"]
    path = tmp_path / "a.cm"
    path.write_text("\n".join([*lines, "trigger id 1 oneshot", ""]))
    convert(weft, path, tmp_path / "b.goal")
    convert(weft, tmp_path / "b.goal", tmp_path / "c.cm")
    times = [compared(weft, tmp_path / name)["cct_s"] for name in ("a.cm", "b.goal", "c.cm")]
    assert times[0] == times[2]
    # A job is over when its last message has been acknowledged, two links of 500 ns later.
    assert 1e-6 < times[1] - times[0] < 1.1e-6


def test_a_pattern_needs_a_number_of_hosts(weft: Weft, tmp_path: Path) -> None:
    """Every host becomes a rank; a collective of the same name has an algorithm."""
    pattern, output = "all-to-all:size=16KB", tmp_path / "a.goal"
    assert "say how many (--ranks)" in refused(weft, "convert", pattern, "-o", output)
    assert convert(weft, pattern, output, "--ranks", "4") == ""
    assert output.read_text().count("send 16000b") == 12
    convert(weft, f"{pattern},algorithm=direct", output, "--ranks", "4")
    assert output.read_text().count("send 4000b") == 12


def test_chakra_keeps_collectives_and_groups(weft: Weft, tmp_path: Path) -> None:
    """A model's iteration with groups, read again with its JSON file of groups."""
    text = tmp_path / "job.txt"
    text.write_text(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 8\n1\n"
        "mlp -1 70000 ALLREDUCE 200000 70000 ALLREDUCE 200000 70000 ALLGATHER 64000 10000\n"
    )
    convert(weft, text, tmp_path / "c.et")
    assert (tmp_path / "c.7.et").is_file()
    assert (tmp_path / "c.json").is_file()
    first, again = compared(weft, text), compared(weft, tmp_path / "c.0.et")
    assert again["cct_s"] == first["cct_s"]
    assert again["collectives"] == first["collectives"]


def test_how_collectives_are_done_is_left_to_the_reader(weft: Weft, tmp_path: Path) -> None:
    """A note has the keys to give again; unequal shares need messages."""
    ways = "algorithm=direct,window=2,splits=2"
    workload, output = f"all-reduce:size=1MB,ranks=16,{ways}", tmp_path / "a.et"
    assert f"give {ways} again" in convert(weft, workload, output)
    again = compared(weft, f"{tmp_path / 'a.0.et'}:{ways}")
    assert again["cct_s"] == compared(weft, workload)["cct_s"]
    assert convert(weft, "all-reduce:size=1MB,ranks=16,algorithm=ring", output) == ""
    skewed = "all-to-all:size=64KB,skew=1.0,algorithm=direct,ranks=8"
    assert "(--unfold)" in refused(weft, "convert", skewed, "-o", tmp_path / "s.et")
    assert not (tmp_path / "s.0.et").exists()
    convert(weft, skewed, tmp_path / "s.et", "--unfold")


def test_what_a_format_cannot_say_is_told(weft: Weft, tmp_path: Path) -> None:
    """One line with the mend; nothing is written."""
    path = tmp_path / "a.goal"
    path.write_text(GOAL)
    line = refused(weft, "convert", path, "-o", tmp_path / "a.cm")
    assert "takes time behind a message" in line
    assert "--no-compute" in line
    assert not (tmp_path / "a.cm").exists()
    convert(weft, path, tmp_path / "a.cm", "--no-compute")
    assert "say how many (--ranks)" in refused(
        weft, "convert", "all-reduce:size=1MB", "-o", tmp_path / "b.goal"
    )
    assert "is no format that is written" in refused(weft, "convert", path, "-o", tmp_path / "b.x")


def test_goal_that_is_wrong_is_told_with_its_line(weft: Weft, tmp_path: Path) -> None:
    """A cut file, an unknown word, and a receive that nobody sends to."""
    path = tmp_path / "a.goal"
    path.write_text(GOAL.rsplit("}", 1)[0])
    assert "is cut off" in refused(weft, "info", path)
    path.write_text(GOAL.replace("s: send 80000b", "s: put 80000b"))
    assert refused(weft, "info", path).startswith('error: a.goal:12: "put 80000b to 2"')
    path.write_text(GOAL.replace("r: recv 80000b from 1", "r: recv 80000b from 0"))
    done = weft("trace", "info", path)
    assert done.returncode == 1
    assert "never sends it" in done.stdout


LOG = (
    "n1:{pid}:9 [0] NCCL INFO ncclCommInitRank comm 0x{pid} rank {rank} nranks 2 cudaDev 0 "
    "busId 80 commId 0xabc - Init COMPLETE\n"
    "n1:{pid}:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 65536 "
    "datatype 7 op 0 root 0 comm 0x{pid} [nranks=2] stream 0x5\n"
    "n1:{pid}:9 [0] NCCL INFO Send: opCount 1 sendbuff (nil) recvbuff 0x2 count 4096 datatype 9 "
    "op 0 root {peer} comm 0x{pid} [nranks=2] stream 0x5\n"
    "n1:{pid}:9 [0] NCCL INFO Recv: opCount 1 sendbuff (nil) recvbuff 0x2 count 4096 datatype 9 "
    "op 0 root {peer} comm 0x{pid} [nranks=2] stream 0x5\n"
)


def test_nccl_s_log_is_a_workload(weft: Weft, tmp_path: Path) -> None:
    """Files of two processes, found by one of them; and both in one file."""
    texts = [LOG.format(pid=40 + rank, rank=rank, peer=1 - rank) for rank in (0, 1)]
    for pid, text in zip((40, 41), texts, strict=True):
        (tmp_path / f"nccl.n1.{pid}.log").write_text(f"other output\n{text}")
    found = json.loads(weft("trace", "info", tmp_path / "nccl.n1.40.log", "--json").stdout)
    assert (found["ranks"], found["sends"]) == (2, {"count": 2, "bytes": 16384})
    assert [row["bytes"] for row in found["collectives"]] == [262144]
    merged = tmp_path / "job.log"
    merged.write_text("".join(texts))
    row = compared(weft, merged)
    assert row["cct_s"] == compared(weft, tmp_path / "nccl.n1.41.log")["cct_s"]
    slow = compared(weft, f"{merged}:nccl_compute=1ms")
    # Each call, and nothing else, is a millisecond later; acknowledgements are out of the way.
    assert 2e-3 - 1e-7 < slow["cct_s"] - row["cct_s"] <= 2e-3
    (tmp_path / "nccl.n1.41.log").unlink()
    assert "logs of all processes" in refused(weft, "info", tmp_path / "nccl.n1.40.log")


def test_nccl_s_log_of_parts_of_a_communicator(weft: Weft, tmp_path: Path) -> None:
    """From NCCL 2.23 on a split tells parent, count and color, and no id of its own."""
    made = "comm 0x{comm}{rank} rank {place} nranks {of} cudaDev 0 nvmlDev 0 busId 80 "
    split = made + "parent 0x3{rank} splitCount 1 color {color} key 0"
    call = "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count {count} datatype 0 op 0 root 0 "
    call += "comm 0x{comm}{rank} [nranks={of}] stream 0x5"
    text = ""
    for rank in range(4):
        all_of_them = {"rank": rank, "place": rank, "of": 4, "comm": 3, "count": 1000}
        part = {"rank": rank, "place": rank // 2, "of": 2, "comm": 4, "color": rank % 2}
        lines = [
            ("ncclCommInitRank " + made + "commId 0xa - Init COMPLETE", all_of_them),
            ("ncclCommSplit " + split + "- Init START", part),
            ("ncclCommSplit " + split + " - Init COMPLETE", part),
            (call, part | {"count": 2000 + rank % 2}),
            # Another one at the address of one that is gone, as older versions tell it.
            (made + "commId 0xb - Init COMPLETE", all_of_them | {"comm": 4}),
            (call, all_of_them | {"comm": 4}),
        ]
        text += "".join(f"n1:{rank}:9 [0] NCCL INFO {x.format(**keys)}\n" for x, keys in lines)
    (tmp_path / "job.log").write_text(text)
    found = json.loads(weft("trace", "info", tmp_path / "job.log", "--json").stdout)
    assert (found["ranks"], found["problems"]) == (4, [])
    listed = [(row["group"], row["ranks"], row["bytes"]) for row in found["collectives"]]
    assert sorted(listed) == [("0xa/1/0", 2, 2000), ("0xa/1/1", 2, 2001), ("0xb", 4, 1000)]


def test_nccl_s_profilers_are_workloads(weft: Weft, tmp_path: Path) -> None:
    """The inspector's records and the example plugin's events, a file a process."""
    for rank in (0, 1):
        header = {"id": "0x7", "rank": rank, "n_ranks": 2}
        perf = {"coll": "AllGather", "coll_sn": 1, "coll_msg_size_bytes": 80000}
        record = json.dumps({"header": header, "coll_perf": perf})
        (tmp_path / f"host-pid{rank}.jsonl").write_text(record + "\n" + record)
        args = {"SeqNum": 0, "CommHash": 7, "Rank": rank, "Count": 1024, "Datatype": "ncclFloat32"}
        event = {"name": "AllReduce", "cat": "COLL", "ph": "b", "ts": 5.0, "args": args}
        (tmp_path / f"trace-{rank}.json").write_text(json.dumps([event, {}]))
    for name, operation, size in [
        ("host-pid0.jsonl", "all-gather", 80000),
        ("trace-1.json", "all-reduce", 4096),
    ]:
        found = json.loads(weft("trace", "info", tmp_path / name, "--json").stdout)
        assert found["ranks"] == 2
        assert [row["operation"] for row in found["collectives"]] == [operation]
        assert found["collectives"][0]["bytes"] == size


def test_chakra_as_json_says_the_same(weft: Weft, tmp_path: Path) -> None:
    """The feeder's form and the jsonizer's."""
    feeder = [
        {"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": False, "runtime": 5, "data_deps": []},
        {"Id": 2, "Name": "b", "NodeType": 7, "is_cpu_op": False, "runtime": 0, "data_deps": [1]}
        | {"comm_type": 0, "comm_size": 65536},
    ]
    nodes = [
        {"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5"},
        {"id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"]}
        | {
            "attr": [
                {"name": "comm_type", "int64Val": "0"},
                {"name": "comm_size", "int64Val": "65536"},
            ]
        },
    ]
    for rank in range(4):
        (tmp_path / f"a.{rank}.json").write_text(json.dumps({"workload_graph": feeder}))
        written = [{"version": "1.0.0"}, *nodes]
        (tmp_path / f"b.{rank}.json").write_text("\n".join(map(json.dumps, written)))
    first, again = compared(weft, tmp_path / "a.0.json"), compared(weft, tmp_path / "b.2.json")
    assert first["cct_s"] == again["cct_s"]
    assert (first["compute_s"], first["collectives"]) == (pytest.approx(5e-6), 1)


def event(kind: str, name: str, at: float, length: float, **args: object) -> dict[str, object]:
    """An event of a Kineto trace."""
    return {"ph": "X", "cat": kind, "name": name, "ts": at, "dur": length, "tid": 1, "args": args}


def kineto(rank: int) -> dict[str, object]:
    """A kernel, an all-reduce beside another kernel, a wait, and a kernel behind it."""
    comm = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 25000}
    comm |= {"Out msg nelems": 25000, "Group size": 2, "Process Group Name": "0"}
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 100, 1, correlation=1),
        event("kernel", "gemm", 102, 30, correlation=1, stream=7, device=0),
        event("cpu_op", "record_param_comms", 104, 4, **comm, Seq=1),
        event("cuda_runtime", "cudaLaunchKernel", 105, 1, correlation=2),
        event("kernel", "ncclDevKernel_AllReduce", 132, 99, correlation=2, stream=20, device=0)
        | {"args": {"correlation": 2, "stream": 20, "device": 0, **comm}},
        event("cuda_runtime", "cudaLaunchKernel", 110, 1, correlation=3),
        event("kernel", "gemm", 133, 40, correlation=3, stream=7, device=0),
        event("cpu_op", "record_param_comms", 112, 1, **{"Collective name": "wait"}, Seq=1),
        event("cuda_runtime", "cudaLaunchKernel", 114, 1, correlation=4),
        event("kernel", "adam", 240, 50, correlation=4, stream=7, device=0),
    ]
    info = {"backend": "nccl", "rank": rank, "world_size": 2}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}


def test_kineto_streams_give_the_order(weft: Weft, tmp_path: Path) -> None:
    """30 us, then the all-reduce beside 40 us, then 50 us."""
    for rank in (0, 1):
        (tmp_path / f"worker{rank}.pt.trace.json").write_text(json.dumps(kineto(rank)))
    path = tmp_path / "worker1.pt.trace.json"
    row = compared(weft, path)
    alone = compared(weft, "all-reduce:size=100000B,ranks=2")
    communication = alone["cct_s"]
    # The first launch is where time begins.
    expected = 30e-6 + max(communication, 40e-6) + 50e-6
    assert row["cct_s"] == pytest.approx(expected, rel=1e-6)
    assert row["compute_s"] == pytest.approx(120e-6)
    (tmp_path / "worker0.pt.trace.json").unlink()
    assert "no file of rank 0" in refused(weft, "info", path)
    copied = compared(weft, f"{path}:absent_ranks=copy")
    assert copied["cct_s"] == row["cct_s"]


def written(tmp_path: Path, name: str, events: list[dict[str, Any]], ranks: int) -> Path:
    """The same Kineto events for each rank, `RANK` and `PEER` filled in; the first file."""
    for rank in range(ranks):
        text = json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}})
        text = text.replace('"PEER"', str((rank + 1) % ranks)).replace('"BACK"', str(rank - 1))
        (tmp_path / f"{name}{rank}.json").write_text(text.replace(": -1", f": {ranks - 1}"))
    return tmp_path / f"{name}0.json"


def test_kineto_streams_wait_as_the_profiler_recorded(weft: Weft, tmp_path: Path) -> None:
    """Two kernels side by side, or one after the other where a stream waits for an event."""
    first = event("kernel", "first", 2, 30, correlation=1, stream=7)
    second = event("kernel", "second", 40, 20, correlation=4, stream=9)
    calls = [
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1),
        event("cuda_runtime", "cudaEventRecord", 1, 1, correlation=2),
        event("cuda_runtime", "cudaStreamWaitEvent", 1, 1, correlation=3),
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=4),
    ]
    told = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    wait = event("cuda_sync", "Stream Wait Event", 1, 1, correlation=3, stream=9, **told)
    for name, events, expected in [
        ("a", [*calls, first, second], 30e-6),
        ("b", [*calls, first, second, wait], 50e-6),
    ]:
        row = compared(weft, written(tmp_path, name, events, 2))
        assert row["cct_s"] == pytest.approx(expected)


def test_kineto_sends_and_receives_of_a_group_go_on_together(weft: Weft, tmp_path: Path) -> None:
    """One kernel for a send and a receive, as `batch_isend_irecv` makes it."""
    size: dict[str, object] = {"dtype": "BFloat16", "Group size": 3}
    size |= {"In msg nelems": 1000, "Out msg nelems": 1000}
    send = size | {"Collective name": "send", "Dst Rank": "PEER"}
    receive = size | {"Collective name": "recv", "Src Rank": "BACK"}
    events = [
        event("cpu_op", "record_param_comms", 1, 1, **send),
        event("cpu_op", "record_param_comms", 2, 1, **receive),
        event("cuda_runtime", "cudaLaunchKernel", 3, 1, correlation=1),
        event("kernel", "ncclDevKernel_SendRecv", 4, 9, correlation=1, stream=20),
    ]
    path = written(tmp_path, "p", events, 3)
    found = json.loads(weft("trace", "info", path, "--json").stdout)
    assert (found["ranks"], found["problems"]) == (3, [])
    assert found["sends"] == found["receives"] == {"count": 3, "bytes": 6000}
    assert found["depth"] == 2


def test_kineto_waits_are_for_a_communication_of_their_group(weft: Weft, tmp_path: Path) -> None:
    """Every group numbers its own: what waits for a short one does not wait for a long one."""
    size: dict[str, object] = {"Collective name": "allreduce", "dtype": "Byte", "Group size": 2}
    for rank in range(4):
        events = []
        for number, (other, elements) in enumerate([(rank ^ 1, 100_000_000), (rank ^ 2, 1000)]):
            comm = size | {"In msg nelems": elements, "Process Group Name": str(number)}
            comm |= {"Process Group Ranks": str(sorted([rank, other]))}
            call, at = number + 1, 1 + 2 * number
            events += [
                event("cpu_op", "record_param_comms", at, 1, **comm, Seq=1),
                event("cuda_runtime", "cudaLaunchKernel", at + 1, 1, correlation=call),
                event("kernel", "ncclDevKernel_AllReduce", at + 1, 9, correlation=call, stream=at),
            ]
        wait = {"Collective name": "wait", "Process Group Name": "1", "Seq": 1}
        events += [
            event("cpu_op", "record_param_comms", 5, 1, **wait),
            event("cuda_runtime", "cudaLaunchKernel", 6, 1, correlation=9),
            event("kernel", "adam", 50, 5000, correlation=9, stream=7),
        ]
        text = json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}})
        (tmp_path / f"w{rank}.json").write_text(text)
    row = compared(weft, tmp_path / "w0.json")
    alone = compared(weft, "all-reduce:size=100MB,ranks=2")
    assert row["cct_s"] == pytest.approx(alone["cct_s"], rel=0.01)
    assert row["compute_s"] == pytest.approx(5e-3, rel=0.01)


def test_what_pytorch_cuts_is_not_guessed(weft: Weft, tmp_path: Path) -> None:
    """Lists of more than 30 numbers end with dots: splits, and the ranks of a group."""
    comm: dict[str, object] = {"dtype": "Byte", "In msg nelems": 31, "Process Group Name": "7"}
    comm |= {"Collective name": "all_to_allv", "Out msg nelems": 31, "Group size": 32}
    cut = comm | {"In split size": "[1, 0, ...]", "Out split size": "[0, 1, ...]"}

    def of(name: str, comm: dict[str, object]) -> Path:
        launch = event("cuda_runtime", "cudaLaunchKernel", 2, 1, correlation=1)
        kernel = event("kernel", "ncclDevKernel_SendRecv", 3, 9, correlation=1, stream=2)
        asked = event("cpu_op", "record_param_comms", 1, 1, **comm)
        asked["args"] |= {"Record function id": 3}  # type: ignore[operator]
        return written(tmp_path, name, [asked, launch, kernel], 32)

    done = weft("trace", "info", of("a", cut))
    assert done.returncode == 1
    assert "all_to_allv with its splits cut after 30 ranks" in done.stdout
    splits = [[1] * 31 + [0], [1] * 31 + [0]]
    values = [[[5, 6, 0, 31, 1, "cuda:0"]], 7, ["7", ""], 0, "all_to_allv", *splits, 0, 1, 32]
    node = {"id": 4, "name": "record_param_comms", "inputs": {"values": values}}
    node |= {"attrs": [{"name": "rf_id", "value": 3}]}
    for rank in range(32):
        (tmp_path / f"et_{rank}.json").write_text(json.dumps({"schema": "1.1", "nodes": [node]}))
    told = f"workload.execution_trace={tmp_path / 'et_0.json'}"
    done = weft("trace", "info", tmp_path / "a0.json", "--set", told, "--json")
    # All of them send a byte to each of the first 31.
    assert json.loads(done.stdout)["sends"] == {"count": 31 * 31, "bytes": 31 * 31}
    few = comm | {"Collective name": "allreduce", "Group size": 31}
    few["Process Group Ranks"] = "[1, 2, ...]"
    assert 'group "7" has 31 of 32 ranks' in refused(weft, "info", of("b", few))


def test_groups_of_an_execution_trace(weft: Weft, tmp_path: Path) -> None:
    """Two groups of two ranks each, told by the process groups' first node."""
    listed = [{"pg_name": "1", "ranks": [0, 2]}, {"pg_name": "2", "ranks": [1, 3]}]
    init = {"id": 1, "name": "## process_group:init ##", "inputs": {"values": [json.dumps(listed)]}}
    for rank in range(4):
        name = str(1 + rank % 2)
        values = [[[5, 6, 0, 512, 4, "cuda:0"]], 7, [name, ""], 0, "allreduce", [], [], 0, 1, 2]
        attributes = [{"name": "rf_id", "value": 3}, {"name": "pg_name", "value": name}]
        comm = {"id": 4, "name": "record_param_comms", "inputs": {"values": values}}
        whole = {"schema": "1.1.1-chakra.0.0.4", "nodes": [init, comm | {"attrs": attributes}]}
        (tmp_path / f"et_{rank}.json").write_text(json.dumps(whole))
    found = json.loads(weft("trace", "info", tmp_path / "et_3.json", "--json").stdout)
    assert (found["ranks"], found["problems"]) == (4, [])
    rows = [
        (row["group"], row["ranks"], row["bytes"], row["calls"]) for row in found["collectives"]
    ]
    assert sorted(rows) == [("1", 2, 2048, 1), ("2", 2, 2048, 1)]


def unpacked(name: str, into: Path) -> Path:
    """A real archive, unpacked."""
    path = REAL / name
    if not path.is_file():
        pytest.skip(f"no ../shared/traces/{name}")
    with tarfile.open(path) as archive:
        archive.extractall(into, filter="data")
    return into


def test_a_real_step_of_dlrm_on_8_gpus(weft: Weft, tmp_path: Path) -> None:
    """Kineto traces of 2023 do not say what collectives move; execution traces do."""
    unpacked("pytorch/dlrm_kineto.tar.gz", tmp_path)
    unpacked("pytorch/dlrm_pytorch_et.tar.gz", tmp_path)
    path = next((tmp_path / "dlrm_kineto").glob("worker3*"))
    line = refused(weft, "info", path)
    assert "execution_trace" in line
    host = tmp_path / "dlrm_pytorch_et" / "dlrm_eg_0.json"
    told = ("--set", f"workload.execution_trace={host}")
    found = json.loads(weft("trace", "info", path, "--json", *told).stdout)
    assert (found["ranks"], found["problems"]) == (8, [])
    operations = {(row["operation"], row["bytes"]) for row in found["collectives"]}
    assert operations == {
        ("all-to-all", 192),
        ("all-reduce", 4 * 394241),
        ("all-reduce", 4 * 112),
        ("all-reduce", 4 * 226960),
    }
    alone = json.loads(weft("trace", "info", host, "--json").stdout)
    assert (alone["ranks"], alone["sends"]) == (8, found["sends"])


HEADS = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
TABLE = f"""# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304
# Collective test starting: all_reduce_perf
#  {HEADS}
#  (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
[1,0]<stdout>:  1048576  262144  float  sum  -1  180.0  5.83 10.92  0  181.0  5.79  10.86  0
  4194304  1048576  float  sum  -1  700.0  5.99  11.23  0  701.0  5.98  11.21  0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 11.1
"""


def test_nccl_tests_stand_beside_a_simulation(weft: Weft, tmp_path: Path) -> None:
    """Its sizes are simulated, and its bandwidths stand beside the results."""
    path = tmp_path / "all_reduce.txt"
    path.write_text(TABLE)
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--measured", path)
    done = weft(*words, "--workload", "all-reduce")
    assert done.returncode == 0, done.stderr
    assert "compared with nccl-tests" in done.stdout
    assert "10.92" in done.stdout
    assert "11.23" in done.stdout
    done = weft(*words, "--workload", "all-gather")
    assert done.returncode == 2
    assert "all_reduce_perf, but the workload is all-gather" in done.stderr
    done = weft(*words, "--workload", "all-reduce:size=3KB")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: --measured {path}: no run has a size that was measured")
    path.write_text(TABLE.split("701.0", 1)[0])
    done = weft(*words, "--workload", "all-reduce")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "all_reduce.txt:6" in done.stderr
    assert "cut off" in done.stderr
