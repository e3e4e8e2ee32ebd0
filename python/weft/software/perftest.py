"""perftest: a list of flow labels on each command line, for any two hosts another one."""

from __future__ import annotations

from collections.abc import Sequence

from weft.plans.hosts import flow_label
from weft.software.planned import Planned
from weft.software.program import Program

_FIRST_LISTENED = 18515


def _ports(planned: Planned, src: int, dst: int) -> Sequence[int]:
    return planned.pair(src, dst)


def _settings(planned: Planned, host: int) -> Sequence[str]:
    """A script: `server` waits for all that send to this host, `client` sends to its peers."""
    serves = [
        _command(planned, src, host, place) for place, src in enumerate(planned.senders(host))
    ]
    sends = [
        f"{_command(planned, host, dst, place)} {planned.cluster.hosts[dst].address}"
        for dst, place in zip(planned.peers(host), planned.places(host), strict=True)
    ]
    given = f'-d "$device" -x "$gid" --tclass={planned.traffic_class} "$@"'
    return [
        "# What follows the role goes to ib_write_bw: -D 10 -s 1048576",
        "role=${1:-}; [ $# -gt 0 ] && shift",
        "device=${DEVICE:-mlx5_0} gid=${GID:-3} all='' status=0",
        f'run() {{ ib_write_bw {given} & all="$all $!"; }}',
        "# In the background they do not hear of Ctrl-C.",
        "trap 'kill $all 2>/dev/null' INT TERM",
        'case "$role" in',
        "server)",
        *serves,
        ";;",
        "client)",
        *sends,
        ";;",
        '*) echo "usage: [DEVICE=mlx5_0] [GID=3] sh $0 server|client [OPTION ...]" >&2; exit 2 ;;',
        "esac",
        'for one in $all; do wait "$one" || status=1; done',
        "exit $status",
    ]


def _command(planned: Planned, src: int, dst: int, place: int) -> str:
    """Both ends name the same labels; the sender's make the ports of data.

    `place`: which of the senders to `dst` it is.
    """
    labels = [flow_label(port) for port in planned.pair(src, dst)]
    joined = ",".join(map(str, labels))
    return f'run -q {len(labels)} --flow_label={joined} -p {_FIRST_LISTENED + place} "$@"'


SOFTWARE = Program(
    title="perftest",
    known="commit 00b55b6 (perftest_resources.c); NICs whose drivers fold flow labels as rdma-core "
    "does (mlx5, irdma, hns, ionic)",
    survives="all paths; each queue pair of two hosts sends as much as the others",
    uncertain=(
        "older versions take one label for all queue pairs, or only for raw Ethernet: see "
        "ib_write_bw --help",
        "queue pairs of all steps of the plan send at once",
    ),
    settings=_settings,
    ports=_ports,
    suffix="sh",
)
