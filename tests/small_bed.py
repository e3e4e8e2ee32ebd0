"""What tests of the test bed share: a small cluster, and what they need of the machine."""

from __future__ import annotations

from typing import Any

import pytest

from weft.testbed import system
from weft.testbed.rules import RULES

MISSING = system.missing()
needs_bed = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def each_rules(name: str, *others: str) -> Any:
    """One kind of rules as a parameter, skipped where what it needs is missing."""
    what = system.missing(name)
    return pytest.param(name, *others, marks=pytest.mark.skipif(what is not None, reason=str(what)))


by_all_rules = pytest.mark.parametrize("rules", [each_rules(name) for name in RULES])

CLUSTER = """
[fabric]
topology = "leaf-spine"
leaves = 2
spines = {spines}
hosts_per_leaf = {hosts}
link = "10Gbps"
uplink = "{uplink}"
delay = "5us"
[fabric.nic]
mtu = "8192B"
"""
SMALL = CLUSTER.format(spines=2, hosts=2, uplink="50Mbps")
