"""The native half of Weft: experiments to runs to columns (crates/python)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from weft._types import Capacity, FabricTables, Outcome, Planned, SurveyRules, Tuning
from weft.result import Result

class ExperimentError(ValueError):
    """A mistake in an experiment: one line, ``<source>: <key>: <what is wrong>; <mend>``."""

class StallError(RuntimeError):
    """A run in which nothing made progress: which flows wait for what."""

    result: Result | None
    """Of `simulate` and `compare`: the runs that finished, if any did."""

class Cancelled(RuntimeError):
    """A run that was cancelled."""

@final
class Cancel:
    """A flag that ends a run from another thread."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """End the runs that were given this flag, soon."""

@final
class Progress:
    """What is known of one run while it goes on."""

    def __new__(cls) -> Progress: ...
    def state(self) -> tuple[int, float, float, tuple[float, float], int] | None:
        """Give packet-hops at least, the share of packets that have arrived, and seconds.

        Seconds count from the begin of the simulation, before which there is nothing. Then come
        seconds and share of the first look that found a packet, and the payload of all, in bytes.
        """

code_version: str
"""Version and hash of all native sources; part of the key of every result."""
version: str
"""The version of Weft, as releases have it."""
commit: str
"""The commit that the core was built from, `.dirty` behind it if files differed; empty: unknown."""
target: str
"""What the core was built for, as Rust names it: `x86_64-unknown-linux-gnu`."""
has_assertions: bool
"""The core checks itself while it simulates, which takes longer: `make test` builds it so."""

def hold_panics() -> None:
    """Keep panics of all threads for :func:`held_panics`, instead of having Rust print them."""

def held_panics() -> list[str]:
    """Give the panics held so far, as ``message (file:line)``, and forget them."""

def work(experiment_json: str, seed: int) -> tuple[int, int]:
    """Give the data packets and packet-hops that one experiment takes at least under one seed."""

def panic_for_tests(message: str, alone: bool = False) -> None:
    """Panic, on a thread of its own if ``alone``: so that tests see what becomes of it."""

def expand(
    text: str,
    format: str,
    source: str,
    overrides: list[tuple[str, str]],
    seeds: int | None = None,
    quick: bool = False,
) -> str:
    """List all runs of an experiment, as JSON; if ``quick``, with its ``[quick]`` over it.

    ``format`` is ``"toml"`` or ``"json"``; ``source`` names the text in errors, and workload
    and topology files are looked for in its folder. The result holds ``title``, ``notes``, ``x``,
    ``ended`` (keys no longer swept), ``shown`` (``report``, ``best``, ``printed`` as written),
    ``runs`` (``experiment``, ``seed``, ``key``, ``swept``, ``label``) and ``warnings``.
    """

def quantity(text: str) -> tuple[float, str] | None:
    """Read seconds (``"time"``), ``"bytes"`` or bits per second (``"rate"``): a number with a unit.

    None for anything else.
    """

def nccl_size(text: str) -> int:
    """Read bytes: a number with a unit, or as nccl-tests writes it (8, 64K, 1M, 1G)."""

def run(
    experiment_json: str,
    seed: int,
    cancel: Cancel | None = None,
    *,
    threads: int | None = None,
    share: int = 1,
    progress: Progress | None = None,
) -> Outcome:
    """Simulate one experiment of :func:`expand`; the GIL is released meanwhile.

    It runs on ``threads`` threads; without that on as many as are worth while for it, but no
    more than ``share``. The result holds ``row`` (column to value), ``timing`` (``wall_s``,
    ``build_s``, ``events``, ``threads``: the only part that depends on threads), ``flows``,
    ``links`` and, of jobs, ``collectives``, ``nodes`` and ``messages`` (column to array; lists for
    text), ``series`` (``time_s``, ``names``, ``kinds``,
    ``bytes``) and ``warnings``.
    """

def capacity(experiment_json: str, seed: int) -> Capacity:
    """Ask whether the fabric of one experiment of :func:`expand` carries its workload.

    The result holds ``at_s``, ``answer``, ``factor``, ``limit`` and ``bottleneck`` (``words``,
    ``capacity_bps``, ``demand_bps``, ``links``) of the worst time, ``times`` (the first four for
    each), and ``inequality`` (``with_part_lost``, ``with_part_kept``) where it applies.
    """

def fabric_tables(experiment_json: str, seed: int) -> FabricTables:
    """Tell what the fabric of one experiment of :func:`expand` consists of, and what fails in it.

    The result holds ``hosts``, ``planes``, ``is_clos`` and three tables (column to array; lists
    for text), as ``crates/experiment/src/fabric_tables.rs`` describes them: ``switches`` (``name``,
    ``tier``, ``plane``, ``group``), ``links`` (``port``, ``reverse``, ``host``, ``switch``,
    ``upper``, ``rate_bps``, ``delay_s``; 4294967295 is no host or no switch) and ``failures``
    (``port``, ``kind``, ``lost``, ``start_s``, ``end_s``).
    """

def trace_convert(
    workload: str,
    options: Sequence[tuple[str, str]],
    to: str,
    *,
    ranks: int | None = None,
    unfold: bool = False,
    no_compute: bool = False,
) -> tuple[list[tuple[str, bytes]], list[tuple[str, int]]]:
    """Convert a workload (as ``weft compare --workload`` takes it) into the format ``to``.

    ``to`` is the name of a format, or of a file whose end tells it; ``options`` are keys of
    ``[workload]`` with values as ``--set`` takes them. Returns ends of names with contents of
    files, and what was left out or written otherwise, with how often.
    """

def trace_info(
    path: str,
    options: Sequence[tuple[str, str]],
    folder: str | None = None,
    ranks: int | None = None,
) -> str:
    """Describe a trace in ``folder``, as JSON; ``ranks`` settles a number that it leaves open.

    ``options`` are keys of ``[workload]`` with values as ``--set`` takes them. It holds ``name``,
    ``ranks`` (false if open), ``programmes``, ``nodes``, ``kinds``, ``dependencies``, ``depth``,
    ``compute_s``, ``host_compute_s``, ``operations``, ``collectives``, ``sends``, ``receives``,
    ``process_groups`` (the file, or false), ``unsupported``, ``remarks``, ``problems``,
    ``more_problems``, ``stuck`` and ``runs_on_data`` (whether control dependencies alone are the
    problem).
    """

def workload_key(path: str) -> str | None:
    """Tell under which key of ``[workload]`` a file goes: ``trace``, ``file``, or none."""

def topology_info(path: str) -> str:
    """Describe a topology file, as JSON.

    It holds ``name``, ``kind``, ``hosts``, ``switches``, ``links``, ``pods``, ``tiers``,
    ``levels``, ``oversubscription``, ``switch_latency_s``, ``nodes`` (what each node of a file that
    numbers or names them is called here), ``file_nodes`` (its names), ``in_order``, ``fabric`` (the
    keys that say the same), ``remarks`` and ``problems``; false is what the file does not say.
    """

def cluster(text: str, format: str, source: str, seed: int = 1) -> str:
    """Read a cluster, as JSON: what stands under ``cluster`` in a plan file.

    ``format`` is ``"toml"`` or ``"json"``; ``source`` is the file that errors name, and beside
    which topology files are looked for. ``seed`` draws failures that are random.
    """

def cluster_keys() -> list[str]:
    """List all keys of ``[cluster]``."""

def cluster_ports(protocol: str) -> int:
    """Count the destination ports of ``udp`` or ``tcp`` where ``[cluster]`` does not say."""

def net_host(
    experiment_json: str,
    seed: int,
    host: int,
    addresses: list[str],
    port: int,
    dscp: int,
    control: str,
    *,
    limit_s: float,
    tcp: bool = False,
    planned: tuple[list[Planned], int] | None = None,
    path_addresses: list[list[str]] | None = None,
) -> dict[str, Any]:
    """Send and receive as one host of an experiment of :func:`expand`, over UDP or TCP.

    It runs in the network namespace of the caller, where ``addresses[host]`` is its own, until the
    Unix socket ``control`` says stop. All that it sends has ``dscp``. ``planned`` stands for the
    experiment's workload: messages, and payload that will come. ``path_addresses`` are those
    of hosts by uplink, where switches route by them. The result is what it counted:
    ``crates/net/src/report.rs``.
    """

def discover(
    source: str,
    targets: list[str],
    *,
    hops: list[int],
    needs: list[list[tuple[list[str], int]]],
    protocol: str,
    port: int,
    dscp: int,
    ports: tuple[int, int],
    seed: int,
    rules: SurveyRules,
    known: str | None = None,
    tell: Callable[[str], bool] | None = None,
) -> str:
    """Find out which source ports of this host take which paths to some addresses.

    These are ``hops`` switches away, each; an empty list: nobody knows. ``needs`` has for each the
    addresses of switches that some ports shall meet, and how many; empty: all paths are looked for.
    ``protocol`` (``udp``, ``tcp``) and ``port`` are those of the traffic; ``ports`` the first and
    the last source port; ``rules`` say how it asks. ``known`` is a table of paths
    of before, as JSON: targets that were done are checked, others go on. ``tell`` gets what is
    known so far once a second, and says whether to go on. The result is an entry of ``sources`` of
    a table of paths, as JSON.
    """

def simulate_discovery(
    cluster_json: str,
    source: int,
    targets: list[int],
    *,
    needs: list[list[tuple[int | None, int]]],
    hash: str,
    seed: int,
    burst: int,
    per_second: float,
    silent: int,
    lost: float,
    target_answers: bool,
    round_trip_s: float,
    rules: SurveyRules,
) -> dict[str, Any]:
    """Tell what it would cost a host of a cluster to discover its paths over simulated switches.

    ``needs`` has path ids for each target (None: any) and how many ports of them are needed; an
    empty list: all paths. Switches hash by ``hash`` (``mixed``, ``crc32``, ...), answer ``burst``
    probes at once and then ``per_second`` (zero: all); ``silent`` of those above the leaf never do,
    and a share ``lost`` of the probes is lost. ``seconds`` are simulated (None: more than a month);
    each target has its ``paths``, ``ports``, ``predicted`` ports, ``wrong`` ones, whether its hash
    is ``linear``, and whether it is ``complete``: all that was needed, or all paths.
    """

def check_paths(text: str, source: str) -> None:
    """Refuse a text that is no table of discovered paths."""

def named_paths(
    cluster_json: str, table: str, source: str
) -> tuple[list[tuple[int, int, int, list[int]]], list[str], int]:
    """Name the paths of a table by a cluster.

    Rows of source host, target host, path id and source ports; addresses that answered and are none
    of the cluster's; and how many ports have no name.
    """

def bench_net(
    *,
    rank: int,
    ranks: int,
    meet: str,
    patience_s: float,
    operation: str,
    sizes: list[int],
    iterations: int,
    warm_up: int,
    checks: int,
    channels: int,
    chunk: int,
    plugin: tuple[Path, str, list[int], int | None] | None,
    connections: int,
    address: str | None,
    verbose: bool,
    begin: Callable[[str], None],
    row: Callable[[dict[str, Any]], None],
) -> None:
    """Measure collectives as one of ``ranks``, over a plugin or plain sockets.

    ``plugin`` is a file, the version of its table (``v8`` to ``v12``), the number of a NIC or of
    several to be made one, and the traffic class of the communicator.
    ``begin`` is told what is measured; ``row`` each size: ``size_bytes``, ``count``, ``time_s``,
    ``slowest_s``, ``algorithm_bytes_per_s``, ``bus_bytes_per_s``, ``wrong``. A network that fails,
    or a rank that is gone, raises RuntimeError.
    """

def check_environment(*, outputs: bool = False) -> list[str]:
    """Refuse what this process's ``WEFT_*`` variables ask for, if it cannot be.

    With `outputs` also what could not be written or served here. Returns the plugin's warnings.

    Raises ExperimentError: variable, or file and key, and the mend.
    """

def paralet_slowdown(queue_pairs: int, ports: int) -> float:
    """Evaluate equation 1 of ParaLet (2024)."""

def paralet_queue_pairs(slowdown: float, ports: int) -> int:
    """Count the queue pairs with which equation 1 promises a slowdown."""

def paralet_ports(deviations: float) -> float:
    """Tell of how many ports the fullest is so many standard deviations above the mean."""

def paralet_tuning(
    experiment_json: str,
    slowdown: float | None = None,
    queue_pairs: int | None = None,
    accelerators: int | None = None,
) -> Tuning:
    """Choose m and S for the fabric of one experiment of :func:`expand`.

    One of ``slowdown`` and ``queue_pairs`` is given; ``accelerators`` are its hosts unless told.
    """

def make_plan(
    cluster: tuple[str, str, str],
    job: tuple[str, str, str],
    scheme: str,
    seed: int,
    overrides: list[tuple[str, str]],
    most_subflows: int,
    paths: tuple[str, str] | None = None,
) -> str:
    """Plan a job on a cluster: the text of the plan file.

    Both are a text, how it is written (``toml``, ``json``; a job also ``short``), and its source. A
    step of more than ``most_subflows`` keeps none. Source ports are taken from ``paths``, a table
    of discovered paths and its source, if it is given.
    """

def plan_stays(experiment_json: str, seed: int) -> str | None:
    """Say that every scheme comes out alike, if all that the job sends takes the only path."""

def path_needs(
    cluster: tuple[str, str, str],
    job: tuple[str, str, str],
    scheme: str,
    seed: int,
    overrides: list[tuple[str, str]],
) -> dict[str, NDArray[np.uint32]]:
    """List the paths that a job takes between hosts in different racks: what it needs of ports.

    Columns ``src``, ``dst``, ``path`` (its id) and ``subflows``, the most that take it in one step.
    """

def check_plan(text: str, source: str, keys: list[str]) -> None:
    """Refuse a text that is no plan file, is of another version, or lacks one of ``keys``."""

def check_cluster(cluster_json: str, source: str) -> None:
    """Refuse what no cluster file gives, in the ``cluster`` of a plan (``source``)."""

def plan_for_hosts(scheme: str, seed: int, cluster_json: str) -> str:
    """Write a plan file that says only what hosts read."""

def plan_host(experiment_json: str, seed: int, cluster_json: str, host: int, steps: int) -> str:
    """Plan again what one host sends in all steps: its entry of ``hosts``, as JSON.

    Without the number of queue pairs for NCCL, which follows from all hosts.
    """

def port_segments(cluster_json: str, scheme: str) -> str:
    """List the source ports of every uplink of a cluster by switch, as ``scheme`` wants them."""

def path_addresses(cluster_json: str) -> str:
    """List the addresses of hosts by path, and their prefixes, as JSON; ``null``: none."""

def enforced(experiment_json: str) -> str:
    """Tell what makes packets take their paths: ``segments``, ``hash``, ``path-id`` or ``none``."""

def plan_subflows(
    experiment_json: str, seed: int, step: int, first: int, end: int
) -> dict[str, Any]:
    """Plan the subflows of one step that hosts from ``first`` to before ``end`` send: columns."""

def port_loads(
    experiment_json: str,
    seeds: tuple[int, int],
    steered: bool,
    src: NDArray[np.uint32],
    dst: NDArray[np.uint32],
    bytes: NDArray[np.uint64],
    source_port: NDArray[np.uint16],
) -> NDArray[np.uint64]:
    """Sum what queue pairs with these source ports put on every link of a plan, in bytes.

    ``seeds`` are those of failures and of the switches' hashes. Switches do as the scheme says
    where ``steered``, else all of them hash.
    """

def plan_given(experiment_json: str, seed: int, most_messages: int) -> dict[str, Any]:
    """List what a plan is made of: ``links`` as in the file, ``enforce``, ``bound_s``, ``steps``.

    Of each step ``name``, ``times``, ``messages``, ``bytes``, and ``each`` message (columns
    ``src``, ``dst``, ``bytes``); None where there are more than ``most_messages``.
    """

def cores() -> int:
    """Count the cores that this process may use, with affinity and quotas in mind."""

def catalogue(kind: str) -> str:
    """List ``schemes``, ``transports``, ``workloads``, ``topologies`` or ``variables``, as JSON."""

def shorthand(kind: str, text: str) -> str:
    """Expand a short form of a ``fabric`` or ``workload`` to its table, as JSON."""

class GroupError(RuntimeError):
    """An operation of a group that did not come to its end, in one line."""

@final
class Nic:
    """A NIC of this process, as ``WEFT_*`` variables and the machine say: a socket, a thread."""

    name: str
    """Of its interface, or of its host of the fabric."""
    scheme: str
    stats: str | None
    """The file that statistics go to in the end."""
    warnings: list[str]
    chosen: str | None
    """Which NIC and scheme, where ``WEFT_LOG`` asks for it."""

    def __new__(cls, index: int) -> Nic:
        """Open the NIC number ``index``, counted round; with planes, those of a rail as one."""

    def listen(self) -> Rank:
        """Begin to listen, as a rank of a group to be."""

    def statistics(self) -> str:
        """Count bytes, time-outs and re-routes by peer and path, as JSON."""

@final
class Rank:
    """A rank that listens, and does not know the others yet."""

    def handle(self) -> bytes:
        """Return what the others need to connect. It holds a secret."""

    def join(self, handles: list[bytes], rank: int, limit_s: float) -> Joined:
        """Join the ranks with these handles, by number. No operation may take longer than this."""

@final
class Joined:
    """A rank of a group."""

    def submit(
        self,
        operation: str,
        element: str,
        reduction: str,
        inputs: list[tuple[int, int]],
        outputs: list[tuple[int, int]],
        keep: object,
        peer: int | None = None,
        tag: int = 0,
        limit_s: float | None = None,
        before: Sequence[tuple[int, int, int, Sequence[int], Sequence[int]]] = ...,
        after: Sequence[tuple[int, int, int, Sequence[int], Sequence[int]]] = ...,
    ) -> Pending:
        """Begin an operation on memory, by address and bytes: ``crates/group/src/call.rs``.

        ``keep`` holds the memory and is kept until the operation is over. Until then nobody writes
        what is read, nor touches what is written. ``peer`` is the root, or the other end; without
        one a receive is from whoever sends. The operation may take ``limit_s``; if that is not
        given, what the group has for all. ``before`` is copied to dense memory as it begins, and
        ``after`` from there before it is over: addresses of elements and of dense memory, bytes of
        an element, shape, strides in elements.
        """

    def set_limit(self, limit_s: float) -> None:
        """Set how long operations that are submitted from now on may take."""

    def close(self) -> None:
        """Close all channels; what is under way fails."""

@final
class Pending:
    """An operation under way."""

    def wait(self, limit_s: float | None = None) -> bool:
        """Wait, at most for so many seconds; tell whether it is over.

        Raises:
            GroupError: It failed.
        """

    def is_over(self) -> bool:
        """Tell whether it is over, well or not."""

    def error(self) -> str | None:
        """Say why it failed, if it did."""

    def source(self) -> int | None:
        """Of a receive that is over, return the rank that has sent."""

@final
class Vigil:
    """Operations that somebody is to be told of when they are over."""

    def add(self, pending: list[Pending], number: int) -> None:
        """Have ``number`` told when all of these are over."""

    def next(self, done: bool) -> int | None:
        """Wait for the next number; none if it was closed. ``done``: this thread has had one."""

    def leave(self) -> None:
        """Have no other number after the last one."""

    def close(self) -> None:
        """End the waiting, when all that are over have been told."""
