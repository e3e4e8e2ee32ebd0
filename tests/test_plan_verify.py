"""`weft plan --verify`: what it makes of plans that lie."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import command
from small_plan import EXCHANGE, LEAF_SPINE
from weft.errors import ExperimentError
from weft.plans import file, make, network, verify


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    """A plan to be falsified."""
    return make.of(LEAF_SPINE, EXCHANGE, "ethereal")


def falsify(plan: dict[str, Any], what: str) -> str:
    """What --verify says of a plan with one thing changed."""
    lie = copy.deepcopy(plan)
    step, certificate = lie["steps"][0], lie["steps"][0]["certificate"]
    pieces = step["pieces"]
    place = step["loads"].index(max(step["loads"]))
    far = next(i for i, path in enumerate(pieces["path"]) if path >= 0x0100)
    if what == "load":
        step["loads"][place] -= 1
    elif what == "time":
        step["congestion"]["seconds"] *= 0.9
    elif what == "busiest":
        step["congestion"]["link"] = "leaf-2 -> spine-0"
    elif what == "bound":
        step["bound_s"] *= 1.1
    elif what == "sum":
        lie["seconds"] /= 2
    elif what == "path":
        pieces["path"][far] = 0
    elif what == "no path":
        pieces["path"][far] = 0x0900
    elif what == "no byte":
        pieces["path"][far] = -256
    elif what == "port":
        pieces["source_port"][far] = 100
    elif what == "no port":
        pieces["source_port"][far] = None
    elif what == "bytes":
        pieces["bytes"][0] += 1
    elif what == "certificate":
        certificate["link"][0] = "leaf-9 -> spine-9"
    elif what == "no certificate":
        step["certificate"] = None
    elif what == "capacity":
        certificate["capacity_bps"][0] *= 2
    elif what == "weight":
        # Less capacity, and as much that must cross.
        for key, value in (("link", "host-9 -> leaf-2"), ("weight", -1), ("capacity_bps", 1)):
            certificate[key].append(value)
    elif what == "rate":
        lie["links"]["capacity_bps"] = [2 * one for one in lie["links"]["capacity_bps"]]
    elif what == "host":
        lie["hosts"][0]["queue_pairs"].pop()
    elif what == "queue pairs":
        step["queue_pairs"] -= 1
    elif what == "times":
        step["times"] += 1
    elif what == "steps":
        lie["steps"] = []
    elif what == "enforce":
        lie["enforce"], lie["segments"] = "none", {}
    elif what == "key":
        del step["loads"]
    elif what == "ragged":
        pieces["src"].pop()
    with pytest.raises(ExperimentError) as error:
        verify.verify(lie)
    return str(error.value)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("load", "carries"),
        ("time", "takes"),
        ("busiest", "busiest link, not leaf-2 -> spine-0"),
        ("bound", "certificate"),
        ("sum", "seconds: steps add up"),
        ("path", "sends source port"),
        ("no path", "uplink that is not there"),
        ("no byte", "two bytes"),
        ("port", "to any uplink"),
        ("no port", "no source port"),
        ("bytes", "bytes"),
        ("certificate", "leaf-9 -> spine-9: no such link"),
        ("no certificate", "certificate: is missing"),
        ("capacity", "bps"),
        ("weight", "host-9 -> leaf-2: weight -1"),
        ("rate", "capacity_bps: 100000000000 in the cluster"),
        ("host", "h0: queue_pairs"),
        ("queue pairs", "queue pairs on a host"),
        ("times", "1 times, not 2"),
        ("steps", "1 steps, not 0"),
        ("enforce", "enforce: segments, not none"),
        ("key", "'loads' is missing"),
        ("ragged", "not of one length"),
    ],
)
def test_a_plan_that_lies_is_found_out(plan: dict[str, Any], what: str, said: str) -> None:
    """With the step, and the link where there is one."""
    found = falsify(plan, what)
    assert said in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda lie: lie["cluster"].update(extra=1),
            "cluster: not as weft plan writes it (unknown key 'extra')",
        ),
        (lambda lie: lie.update(enforce="none"), "enforce: segments, not none"),
    ],
)
def test_the_command_names_the_file_that_lies(
    plan: dict[str, Any], change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    """Not "plan:", of which there may be several."""
    lie = copy.deepcopy(plan)
    change(lie)
    path = tmp_path / "changed.json"
    file.write(lie, path)
    arguments = command("plan", "--verify", path)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}: {said}")


def agree_again(lie: dict[str, Any]) -> None:
    """Make a plan with other pieces or links agree with itself: loads, sums, busiest link."""
    net, step = network.of(lie["links"]), lie["steps"][0]
    pieces = {name: np.asarray(step["pieces"][name]) for name in ("src", "dst", "bytes", "path")}
    loads = net.loads(pieces)
    seconds = loads * 8 / net.capacities
    link = int(seconds.argmax())
    step["loads"], step["bytes"] = loads.tolist(), int(pieces["bytes"].sum())
    step["piece_count"] = len(pieces["src"])
    step["congestion"] = {
        "link": net.names[link],
        "bytes": int(loads[link]),
        "seconds": float(seconds[link]),
    }
    lie["seconds"] = float(seconds[link])


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("fewer", "not 130"),
        ("smaller", "bytes, not 6600000"),
        ("moved", "message 0 has 100000 bytes in the job"),
        ("elsewhere", "message 0: dst is host-1 in the job, not host-2"),
        ("faster", "capacity_bps"),
        ("cluster", "cluster: host-0 -> leaf-0: carries"),
        ("experiment", "spine-4: not as in the cluster"),
    ],
)
def test_a_plan_of_something_else_is_found_out(plan: dict[str, Any], what: str, said: str) -> None:
    """Though it agrees with itself: it is not of the job and the cluster in its file."""
    lie = copy.deepcopy(plan)
    step, pieces = lie["steps"][0], lie["steps"][0]["pieces"]
    if what == "fewer":
        for column in pieces.values():
            del column[-2:]
        step["messages"] -= 2
    elif what == "smaller":
        pieces["bytes"] = [size // 2 for size in pieces["bytes"]]
        step["bound_s"] = lie["steps_bound_s"] = step["bound_s"] / 2
    elif what == "moved":
        pieces["bytes"][0] += 10
        pieces["bytes"][1] -= 10
    elif what == "elsewhere":
        pieces["dst"][0], pieces["dst"][1] = pieces["dst"][1], pieces["dst"][0]
    elif what == "faster":
        lie["links"]["capacity_bps"] = [2 * one for one in lie["links"]["capacity_bps"]]
        step["certificate"]["capacity_bps"] = [
            2 * one for one in step["certificate"]["capacity_bps"]
        ]
        step["bound_s"] = lie["steps_bound_s"] = step["bound_s"] / 2
    elif what == "cluster":
        lie["cluster"]["links"][0]["rate_bps"] //= 2
    elif what == "experiment":
        lie["experiment"]["fabric"]["spines"] = 5
    agree_again(lie)
    with pytest.raises(ExperimentError, match=said):
        verify.verify(lie)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("scheme",), "dnlb", "balance.scheme: ethereal in the experiment, dnlb for hosts"),
        (("options", "group"), "size", "balance.group: leaf in the experiment, size for hosts"),
        (("options", "more"), 1, "balance.more: None in the experiment, 1 for hosts"),
        (("cluster", "fabric", "spines"), 5, "fabric.spines: 4 in the experiment, 5 for hosts"),
        (("cluster", "failures", "x"), {}, "failures.x: None in the experiment"),
    ],
)
def test_a_plan_that_tells_hosts_something_else_is_found_out(
    plan: dict[str, Any], keys: tuple[str, ...], value: Any, said: str
) -> None:
    """They read scheme, options and fabric; the rest of the file is of its experiment."""
    lie = copy.deepcopy(plan)
    table = lie
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    with pytest.raises(ExperimentError, match=f"^plan: {said}"):
        verify.verify(lie)
