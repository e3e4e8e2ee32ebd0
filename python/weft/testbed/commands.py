"""What `weft testbed` does: up, run, fail, down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft import inputs
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.testbed import bed, failures, layout, measure, options, plans, system
from weft.testbed.failures import Failure
from weft.testbed.rules import Rules


def up(path: Path, seed: int, rules: Rules = "linux") -> int:
    """Build the bed of a cluster and let it stand. Its leaves follow source ports."""
    cluster = clusters.read(path, seed)
    layout.check(cluster)
    system.require(rules)
    if bed.standing(path):
        raise ExperimentError(f"testbed: {path}: stands already; weft testbed down {path} ends it")
    new = bed.Bed(cluster, bed.prefix_of(path), rules)
    bed.keep(path, new)
    try:
        new.build(seed)
        new.follow_ports("udp")
    except BaseException:
        new.remove()
        bed.forget(path)
        raise
    names = f"{new.prefix}leaf-0, {new.prefix}host-0, ..."
    print(f"{path}: {len(layout.nodes(cluster))} name spaces stand: {names}")
    return 0


def down(path: Path) -> int:
    """Take down what `up` built."""
    system.require()
    found = bed.standing(path)
    if found is None:
        print(f"{path}: nothing stands")
        return 0
    found[0].remove()
    bed.forget(path)
    print(f"{path}: gone")
    return 0


def fail(path: Path, link: str, how: str, mend: bool) -> int:
    """Fail a link of a standing bed, or mend it."""
    system.require()
    found = bed.standing(path)
    if found is None:
        raise ExperimentError(f"testbed: {path}: nothing stands; weft testbed up {path} builds it")
    standing, state = found
    failure = failures.read(link, how, standing.cluster)
    failed: list[dict[str, Any]] = state.get("failed", [])
    if mend:
        # Whatever was done to this link, not only what is asked for.
        mine = [one for one in failed if _link(one) == _link(asdict(failure))]
        for one in mine:
            standing.mend(Failure(**one))
        failed = [one for one in failed if one not in mine]
    else:
        standing.fail(failure)
        failed = [*failed, asdict(failure)]
    bed.keep(path, standing, failed=failed)
    what = "mended" if mend else f"failed ({failure.how})"
    print(f"{failure.leaf}:{failure.spine}: {what}")
    return 0


def _link(failure: dict[str, Any]) -> tuple[Any, ...]:
    return failure["leaf"], failure["spine"], failure["member"]


def experiment(
    cluster: Cluster, scheme: str, workload: str, seed: int, changes: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """The experiment that hosts carry out, and that `weft.simulate` takes as it is."""
    # On these wires: what a packet has in front, and an answer.
    nic = {**cluster.fabric.get("nic", {})}
    header, ack = (layout.HEADERS + own for own in (layout.DATA_HEADER, layout.ANSWER))
    nic |= {"header": f"{header}B", "ack": f"{ack}B"}
    table = {
        "title": cluster.title,
        "fabric": {**cluster.fabric, "nic": nic},
        "failures": cluster.failures,
        "workload": inputs.table_of("workload", workload),
        "balance": {"scheme": scheme, **options.of(scheme)},
        "sweep": {"seeds": [seed]},
    }
    others = [change for change in changes if not change[0].startswith("transport.")]
    plain = inputs.from_dict(table, "testbed", others).runs[0]["experiment"]
    table["transport"] = options.transport(plain, dict(changes))
    found = inputs.from_dict(table, "testbed", changes)
    return dict(found.runs[0]["experiment"])


def follows_ports(table: dict[str, Any]) -> bool:
    """Whether leaves are to follow source ports: for paths that are pinned, and for DNLB."""
    name = str(table["balance"]["scheme"])
    return name.partition("-")[0] in ("ethereal", "dnlb")


@dataclass(frozen=True)
class Order:
    """What to run."""

    experiment: dict[str, Any]
    """As `experiment` makes it: the fabric, the scheme and, unless it was planned, the workload."""
    seed: int
    failure: Failure | None = None
    limit: float = 60.0
    """Seconds."""
    tcp: bool = False
    rules: Rules | None = None
    """None: as a bed that stands was built, else linux."""
    planned: list[plans.Planned] | None = None
    """Of each host."""


def run(path: Path, order: Order) -> dict[str, Any]:
    """Carry out an order on the bed of a cluster: the one that stands, or one of its own.

    Returns what `session` found; `measure.summary` makes a row of it.
    """
    # Links that fail at random are those that hosts are told of.
    cluster = clusters.read(path, order.seed)
    layout.check(cluster)
    found = bed.standing(path)
    rules = order.rules or (found[0].rules if found else "linux")
    system.require(rules)
    job: dict[str, Any] = {
        "cluster": clusters.as_json(cluster),
        "prefix": "",
        "follow_ports": follows_ports(order.experiment),
        "rules": rules,
        "experiment": json.dumps(order.experiment),
        "seed": order.seed,
        "failure": asdict(order.failure) if order.failure else None,
        "planned": order.planned,
        "options": {
            "limit_s": order.limit,
            "tcp": order.tcp,
        },
    }
    if found:
        standing, state = found
        if state["cluster"] != json.loads(json.dumps(job["cluster"])):
            raise ExperimentError(
                f"testbed: {path}: has changed since weft testbed up, or --seed draws other "
                "failures; down first"
            )
        folder = bed.folder_of(path)
        folder.mkdir(parents=True, exist_ok=True)
        job |= {"prefix": standing.prefix, "folder": str(folder)}
    return _ask_session(job)


def _ask_session(job: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "weft.testbed.session", str(os.getpid())],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise system.wrong(done.returncode, done.stderr)
    return dict(json.loads(done.stdout))


def run_and_show(
    path: Path,
    scheme: str,
    workload: str,
    plan: Path | None,
    seed: int,
    changes: Sequence[tuple[str, str]],
    fail_at: str | None,
    how: str,
    limit: float,
    tcp: bool,
    rules: Rules | None,
    as_json: bool,
) -> int:
    """`weft testbed run`; returns the exit status: 1 if not all has arrived."""
    planned = None
    if plan is not None:
        read = plans.read(plan, path)
        scheme, seed, planned = read.scheme, read.seed, read.planned
        workload, changes = plans.STAND_IN, [*read.changes, *changes]
    cluster = clusters.read(path, seed)
    failure = failures.read(fail_at, how, cluster) if fail_at else None
    table = experiment(cluster, scheme, workload, seed, changes)
    found = run(path, Order(table, seed, failure, limit, tcp, rules, planned))
    row = {
        "scheme": table["balance"]["scheme"],
        "workload": str(plan) if plan else workload,
        "transport": "tcp" if tcp else "udp",
        "seed": seed,
    }
    row |= measure.summary(cluster, found)
    print(json.dumps(row, indent=2) if as_json else text(row))
    return 0 if row["complete"] and not row["wrong_bytes"] else 1


def text(row: dict[str, Any]) -> str:
    """A row for people."""
    lines = [
        f"{row['scheme']}, seed {row['seed']}: {row['messages']} messages, "
        f"{row['payload_bytes'] / 1e6:.1f} MB" + ("" if row["complete"] else ", INCOMPLETE"),
        f"  completion  {row['completion_s']:.3f} s, bound {row['bound_s']:.3f} s: "
        f"{row['slowdown']:.3f} times",
        f"  flows       mean {row['fct_mean_s']:.3f} s, median {row['fct_p50_s']:.3f} s, "
        f"slowest {row['fct_max_s']:.3f} s",
        f"  packets     {row['packets']}, {row['drops']} dropped, {row['retransmits']} sent again, "
        f"{row['time_outs']} time-outs, {row['remaps']} re-maps",
        f"  uplinks     hottest {row['hottest_uplink']:.3f} of the mean, variance "
        f"{row['uplink_variance_pct2']:.4f} pp²",
    ]
    for one in row["uplinks"]:
        name = f"{one['leaf']} -> {one['spine']}" + (f"#{one['member']}" if one["member"] else "")
        lines.append(
            f"    {name:20} {one['bytes'] / 1e6:9.3f} MB  {one['utilisation_pct']:5.1f} %  "
            f"{one['drops']} dropped"
        )
    failure = row["failure"]
    if failure:
        lines.append(
            f"  failure     at {failure['at_s']:.3f} s; {failure['flows_stopped']} flows stood "
            f"still, the last until {failure['recovered_s']:.3f} s after it "
            f"(longest stop {failure['longest_stop_s']:.3f} s)"
        )
    if row["missing_bytes"] or row["wrong_bytes"]:
        lines.append(f"  MISSING {row['missing_bytes']} bytes, WRONG {row['wrong_bytes']} bytes")
    return "\n".join(lines)
