"""`weft plan`: which path every piece of a job takes; checks of plan files."""

from __future__ import annotations

import dataclasses
import json as json_
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import completion, options
from weft.software import SOFTWARE

if TYPE_CHECKING:
    from weft.plans.file import Plan
    from weft.study.inputs import Overrides


_OF_PLANS = ("--scheme", "--seed", "--set", "--paths")
"""Options that say how a plan is made."""


def plan(
    context: typer.Context,
    cluster: Annotated[
        Path,
        typer.Argument(
            metavar="CLUSTER",
            help="A cluster (.toml): [fabric], [failures] that exist now, [cluster]; with --verify "
            "a plan; with --hosts-for either.",
            show_default=False,
        ),
    ],
    job: Annotated[
        str | None,
        typer.Option(
            *options.JOB,
            metavar="FILE|SHORTHAND",
            help="The job: a file (.toml) with [workload], as in an experiment, a connection "
            "matrix (.cm), flows (.csv), a trace, or NAME:KEY=VALUE,... as in weft compare.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            *options.SCHEME,
            metavar="A[,B,...]",
            help="Any scheme that chooses paths when messages are posted. Several are compared.",
            autocompletion=completion.schemes,
        ),
    ] = "ethereal",
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=options.LARGEST_SEED, metavar="N", help="Seed of all that is random."
        ),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write plan.json, loads.parquet, pieces.parquet and loads.png to this directory; "
            "of several schemes to a directory each.",
        ),
    ] = None,
    paths: Annotated[
        Path | None,
        typer.Option(
            metavar="PATHS.json",
            help="Take source ports from this table of weft discover, for switches as they are "
            '(balance.enforce = "discovered").',
        ),
    ] = None,
    set_: options.Set = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Compute loads and bounds of a plan file again, and compare."
        ),
    ] = False,
    optimum: Annotated[
        bool,
        typer.Option(
            "--optimum", help="Also print the optimum of every step, by a linear program."
        ),
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show the queue pairs of this host; with --hosts-for only its settings.",
        ),
    ] = None,
    hosts_for: Annotated[
        str | None,
        typer.Option(
            metavar="A[,B,...]",
            help="Write what other software takes of the plan, for each host: "
            f"{', '.join(SOFTWARE)}. With -o a folder each, else printed.",
            autocompletion=completion.software,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> int:
    """Plan the paths of a job, and prove how good they are.

    For every step of the job: the messages that are sent at the same time, how many of them are
    split, the load of each link, the time of the busiest link, a lower bound of that time, and the
    links that cause the bound. For the whole job: the lower bound that weft compare shows; steps
    may overlap, so the sum over the steps is no bound. Links that are down or slow are as
    [failures] says.

    \b
    Examples:
      weft plan cluster.toml --job job.toml --scheme ethereal -o plan/
      weft plan --verify plan/plan.json
      weft plan cluster.toml --job job.toml --scheme dnlb-8 --host gpu-3
      weft plan cluster.toml --workload all-reduce:size=64MB --schemes ecmp,dnlb-4,ethereal
      weft switch-config plan/plan.json --format nftables
      weft plan plan/plan.json --hosts-for mooncake,perftest -o hosts/
      weft plan cluster.toml --job job.toml --paths paths.json      # switches as they are

    With --hosts-for: settings for software that chooses source ports itself, of a plan that is made
    now or of a plan.json.

    \b
    Exit status: 0 the plan is made, or the file is correct; 2 bad input, or it is not correct.
    """
    from weft.plans import folder, show
    from weft.software import show as software

    if verify:
        others = ("--job", *_OF_PLANS, "--output", "--optimum", "--host", "--hosts-for")
        options.refuse(context, others, "--verify, which checks a plan as it is")
        return _verify(cluster, json)
    programs = _programs(hosts_for)
    if programs:
        options.refuse(context, ("--optimum",), "--hosts-for")
    elif json:
        options.refuse(context, ("--host", "--optimum"), "--json, which prints the whole plan")
    changes = options.overrides(set_ or [])
    _no_cluster_keys(changes, cluster)
    schemes = options.names("--scheme", scheme) or []
    if programs and job is None and cluster.suffix != ".toml":
        from weft.plans import file

        options.refuse(context, _OF_PLANS, "a plan that is made already")
        made = file.read(cluster)
        with file.as_written(str(cluster)):
            _warn(made)
            return _hosts_for(made, programs, host, output, json)
    else:
        _no_plan(cluster)
        work = _job(job)
        if len(schemes) != 1:
            options.refuse(context, ("--host", "--optimum"), "several schemes")
            return _compare(cluster, work, schemes, seed, output, changes, paths, json, programs)
        made = _made(cluster, work, schemes[0], seed, changes, paths)
        if output is not None:
            folder.write(made, output)
    _warn(made)
    if programs:
        return _hosts_for(made, programs, host, output, json)
    if json:
        print(json_.dumps(made, indent=1))
        return 0
    parts = [show.text(made)]
    parts += [show.optima(made)] if optimum else []
    parts += [show.host(made, host)] if host is not None else []
    parts += software.near(made)
    print("\n\n".join(parts))
    if output is not None:
        print(f"\n{output}/{', '.join(folder.written(output))}")
    return 0


def _made(
    cluster: Path,
    work: Path | str,
    scheme: str,
    seed: int,
    changes: Overrides,
    paths: Path | None,
) -> Plan:
    """A plan; a table of paths must be of the traffic that it is for."""
    from weft.discover import table
    from weft.plans import make

    made = make.make(cluster, work, scheme, seed, changes, paths=paths)
    if paths is not None:
        table.check_traffic(paths, made["cluster"]["protocol"], made["cluster"]["port"])
    return made


def _warn(made: Plan) -> None:
    """Say so where all schemes plan the same, as runs do, and where ports are a model's."""
    from weft import _native
    from weft.cli.terminal import note

    stays = _native.plan_stays(json_.dumps(made["experiment"]), made["seed"])
    if stays is not None:
        note(f"warning: {stays}")
    if made["enforce"] == "hash":
        note(
            'warning: balance.enforce: source ports of "hash" are for hosts 10.0.0.1, 10.0.0.2, '
            "... and the hash seeds of simulated switches; for real ones find ports by "
            "weft discover, and name its table with --paths"
        )


def _job(job: str | None) -> Path | str:
    """What --job names."""
    from weft import ExperimentError
    from weft.plans import make

    if job is None:
        raise ExperimentError("--job: is missing; name the file of the job (it has a [workload])")
    return make.job(job)


def _no_cluster_keys(changes: Overrides, cluster: Path) -> None:
    """Names and addresses are what the file says."""
    from weft import ExperimentError

    for key, _ in changes:
        if key.partition(".")[0] in ("cluster", "nccl"):
            raise ExperimentError(
                f"--set {key}: is no key of an experiment; change it in {cluster}"
            )


def _no_plan(cluster: Path) -> None:
    """Refuse a plan where a cluster is to be planned on."""
    if cluster.is_dir() or (cluster.suffix == ".json" and cluster.exists()):
        from weft import ExperimentError

        raise ExperimentError(
            f"{cluster}: is a plan already; add --verify or --hosts-for, or name a cluster file "
            "(.toml) to plan on"
        )


def _programs(hosts_for: str | None) -> list[str]:
    """The software that --hosts-for names."""
    from weft import software

    names = options.names("--hosts-for", hosts_for) or []
    for name in names:
        software.find(name)
    return names


def _hosts_for(
    made: Plan, programs: Sequence[str], host: str | None, output: Path | None, json: bool
) -> int:
    """What other software takes of a plan: written or printed, and how far it is from the plan."""
    from weft.cli.terminal import note
    from weft.software import files, show
    from weft.software.planned import Planned
    from weft.switches import config

    planned = Planned(made)
    written = {name: files.of(name, planned, host) for name in programs}
    if output is not None:
        for name, some in written.items():
            config.write(some, output / name)
    if json:
        print(json_.dumps(made | {"hosts_for": show.as_json(planned, written)}, indent=1))
        return 0
    if output is None:
        print("\n".join(config.printed(some) for some in written.values()), end="")
    note(show.table(planned, programs))
    if output is not None:
        note("\n".join(f"{len(some)} files in {output / name}" for name, some in written.items()))
    return 0


def _compare(
    cluster: Path,
    work: Path | str,
    schemes: Sequence[str],
    seed: int,
    output: Path | None,
    changes: Overrides,
    paths: Path | None,
    json: bool,
    programs: Sequence[str],
) -> int:
    """Plan the job under several schemes, and show how good the plans are."""
    from weft import ExperimentError
    from weft.plans import folder, show

    if programs:
        raise ExperimentError("--hosts-for: writes for one plan; name one --scheme")
    made = [_made(cluster, work, scheme, seed, changes, paths) for scheme in schemes]
    if output is not None:
        for scheme, one in zip(schemes, made, strict=True):
            folder.write(one, output / scheme)
    _warn(made[0])
    print(json_.dumps(made, indent=1) if json else show.compared(made))
    return 0


def _verify(path: Path, json: bool) -> int:
    """Check a plan file."""
    from weft.plans import file, show, verify

    made = file.read(path)
    with file.as_written(str(path)):
        found = verify.verify(made)
    if json:
        print(json_.dumps([dataclasses.asdict(one) for one in found], indent=1))
    else:
        print(show.checked(found))
    return 0
