"""Runs other simulators and Weft on the same input files, and prints time and memory of both.

The other simulators are yours: give the program of each that you have; without any, Weft runs
alone.
Inputs are written into a folder that stays for you to look at; what each side models is in
docs/evidence/speed.md, whose table of commands is printed by `--table` from a record.

    python bench/beside.py --htsim ~/uet-htsim/htsim_uec --loggopsim ~/LogGOPSim/LogGOPSim
    make beside OTHERS="--htsim ~/uet-htsim/htsim_uec --rounds 5"
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import record
from beside_inputs import CASES, SIMULATORS, WEFT, Case, write_inputs

RECORDS = Path(__file__).parent / "records" / "beside"
NONE = "-"
"""Of a cell of the table: not measured."""
STARTER = """\
exec 3<&0
{ read -r go <&3; exec "$@" >"$0" 2>&1 </dev/null 3<&-; } &
echo $!
"""
"""A shell that starts a program in a child of its own, and ends before that begins.

Linux counts as a program's memory what the process had before: of a child of the shell 1 MB, of
a child of this process all that Python has.
"""
_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of Linux: what the shell leaves behind becomes a child of ours."""


@dataclass(frozen=True)
class Measured:
    """One process: seconds of wall clock and of processors, and the most memory that it had."""

    seconds: float
    processor_s: float
    peak_bytes: int
    status: int


def main(words: Sequence[str]) -> int:
    """Run what there is; returns the exit status."""
    given = vars(_options().parse_args(words))
    folder, keep, shown, rounds = (
        given.pop(name) for name in ("folder", "keep", "table", "rounds")
    )
    if shown is not None:
        print(table(_rows_of(shown)))
        return 0
    if rounds < 1:
        _refuse(f"--rounds {rounds}: is no number from 1 on")
    programs = {name.replace("_", "-"): path.resolve() for name, path in given.items() if path}
    for name, path in programs.items():
        if not (path.is_file() and os.access(path, os.X_OK)):
            _refuse(f"--{name} {path}: is no program")
    # A record is of all cases: those whose simulator is not there are Weft's alone.
    chosen = [case for case in CASES if keep or not programs or case.simulator in programs]
    origin = record.origin_of(["bench/beside.py", *words])
    origin["load_before"] = os.getloadavg()[0]
    rows: list[dict[str, Any]] = []
    try:
        _write(folder, chosen)
        for case in chosen:
            rows += both(case, programs, folder, rounds)
            (folder / "beside.json").write_text(json.dumps(rows, indent=1) + "\n")
    except KeyboardInterrupt:
        print(f"interrupted: {len(rows)} rows are in {folder / 'beside.json'}", file=sys.stderr)
        return 130
    print(f"kept in {folder / 'beside.json'}")
    if keep:
        record.keep(RECORDS, origin | {"rows": rows})
    return max((int(row["status"] != 0) for row in rows), default=0)


class _Options(argparse.ArgumentParser):
    """Options; what is wrong with them is one line."""

    def error(self, message: str) -> NoReturn:
        _refuse(message)


