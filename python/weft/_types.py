"""The shapes of what the native core takes and gives: types only, nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

Row = dict[str, Any]
"""One run's scalar results (`cct_s`, `bound_s`, ...), by column name."""


class Needs(TypedDict):
    """What a scheme asks for beyond ECMP over go-back-N, in words; None for nothing."""

    switches: str | None
    """The column `switch_changes`."""
    nics: str | None
    """The column `nic_changes`."""


class Loss(TypedDict):
    """How much longer a scheme takes than the best; all None where it loses nowhere."""

    loser: str | None
    """ECMP, or the first scheme where there is none; the slowest where that is the best itself."""
    loss: float | None
    """Its completion time over the best one's, less one; None where their seeds differ, as where
    one of them stalled."""
    half_95: float | None
    """Half the width of the 95 % confidence interval of `loss`; None for one seed."""
    significant: bool | None
    """Whether the table tells both apart: the interval of the best compared with this one (of this
    one with the best, where that is the reference) leaves out zero. None for one seed."""


class VerdictCase(Loss):
    """The verdict on one combination of the swept values."""

    case: str
    """The values, such as `size 1MB`; empty if only schemes are compared."""
    best: str
    """The scheme with the shortest mean completion time, of those that finished most seeds."""
    cct_s: float
    """Its mean completion time in seconds."""
    slowdown: float | None
    """The same over the lower bound; None where runs do not tell."""
    equals: list[str]
    """Schemes that seeds do not tell apart from the best."""
    stalled: dict[str, int]
    """In how many seeds a scheme stalled, where it did in some."""


class Verdict(Loss):
    """What a comparison says: `weft compare --json` and `Result.verdict`.

    Of several cases, `loser` and what follows are those of the case in which it loses most.
    """

    text: str
    """The two sentences that `weft compare` ends with."""
    best: str
    """The scheme that is the best one in most cases."""
    slowdown: float | None
    """Its completion time over the lower bound, in the worst case of those where it is the best."""
    needs: Needs
    """What it asks of switches and NICs."""
    cases: list[VerdictCase]
    """One for each combination of the swept values, but for those of the schemes."""


class RunSpec(TypedDict):
    """One run of an experiment: everything the simulator needs, every default written out."""

    experiment: dict[str, Any]
    seed: int
    key: str
    """Hash of the resolved experiment, the seed and the code version."""
    swept: dict[str, Any]
    """The values of the swept keys in this run."""
    label: str


class Expanded(TypedDict):
    """An experiment file, checked and unrolled into its runs."""

    title: str
    notes: str
    x: str | None
    """The swept key that goes on the x axis, where the experiment names one."""
    ended: list[str]
    """Swept keys that an option gave a single value."""
    shown: dict[str, Any]
    """`report`, `best` and `printed` as written."""
    runs: list[RunSpec]
    warnings: list[str]


class Timing(TypedDict):
    """Cost of a run. It differs between machines, so it is stored apart from the results."""

    wall_s: float
    build_s: float
    events: int
    threads: int
    """Number of threads of the simulation."""


Planned = tuple[int, int, list[int], list[int], list[tuple[int, int | None, int | None]]]
"""A message that was planned: its number, the receiver, messages that must have been sent and
received before, and its pieces as payload, path id and source port."""


class FabricTables(TypedDict):
    """What a fabric consists of and what fails in it: arrays by column, lists for names."""

    hosts: int
    planes: int
    is_clos: bool
    switches: dict[str, Any]
    links: dict[str, Any]
    failures: dict[str, Any]


class Series(TypedDict):
    """Samples of probes: one array of bytes for each name, all at the same times."""

    time_s: Any
    names: list[str]
    kinds: list[str]
    bytes: list[Any]


class Tuning(TypedDict):
    """ParaLet's two parameters for a fabric, and the resulting slowdown and rate."""

    queue_pairs: int
    """Queue pairs per NIC: m of ParaLet (2024)."""
    flowlet_bytes: int
    """Payload of a flowlet: S of ParaLet (2024)."""
    slowdown: float
    """Expected slowdown, by equation 1."""
    rate_bps: int
    """Rate of a queue pair."""


class Outcome(TypedDict):
    """The results of one run: scalars, and one array per column for the tables."""

    row: Row
    timing: Timing
    flows: Mapping[str, Any]
    links: Mapping[str, Any]
    collectives: Mapping[str, Any]
    nodes: Mapping[str, Any]
    messages: Mapping[str, Any]
    series: Series
    warnings: list[str]


class Share(TypedDict):
    """How much of all demands is carried at once, from some time on."""

    at_s: float
    answer: Literal["yes", "no", "borderline"]
    factor: float
    """This share is carried by a routing that is known."""
    limit: float
    """Above this share nothing is."""


class WeightedLink(TypedDict):
    """A link of a bottleneck."""

    name: str
    capacity_bps: int
    weight: int
    """How much it counts; 1 where the bottleneck is a cut."""


class Bottleneck(TypedDict):
    """Links whose capacity the demands use up first, both summed with their weights."""

    words: str
    capacity_bps: float
    demand_bps: float
    links: list[WeightedLink]


class Inequality(TypedDict):
    """Whether the inequality that McClure et al. (2025) print in appendix A holds."""

    with_part_lost: bool
    """With `p` the part of the bandwidth that is lost, as their text says."""
    with_part_kept: bool


class Capacity(Share):
    """Whether a fabric carries a workload: the worst time, and all."""

    bottleneck: Bottleneck | None
    times: list[Share]
    """One for each time when capacities change."""
    inequality: Inequality | None
    """Where it applies: degraded links of every pod of a fat-tree under an all-to-all."""


class CapacityAnswer(Capacity):
    """The same for one combination of an experiment."""

    experiment: str
    label: str
    swept: dict[str, Any]
    seed: int
    """Seed of random failures and random workloads."""


class CatalogueOption(TypedDict):
    """A key that an entry of the catalogue understands."""

    key: str
    default: str
    words: list[str]
    """What it may be, where that is one of some words."""
    kind: str
    """What it may be, with its range and its unit; empty where nothing says it."""
    meaning: str


class CatalogueEntry(TypedDict):
    """A scheme, transport, workload or topology, as `weft list` shows it."""

    key: str
    """What chooses it: `workload.collective`; of sections `section`."""
    name: str
    """What to write there; of a file, how its name ends."""
    summary: str
    source: str
    options: list[CatalogueOption]
    runs_on: NotRequired[list[str]]
    """Of a scheme: simulator, planner, test bed, sockets, verbs."""
    source_ports: NotRequired[str]
    """Of a scheme: `segments` if leaves have to map source ports to uplinks, else `hashed`."""
    switch_features: NotRequired[list[str]]
    """Of a scheme: what switches on sale can do for it, `trimming`, `adaptive-routing` or
    `queue-pair-hashing`."""


class SurveyRules(TypedDict):
    """How a host looks for paths (`weft.discover.survey.Survey`)."""

    unseen: float
    ports_per_path: int
    expected: int
    most_ports: int
    most_hops: int
    rate: float
    time_out_s: float
    tries: int
    sentinels: int
