"""`weft plan`: which path every piece of a job takes; checks of plan files."""

from __future__ import annotations

import dataclasses
import json as json_
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import completion, options

if TYPE_CHECKING:
    from weft.study.inputs import Overrides


def plan(
    cluster: Annotated[
        Path,
        typer.Argument(
            metavar="CLUSTER",
            help="A cluster (.toml): [fabric], [failures] that exist now, [cluster]; with --verify "
            "a plan.",
            show_default=False,
        ),
    ],
    job: Annotated[
        str | None,
        typer.Option(
            *options.JOB,
            metavar="FILE|SHORTHAND",
            help="The job: a file (.toml) with [workload], as in an experiment, or NAME:KEY=VALUE,"
            "... as in weft compare.",
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
        typer.Option(metavar="NAME", help="Show the queue pairs of this host."),
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

    \b
    Exit status: 0 the plan is made, or the file is correct; 2 bad input, or it is not correct.
    """
    from weft import ExperimentError
    from weft.plans import folder, make, show

    if verify:
        return _verify(cluster, json)
    if job is None:
        raise ExperimentError("--job: is missing; name the file of the job (it has a [workload])")
    work = make.job(job)
    changes = options.overrides(set_ or [])
    schemes = options.names("--schemes", scheme) or []
    if len(schemes) != 1:
        return _compare(cluster, work, schemes, seed, output, changes, json)
    made = make.make(cluster, work, schemes[0], seed, changes)
    if output is not None:
        folder.write(made, output)
    if json:
        print(json_.dumps(made, indent=1))
        return 0
    parts = [show.text(made)]
    parts += [show.optima(made)] if optimum else []
    parts += [show.host(made, host)] if host is not None else []
    print("\n\n".join(parts))
    if output is not None:
        print(f"\n{output}/{', '.join(folder.written(output))}")
    return 0


def _compare(
    cluster: Path,
    work: Path | str,
    schemes: Sequence[str],
    seed: int,
    output: Path | None,
    changes: Overrides,
    json: bool,
) -> int:
    """Plan the job under several schemes, and show how good the plans are."""
    from weft import ExperimentError
    from weft.plans import folder, make, show

    if not schemes:
        raise ExperimentError("--schemes: names none; write --schemes ethereal,dnlb-4")
    made = [make.make(cluster, work, scheme, seed, changes) for scheme in schemes]
    if output is not None:
        for scheme, one in zip(schemes, made, strict=True):
            folder.write(one, output / scheme)
    print(json_.dumps(made, indent=1) if json else show.compared(made))
    return 0


def _verify(path: Path, json: bool) -> int:
    """Check a plan file."""
    from weft.plans import file, show, verify

    found = verify.verify(file.read(path))
    if json:
        print(json_.dumps([dataclasses.asdict(one) for one in found], indent=1))
    else:
        print(show.checked(found))
    return 0
