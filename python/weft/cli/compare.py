"""`weft compare`: load balancers on one fabric and one workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.catalogue import DEFAULT_SCHEMES
from weft.cli import completion, failures, options, trace_options

if TYPE_CHECKING:
    from weft.cli.simulations import Options
    from weft.study.inputs import Overrides


def compare(
    context: typer.Context,
    fabric: options.Fabric,
    workload: Annotated[
        str,
        typer.Option(
            *options.WORKLOAD,
            autocompletion=completion.workloads,
            metavar="SHORTHAND|FILE",
            help="NAME:KEY=VALUE,..., where NAME is a pattern, a collective, a model, or a file: "
            "messages (.cm, .csv) or a trace; see weft list workloads.",
            show_default=False,
        ),
    ],
    schemes: Annotated[
        str,
        typer.Option(
            *options.SCHEMES,
            metavar="A,B,...",
            autocompletion=completion.schemes,
            help="The load balancers to compare; see weft list schemes.",
        ),
    ] = ",".join(DEFAULT_SCHEMES),
    transport: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="The same transport for all schemes, e.g. "
            "recovery=selective-repeat,rto=2ms; see weft list transports. "
            "Default: what each scheme is made for, in most cases with DCTCP.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Keys that go together, where nothing else is said; see weft list presets.",
        ),
    ] = None,
    stragglers: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="GPUs that are slower than others, e.g. share=0.01,factor=1.5 or "
            "speed=normal,spread=0.05; keys of [stragglers], see weft list workloads.",
        ),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="What other tenants send meanwhile, e.g. load=0.3,size=web-search; keys of "
            "[background], see weft list workloads.",
        ),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output of nccl-tests (all_reduce_perf and its like) to stand beside the results. "
            "Its sizes are simulated unless the workload has a size.",
            show_default=False,
        ),
    ] = None,
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
    """Compare load balancers on one fabric and one workload.

    Every scheme gets its natural transport: go-back-N where packets stay in order on one path,
    selective repeat with a reorder buffer where they are sprayed. With the same seed, every
    scheme gets the same workload and the same hash salts, so the comparison is paired.

    \b
    Examples:
      weft compare --fabric leaf-spine:leaves=16,spines=16,hosts=16,link=400Gbps,delay=500ns \\
                   --workload all-to-all:size=16KB --schemes ecmp,spray,reps,ethereal --seeds 5
      weft compare --fabric fat-tree:k=8,link=100Gbps,delay=1us --workload permutation.cm
      weft compare --fabric leaf_spine_1024.topo --workload all-reduce:size=64MB
      weft compare --fabric leaf-spine:leaves=4,spines=4,hosts=4 --workload all-to-all:size=64KB \\
                   --sweep workload.size=64KB,1MB --fail leaf-0:spine-1@50%
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
        verdict=True,
        plots=options.formats_of(plots, output, no_report),
    )
    chosen = options.names("--schemes", schemes) or []
    named = [("preset", preset)] if preset is not None else []
    beside = sections(stragglers=stragglers, background=background)
    beside += failures.overrides(fail or [])
    changes = [*named, *beside, *options.changes(sweep or [], set_ or [])]
    if "--schemes" in options.given(context):
        options.chosen_once(changes)
    return run_comparison(
        fabric, workload, chosen, transport, given, seeds, changes, of_trace, measured
    )


def sections(**given: str | None) -> list[tuple[str, str]]:
    """The keys of sections that are given as `--SECTION KEY=VALUE,...`."""
    return [
        (f"{section}.{key}", value)
        for section, text in given.items()
        for key, value in (options.pair(f"--{section}", part) for part in options.split(text))
    ]


def run_comparison(
    fabric: str,
    workload: str,
    schemes: Sequence[str],
    transport: str | None,
    given: Options,
    seeds: int | None,
    changes: Overrides,
    of_trace: Overrides = (),
    measured: Path | None = None,
) -> int:
    """Run the schemes; returns the exit status. `of_trace` are keys of `[workload]`.

    `measured` is an output of nccl-tests that stands beside the results.
    """
    from weft import ExperimentError
    from weft.cli import simulations
    from weft.study import inputs

    told = list(sections(transport=transport))
    told += given.extend([*changes, *trace_options.in_workload(of_trace)])
    experiment = inputs.comparison(fabric, workload, schemes, told)
    if measured is not None:
        put_beside(experiment, measured)
    try:
        checked = inputs.from_dict(experiment, "command line", told, seeds)
    except ExperimentError as error:
        if measured is None or ": nccl_tests: " not in str(error):
            raise
        why = str(error).partition(": nccl_tests: ")[2]
        raise ExperimentError(f"--measured {measured}: {why}") from None
    return simulations.simulate([replace(checked, name="compare")], given)


def put_beside(experiment: dict[str, Any], measured: Path) -> None:
    """Have the sizes of an output of nccl-tests simulated, and its values stand beside results."""
    from weft import ExperimentError
    from weft.study import nccl_tests

    found = nccl_tests.read(measured)
    workload = experiment["workload"]
    own = str(workload.get("collective", ""))
    test = (
        (found.test or "").removesuffix("_perf").replace("_", "-").replace("alltoall", "all-to-all")
    )
    if own and test and own != test:
        raise ExperimentError(
            f"{measured}: is the output of {found.test}, but the workload is {own}; compare like "
            "with like"
        )
    if "size" not in workload:
        experiment["sweep"]["workload.size"] = [f"{size}B" for size in found.values if size > 0]
    experiment["printed"] = [
        {"nccl_tests": str(measured.absolute()), "where": {"balance.scheme": scheme}}
        for scheme in experiment["sweep"]["balance.scheme"]
    ]
