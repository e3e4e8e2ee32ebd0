"""Switch configurations: golden files, properties of random clusters, and mistakes.

`WEFT_UPDATE_GOLDEN=1 pytest tests/test_switch_config.py` writes the golden files anew.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import cluster
from weft.cluster import Cluster
from weft.switches import config as switchconfig
from weft.switches import platforms, segments
from weft.switches.platforms import PLATFORMS
from weft.switches.segments import Segments

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "switch-config"

PINNED = PLATFORMS
if not os.environ.get("WEFT_UPDATE_GOLDEN"):
    PINNED = tuple(sorted({path.parent.name for path in GOLDEN.glob("*/*/*")}))
"""Platforms with golden files; those of a new one are written on demand."""

CASES: list[tuple[str, str, str]] = [
    ("dnlb-2025", "dnlb", "leaf-0"),
    ("dnlb-2025", "dnlb", "spine-1"),
    ("three-tier", "ethereal", "leaf-1"),
    ("three-tier", "ethereal", "agg-0"),
    ("multi-rail", "dnlb", "rail2"),
    ("sockets", "dnlb", "leaf-1"),
]


def golden_cluster(name: str, platform: str) -> Cluster:
    """The cluster of a golden file with the ports of a platform."""
    text = (GOLDEN / f"{name}.toml").read_text().replace("PORT", platforms.find(platform).port)
    return cluster.from_dict(tomllib.loads(text), name)


@pytest.mark.parametrize("platform", PINNED)
@pytest.mark.parametrize(("name", "scheme", "switch"), CASES)
def test_golden_files(name: str, scheme: str, switch: str, platform: str) -> None:
    """What is written is what was looked at."""
    if platforms.find(platform).by_dscp and switch == "agg-0":
        pytest.skip("a DSCP has no room for a second tier")
    found = golden_cluster(name, platform)
    made, _ = switchconfig.files(found, segments.of(found, scheme), platform, switch)
    directory = GOLDEN / name / platform
    if os.environ.get("WEFT_UPDATE_GOLDEN"):
        switchconfig.write(made, directory)
    assert {file.name: file.text for file in made} == {
        path.name: path.read_text() for path in directory.glob(f"{switch}.*")
    }


def test_no_golden_file_is_left_over() -> None:
    """Every one is some case's."""
    kept = {path.parent.parent.name for path in GOLDEN.glob("*/*/*")}
    assert kept == {name for name, _, _ in CASES}
    assert set(PINNED) <= set(PLATFORMS)
    stems = {(path.parent.parent.name, path.stem) for path in GOLDEN.glob("*/*/*")}
    assert stems == {(name, switch) for name, _, switch in CASES}


RANGE = {
    "linux": r"^ip rule add pref 9[13]0 .*ipproto udp sport (\d+)-(\d+) lookup",
    "nftables": r"^\t+(\d+)-(\d+) : \d+",
    "frr": r"^\t+(\d+)-(\d+) : \d+",
    "ios": r"permit udp any range (\d+) (\d+) (?:any|\S+ 0.0.255.255) eq 4791 dscp 26$",
    "eos": r"dscp 26\n +protocol udp source port (\d+)-(\d+) destination port 4791$",
    "sonic": r'"DSCP": "26",\n.*\n +"L4_SRC_PORT_RANGE": "(\d+)-(\d+)",\n +"L4_DST_PORT": "4791"',
    "junos": r"term [UD]\d+ from source-port (\d+)-(\d+)$",
}
"""First and last port of every rule."""
LOCAL = {
    **{"linux": r"to (\S+) lookup main", "junos": r"LOCAL from destination-address (\S+)"},
    "nftables": r"ip daddr \{ (.*) \} counter return",
    "frr": r"ip daddr \{ (.*) \} counter return",
    "ios": r"permit ip any (\S+) 0.0.255.255",
    "sonic": r'LOCAL\d+": \{\n.*\n +"DST_IP": "(\S+)"',
    "eos": r"match LOCAL ipv4\n +destination prefix (.*)",
    "cumulus": r"destination-ip (\S+)\n.* action vrf default",
}
"""What stays below."""
BOUND = {
    **{"linux": r"^steer (\S+)$", "nftables": r"iifname != \{ (.*) \}", "frr": r"^interface (\S+)"},
    **{"ios": r"^interface (\S+)\n ip policy route-map WEFT$", "sonic": r'"ports": \[(.*)\]'},
    "eos": r"^interface (\S+)\n   traffic-policy input WEFT$",
    "junos": r"^set interfaces (\S+) unit 0 family inet filter input WEFT$",
    "cumulus": r"^nv set interface (\S+) router pbr map WEFT$",
}
"""Ports whose traffic is steered."""

