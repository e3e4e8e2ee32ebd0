"""The data dictionary: what each column of each result table means.

`tests/test_site.py` holds it against the columns of real runs. Where the columns are counted:
`crates/experiment/src/measure.rs`.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = (
    ("_gb_s", "GB/s"),
    ("_bps", "bit/s"),
    ("_bytes", "bytes"),
    ("_bytes_difference_pct", "%"),
    ("_pct2", "%²"),
    ("_pct", "%"),
    ("_s", "s"),
)
"""By the end of a name; of several that fit the first counts."""
_BYTES = {"bytes"}

ROWS: Mapping[str, str] = {
    "runs": "A row for each run: who it is, the swept keys (a column each, after `key`; "
    "`swept.NAME` where a result has that name), and what came out.",
    "flows": "A row for each message of each run.",
    "links": "A row for each port, that is for each direction of each link.",
    "collectives": "A row for each collective of each job.",
    "nodes": "A row for each node of each rank of each job; only with `--timeline` "
    "(`probe.timeline`).",
    "messages": "A row for each message between ranks over the fabric; only with `--timeline`.",
    "series": "A row for each sample of each probe (`[probe]`).",
    "timing": "A row for each run: what it cost. It differs between machines.",
    "check": "A row for each run that `--check` did over packet by packet, with the columns of the "
    "run and these. Counters: the run's less those by packets.",
}
"""What a row of each table is."""

_WHOSE = {
    "run": "number of the run, from 0; joins the tables",
    "experiment": "name of the experiment's file, without its ending",
    "scheme": "the load balancer, with its number where it has one",
    "seed": "seed of everything random",
    "fidelity": "how the run was simulated: packet, fast or fluid",
}
_JOB = {
    "job": "number of the job, from 0",
    "job_name": "its name, where jobs have names",
}

TABLES: Mapping[str, Mapping[str, str]] = {
    "runs": {
        "run": _WHOSE["run"],
        "experiment": _WHOSE["experiment"],
        "label": "the swept values in words",
        "key": "hash of the experiment with all defaults, the seed and the native code's version; "
        "the name of the run's folder",
        "scheme": _WHOSE["scheme"],
        "switch_changes": "what the scheme asks of switches beyond hashing",
        "nic_changes": "what the scheme and its loss recovery ask of NICs",
        "workload": "pattern, collective, or name of the file, trace or model",
        "algorithm": "algorithm of the collective; empty where there is none",
        "ranks": "ranks of all jobs; 0 where the workload has none",
        "size_bytes": "of a message of a pattern, or of a rank's buffer; else all payload",
        "hosts": "hosts (NICs) of the fabric",
        "messages": "messages over the fabric",
        "payload_bytes": "payload of all of them",
        "seed": _WHOSE["seed"],
        "fidelity": _WHOSE["fidelity"],
        "skipped_pct": "packet-hops that were worked out instead of simulated, of all",
        "cct_s": "completion time: until the last receiver has its last byte",
        "bound_s": "lower bound on it, for every scheme and every way of splitting",
        "slowdown": "cct_s / bound_s",
        "normalised": "cct_s over the time that the busiest host's payload takes at line rate",
        "packets": "data packets sent, those sent again included",
        "control_packets": "acknowledgements, NACKs, pulls and requests sent",
        "acks": "acknowledgements among them",
        "nacks": "NACKs among them",
        "pulls": "grants of credit among them (RCCC)",
        "packet_hops": "data and control packets times the links that each went over",
        "drops": "packets that found no room in a queue, or were thrown away with one",
        "marks": "packets that a switch marked (ECN)",
        "wire_drops": "packets lost on links that were down or flaky",
        "trims": "packets cut to their headers",
        "trimmed_bytes": "payload that was cut off",
        "header_drops": "of the drops: packets that had been trimmed before",
        "pauses": "PFC pause frames",
        "full_buffers": "`fluid`: switches whose buffers queues would fill (pauses, losses)",
        "retransmits": "data packets sent again",
        "spurious_retransmits": "of these: packets that had arrived all the same",
        "spurious_per_flow": "spurious retransmits a message",
        "worst_flow_loss": "packets that the message lost that lost most",
        "reordered": "packets that came after a later one of their queue pair",
        "reorder_mean": "how many numbers these were behind, in the mean",
        "reorder_max": "how many at the most",
        "rto_s": "time-out that senders had, or began with",
        "subflows": "queue pairs for accounting that a flow was cut into (transport.subflows)",
        "max_qps": "most queue pairs that any NIC had active at once",
        "established_qps": "most queue pairs that any NIC ever opened",
        "fct_min_s": "shortest completion time of a message",
        "fct_mean_s": "mean of them",
        "fct_p50_s": "median of them",
        "fct_p99_s": "99th percentile of them",
        "fct_max_s": "longest of them",
        "peak_queue_bytes": "longest queue of any port",
        "max_goodput_gb_s": "most payload that all hosts together received over an interval of "
        "probe.goodput; 0 without that",
        "uplink_usage_pct": "how busy the leaves' uplinks were, in the mean",
        "uplink_variance_pct2": "variance of that over the uplinks of a leaf, mean over leaves",
        "uplink_spread_pct": "most used less least used uplink of a leaf, of the worst leaf",
        "collectives": "collectives of all jobs",
        "algbw_gb_s": "algorithm bandwidth as nccl-tests have it: all bytes over all times",
        "busbw_gb_s": "bus bandwidth as nccl-tests have it",
        "compute_s": "computation of the rank that computes longest",
        "exposed_s": "the rest: cct_s less compute_s",
        "leaf_flows": "most flows that one leaf knew at once (schemes with a state in leaves)",
        "leaf_letters": "packets that leaves sent to each other, or spines to leaves",
        "reroutes": "how often a known flow went on by another path",
        "reorder_queues": "most queues that one leaf held back at once (ConWeave)",
        "reorder_bytes": "most bytes in them",
        "held_packets": "packets that were held back",
        "held_mean_s": "for how long, in the mean",
        "held_max_s": "for how long at the most",
        "flushes": "queues let go because their time was over",
        "premature_flushes": "of these: what was waited for came later",
        "blocked_nacks": "NACKs that leaves stopped (Themis)",
        "late_nacks": "of these: sent after all, as the packet was lost",
        "background_messages": "messages of the background; only where there is one",
        "background_bytes": "their payload",
        "background_fct_mean_s": "their mean completion time",
        "background_fct_p99_s": "99th percentile of it",
    },
    "flows": {
        **_WHOSE,
        "message": "number of the message, from 0",
        "src": "sending host",
        "dst": "receiving host",
        "bytes": "payload",
        "start_s": "when it was posted",
        "finish_s": "when it was complete",
        "fct_s": "finish_s less start_s",
        "queue_pairs": "queue pairs (subflows) that carried it",
        "retransmits": "packets sent again",
        "spurious_retransmits": "of these: packets that had arrived all the same",
        "lost": "packets lost",
        "reordered": "packets that came after a later one of their queue pair",
        "reorder_max": "how many numbers behind at the most",
    },
    "links": {
        **_WHOSE,
        "port": "number of the port",
        "from": "host or switch that sends",
        "to": "host or switch that receives",
        "tier": "nic, leaf-up, agg-up, core-down, spine-down or leaf-down",
        "rate_bps": "rate of the link when nothing fails",
        "bytes": "bytes on the wire, headers included",
        "packets": "packets on the wire",
        "utilisation": "share of the line rate used until the last packet of the run",
        "drops": "packets dropped here",
        "trims": "packets trimmed here",
        "marks": "packets marked here",
        "pauses": "PFC pause frames that stopped this port",
        "paused_s": "for how long it was stopped",
        "peak_queue_bytes": "longest queue",
    },
    "collectives": {
        **_WHOSE,
        **_JOB,
        "operation": "all-reduce, all-gather, ...",
        "algorithm": "how it was done",
        "name": "its name in the trace or model",
        "group": "the group of ranks",
        "ranks": "ranks in it",
        "bytes": "size as nccl-tests count it",
        "start_s": "when its first rank began",
        "finish_s": "when its last rank was done",
        "time_s": "finish_s less start_s",
        "algbw_gb_s": "algorithm bandwidth",
        "busbw_gb_s": "bus bandwidth",
    },
    "nodes": {
        **_WHOSE,
        **_JOB,
        "rank": "the rank, counted through all jobs",
        "job_rank": "the rank within its job",
        "node": "number of the node in its rank's graph",
        "name": "its name in the trace or model",
        "work": "kind of node: computation, collective, send, receive",
        "start_s": "when it began",
        "finish_s": "when it was over",
    },
    "messages": {
        **_WHOSE,
        "message": "number of the message, from 0",
        "src_rank": "sending rank, counted through all jobs",
        "dst_rank": "receiving rank",
        "node": "the sender's node",
        "bytes": "payload",
        "start_s": "when it was posted",
        "finish_s": "when it was complete",
    },
    "series": {
        **_WHOSE,
        "time_s": "when the sample was taken",
        "name": "what was sampled",
        "kind": "port, switch or goodput",
        "bytes": "in the queue or memory; of goodput: received since the sample before",
    },
    "timing": {
        "run": _WHOSE["run"],
        "experiment": _WHOSE["experiment"],
        "key": "as in runs.parquet",
        "wall_s": "time of the simulation",
        "build_s": "time to set it up",
        "events": "events of the engine",
        "threads": "threads of the simulation",
    },
    "check": {
        "packet_key": "key of the run by packets",
        "packet_cct_s": "its completion time",
        "difference_pct": "cct_s less packet_cct_s, of packet_cct_s",
        "core_s": "simulation time times cores",
        "packet_core_s": "the same by packets",
        "times_as_fast": "packet_core_s / core_s",
        "packets_difference": "difference of packets",
        "control_packets_difference": "difference of control_packets",
        "packet_hops_difference": "difference of packet_hops",
        "max_qps_difference": "difference of max_qps",
        "established_qps_difference": "difference of established_qps",
        "link_bytes_difference_pct": "bytes that are on another link, or more or fewer, of all",
    },
}
"""By table, the columns in their order."""


def unit_of(column: str) -> str:
    """The unit of a column by its name; empty for names, counts and ratios."""
    if column in _BYTES:
        return "bytes"
    return next((unit for end, unit in _UNITS if column.endswith(end)), "")
