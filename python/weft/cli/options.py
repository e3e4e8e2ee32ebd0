"""Options that several commands have, each defined once, and how their values are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from weft.cli import completion

if TYPE_CHECKING:
    from weft.study import sweep
    from weft.study.cluster.places import Place

MOST_THREADS = 1 << 16
"""More than any machine has; the native core counts in 32 bits."""
LARGEST_SEED = (1 << 32) - 1
CHECKED_RUNS = 5
"""Runs that `--check` does over if it is given no number."""

# A command that takes one scheme, one that takes several: both words are accepted everywhere, and
# so are both words for what is sent.
SCHEME = ("--scheme", "--schemes")
SCHEMES = ("--schemes", "--scheme")
JOB = ("--job", "--workload")
WORKLOAD = ("--workload", "--job")

Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Write the results to this directory: parquet tables, report.html. "
        "A repeated command runs only what is missing. Without it, only the table is printed.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=LARGEST_SEED,
        metavar="N",
        help="Runs of each combination, with seeds 1 to N; more runs, "
        "narrower confidence intervals.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Simulations that run at the same time. Results do not depend on it. "
        "Default: as many as the cores allow.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        metavar="N",
        help="Cores for one simulation. Results do not depend on it. Default: the cores that "
        "are free, if the simulation is large enough to gain from them.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="HOST:PORT|KIND:KEY=VALUE,...",
        help="Simulate on the workers of a Dask scheduler: the one at HOST:PORT, or one that is "
        "started for this: slurm:queue=Q,cores=N,memory=M,walltime=T,jobs=N, or "
        "kubernetes:image=I,workers=N, or local. Results do not depend on it and are kept here.",
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Simulate only the I-th of N shares of the runs, for machines that share nothing; "
        "weft merge puts the results together.",
    ),
]
Fidelity = Annotated[
    str | None,
    typer.Option(
        metavar="A[,B]",
        help="How closely to simulate: packet (the default); fast, packets only in runs whose "
        "hosts are in each other's way; or fluid, rates of flows instead of packets, for what no "
        "packet engine reaches. Of several, the difference is printed.",
    ),
]
Check = Annotated[
    int | None,
    typer.Option(
        "--check",
        min=1,
        metavar="[COUNT]",
        help="Measure what fast and fluid are off by: do COUNT of the runs that skipped packets "
        f"(default: {CHECKED_RUNS}; drawn at random, always the same ones) over packet by packet.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the experiment, e.g. "
        "--set workload.size=64KB. May be given several times.",
    ),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=A,B,...",
        help="Run with each of these values of a key, e.g. --sweep workload.size=1MB,64MB. "
        "Several make all combinations.",
    ),
]
Fabric = Annotated[
    str,
    typer.Option(
        metavar="SHORTHAND|FILE",
        help="TOPOLOGY:KEY=VALUE,... or a topology file of htsim, InfraGraph, ASTRA-sim or SimAI "
        "(ns-3); see weft list topologies.",
        show_default=False,
        autocompletion=completion.fabrics,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="A short version: one seed, or what [quick] in the experiment says. "
        "The full version does not repeat these runs.",
    ),
]
Summary = Annotated[
    bool,
    typer.Option(
        "--summary",
        help="Print one JSON object instead of a table: means, standard deviations, best "
        "values, and comparisons with printed results.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the results as a JSON array, one object per run.")
]
JsonObject = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="Leave plots and report out of what -o writes.")
]
Plots = Annotated[
    str | None,
    typer.Option(
        "--plots",
        metavar="FORMAT,...",
        help="Draw the figures of the report as files in DIR/plots, too: svg, png, pdf.",
    ),
]
Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="With -o, for jobs: write what every rank did and when to timeline/*.json.gz, for "
        "the Perfetto UI.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no hints.")]


class WithCheck(TyperCommand):
    """A command with `--check [COUNT]`: the parser knows no options whose value may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line with the number that a bare `--check` stands for."""
        return super().parse_args(ctx, _with_count(args))


def _with_count(words: Sequence[str]) -> list[str]:
    """The words, a number behind each `--check` that has none: a file or an option may follow."""
    given: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*given, *words[place:]]
        given.append(word)
        if word == "--check" and not _is_count("".join(words[place + 1 : place + 2])):
            given.append(str(CHECKED_RUNS))
    return given


def _is_count(word: str) -> bool:
    """Whether a word is meant as a number, right or wrong."""
    if re.match(r"-?\d+$", word):
        return True
    return bool(word) and not word.startswith("-") and not Path(word).exists()


def overrides(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs in `--set key=value` arguments."""
    return [pair("--set", text) for text in texts]


