"""`weft discover`: which source port takes which path, found out by probes."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from weft.cli import completion, options

if TYPE_CHECKING:
    from weft.cluster import Cluster, Host, Protocol
    from weft.discover.needs import Needs
    from weft.discover.survey import Survey

_ROCE = 4791
_PORTS = 4
"""Source ports of a path, where no job says how many."""
_OF_SURVEYS = ("--protocol", "--port", "--output", "--over", "--report", "--fresh", "--paths")
"""Options that do nothing where no host looks."""


def discover(
    context: typer.Context,
    cluster: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CLUSTER.toml]",
            help="The cluster: its hosts in other racks are the targets, and its addresses name "
            "the switches.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="HOST,...",
            help="Only these targets: addresses; with a cluster also names and numbers of hosts.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="HOST,...",
            help="Addresses of this machine to look from. Default: those of the cluster that it "
            "has; without a cluster the one that leads to the first target.",
        ),
    ] = None,
    protocol: Annotated[
        Literal["udp", "tcp"] | None,
        typer.Option(help="Of the traffic. Default: the cluster's; else udp."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="N",
            help="Destination port of the traffic. Default: the cluster's; else RoCEv2's, 4791.",
        ),
    ] = None,
    ports_per_path: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            metavar="N",
            help="Source ports that each path gets. Default: 4; with --job as many as its plan "
            "uses at once.",
        ),
    ] = None,
    sure: Annotated[
        float,
        typer.Option(
            min=0.5,
            max=0.9999,
            metavar="P",
            help="Go on until all paths have been seen with this probability.",
        ),
    ] = 0.95,
    most_ports: Annotated[
        int,
        typer.Option(min=8, max=16383, metavar="N", help="Source ports for a target at most."),
    ] = 1024,
    rate: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=10000,
            metavar="N",
            help="Probes a second at most; of a cluster those of all hosts of a leaf that look.",
            callback=options.number,
        ),
    ] = 100,
    time_out: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.01,
            max=0.8,
            metavar="SECONDS",
            help="Wait so long for an answer.",
            callback=options.number,
        ),
    ] = 0.4,
    seed: Annotated[
        int,
        typer.Option(min=0, max=options.LARGEST_SEED, metavar="N", help="Order of the ports."),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.json",
            help="Keep the table in this file. If it is there: go on with it, and where it was "
            "finished ask a few ports again.",
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="testbed|COMMAND",
            help="Have all hosts of the cluster look, not only this one: the namespaces of the "
            'test bed that `weft testbed up` built, or a command such as "ssh {host}" that runs '
            "weft there; it may end in a path of weft.",
        ),
    ] = None,
    survey: Annotated[str | None, typer.Option("--survey", hidden=True)] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Send nothing: say what it would cost a host of the cluster (with --job: all of "
            "them), by the same survey over simulated switches. hash=mixed (or crc32, xor, "
            "toeplitz, ...), burst=6, per-second=1 (0: no limit), silent=0, lost=0.0, "
            "seed=1 (or --seed).",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Print a report for operators instead: how the hash shares ports, where "
            "connections of this machine are now, what ECMP loses.",
        ),
    ] = False,
    job: Annotated[
        str | None,
        typer.Option(
            *options.JOB,
            metavar="FILE|SHORTHAND",
            help="Only what this job needs: the hosts that it sends to, and ports of the paths "
            "that its plan takes. With --report also what it would have under these ports, and "
            "under ECMP.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            *options.SCHEME,
            metavar="NAME",
            help="With --job: the scheme that plans.",
            autocompletion=completion.schemes,
        ),
    ] = "ethereal",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew, whatever the file has.")
    ] = False,
    paths: Annotated[bool, typer.Option("--paths", help="Show the paths of every target.")] = False,
    json: options.JsonObject = False,
) -> int:
    """Find out which source port takes which path, on switches as they are.

    Probes with chosen source ports and small times to live come back from the switch that they
    reached. They are hashed as the traffic is: by addresses, protocol and ports. No privileges and
    no configuration of switches are needed. Switches answer few probes a second; the pace follows
    what comes back.

    \b
    Examples:
      weft discover --to 10.1.0.2
      weft discover cluster.toml --to gpu-17,gpu-18 --ports-per-path 8
      weft discover cluster.toml -o paths.json        # again: goes on, or checks
      weft discover cluster.toml --protocol tcp --json
      weft discover cluster.toml --over "ssh {host}" -o paths.json
      weft discover cluster.toml --simulate hash=crc32,per-second=10
      weft discover cluster.toml --simulate hash=mixed --job all-to-all:size=64MB
      weft discover cluster.toml --over "ssh {host}" --job job.toml -o paths.json
      weft discover cluster.toml -o paths.json --report --job all-reduce:size=64MB

    \b
    Exit status: 0 done; 1 routing has changed since the file was made, no switch answered, or some
    hosts of --over could not look; 2 bad input.
    """
    from weft.cli.terminal import note
    from weft.discover import everywhere, local, peers, show
    from weft.discover import named as names
    from weft.discover import table as tables
    from weft.errors import ExperimentError

    if survey is not None:
        print(everywhere.serve(sys.stdin.read()))
        return 0
    named = _cluster(cluster)
    rules = {
        "seed": seed,
        "unseen": 1 - sure,
        "ports_per_path": ports_per_path or _PORTS,
        "most_ports": most_ports,
        "rate": rate,
        "time_out_s": time_out,
    }
    tell = note if sys.stderr.isatty() else _silent
    ends = (options.names("--from", source), options.names("--to", to))
    needs = _needs(cluster, named, job, scheme, ports_per_path)
    if simulate is not None:
        options.refuse(context, _OF_SURVEYS, "--simulate, which sends nothing")
        return _simulate(named, ends, simulate, rules, needs, json)
    failed: list[str] = []
    if over is None or cluster is None or named is None:
        if over is not None:
            raise ExperimentError("--over: needs a cluster file, whose hosts are to look")
        try:
            wanted = _surveys(named, ends, (protocol, port), rules, needs)
        except peers.NothingSentError:
            # The report is about all hosts, of which this one may have nothing to look for.
            if not report or output is None or not output.exists():
                raise
            found = tables.read(output)
            sources = [one["address"] for one in found["sources"]]
        else:
            found = local.run(wanted, output, fresh, tell)
            sources = [one.source for one in wanted]
    else:
        who = _pairs(named, ends, needs, everyone=True)
        of_hosts = everywhere.surveys(named, who, protocol, port, rules, needs)
        found, failed = everywhere.run(cluster, over, of_hosts, output, fresh, tell)
        sources = [one.source for _, one in of_hosts]
    # A test bed's switches do.
    doubt = names.doubt(named) if named is not None and over != everywhere.TESTBED else None
    if doubt is not None:
        note(f"weft: {doubt}")
    if report:
        _report(cluster, named, found, job, scheme, json)
    elif json:
        print(json_.dumps(found, indent=1))
    else:
        print(show.table(found, sources, named, paths))
        if output is not None:
            print(f"\n{output}")
    for line in failed:
        print(f"weft: --over: {line}", file=sys.stderr)
    incomplete = failed or not tables.answered(found, _those(found, sources))
    return 1 if local.changed(found, sources) or incomplete else 0


def _those(found: dict[str, Any], sources: list[str]) -> list[str]:
    """The sources that are in a table."""
    return [one["address"] for one in found["sources"] if one["address"] in sources]


def _needs(
    path: Path | None, cluster: Cluster | None, job: str | None, scheme: str, ports: int | None
) -> Needs | None:
    """What a job needs; None: all paths."""
    from weft.discover import needs
    from weft.errors import ExperimentError

    if job is None:
        return None
    if path is None or cluster is None:
        raise ExperimentError("--job: needs a cluster file, on which it is planned; name one")
    return needs.of_job(path, cluster, job, scheme, ports)


def _pairs(
    cluster: Cluster,
    ends: tuple[list[str] | None, list[str] | None],
    job: Needs | None,
    everyone: bool,
) -> list[tuple[Host, list[Host]]]:
    """Who looks for whom: hosts that are named, else all (`everyone`) or what this machine is."""
    from weft.discover import peers

    sources, targets = ends
    if sources is not None:
        mine = peers.named(cluster, sources)
    else:
        mine = list(cluster.hosts) if everyone else peers.own(cluster)
    return peers.pairs(cluster, mine, targets, job)


def _simulate(
    cluster: Cluster | None,
    ends: tuple[list[str] | None, list[str] | None],
    switches: str,
    rules: dict[str, Any],
    job: Needs | None,
    json: bool,
) -> int:
    """Print what a survey would cost one host: the first of `--from`, else of the cluster.

    With a job: what it would cost all hosts.
    """
    from weft.discover import simulate
    from weft.errors import ExperimentError

    if cluster is None:
        raise ExperimentError("--simulate: needs a cluster file; name one")
    answers = simulate.switches(switches, rules["seed"])
    rules = {**rules, "seed": answers["seed"]}
    pairs = _pairs(cluster, ends, job, everyone=True)
    if job is None:
        found = simulate.run(cluster, *pairs[0], answers, rules)
        print(json_.dumps(found, indent=1) if json else simulate.text(found))
    else:
        whole = simulate.of_job(cluster, pairs, answers, rules, job)
        print(json_.dumps(whole, indent=1) if json else simulate.text_of_job(whole))
    return 0


def _report(
    path: Path | None,
    cluster: Cluster | None,
    found: dict[str, Any],
    job: str | None,
    scheme: str,
    json: bool,
) -> None:
    """Print the report of a table."""
    from weft.discover import report
    from weft.errors import ExperimentError

    if path is None or cluster is None:
        raise ExperimentError("--report: needs a cluster file, whose uplinks it is about; name one")
    made = report.of(path, cluster, found, job, scheme)
    print(json_.dumps(made, indent=1) if json else report.text(made))


def _silent(_: str) -> None:
    """Nobody looks."""


def _cluster(path: Path | None) -> Cluster | None:
    if path is None:
        return None
    from weft import cluster as clusters

    return clusters.read(path)


def _surveys(
    cluster: Cluster | None,
    ends: tuple[list[str] | None, list[str] | None],
    traffic: tuple[Protocol | None, int | None],
    rules: dict[str, Any],
    job: Needs | None,
) -> list[Survey]:
    """A survey for each source."""
    from weft.discover import everywhere, peers
    from weft.discover.survey import Survey
    from weft.errors import ExperimentError

    (sources, targets), (protocol, port) = ends, traffic
    if cluster is not None:
        # They look side by side, as hosts do.
        pairs = _pairs(cluster, ends, job, everyone=False)
        return [one for _, one in everywhere.surveys(cluster, pairs, protocol, port, rules, job)]
    if not targets:
        raise ExperimentError("discover: no targets; name a cluster file, or addresses with --to")
    addresses = [peers.address(one, "--to") for one in targets]
    mine = [peers.address(one, "--from") for one in sources or ()]
    mine = mine or [peers.source_towards(addresses[0])]
    rules = {**rules, "rate": rules["rate"] / len(mine)}
    return [Survey(one, addresses, protocol or "udp", port or _ROCE, **rules) for one in mine]
