"""`weft capacity`: whether a fabric with its failures carries a workload."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options


def capacity(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Experiments (.toml, .json), or directories of them.",
            show_default=False,
        ),
    ],
    set_: options.Set = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=options.LARGEST_SEED,
            metavar="N",
            help="Seed of random failures and random workloads. "
            "Default: the first of the experiment's seeds.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object per combination.")
    ] = False,
) -> int:
    """Check whether a fabric can carry a workload.

    Nothing is simulated. For every combination of the sweep: the largest share of all demands that
    the fabric, with its failures, carries at once if every demand may be split over all shortest
    paths; and the bottleneck links. The demand is every message that waits for no other, at its
    fair share or, with transport.congestion = "fixed-rate", at its sending rate. Where failures
    come and go, the worst time counts.

    \b
    Examples:
      weft capacity fig4.toml
      weft capacity fig4.toml --set failures.links.count=3 --seed 2
      weft capacity fig4.toml --json > answers.json

    \b
    Exit status: 0 there is an answer, "no" included; 2 bad input.
    """
    from weft.analysis import capacity as analysis
    from weft.cli.terminal import width
    from weft.study import inputs

    paths = [path for file in files for path in inputs.experiment_files(Path(file))]
    changes = options.overrides(set_ or [])
    experiments = inputs.distinct_names([inputs.from_file(path, changes) for path in paths])
    answers = [analysis.of(experiment, seed) for experiment in experiments]
    if json:
        print(json_.dumps([row for rows in answers for row in rows], indent=1))
        return 0
    tables = zip(experiments, answers, strict=True)
    print("\n\n".join(analysis.text(rows, one.title, width()) for one, rows in tables))
    return 0
