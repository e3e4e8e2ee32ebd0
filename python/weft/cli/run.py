"""`weft run`: runs experiments and shows the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.catalogue import DEFAULT_SCHEMES
from weft.cli import completion, failures, options, trace_options

if TYPE_CHECKING:
    from weft.cli.simulations import Options
    from weft.study.inputs import Experiment, Overrides


def run(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Experiments (.toml, .json), directories of them, or workloads: a "
            "connection matrix of the htsim family (.cm), flows (.csv) or a trace (see weft list "
            "workloads).",
            show_default=False,
        ),
    ],
    output: options.Output = None,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    threads: options.Threads = None,
    on: options.On = None,
    shard: options.Shard = None,
    fidelity: options.Fidelity = None,
    check: options.Check = None,
    set_: options.Set = None,
    sweep: options.Sweep = None,
    fail: failures.Fail = None,
    fabric: Annotated[
        str | None,
        typer.Option(
            metavar="SHORTHAND",
            help="Fabric for workload files, as in weft "
            "compare. Default: a non-blocking one with enough hosts.",
        ),
    ] = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            *options.SCHEMES,
            metavar="A,B,...",
            autocompletion=completion.schemes,
            help="Compare these schemes, whatever an experiment says. Default for workload "
            f"files: {','.join(DEFAULT_SCHEMES)}.",
        ),
    ] = None,
    quick: options.Quick = False,
    process_groups: trace_options.ProcessGroups = None,
    bytes_per_element: trace_options.BytesPerElement = None,
    dependencies: trace_options.Dependencies = None,
    peak_tflops: trace_options.PeakTflops = None,
    memory_gb_s: trace_options.MemoryGbS = None,
    json: options.Json = False,
    summary: options.Summary = False,
    no_report: options.NoReport = False,
    plots: options.Plots = None,
    timeline: options.Timeline = False,
    quiet: options.Quiet = False,
) -> int:
    """Run experiments and show the results.

    With -o, every run is on disk as soon as it finishes. Ctrl-C loses no finished run: the same
    command continues where it stopped.

    \b
    Examples:
      weft run fig3.toml -o out/                         a table, out/report.html
      weft run fig3.toml -o out/ --plots svg,pdf         the figures as files, too
      weft run fig2.toml fig3.toml -o out/               one report for several experiments
      weft run experiments/ethereal-2024 -o out/         the same for all in a directory
      weft run fig3.toml --quick                         one seed, fewer values
      weft run fig3.toml --set workload.size=1MB --seeds 1
      weft run fig3.toml --schemes ecmp,reps --sweep workload.size=1MB,16MB
      weft run fig3.toml --fail leaf-0:spine-1@50%       a link dies on the way
      weft run permutation.cm --schemes ecmp,ethereal    a fabric is chosen to fit
      weft run gpt.0.et                                  the same for a trace
      weft run fig3.toml --fidelity fast --check         how far off is it?
      weft run fig3.toml --json > rows.json
      weft run fig3.toml -o out/ --on slurm:queue=batch,cores=16,memory=32GB,walltime=1:00:00,jobs=8
      weft run fig3.toml -o out3/ --shard 3/16           then weft merge out*/ -o out/

    \b
    Exit status: 0 all runs finished, 1 some stalled, or the disk is full or the scheduler gone
    (finished runs are kept), 2 bad input, 70 an internal error of Weft, 130 interrupted.
    """
    from weft.cli.simulations import Options

    options.exclude(json, summary)
    options.require_output(timeline, output)
    of_trace = trace_options.workload_keys(
        process_groups, bytes_per_element, dependencies, peak_tflops, memory_gb_s
    )
    closely = tuple(options.names("--fidelity", fidelity) or ())
    given = Options(
        *(output, jobs, threads, json, not no_report, quiet, summary, timeline, closely, check),
        on=options.place(on),
        shard=options.shard(shard, output, check),
        plots=options.formats_of(plots, output, no_report),
    )
    changes = [*failures.overrides(fail or []), *options.changes(sweep or [], set_ or [])]
    chosen = options.names("--schemes", schemes)
    if chosen:
        options.chosen_once(changes)
    return run_files(files, given, seeds, changes, fabric, chosen, quick, of_trace)


def run_files(
    files: Sequence[str],
    given: Options,
    seeds: int | None,
    changes: Overrides,
    fabric: str | None,
    schemes: Sequence[str] | None,
    quick: bool = False,
    of_trace: Overrides = (),
) -> int:
    """Run what is in files; returns the exit status. `of_trace` are keys of `[workload]`."""
    from weft import ExperimentError
    from weft.cli import simulations
    from weft.cli.terminal import note
    from weft.study import inputs

    if "" in files:
        # An unset variable would mean all experiments of this directory.
        raise ExperimentError("FILE: has no name; give one, or . for this directory")
    changes = given.extend([*changes, *trace_options.in_workload(of_trace)])
    paths = [path for file in files for path in inputs.experiment_files(Path(file))]
    compared = options.sweeps([f"balance.scheme={','.join(schemes)}"] if schemes else [])
    experiments: list[Experiment] = []
    for path in paths:
        _check_options(path, fabric, of_trace)
        if inputs.workload_key(path):
            experiment, chosen = inputs.from_workload(path, fabric, schemes, changes, seeds)
            if chosen and not given.quiet:
                note(chosen)
        else:
            experiment = inputs.from_file(path, [*compared, *changes], seeds, quick)
        experiments.append(experiment)
    return simulations.simulate(inputs.distinct_names(experiments), given)


def _check_options(path: Path, fabric: str | None, of_trace: Overrides) -> None:
    """Refuse options that do not fit the kind of a file."""
    from weft import ExperimentError
    from weft.study import inputs

    key = inputs.workload_key(path)
    if of_trace and key != "trace":
        option = "--" + of_trace[0][0].replace("_", "-")
        raise ExperimentError(f"{path}: {option} is for traces; --set changes keys of experiments")
    if not key and fabric:
        raise ExperimentError(
            f"{path}: --fabric is for workload files (.cm, .csv, traces); an experiment file has a "
            "table for it, which --set can change"
        )
