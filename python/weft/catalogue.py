"""What `weft list` and `weft.list` can list, and what is compared unless told otherwise.

Imports nothing: `--help` names both.
"""

DEFAULT_SCHEMES = ("ecmp", "spray", "reps", "ethereal")
"""What `weft compare`, `weft.compare` and `weft run` on a workload file compare."""

KINDS = {
    "schemes": "load balancers",
    "transports": "congestion controls and loss recoveries",
    "workloads": "patterns, collectives and their algorithms, files, traces, models",
    "topologies": "fabrics, and files that describe one",
    "presets": "keys that go together",
    "sections": "the other keys of an experiment: failures, probes, limits, sweeps, reports",
    "variables": "environment variables of the NCCL plugin and the PyTorch back end",
    "software": "what else takes source ports of a plan: weft plan --hosts-for",
}
"""Each kind with what it holds; `weft.api` has a function of the same name."""
