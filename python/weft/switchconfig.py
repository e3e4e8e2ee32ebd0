"""`weft switch-config`: what each switch is told, so that source ports choose uplinks.

A configuration is a template of its platform (`templates/switch`) filled with what is here: the
ports whose traffic is steered, the prefixes that stay below, and for every link its next hop and
its source ports. Templates decide nothing. Members of bundles are uplinks each; the switch above
sends down over the member by which the same ports go up.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Network
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from weft import cluster as clusters
from weft import segments
from weft.cluster import Cluster, Link, Switch
from weft.errors import ExperimentError
from weft.platforms import PLATFORMS, Platform
from weft.segments import Range, Scheme, Segments

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Way:
    """A link and what goes over it: an uplink, or a member of a bundle down."""

    name: str
    """`U1`, or `D1` on the way down."""
    number: int
    """From one, uplinks first: distinct on a switch."""
    port: str
    next_hop: str
    to: str
    """The name of the switch at its other end."""
    up: bool
    """Whether it carries anything now."""
    ranges: Sequence[Range]
    dscp: int
    """Where DSCPs stand for paths."""
    prefixes: Sequence[str] = ()
    """What goes over it has these destinations; none: all that is not below."""

    @property
    def text(self) -> str:
        """Its source ports, for people."""
        return ", ".join(f"{first}-{last}" for first, last in self.ranges)

    @property
    def rules(self) -> list[tuple[str, Range]]:
        """A name of its own for each range."""
        if len(self.ranges) == 1:
            return [(self.name, self.ranges[0])]
        return [(f"{self.name}-{number}", one) for number, one in enumerate(self.ranges, 1)]

    @property
    def table(self) -> int:
        """A routing table of its own."""
        return 1000 + self.number


@dataclass(frozen=True)
class Steering:
    """What a template is filled with."""

    title: str
    name: str
    node: str
    what: str
    """`leaf`, `spine`, `aggregation switch` or `core`."""
    dscp: int
    port: int
    inputs: Sequence[str]
    """Ports whose traffic is steered."""
    local: Sequence[str]
    """Prefixes below, which no rule for an uplink may catch; none without uplinks."""
    uplinks: Sequence[Way]
    bundles: Sequence[Way]
    """Members of bundles down, those to one switch side by side."""
    spare: Sequence[Range] = field(default=())
    """Ports in the range of the cluster that no segment has."""

    @property
    def ways(self) -> list[Way]:
        """All of them."""
        return [*self.uplinks, *self.bundles]

    @property
    def live_up(self) -> list[Way]:
        """The uplinks that are not down."""
        return [way for way in self.uplinks if way.up]

    @property
    def live_down(self) -> list[Way]:
        """The members of bundles that are not down."""
        return [way for way in self.bundles if way.up]

    @property
    def live(self) -> list[Way]:
        """Both."""
        return [way for way in self.ways if way.up]

    @property
    def below(self) -> list[tuple[Sequence[str], list[Way]]]:
        """Live members of bundles by the prefixes that they lead to."""
        grouped = groupby(self.live_down, key=lambda way: tuple(way.prefixes))
        return [(prefixes, list(ways)) for prefixes, ways in grouped]


@dataclass(frozen=True)
class File:
    """A file for a switch."""

    name: str
    text: str


def of_file(path: Path, scheme: Scheme | None) -> tuple[Cluster, Segments]:
    """Cluster and segments of a plan file, or of a cluster file and a scheme."""
    from weft.inputs import read_text

    if path.suffix == ".toml":
        found = clusters.read(path)
        if scheme is None:
            raise ExperimentError(
                f"{path}: is a cluster, not a plan; add --scheme dnlb or ethereal, or name a plan"
            )
        try:
            return found, segments.of(found, scheme)
        except ExperimentError as error:
            raise ExperimentError(f"{path}: {error}") from None
    if scheme is not None:
        raise ExperimentError(f"{path}: a plan has its scheme; remove --scheme")
    try:
        plan = json.loads(read_text(path, "a plan"))
    except json.JSONDecodeError as error:
        raise ExperimentError(
            f"{path}: not JSON (line {error.lineno}); name a plan.json of weft plan"
        ) from None
    if not isinstance(plan, Mapping) or plan.get("format") != "weft-plan":
        raise ExperimentError(f"{path}: format: not a plan of weft; name what weft plan wrote")
    if plan.get("version") != 1:
        raise ExperimentError(
            f"{path}: version: {plan.get('version')!r} is not known; make the plan again"
        )
    found = clusters.from_json(plan.get("cluster", {}), str(path))
    return found, segments.of_plan(plan, found, str(path))


def files(
    cluster: Cluster, found: Segments, platform: str, switch: str | None = None
) -> tuple[list[File], list[str]]:
    """The files of all switches that steer, or of one (by name or node), and remarks."""
    chosen = PLATFORMS[platform]
    steering = [_steering(cluster, found, one) for one in _switches(cluster, found)]
    if switch is not None:
        steering = [one for one in steering if switch in (one.name, one.node)]
        if not steering:
            names = ", ".join(one.name for one in _switches(cluster, found)[:8])
            raise ExperimentError(f"--switch: {switch!r} steers nothing here; use one of {names}")
    for one in steering:
        chosen.check(one)
    made = [file for one in steering for file in _fill(chosen, platform, one)]
    return made, list(dict.fromkeys(_remarks(chosen, steering)))


def _switches(cluster: Cluster, found: Segments) -> list[Switch]:
    """Those with segments, and those with bundles to them."""
    return [
        switch
        for switch in cluster.switches
        if switch.node in found or _bundled(cluster, found, switch)
    ]


def _bundled(cluster: Cluster, found: Segments, switch: Switch) -> list[Link]:
    """The links below that are members of bundles and whose lower ends have segments."""
    links = [link for link in cluster.downlinks[switch.node] if link.lower in found]
    members = Counter(link.lower for link in links)
    return [link for link in links if members[link.lower] > 1]


def _steering(cluster: Cluster, found: Segments, switch: Switch) -> Steering:
    up = cluster.uplinks.get(switch.node, ()) if switch.node in found else ()
    bundled = _bundled(cluster, found, switch)
    ports = [link.upper_port for link in cluster.downlinks[switch.node]]
    if bundled:
        # What comes from above goes down over a bundle as well.
        ports += [link.lower_port for link in cluster.uplinks.get(switch.node, ())]
    return Steering(
        title=" ".join(cluster.title.split()),
        name=switch.name,
        node=switch.node,
        what=_what(cluster, switch),
        dscp=cluster.dscp,
        port=cluster.port,
        inputs=ports,
        local=switch.racks if up else (),
        uplinks=[_uplink(cluster, found, index, link) for index, link in enumerate(up)],
        bundles=[
            _member(cluster, found, len(up) + number, number, link)
            for number, link in enumerate(bundled, 1)
        ],
        spare=_spare(cluster, found[switch.node]) if switch.tier == 0 else (),
    )


def _what(cluster: Cluster, switch: Switch) -> str:
    two_tiers = cluster.switches[-1].tier == 1
    return ("leaf", "spine" if two_tiers else "aggregation switch", "core")[switch.tier]


def _uplink(cluster: Cluster, found: Segments, index: int, link: Link) -> Way:
    return Way(
        name=f"U{index + 1}",
        number=index + 1,
        port=link.lower_port,
        next_hop=link.upper_address,
        to=cluster.by_node[link.upper].name,
        up=link.state != "down",
        ranges=found[link.lower][index],
        dscp=cluster.dscp + index,
    )


def _member(cluster: Cluster, found: Segments, number: int, place: int, link: Link) -> Way:
    """Down over the member by which the same ports go up."""
    index = cluster.uplinks[link.lower].index(link)
    lower = cluster.by_node[link.lower]
    return Way(
        name=f"D{place}",
        number=number,
        port=link.upper_port,
        next_hop=link.lower_address,
        to=lower.name,
        up=link.state != "down",
        ranges=found[link.lower][index],
        dscp=cluster.dscp + index,
        prefixes=lower.racks if isinstance(lower, Switch) else (),
    )


def _spare(cluster: Cluster, ranges: list[list[Range]]) -> list[Range]:
    """What lies between and behind the segments."""
    spare, start = [], cluster.first_port
    for first, last in sorted(one for each in ranges for one in each):
        if first > start:
            spare.append((start, first - 1))
        start = max(start, last + 1)
    if start <= cluster.last_port:
        spare.append((start, cluster.last_port))
    return spare


def _remarks(platform: Platform, steering: Sequence[Steering]) -> Iterator[str]:
    yield from platform.remarks
    for one in steering:
        for way in one.ways:
            if not way.up:
                yield (
                    f"{one.name}: {way.port} to {way.to} is down, so it has no rule; its source "
                    "ports are hashed among the other links"
                )


def _fill(platform: Platform, name: str, steering: Steering) -> list[File]:
    filled = []
    for suffix in (*platform.suffixes, "rollback"):
        text = _template(f"{name}.{suffix}.j2").render(s=steering, suffixes=platform.suffixes)
        filled.append(File(f"{steering.name}.{suffix}", text))
    return filled


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("weft", "templates/switch"),
        autoescape=False,  # noqa: S701 (not for browsers; names are checked by weft.nodes)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["wildcard"] = _wildcard
    environment.filters["linux_range"] = _linux_range
    return environment.get_template(name)


def _wildcard(prefix: str) -> str:
    """A prefix as access lists write it: address and inverted mask."""
    network = IPv4Network(prefix)
    return f"{network.network_address} {network.hostmask}"


def _linux_range(ports: Range) -> str:
    """A range as `ip rule` takes it, which refuses one that ends at 65535."""
    first, last = ports[0], min(ports[1], 0xFFFE)
    return f"{first}-{last}"


def write(made: Sequence[File], directory: Path) -> None:
    """The files into a directory, which is made."""
    from weft.errors import writing

    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for file in made:
        path = directory / file.name
        with writing(path):
            path.write_text(file.text)


def printed(made: Sequence[File]) -> str:
    """All of them for a terminal, each under its name."""
    if len(made) == 1:
        return made[0].text
    return "\n".join(f"==> {file.name} <==\n{file.text}" for file in made)


def command(
    path: Path,
    platform: str,
    output: Path | None,
    switch: str | None,
    scheme: Scheme | None,
    quiet: bool,
) -> int:
    """`weft switch-config`; returns the exit status."""
    cluster, found = of_file(path, scheme)
    made, remarks = files(cluster, found, platform, switch)
    if output is None:
        print(printed(made), end="")
    else:
        write(made, output)
    if not quiet:
        where = f"{len(made)} files in {output}" if output else ""
        for line in filter(None, (*remarks, where)):
            print(line, file=sys.stderr)
    return 0