counts = st.integers(1, 5)
leaf_spines = st.fixed_dictionaries(
    {
        **{"topology": st.just("leaf-spine"), "leaves": counts, "spines": counts},
        **{"hosts_per_leaf": counts, "links_per_pair": st.integers(1, 3)},
    }
)
three_tiers = st.fixed_dictionaries(
    {
        **{"topology": st.just("clos"), "tiers": st.just(3), "pods": st.integers(1, 3)},
        **{"leaves": st.integers(1, 3), "aggs": st.just(2), "cores": st.sampled_from([2, 4, 6])},
        **{"hosts_per_leaf": counts, "links_per_pair": st.integers(1, 3)},
    }
)
fabrics = st.one_of(leaf_spines, three_tiers)


@settings(deadline=None, max_examples=60)
@given(fabrics, st.sampled_from(["dnlb", "ethereal"]), st.integers(100, 16_384))
def test_segments_are_apart_and_every_uplink_has_as_many(
    fabric: dict[str, Any], scheme: str, ports: int
) -> None:
    """Whatever the number of ports; what is left over is less than one for each uplink."""
    found = cluster.from_dict(
        {"fabric": fabric, "cluster": {"first_port": 65_536 - ports, "last_port": 65_535}}
    )
    cut = segments.of(found, scheme)
    assert {node for node in cut if node.startswith("leaf")} == {
        switch.node for switch in found.switches if switch.tier == 0
    }
    for node, ranges in cut.items():
        assert len(ranges) == len(found.uplinks[node])
        flat = sorted(one for each in ranges for one in each)
        assert all(before[1] < after[0] for before, after in pairwise(flat))
        assert all(65_536 - ports <= first <= last <= 65_535 for first, last in flat)
        sizes = {sum(last - first + 1 for first, last in each) for each in ranges}
        assert len(sizes) == 1
        if node.startswith("leaf"):
            assert ports - sum(last - first + 1 for first, last in flat) < len(ranges)


@settings(deadline=None, max_examples=40)
@given(three_tiers)
def test_an_aggregation_switch_cuts_what_its_leaves_send_it(fabric: dict[str, Any]) -> None:
    """Of each segment that leads to it every uplink has an equal share, one after the other."""
    found = cluster.from_dict({"fabric": fabric})
    cut = segments.of(found, "ethereal")
    for switch in (one for one in found.switches if one.tier == 1):
        leaf = found.downlinks[switch.node][0].lower
        to_here = [i for i, up in enumerate(found.uplinks[leaf]) if up.upper == switch.node]
        for number, uplink in enumerate(to_here):
            ((first, last),) = cut[leaf][uplink]
            parts = [ranges[number] for ranges in cut[switch.node]]
            assert parts[0][0] == first
            assert all(after[0] == before[1] + 1 for before, after in pairwise(parts))
            assert 0 <= last - parts[-1][1] < len(parts)


def _bundled(found: Cluster, cut: Segments, node: str) -> list[segments.Range]:
    """The ranges that go down over bundles, by what goes up there."""
    ranges = []
    for link in found.downlinks[node]:
        up = found.uplinks[link.lower]
        if link.lower in cut and sum(1 for other in up if other.upper == node) > 1:
            ranges += cut[link.lower][up.index(link)]
    return ranges


