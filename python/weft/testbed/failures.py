"""How a leaf-spine link of a bed fails, and how it comes back, as lines for `ip`, `tc` and `nft`.

admin: it is set down at the leaf, which routes around it at once.
carrier: its spine's end goes down; the leaf loses the carrier and routes around it.
remote: the spine's port to the leaf swallows what it should send. Nobody gets a signal: other
leaves go on sending that way until their hosts' time-outs.
corrupt: some of the packets that come down over it have four other bytes in their payload. No check
sum of TCP or UDP notices: between veths the kernel computes none.
reset: some of the TCP packets that come down over it are answered with a reset instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from weft.cluster import Cluster, Link
from weft.errors import ExperimentError
from weft.testbed import layout
from weft.testbed.layout import Port

How = Literal["admin", "carrier", "remote", "corrupt", "reset"]
HOWS: tuple[str, ...] = get_args(How)

_LINK = re.compile(r"(?P<leaf>leaf-\d+):(?P<spine>spine-\d+)(#(?P<member>\d+))?(@(?P<at>\d+)%)?")


@dataclass(frozen=True)
class Failure:
    """A link that is to fail, when so much of all payload has arrived."""

    leaf: str
    spine: str
    member: int
    at_percent: int
    how: How


NFT: tuple[str, ...] = ("corrupt", "reset")
"""Those that nftables does."""
_TABLE = "weft_failure"
_A_SECOND = 5
"""Packets per second that are changed or reset."""


@dataclass(frozen=True)
class Step:
    """Lines for one tool in one node."""

    tool: Literal["ip", "tc", "nft"]
    node: str
    lines: tuple[str, ...]


def read(text: str, how: str, cluster: Cluster) -> Failure:
    """Read `leaf-0:spine-1@50%`, with `#1` behind the spine for the second of parallel links.

    Raises:
        ExperimentError: It is not of that form, or there is no such link.
    """
    found = _LINK.fullmatch(text)
    if found is None or not 0 <= int(found["at"] or 0) < 100:
        raise ExperimentError(f"--fail: {text!r}: write it as leaf-0:spine-1@50%")
    if how not in HOWS:
        raise ExperimentError(f"--how: {how!r} is not known; use one of {', '.join(HOWS)}")
    member, at = int(found["member"] or 0), int(found["at"] or 0)
    failure = Failure(found["leaf"], found["spine"], member, at, cast("How", how))
    link_of(cluster, failure)
    return failure


def link_of(cluster: Cluster, failure: Failure) -> Link:
    """The link that a failure means."""
    wanted = (failure.leaf, failure.spine, failure.member)
    for link in layout.present(cluster):
        if (link.lower, link.upper, link.member) == wanted:
            return link
    name = f"{failure.leaf}:{failure.spine}"
    raise ExperimentError(f"--fail: there is no link {name}, or it is already down")


def failure_steps(cluster: Cluster, failure: Failure) -> list[Step]:
    """What makes it fail."""
    link = link_of(cluster, failure)
    match failure.how:
        case "admin":
            return [Step("ip", link.lower, (f"link set {link.lower_port} down",))]
        case "carrier":
            return [Step("ip", link.upper, (f"link set {link.upper_port} down",))]
        case "remote":
            swallow = f"qdisc replace dev {link.upper_port} root pfifo limit 0"
            return [Step("tc", link.upper, (swallow,))]
        case "corrupt":
            # 200 bytes behind the ports, of packets that have so many.
            return [_harm(link, "meta length > 1000", "@th,1600,32 set 0xdeadbeef")]
        case "reset":
            return [_harm(link, "meta l4proto tcp", "reject with tcp reset")]


def _harm(link: Link, which: str, what: str) -> Step:
    """An nftables rule for a few of the packets that a spine sends down a link."""
    lines = (
        f"table ip {_TABLE} {{ chain down {{ type filter hook forward priority 0;",
        f'oifname "{link.upper_port}" {which} limit rate {_A_SECOND}/second burst 1 packets {what}',
        "}",
        "}",
    )
    return Step("nft", link.upper, lines)


def repair_steps(cluster: Cluster, failure: Failure) -> list[Step]:
    """What brings it back: its link, and what the kernel dropped of table main."""
    link = link_of(cluster, failure)
    ports = layout.ports(cluster)

    def port(node: str) -> Port:
        return next(one for one in ports[node] if one.peer is link)

    if failure.how in NFT:
        # What is not there cannot be deleted: the run may have ended before.
        gone = (f"add table ip {_TABLE}", f"delete table ip {_TABLE}")
        return [Step("nft", link.upper, gone)]
    if failure.how == "remote":
        return [Step("tc", link.upper, (layout.shape(port(link.upper), "replace"),))]
    node = link.lower if failure.how == "admin" else link.upper
    own = port(node)
    switch = cluster.by_node[node]
    there = link.upper_address if own.is_lower else link.lower_address
    mac = own.mac[:-2] + ("02" if own.is_lower else "01")
    lines = [
        f"link set {own.name} up",
        f"neigh replace {there} lladdr {mac} dev {own.name} nud permanent",
        *layout.routes(cluster, ports[node], switch),
    ]
    return [Step("ip", node, tuple(lines))]
