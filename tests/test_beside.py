"""`make beside` with programs that stand for other simulators."""

from __future__ import annotations

import importlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import until
from weft.analysis import topology_info

BESIDE = Path(__file__).parents[1] / "bench/beside.py"
ONE_CASE = "ring all-reduce of 64 MB as Chakra, 16 ranks"


def beside(*words: str | Path, script: Path = BESIDE) -> subprocess.CompletedProcess[str]:
    """Run it."""
    command = [sys.executable, str(script), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def stand_in(folder: Path, *lines: str) -> Path:
    """A program in place of a simulator."""
    program = folder / "simulator"
    program.write_text("\n".join(("#!/bin/sh", *lines, "")))
    program.chmod(0o755)
    return program


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """What was measured there."""
    rows: list[dict[str, Any]] = json.loads((folder / "beside.json").read_text())
    return rows


def rows_of_table(text: str) -> dict[str, list[str]]:
    """The cells of each row, by the first."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "---" not in line]
    return {cells[0]: cells[1:] for cells in rows}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--htsim", "none"), "none: is no program"),
        (("--htsim", "/"), "/: is no program"),
        (("--rounds", "0"), "--rounds 0: is no number from 1 on"),
        (("--rounds", "few"), "argument --rounds: invalid int value: 'few'"),
        (("--table", "none"), "--table none: No such file or directory"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], said: str) -> None:
    """With exit status 2."""
    done = beside(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith(said + "\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["", "{", "3", "[1]", '{"rows": [{"case": "a"}]}', '{"a": 1}'])
def test_a_broken_record_is_one_line(tmp_path: Path, text: str) -> None:
    """With exit status 2."""
    (tmp_path / "record.json").write_text(text)
    done = beside("--table", tmp_path / "record.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no record of make beside" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_was_not_measured_is_empty_in_the_table(tmp_path: Path) -> None:
    """And what failed is no time."""
    weft = {"case": ONE_CASE, "simulator": "weft", "seconds": 1.0, "peak_bytes": 5e7, "status": 0}
    other = weft | {"simulator": "astra-sim", "seconds": 0.1, "status": 3}
    alone, compared = tmp_path / "alone.json", tmp_path / "compared.json"
    alone.write_text(json.dumps([weft]))
    compared.write_text(json.dumps({"rows": [other, weft]}))
    cells = rows_of_table(beside("--table", alone).stdout)
    assert cells[ONE_CASE][2:] == ["1.0", "50"]
    assert cells["permutation of 2 MB, 128 hosts"][2:] == ["-", "-"]
    cells = rows_of_table(beside("--table", compared).stdout)
    assert cells["input"][2:] == ["s", "MB", "its s", "its MB"]
    assert cells[ONE_CASE][2:] == ["1.0", "50", "failed", "-"]


def test_the_page_has_the_table_of_the_last_record() -> None:
    """The commands of both sides, and what Weft took."""
    newest = max((BESIDE.parent / "records" / "beside").glob("*.json"))
    page = (BESIDE.parents[1] / "docs/evidence/speed.md").read_text()
    assert beside("--table", newest).stdout in page
    assert {row["status"] for row in json.loads(newest.read_text())["rows"]} == {0}


def test_make_help_has_all_options() -> None:
    """Of what `make beside` takes."""
    makefile = (BESIDE.parents[1] / "Makefile").read_text()
    told = next(line for line in makefile.splitlines() if line.startswith("beside:"))
    usage = beside("--help").stdout.partition("\n\n")[0]
    options = {word.strip("[]") for word in usage.split() if word.startswith("[--")}
    assert len(options) == 10
    assert options <= set(told.replace('"', " ").split())


def test_memory_is_the_programs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without any, from a process that has much, and one with 100 MB."""
    monkeypatch.syspath_prepend(str(BESIDE.parent))
    module = importlib.import_module("beside")
    ours = bytearray(b"1") * (64 << 20)
    none = module.measure(["true"], tmp_path, tmp_path / "said")
    much = [sys.executable, "-c", "print(len(bytearray(b'1') * (100 << 20)))"]
    hundred = module.measure(much, tmp_path, tmp_path / "said")
    assert len(ours) == int((tmp_path / "said").read_text()) - (36 << 20)
    assert (none.status, hundred.status) == (0, 0)
    assert 0 < none.peak_bytes < 10e6
    assert 100 << 20 < hundred.peak_bytes < 130 << 20
    assert hundred.processor_s > 0
    killed = module.measure(["sh", "-c", "kill -9 $$"], tmp_path, tmp_path / "said")
    assert killed.status == -signal.SIGKILL
    assert module.measure(["no-such-program"], tmp_path, tmp_path / "said").status == 127


def test_the_servers_are_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight leaves and spines, a server of eight GPUs at each leaf: as Weft reads SimAI's file."""
    monkeypatch.syspath_prepend(str(BESIDE.parent))
    module = importlib.import_module("beside_inputs")
    (tmp_path / "servers.topo").write_text(module.servers())
    found = topology_info.info(tmp_path / "servers.topo")
    counts = {"leaves": 8, "spines": 8, "hosts_per_leaf": 8, "links_per_pair": 1, "link": "400Gbps"}
    assert counts.items() <= found["fabric"].items()
    server = {"gpus": 8, "nics": 8, "rails": False, "scale_up": "3600Gbps"}
    assert found["fabric"]["server"] == server | {"scale_up_latency": "500ns"}


def test_ctrl_c_ends_the_program_too(tmp_path: Path) -> None:
    """And what was measured stays."""
    program = stand_in(tmp_path, "echo $$ > pid", "exec sleep 60")
    inputs = tmp_path / "inputs"
    command = [sys.executable, str(BESIDE), "--loggopsim", str(program), "--folder", str(inputs)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: (inputs / "pid").exists() and bool((inputs / "pid").read_text()))
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert said.startswith("interrupted: 0 rows are in ")
    assert not Path("/proc", (inputs / "pid").read_text().strip()).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("simulator", "there"),
    [
        ("simai-simulator", "-s $4 -a -s $6 -a -s $8 -a -s simai-flow.txt -a $4 = layer.txt"),
        ("astra-sim-1", "-s data.txt -a -s system.txt -a -s switch.json -a -d astra-sim-1/"),
    ],
)
def test_a_text_workload_is_read_by_both(tmp_path: Path, simulator: str, there: str) -> None:
    """The stand-in finds the files that its command names."""
    program = stand_in(tmp_path, f"test {there} && echo done")
    done = beside(f"--{simulator}", program, "--folder", tmp_path / "inputs")
    assert done.returncode == 0, done.stdout
    assert "it says last: done\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 3])