@pytest.mark.parametrize("platform", BOUND)
@settings(deadline=None, max_examples=12)
@given(fabric=fabrics)
def test_a_configuration_is_complete(fabric: dict[str, Any], platform: str) -> None:
    """Every range once, bundles down, exemption and uplinks in order, every port below bound."""
    found = cluster.from_dict({"fabric": fabric})
    scheme: str = "dnlb" if platform == "cumulus" else "ethereal"
    cut = segments.of(found, scheme)
    if platform == "cumulus" and fabric["topology"] == "clos" and fabric["links_per_pair"] > 1:
        return
    made, _ = switchconfig.files(found, cut, platform)
    for switch in (one for one in found.switches if one.tier < 2):
        texts = [file.text for file in made if file.name.partition(".")[0] == switch.name]
        down = _bundled(found, cut, switch.node)
        up = [one for each in cut.get(switch.node, []) for one in each]
        if not up and not down:
            assert texts == []
            continue
        lines = [line for text in texts[:-1] for line in text.splitlines() if _is_rule(line)]
        whole = "\n".join(lines)
        bound = re.findall(r"[^\s\",]+", " ".join(re.findall(BOUND[platform], whole, re.M)))
        ports = [link.upper_port for link in found.downlinks[switch.node]]
        ports += [link.lower_port for link in found.uplinks.get(switch.node, ()) if down]
        assert bound == ports
        local = list(re.finditer(LOCAL[platform], whole))
        racks = " ".join(one[1] for one in local).replace(",", "").split()
        wanted = list(switch.racks) if up else []
        assert [rack.removesuffix("/16") + "/16" for rack in racks] == wanted
        if platform == "cumulus":
            assert len(re.findall(r"match dscp (\d+)", whole)) == len(up) + len(down)
            continue
        rules = list(re.finditer(RANGE[platform], whole, re.M))
        last = 65_534 if platform == "linux" else 65_535
        ranges = [(int(one[1]), int(one[2])) for one in rules]
        assert sorted(ranges) == sorted((first, min(end, last)) for first, end in up + down)
        if platform == "ios":
            order = [int(n) for n in re.findall(r"^route-map WEFT \w+ (\d+)", whole, re.M)]
            assert order == sorted(set(order))
            names = re.findall(r"^ match ip address WEFT-(\w)", whole, re.M)
            assert names == sorted(names, key="DLU".index)
        elif up and platform != "sonic":
            before = [one for one in rules if one.start() < local[0].start()]
            assert len(before) == len(down)


def _is_rule(line: str) -> bool:
    return not re.match(r"#|! |!$", line) or line == "!"


UNDONE: dict[str, list[str]] = {
    "linux": [
        "900",
        "901",
        "910",
        "920",
        "930",
        "940",
        *(f"table {n}" for n in range(7001, 7009)),
    ],
    "nftables": ["table ip weft", "pref 900", *(f"table {n}" for n in range(7001, 7009))],
    "frr": ["table ip weft", *(f"seq {n}" for n in range(1, 9))],
    "ios": ["route-map WEFT", "WEFT-LOCAL", *(f"WEFT-U{n}" for n in range(1, 9))],
    "eos": ["no traffic-policy WEFT"],
    "sonic": ["WEFT|LOCAL1", "ACL_TABLE|WEFT", *(f"WEFT|U{n}" for n in range(1, 9))],
    "junos": ["delete firewall family inet filter WEFT"],
    "cumulus": ["map WEFT", *(f"WEFT-U{n}" for n in range(1, 9))],
}
"""Names that a rollback has to undo."""


@pytest.mark.parametrize("platform", UNDONE)
def test_a_rollback_undoes_every_name(platform: str) -> None:
    """Whatever a configuration defines or binds, its rollback names."""
    found = golden_cluster("dnlb-2025", platform)
    made, _ = switchconfig.files(found, segments.of(found, "dnlb"), platform, "leaf-0")
    back = made[-1]
    assert back.name == "leaf-0.rollback"
    assert [name for name in UNDONE[platform] if name not in back.text] == []
    if platform not in ("linux", "nftables", "sonic"):
        ports = [f"{platforms.find(platform).port}{number}" for number in range(1, 9)]
        assert [port for port in ports if port not in back.text] == []


