"""The platforms that `weft switch-config` writes for: their files, and what they cannot do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from weft.errors import ExperimentError
from weft.switches.steering import Steering


def _nothing(_: Steering) -> None:
    """Any switch will do."""


@dataclass(frozen=True)
class Platform:
    """A platform of switches."""

    suffixes: tuple[str, ...]
    """Suffixes of its files, each from a template; the one to load first comes first."""
    remarks: tuple[str, ...] = ()
    """What it cannot do, and the replacement."""
    check: Callable[[Steering], None] = _nothing
    """Refuses a switch that it cannot steer."""


_LINUX_NAME = re.compile(r"[^/\s:]{1,15}")


def _linux(steering: Steering) -> None:
    for port in (*steering.inputs, *(link.port for link in steering.links)):
        if not _LINUX_NAME.fullmatch(port):
            raise ExperimentError(
                f"{steering.node}: port {port!r} is not a Linux interface name (15 characters at "
                "most, no / or :); change the patterns of [cluster], or --format"
            )


def _frr(steering: Steering) -> None:
    _linux(steering)
    _few_rules(steering)


_MOST_CUMULUS_RULES = 255


def _cumulus(steering: Steering) -> None:
    _linux(steering)
    if steering.what in ("aggregation switch", "core"):
        raise ExperimentError(
            f"{steering.node}: Cumulus knows a path by its DSCP, which has no room for a second "
            "tier; plan with --scheme dnlb and without bundles, or choose another --format"
        )
    last = max(link.dscp for link in steering.links)
    if last > 63:
        raise ExperimentError(
            f"{steering.node}: a DSCP for each uplink would go up to {last}, and 63 is the last; "
            "lower cluster.dscp, or choose another --format"
        )
    rules = len(steering.links) + len(steering.local)
    if rules > _MOST_CUMULUS_RULES:
        raise ExperimentError(
            f"{steering.node}: {rules} rules are more than the {_MOST_CUMULUS_RULES} of Cumulus; "
            "choose another --format"
        )


_MOST_SEQUENCES = 700


def _few_rules(steering: Steering) -> None:
    """A pbr-map of FRR is numbered from 1 to 700."""
    if len(steering.links) > _MOST_SEQUENCES:
        raise ExperimentError(
            f"{steering.node}: {len(steering.links)} links are more than the {_MOST_SEQUENCES} "
            "that a pbr-map has; choose --format nftables"
        )


PLATFORMS = {
    "linux": Platform(
        ("sh",),
        (
            "linux: ip rule takes no range that ends at 65535, so port 65535 is hashed",
            "linux: ip rule matches a DSCP from Linux 6.12 and iproute2 6.13 on; the script says "
            "so where it cannot, and then steers by ports alone (nftables always can)",
        ),
        _linux,
    ),
    "nftables": Platform(("sh", "nft"), (), _linux),
    "frr": Platform(
        ("nft", "conf"),
        (
            "frr: match src-port takes one port and does not reach the kernel, so nftables marks "
            "packets and the pbr-map matches marks; not for switches that forward in hardware",
        ),
        _frr,
    ),
    "ios": Platform(
        ("cfg",),
        (
            "ios: next hops must be neighbours; whether a route-map is done in hardware, and how "
            "many entries it may have, is the model's",
        ),
    ),
    "eos": Platform(
        ("cfg",),
        (
            "eos: the match lines are written from templates, not tried on a switch; load them in "
            "a configure session and look at the diff",
        ),
    ),
    "sonic": Platform(
        ("json", "readme"),
        (
            "sonic: the YANG model of ACL_RULE has no redirect target, so commands that validate "
            "refuse this file; it goes into CONFIG_DB directly",
            "sonic: the built-in type L3 has no DSCP, so the file brings a table type of its own",
            "sonic: a redirect keeps its next hop when an uplink dies; the readme has the command "
            "that takes such a rule out",
        ),
    ),
    "junos": Platform(
        ("set",),
        (
            "junos: next-ip needs line cards that know it (MX with Trio), and a route to the next "
            "hop; on others a routing instance for each uplink does the same",
        ),
    ),
    "cumulus": Platform(
        ("nvue",),
        (
            "cumulus: policy routing of NVUE matches no ports, so hosts have to set one DSCP for "
            "each path (cluster.dscp and those that follow), all of one traffic class; NCCL sets "
            "one for all its queue pairs (NCCL_IB_TC)",
        ),
        _cumulus,
    ),
}
"""By the name of `--format`."""
