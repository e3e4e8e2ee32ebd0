"""The plugin as NCCL's profiler and tuner, driven through ctypes, and what comes of its files.

The structures are written anew here, so that they are compared with those of the library.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_float,
    c_int,
    c_size_t,
    c_uint8,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft

PLUGIN = Path(__file__).parents[1] / "python/weft/libnccl-net-weft.so"
GROUP_CALL, COLLECTIVE_CALL, COLLECTIVE, P2P, OPERATION, STEP = 1 << 8, 1 << 9, 2, 4, 8, 16


class Collective(Structure):
    """`coll` of `ncclProfilerEventDescr_v5_t`."""

    _fields_ = (
        ("seq", c_uint64), ("func", c_char_p), ("send", c_void_p), ("recv", c_void_p),
        ("count", c_size_t), ("root", c_int), ("datatype", c_char_p), ("channels", c_uint8),
        ("warps", c_uint8), ("algo", c_char_p), ("proto", c_char_p), ("group", c_void_p),
    )  # fmt: skip


class Message(Structure):
    """`p2p` of the same."""

    _fields_ = (
        ("func", c_char_p), ("buffer", c_void_p), ("datatype", c_char_p), ("count", c_size_t),
        ("peer", c_int), ("channels", c_uint8), ("group", c_void_p),
    )  # fmt: skip


class Call(Structure):
    """`collApi` of the same."""

    _fields_ = (
        ("func", c_char_p), ("count", c_size_t), ("datatype", c_char_p), ("root", c_int),
        ("stream", c_void_p), ("captured", ctypes.c_bool),
    )  # fmt: skip


class Operation(Structure):
    """`proxyOp` of the same."""

    _fields_ = (
        ("pid", c_int), ("channel", c_uint8), ("peer", c_int), ("steps", c_int),
        ("chunk", c_int), ("sends", c_int),
    )  # fmt: skip


class _About(ctypes.Union):
    _fields_ = (
        ("coll", Collective),
        ("p2p", Message),
        ("call", Call),
        ("op", Operation),
        ("step", c_int),
    )


class Event(Structure):
    """`ncclProfilerEventDescr_v5_t`."""

    _fields_ = (("kind", c_uint64), ("parent", c_void_p), ("rank", c_int), ("about", _About))


_INIT = ctypes.CFUNCTYPE(
    c_int, POINTER(c_void_p), c_uint64, POINTER(c_int), c_char_p, c_int, c_int, c_int, c_void_p
)
_START = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), POINTER(Event))
_OVER = ctypes.CFUNCTYPE(c_int, c_void_p)


class Profiler(Structure):
    """`ncclProfiler_v5_t`."""

    _fields_ = (
        ("name", c_char_p), ("init", _INIT), ("start", _START), ("stop", _OVER),
        ("record", c_void_p), ("finalize", _OVER),
    )  # fmt: skip


class Rank:
    """What NCCL's core does at one rank."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.table = Profiler.in_dll(ctypes.CDLL(str(PLUGIN)), "ncclProfiler_v5")
        self.context, mask, self.rank = c_void_p(), c_int(-1), rank
        made = self.table.init(self.context, 7, mask, b"world", 1, ranks, rank, None)
        assert made == 0
        self.mask = mask.value

    def start(self, kind: int, parent: int | None = None, **about: object) -> int | None:
        """Begins an event; its handle."""
        event = Event(kind, parent, self.rank)
        for name, value in about.items():
            setattr(event.about, name, value)
        handle = c_void_p()
        assert self.table.start(self.context, handle, event) == 0
        return handle.value

    def stop(self, *handles: int | None) -> None:
        """Ends events."""
        assert all(self.table.stop(handle) == 0 for handle in handles)

    def end(self) -> None:
        """Ends the communicator."""
        assert self.table.finalize(self.context) == 0

    def all_reduce(self) -> None:
        """As NCCL tells of one, down to a step of its proxy."""
        call = Call(b"AllReduce", 1024, b"ncclFloat32", 0, 0xC0DE, False)
        group = self.start(GROUP_CALL)
        called = self.start(COLLECTIVE_CALL, group, call=call)
        words = (b"AllReduce", None, None, 1024, 0, b"ncclFloat32", 2, 16, b"RING", b"SIMPLE", None)
        task = self.start(COLLECTIVE, called, coll=Collective(5, *words))
        operation = self.start(OPERATION, task, op=Operation(os.getpid(), 1, 1, 1, 4096, 1))
        step = self.start(STEP, operation, step=0)
        self.stop(called, group, task, step, operation)

    def exchange(self) -> None:
        """A send and a receive in one group, twice."""
        for _ in range(2):
            group = self.start(GROUP_CALL)
            for name in (b"Send", b"Recv"):
                call = self.start(1 << 10, group)
                other = Message(name, None, b"ncclInt8", 5000, 1 - self.rank, 1, None)
                self.stop(self.start(P2P, call, p2p=other), call)
            self.stop(group)


