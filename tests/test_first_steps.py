"""What somebody types who is new: sweeps and failures in short, lists, keys, completion."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft as package
from conftest import SMALL, Weft, command, rows
from weft import api, catalogue
from weft.analysis import keys
from weft.cli import failures
from weft.cli import list as listing
from weft.errors import ExperimentError
from weft.study import inputs, printed, settings, shown_keys
from weft.units import magnitude

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
COMPARE = ("compare", "--fabric", FABRIC, "--workload", "all-to-all:size=16KB")
ROOT = Path(__file__).parent.parent


def test_sweep_on_the_command_line(weft: Weft, small: Path) -> None:
    """All combinations of the values, over what is swept already; text, numbers and flags."""
    found = rows(weft, *COMPARE, "--schemes", "ecmp", "--sweep", "workload.size=16KB,32KB")
    assert [row["size_bytes"] for row in found] == [16000, 32000]
    words = ("--sweep", "balance.scheme=reps,spray", "--sweep", "fabric.nic.mtu=2KB,4KB")
    found = rows(weft, "run", small, *words, "--seeds", "1")
    assert [(row["scheme"], row["fabric.nic.mtu"]) for row in found] == [
        *(("reps", "2KB"), ("reps", "4KB"), ("spray", "2KB"), ("spray", "4KB"))
    ]


def test_a_nested_sweep_is_the_same_key(weft: Weft, tmp_path: Path) -> None:
    """`[sweep.workload]` with `size` is `workload.size`: replaced, not swept twice."""
    nested = SMALL + '[sweep.workload]\nsize = ["16KB", "64KB"]\n'
    (tmp_path / "nested.toml").write_text(nested)
    words = ("run", "nested.toml", "--schemes", "ecmp", "--seeds", "1")
    found = rows(weft, *words, "--sweep", "workload.size=1KB,2KB,4KB")
    assert [row["size_bytes"] for row in found] == [1000, 2000, 4000]


def test_schemes_of_an_experiment_file(weft: Weft, small: Path) -> None:
    """`--schemes` compares those, whatever the file says; its own names work."""
    found = rows(weft, "run", small, "--schemes", "reps,ecmp", "--seeds", "1")
    assert [row["scheme"] for row in found] == ["reps", "ecmp"]


FAILED = {
    "leaf-0:spine-1": {
        "links": ["leaf-0 <-> spine-1"],
        "kind": "down",
        "detect": "0ns",
    },
    "leaf-0:spine-1@50us": {"links": ["leaf-0 <-> spine-1"], "kind": "down", "start": "50us"},
    "leaf-0:spine-1#0,degraded,lost=0.25": {
        "links": ["leaf-0 <-> spine-1#0"],
        "kind": "degraded",
        "lost": 0.25,
    },
    "leaf-0 -> spine-1@1us,flaky,every=10us,length=1us": {
        "links": ["leaf-0 -> spine-1"],
        "kind": "flaky",
        "every": "10us",
        "length": "1us",
        "start": "1us",
    },
    "spine-1@1us,duration=5us,detect=never": {
        "switches": ["spine-1"],
        "kind": "down",
        "duration": "5us",
        "detect": "never",
    },
    "leaf-up,degraded,lost=0.5,count=2": {"tier": "leaf-up", "count": 2, "kind": "degraded"},
}


@pytest.mark.parametrize("text", FAILED)
def test_a_failure_in_short_is_a_section(text: str) -> None:
    """The keys of `[failures.fail-1]`, as the resolved experiment has them."""
    table = tomllib.loads(SMALL)
    given = failures.overrides([text])
    (first, *_) = inputs.from_dict(table, overrides=given).runs
    resolved = first["experiment"]["failures"]["fail-1"]
    assert FAILED[text].items() <= resolved.items()


def test_a_failure_in_percent_begins_at_one_time_for_all() -> None:
    """At half of the lower bound without failures; for each size its own, for all schemes one."""
    table = tomllib.loads(SMALL)
    table["sweep"] |= {"workload.size": ["16KB", "160KB"]}
    healthy = package.simulate(table, seeds=1).runs
    found = inputs.from_dict(table, overrides=failures.overrides(["leaf-0:spine-1@50%"]))
    for size in ("16KB", "160KB"):
        (bound,) = set(healthy.filter(healthy["workload.size"] == size)["bound_s"])
        runs = [spec["experiment"] for spec in found.runs if spec["swept"]["workload.size"] == size]
        (start,) = {run["failures"]["fail-1"]["start"] for run in runs}
        assert magnitude(start) == pytest.approx(bound / 2, rel=1e-6)


def test_a_failure_slows_runs_down(weft: Weft) -> None:
    """`compare --fail`, twice: both links of a leaf at a tenth."""
    words = ("--schemes", "ecmp,spray")
    slow = [f"leaf-0:spine-{number},degraded,lost=0.9" for number in (0, 1)]
    healthy = rows(weft, *COMPARE, *words)
    failed = rows(weft, *COMPARE, *words, "--fail", slow[0], "--fail", slow[1])
    assert all(bad["cct_s"] > 3 * good["cct_s"] for good, bad in zip(healthy, failed, strict=True))
    assert all(row["cct_s"] >= row["bound_s"] for row in failed)


WRONG = {
    "--fail leaf-0:spine-7": 'failures.fail-1.links (command line): "leaf-0 <-> spine-7"',
    "--fail leaf-0:spine-1,flakey": 'flakey is not a kind of failure; did you mean "flaky"?',
    "--fail leaf-0:spine-1,degraded=0.5": "degraded takes no value; write degraded,lost=0.5",
    "--fail leaf-0:spine-1,degraded": "failures.fail-1.lost: missing; add it",
    "--fail leaf-0:spine-1,degraded,lots=0.5": 'unknown key; did you mean "lost"?',
    "--fail leaf-0:spine-1@": "says not when",
    "--fail @5us": "says not what fails",
    "--fail leaf-0:spine-1@soon": '"soon" is not a time',
    "--fail leaf-0:spine-1@-5%": '"-5%" is not a share of the completion time',
    "--fail spime-1": "failures.fail-1.switches",
    "--sweep workload.siz=1KB": 'workload.siz (sweep): unknown key; did you mean "size"?',
    "--sweep size=1KB": "did you mean workload.size or background.size?",
    "--sweep workload.size": "no key and value; write --sweep key=value",
    "--sweep workload.size=": "has no values",
    "--sweep seeds=1,2": "use --seeds",
    "--sweep workload.size=1KB,1KB": "lists 1KB twice",
    "--schemes ECMP": 'did you mean "ecmp"?',
    "--schemes flowlet": 'did you mean "flowlet-adaptive"?',
}


@pytest.mark.parametrize("words", WRONG)
def test_mistakes_take_one_line_with_the_mend(weft: Weft, words: str) -> None:
    """Option, key, and what was probably meant."""
    option, _, value = words.partition(" ")
    done = weft(*COMPARE, option, value)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert WRONG[words] in line


@pytest.mark.parametrize(
    ("fabric", "workload", "mend"),
    [
        ("leaf-spine:leaves=2,spines=2,host=2", "ring:size=1KB", 'did you mean "hosts_per_leaf"?'),
        ("fat-tree:k=4,hosts=4", "ring:size=1KB", 'hosts: unknown key; did you mean "k"?'),
        (FABRIC, "all-reduce:size=1KB,hosts=4", 'did you mean "ranks"?'),
        ("leafspine:leaves=2", "ring:size=1KB", 'did you mean "leaf-spine"?'),
        (FABRIC, "alltoall:size=1KB", 'did you mean "all-to-all"?'),
        ("leaf-spine:leaves=2,spines=2,hosts=2,bandwidth=1Gbps", "x", 'did you mean "link"?'),
    ],
)
def test_short_forms_know_what_was_meant(weft: Weft, fabric: str, workload: str, mend: str) -> None:
    """Names, keys, and what others call them."""
    done = weft("compare", "--fabric", fabric, "--workload", workload)
    assert done.returncode == 2
    assert mend in done.stderr


def test_list_alone_says_what_there_is(weft: Weft) -> None:
    """Every list with its number of entries."""
    counts = json.loads(weft("list", "--json").stdout)
    assert {"schemes", "transports", "workloads", "sections"} <= {one["kind"] for one in counts}
    for one in counts:
        entries = json.loads(weft("list", one["kind"], "--json").stdout)
        # Variables are rows of the first of two tables.
        listed = entries[0]["options"] if one["kind"] == "variables" else entries
        assert len(listed) == one["count"]


def test_one_entry_whole(weft: Weft) -> None:
    """With its options, defaults, and where it runs; a number may stand at the end."""
    text = weft("list", "schemes", "reps").stdout
    assert "balance.entropies = 256" in text
    assert "runs on: simulator" in text
    assert "ethereal" not in text
    (entry,) = json.loads(weft("list", "schemes", "subflows-8", "--json").stdout)
    assert entry["name"] == "subflows-N"
    for words, mend in {
        ("schemes", "repz"): 'did you mean "reps"?',
        ("schemes", "flowlet"): "did you mean flowlet-adaptive or host-flowlets?",
        ("schemes", "CONGA"): "did you mean conga?",
        ("scheme",): "did you mean schemes?",
        ("reps",): "did you mean weft list schemes reps?",
    }.items():
        done = weft("list", *words)
        assert done.returncode == 2
        assert mend in done.stderr


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_lists_are_readable_in_80_columns(kind: str) -> None:
    """Meanings have half of the width, and words are whole, however long defaults are."""
    entries = getattr(api, kind)()
    text = listing.text(entries, 80)
    for option in (option for entry in entries for option in entry["options"]):
        told = f"{listing._usage(option)} {option['meaning']}"
        assert " ".join(told.split()) in " ".join(text.split())
    indents = [len(line) - len(line.lstrip()) for line in text.splitlines()]
    assert max(indents) <= 40


def test_what_has_to_be_given_is_explained_so(weft: Weft) -> None:
    """Of keys that stand for each other one; a table never."""
    assert weft("explain", "fabric.nic").stdout.startswith("fabric.nic  (default empty)\n")
    assert "none: it has to be given" in weft("explain", "balance.scheme").stdout
    given = "none: one of tier, links, switches, planes has to be given"
    assert given in weft("explain", "failures.x.tier").stdout
    listed = weft("list", "sections", "[workload]").stdout
    assert "workload.file (required: one of pattern, collective," in listed


@pytest.mark.parametrize("table", ["fabric.switch", "fabric.nic", "fabric.server", "workload"])
def test_a_section_is_explained_by_its_keys(weft: Weft, table: str) -> None:
    """Also where it is a key of another section."""
    found = [one["name"] for one in json.loads(weft("explain", table, "--json").stdout)]
    sections = weft("explain").stdout.split("\n")
    (count,) = (line.split()[1] for line in sections if line.split()[:1] == [table])
    inside = [name for name in found if name.rpartition(".")[0] == table]
    assert len(inside) == int(count)
    assert [*(name for name in found if name == table), *inside] == found


@pytest.mark.parametrize("table", ["workload.jobs", "workload.jobs.NAME", "workload.jobs.a"])
def test_jobs_are_explained_by_the_keys_of_each(weft: Weft, table: str) -> None:
    """What is for all of them together, or for patterns only, is not among these."""
    found = {one["name"] for one in json.loads(weft("explain", table, "--json").stdout)}
    assert ("workload.jobs" in found) == (table == "workload.jobs")
    keys = {name.removeprefix("workload.jobs.NAME.") for name in found - {"workload.jobs"}}
    assert {"collective", "size", "ranks", "window", "global_batch"} <= keys
    assert not {"pattern", "senders", "placement", "jobs", "file"} & keys
    told = weft("explain", table).stdout
    assert "workload.jobs.NAME.model  (required: one of collective, trace, model)" in told


@pytest.mark.parametrize("key", ["workload.size", '"workload.size"', "failures", "failures.x.lost"])
def test_a_swept_key_is_explained(weft: Weft, key: str) -> None:
    """What sweeps it, and itself."""
    swept = json.loads(weft("explain", f"sweep.{key}", "--json").stdout)
    itself = json.loads(weft("explain", key.strip('"'), "--json").stdout)
    assert [swept[0]["name"], swept[1:]] == ["sweep.KEY", itself]
    assert "sweep.nonsense: is no key" in weft("explain", "sweep.nonsense").stderr


def test_a_key_is_explained(weft: Weft) -> None:
    """Meaning, type with range and unit, default, and what it belongs to."""
    text = weft("explain", "failures.links.detect").stdout
    assert "failures.NAME.detect" in text
    assert "routing learns of it" in text
    assert 'a time with its unit (ps, ns, us, ms, s), 0ns to 1000s, or "never"' in text
    assert "100ms" in text
    assert "failures.NAME.kind = down" in text
    assert weft("explain", "detect").stdout == text
    of_job = weft("explain", "workload.jobs.a.ranks").stdout
    assert of_job == weft("explain", "workload.ranks").stdout
    assert 'did you mean "workload.jobs"?' in weft("explain", "workload.job").stderr
    wrong = weft("explain", "failures.links.detekt")
    assert wrong.returncode == 2
    assert 'did you mean "failures.NAME.detect"?' in wrong.stderr
    assert "did you mean fabric.hosts_per_leaf?" in weft("explain", "fabric.hosts").stderr
    assert "weft list schemes reps" in weft("explain", "reps").stderr


def leaves(table: dict[str, Any], before: str = "") -> Iterator[str]:
    """All dotted keys of a resolved experiment."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def unexplained(tables: Iterator[dict[str, Any]]) -> set[str]:
    """The keys of experiments of which nothing is known."""
    known = keys.all_keys()
    all_of_them = {key for table in tables for key in leaves(table)}
    return {key for key in all_of_them if not keys.find(key, known)}


