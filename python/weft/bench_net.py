"""Measures collectives over NCCL's network plugins, or over plain sockets: `weft bench-net`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import _native, internal_errors
from weft.errors import ExperimentError
from weft.version import PLUGIN

_LARGEST = 1 << 34
"""Bytes of a collective: more is a slip of the finger."""
_LARGEST_CHUNK = 1 << 30
"""Bytes of a message: what version 8 can express."""

_GRACE_S = 1.0
"""For other ranks to say what is wrong, where one has failed."""

_REDUCING = {"all-reduce", "reduce-scatter"}
_COLUMNS = "#{:>12} {:>13} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7} {:>7}"


@dataclass(frozen=True)
class Options:
    """What is measured, as the command line has it."""

    operation: str
    first: str
    last: str
    factor: int
    iterations: int
    warm_up: int
    checks: int
    channels: int
    chunk: str
    ranks: int
    plugin: Path | None
    abi: str
    device: str
    traffic_class: int | None
    sockets: bool
    connections: int
    address: str | None
    patience_s: float
    verbose: bool
    json: bool


def parse_size(option: str, text: str) -> int:
    """Read a size, which may be written as nccl-tests writes it, too."""
    try:
        number = _native.nccl_size(text)
    except ExperimentError as error:
        raise ExperimentError(f"{option}: {error}") from None
    if number > _LARGEST:
        raise ExperimentError(f"{option} {text}: use at most {_LARGEST >> 30}GiB")
    return number


def parse_devices(text: str) -> list[int]:
    """Read the numbers of NICs, as 0 or 0,1."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise ExperimentError(f"--device {text}: write a number, or several to be one NIC, as 0,1")
    numbers = [int(part) for part in parts]
    if len(set(numbers)) < len(numbers):
        raise ExperimentError(f"--device {text}: a NIC is there twice; name each once")
    return numbers


def sizes(first: str, last: str, factor: int) -> list[int]:
    """All sizes from `first` to `last`, each `factor` times the one before."""
    least, most = parse_size("-b", first), parse_size("-e", last)
    if least > most:
        raise ExperimentError(f"-b {first}: more than -e {last}")
    if least == 0 < most:
        raise ExperimentError(f"-b {first}: never becomes -e {last} by factors; use 4 or more")
    found = [least]
    while found[-1] * factor <= most and factor > 1 and found[-1] > 0:
        found.append(found[-1] * factor)
    return found


def run(options: Options, rank: int | None, rendezvous: str | None) -> int:
    """Measure as one rank, or as all of them on this machine; returns the exit status."""
    if rank is None and rendezvous is not None:
        raise ExperimentError("--rendezvous: also needs the --rank of this process")
    if rank is not None and rendezvous is None:
        raise ExperimentError(
            "--rank: also needs --rendezvous, where rank 0 waits, as 10.0.0.1:29500"
        )
    measured = sizes(options.first, options.last, options.factor)
    chunk = parse_size("--chunk", options.chunk)
    if not 4 <= chunk <= _LARGEST_CHUNK:
        raise ExperimentError(f"--chunk {options.chunk}: use 4B to {_LARGEST_CHUNK >> 30}GiB")
    plugin = None if options.sockets else (options.plugin or PLUGIN)
    if plugin is not None:
        if not plugin.is_file():
            hint = "give --plugin FILE" if options.plugin else "`make plugin` builds Weft's"
            raise ExperimentError(f"--plugin {plugin}: there is no such file; {hint}")
        # A name without a slash is looked for among the system's libraries.
        plugin = plugin.absolute()
    if rank is None:
        _use_loopback()
    warned = _native.check_environment(outputs=True) if plugin == PLUGIN else []
    if rank is not None and rendezvous is not None:
        return _one(options, rank, rendezvous, plugin, measured, chunk)
    return _all_here(options, plugin, measured, chunk, warned)


def _use_loopback() -> None:
    """Use loopback, unless the environment says what to use."""
    if not {"WEFT_CONFIG", "WEFT_IFNAME"} & set(os.environ):
        os.environ["WEFT_IFNAME"] = "=lo"