def sweeps(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs in `--sweep key=a,b` arguments, as `--set` takes them."""
    from weft import ExperimentError

    found: dict[str, str] = {}
    for text in texts:
        key, listed = pair("--sweep", text)
        values = split(listed)
        if key == "seeds":
            raise ExperimentError("--sweep seeds: is no key of a run; use --seeds")
        if not values:
            raise ExperimentError(f"--sweep {text}: has no values; write --sweep {key}=A,B")
        if key in found:
            raise ExperimentError(f"--sweep {key}: is there twice; list all values in one")
        found[key] = f"[{', '.join(map(_literal, values))}]"
    return [(f"sweep.{key}", values) for key, values in found.items()]


def changes(swept: Sequence[str], set_: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs in `--sweep` and `--set` arguments, which must not be about the same key."""
    from weft import ExperimentError

    found = [*sweeps(swept), *overrides(set_)]
    for key, _ in found:
        if f"sweep.{key}" in dict(found):
            raise ExperimentError(f"--set {key}: --sweep {key} is there as well; remove one")
    return found


def chosen_once(changes: Sequence[tuple[str, str]]) -> None:
    """Refuse changes that choose the load balancer beside `--schemes`."""
    for key, option in (("sweep.balance.scheme", "--sweep"), ("balance.scheme", "--set")):
        if key in dict(changes):
            from weft import ExperimentError

            raise ExperimentError(
                f"{option} balance.scheme: is there twice, since --schemes says it as well; list "
                "all values in --schemes"
            )


def _literal(text: str) -> str:
    """A value of a list as TOML writes it: what is no number, flag, list or table is text."""
    if re.fullmatch(r"[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?|true|false|[\[{\"'].*", text):
        return text
    return json.dumps(text)


def given(context: typer.Context) -> list[str]:
    """The options that the command line has, each by its first long word."""
    found = []
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        if one.param_type_name == "option" and source is not None and source.name == "COMMANDLINE":
            found.append(next((word for word in one.opts if word.startswith("--")), one.opts[0]))
    return found


def refuse(context: typer.Context, useless: Sequence[str], beside: str) -> None:
    """Refuse options that would do nothing; `beside` is what they are of no use with."""
    for word in given(context):
        if word in useless:
            from weft import ExperimentError

            raise ExperimentError(f"{word}: does nothing with {beside}; leave {word} out")


def require(context: typer.Context, word: str, other: str) -> None:
    """Refuse an option that would do nothing without another one."""
    both = given(context)
    if word in both and other not in both:
        from weft import ExperimentError

        raise ExperimentError(f"{word}: does nothing without {other}; add it, or leave {word} out")


def number(value: float | None) -> float | None:
    """Refuse what is no number: it is in no range, and in every one that is asked for its ends."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter(f"{value} is no number")
    return value


def names(option: str, text: str | None) -> list[str] | None:
    """`a,b,c` as a list of different names; None where the option is not given."""
    parts = split(text)
    if text is not None and not parts:
        from weft import ExperimentError

        raise ExperimentError(f"{option}: names none; write {option} A,B or leave it out")
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        from weft import ExperimentError

        raise ExperimentError(f"{option} {text}: {twice} is listed twice; list each once")
    return parts or None


def split(text: str | None) -> list[str]:
    """The parts of a list with commas; those within brackets do not count."""
    parts = re.split(r",(?![^\[\]]*\])(?![^{}]*})", text or "")
    return [part.strip() for part in parts if part.strip()]


def pair(option: str, text: str) -> tuple[str, str]:
    """Key and value of `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        from weft import ExperimentError

        raise ExperimentError(f"{option} {text}: no key and value; write {option} key=value")
    return key.strip(), value.strip()


def place(text: str | None) -> Place | None:
    """Where `--on` says that simulations run."""
    if text is None:
        return None
    from weft import ExperimentError
    from weft.study.cluster.places import KINDS, Place
    from weft.study.fields import suggestion

    kind, _, rest = text.partition(":")
    if kind in KINDS:
        given: dict[str, str] = {}
        for key, value in (pair("--on", part) for part in split(rest)):
            if key in given:
                raise ExperimentError(f"--on {text}: {key} is given twice; remove one of them")
            given[key] = value
        return Place(kind, given, text)
    if re.search(r":\d+$", text):
        return Place(text, {}, text)
    raise ExperimentError(
        f"--on {text}: {suggestion(kind, KINDS)}; or write HOST:PORT of a Dask scheduler"
    )


def shard(text: str | None, output: Path | None, check: int | None) -> sweep.Shard | None:
    """The share of the runs that `--shard I/N` means."""
    if text is None:
        return None
    part, _, whole = text.partition("/")
    if not (part.isdigit() and whole.isdigit() and 1 <= int(part) <= int(whole)):
        raise typer.BadParameter(f"--shard {text}: write I/N with I from 1 to N, such as 3/16")
    if output is None:
        raise typer.BadParameter("--shard leaves results for weft merge; add -o DIR to say where")
    if check is not None:
        raise typer.BadParameter("--check draws from all runs, --shard has some; choose one")
    from weft.study.sweep import Shard as Share

    return Share(int(part), int(whole))


def formats(text: str | None) -> tuple[str, ...]:
    """The formats in `--plots svg,pdf`, each once."""
    from weft import ExperimentError
    from weft.report.html import FORMATS
    from weft.study.fields import suggestion

    wanted = names("--plots", text) or []
    for one in wanted:
        if one not in FORMATS:
            raise ExperimentError(f"--plots {one}: is no format; {suggestion(one, FORMATS)}")
    return tuple(wanted)


def formats_of(text: str | None, output: Path | None, no_report: bool) -> tuple[str, ...]:
    """The same for a command that may have nowhere to put them."""
    if text and (output is None or no_report):
        raise typer.BadParameter(
            "--plots are figures of the report; "
            + ("remove --no-report" if no_report else "add -o DIR to say where")
        )
    return formats(text) if text else ()


def require_output(timeline: bool, output: Path | None) -> None:
    """Refuse `--timeline` without `-o`."""
    if timeline and output is None:
        raise typer.BadParameter("--timeline writes files; add -o DIR to say where")


def exclude(json: bool, summary: bool) -> None:
    """Refuse `--json` with `--summary`."""
    if json and summary:
        raise typer.BadParameter("--json prints rows, --summary one object; choose one")