BASE: dict[str, Any] = tomllib.loads(SMALL) | {"sweep": {}, "stragglers": {}, "background": {}}
JOB = {"collective": "all-reduce", "size": "64KB"}


def every_choice() -> Iterator[dict[str, Any]]:
    """A small experiment with each scheme, transport and kind of failure in its turn."""
    for entry in package.schemes():
        yield BASE | {"balance": {"scheme": entry["name"].replace("-N", "-2")}}
    for entry in package.transports():
        part, name = entry["key"].partition(".")[2], entry["name"]
        recovery = {"recovery": "uet"} if "rccc" in name else {}
        yield BASE | {"balance": {"scheme": "ecmp"}, "transport": {part: name, **recovery}}
    ways = (
        {"kind": "degraded", "lost": 0.5},
        {"kind": "flaky", "every": "9us", "length": "1us"},
        {"kind": "down", "duration": "1us"},
    )
    for way in ways:
        for where in ({"links": ["leaf-0 -> spine-0"]}, {"tier": "leaf-up"}):
            yield BASE | {"balance": {"scheme": "ecmp"}, "failures": {"a": where | way}}
    for entry in package.workloads():
        if entry["key"] == "workload.algorithm" and "all-reduce" in entry["summary"]:
            workload = JOB | {"algorithm": entry["name"]}
            yield BASE | {"balance": {"scheme": "ecmp"}, "workload": workload}


