"""The command line: `weft run`, `compare`, `capacity`, `tune`, `list`, `report` and more.

Only options and help texts live here; `weft.commands` does the work and is imported when a
command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft import bench_net_cli as bench_net
from weft import trace_options, unexpected
from weft.testbed.cli import app as testbed

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Trouble of the system, not of what the user typed."""

_MOST_THREADS = 1 << 16
"""More than any machine has; the native core counts in 32 bits."""

_LARGEST_SEED = (1 << 32) - 1

app = typer.Typer(
    name="weft",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(testbed, name="testbed")
bench_net.add(app)

Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Keep the results here: parquet tables, plots, report.html. "
        "A repeated command runs only what is missing. Without it only the table is shown.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
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
        help="Simulations side by side. Results do not depend on it. "
        "Default: as many as there are cores for.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=_MOST_THREADS,
        metavar="N",
        help="Cores for one simulation. Results do not depend on it. Default: one simulation "
        "gets the cores that others side by side leave idle, if it is large enough to gain.",
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
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="A first look: one seed, or what the experiment's [quick] says. "
        "Its runs count when the whole is run.",
    ),
]
Summary = Annotated[
    bool,
    typer.Option(
        "--summary",
        help="Print one JSON object instead of a table: means, standard deviations, best "
        "values, and how they stand beside printed ones.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the results as a JSON array, one object a run.")
]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="With -o: write the tables, but no plots or report.")
]
Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="With -o, of jobs: what every rank did when, as timeline/*.json.gz for the "
        "Perfetto UI.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no hints.")]


def _version(wanted: bool) -> None:
    if wanted:
        from weft import code_version

        typer.echo(f"weft {code_version}")
        raise typer.Exit


@app.callback()
def weft(
    _shown: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    _debug: Annotated[
        bool,
        typer.Option(
            unexpected.OPTION,
            help="Show the traceback of a fault of Weft's, which ends a command with exit status "
            "70. May stand behind the command, too.",
        ),
    ] = False,
) -> None:
    """Balance the traffic of AI training jobs over a data-centre fabric.

    Weft simulates a collective packet by packet under different load balancers, and says how
    long it takes, how far that is from optimal, and where it queued.

    \b
    Start here:
      weft list schemes
      weft compare --fabric leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps,delay=500ns \\
                   --workload all-to-all:size=64KB --schemes ecmp,spray,ethereal --seeds 3
      weft run experiment.toml -o out/     (then open out/report.html)
    """
    if not {"-h", "--help"} & set(sys.argv):
        unexpected.NET.spread()


@app.command()
def run(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Experiments (.toml), directories of them, or workloads: a connection "
            "matrix of the htsim family (.cm), flows (.csv) or a trace (.et, .txt, .csv).",
            show_default=False,
        ),
    ],
    output: Output = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    threads: Threads = None,
    set_: Set = None,
    fabric: Annotated[
        str | None,
        typer.Option(
            metavar="SHORTHAND",
            help="Fabric for workloads, as in weft "
            "compare. Default: a non-blocking one that has enough hosts.",
        ),
    ] = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Schemes for workloads. Default: ecmp,spray,reps,ethereal.",
        ),
    ] = None,
    quick: Quick = False,
    process_groups: trace_options.ProcessGroups = None,
    bytes_per_element: trace_options.BytesPerElement = None,
    dependencies: trace_options.Dependencies = None,
    peak_tflops: trace_options.PeakTflops = None,
    memory_gb_s: trace_options.MemoryGbS = None,
    json: Json = False,
    summary: Summary = False,
    no_report: NoReport = False,
    timeline: Timeline = False,
    quiet: Quiet = False,
) -> int:
    """Run experiments and show what came out.

    Every run that finishes is on disk at once (with -o). Ctrl-C loses nothing that had
    finished: the same command goes on where it stopped.

    \b
    Examples:
      weft run fig3.toml -o out/                         a table, plots, out/report.html
      weft run fig2.toml fig3.toml -o out/               one report for several experiments
      weft run experiments/ethereal-2024 -o out/         the same for all in a directory
      weft run fig3.toml --quick                         one seed, fewer values
      weft run fig3.toml --set workload.size=1MB --seeds 1
      weft run permutation.cm --schemes ecmp,ethereal    a fabric is chosen to fit
      weft run gpt.0.et                                  the same for a trace
      weft run fig3.toml --json > rows.json

    \b
    Exit status: 0 all runs finished, 1 some stalled or the disk is full (finished runs are
    kept), 2 bad input, 70 a fault of Weft's, 130 interrupted.
    """
    from weft import commands

    _choose(json, summary)
    _needs_output(timeline, output)
    of_trace = trace_options.told(
        process_groups, bytes_per_element, dependencies, peak_tflops, memory_gb_s
    )
    options = commands.Options(output, jobs, threads, json, not no_report, quiet, summary, timeline)
    return commands.run(
        files,
        options,
        seeds,
        commands.overrides(set_ or []),
        fabric,
        commands.names("--schemes", schemes),
        quick,
        of_trace,
    )


