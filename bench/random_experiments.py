"""Random experiments, each under several schemes, and where the first one is the furthest behind.

Fabrics, jobs, sizes, switches and failures are drawn, the same for the same number. What has run
stays in a file of one JSON object a line; cases that are there are not run again.

    make random-experiments
    python bench/random_experiments.py out.jsonl --cases 2000 --schemes twill,ethereal,ecmp
    python bench/random_experiments.py out.jsonl --only 17       one case: its experiment and times
    python bench/random_experiments.py out.jsonl --seeds 8       means over eight seeds

A seed draws which links fail and when, hashes, and what is random in a job. One run says who was
lucky, too; means over seeds say less of that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import weft
from weft.errors import ExperimentError, StallError

PACKET_HOPS = 2_500_000
"""Of one run, at most."""
SEEDS_APART = 1_000_000
"""From a run of a case to its next: more than there are cases, so that none has another's."""
RATES = ("25Gbps", "100Gbps", "200Gbps", "400Gbps", "800Gbps")
DELAYS = ("100ns", "500ns", "1us", "3us")
SLOWER = {"800Gbps": "400Gbps", "400Gbps": "200Gbps", "200Gbps": "100Gbps", "100Gbps": "50Gbps"}


def main() -> int:
    """Run what is missing, and print the cases in which the first scheme is the furthest behind."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("results", type=Path, help="a line a case (.jsonl)")
    words.add_argument("--cases", type=int, default=200)
    words.add_argument("--seed", type=int, default=1, help="other cases")
    words.add_argument("--schemes", default="twill,ethereal,ecmp", help="the first is judged")
    words.add_argument("--seeds", type=int, default=1, help="runs of a case under each scheme")
    words.add_argument("--only", type=int, help="one case: its experiment and times")
    words.add_argument("--jobs", type=int, default=None)
    words.add_argument("--worst", type=int, default=20, help="how many are shown")
    asked = words.parse_args()
    schemes = asked.schemes.split(",")
    if asked.only is not None:
        print(json.dumps(run(asked.seed, asked.only, schemes, asked.seeds), indent=1))
        return 0
    done = read(asked.results, asked.seed, schemes, asked.seeds)
    missing = [case for case in range(asked.cases) if case not in done]
    with asked.results.open("a") as out, ProcessPoolExecutor(asked.jobs) as pool:
        runs = (pool.submit(run, asked.seed, n, schemes, asked.seeds) for n in missing)
        for future in as_completed(runs):
            result = future.result()
            done[result["case"]] = result
            print(json.dumps(result), file=out, flush=True)
    show([done[case] for case in sorted(done) if case < asked.cases], schemes, asked.worst)
    return 0


def read(results: Path, seed: int, schemes: list[str], seeds: int) -> dict[int, dict[str, Any]]:
    """Cases of this seed that are there with all schemes, and so many runs of each."""
    lines = results.read_text().splitlines() if results.exists() else []
    cases = map(json.loads, lines)
    return {
        case["case"]: case
        for case in cases
        if case["seed"] == seed
        and case.get("seeds", 1) == seeds
        and all(scheme in case["slowdown"] for scheme in schemes)
    }


def run(seed: int, case: int, schemes: list[str], seeds: int = 1) -> dict[str, Any]:
    """Simulate one case under all schemes, each with so many seeds: means of what they take."""
    experiment = drawn(random.Random(f"{seed}/{case}"))
    all_seeds = [case + 1 + SEEDS_APART * at for at in range(seeds)]
    slowdown = {scheme: mean_slowdown(experiment, scheme, all_seeds) for scheme in schemes}
    return {
        "seed": seed,
        "case": case,
        "seeds": seeds,
        "slowdown": slowdown,
        "experiment": experiment,
    }


def mean_slowdown(experiment: dict[str, Any], scheme: str, seeds: list[int]) -> float | str | None:
    """Of one experiment under one scheme; `None`: it stalls; words: it cannot be."""
    balance = {**experiment.get("balance", {}), "scheme": scheme}
    one = {**experiment, "balance": balance, "sweep": {"seeds": seeds}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            runs = weft.simulate(one, jobs=1, threads=1).runs
            return statistics.fmean(runs["slowdown"].to_list())
        except StallError:
            return None
        except ExperimentError as error:
            return str(error)


def drawn(draw: random.Random) -> dict[str, Any]:
    """A random experiment without a scheme."""
    fabric, hosts = drawn_fabric(draw)
    buffers = draw.choice([{}, {}, {"buffer": "16MiB"}, {"buffer": "64MiB"}, {"pfc": False}])
    if buffers:
        fabric["switch"] = buffers
    experiment = {"fabric": fabric, **drawn_work(draw, hosts)}
    failures = drawn_failures(draw, fabric)
    if failures:
        experiment["failures"] = failures
    if draw.random() < 0.15 and "pattern" not in experiment["workload"]:
        experiment["stragglers"] = {
            "count": draw.randint(1, 2),
            "factor": draw.choice([2.0, 10.0]),
            "start_delay": draw.choice(["5us", "20us"]),
            "start_distribution": "fixed",
        }
    return experiment


def drawn_fabric(draw: random.Random) -> tuple[dict[str, Any], int]:
    """A fabric, and how many hosts it has."""
    rate = draw.choice(RATES)
    fabric: dict[str, Any] = {"link": rate, "delay": draw.choice(DELAYS)}
    fabric["nic"] = {"mtu": draw.choice(["1500B", "4KiB", "4KiB", "9000B"])}
    kind = draw.choice(["square", "leaf-spine", "leaf-spine", "tapered", "bundles", "fat-tree"])
    kind = draw.choice([kind, kind, kind, "three tiers", "planes"])
    if kind == "fat-tree":
        fabric |= {"topology": "fat-tree", "k": draw.choice([4, 6])}
        fabric["oversubscription"] = draw.choice([1, 1, 2])
        rack = fabric["k"] // 2 * fabric["oversubscription"]
        return fabric, fabric["k"] ** 2 // 2 * rack
    if kind == "three tiers":
        aggs = draw.choice([2, 4])
        fabric |= {"topology": "clos", "tiers": 3, "pods": 2, "leaves": 2, "aggs": aggs}
        fabric |= {"cores": aggs * draw.choice([1, 2]), "hosts_per_leaf": draw.choice([2, 4, 8])}
        return fabric, 4 * fabric["hosts_per_leaf"]
    leaves, rack = draw.choice([2, 3, 4, 8]), draw.choice([2, 4, 8, 12])
    fabric |= {"topology": "leaf-spine", "leaves": leaves, "hosts_per_leaf": rack}
    fabric["spines"] = rack
    if kind == "leaf-spine":
        fabric["spines"] = draw.choice([2, 3, 4, 6, 8])
    elif kind == "tapered":
        fabric["spines"] = max(1, rack // draw.choice([2, 4]))
    elif kind == "bundles":
        fabric["spines"] = max(1, rack // 2)
        fabric["links_per_pair"] = draw.choice([2, 3])
    elif kind == "planes":
        fabric["planes"] = draw.choice([2, 4])
    if kind != "planes" and draw.random() < 0.2 and rate in SLOWER:
        fabric["uplink"] = SLOWER[rate]
        fabric["spines"] *= draw.choice([1, 2])
    return fabric, leaves * rack


def drawn_work(draw: random.Random, hosts: int) -> dict[str, Any]:
    """What is sent between so many hosts."""
    kind = draw.choice(["permutation", "all-to-all", "incast", "ring", "collective", "two jobs"])
    placement = draw.choice(["packed", "packed", "random"])
    power = 1 << (hosts.bit_length() - 1)
    # Hops of a packet of 4 KiB: four on the way, and half as many for its answer.
    most = PACKET_HOPS * 4096 / 6

    def size(messages: float, least: float = 2e3) -> str:
        largest = max(least * 2, min(32e6, most / messages))
        return f"{round(math.exp(draw.uniform(math.log(least), math.log(largest))))}B"

    if kind == "permutation":
        count = draw.choice([1, 1, 2, 4])
        return {"workload": {"pattern": kind, "size": size(hosts * count), "count": count}}
    if kind == "all-to-all":
        skew = draw.choice([0, 0, 0.5])
        return {"workload": {"pattern": kind, "size": size(hosts * hosts), "skew": skew}}
    if kind == "incast":
        senders = draw.randint(2, hosts - 1)
        return {"workload": {"pattern": kind, "size": size(senders), "senders": senders}}
    if kind == "ring":
        channels = draw.choice([1, 2, 4])
        work = {"pattern": kind, "size": size(hosts * channels), "channels": channels}
        return {"workload": work}
    if kind == "collective":
        return {"workload": {"placement": placement, **collective(draw, power, size)}}
    ranks = power // 2
    first, second = (collective(draw, ranks, size) for _ in range(2))
    return {"workload": {"placement": placement, "jobs": {"one": first, "other": second}}}


def collective(draw: random.Random, ranks: int, size: Any) -> dict[str, Any]:
    """A collective of so many ranks."""
    name, algorithm = draw.choice(
        [
            ("all-reduce", "ring"),
            ("all-reduce", "recursive-doubling"),
            ("all-reduce", "double-binary-tree"),
            ("all-gather", "ring"),
            ("reduce-scatter", "ring"),
            ("all-to-all", "direct"),
        ]
    )
    job = {"collective": name, "algorithm": algorithm, "ranks": ranks}
    return {**job, "size": size(ranks * (2 if name == "all-reduce" else 1), 2e3 * ranks)}


def drawn_failures(draw: random.Random, fabric: dict[str, Any]) -> dict[str, Any]:
    """Links that are slow, flaky or dead, or nothing."""
    if draw.random() < 0.5:
        return {}
    kind = draw.choice(["degraded", "degraded", "flaky", "down"])
    links = fabric.get("spines", 2) * fabric.get("links_per_pair", 1)
    if links == 1 and kind == "down":
        return {}
    count = min(draw.choice([1, 1, 2]), max(1, links - 1))
    failure: dict[str, Any] = {"tier": "leaf-up", "count": count, "kind": kind}
    if kind == "degraded":
        failure["lost"] = draw.choice([0.25, 0.5, 0.75, 0.9])
    elif kind == "flaky":
        failure |= {"every": draw.choice(["100us", "200us"]), "length": "10us"}
    if kind == "down" or draw.random() < 0.3:
        failure["start"] = f"{draw.randint(1, 200)}us"
        if draw.random() < 0.3:
            failure["duration"] = f"{draw.randint(20, 400)}us"
    return {"drawn": failure}


def show(cases: list[dict[str, Any]], schemes: list[str], worst: int) -> None:
    """A table of the worst cases, and how many are behind by how much."""
    first, others = schemes[0], schemes[1:]
    ranked: list[tuple[float, dict[str, Any]]] = []
    for case in cases:
        slowdown = case["slowdown"]
        words = [value for value in slowdown.values() if isinstance(value, str)]
        if words:
            print(f"case {case['case']}: {words[0]}")
            continue
        best = min(slowdown[scheme] or math.inf for scheme in others)
        mine = slowdown[first] or math.inf
        ranked.append((1.0 if best == math.inf else mine / best, case))
    ranked.sort(key=lambda one: -one[0])
    stalls = sum(ratio == math.inf for ratio, _ in ranked)
    ratios = [ratio for ratio, _ in ranked[stalls:]]
    if not ratios:
        return
    limits = (1.01, 1.03, 1.1, 1.3)
    behind = ", ".join(f"{sum(ratio > limit for ratio in ratios)} > {limit}" for limit in limits)
    middle, mean = statistics.median(ratios), statistics.geometric_mean(ratios)
    print(f"{len(ranked)} cases; {first} over the best of {', '.join(others)}: {behind};")
    print(f"{stalls} in which only {first} stalls;", end=" ")
    print(f"median {middle:.3f}, geometric mean {mean:.3f}, least {ratios[-1]:.3f}")
    for ratio, case in ranked[:worst]:
        times = " ".join(
            f"{name} {value:.3f}" if value else f"{name} stalls"
            for name, value in case["slowdown"].items()
        )
        print(f"{ratio:.3f} case {case['case']}: {times}\n    {' '.join(said(case['experiment']))}")


def said(table: dict[str, Any]) -> Iterator[str]:
    """Keys and values in one line."""
    for key, value in table.items():
        yield f"{key}({' '.join(said(value))})" if isinstance(value, dict) else f"{key}={value}"


if __name__ == "__main__":
    raise SystemExit(main())