def test_every_key_that_a_reader_takes_is_explained() -> None:
    """What readers write into the resolved experiment, defaults included, whatever is chosen."""

    def resolved() -> Iterator[dict[str, Any]]:
        for experiment in every_choice():
            try:
                yield inputs.from_dict(experiment).runs[0]["experiment"]
            except ExperimentError:
                # Some schemes need other switches, some transports other recoveries.
                refused.append(experiment)

    refused: list[dict[str, Any]] = []
    assert not unexplained(resolved())
    assert len(refused) < 5


def test_every_key_that_our_experiments_write_is_explained() -> None:
    """In all of their sections, sweeps and quick versions."""

    def written() -> Iterator[dict[str, Any]]:
        for path in sorted((ROOT / "experiments").glob("*/*.toml")):
            table = tomllib.loads(path.read_text())
            swept = {key: table.pop(key, {}) for key in ("sweep", "quick")}
            own = ("seeds", "refused", "variant")
            for part in swept.values():
                yield {key: value for key, value in part.items() if key not in own}
            for key in ("failures", "printed"):
                table.pop(key, None)
            yield table

    assert not unexplained(written())


def test_every_key_says_what_it_may_be() -> None:
    """A meaning, a kind or words, and a default."""
    for key in keys.all_keys():
        for use in key.uses:
            assert use.meaning, key.name
            assert use.kind or use.words, key.name
            assert use.default, key.name