@app.command()
def compare(
    fabric: Annotated[
        str,
        typer.Option(
            metavar="SHORTHAND|FILE",
            help="TOPOLOGY:KEY=VALUE,... or a topology file of htsim or ASTRA-sim (ns-3); see "
            "weft list topologies.",
            show_default=False,
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            metavar="SHORTHAND|FILE",
            help="NAME:KEY=VALUE,..., where NAME is a pattern, a collective, a model, or a file: "
            "messages (.cm, .csv) or a trace (.et, .txt, .csv); see weft list workloads.",
            show_default=False,
        ),
    ],
    schemes: Annotated[
        str,
        typer.Option(metavar="A,B,...", help="What to compare; see weft list schemes."),
    ] = "ecmp,spray,reps,ethereal",
    transport: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Transport for all schemes, e.g. "
            "recovery=selective-repeat,rto=2ms; see weft list transports. "
            "Default: what each scheme is made for, most with DCTCP.",
        ),
    ] = None,
    output: Output = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    threads: Threads = None,
    set_: Set = None,
    process_groups: trace_options.ProcessGroups = None,
    bytes_per_element: trace_options.BytesPerElement = None,
    dependencies: trace_options.Dependencies = None,
    peak_tflops: trace_options.PeakTflops = None,
    memory_gb_s: trace_options.MemoryGbS = None,
    json: Json = False,
    summary: Summary = False,
    no_report: NoReport = False,
    timeline: Timeline = False,
    quiet: Quiet = False,
) -> int:
    """Compare load balancers on one fabric and one workload.

    Every scheme gets its natural transport: go-back-N where packets stay in order on one path,
    selective repeat with a reorder buffer where they are sprayed. The same seed gives every
    scheme the same workload and the same hash salts, so the comparison is paired.

    \b
    Examples:
      weft compare --fabric leaf-spine:leaves=16,spines=16,hosts=16,link=400Gbps,delay=500ns \\
                   --workload all-to-all:size=16KB --schemes ecmp,spray,reps,ethereal --seeds 5
      weft compare --fabric fat-tree:k=8,link=100Gbps,delay=1us --workload permutation.cm
      weft compare --fabric leaf_spine_1024.topo --workload all-reduce:size=64MB
    """
    from weft import commands

    _choose(json, summary)
    _needs_output(timeline, output)
    of_trace = trace_options.told(
        process_groups, bytes_per_element, dependencies, peak_tflops, memory_gb_s
    )
    options = commands.Options(output, jobs, threads, json, not no_report, quiet, summary, timeline)
    return commands.compare(
        fabric,
        workload,
        commands.names("--schemes", schemes) or [],
        transport,
        options,
        seeds,
        commands.overrides(set_ or []),
        of_trace,
    )


@app.command()
def capacity(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Experiments (.toml), or directories of them.",
            show_default=False,
        ),
    ],
    set_: Set = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_LARGEST_SEED,
            metavar="N",
            help="Draws the links that fail at random, and random workloads. "
            "Default: the first of the experiment's seeds.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object a combination.")
    ] = False,
) -> int:
    """Ask whether a fabric with its failures can carry the workload; nothing is simulated.

    For every combination of the sweep: the largest share of all demands that fits at once, if
    every one is split at will over all shortest paths, and the links that stand in the way. The
    demand is every message that waits for no other, at its fair share or, under
    transport.congestion = "fixed-rate", at the rate that it is sent at. Where failures come and
    go, the worst time counts.

    \b
    Examples:
      weft capacity fig4.toml
      weft capacity fig4.toml --set failures.links.count=3 --seed 2
      weft capacity fig4.toml --json > answers.json

    \b
    Exit status: 0 there is an answer, "no" included; 2 bad input.
    """
    from weft import commands

    return commands.capacity(files, seed, commands.overrides(set_ or []), json)


