"""The hosts, switches and links of a cluster, named; and whether the names can be.

What there is, and in which order, is the native core's; what it is called is
`weft.cluster.naming`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from itertools import pairwise
from typing import Any

from weft.cluster import Host, Link, Switch
from weft.cluster.naming import Names, Shape

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:-]*")
"""Nothing that a shell or a switch could take for more than a name."""


class Nodes:
    """Builds them; `found` is what the native core says of the fabric."""

    def __init__(self, found: Mapping[str, Any], section: object, source: str) -> None:
        listed, links = found["switches"], found["links"]
        self._links = links
        self._rows = list(
            zip(listed["node"], listed["tier"], listed["pod"], listed["index"], strict=True)
        )
        self._place = {node: (tier, pod, index) for node, tier, pod, index in self._rows}
        self._up = Counter(links["lower"])
        self._down = Counter(links["upper"])
        leaves, self._mids, self._cores = (listed["tier"].count(tier) for tier in range(3))
        self._pods = max(listed["pod"]) + 1
        self._per_leaf: int = found["hosts_per_leaf"]
        self._nics: int = found["nics"]
        self._rails: bool = found["rails"]
        self._leaves = leaves // self._pods
        self._names = Names(section, Shape(leaves, self._per_leaf, self._nics), source)
        self._source = source

    def build(self) -> tuple[tuple[Host, ...], list[Switch], tuple[Link, ...], dict[str, int]]:
        """Hosts, switches (leaves with their racks), links and numbers of `[cluster]`, checked."""
        total = self._per_leaf * self._leaves * self._pods
        hosts = tuple(self._host(number) for number in range(total))
        switches = [self._switch(number) for number in range(len(self._rows))]
        links = tuple(self._all_links(hosts, switches))
        self._check(hosts, switches, links)
        return hosts, switches, links, self._names.numbers

    def _host(self, number: int) -> Host:
        leaf, place = divmod(number, self._per_leaf)
        # As the native core places servers: with rails as many leaves as NICs share servers.
        if self._rails:
            server, rail = leaf // self._nics * self._per_leaf + place, leaf % self._nics
        else:
            server, rail = divmod(number, self._nics)
        values = {
            **{"host": number, "leaf": leaf, "place": place, "server": server, "rail": rail},
            **{"pod": leaf // self._leaves, "hosts": self._per_leaf, "leaves": self._leaves},
            "nics": self._nics,
        }
        fill = self._names.fill
        return Host(
            number=number,
            name=fill("host", values),
            leaf=leaf,
            place=place,
            address=fill("host_address", values),
            leaf_port=fill("host_port", values),
            server=server,
            rail=rail,
            interface=fill("host_interface", values),
        )

    def _switch(self, number: int) -> Switch:
        node, tier, pod, index = self._rows[number]
        fill, mids = self._names.fill, self._mids // self._pods
        values = {"pod": pod, "leaves": self._leaves, "uplinks": self._up[node]}
        if tier == 0:
            values |= {"leaf": index, "hosts": self._per_leaf, "nics": self._nics}
            name, racks = fill("leaf", values), (fill("rack", values),)
            return Switch(number, node, name, tier, pod, index, racks, fill("gateway", values))
        below = {"downlinks": self._down[node]}
        if tier == 1:
            values |= {"spine": index, "agg": index, "spines": mids, "aggs": mids} | below
            name = fill("agg" if self._cores else "spine", values)
        else:
            name = fill("core", {"core": index, "cores": self._cores, "pods": self._pods} | below)
        return Switch(number, node, name, tier, pod, index, (), None)

    def _all_links(self, hosts: Sequence[Host], switches: Sequence[Switch]) -> Iterator[Link]:
        columns = ("lower", "upper", "member", "line_bps", "rate_bps", "state")
        rows = list(zip(*(self._links[column] for column in columns), strict=True))
        members = Counter((lower, upper) for lower, upper, *_ in rows)
        position: Counter[str] = Counter()
        for number, (lower, upper, member, line, rate, state) in enumerate(rows):
            if number < len(hosts):
                host = hosts[number]
                gateway = switches[host.leaf].gateway or ""
                ends = (host.interface, host.leaf_port, host.address, gateway)
            else:
                of_pair = {"member": member, "members": members[lower, upper]}
                of_link = {"link": number - len(hosts), "uplink": position[lower]}
                ends = self._ends(lower, upper, of_pair | of_link)
                position[lower] += 1
            yield Link(lower, upper, member, *ends, line, rate, state)

    def _ends(self, lower: str, upper: str, of_link: dict[str, int]) -> tuple[str, str, str, str]:
        """Ports, then addresses, of the lower and the upper end."""
        tier, pod, index = self._place[lower]
        above = self._place[upper][2]
        mids = self._mids // self._pods
        values = {**of_link, "pod": pod, "uplinks": self._up[lower]}
        if tier == 0:
            first = index % self._leaves * of_link["members"]
            values |= {"leaf": index, "leaves": self._leaves, "hosts": self._per_leaf}
            values |= {"spine": above, "agg": above, "spines": mids, "aggs": mids}
            values |= {"downlink": first + of_link["member"], "downlinks": self._down[upper]}
            keys = ("uplink_port", "downlink_port", "uplink_address", "uplink_next_hop")
        else:
            values |= {"agg": index, "core": above, "aggs": mids, "cores": self._cores}
            values |= {"downlink": pod * of_link["members"] + of_link["member"]}
            values |= {"downlinks": self._down[lower]}
            keys = (
                *("agg_uplink_port", "core_downlink_port"),
                *("agg_uplink_address", "agg_uplink_next_hop"),
            )
        one, two, three, four = (self._names.fill(key, values) for key in keys)
        return one, two, three, four

    def _check(
        self, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]
    ) -> None:
        numbers, wrong = self._names.numbers, self._names.wrong
        ports = numbers["last_port"] - numbers["first_port"] + 1
        most = max((self._up[node] for node in self._place), default=0)
        if ports < max(most, 1):
            what = f"{max(ports, 0)} source ports for {most} uplinks"
            raise wrong("last_port", f"{what}; let it be {max(most, 1)} or more above first_port")
        named = [("host", one.node, "", one.name) for one in hosts]
        tiers = ("leaf", "agg" if self._cores else "spine", "core")
        named += [(tiers[one.tier], one.node, "", one.name) for one in switches]
        self._distinct(named, "name", "make the pattern differ by node")
        self._distinct(self._port_names(links), "port", "make the pattern differ by port")
        self._addresses(hosts, switches, links)

    def _port_names(self, links: Iterable[Link]) -> Iterator[tuple[str, str, str, str]]:
        """Key, whose, the node in which it must be distinct, and the port."""
        for link in links:
            lower, upper = self._keys_of_ports(link)
            # The interfaces of a server's NICs are of one machine, but hosts of the fabric.
            yield lower, f"{link.lower} to {link.upper}", link.lower, link.lower_port
            yield upper, f"{link.upper} to {link.lower}", link.upper, link.upper_port

    def _keys_of_ports(self, link: Link) -> tuple[str, str]:
        if link.lower not in self._place:
            return "host_interface", "host_port"
        if self._place[link.lower][0] == 0:
            return "uplink_port", "downlink_port"
        return "agg_uplink_port", "core_downlink_port"

    def _distinct(self, named: Iterable[tuple[str, str, str, str]], what: str, mend: str) -> None:
        seen: dict[tuple[str, str], str] = {}
        for key, who, scope, name in named:
            if not _NAME.fullmatch(name):
                allowed = "letters, digits and _ . / : -"
                raise self._names.wrong(key, f"{name!r} is no {what}; use {allowed}")
            if (scope, name) in seen:
                other = seen[scope, name]
                what = f"{who} has the {what} {name}, and so has {other}"
                raise self._names.wrong(key, f"{what}; {mend}")
            seen[scope, name] = who

    def _addresses(
        self, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]
    ) -> None:
        racks = self._racks(switches)
        seen: dict[IPv4Address, str] = {}
        for switch in (one for one in switches if one.gateway):
            inside = self._note(seen, "gateway", switch.node, switch.gateway or "")
            self._inside("gateway", inside, racks[switch.index])
        for host in hosts:
            inside = self._note(seen, "host_address", host.node, host.address)
            self._inside("host_address", inside, racks[host.leaf])
        spans = sorted((int(rack[0]), int(rack[-1])) for rack in racks)
        for link in links[len(hosts) :]:
            of_leaf = self._place[link.lower][0] == 0
            start = "uplink" if of_leaf else "agg_uplink"
            who = f"{link.lower} to {link.upper}"
            pair = (("address", link.lower_address), ("next_hop", link.upper_address))
            for end, text in pair:
                address = self._note(seen, f"{start}_{end}", who, text)
                if _within(spans, int(address)):
                    what = f"{address} is inside a rack's prefix"
                    raise self._names.wrong(f"{start}_{end}", f"{what}; use others for links")

    def _racks(self, switches: Sequence[Switch]) -> list[IPv4Network]:
        racks = []
        for switch in (one for one in switches if one.tier == 0):
            try:
                racks.append(IPv4Network(switch.racks[0]))
            except ValueError:
                what = f"{switch.racks[0]!r} is no IPv4 prefix"
                raise self._names.wrong("rack", f"{what}; write one as 10.0.0.0/16") from None
        ordered = sorted(racks)
        for one, next_one in pairwise(ordered):
            if one.overlaps(next_one):
                what = f"{one} and {next_one} overlap"
                raise self._names.wrong("rack", f"{what}; give every leaf its own prefix")
        return racks

    def _note(self, seen: dict[IPv4Address, str], key: str, who: str, text: str) -> IPv4Address:
        try:
            address = IPv4Address(text)
        except AddressValueError:
            raise self._names.wrong(
                key, f"{text!r} is no IPv4 address ({who}); mend the pattern"
            ) from None
        if address in seen:
            what = f"{who} has the address {address}, and so has {seen[address]}"
            raise self._names.wrong(key, f"{what}; make the pattern differ")
        if address.is_multicast or address.is_unspecified or address.is_loopback:
            raise self._names.wrong(key, f"{address} ({who}) is no host's; use a private range")
        seen[address] = who
        return address

    def _inside(self, key: str, address: IPv4Address, rack: IPv4Network) -> None:
        if address not in rack or address in (rack.network_address, rack.broadcast_address):
            raise self._names.wrong(
                key, f"{address} is no host address of its rack {rack}; mend one of the two"
            )


def _within(spans: Sequence[tuple[int, int]], number: int) -> bool:
    """Whether one of the spans, sorted and apart, holds `number`."""
    index = bisect_right(spans, (number, 1 << 32)) - 1
    return index >= 0 and spans[index][0] <= number <= spans[index][1]