def test_what_is_explained_as_default_is_taken() -> None:
    """Whatever is chosen of schemes and transports; a default that depends on more says so."""

    def taken(key: str, value: str) -> dict[str, Any]:
        choice = {"transport": {}, key.partition(".")[0]: {key.partition(".")[2]: value}}
        experiment = BASE | {"balance": {"scheme": "ecmp"}} | (choice if key else {})
        try:
            return inputs.from_dict(experiment).runs[0]["experiment"]
        except ExperimentError:
            return {}

    known: dict[tuple[str, str], dict[str, Any]] = {}
    compared = 0
    given = {*leaves(BASE), "balance.scheme", "transport.recovery"}
    all_uses = ((key.name, use) for key in keys.all_keys() for use in key.uses)
    for name, use in ((name, use) for name, use in all_uses if name not in given):
        for one in use.under or [("", "")]:
            if not one[0].startswith(("balance.scheme", "transport.")) and use.under:
                continue
            if one not in known:
                known[one] = taken(*one)
            value: Any = known[one]
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            if value is None or isinstance(value, dict) or "the default grows" in use.meaning:
                continue
            text = value if isinstance(value, str) else json.dumps(value)
            assert text == use.default or magnitude(text) == magnitude(use.default), (name, one)
            compared += 1
    assert compared > 200