def _all_here(
    options: Options, plugin: Path | None, measured: list[int], chunk: int, warned: list[str]
) -> int:
    """Ranks as processes of this machine, of which this one is rank 0, and warns as `warned`."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        rendezvous = f"127.0.0.1:{found.getsockname()[1]}"
    debug = [internal_errors.OPTION] * internal_errors.HANDLER.debug
    arguments = [sys.executable, "-m", "weft", *debug, *sys.argv[1:], "--rendezvous", rendezvous]
    with tempfile.TemporaryFile() as said:
        others = [
            subprocess.Popen(  # noqa: S603
                [*arguments, "--rank", str(rank)], stdout=subprocess.DEVNULL, stderr=said
            )
            for rank in range(1, options.ranks)
        ]
        patience_s = 0.0
        try:
            status = _one(options, 0, rendezvous, plugin, measured, chunk)
            # Others may wait in vain for a rank that has failed, since it lives on as their parent.
            patience_s = _GRACE_S if status else options.patience_s
        finally:
            late = _end(others, patience_s)
        if late and not status:
            print(f"error: {', '.join(late)} did not end in time", file=sys.stderr)
        # Those that a signal has ended have negative ones.
        codes = [other.returncode for other in others]
        status = max([status, *(code if code >= 0 else 1 for code in codes)])
        # What is wrong with the input all ranks say: then this one's line was enough.
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines(keepends=True)
        if not options.verbose:
            new = (line for line in lines if not any(warning in line for warning in warned))
            lines = list(dict.fromkeys(new))
        sys.stderr.writelines(lines)
        return status


def _end(others: list[subprocess.Popen[bytes]], patience_s: float) -> list[str]:
    """Wait for ranks that long in all, then end those that are left, and name them."""
    until = time.monotonic() + patience_s
    late = []
    for rank, other in enumerate(others, start=1):
        try:
            other.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            # A process that is stopped heeds nothing else.
            other.kill()
            other.wait()
            late.append(f"rank {rank}")
    return late


@dataclass
class _Report:
    """What rank 0 shows."""

    options: Options
    shown: bool
    about: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, about: str) -> None:
        self.about = about
        if not self.shown or self.options.json:
            return
        options = self.options
        print(f"# {options.operation} over {options.ranks} ranks: {about}")
        print(
            f"# {options.warm_up} warm-up runs, {options.iterations} iterations, {options.checks} "
            f"checked, {options.channels} channels per peer, messages of up to {options.chunk}"
        )
        names = "size count type redop root time algbw busbw #wrong"
        units = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")
        print(_COLUMNS.format(*names.split()))
        print(_COLUMNS.format(*units).rstrip())

    def row(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if not self.shown or self.options.json:
            return
        wrong = "N/A" if row["wrong"] is None else row["wrong"]
        redop = "sum" if self.options.operation in _REDUCING else "none"
        line = _COLUMNS.format(
            row["size_bytes"],
            row["count"],
            "float",
            redop,
            -1,
            f"{row['time_s'] * 1e6:.1f}",
            f"{row['algorithm_bytes_per_s'] / 1e9:.3f}",
            f"{row['bus_bytes_per_s'] / 1e9:.3f}",
            wrong,
        )
        print(line.replace("#", " ", 1), flush=True)

    def end(self) -> int:
        wrong = sum(row["wrong"] or 0 for row in self.rows)
        bus = [row["bus_bytes_per_s"] for row in self.rows]
        mean = sum(bus) / len(bus)
        if self.shown and self.options.json:
            result = {
                "network": self.about,
                "operation": self.options.operation,
                "ranks": self.options.ranks,
                "mean_bus_bytes_per_s": mean,
                "wrong": wrong,
                "rows": self.rows,
            }
            print(json.dumps(result, indent=1))
        elif self.shown:
            print(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
            print(f"# Avg bus bandwidth    : {mean / 1e9:.4f}")
        return 1 if wrong else 0


def _renamed(error: Exception) -> str:
    """The text of an error, with the option's name here: the native core calls it --meet."""
    return str(error).replace("--meet", "--rendezvous")


def _one(
    options: Options,
    rank: int,
    rendezvous: str,
    plugin: Path | None,
    measured: list[int],
    chunk: int,
) -> int:
    report = _Report(options, rank == 0)
    devices = parse_devices(options.device)
    try:
        _native.bench_net(
            rank=rank,
            ranks=options.ranks,
            meet=rendezvous,
            patience_s=options.patience_s,
            operation=options.operation,
            sizes=measured,
            iterations=options.iterations,
            warm_up=options.warm_up,
            checks=options.checks,
            channels=options.channels,
            chunk=chunk,
            plugin=(plugin, options.abi, devices, options.traffic_class) if plugin else None,
            connections=options.connections,
            address=options.address,
            verbose=options.verbose,
            begin=report.begin,
            row=report.row,
        )
    except ExperimentError as error:
        raise ExperimentError(_renamed(error)) from None
    except RuntimeError as error:
        print(f"error: rank {rank}: {_renamed(error)}", file=sys.stderr)
        return 1
    return report.end()