def rank_process(rank: int, directory: Path) -> None:
    """A rank in a process of its own, which this file is run as."""
    program = [sys.executable, __file__, str(rank)]
    subprocess.run(
        program, env={**os.environ, "WEFT_PROFILE": str(directory)}, check=True, timeout=60
    )


def texts(folder: Path) -> list[str]:
    """Files as they are now."""
    return [file.read_text() for file in folder.glob("weft-*")]


def events(file: Path) -> list[dict[str, Any]]:
    """What is in a file."""
    found = [event for event in json.loads(file.read_text()) if event]
    assert all({"name", "ph", "ts", "pid", "tid"} <= event.keys() for event in found)
    return found


def test_what_nccl_says_is_a_workload(weft: Weft, tmp_path: Path) -> None:
    """Two ranks with a file each, which are one job."""
    for rank in (0, 1):
        rank_process(rank, tmp_path)
    first, _ = sorted(tmp_path.iterdir())
    found = json.loads(weft("trace", "info", first, "--json").stdout)
    assert found["ranks"] == 2
    assert [(row["operation"], row["bytes"]) for row in found["collectives"]] == [
        ("all-reduce", 4096)
    ]
    assert found["kinds"] == {"collective": 2, "send": 4, "receive": 4}
    fabric = "leaf-spine:leaves=1,spines=1,hosts=2"
    compared = weft("compare", "--workload", first, "--fabric", fabric, "--schemes", "ecmp")
    assert compared.returncode == 0, compared.stderr
    written = weft("trace", "convert", first, "-o", tmp_path / "job.goal")
    assert written.returncode == 0, written.stderr


def test_two_ranks_in_one_file_are_told_apart(weft: Weft, tmp_path: Path) -> None:
    """A process with several GPUs is several ranks, and their calls cannot be taken apart."""
    told = [{"CommHash": 7, "Rank": rank, "nRanks": 2} for rank in (0, 1)]
    lines = [{"name": "communicator", "ph": "M", "args": args} for args in told]
    (tmp_path / "weft-0-1-0.json").write_text(json.dumps([*lines, {}]))
    done = weft("trace", "info", tmp_path / "weft-0-1-0.json")
    assert done.returncode == 2
    assert "record 2: the process is ranks 0 and 1 of one communicator" in done.stderr