def test_the_keys_that_python_reads_are_those_that_are_listed() -> None:
    """An unknown key of `[best]` or `[[printed]]` is refused with all that there are."""
    best, in_printed = (
        {option["key"].partition(".")[2] for option in entry["options"]}
        for entry in shown_keys.entries()
    )
    with pytest.raises(ExperimentError, match="use one of") as error:
        settings.read({"best": {"over": "x", "qqqqqq": 1}}, [], [], "file")
    assert set(str(error.value).partition("use one of ")[2].split(", ")) == best
    asked: set[str] = set()
    statements: list[dict[str, Any]] = [
        {"value": 1},
        {"values": {"a": 1}, "by": "x"},
        {"of": {"b": 1}, "over": {"a": 1}, "value": 1},
        {"order": [{"a": 1}, {"a": 2}]},
    ]
    for statement in statements:
        with pytest.raises(ExperimentError, match="use one of") as error:
            printed.read([statement | {"qqqqqq": 1}], "normalised", "file")
        asked |= set(str(error.value).partition("use one of ")[2].split(", "))
    assert asked == in_printed


def complete(*words: str) -> list[str]:
    """What bash is offered for the last of some words."""
    environment = os.environ | {
        "_WEFT_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["weft", *words]).replace("\n", " "),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(command(), env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_the_shell_completes_commands_and_values() -> None:
    """Commands, kinds of lists, schemes in a list with commas, keys."""
    assert "compare" in complete("comp")
    assert complete("list", "sch") == ["schemes"]
    assert complete("list", "schemes", "rep") == [
        "reps",
        "reps-sticky",
        "reps-freezing",
        "reps-2026",
    ]
    offered = complete("compare", "--schemes", "ecmp,ethereal-")
    assert offered == ["ecmp,ethereal-weighted"]
    assert complete("explain", "failures.NAME.det") == ["failures.NAME.detect"]
    assert "leaf-spine:" in complete("compare", "--fabric", "leaf")
