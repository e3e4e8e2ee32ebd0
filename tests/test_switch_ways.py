"""Plans kept by destination addresses (RLB) and by SRv6; names of ports; advice."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import weft as package
from conftest import Weft
from weft import ExperimentError, cluster
from weft.cluster import Cluster, Host, Link
from weft.plans import for_switches
from weft.plans.for_switches import Request
from weft.switches import addresses, advice, platforms, segments, srv6
from weft.switches import config as switchconfig
from weft.switches.addresses import Hop, Routing
from weft.switches.platforms import PLATFORMS
from weft.switches.srv6 import Locator
from weft.testbed import system

FABRIC = {"topology": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2}


def made_of(fabric: dict[str, Any], **more: Any) -> Cluster:
    """A cluster with addresses of paths."""
    return cluster.from_dict(
        {"fabric": fabric, "cluster": {"path_addresses": "172.16.0.0/12"}, **more}, "mine"
    )


def walk(
    found: Cluster,
    routings: dict[str, Routing],
    src: int,
    to: str,
    dead: tuple[str, str] | None = None,
) -> tuple[list[str], str]:
    """The links that a packet crosses, and the address of the host that it is handed to."""
    here, crossed = f"leaf-{found.hosts[src].leaf}", []
    for _ in range(8):
        hops = next_hops(routings[here], to, dead)
        assert hops, (here, to)
        link = link_at(found, here, hops[0])
        if link is None:
            return crossed, hops[0].next_hop
        crossed.append(link.lower_port if here == link.lower else link.upper_port)
        here = link.upper if here == link.lower else link.lower
    raise AssertionError("it goes round")


def next_hops(routing: Routing, to: str, dead: tuple[str, str] | None) -> Sequence[Hop]:
    """By the longest prefix; of its routes the first with a link. A switch has a dead port."""
    address = ipaddress.ip_address(to)
    fits = [one for one in routing.routes if address in ipaddress.ip_network(one.prefix)]
    best = max(fits, key=lambda one: ipaddress.ip_network(one.prefix).prefixlen)
    first = [hop for hop in best.hops if (routing.node, hop.port) != dead]
    return first or [hop for hop in best.spare if (routing.node, hop.port) != dead]


def link_at(found: Cluster, node: str, hop: Hop) -> Link | None:
    """The link behind a port of a switch; None: a host."""
    for link in found.links:
        if (link.lower, link.lower_port) == (node, hop.port):
            assert hop.next_hop == link.upper_address
            return link
        if (link.upper, link.upper_port) == (node, hop.port):
            assert hop.next_hop == link.lower_address
            return link
    return None


@pytest.mark.parametrize("members", [1, 3])
def test_an_address_is_a_path(members: int) -> None:
    """Up over the uplink that it stands for, down over the same link of a bundle, to its host."""
    found = made_of({**FABRIC, "links_per_pair": members})
    routings, hosts = addresses.of(found)
    by_node = {one.node: one for one in routings}
    for dst, host in enumerate(hosts):
        assert len(set(host.addresses)) == 2 * members
        for uplink, address in enumerate(host.addresses):
            crossed, reached = walk(found, by_node, 0, address)
            assert reached == found.hosts[dst].address
            if found.hosts[dst].leaf == 0:
                assert crossed == []
                continue
            up = found.uplinks["leaf-0"][uplink]
            down = found.uplinks[f"leaf-{found.hosts[dst].leaf}"][uplink]
            assert crossed == [up.lower_port, down.upper_port]
    every = [one for host in hosts for one in host.addresses]
    assert len(set(every)) == len(every)


def test_a_dead_uplink_has_the_others_behind_it() -> None:
    """The route of its addresses goes; the next one leads over another spine."""
    found = made_of(FABRIC)
    routings, hosts = addresses.of(found)
    by_node = {one.node: one for one in routings}
    dead = found.uplinks["leaf-0"][0].lower_port
    crossed, reached = walk(found, by_node, 0, hosts[5].addresses[0], ("leaf-0", dead))
    assert crossed[0] == found.uplinks["leaf-0"][1].lower_port
    assert reached == found.hosts[5].address
    down = made_of(FABRIC, failures={"x": {"kind": "down", "links": ["leaf-0 <-> spine-0"]}})
    (leaf, *_), _ = addresses.of(down)
    assert dead not in leaf.port_names


@pytest.mark.parametrize(
    ("network", "fabric", "says"),
    [
        ("172.16.0.0/30", FABRIC, "2 uplinks, 3 leaves and 2 hosts of a leaf need 5 bits, but"),
        ("172.16.0.1/12", FABRIC, "'172.16.0.1/12' is no IPv4 network; write one as"),
        ("10.0.0.0/8", FABRIC, "of the cluster is in it; use another network"),
        ("100.64.0.0/10", FABRIC, "of the cluster is in it; use another network"),
        (7, FABRIC, r"not text; write path_addresses = "),
        ("172.16.0.0/12", {"topology": "fat-tree", "k": 4}, "no path in three tiers"),
    ],
)
def test_networks_that_cannot_be(network: object, fabric: dict[str, Any], says: str) -> None:
    """Key and mend, in one line."""
    table = {"fabric": fabric, "cluster": {"path_addresses": network}}
    with pytest.raises(ExperimentError, match=says) as caught:
        cluster.from_dict(table, "mine")
    assert str(caught.value).startswith("mine: cluster.path_addresses: ")


def test_a_plan_file_has_the_network_only_if_there_is_one() -> None:
    """And reads as it was written."""
    plain, with_network = cluster.from_dict({"fabric": FABRIC}), made_of(FABRIC)
    assert "path_addresses" not in cluster.as_json(plain)
    assert cluster.from_json(cluster.as_json(plain)) == plain
    assert cluster.from_json(cluster.as_json(with_network)) == with_network
    assert with_network.path_addresses == "172.16.0.0/12"


def forward(
    found: Cluster, locators: dict[str, Locator], src: int, to: str
) -> tuple[list[str], str]:
    """The switches that a wrapped packet visits, the last of which unwraps it."""
    here, visited = f"leaf-{found.hosts[src].leaf}", []
    address = int(ipaddress.IPv6Address(to))
    for _ in range(8):
        visited.append(here)
        mine = locators[here]
        if mine.unwrap and within(address, mine.unwrap):
            return visited, here
        if within(address, mine.prefix):
            # uN: the block stays, the rest moves up by a segment.
            rest = address & ((1 << 96) - 1)
            address = (address >> 96) << 96 | (rest << 16) & ((1 << 96) - 1)
        routes = [one for one in mine.routes if one.locator and within(address, one.locator)]
        here = next(one.node for one in locators.values() if one.name == routes[0].name)
    raise AssertionError("it goes round")


def within(address: int, prefix: str) -> bool:
    """Whether a prefix has an address."""
    return ipaddress.IPv6Address(address) in ipaddress.IPv6Network(prefix)


def test_segments_lead_over_the_spine_of_the_source_port() -> None:
    """Every port of every uplink, from each host to each other rack."""
    found = cluster.from_dict({"fabric": FABRIC})
    cut = segments.of(found, "dnlb")
    switches, hosts = srv6.of(found, cut)
    locators = {one.node: one for one in switches}
    assert len({one.prefix for one in switches}) == len(switches)
    for number, host in enumerate(hosts):
        own = f"leaf-{found.hosts[number].leaf}"
        assert [path.ranges for path in host.paths] == cut[own]
        for path in host.paths:
            racks = {rack for leaf in found.switches[:3] if leaf.node != own for rack in leaf.racks}
            assert {rack for rack, _ in path.routes} == racks
            for rack, to in path.routes:
                visited, last = forward(found, locators, number, to)
                assert visited == [own, path.spine, last]
                assert rack in next(one.racks for one in found.switches if one.node == last)


def test_what_segments_cannot_do_is_said() -> None:
    """Bundles, three tiers, other blocks."""
    for fabric, block, says in (
        ({**FABRIC, "links_per_pair": 2}, srv6.BLOCK, "cannot be told apart; use --enforce addr"),
        ({"topology": "fat-tree", "k": 4}, srv6.BLOCK, "two tiers only"),
        (FABRIC, "fcbb::/16", "is no IPv6 prefix of 32 bits"),
        (FABRIC, "10.0.0.0/32", "is no IPv6 prefix of 32 bits"),
    ):
        found = cluster.from_dict({"fabric": fabric})
        with pytest.raises(ExperimentError, match=says):
            srv6.of(found, segments.of(found, "dnlb"), block)


WRAPPED = """
import socket, sys
ears = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
for number, ear in enumerate(ears):
    ear.bind((f"eth{number}", 0))
    ear.settimeout(0.5)
