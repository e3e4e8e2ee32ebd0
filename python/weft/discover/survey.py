"""What one host finds out: a survey, as the native core takes it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft import _native
from weft._types import SurveyRules
from weft.cluster import FIRST_PORT, Protocol

LAST_PORT = 65_534
"""`ip rule` takes no range that ends at the last port, so no host uses that one."""


@dataclass(frozen=True)
class Survey:
    """Which paths a host looks for, and how."""

    source: str
    """Its own address."""
    targets: list[str]
    """Addresses."""
    protocol: Protocol
    """Of the traffic: switches hash it too."""
    port: int
    """Its destination port."""
    hops: tuple[int, ...] = ()
    """Switches on the way to each target; empty: not known."""
    needs: list[list[tuple[list[str], int]]] = dataclasses.field(default_factory=list)
    """What each target needs: addresses of switches, and how many ports shall meet them; empty: all
    paths."""
    dscp: int = 0
    ports: tuple[int, int] = (FIRST_PORT, LAST_PORT)
    """The first and the last source port."""
    seed: int = 1
    """Draws the order of ports."""
    unseen: float = 0.05
    """How likely a path may remain unseen, for each target."""
    ports_per_path: int = 4
    expected: int = 0
    """How many paths there should be; zero: not known."""
    most_ports: int = 1024
    """Source ports that are tried for a target at most."""
    most_hops: int = 8
    rate: float = 100.0
    """Probes a second at most."""
    time_out_s: float = 0.4
    tries: int = 3
    """Probes of a port without an answer after which a switch is taken for silent."""
    sentinels: int = 4
    """Ports of each path that are asked again where a table is there already."""

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return dataclasses.asdict(self)

    def rules(self) -> SurveyRules:
        """How it asks, as the native core takes it."""
        return {
            "unseen": self.unseen,
            "ports_per_path": self.ports_per_path,
            "expected": self.expected,
            "most_ports": self.most_ports,
            "most_hops": self.most_hops,
            "rate": self.rate,
            "time_out_s": self.time_out_s,
            "tries": self.tries,
            "sentinels": self.sentinels,
        }


def from_json(table: Mapping[str, Any]) -> Survey:
    """The survey that `as_json` wrote."""
    needs = [[(list(hops), count) for hops, count in one] for one in table["needs"]]
    ends = {"ports": tuple(table["ports"]), "hops": tuple(table["hops"])}
    return Survey(**{**table, **ends, "needs": needs})


def run(
    survey: Survey,
    known: Mapping[str, Any] | None = None,
    tell: Callable[[dict[str, Any]], bool] | None = None,
) -> dict[str, Any]:
    """Find out; what this source has found, as a table has it under `sources`.

    `known` is a table of before: targets that were done are checked, others go on. `tell` gets what
    is known so far once a second, and says whether to go on.

    Raises:
        ExperimentError: Sockets cannot be opened: the address is not this host's, say.
    """
    found = _native.discover(
        survey.source,
        survey.targets,
        hops=list(survey.hops),
        needs=survey.needs,
        protocol=survey.protocol,
        port=survey.port,
        dscp=survey.dscp,
        ports=survey.ports,
        seed=survey.seed,
        rules=survey.rules(),
        known=json.dumps(known) if known else None,
        tell=None if tell is None else lambda text: tell(json.loads(text)),
    )
    return dict(json.loads(found))