def test_both_sides_run_on_the_same_files(tmp_path: Path, status: int) -> None:
    """Times and memory of each; a side that fails is named, and its time is not taken for one."""
    program = stand_in(
        tmp_path, f"test -s all-to-all.bin && test $2 = all-to-all.bin && exit {status}"
    )
    done = beside("--loggopsim", program, "--folder", tmp_path / "inputs")
    assert done.returncode == (1 if status else 0), done.stderr
    theirs, ours = rows_of(tmp_path / "inputs")
    assert (theirs["simulator"], theirs["status"]) == ("loggopsim", status)
    assert (ours["simulator"], ours["status"]) == ("weft", 0)
    assert theirs["peak_bytes"] < 10e6 < ours["peak_bytes"]
    assert 0 < ours["processor_s"] < 60
    assert ("its time says nothing" in done.stdout) == bool(status)


@pytest.mark.slow
def test_rounds_are_in_turn(tmp_path: Path) -> None:
    """The best time is that of the row; the others are kept."""
    seen = "ls *.weft.out >> seen 2> /dev/null || echo none >> seen"
    program = stand_in(tmp_path, seen, "rm -f *.weft.out")
    done = beside("--loggopsim", program, "--folder", tmp_path / "inputs", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "inputs/seen").read_text().count("none") == 1
    for row in rows_of(tmp_path / "inputs"):
        assert len(row["rounds_s"]) == 3
        assert row["seconds"] == min(row["rounds_s"])
    assert done.stdout.count("(best of 3; median ") == 2


@pytest.mark.slow
def test_a_record_has_all_cases(tmp_path: Path) -> None:
    """Weft alone where there is no other simulator; the table is made of it."""
    (tmp_path / "bench").mkdir()
    for path in BESIDE.parent.glob("*.py"):
        shutil.copy(path, tmp_path / "bench")
    script = tmp_path / "bench/beside.py"
    program = stand_in(tmp_path, "test -s layers.txt -a -s busbw.yaml -a $2 = layers.txt")
    inputs = tmp_path / "inputs"
    done = beside("--simai", program, "--folder", inputs, "--keep", script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = (tmp_path / "bench/records/beside").glob("*.json")
    found = json.loads(kept.read_text())
    assert found["rows"] == rows_of(inputs)
    assert {"date", "commit", "command", "machine", "load_before"} <= found.keys()
    cells = rows_of_table(beside("--table", kept, script=script).stdout)
    del cells["input"]
    assert len(cells) == 7
    assert all("-" not in row[2:4] for row in cells.values())
    compared = [name for name, row in cells.items() if row[4:] != ["-", "-"]]
    assert compared == ["4 layers of a transformer as text, 64 ranks"]
