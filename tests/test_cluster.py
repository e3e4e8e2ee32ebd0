"""Clusters: names and addresses of real fabrics, and every mistake in them."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import cluster
from weft.errors import ExperimentError

SMALL: dict[str, Any] = {
    "topology": "leaf-spine",
    "leaves": 2,
    "spines": 2,
    "hosts_per_leaf": 2,
}
THREE: dict[str, Any] = {
    **{"topology": "clos", "tiers": 3, "pods": 2, "leaves": 2, "aggs": 2, "cores": 4},
    **{"hosts_per_leaf": 2, "links_per_pair": 2, "core_links_per_pair": 2},
}


def of(fabric: dict[str, Any], **sections: Any) -> cluster.Cluster:
    """The cluster with this fabric."""
    return cluster.from_dict({"fabric": fabric, **sections})


counts = st.integers(1, 5)
leaf_spines = st.fixed_dictionaries(
    {
        **{"topology": st.just("leaf-spine"), "leaves": counts, "spines": counts},
        **{"hosts_per_leaf": counts, "links_per_pair": st.integers(1, 3)},
    }
)
clos = st.tuples(counts, counts, counts, counts).map(
    lambda four: (
        {**THREE, "pods": four[0], "leaves": four[1], "aggs": four[2]}
        | {"cores": four[2] * four[3]}
    )
)


@settings(deadline=None, max_examples=40)
@given(st.one_of(leaf_spines, clos))
def test_defaults_are_valid_and_distinct(fabric: dict[str, Any]) -> None:
    """Names fit Linux, ports are distinct on a switch, addresses everywhere, hosts in racks."""
    found = of(fabric)
    ports = [(link.lower, link.lower_port) for link in found.links]
    ports += [(link.upper, link.upper_port) for link in found.links]
    assert len(set(ports)) == len(ports)
    assert all(len(port) <= 15 for _, port in ports)
    names = [one.name for one in (*found.hosts, *found.switches)]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 15 for name in names)
    between = found.links[len(found.hosts) :]
    ends = [address for link in between for address in (link.lower_address, link.upper_address)]
    addresses = [IPv4Address(text) for text in ends + [host.address for host in found.hosts]]
    assert len(set(addresses)) == len(addresses)
    for host in found.hosts:
        assert IPv4Address(host.address) in IPv4Network(found.switches[host.leaf].racks[0])
    for link in between:
        one, two = IPv4Address(link.lower_address), IPv4Address(link.upper_address)
        assert two in IPv4Network(f"{one}/31")


@settings(deadline=None, max_examples=20)
@given(st.one_of(leaf_spines, clos))
def test_json_gives_the_same_cluster(fabric: dict[str, Any]) -> None:
    """Through text and back."""
    found = of(fabric, nccl={"NCCL_DEBUG": "WARN"})
    assert cluster.from_json(json.loads(json.dumps(cluster.as_json(found)))) == found


def test_links_are_in_the_order_of_uplinks() -> None:
    """Of a bundle: spine by spine, and members of a pair beside each other."""
    found = of({**SMALL, "links_per_pair": 2})
    up = found.uplinks["leaf-1"]
    assert [(link.upper, link.member) for link in up] == [
        *(("spine-0", 0), ("spine-0", 1), ("spine-1", 0), ("spine-1", 1))
    ]
    assert [link.lower_port for link in up] == ["eth3", "eth4", "eth5", "eth6"]
    assert [link.upper_port for link in up] == ["eth3", "eth4", "eth3", "eth4"]
    assert found.uplinks["host-3"][0].upper_address == "10.1.0.1"


def test_three_tiers() -> None:
    """Aggregation switches have uplinks and the racks of their pod, cores all racks."""
    found = of(THREE)
    agg = found.by_node["pod-1-agg-0"]
    assert isinstance(agg, cluster.Switch)
    assert (agg.tier, agg.pod, agg.index, agg.name) == (1, 1, 2, "agg-2")
    assert agg.racks == ("10.2.0.0/16", "10.3.0.0/16")
    assert [link.upper for link in found.uplinks[agg.node]] == ["core-0"] * 2 + ["core-1"] * 2
    core = found.switches[-1]
    assert core.racks == tuple(f"10.{leaf}.0.0/16" for leaf in range(4))


def test_sockets_have_more_ports_to_listen_at() -> None:
    """Unless the file says how many; plans of older versions are of UDP."""
    assert (of(SMALL).protocol, of(SMALL).ports) == ("udp", 1)
    assert of(SMALL, cluster={"protocol": "tcp"}).ports == 64
    assert of(SMALL, cluster={"protocol": "tcp", "ports": 8}).ports == 8
    high = of(SMALL, cluster={"port": 65500})
    with pytest.raises(ExperimentError, match="64 of tcp from 65500 on end above 65535; use 65472"):
        cluster.for_protocol(high, "tcp")
    written = cluster.as_json(of(SMALL))
    older = {key: written[key] for key in written if key not in ("protocol", "ports")}
    assert cluster.from_json(json.loads(json.dumps(older))) == of(SMALL)


def test_failures_at_the_start() -> None:
    """Down, degraded, and what begins later."""
    found = of(
        SMALL,
        failures={
            "gone": {"links": ["leaf-0 <-> spine-1"], "kind": "down"},
            "slow": {"links": ["leaf-1 -> spine-0"], "kind": "degraded", "lost": 0.75},
            "late": {"links": ["leaf-1 <-> spine-1"], "kind": "down", "start": "1s"},
        },
    )
    states = {(link.lower, link.upper): (link.state, link.rate_bps) for link in found.links}
    assert states["leaf-0", "spine-1"] == ("down", 100_000_000_000)
    assert states["leaf-1", "spine-0"] == ("degraded", 25_000_000_000)
    assert states["leaf-1", "spine-1"] == ("up", 100_000_000_000)
    assert all(link.line_bps == 100_000_000_000 for link in found.links)


@pytest.mark.parametrize("rails", [False, True])
def test_servers_with_several_nics(rails: bool) -> None:
    """A name says server and rail, and each server has each rail once."""
    shape = {**SMALL, "leaves": 4, "hosts_per_leaf": 4}
    found = of({**shape, "server": {"gpus": 4, "nics": 2, "rails": rails}})
    pairs = {(host.server, host.rail) for host in found.hosts}
    assert pairs == {(server, rail) for server in range(8) for rail in range(2)}
    of_server = [host for host in found.hosts if host.server == 5]
    assert [host.name for host in of_server] == ["s5r0", "s5r1"]
    assert [host.interface for host in of_server] == ["eth0", "eth1"]
    assert len({host.leaf for host in of_server}) == (2 if rails else 1)


@pytest.mark.parametrize(
    "fabric",
    [
        {"topology": "leaf-spine", "leaves": 64, "spines": 64, "hosts_per_leaf": 64},
        {"topology": "fat-tree", "k": 26},
        {"topology": "leaf-spine", "leaves": 300, "spines": 2, "hosts_per_leaf": 9},
        {"topology": "leaf-spine", "leaves": 5000, "spines": 1, "hosts_per_leaf": 1},
    ],
)
def test_large_fabrics_have_defaults(fabric: dict[str, Any]) -> None:
    """4096 hosts, and more leaves than an address has values in a byte."""
    found = of(fabric)
    assert len({host.address for host in found.hosts}) == len(found.hosts)


def test_a_file_says_how_things_are_called(tmp_path: Path) -> None:
    """Patterns with the numbers of their place."""
    path = tmp_path / "mine.toml"
    path.write_text("""
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
links_per_pair = 4
[cluster]
dscp = 10
leaf = "tor{leaf+1:02}"
uplink_port = "FHGigabitEthernet0/{51+8*spine+member}"
uplink_next_hop = "100.98.{leaf}.{10+32*spine+4*member}"
uplink_address = "100.98.{leaf}.{9+32*spine+4*member}"
[nccl]
NCCL_DEBUG = "INFO"
""")
    found = cluster.read(path)
    assert (found.title, found.dscp, found.nccl) == ("mine", 10, {"NCCL_DEBUG": "INFO"})
    assert found.switches[1].name == "tor02"
    last = found.uplinks["leaf-0"][-1]
    assert (last.lower_port, last.upper_address) == ("FHGigabitEthernet0/62", "100.98.0.54")


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"hots": "h"}, r"mine: cluster.hots: unknown key; did you mean 'host'\?"),
    ({"dscp": 64}, "mine: cluster.dscp: 64 is out of range; use 0 to 63"),
    ({"protocol": "sctp"}, 'cluster.protocol: \'sctp\' is not known; use "udp" or "tcp"'),
    ({"ports": 0}, "cluster.ports: 0 is out of range; use 1 to 4096"),
    ({"ports": 9, "port": 65530}, "cluster.ports: 9 from 65530 on end above 65535; use 6 at"),
    ({"dscp": True}, "cluster.dscp: not a whole number; use 0 to 63"),
    ({"host": "h"}, "cluster.host: host-1 has the name h, and so has host-0; make"),
    ({"host": "h{hots}"}, "cluster.host: .* uses 'hots'; the names here are host, leaf"),
    ({"host": "h{host"}, "cluster.host: .* a bracket without its other half; close it"),
    ({"host": "h{host**2}"}, "cluster.host: .* more than whole numbers; use names and"),
    ({"host": "h{__import__('os')}"}, "cluster.host: .* more than whole numbers"),
    ({"host": "h{host//0}"}, "cluster.host: .* divides by zero for host 0; mend"),
    ({"host": "h{host-1}"}, "cluster.host: .* gives -1 for host 0; use 0 or more"),
    ({"host": "h {host}"}, "cluster.host: 'h 0' is no name; use letters"),
    ({"host": "h{host}\nreboot"}, "cluster.host: .* is no name; use letters"),
    ({"host": 3}, 'cluster.host: not text; write host = "h{host}"'),
    ({"leaf": "h{leaf}"}, "cluster.leaf: leaf-0 has the name h0, and so has host-0"),
    ({"host_port": "eth3"}, "cluster.host_port: leaf-0 to host-1 has the port eth3"),
    ({"uplink_port": "eth1"}, "cluster.uplink_port: leaf-0 to spine-0 has the port eth1"),
    ({"host_address": "10.0.0.300"}, "cluster.host_address: '10.0.0.300' is no IPv4"),
    ({"host_address": "10.9.0.{host}"}, "10.9.0.0 is no host address of its rack 10.0.0.0/16"),
    ({"rack": "10.{leaf}.0.0"}, "10.0.0.2 is no host address of its rack|gateway"),
    ({"rack": "10.{leaf}.0.1/16"}, "cluster.rack: '10.0.0.1/16' is no IPv4 prefix"),
    ({"rack": "10.0.0.0/8"}, "cluster.rack: 10.0.0.0/8 and 10.0.0.0/8 overlap"),
    ({"uplink_address": "10.0.9.{link}"}, "uplink_address: 10.0.9.0 is inside a rack's"),
    ({"first_port": 65535}, "cluster.last_port: 1 source ports for 2 uplinks; let it"),
]


@pytest.mark.parametrize(("section", "message"), MISTAKES)
def test_a_mistake_is_told_in_one_line(section: dict[str, Any], message: str) -> None:
    """File, key and mend."""
    with pytest.raises(ExperimentError, match=message) as caught:
        cluster.from_dict({"fabric": SMALL, "cluster": section}, "mine")
    line = str(caught.value)
    assert line.startswith("mine: cluster.")
    assert "\n" not in line
    assert "; " in line


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        ({**SMALL, "planes": 2}, "fabric.planes: clusters and plans are of one plane only; "),
        ({**SMALL, "homes": 2}, "fabric.homes: clusters and plans are of hosts with one port"),
        (
            {**SMALL, "topology": "rail-only", "rails": 2},
            "fabric.topology: clusters and plans are of folded Clos only; choose leaf-spine",
        ),
        (
            {"topology": "torus", "sizes": "2x2", "hosts_per_leaf": 1},
            "fabric.topology: clusters and plans are of folded Clos only; choose leaf-spine",
        ),
        (
            {"topology": "graph", "host_switches": [0, 1], "links": ["0 1"]},
            "fabric.topology: clusters and plans are of folded Clos only; choose leaf-spine",
        ),
    ],
)
def test_other_networks_are_refused_by_the_key_that_makes_them(
    fabric: dict[str, Any], message: str
) -> None:
    """In one line; and not with leaf-spine as the mend of one."""
    with pytest.raises(ExperimentError) as caught:
        of(fabric)
    assert str(caught.value).startswith(f"cluster: {message}")
    assert "\n" not in str(caught.value)


def test_mistakes_elsewhere(tmp_path: Path) -> None:
    """Of the file, its other sections, and a plan's cluster."""
    for table, message in [
        ({"fabric": {**SMALL, "leafs": 3}}, r"cluster: fabric.leafs: unknown key; did you mean"),
        ({"fabric": SMALL, "clusters": {}}, r"cluster: clusters: unknown key; did you mean"),
        ({"fabric": SMALL, "workload": {}}, r"cluster: workload: .* it belongs to the job$"),
        ({"fabric": SMALL, "nccl": {"A": 1.5}}, r"cluster: nccl.A: neither text nor"),
        (
            {"fabric": SMALL, "nccl": {"A B": "1"}},
            r"cluster: nccl.A B: is no variable; use letters",
        ),
        ({"fabric": SMALL, "nccl": {"1A": "1"}}, r"cluster: nccl.1A: is no variable; use letters"),
        ({"fabric": SMALL, "nccl": {"A": "1\nB=2"}}, r"cluster: nccl.A: '1\\nB=2' is more than a"),
        *(
            ({"fabric": SMALL, "nccl": {"NCCL_IB_QPS_PER_CONNECTION": count}}, r"; use 1 to 128$")
            for count in ("abc", 0, "0", -1, 129, "")
        ),
        ({"fabric": SMALL, "cluster": {"host": ""}}, r"cluster.host: is empty; write host = \"h"),
        ({"fabric": SMALL, "cluster": 3}, r"cluster: cluster: not a table; write \[cluster\]"),
        ({"fabric": SMALL, "title": 3}, r"cluster: title: not text; write title"),
    ]:
        with pytest.raises(ExperimentError, match=message):
            cluster.from_dict(table)
    with pytest.raises(ExperimentError, match="no such file"):
        cluster.read(tmp_path / "none.toml")
    with pytest.raises(ExperimentError, match=r"plan\.json: cluster: not as weft plan writes it"):
        cluster.from_json({"hosts": []}, "plan.json")
