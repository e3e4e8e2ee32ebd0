"""Collectives over the NCCL plugin between hosts of a test bed, one scheme after the other.

Ranks are processes in namespaces that drive the plugin as NCCL's proxy does (`weft bench-net`).
All schemes run over the same bed, seed by seed: for each seed switches hash differently.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft import api, bench_net, version
from weft import cluster as clusters
from weft._types import Row
from weft.cluster import Cluster, Host, Link
from weft.errors import ExperimentError, writing
from weft.study import averages, fields
from weft.switches.ways import WAYS
from weft.testbed import failures, layout, metrics, rank_processes, system
from weft.testbed.rules import Rules

SOCKETS = "sockets"
"""The name of plain sockets among the schemes."""
BASELINES = ("ecmp", SOCKETS)
"""What others are compared with."""

ENFORCED = (*WAYS, "discovered")
"""What makes packets take the paths of schemes that choose them: as switches are configured, or
ports of which hosts have found out where the leaves' hash sends them."""

_CLUSTER_SEED = 1
"""Draws failures that are random: one bed for all seeds."""
_TCP = 14 + 20 + 32
"""On every packet: Ethernet, IPv4, TCP with time stamps."""


@dataclass(frozen=True)
class Options:
    """What is measured, as the command line has it."""

    operation: str
    size: str
    schemes: str
    enforce: str
    seeds: int
    ranks: int
    iterations: int
    warm_up: int
    checks: int
    channels: int
    chunk: str
    connections: int | None
    environment: Sequence[str]
    fail: str | None
    how: str
    heal: int | None
    answers: float | None
    mute: str | None
    kill: str | None
    rules: Rules
    limit: float
    plugin: Path | None


def run(path: Path, options: Options) -> dict[str, Any]:
    """Measure; what was found, with a row for each run."""
    cluster = clusters.read(path, _CLUSTER_SEED)
    layout.check(cluster)
    job = _job(cluster, options)
    system.require(options.rules)
    if options.how in failures.NFT:
        system.require_nft(f"--how {options.how}")
    if options.mute is not None:
        system.require_nft("--mute")
    rows = [_row(cluster, job, found) for found in _ask_session(job)]
    left = [row["bound_left_s"] for row in rows if row["bound_left_s"] is not None]
    return {
        "operation": options.operation,
        "size_bytes": job["measurement"]["size"],
        "ranks": options.ranks,
        "connections": job["measurement"]["connections"],
        "channels": options.channels,
        "bound_s": rows[0]["bound_s"],
        "bound_left_s": statistics.fmean(left) if left else None,
        "bound_bus_bytes_per_s": rows[0]["bound_bus_bytes_per_s"],
        "schemes": list(by_scheme(rows)),
        "runs": rows,
    }