for source in sys.argv[1:]:
    for port in (50000, 60000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((source, port))
            one.sendto(b"x", ("10.2.0.2", 4791))
        for number, ear in enumerate(ears):
            try:
                while (frame := ear.recv(2000))[12:14] != bytes.fromhex("86dd") or frame[20] != 4:
                    pass
                print(source, port, number, socket.inet_ntop(socket.AF_INET6, frame[38:54]))
            except TimeoutError:
                pass
"""


@pytest.mark.skipif(system.missing() is not None, reason=str(system.missing()))
def test_each_nic_of_a_server_wraps_what_is_its_own(tmp_path: Path) -> None:
    """Its files are loaded on one machine, and taken back one by one."""
    server = {"gpus": 2, "nics": 2, "rails": True}
    fabric = {**FABRIC, "leaves": 4, "server": server}
    found = cluster.from_dict({"fabric": fabric})
    made, _ = switchconfig.files_by_segment_routing(found, segments.of(found, "dnlb"), "linux")
    switchconfig.write(made, tmp_path)
    here = f"weft-test-{os.getpid()}"
    hosts = found.hosts[0], next(host for host in found.hosts if host.name == "s0r1")
    assert [host.interface for host in hosts] == ["eth0", "eth1"]

    def load(suffix: str, *hosts: Host) -> None:
        for host in hosts:
            system.run_script(here, tmp_path / f"{host.name}.{suffix}")

    def wrapped() -> list[list[str]]:
        words = [sys.executable, "-c", WRAPPED, *(host.address for host in hosts)]
        done = subprocess.run(
            ["ip", "netns", "exec", here, *words], capture_output=True, text=True, check=True
        )
        return [line.split() for line in done.stdout.splitlines()]

    system.batch("ip", [f"netns add {here}", f"netns add {here}-peer"])
    try:
        for number, host in enumerate(hosts):
            ends = f"eth{number} netns {here} type veth peer name eth{number} netns {here}-peer"
            system.batch("ip", [f"link add {ends}"])
            own = [f"link set eth{number} up", f"addr add {host.address}/16 dev eth{number}"]
            system.batch("ip", own, here)
            system.batch("ip", [f"link set eth{number} up"], f"{here}-peer")
        system.batch("ip", ["route add default dev eth1"], here)
        load("sh", *hosts)
        of = {host.name: host for host in srv6.of(found, segments.of(found, "dnlb"))[1]}
        gateways = [f"{of[host.name].gateway} dev eth{n}" for n, host in enumerate(hosts)]
        near = "lladdr 02:00:00:00:00:01 nud permanent"
        system.batch("ip", [f"neigh replace {one} {near}" for one in gateways], here)
        expected = [
            [host.address, str(port), str(number), path.routes[1][1]]
            for number, host in enumerate(hosts)
            for port, path in zip((50_000, 60_000), of[host.name].paths, strict=True)
        ]
        assert wrapped() == expected
        load("rollback", hosts[0])
        assert wrapped() == expected[2:]
        load("rollback", hosts[1])
        assert wrapped() == []
        rules = system.ask("ip", "rule", namespace=here) + system.ask(
            "ip", "-6", "rule", namespace=here
        )
        assert "900:" not in rules
    finally:
        for name in (here, f"{here}-peer"):
            subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A cluster file."""
    path = tmp_path / "mine.toml"
    text = '[fabric]\ntopology = "leaf-spine"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\n'
    path.write_text(text + '[cluster]\npath_addresses = "172.16.0.0/12"\n')
    return path


@pytest.mark.parametrize("way", ["addresses", "srv6"])
def test_every_platform_writes_or_refuses(mine: Path, way: Any) -> None:
    """Files of all switches and hosts with rollbacks; SONiC's are JSON, scripts are sound."""
    written = []
    for platform in PLATFORMS:
        if not getattr(platforms.find(platform), way):
            with pytest.raises(ExperimentError, match=f"{way}: not written for {platform}; use --"):
                for_switches.files(mine, Request(platform, way))
            continue
        made, remarks = for_switches.files(mine, Request(platform, way))
        written.append(platform)
        names = [file.name for file in made]
        assert sum(name.endswith(".rollback") for name in names) == 5 + 6
        assert len(set(names)) == len(names)
        assert any("hosts need their files as well" in remark for remark in remarks)
        for file in made:
            assert file.text.isascii()
            assert file.text.endswith("\n")
            if file.name.endswith(".json"):
                json.loads(file.text)
            elif file.text.startswith("#!/bin/sh"):
                subprocess.run(["sh", "-n"], input=file.text, text=True, check=True)
    assert {"linux", "frr", "sonic"} <= set(written)


@pytest.mark.parametrize("platform", ["linux", "frr", "sonic"])
def test_a_spine_without_links_has_its_segment_and_no_routes(mine: Path, platform: str) -> None:
    """It is down as a whole."""
    links = [f"leaf-{leaf} <-> spine-1" for leaf in range(3)]
    with mine.open("a") as file:
        file.write(f'[failures.spine]\nlinks = {links}\nkind = "down"\n')
    made, _ = for_switches.files(mine, Request(platform, "srv6"))
    of = {file.name.partition(".")[0]: file.text for file in made if "rollback" not in file.name}
    own = {name: re.search(r"fcbb:bb00:\w+::/48", of[name]) for name in ("spine-0", "spine-1")}
    assert all(own.values())
    assert not any("spine-1" in text for name, text in of.items() if name != "spine-1")


@pytest.mark.skipif(shutil.which("vtysh") is None, reason="needs frr")
@pytest.mark.parametrize("way", ["addresses", "srv6"])
def test_frr_knows_the_commands(mine: Path, tmp_path: Path, way: Any) -> None:
    """But for static segments, which it has from 10.3 on."""
    made, _ = for_switches.files(mine, Request("frr", way, switch="leaf-0"))
    path = tmp_path / "leaf-0.conf"
    path.write_text(made[0].text.partition("segment-routing\n")[0])
    done = subprocess.run(["vtysh", "-C", "-f", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ip" in path.read_text()


def test_the_command_line_and_python_write_the_same(mine: Path, weft: Weft) -> None:
    """With the files of hosts, and one of them alone."""
    done = weft(
        "switch-config", mine, "--enforce", "srv6", "--format", "linux", "-o", mine.parent / "o"
    )
    assert done.returncode == 0, done.stderr
    files = {path.name: path.read_text() for path in (mine.parent / "o").iterdir()}
    assert package.switch_config(mine, "linux", enforce="srv6").files == files
    one = package.switch_config(mine, "linux", enforce="addresses", switch="h3").files
    assert list(one) == ["h3.sh", "h3.rollback"]
    assert one["h3.sh"].count("ip addr replace 172.16.") == 2
    for words, says in (
        (("--enforce", "addresses", "--scheme", "dnlb"), "only source ports follow from it"),
        (("--enforce", "addresses", "--switch", "nobody"), "is no switch or host of this cluster"),
        *(
            (("--enforce", "srv6", "--srv6-block", block), f"{block} is neither global unicast nor")
            for block in ("ff02::/32", "::/32", "fe80::/32")
        ),
        (("--lanes", "2", "--port-config", "x"), "--lanes: does nothing with --port-config"),
        (("--enforce", "srv6", "--srv6-block", "x"), "is no IPv6 prefix of 32 bits"),
        (("--scheme", "dnlb", "--lanes", "4"), "linux does not count lanes"),
        (("--scheme", "dnlb", "--srv6-block", "x"), "--srv6-block: does nothing with --enforce se"),
        (("--scheme", "mrc", "--advice", "--switch", "x"), "--switch: does nothing with --advice"),
    ):
        done = weft("switch-config", mine, "--format", "linux", *words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert says in done.stderr


def test_a_plan_says_which_address_a_queue_pair_goes_to(mine: Path, weft: Weft) -> None:
    """That of the uplink of its path; `--verify` works it out from the file alone."""
    (mine.parent / "job.toml").write_text('[workload]\npattern = "all-to-all"\nsize = "64KB"\n')
    words = ("--job", "job.toml", "--scheme", "ethereal", "-o", "plan")
    for given in ((mine.name, *words), ("plan/plan.json", "--verify")):
        done = weft("plan", *given)
        assert done.returncode == 0, done.stderr
    plan = json.loads((mine.parent / "plan" / "plan.json").read_text())
    hosts = {host.name: host.addresses for host in addresses.of(cluster.read(mine))[1]}
    pairs = [pair for host in plan["hosts"] for pair in host["queue_pairs"]]
    assert all(pair["to_address"] == hosts[pair["to"]][pair["path"] >> 8] for pair in pairs)
    assert len({pair["path"] for pair in pairs}) == 2


def test_without_a_network_addresses_say_what_to_add(tmp_path: Path) -> None:
    """Nobody's addresses are guessed."""
    path = tmp_path / "plain.toml"
    path.write_text('[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2')
    with pytest.raises(ExperimentError, match=r'add path_addresses = "172.16.0.0/12" to \[cluster'):
        for_switches.files(path, Request("linux", "addresses"))


def sonic(mine: Path, **more: Any) -> dict[str, Any]:
    """The access list of the first leaf."""
    made, _ = for_switches.files(mine, Request("sonic", scheme="dnlb", switch="leaf-0", **more))
    return dict(json.loads(made[0].text))


def test_port_channels_are_in_tables_of_their_own(mine: Path) -> None:
    """SONiC binds access lists to kinds of ports, and has addresses of port channels elsewhere."""
    plain = sonic(mine)["ACL_TABLE_TYPE"]["WEFT_TYPE"]["BIND_POINTS"]
    assert plain == ["PORT"]
    text = mine.read_text() + 'uplink_port = "PortChannel{uplink+1}"\n'
    mine.write_text(text)
    assert sonic(mine)["ACL_TABLE_TYPE"]["WEFT_TYPE"]["BIND_POINTS"] == ["PORT"]
    made, _ = for_switches.files(mine, Request("sonic", "srv6", switch="leaf-0"))
    table = json.loads(made[0].text)
    assert [name for name in table["INTERFACE"] if "|" not in name] == ["Ethernet0", "Ethernet4"]
    channels = [name for name in table["PORTCHANNEL_INTERFACE"] if "|" not in name]
    assert channels == ["PortChannel1", "PortChannel2"]
    for name in (*table["INTERFACE"], *table["PORTCHANNEL_INTERFACE"]):
        kind = "PORTCHANNEL_INTERFACE" if name.startswith("Port") else "INTERFACE"
        assert "|" not in name or f"del '{kind}|{name}'" in made[2].text
    mine.write_text(text + 'host_port = "PortChannel{place+8}"\n')
    assert sonic(mine)["ACL_TABLE_TYPE"]["WEFT_TYPE"]["BIND_POINTS"] == ["PORTCHANNEL"]
    made, _ = for_switches.files(mine, Request("sonic", "srv6", switch="leaf-0"))
    assert "INTERFACE" not in json.loads(made[0].text)


def test_sonic_ports_count_lanes(mine: Path) -> None:
    """By steps, by a file, and not at all where the cluster has names."""
    assert sonic(mine)["ACL_TABLE"]["WEFT"]["ports"] == ["Ethernet0", "Ethernet4"]
    assert sonic(mine)["ACL_RULE"]["WEFT|U2"]["PACKET_ACTION"].endswith("@Ethernet12")
    assert sonic(mine, lanes=8)["ACL_RULE"]["WEFT|U2"]["PACKET_ACTION"].endswith("@Ethernet24")
    config = mine.parent / "port_config.ini"
    rows = "".join(f"Ethernet{n} {n} etp{n} {n} 100000\n" for n in (0, 1, 2, 96))
    config.write_text(f"# name lanes alias index speed\n\n{rows}")
    found = sonic(mine, port_config=config)
    assert found["ACL_TABLE"]["WEFT"]["ports"] == ["Ethernet0", "Ethernet1"]
    assert found["ACL_RULE"]["WEFT|U2"]["PACKET_ACTION"].endswith("@Ethernet96")
    config.write_text("Ethernet0 0\n")
    with pytest.raises(ExperimentError, match="1 ports, but the cluster needs eth"):
        sonic(mine, port_config=config)
    config.write_text("[ports]\n")
    with pytest.raises(ExperimentError, match=r"\[ports\]: not a port_config.ini"):
        sonic(mine, port_config=config)
    mine.write_text(mine.read_text() + 'host_port = "Ethernet{100+place}"\n')
    assert sonic(mine)["ACL_TABLE"]["WEFT"]["ports"] == ["Ethernet100", "Ethernet101"]


def test_advice_is_for_what_a_scheme_wants(mine: Path) -> None:
    """Each feature that a scheme wants, on each platform, and all of it in comments."""
    for entry in package.list("schemes"):
        scheme = entry["name"].replace("-N", "-4")
        assert advice.wanted(scheme) == entry["switch_features"]
        for platform in PLATFORMS:
            ((file,), _) = for_switches.files(mine, Request(platform, scheme=scheme, advice=True))
            assert all(line.startswith("#") for line in file.text.splitlines())
            said = [one for one in advice.FEATURES if f"# {one}: " in file.text]
            assert said == entry["switch_features"]
    every = {one for entry in package.list("schemes") for one in entry["switch_features"]}
    assert every == set(advice.FEATURES)
    with pytest.raises(ExperimentError, match="add --scheme, or name a plan"):
        for_switches.files(mine, Request("sonic", advice=True))


def test_lanes_give_each_link_a_port_of_its_own(mine: Path) -> None:
    """Where only some names are the cluster's, the others may not become the same ones."""
    config = mine.parent / "port_config.ini"
    config.write_text("Ethernet0 0\nEthernet8 1\nEthernet8 2\nEthernet12 3\n")
    with pytest.raises(ExperimentError, match=r"port_config.ini: Ethernet8: is there twice; leave"):
        sonic(mine, port_config=config)
    mine.write_text(mine.read_text() + 'host_port = "Ethernet{8+4*place}"\n')
    with pytest.raises(ExperimentError, match="has ports Ethernet8 and eth3, which are both Ether"):
        sonic(mine)
    assert sonic(mine, lanes=8)["ACL_TABLE"]["WEFT"]["ports"] == ["Ethernet8", "Ethernet12"]


@pytest.mark.parametrize("way", ["addresses", "srv6"])
def test_names_of_ports_are_checked_whatever_the_way(mine: Path, way: Any) -> None:
    """Linux' own names at its switches, and at hosts of any platform; a remark for SONiC."""
    text = mine.read_text()
    mine.write_text(text + 'uplink_port = "Ethernet1/{20+uplink}"\n')
    for platform in ("linux", "frr"):
        with pytest.raises(ExperimentError, match="'Ethernet1/20' is not a Linux interface name"):
            for_switches.files(mine, Request(platform, way))
    _, remarks = for_switches.files(mine, Request("sonic", way))
    assert any("leaf-0: Ethernet1/20 is no name of a port there" in one for one in remarks)
    mine.write_text(text + 'host_interface = "averylongnameofaport"\n')
    with pytest.raises(ExperimentError, match=r"host-0: port 'averylong.*change host_interface"):
        for_switches.files(mine, Request("sonic", way))


def test_names_that_no_file_can_have_are_refused(mine: Path, weft: Weft) -> None:
    """Before anything is written; printed they do."""
    mine.write_text(mine.read_text() + 'leaf = "row/{leaf}"\n')
    words = ("switch-config", mine, "--scheme", "dnlb", "--format", "ios")
    done = weft(*words, "-o", mine.parent / "o")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "'row/0.cfg' is no name of a file" in done.stderr
    assert not (mine.parent / "o").exists()
    assert "==> row/0.cfg <==" in weft(*words).stdout
