"""Options of schemes and of the transport on a bed, whose hosts are real ones.

Schemes leave a path that is dead for as long as hosts do.

Of the options whose default is another on hosts (`weft list variables`) these two matter here:
what hosts are told of links in a file, or learn by time-outs of a second, is not forgotten within
100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft import api

_MATTER = ("bad_for", "dead_for")

_ANSWERED_AFTER = "1s"
"""A host waits for an answer for so long, at least, unless `transport.rto` says otherwise: what RFC
6298 asks of TCP, and more than a process usually waits for a core."""
_ROUND_TRIP = "160ms"
"""What round trips are to take: packets and answers queue for half of it each, so that links stay
busy while their senders wait for a core. Base delays are some 100 us, the scheduler's some ms."""
_MOST_OUT = 3
"""Packets of a flow that may be out: of 64 flows on a link of the bed no more than its queue
holds, also when answers that waited for a core all come at once."""


def transport(plain: Mapping[str, Any], changes: Mapping[str, str]) -> dict[str, Any]:
    """What hosts do about congestion and loss in an experiment that does not say so itself.

    `plain` is the experiment without a word on transport, `changes` are what options change.
    """
    mtu = int(plain["fabric"]["nic"]["mtu"].removesuffix("B"))
    # Several queue pairs side by side have a packet out each.
    most_out = 1 if plain["balance"].get("queue_pairs", 1) > 1 else _MOST_OUT
    table: dict[str, Any] = {
        "rto": _ANSWERED_AFTER,
        "congestion": "swift",
        "swift_base_target": _ROUND_TRIP,
        "swift_scaling_range": "0s",
        "swift_initial_window": f"{mtu}B",
        "swift_max_window": f"{most_out * mtu}B",
        # Below a packet it would pace, after a single time-out too, and its link idle.
        "swift_min_window": f"{mtu}B",
    }
    if plain["transport"]["recovery"] == "go-back-n":
        # On one path. What NICs have is not for links that lose packets in bursts.
        least = changes.get("transport.rto", "auto")
        table |= {"recovery": "tcp", "sack": True}
        table["min_rto"] = _ANSWERED_AFTER if least == "auto" else least
    if "time_out" in plain["balance"]:
        # Chunks have time-outs of their own, and how much may be out is their planner's to say.
        table |= {"adaptive_rto": False, "min_rto": "1ms"}
        table |= dict.fromkeys(("swift_initial_window", "swift_max_window"), "1MiB")
    return table


def of(scheme: str) -> dict[str, str]:
    """What hosts take for the options of a scheme that say nothing else."""
    entries = (one for one in api.variables() if one["name"] == "schemes")
    on_hosts = {one["key"]: one["default"] for entry in entries for one in entry["options"]}
    return {key: on_hosts[key] for key in _published(scheme)}


def chosen(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a plan that somebody chose: it has all of them written out."""
    published = _published(scheme)
    return {key: value for key, value in options.items() if published.get(key) != value}


def _published(scheme: str) -> dict[str, str]:
    """Their defaults in the simulator, of those that a scheme has."""
    plain = scheme.rstrip("0123456789").rstrip("-")
    for entry in api.schemes():
        if entry["name"].removesuffix("-N") in (scheme, plain):
            pairs = {one["key"]: one["default"] for one in entry["options"]}
            return {key: pairs[f"balance.{key}"] for key in _MATTER if f"balance.{key}" in pairs}
    return {}