@app.command()
def tune(
    fabric: Annotated[
        str,
        typer.Option(
            metavar="SHORTHAND|FILE",
            help="TOPOLOGY:KEY=VALUE,... or a topology file, as in weft compare.",
            show_default=False,
        ),
    ],
    slowdown: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="No message shall take more than X times its time at line rate. Default: 2.",
        ),
    ] = None,
    queue_pairs: Annotated[
        int | None,
        typer.Option(min=1, max=1 << 16, metavar="M", help="Queue pairs of a NIC, instead."),
    ] = None,
    accelerators: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="Of the cluster. Default: the fabric's hosts."),
    ] = None,
    set_: Set = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> int:
    """Choose how many queue pairs and which flowlets ParaLet needs; nothing is simulated.

    Equation 1 of its paper says how much slower than line rate the slowest message is with m queue
    pairs a NIC and N accelerators; a flowlet is 4 bandwidth-delay products over m.

    \b
    Examples:
      weft tune --fabric fat-tree:k=16,link=100Gbps,delay=1us --slowdown 1.5
      weft tune --fabric fat-tree:k=16,link=100Gbps,delay=1us --queue-pairs 32

    \b
    Exit status: 0 there is an answer, 2 bad input.
    """
    from weft import commands

    if slowdown is not None and queue_pairs is not None:
        raise typer.BadParameter("--slowdown and --queue-pairs each ask for the other; choose one")
    changes = commands.overrides(set_ or [])
    return commands.tune(fabric, slowdown, queue_pairs, accelerators, changes, json)


@app.command()
def plan(
    cluster: Annotated[
        Path,
        typer.Argument(
            metavar="CLUSTER",
            help="A cluster (.toml): [fabric], [failures] that hold now, [cluster]; with --verify "
            "a plan.",
            show_default=False,
        ),
    ],
    job: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The job (.toml): [workload], as an experiment has it."),
    ] = None,
    scheme: Annotated[
        str, typer.Option(metavar="NAME", help="Any that decides as messages are posted.")
    ] = "ethereal",
    seed: Annotated[
        int, typer.Option(min=0, max=_LARGEST_SEED, metavar="N", help="Of all that is random.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write plan.json, loads.parquet, pieces.parquet and loads.png here.",
        ),
    ] = None,
    set_: Set = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Recompute loads and bounds of a plan from its file, and compare."
        ),
    ] = False,
    optimum: Annotated[
        bool,
        typer.Option("--optimum", help="Solve the linear program for the exact optimum, too."),
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show the queue pairs of this host."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> int:
    """Plan which path every piece of a job takes, and prove how good that is.

    Steps of the job one by one: what is sent side by side, which messages are cut, what each link
    carries, how long the busiest one takes, and how long that takes at least, with the links that
    force it. Of the whole job the lower bound that weft compare has: steps may overlap, so a sum of
    them is none. Links that are down or slow are as [failures] says.

    \b
    Examples:
      weft plan cluster.toml --job job.toml --scheme ethereal -o plan/
      weft plan --verify plan/plan.json
      weft plan cluster.toml --job job.toml --scheme dnlb-8 --host gpu-3
      weft switch-config plan/plan.json --format nftables

    \b
    Exit status: 0 there is a plan, or it is what it says; 2 bad input, or it is not.
    """
    from weft import commands

    if verify:
        return commands.plan_verify(cluster, json)
    changes = commands.overrides(set_ or [])
    return commands.plan_job(cluster, job, scheme, seed, changes, output, optimum, host, json)


@app.command(name="list")
def list_(
    kind: Annotated[
        Literal["schemes", "transports", "workloads", "topologies", "variables"],
        typer.Argument(help="What to list.", show_default=False),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> int:
    """Show what there is, what it can be told, and where it comes from.

    The keys are those of an experiment file; weft compare takes the same ones. Variables are
    those of the NCCL plugin and the PyTorch back end.
    """
    from weft import commands

    return commands.catalogue(kind, json)


@app.command()
def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where weft run -o or weft compare -o left results.",
            show_default=False,
        ),
    ],
    quiet: Quiet = False,
) -> int:
    """Make the plots and report.html again from the tables in DIR."""
    from weft import commands

    return commands.report(directory, quiet)