def _job(cluster: Cluster, options: Options) -> dict[str, Any]:
    hosts = rank_processes.placed(cluster, options.ranks)
    size = bench_net.parse_size("--size", options.size)
    plugin = options.plugin or version.PLUGIN
    if not plugin.is_file():
        mend = "name another" if options.plugin else "`make plugin` builds it"
        raise ExperimentError(f"--plugin: {plugin}: there is no such file; {mend}")
    uplinks = max(len(cluster.uplinks.get(f"leaf-{host.leaf}", ())) for host in hosts)
    failure = failures.read(options.fail, options.how, cluster) if options.fail else None
    if failure is not None and options.heal is not None and options.heal <= failure.at_percent:
        raise ExperimentError(
            f"--heal: {options.heal} percent is not after --fail, which is at "
            f"{failure.at_percent}; use more"
        )
    kill, kill_percent = _kill(options)
    switches = [switch.node for switch in cluster.switches]
    if options.mute is not None and options.mute not in switches:
        some = ", ".join(switches[:3])
        raise ExperimentError(f"--mute: {options.mute} is no switch; there are {some}, ...")
    schemes = list(_schemes(options.schemes, options.enforce))
    if not any(one["discovers"] for one in schemes):
        for word, value in (("--answers", options.answers), ("--mute", options.mute)):
            if value is not None:
                raise ExperimentError(
                    f"{word}: is for probes, and no scheme here has hosts find out paths; add "
                    f"--enforce discovered, or leave {word} out"
                )
    measurement = {
        "operation": options.operation,
        "size": size,
        "iterations": options.iterations,
        "warm_up": options.warm_up,
        "checks": options.checks,
        "channels": options.channels,
        "chunk": bench_net.parse_size("--chunk", options.chunk),
        "connections": options.connections or max(uplinks, 1),
    }
    runs = options.iterations + options.warm_up + options.checks
    out = _out(hosts, options.operation, size)
    return {
        "cluster": clusters.as_json(cluster),
        "cluster_seed": _CLUSTER_SEED,
        "rules": options.rules,
        "ranks": options.ranks,
        "seeds": list(range(1, options.seeds + 1)),
        "schemes": schemes,
        "measurement": measurement,
        "environment": _variables(options.environment),
        "plugin": str(plugin.resolve()),
        "failure": asdict(failure) if failure else None,
        "heal": options.heal if failure else None,
        "answers": options.answers,
        "mute": options.mute,
        "kill": kill,
        "kill_percent": kill_percent,
        "bytes_up": runs * max(out.values(), default=0) * _with_headers(cluster),
        "limit": options.limit,
    }


def _variables(given: Sequence[str]) -> dict[str, str]:
    found = {}
    known = [
        option["key"]
        for entry in api.variables()
        for option in entry["options"]
        if option["key"].startswith("WEFT_")
    ]
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("WEFT_"):
            raise ExperimentError(f"--env: {text!r}: write a variable as WEFT_CHECKSUM=1")
        if name in rank_processes.OWN:
            raise ExperimentError(f"--env: {name}: the test bed sets it itself; leave it out")
        if name not in known:
            raise ExperimentError(
                f"--env: {name}: no such variable; {fields.suggestion(name, known)}"
            )
        found[name] = value
    try:
        rank_processes.check_variables(found)
    except ExperimentError as error:
        raise ExperimentError(f"--env: {error}") from None
    return found


def _kill(options: Options) -> tuple[int | None, int]:
    """The rank that is to be ended, and when."""
    if options.kill is None:
        return None, 0
    found = re.fullmatch(r"(\d+)(?:@(\d{1,2})%)?", options.kill)
    if found is None or int(found[1]) >= options.ranks:
        raise ExperimentError(
            f"--kill: {options.kill!r}: write a rank below {options.ranks} as 2@50%"
        )
    return int(found[1]), int(found[2] or 0)


def _schemes(text: str, enforce: str) -> Iterator[dict[str, Any]]:
    known = {row["name"].removesuffix("-N"): row for row in api.schemes()}
    ways = list(dict.fromkeys(part.strip() for part in enforce.split(",") if part.strip()))
    if not ways or set(ways) - set(ENFORCED):
        raise ExperimentError(f"--enforce: {enforce!r}: use some of {', '.join(ENFORCED)}")
    for name in filter(None, (part.strip() for part in text.split(","))):
        info = known.get(name) or known.get(name.rstrip("0123456789").rstrip("-"))
        if name != SOCKETS and info is None:
            raise ExperimentError(
                f"--schemes: {name}: no such scheme; weft list schemes has them all, and {SOCKETS} "
                "are plain ones"
            )
        pins = info is not None and info["source_ports"] == "segments"
        for way in ways if pins else [None]:
            yield {
                "name": name if way in (None, "segments") else f"{name}, {way}",
                "scheme": name,
                "config": name != SOCKETS,
                "follows": way if way != "discovered" else None,
                "discovers": way == "discovered",
            }


def _demands(operation: str, count: int, size: int) -> Iterator[tuple[int, int, float]]:
    """Ranks, and bytes from the one to the other in one run."""
    for rank in range(count):
        if operation == "all-to-all":
            yield from ((rank, to, size / count) for to in range(count) if to != rank)
            continue
        steps = {"all-reduce": 2 * (count - 1), "sendrecv": count}.get(operation, count - 1)
        yield rank, (rank + 1) % count, size * steps / count