def _options() -> argparse.ArgumentParser:
    options = _Options(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    for name in SIMULATORS:
        options.add_argument(f"--{name}", metavar="PROGRAM", type=Path, help=f"{name}'s program")
    options.add_argument(
        "--rounds", metavar="N", type=int, default=1, help="runs of each side, in turn (1)"
    )
    options.add_argument("--folder", type=Path, default=Path("out/beside"), help="of the inputs")
    options.add_argument(
        "--keep", action="store_true", help="all cases, and a record of them in bench/records"
    )
    options.add_argument(
        "--table", type=Path, metavar="FILE", help="print the table of a record or beside.json"
    )
    return options


def _refuse(why: str) -> NoReturn:
    print(f"error: {why}", file=sys.stderr)
    raise SystemExit(2)


def _write(folder: Path, cases: Sequence[Case]) -> None:
    try:
        for simulator in dict.fromkeys(case.simulator for case in cases):
            write_inputs(folder, simulator)
    except OSError as error:
        _refuse(f"--folder {folder}: {error.strerror}")
    except subprocess.CalledProcessError as error:
        _refuse(f"the inputs cannot be written: `{shlex.join(error.cmd)}` failed")


def _rows_of(path: Path) -> list[dict[str, Any]]:
    """What a record has measured, as far as the table needs it."""
    try:
        found = json.loads(path.read_text())
        rows = found["rows"] if isinstance(found, dict) else found
        kinds: dict[str, Any] = dict.fromkeys(("case", "simulator"), str)
        kinds |= dict.fromkeys(("seconds", "peak_bytes", "status"), int | float)
        if not all(isinstance(row[key], kind) for row in rows for key, kind in kinds.items()):
            raise TypeError
    except OSError as error:
        _refuse(f"--table {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        _refuse(f"--table {path}: is no record of make beside; give one that --keep has written")
    return list(rows)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The commands of both sides, and what they took, as docs/evidence/speed.md has them.

    What was not measured is empty; without another simulator its columns are not there.
    """
    found = {(row["case"], row["simulator"]): row for row in rows}
    compared = any(simulator != "weft" for _, simulator in found)
    more = " its s | its MB |" if compared else ""
    lines = [f"| input | the other side | Weft | s | MB |{more}"]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    for case in CASES:
        cells = [case.name, *(f"`{_shown(case, side)}`" for side in (case.simulator, "weft"))]
        for simulator in ("weft", *([case.simulator] if compared else [])):
            cells += _cells(found.get((case.name, simulator)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(case: Case, side: str) -> str:
    """The command of a side, with its name in place of where its program is."""
    return f"weft {case.weft}" if side == "weft" else case.other.format(program=side)


def _cells(row: Mapping[str, Any] | None) -> list[str]:
    if row is None:
        return [NONE, NONE]
    if row["status"] != 0:
        return ["failed", NONE]
    return [f"{row['seconds']:.1f}", f"{row['peak_bytes'] / 1e6:.0f}"]


def both(
    case: Case, programs: Mapping[str, Path], folder: Path, rounds: int
) -> list[dict[str, Any]]:
    """Run the sides of a case that are there, in turn, and print a line for each."""
    print(case.name, flush=True)
    sides = {"weft": [*WEFT, *shlex.split(case.weft)]}
    if program := programs.get(case.simulator):
        theirs = shlex.split(case.other.format(program=shlex.quote(str(program))))
        sides = {case.simulator: theirs} | sides
    slug = re.sub("[^a-z0-9]+", "-", case.name.lower())
    outputs = {name: folder / f"{slug}.{name}.out" for name in sides}
    found: dict[str, list[Measured]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, command in sides.items():
            # What fails once need not fail again.
            if all(one.status == 0 for one in found[name]):
                found[name].append(measure(command, folder, outputs[name]))
    return [_row(case, name, found[name], outputs[name]) for name in sides]


def _row(case: Case, name: str, rounds: Sequence[Measured], output: Path) -> dict[str, Any]:
    """What a side took: the time of its best round, the memory of its worst. Prints it."""
    best = min(rounds, key=lambda one: (-abs(one.status), one.seconds))
    peak = max(one.peak_bytes for one in rounds)
    print(f"  {name:15s} {best.seconds:9.2f} s", end="")
    if len(rounds) > 1:
        median = statistics.median(one.seconds for one in rounds)
        print(f" (best of {len(rounds)}; median {median:.2f} s)", end="")
    print(f" {best.processor_s:9.2f} s of processors {peak / 1e6:9.1f} MB", end="")
    if best.status != 0:
        print(f"  exit status {best.status}: its time says nothing; see {output}", end="")
    print(flush=True)
    if name != "weft" and best.status == 0:
        # Some end with status 0 whatever happens: what it says last tells whether it has run.
        print(f"  {'':15s} it says last: {_last_line(output)}", flush=True)
    return {
        "case": case.name,
        "simulator": name,
        "command": _shown(case, name),
        **asdict(best),
        "peak_bytes": peak,
        "rounds_s": [one.seconds for one in rounds],
    }


def _last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").split("\n")
    return next((line.strip()[:120] for line in reversed(lines) if line.strip()), "nothing")


def measure(command: Sequence[str], folder: Path, output: Path) -> Measured:
    """Run a command in a folder; what it prints goes to a file."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    words = ["/bin/sh", "-c", STARTER, str(output.resolve()), *command]
    with subprocess.Popen(
        words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        program = int(shell.stdout.readline())
        shell.wait()
        try:
            began = time.monotonic()
            shell.stdin.write("go\n")
            shell.stdin.close()
            # Of this child alone, which `subprocess` does not tell.
            _, status, used = os.wait4(program, 0)
        except BaseException:
            # The shell has it ignore Ctrl-C.
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)
            raise
    return Measured(
        seconds=time.monotonic() - began,
        processor_s=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss * 1024,
        status=os.waitstatus_to_exitcode(status),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
