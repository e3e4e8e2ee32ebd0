"""What `weft compare` says in the end: which scheme is best, and what the others lose."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import weft as package
from conftest import SMALL, Weft
from weft._types import Row
from weft.report import tables, verdict
from weft.report.grouping import group
from weft.report.usual_columns import AGAINST, MINUS
from weft.report.views import View
from weft.study.settings import Settings

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"


def rows(scheme: str, times: Sequence[float], case: str = "1MB") -> list[Row]:
    """One row a seed, times in microseconds over a bound of 100."""
    needs = {"reps": ("nothing", "packets out of order"), "ethereal": ("path ids", "nothing")}
    switches, nics = needs.get(scheme, ("nothing", "nothing"))
    return [
        {
            "scheme": scheme,
            "seed": seed,
            "cct_s": 1e-6 * time,
            "slowdown": time / 100,
            "bound_s": 1e-4,
            "switch_changes": switches,
            "nic_changes": nics,
            "swept": {"balance.scheme": scheme, "workload.size": case},
        }
        for seed, time in enumerate(times, 1)
    ]


def said(*some: list[Row]) -> str:
    """The sentences on rows."""
    found = verdict.of(view(*some))
    return found["text"] if found else ""


def view(*some: list[Row]) -> View:
    """Rows as tables see them."""
    return View(Settings("file"), group([row for part in some for row in part]))


def stalled(scheme: str, seeds: Sequence[int], case: str = "1MB") -> list[Row]:
    """What is known of runs that stalled."""
    swept = {"balance.scheme": scheme, "workload.size": case}
    return [{"scheme": scheme, "seed": seed, "swept": swept, "stalled": "why"} for seed in seeds]


def test_the_best_its_distance_from_the_bound_and_what_ecmp_loses() -> None:
    """Two sentences, with the comparison that the table has."""
    text = said(rows("ecmp", [150, 152, 154]), rows("reps", [110, 110, 110]))
    assert text == (
        "Best is reps with 110.0 µs, 10 % above the lower bound; it asks of NICs "
        '"packets out of order". '
        f"ecmp takes 38.2 % longer, reps vs ecmp {MINUS}27.6 ± 2.4 %, which is significant."
    )


def test_what_seeds_do_not_tell_apart_is_said() -> None:
    """Differences within their interval, and one seed alone."""
    text = said(rows("ecmp", [100, 120, 140]), rows("ethereal", [101, 117, 133]))
    assert "not told apart from ecmp" in text
    assert 'it asks of switches "path ids"' in text
    assert text.endswith("which is not significant.")
    assert "one seed does not tell" in said(rows("ecmp", [120]), rows("reps", [110]))


def test_ecmp_may_be_the_best() -> None:
    """Then the slowest is told of."""
    text = said(rows("ecmp", [100, 100]), rows("reps", [110, 110]), rows("ethereal", [120, 120]))
    assert text.startswith("Best is ecmp with 100.0 µs, at the lower bound; it asks nothing of")
    assert "ethereal takes 20.0 % longer" in text
    assert "reps takes as long" in said(rows("ecmp", [100, 101]), rows("reps", [100, 101]))


def test_who_stalls_is_not_the_best() -> None:
    """However fast its other seeds are; who stalls in all of them is told of, too."""
    seen = view(
        *(stalled("ethereal", [1, 2, 3]), stalled("ecmp", [3])),
        *(rows("ecmp", [105, 105]), rows("reps", [110, 110, 110])),
    )
    found = verdict.of(seen)
    assert found is not None
    assert found["text"].startswith("Best is reps with 110.0 µs")
    assert found["text"].endswith(
        ". ethereal finished in 0 of 3 seeds; ecmp finished in 2 of 3 seeds."
    )
    (case,) = found["cases"]
    assert case["stalled"] == {"ecmp": 1, "ethereal": 3}
    assert (case["loser"], case["loss"]) == ("ecmp", None)


def test_a_case_in_which_others_stall_counts() -> None:
    """With one scheme left, and with none."""
    seen = view(
        *(rows("ecmp", [103, 103]), stalled("ecmp", [1, 2], "4MB"), stalled("ecmp", [1], "9MB")),
        *(rows("reps", [100, 100]), rows("reps", [130, 130], "4MB"), stalled("reps", [1], "9MB")),
    )
    found = verdict.of(seen)
    assert found is not None
    assert found["text"].startswith("Best of 2 cases: reps in 2, and there 30 % above")
    assert found["text"].endswith(
        "3.00 % at most (size 1MB); ecmp stalled in 1, with 0 of 2 seeds finished (size 4MB); "
        "nothing finished in size 9MB."
    )


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (110.005, "ecmp takes as long"),
        (110.1, "ecmp takes 0.0909 % longer;"),
        (2200, "ecmp takes 20.0 times as long;"),
    ],
)
def test_a_loss_is_told_as_it_is_read(time: float, words: str) -> None:
    """What tables show as zero is none, and large ratios are ratios."""
    text = said(rows("ecmp", [time]), rows("reps", [110]))
    assert f". {words}" in text


def test_different_jobs_have_no_best() -> None:
    """The same job elsewhere, or in other steps, has one."""
    few, many = rows("ecmp", [100, 101]), rows("reps", [200, 201])
    for one in [*few, *many]:
        one |= {"workload": "all-reduce", "size_bytes": 8, "payload_bytes": one["cct_s"]}
    assert said(few, many).startswith("Best is ecmp")
    for one in many:
        one |= {"workload": "broadcast"}
    assert not said(few, many)


def test_jobs_that_series_are_called_after_are_cases() -> None:
    """As if they were not: within each the others are compared."""
    both = [("ecmp", [110, 111]), ("reps", [105, 105])]
    runs = [row for one, times in both for case in ("1MB", "4MB") for row in rows(one, times, case)]
    for row in runs:
        size = row["swept"]["workload.size"]
        row |= {"workload": "all-reduce", "size_bytes": size, "payload_bytes": 0}
    keys = ("balance.scheme", "workload.size")
    found = verdict.of(View(Settings("file", series=keys), group(runs, None, keys)))
    assert found == verdict.of(view(runs)) is not None
    assert [case["case"] for case in found["cases"]] == ["size 1MB", "size 4MB"]


def test_several_cases_are_counted() -> None:
    """How often each is best, the largest distance from the bound, the largest loss."""
    text = said(
        *(rows("ecmp", [150, 152, 154], case) for case in ("1MB", "4MB")),
        *(rows("reps", [110, 110, 110]), rows("reps", [130, 130, 130], "4MB")),
    )
    assert text.startswith(
        "Best of 2 cases: reps in 2, and there 30 % above the lower bound at most"
    )
    assert (
        "ecmp takes longer in 2, significantly in 2 of 2, 38.2 % at most "
        f"(size 1MB: reps vs ecmp {MINUS}27.6 ± 2.4 %)." in text
    )


@pytest.mark.parametrize(
    ("ecmp", "reps", "best"), [([100, 900], [10, 10], "reps"), ([10, 10], [100, 900], "ecmp")]
)
def test_the_verdict_is_as_sure_as_the_table(
    ecmp: list[float], reps: list[float], best: str
) -> None:
    """Of a ratio and its inverse the interval of one may include no difference."""
    cell = AGAINST.cell(rows("reps", reps), rows("ecmp", ecmp))
    found = verdict.of(view(rows("ecmp", ecmp), rows("reps", reps)))
    assert found is not None
    assert (found["best"], found["significant"]) == (best, not cell.unsure)
    assert bool(found["cases"][0]["equals"]) is cell.unsure
    assert f"reps vs ecmp {cell.text.removesuffix(' n.s.')}, which is " in found["text"]
    assert ("not told apart" in found["text"]) is cell.unsure


def test_the_fields_of_one_case() -> None:
    """What the sentences say, for programs."""
    found = verdict.of(view(rows("ecmp", [150, 152, 154]), rows("reps", [110, 110, 110])))
    assert found is not None
    (case,) = found["cases"]
    assert (case["case"], case["best"], case["equals"]) == ("", "reps", [])
    assert (case["cct_s"], case["slowdown"]) == (pytest.approx(110e-6), pytest.approx(1.1))
    assert found["best"] == "reps"
    assert found["needs"] == {"switches": None, "nics": "packets out of order"}
    for one in (found, case):
        assert (one["loser"], one["significant"]) == ("ecmp", True)
        assert one["loss"] == pytest.approx(152 / 110 - 1)
        assert one["half_95"] == pytest.approx(4.303 * (2 / 110) / 3**0.5)


def test_the_fields_where_seeds_do_not_tell() -> None:
    """Not significant, and unknown, are two things; what takes as long is no loss."""
    unsure = verdict.of(view(rows("ecmp", [100, 120, 140]), rows("ethereal", [101, 117, 133])))
    assert unsure is not None
    assert (unsure["significant"], unsure["cases"][0]["equals"]) == (False, ["ecmp"])
    once = verdict.of(view(rows("ecmp", [120]), rows("reps", [110])))
    assert once is not None
    assert (once["half_95"], once["significant"]) == (None, None)
    alike = verdict.of(view(rows("ecmp", [100, 101]), rows("reps", [100, 101])))
    assert alike is not None
    assert (alike["loss"], alike["significant"]) == (0.0, False)
    others = verdict.of(view(rows("ecmp", [150]), rows("reps", [110, 110])))
    assert others is not None
    assert (others["loser"], others["loss"]) == ("ecmp", None)


def test_the_fields_of_several_cases() -> None:
    """The worst distance and the largest loss; each case has its own."""
    found = verdict.of(
        view(
            *(rows("ecmp", [150, 152, 154], case) for case in ("1MB", "4MB")),
            *(rows("reps", [110, 110, 110]), rows("reps", [130, 130, 130], "4MB")),
        )
    )
    assert found is not None
    assert [case["case"] for case in found["cases"]] == ["size 1MB", "size 4MB"]
    assert found["slowdown"] == pytest.approx(1.3)
    assert found["loss"] == max(case["loss"] or 0 for case in found["cases"])
    nothing = verdict.of(
        view(*(rows(name, [110], case) for case in ("1MB", "4MB") for name in ("ecmp", "reps")))
    )
    assert nothing is not None
    assert (nothing["best"], nothing["loser"], nothing["loss"]) == ("ecmp", None, None)


def test_one_scheme_has_nothing_to_say() -> None:
    """Nothing to compare."""
    assert verdict.of(view(rows("ecmp", [150, 152]))) is None


def test_compare_ends_with_it(weft: Weft) -> None:
    """Below the table and in every row of JSON; the columns of what schemes ask."""
    words = ["compare", "--fabric", FABRIC, "--workload", "all-to-all:size=16KB"]
    words += ["--schemes", "ecmp,ethereal", "--seeds", "2", "-q"]
    done = weft(*words)
    assert done.returncode == 0, done.stderr
    _, below = done.stdout.split("\n\n")
    assert below.startswith("Best is ")
    assert "route by path id" in done.stdout
    (first, *_) = json.loads(weft(*words, "--json").stdout)
    assert first["nic_changes"] == "nothing"
    assert first["verdict"]["text"] == " ".join(below.split())
    assert below.startswith(f"Best is {first['verdict']['best']} with ")
    (summary,) = json.loads(weft(*words, "--summary").stdout)["experiments"]
    assert summary["verdict"] == first["verdict"]
    result = package.compare(FABRIC, "all-to-all:size=16KB", ["ecmp", "ethereal"], seeds=2)
    assert result.verdict == first["verdict"]
    assert package.compare(FABRIC, "all-to-all:size=16KB", ["ecmp"], seeds=1).verdict is None


@pytest.mark.parametrize(
    ("ranks", "server", "warning"),
    [
        (2, "", "stays under one leaf"),
        (2, ",server.gpus=2", "nothing that 2 ranks send crosses the fabric"),
        (4, "", ""),
    ],
)
def test_a_job_that_stays_where_it_is(weft: Weft, ranks: int, server: str, warning: str) -> None:
    """It is told, since every scheme comes out alike; ranks stand beside hosts."""
    job = f"all-reduce:size=64KB,ranks={ranks}"
    done = weft(
        "compare", "--fabric", FABRIC + server, "--workload", job, "--schemes", "ecmp", "-q"
    )
    assert done.returncode == 0, done.stderr
    assert (warning in done.stderr) if warning else not done.stderr
    assert f"{ranks} ranks on 4 hosts" in done.stdout


@pytest.mark.parametrize(("far", "is_warned"), [(3, True), (5, False)])
def test_messages_that_stay_below_a_leaf(
    weft: Weft, tmp_path: Path, far: int, is_warned: bool
) -> None:
    """They are told as jobs are, in comparisons and plans; one message that leaves is enough."""
    fabric = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
    lines = [f"{key} = {json.dumps(value)}" for key, value in fabric.items()]
    (tmp_path / "cluster.toml").write_text("\n".join(["[fabric]", *lines]))
    connections = f"Nodes 8\nConnections 2\n0->1 start 0 size 20000\n2->{far} start 0 size 20000\n"
    (tmp_path / "some.cm").write_text(connections)
    (tmp_path / "job.toml").write_text('[workload]\nfile = "some.cm"\n')
    short = "leaf-spine:leaves=2,spines=2,hosts_per_leaf=4"
    commands = (
        ("compare", "--fabric", short, "--workload", "some.cm", "--schemes", "ecmp", "-q"),
        ("plan", "cluster.toml", "--job", "job.toml"),
        ("plan", "cluster.toml", "--job", "job.toml", "--schemes", "ecmp,ethereal"),
    )
    for words in commands:
        done = weft(*words)
        assert done.returncode == 0, done.stderr
        assert ("every message stays under one leaf" in done.stderr) == is_warned
        assert done.stderr.count("\n") == is_warned


def test_a_table_fits_eighty_columns() -> None:
    """What is all zero goes first; what is not shown is named. A wide one has all columns."""
    table = tomllib.loads(SMALL) | {"title": "T"}
    table["sweep"] = {"balance.scheme": ["ecmp", "ethereal", "flowlet-adaptive"], "seeds": 3}
    runs = package.simulate(table).runs
    swept = ("balance.scheme",)
    found = [row | {"swept": {key: row[key] for key in swept}} for row in runs.to_dicts()]
    summary = tables.summarise(group(found))
    narrow, wide = (tables.text(summary, "T", width) for width in (80, 200))
    assert max(map(len, narrow.splitlines())) <= 80
    words = " ".join(narrow.split())
    assert "not shown for lack of room: p99 FCT, drops, retransmits, max QPs, peak queue" in words
    assert "asks of" in narrow.splitlines()[2]
    assert "slowdown" in narrow.splitlines()[3]
    assert "not shown" not in wide
    assert "route by path id" in wide
