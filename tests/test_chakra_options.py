"""What people say of Chakra traces on the command line, and what they are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import chakra
from weft.cli import app

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
COMPARE = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--json", "--quiet", "--workload")
GRAPH = "symbolic_tensor_network"

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command; its exit status, output and errors."""

    def run(*words: object) -> tuple[int, str, str]:
        status = app.status([str(word) for word in words])
        return (status, *capsys.readouterr())

    return run


def written(folder: Path, nodes: list[chakra.Node], schema: str = "") -> Path:
    """The trace of four ranks that do the same."""
    for rank in range(4):
        (folder / f"t.{rank}.et").write_bytes(chakra.trace(nodes, schema))
    return folder / "t.0.et"


def test_the_file_of_process_groups_is_found(typed: Typed, tmp_path: Path) -> None:
    """Beside the trace, or where an option says; else the error says which option."""
    path = written(tmp_path, [chakra.collective(0, 4096, "7")])
    for words in (("trace", "info", path), ("run", path), (*COMPARE, path)):
        status, _, error = typed(*words)
        assert status == 2
        assert error.count("\n") == 1
        assert 'process group "7" is not known (there is no' in error
        assert "t.json beside the trace" in error
        assert "--process-groups" in error
    elsewhere = tmp_path / "g"
    elsewhere.mkdir()
    (elsewhere / "groups.json").write_text('{"7": [0, 1, 2, 3]}')
    option = ("--process-groups", elsewhere / "groups.json")
    run = ("run", path, "--schemes", "ecmp", "--json", "--quiet")
    for words in (run, (*COMPARE, path)):
        status, found, error = typed(*words, *option)
        assert status == 0, error
        assert json.loads(found)[0]["collectives"] == 1
    (elsewhere / "groups.json").rename(tmp_path / "t.json")
    status, found, _ = typed("trace", "info", path, "--json")
    assert status == 0
    assert json.loads(found)["process_groups"] == str(tmp_path / "t.json")
    assert typed(*run)[0] == 0
    (tmp_path / "t.json").write_text('{"what": "another file"}')
    assert "t.json is no process-group file" in typed("trace", "info", path)[2]


def test_sizes_may_be_elements(typed: Typed, tmp_path: Path) -> None:
    """A remark where they look like it; the option makes the volume larger everywhere."""
    path = written(tmp_path, [chakra.collective(0, 4096)], GRAPH)
    status, text, _ = typed("trace", "info", path)
    assert status == 0
    assert "numbers of elements" in text
    assert "elements" in typed("compare", *COMPARE[1:5], "--workload", path)[2]
    option = ("--bytes-per-element", 4)
    info = json.loads(typed("trace", "info", path, "--json", *option)[1])
    assert [row["bytes"] for row in info["collectives"]] == [16384]
    assert info["remarks"] == []
    for words in (("run", path, "--schemes", "ecmp", "--json", "--quiet"), (*COMPARE, path)):
        (plain,) = json.loads(typed(*words)[1])
        (row,) = json.loads(typed(*words, *option)[1])
        assert row["payload_bytes"] == 4 * plain["payload_bytes"]


def test_operations_take_time_at_stated_rates(typed: Typed, tmp_path: Path) -> None:
    """3 10^9 operations at 10^12 a second; 9 10^6 bytes at 10^9 a second take longer."""
    work = {"num_ops": 3_000_000_000, "tensor_size": 9_000_000}
    path = written(tmp_path, [chakra.Node(0, chakra.COMPUTE, work)])
    status, text, _ = typed("trace", "info", path)
    assert status == 0
    assert "take none; give peak_tflops" in text
    for options, seconds in (
        ((), 0.0),
        (("--peak-tflops", 1), 3e-3),
        (("--peak-tflops", 1, "--memory-gb-s", 1), 9e-3),
    ):
        found = json.loads(typed("trace", "info", path, "--json", *options)[1])
        assert found["compute_s"] == pytest.approx(seconds)
        (row,) = json.loads(typed(*COMPARE, path, *options)[1])
        assert row["cct_s"] == pytest.approx(seconds)
    error = typed("run", path, "--set", "workload.peak_tflops=fast")[2]
    assert error.startswith(f"error: {path}: workload.peak_tflops: ")
    assert "--peak-tflops is for traces" in typed("run", tmp_path / "x.toml", *options)[2]


def test_control_dependencies_may_be_ignored(typed: Typed, tmp_path: Path) -> None:
    """The error of a trace that waits only because of them says how."""
    first = chakra.Node(0, chakra.COMPUTE, {}, control=(1,), micros=2)
    second = chakra.Node(1, chakra.COMPUTE, {}, data=(0,), micros=3)
    path = written(tmp_path, [first, second])
    status, text, _ = typed("trace", "info", path)
    assert status == 1
    assert "8 nodes would wait forever" in text
    assert "It can run without control dependencies" in text
    status, _, error = typed(*COMPARE, path)
    assert status == 2
    assert 'it can run: dependencies = "data" (--dependencies data)' in error
    option = ("--dependencies", "data")
    assert typed("trace", "info", path, *option)[0] == 0
    (row,) = json.loads(typed(*COMPARE, path, *option)[1])
    assert row["cct_s"] == pytest.approx(5e-6)
    # A circle of data is none that the option breaks.
    path = written(tmp_path, [chakra.Node(0, chakra.COMPUTE, {}, data=(0,))])
    assert "without control" not in typed("trace", "info", path)[1]


def test_a_trace_without_communication_gives_zeros(typed: Typed, tmp_path: Path) -> None:
    """In tables, summaries and reports."""
    path = written(tmp_path, [chakra.Node(0, chakra.COMPUTE, {})])
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp,spray", "--workload", path, "-q")
    status, table, error = typed(*words)
    assert status == 0, error
    assert "0 s" in table or "0 B" in table
    out = tmp_path / "out"
    assert typed(*words, "--summary", "-o", out)[0] == 0
    assert (out / "report.html").is_file()
    (only, *_) = json.loads(typed(*words, "--json")[1])
    assert (only["cct_s"], only["payload_bytes"]) == (0.0, 0)
    alone = tmp_path / "a.0.et"
    alone.write_bytes(chakra.trace([chakra.collective(0, 4096)]))
    status, _, error = typed("run", alone, "--schemes", "ecmp")
    assert status == 0
    assert "are files of other ranks missing?" in error


@pytest.mark.parametrize("content", [b"num_ranks 2\nrank 0 {\n}\n", b"\x7f\x10" + bytes(14)])
@pytest.mark.parametrize("name", ["x.goal", "x.bin", "x.txt", "x.et"])
def test_goal_is_told_by_content(typed: Typed, tmp_path: Path, name: str, content: bytes) -> None:
    """Read as what it is, and one line, whatever the file is called and whoever reads it."""
    path = tmp_path / name
    path.write_bytes(content)
    for words in (("trace", "info", path), ("run", path), (*COMPARE, path)):
        status, _, error = typed(*words)
        assert status == 2
        assert error.count("\n") == 1
        assert "cut off" in error or "there are no ranks" in error
