"""`weft trace`: what is in traces of real jobs, and the same in other formats."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options, trace_options

_MOST_RANKS = 1 << 20
"""As of `workload.ranks`."""

app = typer.Typer(
    no_args_is_help=True, help="Show what is in traces of real jobs, and convert them."
)


@app.command()
def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A trace: a file, or the part of the name before .0.et where each rank has "
            "a file. The formats are in weft list workloads, under workload.trace.",
            show_default=False,
        ),
    ],
    process_groups: trace_options.ProcessGroups = None,
    bytes_per_element: trace_options.BytesPerElement = None,
    dependencies: trace_options.Dependencies = None,
    peak_tflops: trace_options.PeakTflops = None,
    memory_gb_s: trace_options.MemoryGbS = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MOST_RANKS,
            metavar="N",
            help="Number of ranks, for a trace that any number can run.",
        ),
    ] = None,
    fabric: Annotated[
        str | None,
        typer.Option(
            metavar="SHORTHAND|FILE",
            help="Also say how much work the trace is on this fabric (as in weft compare), and "
            "how long a simulation takes on this machine.",
        ),
    ] = None,
    set_: trace_options.Set = None,
    json: options.JsonObject = False,
) -> int:
    """Show what is in a trace, and whether it can run.

    Nodes by kind, collectives by size and group, dependencies, what is not supported; and, if the
    trace would never finish, which nodes wait for what.

    \b
    Exit status: 0 it can run, 1 it cannot run, 2 it cannot be read.
    """
    from weft.analysis import trace_info

    of_trace = trace_options.workload_keys(
        process_groups, bytes_per_element, dependencies, peak_tflops, memory_gb_s
    )
    of_trace += trace_options.of_workload(options.overrides(set_ or []))
    found = trace_info.info(file, of_trace, ranks)
    if fabric is not None and not found["problems"]:
        found["work"] = trace_info.work(file, of_trace, ranks, fabric)
    print(json_.dumps(found, indent=1) if json else trace_info.text(found))
    return 1 if found["problems"] else 0


@app.command()
def convert(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD",
            help="A trace, a connection matrix (.cm), flows (.csv), or a collective or model as in "
            "weft compare --workload.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="What to write. Its end tells the format: .goal, .bin (GOAL), .cm, .et (Chakra; a "
            "file per rank).",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="The format, if the end of FILE does not tell it."),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=_MOST_RANKS,
            metavar="N",
            help="Number of ranks, for a workload of any number.",
        ),
    ] = None,
    unfold: Annotated[
        bool,
        typer.Option(
            "--unfold",
            help="Write collectives as the sends and receives of their algorithms. GOAL and .cm "
            "have no collectives and always do so.",
        ),
    ] = False,
    no_compute: Annotated[
        bool, typer.Option("--no-compute", help="Write computations as if they took no time.")
    ] = False,
    set_: trace_options.Set = None,
) -> int:
    """Write a workload in a format of other tools.

    What the format cannot say is an error; what is written otherwise is noted on stderr.

    \b
    Examples:
      weft trace convert perm64.goal -o perm64.cm
      weft trace convert gpt.0.et -o gpt.goal
      weft trace convert all-reduce:size=1MiB,algorithm=ring --ranks 16 -o ring.goal

    \b
    Exit status: 0 written, 2 it cannot be read or written.
    """
    from weft.analysis import trace_convert
    from weft.cli.terminal import note

    keys = trace_options.of_workload(options.overrides(set_ or []))
    done = trace_convert.convert(
        workload, output, to, keys, ranks, unfold=unfold, no_compute=no_compute
    )
    for what, count in done.remarks:
        note(f"{what} ({count} times)")
    print("\n".join(map(str, done.files)))
    return 0
