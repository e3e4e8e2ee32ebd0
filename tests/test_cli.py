"""The command line as a user meets it: help, bad input, machine-readable output."""

from __future__ import annotations

import json
import os
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from conftest import SMALL, Weft, command

COLUMNS = {
    *("scheme", "workload", "algorithm", "size_bytes", "hosts", "seed"),
    *("cct_s", "bound_s", "slowdown", "normalised", "packets", "packet_hops", "events"),
    *("drops", "trims", "retransmits", "spurious_retransmits", "max_qps", "wall_s"),
    "threads",
}

CONNECTIONS = """Nodes 4
Connections 2
0->2 id 1 start 0 size 20000
1->3 id 2 start 0 size 20000
"""


def test_help_answers_at_once() -> None:
    """Heavy libraries are imported only where they are used."""
    took = []
    for _ in range(7):  # the best: others use this machine too
        began = time.perf_counter()
        subprocess.run(command("--help"), check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.3


@pytest.mark.parametrize("name", ["run", "compare"])
def test_help_teaches_by_example(weft: Weft, name: str) -> None:
    """Each example stands on a line of its own."""
    text = weft(name, "--help").stdout
    assert "Examples:\n    weft " + name in text
    assert "--json" in text
    words = " ".join(text.split())
    assert "--threads N Cores for one simulation. Results do not depend on it. Default: " in words


def test_json_has_the_columns_and_nothing_else_on_stdout(weft: Weft, small: Path) -> None:
    """One object a run, in run order, timing included."""
    done = weft("run", small, "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)
    schemes = [(row["scheme"], row["seed"]) for row in rows]
    assert schemes == [(s, n) for s in ("ecmp", "spray", "ethereal") for n in (1, 2)]
    for row in rows:
        assert set(row) >= COLUMNS
        assert row["balance.scheme"] == row["scheme"]
        assert row["slowdown"] == pytest.approx(row["cct_s"] / row["bound_s"])
        assert row["cct_s"] >= row["bound_s"]


def test_table_shows_every_scheme(weft: Weft, small: Path) -> None:
    """With the distance from the bound and from ECMP, and the number of seeds."""
    done = weft("run", small, "--quiet")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "A small all-to-all"
    assert [line.split()[0] for line in lines if line[:1].islower()] == [
        *("scheme", "ecmp", "spray", "ethereal")
    ]
    assert "mean of 2 seeds" in lines[-1]
    assert "spurious" not in lines[-1]
    assert done.stderr == ""
    again = ("--set", "transport.recovery=go-back-n", "--set", "workload.size=256KB")
    alone = " ".join(weft("run", small, "-q", *again, "--schemes", "spray").stdout.split())
    assert "vs spray" not in alone
    assert "retransmits in parentheses: spurious ones" in alone


def test_set_and_seeds_change_the_experiment(weft: Weft, small: Path) -> None:
    """`--set` takes dotted keys, `--seeds` a count."""
    done = weft("run", small, "--json", "--seeds", "1", "--set", "workload.size=32KB")
    rows = json.loads(done.stdout)
    assert [row["seed"] for row in rows] == [1, 1, 1]
    assert {row["size_bytes"] for row in rows} == {32000}


def test_an_experiment_may_be_json(weft: Weft, small: Path, tmp_path: Path) -> None:
    """The same results under the same keys; its mistakes are told as JSON's."""
    (tmp_path / "same.json").write_text(json.dumps(tomllib.loads(small.read_text())))
    (tmp_path / "cut.json").write_text('{"fabric": {')
    read = [weft("run", one, "--json", "--seeds", "1") for one in (small, "same.json")]
    told, same = ([(row["scheme"], row["cct_s"]) for row in json.loads(one.stdout)] for one in read)
    assert told == same
    assert weft("run", "cut.json").stderr.startswith("error: cut.json (line 1): not JSON: ")


def test_compare_takes_sections_in_short(weft: Weft) -> None:
    """A preset, stragglers and background traffic; a key that is wrong is named."""
    usual = ["compare", "--fabric", "leaf-spine:leaves=2,spines=2,hosts=2", "--json", "-q"]
    usual += ["--workload", "all-reduce:size=64KB", "--schemes", "e-ecmp"]
    beside = ["--preset", "nccl-2.28", "--stragglers", "start_delay=5us,count=1"]
    beside += ["--background", "load=0.1,size=1KB"]
    (row,) = json.loads(weft(*usual, *beside).stdout)
    assert row["scheme"] == "e-ecmp-2"
    assert row["background_messages"] > 0
    wrong = weft(*usual, "--stragglers", "factro=2")
    assert wrong.returncode == 2
    assert "stragglers.factro (command line): unknown key" in wrong.stderr


def test_compare_needs_no_file(weft: Weft) -> None:
    """Fabric and workload come from shorthands."""
    fabric = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
    workload = "all-to-all:size=16KB"
    done = weft(
        *("compare", "--fabric", fabric, "--workload", workload),
        *("--schemes", "ecmp,ethereal", "--seeds", "2", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert [row["scheme"] for row in json.loads(done.stdout)] == ["ecmp"] * 2 + ["ethereal"] * 2


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ("--set workload.size=2KB", "ring:size=2KB,start=1us on leaf-spine:leaves=2,hosts=2"),
        ("--sweep workload.size=1KB,2KB", "ring:start=1us on leaf-spine:leaves=2,hosts=2"),
        ("--set fabric.hosts_per_leaf=3", "ring:size=1KB,start=1us on leaf-spine:leaves=2,hosts=3"),
    ],
)
def test_the_title_of_a_comparison_is_what_ran(weft: Weft, change: str, title: str) -> None:
    """Not the short form that options changed."""
    words = ["--fabric", "leaf-spine:leaves=2,hosts=2", "--schemes", "ecmp", "-q"]
    words += ["--workload", "ring:size=1KB,start=1us", "--set", "fabric.spines=2", *change.split()]
    assert weft("compare", *words).stdout.splitlines()[0] == title


def test_an_output_has_a_name(weft: Weft, small: Path, tmp_path: Path) -> None:
    """An unset variable does not fill this directory."""
    for words in (["-o", ""], ["--output="]):
        done = weft("run", small, *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("error: -o: has no name")
    assert list(tmp_path.iterdir()) == [small]


@pytest.mark.usefixtures("small")
def test_a_file_has_a_name(weft: Weft) -> None:
    """An unset variable does not run all of this directory."""
    done = weft("run", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: FILE: has no name; give one, or . for this directory\n"


def test_singular_and_plural_options_are_the_same(weft: Weft, tmp_path: Path) -> None:
    """`--scheme` and `--schemes`, `--workload` and `--job`."""
    fabric = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
    for schemes, workload in (("--schemes", "--workload"), ("--scheme", "--job")):
        words = ("compare", "--fabric", fabric, workload, "all-to-all:size=16KB")
        done = weft(*words, schemes, "ecmp", "--json", "-q")
        assert done.returncode == 0, done.stderr
        assert [row["scheme"] for row in json.loads(done.stdout)] == ["ecmp"]
    (tmp_path / "two.cm").write_text(CONNECTIONS)
    done = weft("run", "two.cm", "--scheme", "ecmp", "--json", "-q")
    assert [row["scheme"] for row in json.loads(done.stdout)] == ["ecmp"]


BOTH = {
    ("--scheme", "--schemes"): ("plan", "switch-config", "testbed run"),
    ("--schemes", "--scheme"): ("run", "compare", "testbed bench"),
    ("--workload", "--job"): ("compare", "testbed run"),
    ("--job", "--workload"): ("plan",),
}


@pytest.mark.parametrize("words", BOTH)
def test_help_names_both_words(weft: Weft, words: tuple[str, str]) -> None:
    """Of every command that takes one."""
    for name in BOTH[words]:
        assert f"  {', '.join(words)} " in weft(*name.split(), "--help").stdout


def test_connection_matrix_gets_a_fabric_that_is_named(weft: Weft, tmp_path: Path) -> None:
    """`weft run x.cm` needs nothing else, and says what it chose."""
    (tmp_path / "two.cm").write_text(CONNECTIONS)
    done = weft("run", "two.cm", "--schemes", "ecmp,ethereal", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["hosts"] for row in json.loads(done.stdout)] == [4, 4]
    assert "on a leaf-spine (leaves 2, spines 2, hosts per leaf 2" in done.stderr


@pytest.mark.parametrize("kind", ["schemes", "transports", "workloads", "topologies", "presets"])
def test_list(weft: Weft, kind: str) -> None:
    """The same entries for people and for machines."""
    entries = json.loads(weft("list", kind, "--json").stdout)
    text = weft("list", kind).stdout
    assert entries
    for entry in entries:
        assert entry["summary"]
        assert f"{entry['name']}  " in text


BAD = {
    "malformed": (SMALL + "[workload", ["run", "bad.toml"], "bad.toml"),
    "unknown key": (SMALL + "[fabrik]\nx = 1\n", ["run", "bad.toml"], "fabric"),
    "unit": (SMALL.replace("16KB", "16"), ["run", "bad.toml"], "workload.size"),
    "no file": ("", ["run", "missing.toml"], "missing.toml"),
    "folder": ("", ["run", "empty"], "directory"),
    "--json and --summary": (SMALL, ["run", "bad.toml", "--json", "--summary"], "choose one"),
    "no .cm": ("", ["run", "missing.cm"], "missing.cm"),
    "--set": (SMALL, ["run", "bad.toml", "--set", "size"], "--set size"),
    "--fabric": (SMALL, ["run", "bad.toml", "--fabric", "leaf-spine"], "--fabric"),
    "huge host": ("", ["run", "huge.csv"], "99999999 needs a fabric of 100000000 hosts, more"),
    "huge Nodes": ("", ["run", "huge.cm"], "Nodes 99999999 needs a fabric of 99999999 hosts"),
    "no scheme": ("", ["run", "huge.cm", "--schemes", ","], "--schemes: names none; write"),
    "schemes and a sweep of them": (
        "",
        ["run", "huge.cm", "--schemes", "ecmp", "--sweep", "balance.scheme=reps"],
        "--sweep balance.scheme: is there twice, since --schemes says it as well",
    ),
    "schemes and a scheme": (
        "",
        [
            *("compare", "--fabric", "x", "--workload", "y", "--schemes", "ecmp"),
            "--set",
            "balance.scheme=reps",
        ],
        "--set balance.scheme: is there twice, since --schemes says it as well",
    ),
    "a value and a sweep of it": (
        SMALL,
        ["run", "bad.toml", "--set", "workload.size=1MB", "--sweep", "workload.size=1MB,2MB"],
        "--set workload.size: --sweep workload.size is there as well; remove one",
    ),
    "scheme twice": ("", ["run", "huge.cm", "--schemes", "ecmp,ecmp"], "ecmp is listed twice"),
    "seed twice": (
        SMALL.replace("seeds = 2", "seeds = [1, 1]"),
        ["run", "bad.toml"],
        "bad.toml: sweep",
    ),
    "--threads 0": (SMALL, ["run", "bad.toml", "--threads", "0"], "'--threads'"),
    "--threads two": (
        SMALL,
        ["run", "bad.toml", "--threads", "two"],
        "'--threads': 'two' is not a whole",
    ),
    "--threads, many": (SMALL, ["run", "bad.toml", "--threads", "9999999999"], "'--threads'"),
    "--seeds": (SMALL, ["run", "bad.toml", "--seeds", "0"], "--seeds"),
    "--seeds, many": (SMALL, ["run", "bad.toml", "--seeds", "9" * 20], "--seeds"),
    "option": (SMALL, ["run", "bad.toml", "--sedes", "1"], "see weft run --help"),
    "command": (SMALL, ["xyz", "bad.toml"], "; see weft --help"),
    "like a command": (SMALL, ["runn", "bad.toml"], "Did you mean 'run'? see weft --help"),
    "output": (SMALL, ["run", "bad.toml", "-o", "bad.toml"], "bad.toml"),
    "no results": ("", ["report", "nowhere"], "nowhere"),
    "list": ("", ["list", "planets"], "planets"),
    "cluster": (SMALL + "[cluster]\nx = 1\n", ["run", "bad.toml"], "is a cluster file, not an"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_takes_one_line(weft: Weft, tmp_path: Path, case: str) -> None:
    """Exit code 2, nothing on standard output, one line that names the culprit."""
    text, arguments, named = BAD[case]
    (tmp_path / "bad.toml").write_text(text)
    (tmp_path / "huge.csv").write_text("src,dst,size\n0,99999999,20KB\n")
    (tmp_path / "huge.cm").write_text("Nodes 99999999\nConnections 0\n")
    (tmp_path / "empty").mkdir()
    done = weft(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


@pytest.mark.parametrize("option", ["", "-o", "--set", "--fail"])
def test_what_is_no_text_takes_one_line(weft: Weft, small: Path, option: str) -> None:
    """A file of another encoding, and values of options."""
    odd = os.fsdecode(b"caf\xe9.toml")
    small.with_name(odd).write_text(SMALL)
    done = weft("run", *([small, option] if option else []), odd)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "error: caf\\xe9.toml: is not UTF-8; rename the file, or correct the value\n"
    )


def test_truncated_connection_matrix(weft: Weft, tmp_path: Path) -> None:
    """It announces two connections and holds one."""
    (tmp_path / "cut.cm").write_text("\n".join(CONNECTIONS.splitlines()[:-1]))
    done = weft("run", "cut.cm", "--quiet")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "cut.cm:2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_warnings_come_once(weft: Weft, small: Path) -> None:
    """Spraying over go-back-N resends whatever overtakes: said before the runs, not after."""
    done = weft("run", small, "--seeds", "1", "-q", "--set", "transport.recovery=go-back-n")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("warning: ")


def test_reader_that_goes_away_is_no_error() -> None:
    """`weft list schemes | true` prints no traceback."""
    shell = f"{' '.join(command('list', 'schemes'))} | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_what_only_a_run_can_tell_names_the_experiment(tmp_path: Path) -> None:
    """A probe that would fill the memory stops with one line."""
    experiment = tmp_path / "greedy.toml"
    experiment.write_text(
        '[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n'
        '[workload]\npattern = "all-to-all"\nsize = "100KB"\n[balance]\nscheme = "ecmp"\n'
        '[probe]\ninterval = "1ps"\nports = ["leaf-* -> *"]\n'
    )
    ended = subprocess.run(
        command("run", str(experiment)), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("error: greedy ecmp seed 1: probe.interval: leads to more than")
    assert line.endswith("sample less often, or fewer ports")


def test_the_old_name_of_repair_has_a_hint(weft: Weft) -> None:
    """One line says what `--mend` is called now."""
    done = weft("testbed", "fail", "none.toml", "leaf-0:spine-1", "--mend")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "hint: --mend is now called --repair"


@pytest.mark.parametrize(
    "words",
    [
        ("bench-net", "--wait"),
        ("top", "--interval"),
        ("discover", "--timeout"),
        ("discover", "--rate"),
    ],
)
def test_what_is_no_number_is_in_no_range(weft: Weft, words: tuple[str, str]) -> None:
    """A range compares it with its ends, and neither comparison holds."""
    command, option = words
    done = weft(command, option, "nan")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: Invalid value for '{option}': nan is no number; see")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("tune",), "--accelerators"),
        (("compare", "--workload", "permutation:size=1KB"), "--seeds"),
    ],
)
def test_a_number_beyond_64_bits_is_out_of_range(
    weft: Weft, words: tuple[str, ...], option: str
) -> None:
    """The native core could not even be given it."""
    fabric = "leaf-spine:leaves=2,spines=2,hosts=2"
    done = weft(*words, "--fabric", fabric, option, "99999999999999999999999")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"error: Invalid value for '{option}': 99999999999999999999999 is"
    )
