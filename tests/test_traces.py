"""Traces as a user meets them: what is said of them, and what runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Weft, rows

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=4,link=100Gbps,delay=500ns"

TRACE = """HYBRID_DATA_MODEL
2
first -1 3 ALLREDUCE 80000 0 NONE 0 0 NONE 0 5
second -1 3 ALLGATHER 80000 0 NONE 0 0 NONE 0 5
"""


def test_a_trace_is_described_and_run(weft: Weft, tmp_path: Path) -> None:
    """A text workload: what is in it, and how long it takes."""
    path = tmp_path / "job.txt"
    path.write_text(TRACE)
    done = weft("trace", "info", path, "--ranks", 8)
    assert done.returncode == 0, done.stderr
    assert "It can run." in done.stdout
    assert "all-reduce" in done.stdout
    found = json.loads(weft("trace", "info", path, "--json").stdout)
    assert found["ranks"] is False
    assert {row["operation"] for row in found["collectives"]} == {"all-reduce", "all-gather"}
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload")
    (row,) = rows(weft, *words, f"{path}:algorithm=direct")
    assert (row["workload"], row["algorithm"], row["collectives"]) == ("job.txt", "direct", 2)
    assert row["compute_s"] == pytest.approx(6e-6)


def test_a_trace_that_is_cut_off_is_diagnosed(weft: Weft, tmp_path: Path) -> None:
    """One line with the place, exit status 2; whole layers that are missing are a remark."""
    path = tmp_path / "cut.txt"
    path.write_text(TRACE.rsplit("\n", 2)[0] + "\n")
    done = weft("trace", "info", path)
    assert done.returncode == 0
    assert "layers missing: 2 are declared, 1 are there" in done.stdout
    fabric = ("--fabric", FABRIC, "--schemes", "ecmp")
    done = weft("compare", *fabric, "--workload", path)
    assert "warning: cut.txt: layers missing: 2 are declared, 1 are there" in done.stderr
    path.write_text(TRACE[:-20])
    done = weft("trace", "info", path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cut.txt")
    assert done.stderr.count("\n") == 1
    done = weft("trace", "info", tmp_path / "nothing")
    assert done.returncode == 2
    assert "there is neither a file" in done.stderr


def test_a_trace_that_a_run_refuses_cannot_run(weft: Weft, tmp_path: Path) -> None:
    """What is not supported is a reason, and the exit status says so."""
    path = tmp_path / "odd.txt"
    path.write_text("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCEALLTOALL 8 1\n")
    what = 'communication "ALLREDUCEALLTOALL" is not supported; remove it'
    done = weft("trace", "info", path, "--ranks", 8)
    assert done.returncode == 1
    assert "It cannot run, for 1 reason:" in done.stdout
    assert what in done.stdout
    goal = "num_ranks 2\nrank 0 {\n}\nrank 1 {\na: recv 8b from 0 tag 4\n}\n"
    (tmp_path / "one.goal").write_text(goal)
    told = weft("trace", "info", "one.goal").stdout
    assert "It cannot run, for 1 reason; 1 node would wait forever:" in told
    done = weft("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload", path)
    assert done.returncode == 2
    assert what in done.stderr


def test_a_list_of_communications_is_a_trace(weft: Weft, tmp_path: Path) -> None:
    """Though its name ends as that of a list of flows does."""
    path = tmp_path / "list.csv"
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time"
    path.write_text(f"{head}\nCommType.all_reduce,CommGroup.all,8,1000000,one,None,None,,None\n")
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload")
    (row,) = rows(weft, *words, path)
    assert (row["workload"], row["collectives"]) == ("list.csv", 1)


def test_sizes_of_groups_that_do_not_make_the_ranks(weft: Weft, tmp_path: Path) -> None:
    """Of 8 ranks, 2 of each tensor-parallel group, 4 are data-parallel ones: neither 3 nor 9."""
    path = tmp_path / "list.csv"
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time"
    row = "CommType.all_reduce,CommGroup.{},{},1000000,one,None,None,,None\n"
    for data in (3, 9):
        rows = row.format("tp_group", 2) + row.format("dp_group", data)
        path.write_text(f"[rank0 ~ rank7]\n{head}\n{rows}")
        done = weft("trace", "info", path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: list.csv:4: 8 ranks cannot be {data} data-parallel")


def test_a_table_of_flows_is_no_trace(weft: Weft, tmp_path: Path) -> None:
    """But it is told what it is."""
    path = tmp_path / "flows.csv"
    path.write_text("# ours\nsrc,dst,size\n0,1,1KB\n")
    done = weft("trace", "info", path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path} is a table of flows, and no trace; weft run")


def test_a_bare_trace_runs(weft: Weft, tmp_path: Path) -> None:
    """On a fabric with a host for each rank, or on the one that is given."""
    path = tmp_path / "list.csv"
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time"
    path.write_text(f"{head}\nCommType.all_reduce,CommGroup.all,4,1000000,one,None,None,,None\n")
    done = weft("run", path, "--schemes", "ecmp", "--json")
    assert done.returncode == 0, done.stderr
    assert "no --fabric given, so on a leaf-spine" in done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["ranks"], row["collectives"]) == (4, 1)
    path = tmp_path / "job.txt"
    path.write_text(TRACE)
    done = weft("run", path, "--schemes", "ecmp")
    assert done.returncode == 2
    assert "job.txt: does not say the number of ranks; give --fabric" in done.stderr
    (row,) = rows(weft, "run", path, "--schemes", "ecmp", "--fabric", FABRIC)
    assert (row["ranks"], row["collectives"]) == (8, 2)
    shown = " ".join(weft("compare", "--help").stdout.split())
    assert "or a trace; see weft list workloads" in shown


def test_a_trace_of_more_ranks_than_there_are_gpus(weft: Weft, tmp_path: Path) -> None:
    """One line, whatever tells how many there are."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload")
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time"
    line = "CommType.all_reduce,CommGroup.all,16,1000,one,None,None,,None"
    path = tmp_path / "list.csv"
    path.write_text(f"[rank0 ~ rank15]\n{head}\n{line}\n")
    done = weft(*words, path)
    assert done.returncode == 2, done.stderr
    assert "has 16 ranks, more than the 8 GPUs" in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_key_of_a_format_can_be_set(weft: Weft, tmp_path: Path) -> None:
    """Those of the catalogue: with `--set`, which takes no other keys."""
    path = tmp_path / "job.txt"
    path.write_text(TRACE)
    entries = json.loads(weft("list", "workloads", "--json").stdout)
    (entry,) = (one for one in entries if one["name"] == "*.txt")
    assert "workload.time_unit" in {option["key"] for option in entry["options"]}
    usual = json.loads(weft("trace", "info", path, "--json").stdout)
    slow = json.loads(
        weft("trace", "info", path, "--json", "--set", "workload.time_unit=1ms").stdout
    )
    assert slow["compute_s"] == pytest.approx(1000 * usual["compute_s"])
    done = weft("trace", "info", path, "--set", "fabric.leaves=2")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --set: fabric.leaves: a trace has keys of workload alone")