def _out(hosts: Sequence[Host], operation: str, size: int) -> dict[tuple[int, str], float]:
    """Bytes that leave each leaf upwards, and that come down to it, in one run."""
    crossing: dict[tuple[int, str], float] = defaultdict(float)
    for src, dst, payload in _demands(operation, len(hosts), size):
        if hosts[src].leaf != hosts[dst].leaf:
            crossing[hosts[src].leaf, "up"] += payload
            crossing[hosts[dst].leaf, "down"] += payload
    return crossing


def bound_left(
    cluster: Cluster, job: Mapping[str, Any], failed_at: float, healed_at: float | None
) -> float | None:
    """Seconds that a timed run takes at least on average, with the link that `--fail` takes away.

    None where it takes away nothing. It is gone from `failed_at` to `healed_at` (or to the end), in
    percent of all runs, those before and after the timed ones included.
    """
    if job["failure"] is None or job["failure"]["how"] in failures.NFT:
        return None
    hosts, what = rank_processes.placed(cluster, job["ranks"]), job["measurement"]
    first, timed = what["warm_up"], what["iterations"]
    runs = first + timed + what["checks"]
    ends = (runs * at / 100 for at in (100 if healed_at is None else healed_at, failed_at))
    until, since = (min(max(end, first), first + timed) for end in ends)
    failed: float = max(until - since, 0.0) / timed
    # One that only swallows what goes down is as bad: as much goes up as comes down.
    dead = failures.link_of(cluster, failures.Failure(**job["failure"]))
    whole, less = (lower_bound(cluster, hosts, what, without) for without in (None, dead))
    return whole * (1 - failed) + less * failed


def _with_headers(cluster: Cluster) -> float:
    """Bytes on a link for each byte of payload."""
    full = cluster.mtu + layout.DATA_HEADER + layout.HEADERS - 14
    return 1 + _TCP / (max(full, 1500) + 14 - _TCP)


def lower_bound(
    cluster: Cluster, hosts: Sequence[Host], what: Mapping[str, Any], without: Link | None = None
) -> float:
    """Seconds of one run that no scheme can beat: what crosses the uplinks of a leaf, with headers.

    A link that was idle sends a burst for nothing, once for all runs. Acknowledgements are not
    counted. `without`: a link that carries nothing.
    """
    share = _with_headers(cluster)
    bound = 0.0
    for (leaf, _), payload in _out(hosts, what["operation"], what["size"]).items():
        up = (one for one in cluster.uplinks[f"leaf-{leaf}"] if one.state != "down")
        links = [one for one in up if one != without]
        rate = sum(one.rate_bps for one in links)
        burst = layout.BURST * len(links) / what["iterations"]
        bound = max(bound, (payload * share - burst) * 8 / rate if rate else 0.0)
    return bound


