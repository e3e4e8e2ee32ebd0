"""Whether a plan is of the cluster and the job that its own file describes.

A plan may agree with itself and still be of nothing: with messages left out, or links that are
faster than the cluster has them. So links, messages and queue pairs are held against
`experiment` and `cluster`, which say what there is; the core reads them, and plans nothing.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from weft import _native, cluster
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.plans import hosts
from weft.plans.file import Plan
from weft.plans.network import Network, Numbers
from weft.switches import segments

REMAKE = "the plan is not what it says, make it again"
ROUNDING = 1e-9
"""Relative rounding error of quotients."""
Given = dict[str, Any]


def recompute(plan: Plan) -> Given:
    """Links and steps, computed again from the plan's `experiment`, and compared with the plan.

    Raises:
        ExperimentError: The plan is of other links or of other steps: which, and both values.
    """
    # Of pieces that the file does not hold the core makes sure itself.
    most = max((len(step["pieces"]["src"]) for step in plan["steps"] if step["pieces"]), default=0)
    found = _native.plan_given(json.dumps(plan["experiment"]), plan["seed"], most)
    enforce = found["enforce"]
    if plan["enforce"] != enforce:
        raise ExperimentError(f"plan: enforce: {enforce}, not {plan['enforce']}; {REMAKE}")
    links = plan["links"]
    names = list(found["links"]["link"])
    if list(links["link"]) != names:
        wrong = next((one for one in links["link"] if one not in set(names)), None)
        wrong = wrong or next((one for one in names if one not in set(links["link"])), names[0])
        raise ExperimentError(f"plan: links: {wrong}: not as in the cluster; {REMAKE}")
    for key in ("rate_bps", "capacity_bps"):
        is_so = np.asarray(found["links"][key], dtype=np.int64)
        said = np.asarray(links[key], dtype=np.int64)
        if len(said) != len(is_so):
            raise ExperimentError(f"plan: links: {key}: {len(said)} of {len(is_so)}; {REMAKE}")
        for link in np.flatnonzero(said != is_so)[:1]:
            raise ExperimentError(
                f"plan: links: {names[link]}: {key}: {is_so[link]} in the cluster, not "
                f"{said[link]}; {REMAKE}"
            )
    check_equal("plan", "steps", len(found["steps"]), len(plan["steps"]))
    check_readers(plan)
    return found


def check_readers(plan: Plan) -> None:
    """Refuse a file that says of scheme, options and fabric something else than its `experiment`.

    Hosts plan by the former (`WEFT_CONFIG`), and everything else here is of the latter.
    """
    given = plan["experiment"]
    scheme = {"scheme": plan["scheme"], **plan["options"]}
    said = {"balance": scheme, **{key: plan["cluster"][key] for key in ("fabric", "failures")}}
    for section, values in said.items():
        meant = given.get(section, {})
        for key in [*meant, *values]:
            one, other = meant.get(key), values.get(key)
            if one != other:
                raise ExperimentError(
                    f"plan: {section}.{key}: {one} in the experiment, {other} for hosts; {REMAKE}"
                )


def check_equal(where: str, what: str, found: Any, said: Any) -> None:
    """Refuse a file whose count differs from the computed one."""
    if found != said:
        raise ExperimentError(f"{where}: has {found} {what}, not {said}; {REMAKE}")


def check_bound(plan: Plan, found: Given) -> None:
    """Refuse a file whose lower bound is not the job's."""
    is_so, said = found["bound_s"], plan["bound_s"]
    if not abs(is_so - said) <= ROUNDING * is_so:
        raise ExperimentError(
            f"plan: bound_s: the job takes at least {is_so:.9g} s, not {said:.9g}; {REMAKE}"
        )


def check_messages(where: str, step: Given, pieces: dict[str, Numbers]) -> None:
    """Refuse pieces that are not exactly the messages of the step."""
    if (pieces["bytes"] <= 0).any():
        raise ExperimentError(f"{where}: a piece has {pieces['bytes'].min()} bytes; {REMAKE}")
    each = step["each"]
    if each is None:
        raise ExperimentError(
            f"{where}: has {step['messages']} messages, and fewer pieces; {REMAKE}"
        )
    number = pieces["message"]
    if len(number) and not 0 <= number.min() <= number.max() < step["messages"]:
        raise ExperimentError(
            f"{where}: a piece is of message {number.max()}, there are {step['messages']}; {REMAKE}"
        )
    for end in ("src", "dst"):
        meant = np.asarray(each[end], dtype=np.int64)[number]
        for piece in np.flatnonzero(pieces[end] != meant)[:1]:
            raise ExperimentError(
                f"{where}: message {number[piece]}: {end} is host-{meant[piece]} in the job, not "
                f"host-{pieces[end][piece]}; {REMAKE}"
            )
    sent = np.zeros(step["messages"], dtype=np.int64)
    np.add.at(sent, number, pieces["bytes"])
    meant = np.asarray(each["bytes"], dtype=np.int64)
    for message in np.flatnonzero(sent != meant)[:1]:
        raise ExperimentError(
            f"{where}: message {message} has {meant[message]} bytes in the job, its pieces have "
            f"{sent[message]}; {REMAKE}"
        )


def check_cluster(plan: Plan, net: Network) -> Cluster:
    """The cluster in the plan, whose links are those of the plan.

    Raises:
        ExperimentError: They are not: which link.
    """
    described = cluster.from_json(plan["cluster"])
    capacity = dict(zip(net.names, net.capacities.tolist(), strict=True))
    rate = dict(zip(net.names, plan["links"]["rate_bps"], strict=True))
    for link in described.links:
        member = f"#{link.member}" if link.member else ""
        both = [f"{link.lower} -> {link.upper}{member}", f"{link.upper} -> {link.lower}{member}"]
        lost = next((name for name in both if name not in rate), None)
        if lost:
            raise ExperimentError(f"plan: cluster: {lost}: not among the links; {REMAKE}")
        # A cluster's link is as bad as the worse of its directions.
        now = 0 if link.state == "down" else link.rate_bps
        least = min(capacity.pop(name) for name in both)
        if (now, link.line_bps) != (least, rate[both[0]]):
            raise ExperimentError(
                f"plan: cluster: {both[0]}: carries {now} of {link.line_bps} bps, by the links "
                f"{least} of {rate[both[0]]}; {REMAKE}"
            )
    if capacity:
        raise ExperimentError(f"plan: cluster: {next(iter(capacity))}: is missing; {REMAKE}")
    return described


def check_queue_pairs(plan: Plan, described: Cluster) -> None:
    """Whether hosts get the queue pairs that pieces need, and segments where plans need them.

    Raises:
        ExperimentError: One does not: which host.
    """
    if plan["enforce"] == "segments" or plan["segments"]:
        segments.of_plan(plan, described, "plan")
    meant = hosts.tables(described, plan["steps"])
    check_equal("plan: hosts", "hosts", len(meant), len(plan["hosts"]))
    for one, said in zip(meant, plan["hosts"], strict=True):
        if one != said:
            what = next(key for key in one if one[key] != said.get(key))
            raise ExperimentError(
                f"plan: hosts: {one['host']}: {what} are not those of its pieces; {REMAKE}"
            )