GOAL = "num_ranks 2\nrank 0 {\na: send 4096b to 1\n}\nrank 1 {\nb: recv 4096b from 0\n}\n"


def test_keys_behind_a_colon_are_those_of_the_format(weft: Weft, tmp_path: Path) -> None:
    """Whatever ends its files have: content tells."""
    words = ("compare", "--fabric", "leaf-spine:leaves=2,spines=2,hosts=1", "--schemes", "ecmp")
    (tmp_path / "job.goal").write_text(GOAL)
    done = weft("trace", "convert", "job.goal", "-o", "job.bin")
    assert done.returncode == 0, done.stderr
    (tmp_path / "job.txt").write_text(GOAL)
    times = []
    for file in ("job.goal", "job.bin", "job.txt"):
        (slow,) = rows(weft, *words, "--workload", f"{file}:overhead=1ms")
        times.append(slow["cct_s"])
        done = weft(*words, "--workload", f"{file}:time_unit=1ms")
        assert done.returncode == 2
        assert "time_unit: unknown key" in done.stderr
    assert len(set(times)) == 1
    assert times[0] > 1e-3


def test_ranks_are_no_more_than_anything_takes(weft: Weft, tmp_path: Path) -> None:
    """One line, not an error of a library or minutes of work."""
    (tmp_path / "job.txt").write_text(TRACE)
    for words in (("info", "job.txt"), ("convert", "all-reduce:size=1MB", "-o", "job.goal")):
        done = weft("trace", *words, "--ranks", str(1 << 32))
        assert done.returncode == 2
        assert "--ranks" in done.stderr