@app.command(name="switch-config")
def switch_config(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="What weft plan wrote (plan.json), or a cluster (.toml) with --scheme.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        Literal["linux", "nftables", "frr", "ios", "eos", "sonic", "junos", "cumulus"],
        typer.Option("--format", help="What the switches run.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write the files here, each with a rollback beside it. Without it they are "
            "printed.",
        ),
    ] = None,
    switch: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this switch, as the cluster or Weft calls it."),
    ] = None,
    scheme: Annotated[
        Literal["dnlb", "ethereal"] | None,
        typer.Option(
            help="With a cluster: segments at leaves (dnlb), or in three tiers also above them "
            "(ethereal)."
        ),
    ] = None,
    protocol: Annotated[
        Literal["udp", "tcp"] | None,
        typer.Option(
            help="Of the traffic that is steered: udp is RoCEv2, tcp sockets. Without it what the "
            "cluster says, which is udp unless it says otherwise."
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Write the configuration of every switch that steers by source port.

    Traffic with the DSCP of the cluster that comes in from hosts goes over the uplink whose segment
    its source port is in; what stays in the rack is left alone, and where an uplink dies its
    traffic is hashed as ever. What a platform cannot do is said on standard error.

    \b
    Examples:
      weft switch-config plan.json --format nftables -o switches/
      weft switch-config cluster.toml --scheme dnlb --format ios --switch leaf-0

    \b
    Exit status: 0 written, 2 bad input.
    """
    from weft.switches import config

    return config.command(plan, format_, output, switch, scheme, protocol, quiet)


trace = typer.Typer(no_args_is_help=True, help="Look at traces of real jobs.")
app.add_typer(trace, name="trace")


@trace.command()
def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A Chakra trace (one of its files, or what stands before .0.et), a text "
            "workload of ASTRA-sim, AICB or SimAI, or AICB's list of communications (.csv).",
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
        typer.Option(min=1, metavar="N", help="Ranks, for a trace that any number can run."),
    ] = None,
    fabric: Annotated[
        str | None,
        typer.Option(
            metavar="SHORTHAND|FILE",
            help="Say how much work it is on this fabric, as in weft compare, and how long a run "
            "takes here.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> int:
    """Say what is in a trace, and whether it can run.

    Nodes by kind, collectives by size and group, dependencies, what is not supported; and if the
    trace would never finish, which nodes wait for what.

    \b
    Exit status: 0 it can run, 1 it cannot, 2 it cannot be read.
    """
    from weft import commands

    of_trace = trace_options.told(
        process_groups, bytes_per_element, dependencies, peak_tflops, memory_gb_s
    )
    return commands.trace_info(file, of_trace, ranks, fabric, json)


topology = typer.Typer(no_args_is_help=True, help="Look at topology files of other tools.")
app.add_typer(topology, name="topology")


@topology.command(name="info")
def topology_info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A topology file of ASTRA-sim's ns-3 backend or of htsim (.topo), or a network "
            "of ASTRA-sim's analytical backends (.yml).",
            show_default=False,
        ),
    ],
    placement: Annotated[
        bool,
        typer.Option(
            "--placement",
            help="Print only the host of every rank of ASTRA-sim, one a line: a placement_file.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> int:
    """Say what is in a topology file, and whether it can be a fabric.

    Tiers, links with rates and delays, oversubscription, and what its nodes are called here.

    \b
    Exit status: 0 it can be a fabric, 1 it cannot, 2 it cannot be read.
    """
    from weft import commands

    if json and placement:
        raise typer.BadParameter("--json and --placement print different things; choose one")
    return commands.topology_info(file, json, placement)


def _needs_output(timeline: bool, output: Path | None) -> None:
    if timeline and output is None:
        raise typer.BadParameter("--timeline writes files; say where, with -o DIR")


def _choose(json: bool, summary: bool) -> None:
    if json and summary:
        raise typer.BadParameter("--json prints rows, --summary one object; choose one")


def main() -> None:
    """Run the command line and exit with its status."""
    words = sys.argv[1:] = unexpected.NET.take(sys.argv[1:])
    sys.exit(unexpected.NET.status(_status(words)))


def _status(arguments: list[str]) -> int:
    """The exit status. Whatever is wrong with the input takes one line on standard error."""
    try:
        status = int(app(arguments, prog_name="weft", standalone_mode=False) or 0)
        # Not at exit, where trouble with it would no longer be ours to tell.
        sys.stdout.flush()
        return status
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the native core is no Exception.
        return _trouble(error)


def _trouble(error: BaseException) -> int:
    """Say what ended a command; the exit status."""
    match error:
        case KeyboardInterrupt():
            return 130
        case BrokenPipeError():
            # The reader of our output has gone (`| head`): nothing to say, nobody to say it to.
            _drop_output()
            return 141
        case OSError():
            return _disk_trouble(error)
        case MemoryError():
            return _complain("there is no memory left; use fewer --jobs, or a smaller case", 1)
    from weft import ExperimentError

    if isinstance(error, ExperimentError):
        return _complain(str(error))
    # Wrong usage, or an interrupt inside the option parser. The parser's classes have
    # moved between Typer's versions, so they are told by what they can do.
    if type(error).__name__ == "Abort":
        return 130
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error, file=sys.stderr)
        return 2
    if not hasattr(error, "format_message"):
        return unexpected.NET.tell(error)
    command = getattr(getattr(error, "ctx", None), "command_path", None) or "weft"
    return _complain(f"{error.format_message().rstrip('.')}; see {command} --help")


def _disk_trouble(error: OSError) -> int:
    from weft.errors import DiskError

    what, why = error.filename or "output", error.strerror or str(error)
    if error.filename is None:
        _drop_output()
    status = 1 if error.errno in _FULL or isinstance(error, DiskError) else 2
    return _complain(f"{what}: {why[:1].lower()}{why[1:]}", status)


def _drop_output() -> None:
    """What could not be printed would be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, status: int = 2) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return status
