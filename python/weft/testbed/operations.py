"""Operations on a test bed: up, run, fail, down."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.study import inputs
from weft.switches import addresses
from weft.switches.ways import Way
from weft.testbed import bed, failures, host_defaults, layout, metrics, plan_input, system
from weft.testbed.failures import Failure
from weft.testbed.rules import Rules


def up(path: Path, seed: int, rules: Rules = "linux", hashes: bool = False) -> str:
    """Build the bed of a cluster; returns a line about it.

    Its leaves follow source ports; if it `hashes`, nobody has told them to.
    """
    cluster = clusters.read(path, seed)
    layout.check(cluster)
    system.require(rules)
    with bed.held(path):
        if bed.standing(path):
            raise ExperimentError(f"testbed: {path}: is up already; run weft testbed down {path}")
        new = bed.Bed(cluster, bed.prefix_of(path), rules)
        bed.save_state(path, new)
        try:
            new.build(seed)
            if not hashes:
                new.enforce("segments", "udp")
        except BaseException:
            new.remove()
            bed.remove_state(path)
            raise
    names = f"{new.prefix}leaf-0, {new.prefix}host-0, ..."
    return f"{path}: {len(layout.nodes(cluster))} network namespaces are up: {names}"


def down(path: Path) -> str:
    """Remove what `up` built; a line about it."""
    system.require()
    with bed.held(path):
        found = bed.standing(path)
        if found is None:
            return f"{path}: nothing is up"
        found[0].remove()
        bed.remove_state(path)
    return f"{path}: removed"


def fail(path: Path, link: str, how: str, repair: bool) -> str:
    """Fail a link of a standing bed, or repair it; a line about it."""
    system.require()
    standing, state = _standing(path)
    failure = failures.read(link, how, standing.cluster)
    failed: list[dict[str, Any]] = state.get("failed", [])
    if repair:
        # Whatever was done to this link, not only what is asked for; by hand nobody knows.
        mine = [one for one in failed if _link(one) == _link(asdict(failure))]
        for one in mine or [asdict(failure)]:
            standing.repair(_failure(one))
        failed = [one for one in failed if one not in mine]
    else:
        standing.fail(failure)
        failed = [*failed, asdict(failure)]
    bed.save_state(path, standing, failed=failed)
    what = "repaired" if repair else f"failed ({failure.how})"
    return f"{failure.leaf}:{failure.spine}: {what}"


def _standing(path: Path) -> tuple[bed.Bed, dict[str, Any]]:
    """The bed that stands, and what its state file says.

    Raises:
        ExperimentError: None does.
    """
    found = bed.standing(path)
    if found is None:
        raise ExperimentError(f"testbed: {path}: nothing is up; weft testbed up {path} builds it")
    return found


def _link(failure: dict[str, Any]) -> tuple[Any, ...]:
    return failure["leaf"], failure["spine"], failure["member"]


def _failure(noted: dict[str, Any]) -> Failure:
    """A failure that a state file has, with `of_run` if a run was to end it."""
    return Failure(**{key: value for key, value in noted.items() if key != "of_run"})


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
        "balance": {"scheme": scheme, **host_defaults.of(scheme)},
        "sweep": {"seeds": [seed]},
    }
    others = [change for change in changes if not change[0].startswith("transport.")]
    plain = inputs.from_dict(table, "testbed", others).runs[0]["experiment"]
    table["transport"] = host_defaults.transport(plain, dict(changes))
    found = inputs.from_dict(table, "testbed", changes)
    return dict(found.runs[0]["experiment"])


DISCOVERED = "discovered"
"""The value of `balance.enforce` under which leaves hash and ports are chosen accordingly."""


def follows_ports(table: dict[str, Any]) -> bool:
    """Whether leaves are to follow source ports: for paths that are pinned, and for policies."""
    return _native.enforced(json.dumps(table)) not in ("none", DISCOVERED)


@dataclass(frozen=True)
class RunRequest:
    """A run of a test bed."""

    experiment: dict[str, Any]
    """From `experiment`: fabric, scheme and, without a plan, the workload."""
    seed: int
    failure: Failure | None = None
    limit: float = 60.0
    """Seconds."""
    tcp: bool = False
    rules: Rules | None = None
    """None: as the standing bed was built, else linux."""
    planned: list[plan_input.Planned] | None = None
    """What each host sends, from a plan."""
    enforce: Way = "segments"
    """What makes packets take the paths of a scheme that chooses them."""


def run(path: Path, request: RunRequest) -> dict[str, Any]:
    """Run a request on the bed of a cluster: the standing one, or one for this run only.

    Returns what `session` found; `metrics.summary` makes a row of it.
    """
    # Random failures: the same links that hosts know of.
    cluster = clusters.read(path, request.seed)
    layout.check(cluster)
    found = bed.standing(path)
    rules = request.rules or (found[0].rules if found else "linux")
    system.require(rules)
    enforce = request.enforce if follows_ports(request.experiment) else None
    by_path = None
    if enforce == "addresses":
        by_path = addresses.paths_of(addresses.with_network(cluster))
    job: dict[str, Any] = {
        "cluster": clusters.as_json(cluster),
        "prefix": "",
        "enforce": enforce,
        "path_addresses": by_path and by_path.hosts,
        "rules": rules,
        "experiment": json.dumps(request.experiment),
        "seed": request.seed,
        "failure": asdict(request.failure) if request.failure else None,
        "planned": request.planned,
        "options": {
            "limit_s": request.limit,
            "tcp": request.tcp,
        },
    }
    if not found:
        return _ask_session(job)
    with bed.held(path):
        return _run_on_standing(path, job)


def _run_on_standing(path: Path, job: dict[str, Any]) -> dict[str, Any]:
    standing, state = _standing(path)
    if state["cluster"] != json.loads(json.dumps(job["cluster"])):
        raise ExperimentError(
            f"testbed: {path}: has changed since weft testbed up, or --seed draws other "
            "failures; down first"
        )
    # A run that was killed has left its files, and its link as it was.
    shutil.rmtree(bed.folder_of(path), ignore_errors=True)
    failed: list[dict[str, Any]] = []
    for one in state.get("failed", []):
        if one.get("of_run"):
            standing.repair(_failure(one))
        else:
            failed.append(one)
    bed.save_state(path, standing, failed=failed)
    bed.folder_of(path).mkdir(parents=True)
    job |= {"prefix": standing.prefix, "folder": str(bed.folder_of(path))}
    if not job["failure"]:
        return _ask_session(job)
    mine = {**job["failure"], "of_run": True}
    bed.save_state(path, standing, failed=[*failed, mine])
    found = _ask_session(job)
    # Others may have failed meanwhile.
    failed = _standing(path)[1].get("failed", [])
    bed.save_state(path, standing, failed=[one for one in failed if one != mine])
    return found


def _ask_session(job: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "weft.testbed.session", str(os.getpid())],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise system.session_error(done.returncode, done.stderr)
    return dict(json.loads(done.stdout))


def run_workload(
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
    enforce: Way = "segments",
) -> dict[str, Any]:
    """Send a workload, or what a plan says, through a bed; a row of results."""
    planned = None
    if plan is not None:
        read = plan_input.read(plan, path)
        scheme, seed, planned = read.scheme, read.seed, read.planned
        if read.hashed is not None and (read.hashed == "tcp") != tcp:
            raise ExperimentError(
                f"{plan}: its ports are of {read.hashed}, and mean nothing to another protocol; "
                + ("leave out --tcp" if tcp else "add --tcp")
            )
        workload, changes = plan_input.STAND_IN, [*read.changes, *changes]
    cluster = clusters.read(path, seed)
    failure = failures.read(fail_at, how, cluster) if fail_at else None
    table = experiment(cluster, scheme, workload, seed, changes)
    if planned is None and _native.enforced(json.dumps(table)) == DISCOVERED:
        raise ExperimentError(
            'balance.enforce: "discovered" needs ports; make a plan with weft plan --paths, and '
            "name it with --plan"
        )
    found = run(path, RunRequest(table, seed, failure, limit, tcp, rules, planned, enforce))
    row = {
        "scheme": table["balance"]["scheme"],
        "workload": str(plan) if plan else workload,
        "transport": "tcp" if tcp else "udp",
        "seed": seed,
    }
    return row | metrics.summary(cluster, found)
