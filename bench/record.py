"""Runs the speed benchmark, compares it with the last record, and keeps a new one.

Records are JSON files in bench/records, named by date (UTC, so that they sort) and commit:
commit, command, machine, a calibration of the machine, for each case the raw loop times of all
repetitions, for each case on two cores the raw times of all rounds, and what more cores would gain.
Ratios of speeds are corrected by the calibration loops of the two records, so that a slower day
of the machine does not look like slower code. What two cores gain is compared as it is: it was
measured against one core of the same machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
COMMAND = ["cargo", "run", "--release", "--quiet", "-p", "weft-bench", "--"]
#: A case that moves by more than this is named.
NOTABLE = 0.10
#: The cost of a packet-hop may grow by `MOST_GROWTH` from the first of these cases to the last.
GROWTH = ("permutation-128", "permutation-1024", "permutation-8192")
MOST_GROWTH = 1.7


def main() -> int:
    """Measure, compare, and keep; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("cases", nargs="*", help="only these cases (keeps no record)")
    options.add_argument("--seconds", default="3", help="how long each case repeats")
    options.add_argument("--scaling", action="store_true", help="two cores only (keeps no record)")
    options.add_argument("--threads", action="store_true", help="more cores only (keeps no record)")
    options.add_argument("--keep", action="store_true", help="keep the record in bench/records")
    arguments = options.parse_args()
    part = ["--scaling"] * arguments.scaling or ["--threads"] * arguments.threads
    command = [*COMMAND, "--seconds", arguments.seconds, *part, *arguments.cases]
    measured = run(command)
    if measured is None:
        return 1
    growth(measured)
    compare(measured, last_record())
    if arguments.keep and not arguments.cases and not part:
        keep(RECORDS, origin_of(command) | measured)
    return 0


def run(command: list[str]) -> dict[str, Any] | None:
    """The benchmark's record; its table goes to the terminal as it grows."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            if not line.startswith("{"):
                print(line, end="", flush=True)
            last = line
    if process.returncode != 0:
        return None
    record: dict[str, Any] = json.loads(last)
    return record


def last_record() -> dict[str, Any] | None:
    """The newest of the records that are kept."""
    names = sorted(RECORDS.glob("*.json"))
    return json.loads(names[-1].read_text()) if names else None


def growth(measured: dict[str, Any]) -> None:
    """Prints how the cost of a packet-hop grows with the fabric."""
    rates = values(measured, "cases", "hops_per_s")
    if all(name in rates for name in GROWTH):
        ratios = [rates[GROWTH[0]] / rates[name] for name in GROWTH]
        verdict = "within" if ratios[-1] <= MOST_GROWTH else "over"
        text = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"cost of a hop at {' / '.join(GROWTH)}: {text} ({verdict} {MOST_GROWTH})")


def compare(measured: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Prints how each case moved against the last record."""
    if before is None:
        print("no record to compare with")
        return
    machine = before["calibration_ns"] / measured["calibration_ns"]
    print(f"against {before['date']} {before['commit'][:10]}, machine {machine:.2f} times as fast:")
    kinds = [("speed", "cases", "hops_per_s", machine), ("gain", "scaling", "speed_up", 1.0)]
    for what, part, field, expected in kinds:
        print_moves(what, values(measured, part, field), values(before, part, field), expected)


def print_moves(
    what: str, now: dict[str, float], before: dict[str, float], expected: float
) -> None:
    """Prints each case's ratio over what was expected, and marks those that moved."""
    for name, value in now.items():
        if name not in before:
            print(f"  {name:<26}   new ({what})")
            continue
        ratio = value / before[name] / expected
        mark = "  <- moved" if abs(ratio - 1) > NOTABLE else ""
        print(f"  {name:<26} {ratio:5.2f} times the {what}{mark}")


def values(record: dict[str, Any], part: str, field: str) -> dict[str, float]:
    """One number for each case; older records lack parts, cases and fields."""
    return {case["name"]: case[field] for case in record.get(part, []) if field in case}


def keep(folder: Path, record: dict[str, Any], name: str = "") -> None:
    """Write a record, which has its `origin_of`, into a folder, and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [record["date"], record["commit"][:10], *([name] if name else [])]
    path = folder / f"{'-'.join(parts)}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"kept as {path.relative_to(RECORDS.parents[1])}")


def origin_of(command: list[str]) -> dict[str, Any]:
    """When, from which commit, by which command and on what a record was made."""
    changed = output_of("git", "status", "--porcelain")
    commit = output_of("git", "rev-parse", "HEAD") + ("+changes" if changed else "")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H%MZ"),
        "commit": commit,
        "command": " ".join(command),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "rustc": output_of("rustc", "--version"),
        },
    }


def tcp_congestion() -> str:
    """The system's TCP congestion control: BBR holds back even what stays on this machine."""
    return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def output_of(*command: str) -> str:
    """What a command prints, without the line end; nothing where it is not installed."""
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main())