def test_events_nest_and_end(tmp_path: Path) -> None:
    """Begins have their ends, no earlier; parts name what they are a part of."""
    rank_process(0, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("weft-0-")
    found = events(file)
    begins = {event["id2"]["local"]: event for event in found if event["ph"] == "b"}
    ends = {event["id2"]["local"]: event for event in found if event["ph"] == "e"}
    assert begins.keys() == ends.keys()
    assert all(begins[key]["ts"] <= ends[key]["ts"] for key in begins)
    by_number = {event["args"]["Event"]: event for event in begins.values()}
    chain = [next(event for event in begins.values() if event["name"] == "SendStep")]
    while "Parent" in chain[-1]["args"]:
        chain.append(by_number[chain[-1]["args"]["Parent"]])
    assert [event["cat"] for event in chain] == ["NET", "PROXY", "COLL", "COLL_API", "GROUP_API"]
    names = {event["name"]: event["args"] for event in found if event["ph"] == "M"}
    assert names["process_name"]["name"].startswith("rank 0 (")
    assert names["communicator"] == {
        "CommHash": 7, "Rank": 0, "nRanks": 2, "nNodes": 1, "CommName": "world",
    }  # fmt: skip


def test_a_file_is_whole_when_its_process_is_killed(tmp_path: Path) -> None:
    """What was under way is in it, without its end."""
    program = [sys.executable, __file__, "0", "killed"]
    environment = {**os.environ, "WEFT_PROFILE": str(tmp_path)}
    assert subprocess.run(program, env=environment, check=False, timeout=60).returncode == -9
    (file,) = tmp_path.iterdir()
    assert [event["ph"] for event in events(file) if event["cat"] == "COLL"] == ["b"]


def test_nothing_is_asked_for_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL finds the table in every job over the plugin."""
    monkeypatch.delenv("WEFT_PROFILE", raising=False)
    rank = Rank(0, 2)
    assert (rank.mask, rank.context.value) == (0, None)
    assert rank.start(COLLECTIVE) is None


def test_messages_have_all_their_bytes(
    weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench-net` has no profiler, and messages are recorded all the same."""
    profile = tmp_path / "profile"
    monkeypatch.setenv("WEFT_PROFILE", str(profile))
    words = ("bench-net", "--ranks", "2", "--op", "sendrecv", "-b", "3MiB", "-e", "3MiB")
    done = weft(*words, "-n", "2", "-w", "0")
    assert done.returncode == 0, done.stderr
    found = [event for file in profile.iterdir() for event in events(file) if event["ph"] == "b"]
    sends = [event for event in found if event["name"].startswith("send to ")]
    assert sends
    for send in sends:
        args = send["args"]
        pieces = [
            event["args"] for event in found
            if event["pid"] == send["pid"] and event["args"].get("Parent") == args["Event"]
        ]  # fmt: skip
        assert sum(piece["Bytes"] for piece in pieces) == args["Bytes"]
        assert len(pieces) == args["Pieces"]
        assert args["TimeOuts"] == 0
        assert all(piece["Port"] > 0 for piece in pieces)
    refused = weft("trace", "info", next(profile.iterdir()))
    assert refused.returncode == 2
    assert "has no call of NCCL's" in refused.stderr


def test_bytes_are_counted_by_plane(
    weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of `bench-net` beside NCCL's calls: by NIC, or where there are planes by plane."""
    monkeypatch.setenv("WEFT_PROFILE", str(tmp_path / "messages"))
    words = ("bench-net", "--ranks", "2", "--op", "sendrecv", "-b", "3MiB", "-e", "3MiB")
    done = weft(*words, "-n", "2", "-w", "0")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        rank_process(rank, tmp_path / "calls")
    calls, other = sorted((tmp_path / "calls").iterdir())
    pieces = [
        event
        for file in sorted((tmp_path / "messages").glob("*.json")) for event in events(file)
        if event["cat"] == "WEFT_PIECE"
    ]  # fmt: skip
    begins = [event for event in pieces if event["ph"] == "b"]
    total = sum(event["args"]["Bytes"] for event in begins)
    assert total >= 2 * 2 * (3 << 20)
    (device,) = {event["args"]["Device"] for event in begins}
    file = calls.rename(tmp_path / calls.name)
    other.rename(tmp_path / other.name)
    told = events(file)

    def carried() -> list[dict[str, Any]]:
        file.write_text(json.dumps([*told, *pieces, {}]))
        found: dict[str, Any] = json.loads(weft("trace", "info", file, "--json").stdout)
        rows: list[dict[str, Any]] = found["carried"]
        return rows

    assert carried() == [{"device": device, "pieces": len(begins), "bytes": total}]
    first = begins[0]["args"]["Bytes"]
    for at, event in enumerate(begins):
        event["args"]["Plane"] = int(at > 0)
    assert carried() == [
        {"plane": 0, "pieces": 1, "bytes": first},
        {"plane": 1, "pieces": len(begins) - 1, "bytes": total - first},
    ]
    shown = weft("trace", "info", file).stdout.splitlines()
    at = next(number for number, line in enumerate(shown) if line.startswith("sent by"))
    assert shown[at].split() == ["sent", "by", "pieces", "bytes", "share"]
    assert shown[at + 2].startswith("plane 1")
    assert shown[at + 2].endswith(f"{(total - first) / total:.1%}")


def test_a_directory_that_cannot_be_is_said(
    weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, in one line."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEFT_PROFILE", str(tmp_path / "file"))
    done = weft("bench-net", "--ranks", "2", "-b", "8", "-e", "8")
    assert done.returncode != 0
    assert f"WEFT_PROFILE: {tmp_path / 'file'}: " in done.stderr


_TUNER_INIT = ctypes.CFUNCTYPE(
    c_int, POINTER(c_void_p), c_uint64, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p
)
_TUNER_ASK = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_int, c_size_t, c_int, POINTER(c_float), c_int, c_int, c_int, POINTER(c_int)
)


class Tuner(Structure):
    """`ncclTuner_v5_t`."""

    _fields_ = (("name", c_char_p), ("init", _TUNER_INIT), ("ask", _TUNER_ASK), ("finalize", _OVER))


def test_a_plan_tunes_nccl(weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of two channels is planned, and NCCL takes it for that size and number of ranks."""
    cluster = Path(__file__).parents[1] / "examples/cluster.toml"
    job = "all-reduce:size=64MB,algorithm=ring,channels=2"
    done = weft("plan", cluster, "--workload", job, "--scheme", "ethereal", "-o", tmp_path / "plan")
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("WEFT_CONFIG", str(tmp_path / "plan"))
    tuner = Tuner.in_dll(ctypes.CDLL(str(PLUGIN)), "ncclTunerPlugin_v5")
    told = {}
    for ranks in (16, 8):
        context = c_void_p()
        assert tuner.init(context, 1, ranks, 2, None, None, None) == 0
        table, channels = (c_float * 21)(*[5.0] * 21), c_int(0)
        # All-reduce is 4, the ring row 1.
        assert tuner.ask(context, 4, 64_000_000, 1, table, 7, 3, 0, channels) == 0
        told[ranks] = (min(range(21), key=table.__getitem__) // 3, min(table), channels.value)
        assert tuner.finalize(context) == 0
    assert told == {16: (1, 0.0, 2), 8: (0, 5.0, 0)}


if __name__ == "__main__":
    one = Rank(int(sys.argv[1]), 2)
    one.all_reduce()
    if "killed" in sys.argv:
        folder = Path(os.environ["WEFT_PROFILE"])
        while not any('"COLL"' in text and text.endswith("{}]\n") for text in texts(folder)):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    one.exchange()
    one.end()