@pytest.mark.parametrize(("name", "scheme", "switch"), CASES)
def test_sonic_is_json_of_its_schema(name: str, scheme: str, switch: str) -> None:
    """And refers only to what it defines."""
    schema = json.loads((HERE / "schemas" / "sonic-acl.json").read_text())
    found = golden_cluster(name, "sonic")
    made, _ = switchconfig.files(found, segments.of(found, scheme), "sonic", switch)
    table = json.loads(made[0].text)
    jsonschema.validate(table, schema)
    assert table["ACL_TABLE"]["WEFT"]["type"] in table["ACL_TABLE_TYPE"]
    matches = table["ACL_TABLE_TYPE"]["WEFT_TYPE"]["MATCHES"]
    for rule in table["ACL_RULE"].values():
        assert set(rule) - {"PRIORITY", "PACKET_ACTION"} <= set(matches)
    rules = table["ACL_RULE"].values()
    steering = [int(r["PRIORITY"]) for r in rules if "DSCP" in r and "DST_IP" not in r]
    local = [int(r["PRIORITY"]) for r in rules if "DSCP" not in r]
    down = [int(r["PRIORITY"]) for r in rules if "DSCP" in r and "DST_IP" in r]
    assert not local or not steering or min(local) > max(steering)
    assert not local or not down or min(down) > max(local)


def test_a_dead_uplink_has_no_rule_and_a_remark() -> None:
    """Its ports are left to the hash."""
    found = golden_cluster("three-tier", "nftables")
    made, remarks = switchconfig.files(found, segments.of(found, "dnlb"), "nftables", "leaf-1")
    assert all("leaf-1" in remark or "agg-1" in remark for remark in remarks)
    assert "61440-65535 : 4" not in made[1].text
    assert "57344" not in made[0].text.partition("routes()")[2]
    assert [remark for remark in remarks if remark.startswith("leaf-1")] == [
        "leaf-1: eth8 to agg-1 is down, so it has no rule; its source ports are hashed among the "
        "other links"
    ]


def test_where_no_link_is_left_the_remark_says_so() -> None:
    """There is nothing to hash among."""
    table = {
        "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "failures": {"dead": {"kind": "down", "links": ["leaf-0 <-> spine-0"]}},
    }
    found = cluster.from_dict(table, "cut")
    _, remarks = switchconfig.files(found, segments.of(found, "dnlb"), "nftables", "leaf-0")
    assert remarks[-1].endswith("has no rule; no other link is left for its source ports")


def wide(uplinks: int, names: dict[str, Any], platform: str = "sonic") -> list[str]:
    """What is remarked of switches with so many uplinks."""
    shape = {"topology": "leaf-spine", "leaves": 2, "spines": uplinks, "hosts_per_leaf": 2}
    found = cluster.from_dict({"fabric": shape | {"link": "100Gbps"}, "cluster": names}, "wide")
    _, remarks = switchconfig.files(found, segments.of(found, "dnlb"), platform)
    return [remark for remark in remarks if not remark.startswith(f"{platform}: ")]


SONIC_NAMES = {
    "host_port": "Ethernet{4*place}",
    "uplink_port": "Ethernet{4*hosts+4*uplink}",
    "downlink_port": "Ethernet{4*downlink}",
}


def test_more_ranges_than_checkers_are_remarked() -> None:
    """Sixteen fit NVIDIA's Spectrum, with a range of destination ports one less."""
    assert wide(16, SONIC_NAMES) == []
    (said,) = wide(32, SONIC_NAMES)
    assert said.startswith("leaf-0 (and 1 more switches): 32 ranges of ports; ")
    (said,) = wide(16, SONIC_NAMES | {"ports": 4})
    assert said.startswith("leaf-0 (and 1 more switches): 17 ranges of ports; ")


@pytest.mark.parametrize(
    ("platform", "mend"),
    [
        ("sonic", "Ethernet{4*place}"),
        ("cumulus", "swp{place+1}"),
        ("junos", "et-0/0/{place}"),
        ("ios", "FHGigabitEthernet0/{place+1}"),
    ],
)
def test_names_that_a_platform_does_not_have_are_remarked(platform: str, mend: str) -> None:
    """The first of them, once, with a mend; a file of such names changes nothing."""
    (said,) = wide(4, {}, platform)
    assert said.startswith("leaf-0: eth1 is no name of a port there; ")
    assert f'host_port = "{mend}"' in said
    uplink = mend.replace("place", "hosts+uplink")
    assert wide(4, {"host_port": mend, "uplink_port": uplink}, platform) == []
