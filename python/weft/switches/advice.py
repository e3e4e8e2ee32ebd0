"""What else a scheme wants of switches, as advice: trimming, adaptive routing, queue-pair hashing.

Nothing here is needed by a plan, and Weft has tried none of it on a switch: commands are those that
vendors document. Which scheme wants what, the registry of schemes says (`switch_features`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from weft import api
from weft.errors import ExperimentError
from weft.switches import platforms
from weft.switches.config import File

Feature = Literal["trimming", "adaptive-routing", "queue-pair-hashing"]
FEATURES: tuple[Feature, ...] = get_args(Feature)

_WHAT: dict[Feature, str] = {
    "trimming": "a packet that finds its queue full loses its payload, not its header, so that "
    "hosts hear at once what is missing",
    "adaptive-routing": "switches choose among equal paths by load (ARS, DLB), for each packet or "
    "for each burst of a flow",
    "queue-pair-hashing": "the destination queue pair is hashed as well, since all RoCEv2 packets "
    "have one destination port",
}
_COMMANDS: dict[tuple[Feature, str], Sequence[str]] = {
    ("trimming", "sonic"): (
        "config switch-trimming global --size 128 --dscp 48 --queue 6",
        "# and in CONFIG_DB, BUFFER_PROFILE of the queue of the data (not of an ingress list):",
        'sonic-db-cli CONFIG_DB hset "BUFFER_PROFILE|PROFILE" packet_discard_action trim',
        "# look at: show switch-trimming global; chips without it say so in the log",
    ),
    ("trimming", "cumulus"): (
        "nv set system forwarding packet-trim state enabled",
        "nv set system forwarding packet-trim remark dscp 48",
        "nv set interface swp1-32 packet-trim egress-eligibility traffic-class 3",
        "# Cumulus Linux 5.14 or later on Spectrum-4 or later; nv show interface swp1 packet-trim",
    ),
    ("adaptive-routing", "sonic"): (
        "# Enterprise SONiC: an ARS object for each next-hop group: mode flowlet-quality,",
        "# idle time 16 to 32767 us (half a round trip), and a port profile bound to each uplink.",
        "# Community SONiC: ask whether your image has ARS; SAI has it (saiars.h).",
    ),
    ("adaptive-routing", "cumulus"): (
        "nv set qos roce",
        "nv set router adaptive-routing state enabled",
        "nv set interface swp1-32 router adaptive-routing state enabled",
        "# up to 5.14: enable on. Not with resilient hashing, nor on bonds and subinterfaces.",
        "# NICs have to take packets of RoCE out of order.",
    ),
    ("adaptive-routing", "junos"): (
        "set forwarding-options enhanced-hash-key ecmp-dlb flowlet inactivity-interval 256",
        "# for NICs that take packets out of order instead: ecmp-dlb per-packet",
        "# not with resilient hashing, nor where a LAG is a member",
    ),
    ("queue-pair-hashing", "junos"): (
        "# on by default where the device has it:",
        "show forwarding-options enhanced-hash-key    # RDMA Queue Pair: yes",
    ),
}


def wanted(scheme: str) -> list[Feature]:
    """What a scheme wants of switches beyond hashing and source ports.

    Raises:
        ExperimentError: There is no such scheme.
    """
    plain = scheme.rstrip("0123456789").rstrip("-")
    for entry in api.schemes():
        if entry["name"].removesuffix("-N") in (scheme, plain):
            return [one for one in FEATURES if one in entry.get("switch_features", ())]
    raise ExperimentError(f"--scheme: {scheme}: no such scheme; weft list schemes has them all")


def file(scheme: str, platform: str) -> File:
    """The advice for a scheme on a platform, all of it in comments."""
    platforms.find(platform)
    lines = [
        f"# Weft: advice for {scheme} on {platform}. No configuration, and not tried on a switch:",
        "# commands are those that the vendor documents; numbers are examples.",
        *(line for feature in wanted(scheme) for line in _of(feature, platform)),
    ]
    if not wanted(scheme):
        lines.append(f"# {scheme} wants neither {', '.join(FEATURES[:-1])} nor {FEATURES[-1]}.")
    return File(f"advice.{platform}.txt", "".join(f"{line}\n" for line in lines))


def _of(feature: Feature, platform: str) -> Iterator[str]:
    yield "#"
    yield f"# {feature}: {_WHAT[feature]}"
    commands = _COMMANDS.get((feature, platform))
    if commands is None:
        able = [name for of, name in _COMMANDS if of == feature]
        yield f"#   nothing is known of it on {platform}; commands are known for {', '.join(able)}"
        return
    yield from (f"#   {line}" for line in commands)
