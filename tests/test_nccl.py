"""NCCL's plugin as users get it: driven from C, and measured by `weft bench-net`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import Weft, start

PLUGIN = Path(__file__).parents[1] / "python/weft/libnccl-net-weft.so"
DRIVER = Path(__file__).parent / "nccl/driver.c"
SILENT = Path(__file__).parent / "nccl/silent.c"
OPERATIONS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "sendrecv"]
SMALL = ["-b", "8", "-e", "32K", "-f", "64", "-n", "2", "-w", "1", "--chunk", "4K"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver, compiled as C users do."""
    made = tmp_path_factory.mktemp("nccl") / "driver"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run(["cc", *flags, DRIVER, "-o", made, "-ldl"], check=True)
    return made


def test_a_c_program_drives_every_version(driver: Path) -> None:
    """Loads the file, looks up every version, and transfers."""
    done = subprocess.run(
        [driver, PLUGIN],
        env={**os.environ, "WEFT_IFNAME": "=lo"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:5] == [f"v{version} ok" for version in (12, 11, 10, 9, 8)]


def test_the_driver_notices_what_is_no_plugin(driver: Path, tmp_path: Path) -> None:
    """A library without tables is none."""
    source, library = tmp_path / "none.c", tmp_path / "none.so"
    source.write_text("int nothing;\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    done = subprocess.run([driver, library], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no ncclNetPlugin_v12" in done.stderr


def test_only_tables_are_exported() -> None:
    """Other symbols might hide somebody else's; the last one is for benchmarks."""
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    network = {f"ncclNetPlugin_v{version}" for version in range(8, 13)}
    profiler = {f"ncclProfiler_v{version}" for version in range(3, 6)}
    tuner = {f"ncclTunerPlugin_v{version}" for version in range(4, 6)}
    assert names == network | profiler | tuner | {"weft_merge_anywhere"}


@pytest.mark.parametrize("over", ["plugin", "sockets"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_collective_is_right(weft: Weft, operation: str, over: str) -> None:
    """Three ranks on this machine, all sums checked."""
    done = weft("bench-net", "--ranks", "3", "--op", operation, "--over", over, "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["operation"] == operation
    assert result["wrong"] == 0
    assert [row["wrong"] for row in result["rows"]] == [0, 0, 0]
    factor = {"all-reduce": 4 / 3, "sendrecv": 1}.get(operation, 2 / 3)
    for row in result["rows"]:
        assert row["bus_bytes_per_s"] == pytest.approx(factor * row["algorithm_bytes_per_s"])
        assert row["algorithm_bytes_per_s"] == pytest.approx(row["size_bytes"] / row["time_s"])
        assert row["slowest_s"] >= row["time_s"]


@pytest.mark.parametrize("abi", ["v8", "v9", "v10", "v11", "v12"])
def test_every_version_is_driven(weft: Weft, abi: str) -> None:
    """The columns are those of nccl-tests."""
    done = weft("bench-net", "--abi", abi, *SMALL)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"Weft {abi} on lo" in lines[0]
    columns = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"]
    assert lines[2].split()[1:] == columns
    first = lines[4].split()
    assert first[:5] == ["8", "2", "float", "sum", "-1"]
    assert first[-1] == "0"


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin whose `test` writes no sizes: ours, with that function in front."""
    made = tmp_path_factory.mktemp("silent") / "libsilent.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, SILENT, "-o", made, "-ldl"], check=True)
    return made


@pytest.mark.parametrize("operation", ["all-reduce", "sendrecv"])
def test_a_plugin_that_tells_no_sizes_is_measured(
    weft: Weft, silent: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """What was posted is taken for what came, and the results show whether it did."""
    monkeypatch.setenv("INNER_PLUGIN", str(PLUGIN))
    line = ["bench-net", "--op", operation, "--plugin", str(silent), "--json", *SMALL]
    done = weft(*line)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [row["wrong"] for row in result["rows"]] == [0, 0, 0]
    assert "Silent" in result["network"]
    monkeypatch.setenv("HALVES", "1")
    done = weft(*line)
    assert done.returncode == 1
    assert json.loads(done.stdout)["wrong"] > 0


def test_a_plugin_in_this_folder_is_that_file(weft: Weft, tmp_path: Path) -> None:
    """The loader looks for names without a slash elsewhere."""
    (tmp_path / "libmine.so").symlink_to(PLUGIN)
    done = weft("bench-net", "--plugin", "./libmine.so", *SMALL)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["-b", "many"],
            '-b: "many" is not a size: write one such as "64MB"',
        ),
        (["-b", "2M", "-e", "1M"], "-b 2M: more than -e 1M"),
        (["-b", "0"], "-b 0: never becomes -e 16MiB by factors; use 4 or more"),
        (["-e", "100G"], "-e 100G: use at most 16G"),
        (["--chunk", "2G"], "--chunk 2G: use 4B to 1GiB"),
        (["--rank", "0"], "--rank: also needs --rendezvous, where rank 0 waits"),
        (["--rendezvous", "here:1"], "--rendezvous: also needs the --rank of this process"),
        (["--rank", "2", "--rendezvous", "127.0.0.1:1"], "--rank 2: with --ranks 2 use 0 to 1"),
        (["--rank", "0", "--rendezvous", "nowhere"], "--rendezvous nowhere: use HOST:PORT"),
        (
            ["--rank", "0", "--rendezvous", "nowhere.invalid:29500"],
            "--rendezvous nowhere.invalid:29500: failed to lookup address information",
        ),
        (["--address", "127.0.0.1"], "--address: does nothing with a plugin, which has"),
        (["--plugin", "none.so"], "--plugin none.so: there is no such file"),
        (["--over", "sockets", "--address", "x"], "--address x: use an address"),
        (["--over", "sockets", "--device", "1"], "--device: does nothing with --over sockets"),
        (["--over", "sockets", "--abi", "v8"], "--abi: does nothing with --over sockets"),
        (["--abi", "v8", "--traffic-class", "8"], "--traffic-class: does nothing with --abi v8"),
        (["--connections", "2"], "--connections: does nothing with a plugin, which has"),
        (["--device", "7"], "--device 7: the plugin has 1"),
        (["--device", "0,7"], "--device 7: the plugin has 1"),
        (["--device", "0,0"], "--device 0,0: a NIC is there twice; name each once"),
        (["--device", "0,x"], "--device 0,x: write a number, or several to be one NIC, as 0,1"),
    ],
)
def test_bad_input_takes_one_line(weft: Weft, arguments: list[str], complaint: str) -> None:
    """What, where, and the mend."""
    done = weft("bench-net", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line, *more) = done.stderr.splitlines()
    assert line.startswith(f"error: {complaint}")
    assert not more


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("WEFT_CONFIG", "/none/c.toml", "WEFT_CONFIG: /none/c.toml: No such file"),
        ("WEFT_SCHEME", "ethereal", "WEFT_SCHEME: ethereal needs to know the fabric"),
        ("WEFT_CHECKSUM", "maybe", 'WEFT_CHECKSUM: "maybe": is not known; use one of 0, 1'),
        ("WEFT_BACKEND", "roce", "WEFT_BACKEND: roce, but lo has no RDMA device"),
        ("WEFT_STATS", "/none/s.json", "WEFT_STATS: /none/s.json: No such file or directory"),
        ("WEFT_STATS", "/proc", "WEFT_STATS: /proc: is a directory"),
        ("WEFT_PROMETHEUS", "/proc/none", "WEFT_PROMETHEUS: /proc/none: No such file"),
        ("WEFT_PROMETHEUS", "192.0.2.1:9400", "WEFT_PROMETHEUS: 192.0.2.1:9400: Cannot assign"),
        ("WEFT_PROFILE", "/proc/none", "WEFT_PROFILE: /proc/none: No such file or directory"),
        ("WEFT_TCP_CONGESTION", "none", 'WEFT_TCP_CONGESTION: "none": No such file or directory'),
    ],
)
def test_bad_variables_take_one_line(
    weft: Weft, monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    """Before any rank is started."""
    monkeypatch.setenv(name, value)
    done = weft("bench-net", "--ranks", "3", *SMALL)
    assert done.returncode == 2
    (line, *more) = done.stderr.splitlines()
    assert line.startswith(f"error: {complaint}")
    assert not more


def test_what_all_ranks_warn_of_is_said_once(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rank 0, in whose environment the others are."""
    monkeypatch.setenv("WEFT_IFNAMES", "lo")
    done = weft("bench-net", "--ranks", "3", *SMALL)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "WEFT_IFNAMES: no such variable; did you mean WEFT_IFNAME?" in line


def test_the_old_name_of_an_option_has_a_hint(weft: Weft) -> None:
    """`--meet` works, and one line says what it is called now."""
    meeting = ["--rank", "0", "--meet", "127.0.0.1:29474", "--wait", "0.3"]
    done = weft("bench-net", "--over", "sockets", *meeting)
    hint, error = done.stderr.splitlines()
    assert hint == "hint: --meet is now called --rendezvous"
    assert error == "error: rank 0: --rendezvous 127.0.0.1:29474: ranks 1 have not come"
    assert "--meet" not in weft("bench-net", "--help").stdout


def test_a_rank_that_does_not_come_is_an_error(weft: Weft) -> None:
    """Named, in time, and no trace."""
    meeting = ["--rank", "0", "--ranks", "3", "--rendezvous", "127.0.0.1:29473", "--wait", "0.3"]
    done = weft("bench-net", "--over", "sockets", *meeting)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ranks 1, 2 have not come")


def test_ctrl_c_ends_a_size_that_takes_long(tmp_path: Path) -> None:
    """Rank 0 reads the header's line before it is interrupted: it measures by then."""
    size = ["-b", "64KiB", "-e", "64KiB", "-n", "10000000"]
    running = start("bench-net", "--ranks", "2", "--over", "sockets", *size, cwd=tmp_path)
    assert running.stdout is not None
    while not running.stdout.readline().startswith("#"):
        pass
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130


def test_ranks_that_wait_in_vain_are_ended(tmp_path: Path) -> None:
    """One is killed, one is stopped: the first says so, and nobody waits for --wait."""
    sizes = ["-b", "8K", "-e", "64M", "-f", "8192", "-n", "1000"]
    bench = start("bench-net", "--ranks", "3", *sizes, "--wait", "300", cwd=tmp_path)
    children = Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
    others: list[int] = []
    try:
        assert bench.stdout is not None
        while bench.stdout.readline().startswith("#"):
            pass
        others = [int(one) for one in children.read_text().split()]
        os.kill(others[1], signal.SIGSTOP)
        os.kill(others[0], signal.SIGKILL)
        _, said = bench.communicate(timeout=20)
    finally:
        bench.kill()
        bench.wait()
        for one in others:
            if Path(f"/proc/{one}").exists():
                os.kill(one, signal.SIGKILL)
    assert bench.returncode == 1
    assert len(others) == 2
    assert said.splitlines()[-1].startswith("error: rank 0: ")
