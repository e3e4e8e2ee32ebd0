"""Timelines of all ranks for the Perfetto UI (Chrome's trace format), one file for each run.

A rank is a process with tracks for its computation, its collectives and the messages that it sends
over the fabric. Slices that overlap go to different tracks, since slices of one track must not
cross. Arrows go from a message's sender to its receiver.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import ExperimentError, writing

if TYPE_CHECKING:
    import polars as pl

MOST_MESSAGES = 200_000
"""A file has no messages if there are more: viewers are too slow for them."""

_TRACKS = ("compute", "communication", "messages")
_COMPUTE = ("compute", "memory")

Event = dict[str, Any]


def write(
    runs: pl.DataFrame, all_nodes: pl.LazyFrame, all_messages: pl.LazyFrame, folder: Path
) -> list[Path]:
    """Write `RUN-LABEL.json.gz` into `folder` for every run with a job; returns the files.

    Raises:
        ExperimentError: No run has a timeline.
    """
    import polars as pl

    if all_nodes.head(1).collect().is_empty():
        raise ExperimentError(
            f"{folder}: no run has a timeline; run a job (a collective, trace or model) with "
            "timeline = true in [probe], as weft run --timeline does"
        )
    paths = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for row in runs.iter_rows(named=True):
            mine = pl.col("run") == row["run"]
            nodes = all_nodes.filter(mine).collect()
            if nodes.height == 0:
                continue
            messages = all_messages.filter(mine).collect()
            path = folder / _file(row)
            text = json.dumps(trace(nodes, messages, row), separators=(",", ":"))
            # No time of writing: the same run gives the same bytes.
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
            paths.append(path)
    return paths


def written(runs: pl.DataFrame, folder: Path) -> bool:
    """Whether timelines of these runs are in `folder`."""
    return any((folder / _file(row)).exists() for row in runs.iter_rows(named=True))


def _file(row: Mapping[str, Any]) -> str:
    return f"{row['run']}-{_plain(row['label'])}-seed{row['seed']}.json.gz"


def trace(nodes: pl.DataFrame, messages: pl.DataFrame, row: Mapping[str, Any]) -> dict[str, Any]:
    """The trace of one run: its nodes, its messages, and its row of results."""
    ranks = _ranks(nodes)
    events = [*_slices(nodes), *_messages(messages, ranks)]
    tracks = sorted({(event["pid"], event["tid"]) for event in events})
    return {
        "displayTimeUnit": "ns",
        "otherData": {key: row[key] for key in ("label", "scheme", "workload", "seed", "cct_s")},
        "traceEvents": [*_names(tracks, ranks), *events],
    }


def _slices(nodes: pl.DataFrame) -> Iterator[Event]:
    lanes = _Lanes()
    for node in nodes.sort("start_s", "finish_s", "rank", "node").iter_rows(named=True):
        if node["finish_s"] == node["start_s"]:
            continue
        kind = _TRACKS[0] if node["work"] in _COMPUTE else _TRACKS[1]
        name = node["name"] or node["work"]
        args = {"job": node["job_name"] or node["job"], "node": node["node"], "work": node["work"]}
        yield lanes.slice(node["rank"], kind, name, node, args)


def _messages(messages: pl.DataFrame, ranks: Mapping[int, str]) -> Iterator[Event]:
    if messages.height > MOST_MESSAGES:
        return
    lanes = _Lanes()
    for message in messages.sort("start_s", "message").iter_rows(named=True):
        src, dst = message["src_rank"], message["dst_rank"]
        args = {"bytes": message["bytes"], "node": message["node"]}
        one = lanes.slice(src, _TRACKS[2], f"to {ranks[dst]}", message, args)
        yield one
        arrow = {"cat": "message", "name": "message", "id": message["message"]}
        yield {**arrow, "ph": "s", "ts": one["ts"], "pid": src, "tid": one["tid"]}
        end = {"ts": one["ts"] + one["dur"], "pid": dst, "tid": _TRACKS.index("communication")}
        yield {**arrow, "ph": "f", "bp": "e", **end}


class _Lanes:
    """Tracks of each rank: what overlaps goes side by side."""

    _WIDE = 1000

    def __init__(self) -> None:
        self._free: dict[tuple[int, str], list[float]] = {}

    def slice(
        self, rank: int, kind: str, name: str, span: Mapping[str, Any], args: Mapping[str, Any]
    ) -> Event:
        """A slice from `start_s` to `finish_s` of `span`, on a track where there is room."""
        start, finish = span["start_s"], span["finish_s"]
        ends = self._free.setdefault((rank, kind), [])
        lane = next((lane for lane, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [finish]
        tid = _TRACKS.index(kind) + lane * self._WIDE
        # Microseconds, to the picosecond.
        ts = round(start * 1e6, 6)
        times = {"ts": ts, "dur": round(finish * 1e6 - ts, 6)}
        return {
            "ph": "X",
            "cat": kind,
            "name": name,
            "pid": rank,
            "tid": tid,
            **times,
            "args": args,
        }


def _ranks(nodes: pl.DataFrame) -> dict[int, str]:
    """What each rank is called: `rank 3`, or of one of several jobs `a: rank 3`."""
    ranks = nodes.select("rank", "job_name", "job_rank").unique()
    return {
        rank: f"{name}: rank {own}" if name else f"rank {rank}"
        for rank, name, own in ranks.iter_rows()
    }


def _names(tracks: Iterable[tuple[int, int]], ranks: Mapping[int, str]) -> Iterator[Event]:
    known = set()
    for rank, tid in tracks:
        if rank not in known:
            known.add(rank)
            yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": ranks[rank]}}
        kind, lane = _TRACKS[tid % _Lanes._WIDE], tid // _Lanes._WIDE
        name = kind if lane == 0 else f"{kind} {lane + 1}"
        base = {"ph": "M", "pid": rank, "tid": tid}
        yield {**base, "name": "thread_name", "args": {"name": name}}
        order = _TRACKS.index(kind) * _Lanes._WIDE + lane
        yield {**base, "name": "thread_sort_index", "args": {"sort_index": order}}


def _plain(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in label)
