//! NICs with ports at several switches: where routing looks for their hosts, also when a link of one has died.

use weft_fabric::import::{Topology, read};
use weft_fabric::{Clos, Detours, Fabric, Link, Node, Wiring};
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

/// Four leaves, two for each four hosts, and two spines.
fn dual() -> Fabric {
    let wiring = Wiring::homed(&Clos::leaf_spine(4, 2, 4, LINK), 2).unwrap();
    Fabric::of_wiring(wiring).unwrap()
}

fn switch(fabric: &Fabric, name: &str) -> SwitchId {
    fabric.switch_named(name).unwrap_or_else(|| panic!("{name} is there"))
}

/// Where `ports` lead, by name.
fn peers(fabric: &Fabric, ports: &[PortId]) -> Vec<String> {
    let mut peers: Vec<String> =
        ports.iter().map(|port| fabric.name(fabric.ports()[*port].peer)).collect();
    peers.sort();
    peers
}

#[test]
fn hosts_are_behind_each_of_their_leaves() {
    let fabric = dual();
    assert_eq!((fabric.hosts(), fabric.leaves(), fabric.switches()), (8, 2, 6));
    assert_eq!((fabric.nic_ports(), fabric.homes(), fabric.planes()), (2, 2, 1));
    assert_eq!((fabric.links().count(), fabric.nics().count()), (8 * 2 + 4 * 2, 16));
    assert_eq!(fabric.line_rate(), Rate::gbps(200));
    for host in (0..8).map(HostId) {
        let nics = [0, 1].map(|home| fabric.nic_in_plane(host, home));
        let leaves = if host.0 < 4 { ["leaf-0", "leaf-1"] } else { ["leaf-2", "leaf-3"] };
        assert_eq!(peers(&fabric, &nics), leaves);
        for leaf in leaves {
            let hops = fabric.equal_hops(switch(&fabric, leaf), host);
            assert_eq!(peers(&fabric, &hops), [fabric.name(Node::Host(host))]);
        }
        let hops = fabric.equal_hops(switch(&fabric, "spine-1"), host);
        assert_eq!(peers(&fabric, &hops), leaves);
    }
    let hops = fabric.equal_hops(switch(&fabric, "leaf-3"), HostId(0));
    assert_eq!(peers(&fabric, &hops), ["spine-0", "spine-1"]);
    assert_eq!((fabric.hops(HostId(0), HostId(3)), fabric.hops(HostId(0), HostId(4))), (2, 4));
    assert_eq!(fabric.least_links(HostId(0), HostId(4)), 4);
    assert!(!fabric.has_circular_routes() && fabric.is_oversubscribed());
    assert_eq!(fabric.uplinks(switch(&fabric, "leaf-1")), 2);
    for path in (0..fabric.path_set(HostId(0), HostId(5)).len())
        .map(|path| fabric.path_set(HostId(0), HostId(5)).get(path))
    {
        assert_eq!(fabric.trace(HostId(0), HostId(5), path).len(), 4);
    }
}

#[test]
fn a_host_whose_link_died_is_behind_its_other_leaf() {
    let fabric = dual();
    let dead = fabric.nic_in_plane(HostId(1), 0);
    for dead in [dead, fabric.ports()[dead].reverse] {
        assert_eq!(fabric.dead_nic_ports(&[dead]), [(HostId(1), 1)]);
        let detours = Detours::new(&fabric, &[dead]);
        let left = |name: &str, host| {
            let hops = detours.next_hops(switch(&fabric, name), HostId(host));
            hops.map(|hops| peers(&fabric, hops))
        };
        for spine in ["spine-0", "spine-1"] {
            assert_eq!(left(spine, 1), Some(vec!["leaf-1".into()]), "{spine}");
        }
        assert_eq!(left("leaf-0", 1), Some(vec!["spine-0".into(), "spine-1".into()]));
        assert_eq!((left("leaf-1", 1), left("leaf-2", 1)), (None, None));
        assert!((0..8).filter(|host| *host != 1).all(|host| left("spine-0", host).is_none()));
        // What is pinned follows, too.
        let leaf = switch(&fabric, "leaf-0");
        let hops = detours.next_hops(leaf, HostId(1));
        let (port, _) = fabric.pinned_hop(leaf, HostId(1), Default::default(), hops).unwrap();
        assert_eq!(peers(&fabric, &[port]), ["spine-0"]);
    }
    // Nobody is behind a host without links.
    let both = [0, 1].map(|home| fabric.nic_in_plane(HostId(1), home));
    assert_eq!(fabric.dead_nic_ports(&both), []);
}

#[test]
fn leaves_that_cannot_be_shared_are_refused() {
    let error = |clos: Clos, homes| Wiring::homed(&clos, homes).unwrap_err().0;
    assert_eq!(
        error(Clos::leaf_spine(4, 2, 4, LINK), 3),
        "3 homes do not divide 4 leaves; use a divisor"
    );
    assert_eq!(error(Clos::fat_tree(4, LINK), 4), "4 homes do not divide 2 leaves; use a divisor");
}

/// Two hosts at switches 4 and 5, two at 6 and 7.
const FILE: &str = "8 4 11\n4 5 6 7\n0 4 100Gbps 1us 0\n0 5 100Gbps 1us 0\n1 5 100Gbps 1us 0\n1 4 100Gbps 1us 0\n\
                    2 6 100Gbps 1us 0\n2 7 100Gbps 1us 0\n3 6 100Gbps 1us 0\n3 7 100Gbps 1us 0\n\
                    4 6 200Gbps 1us 0\n5 7 200Gbps 1us 0\n4 7 200Gbps 1us 0\n";

#[test]
fn files_of_ns3_have_hosts_with_several_links() {
    let Ok(Topology::Ns3Graph(file)) = read("dual.txt", FILE) else { panic!("it is a graph") };
    assert_eq!(file.graph.host_switches, [4, 4, 6, 6]);
    assert_eq!(file.graph.other_switches, [[5], [5], [7], [7]]);
    let fabric = Fabric::of_wiring(file.graph.wiring().unwrap()).unwrap();
    let hops = fabric.equal_hops(switch(&fabric, "switch-4"), HostId(2));
    assert_eq!(peers(&fabric, &hops), ["switch-6", "switch-7"]);
    let hops = fabric.equal_hops(switch(&fabric, "switch-5"), HostId(2));
    assert_eq!(peers(&fabric, &hops), ["switch-7"]);
    let refused = |from, to| read("dual.txt", &FILE.replace(from, to)).unwrap_err().0;
    let apart = refused("1 4 100Gbps", "1 6 100Gbps");
    assert_eq!(
        apart,
        "dual.txt: hosts of several leaves are at switch 5; let those that share a switch share all"
    );
    let uneven = refused("1 4 100Gbps", "4 5 100Gbps");
    assert_eq!(
        uneven,
        "dual.txt: host 1 has 1, and host 0 has 2 ports; give all as many, at most 8"
    );
}