def _ask_session(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "weft.testbed.bench_session", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as session:
        if session.stdin is None or session.stdout is None or session.stderr is None:
            raise AssertionError
        try:
            with session.stdin as stdin:
                json.dump(job, stdin)
            for line in session.stdout:
                found = json.loads(line)
                if sys.stderr.isatty():
                    print(f"\r{found['scheme']}, seed {found['seed']}   ", end="", file=sys.stderr)
                yield found
            said = session.stderr.read()
            if session.wait() != 0:
                raise system.session_error(session.returncode, said)
        finally:
            session.kill()


def _row(cluster: Cluster, job: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of one measurement."""
    hosts, what = rank_processes.placed(cluster, job["ranks"]), job["measurement"]
    errors = [f"rank {one['rank']}: {one['error']}" for one in found["ranks"] if "error" in one]
    missing = job["ranks"] - len(found["ranks"])
    if missing and not found.get("error"):
        errors.append(f"{missing} ranks ended without a report")
    error = "; ".join(filter(None, [found.get("error"), *errors])) or None
    rows = [row for one in found["ranks"] if one["rank"] == 0 for row in one["rows"]]
    bound = lower_bound(cluster, hosts, what)
    failed_at, healed_at = found["failed_at_percent"], found["healed_at_percent"]
    left = bound_left(cluster, job, 100.0 if failed_at is None else failed_at, healed_at)
    row: dict[str, Any] = {
        "scheme": found["scheme"],
        "seed": found["seed"],
        "error": error,
        "bound_s": bound,
        "bound_left_s": left,
        "wall_s": found["wall_s"],
        "failed_at_s": found["failed_at_s"],
        "failed_at_percent": failed_at,
        "healed_at_percent": healed_at,
        "wrong": sum(one["wrong"] or 0 for one in rows),
        "discovery": found["discovery"],
        **_counted(found["ranks"]),
        "links": found["links"],
    }
    if rows:
        # All ranks are done when the slowest is.
        seconds = rows[0]["slowest_s"]
        factor = rows[0]["bus_bytes_per_s"] * rows[0]["time_s"]
        row |= {
            "time_s": seconds,
            "bus_bytes_per_s": factor / seconds,
            "of_bound": bound / seconds,
            "of_bound_left": left and left / seconds,
            "bound_bus_bytes_per_s": factor / bound if bound else None,
        }
    else:
        keys = ("time_s", "bus_bytes_per_s", "of_bound", "of_bound_left", "bound_bus_bytes_per_s")
        row |= dict.fromkeys(keys)
    up = [{**link, "leaf": link["sender"]} for link in found["links"] if link["up"]]
    row["hottest_uplink"] = metrics.hottest(up)
    return row


def _counted(reports: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Sums over all paths of all ranks."""
    keys = ("time_outs", "re_routes", "reconnects")
    paths = [
        path
        for report in reports
        for device in report.get("statistics") or ()
        for path in device["paths"]
    ]
    return {key: sum(path[key] for path in paths) for key in keys} | {"paths": len(paths)}


def by_scheme(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A summary of each scheme over its seeds."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row["scheme"]].append(dict(row))
    done = {name: [one for one in found if one["of_bound"]] for name, found in by_name.items()}
    for name, found in by_name.items():
        of_bound = [one["of_bound"] for one in done[name]]
        compared = (_over(base, done[name], done.get(base, [])) for base in BASELINES)
        yield {
            "scheme": name,
            "runs": len(found),
            "failed": sum(one["error"] is not None for one in found),
            "of_bound_mean": _mean("of_bound", done[name]),
            "of_bound_min": min(of_bound, default=None),
            "of_bound_max": max(of_bound, default=None),
            "of_bound_left_mean": _of_bound_left(done[name]),
            "bus_bytes_per_s_mean": _mean("bus_bytes_per_s", done[name]),
            **{key: value for part in compared for key, value in part.items()},
            "hottest_uplink_mean": statistics.fmean(one["hottest_uplink"] for one in found),
            "time_outs": sum(one["time_outs"] for one in found),
            "re_routes": sum(one["re_routes"] for one in found),
        }


def _of_bound_left(rows: Sequence[Row]) -> float | None:
    left = [row["bound_left_s"] for row in rows]
    if not left or None in left:
        return None
    return math.fsum(left) / math.fsum(row["time_s"] for row in rows)


def _mean(column: str, rows: Sequence[Row]) -> float | None:
    return averages.of(column, rows).value if rows else None


def _over(base: str, rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """How many times as fast as a baseline, where both have the same seeds."""
    found = None
    if rows and averages.same_seeds(rows, others):
        found = averages.ratio("of_bound", rows, others)
    known = found is not None and found.half is not None
    return {
        f"over_{base}": found and found.value,
        f"over_{base}_half_95": found and found.half,
        f"over_{base}_significant": not found.includes(1.0) if found and known else None,
    }


def write(found: Mapping[str, Any], folder: Path) -> None:
    """Write what `run` returned to `folder/testbed-bench.json`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / "testbed-bench.json"
    with writing(path):
        path.write_text(json.dumps(found, indent=1) + "\n")
