"""Shards: shares of a sweep for machines that share nothing, and `weft merge`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import sweeps
from conftest import STALLS, Weft
from test_sweep import run_folders, same_tables
from weft.study.merge import whole_command
from weft.study.sweep import Shard

pytestmark = pytest.mark.usefixtures("small")
RUN = ("run", "small.toml", "--no-report")


@pytest.mark.parametrize(("of", "seeds"), [(2, 1), (3, 2), (4, 5), (16, 1)])
def test_shards_share_the_runs_evenly(of: int, seeds: int) -> None:
    """Each run is in one of them, counts differ by one, and so do those of each scheme."""
    runs = sweeps.specs({"balance.scheme": list("abcd"), "size": [1, 2, 3, 4]}, seeds)
    shares = [Shard(number, of).share(runs) for number in range(1, of + 1)]
    assert sorted(spec["key"] for share in shares for spec in share) == sorted(
        spec["key"] for spec in runs
    )
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    if len(runs) % of == 0 and sizes[0] % 4 == 0:
        counts = [Counter(spec["swept"]["balance.scheme"] for spec in share) for share in shares]
        assert all(set(count) == set("abcd") for count in counts)


def test_merged_shards_are_the_whole(weft: Weft, tmp_path: Path) -> None:
    """The same tables and study as without shards; what is missing is told with its command."""
    assert weft("run", "small.toml", "-o", "whole", "-q", "--no-report").returncode == 0
    for number in (1, 2, 3):
        shard = ("--shard", f"{number}/3", "-o", f"part{number}")
        assert weft(*RUN, *shard, "-q").returncode == 0
        assert len(run_folders(tmp_path / f"part{number}")) == 2
    some = weft("merge", "part1", "part3", "-o", "out", "--no-report", "--json")
    assert some.returncode == 1
    missing = "2 of 6 runs are missing; to run them: weft run small.toml --no-report -o out\n"
    assert some.stderr == missing
    assert len(json.loads(some.stdout)) == 4
    done = weft("merge", "part2", "out", "-o", "out", "--no-report", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert same_tables(tmp_path / "out", tmp_path / "whole")
    studies = [json.loads((tmp_path / at / "study.json").read_text()) for at in ("out", "whole")]
    assert studies[0].pop("command") == "weft run small.toml --no-report -o out"
    assert studies[1].pop("command") == "weft run small.toml -o whole --no-report"
    assert studies[0] == studies[1]


def test_merged_shards_know_who_stalled(weft: Weft, tmp_path: Path) -> None:
    """Whichever of them it did in, unless another one finished."""
    (tmp_path / "stalls.toml").write_text(STALLS)
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "-o", f"part{number}", "-q")
        assert weft("run", "stalls.toml", *shard).returncode == 1
    done = weft("merge", "part1", "part2", "-o", "out", "--no-report", "-q")
    assert "\necmp: stalled (2 of 2 seeds)\n" in done.stdout
    # To run them again would not help: they are not missing.
    assert done.returncode == 1
    told = [line.partition(": ")[2][:19] for line in done.stderr.splitlines()]
    assert told == ["stalls ecmp seed 1:", "stalls ecmp seed 2:"]


def test_what_does_not_belong_together_is_refused(weft: Weft, tmp_path: Path) -> None:
    """Another experiment, another version, no results, damaged files."""
    few = ("--seeds", "1", "-q")
    assert weft(*RUN, *few, "-o", "one").returncode == 0
    assert weft(*RUN, *few, "-o", "two", "--set", "workload.size=1KB").returncode == 0
    done = weft("merge", "one", "two", "-o", "out")
    assert done.returncode == 2
    assert done.stderr.startswith("error: two: small is not as in one; merge what one command ")
    study = tmp_path / "two" / "study.json"
    saved = json.loads((tmp_path / "one" / "study.json").read_text())
    study.write_text(json.dumps(saved | {"code_version": "0.0.9+old"}))
    done = weft("merge", "one", "two", "-o", "out")
    assert done.returncode == 2
    assert done.stderr.startswith("error: two: made by Weft 0.0.9+old, one by 0.")
    done = weft("merge", "one", "three", "-o", "out")
    assert done.returncode == 2
    assert "error: three: no results there" in done.stderr
    done = weft("merge", "one", "one/study.json", "-o", "out")
    assert done.returncode == 2
    assert done.stderr == (
        "error: one/study.json: not a directory; name the -o directory of a finished run\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_damaged_run_is_left_out(weft: Weft, tmp_path: Path) -> None:
    """And told, unless another directory has it."""
    assert weft(*RUN, "--seeds", "1", "-q", "-o", "one").returncode == 0
    key = min(run_folders(tmp_path / "one"))
    (tmp_path / "one" / "runs" / key / "flows.parquet").write_bytes(b"PAR1")
    done = weft("merge", "one", "-o", "out", "--no-report")
    assert done.returncode == 1
    warning, missing = done.stderr.splitlines()
    assert warning == "warning: one/runs: flows.parquet is damaged; left out"
    assert missing.startswith("1 of 3 runs are missing; to run them: weft run small.toml ")


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0"])
def test_impossible_shards_are_refused(weft: Weft, shard: str) -> None:
    """One line that says how to write it."""
    done = weft(*RUN, "-o", "out", "--shard", shard)
    assert done.returncode == 2
    assert f"--shard {shard}: write I/N with I from 1 to N, such as 3/16" in done.stderr


def test_a_shard_needs_a_directory_and_has_no_check(weft: Weft) -> None:
    """Its results are only a part."""
    assert "add -o DIR to say where" in weft(*RUN, "--shard", "1/2").stderr
    said = weft(*RUN, "--shard", "1/2", "-o", "out", "--check", "2").stderr
    assert "--check draws from all runs, --shard has some; choose one" in said


@pytest.mark.parametrize(
    "command",
    [
        "weft run 'a b.toml' --shard 1/2 -o one --seeds 3",
        "weft run 'a b.toml' --shard=1/2 --output=one --seeds 3",
        "weft run --output one 'a b.toml' --seeds 3",
        "weft run -oone --shard=1/2 'a b.toml' --seeds 3",
        "weft run -o=one 'a b.toml' --seeds 3",
    ],
)
def test_the_command_of_the_whole(command: str) -> None:
    """Without the shard, and with another directory."""
    assert whole_command(command, Path("out")) == "weft run 'a b.toml' --seeds 3 -o out"


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("weft run -qoone a.toml", "weft run -q a.toml -o out"),
        ("weft run -qo one a.toml", "weft run -q a.toml -o out"),
        ("weft run -o one --quick -- -oddly.toml", "weft run --quick -o out -- -oddly.toml"),
        ("weft run two-o.toml --on=local", "weft run two-o.toml --on=local -o out"),
    ],
)
def test_what_is_like_an_output_option(command: str, whole: str) -> None:
    """Flags before it stay; files and other options are none."""
    assert whole_command(command, Path("out")) == whole
