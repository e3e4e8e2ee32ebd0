//! Topology files of SimAI: by hand, as its generator wires them, and refused.

use crate::simai_file::{SMALL, SimaiFile};
use weft_fabric::import::{self, Network, Simai, Topology, hosts, simai};
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, ScaleUp};
use weft_trial::prelude::*;
use weft_units::{HostId, Rate, SwitchId, Time};

fn read(text: &str) -> Simai {
    simai::read("x.topo", text).unwrap()
}
fn clos(found: &Simai) -> Clos {
    match &found.network {
        Network::Clos(clos) => *clos,
        Network::Graph { why, .. } => panic!("{why}"),
    }
}
fn refusal(text: &str) -> String {
    let line = import::read("x.topo", text).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}

/// Two servers of two GPUs with two NVSwitches each (5 6, 4 7), on rails: leaves 8 and 9 under spine 10. Links, and
/// the ends of some, are in any order.
const RAILS: &str = "11 2 4 3 14 H800\n5 6 4\n7 8 9\n10 \n\
                     0 5 400Gbps 0.000025ms 0\n0 6 400Gbps 0.000025ms 0\n1 6 400Gbps 25ns 0.0\n5 1 400Gbps 25ns 0\n\
                     2 4 400Gbps 0.000025ms 0\n2 7 400Gbps 0.000025ms 0\n3 7 400Gbps 25ns 0\n3 4 400Gbps 25ns 0\n\
                     0 9 200Gbps 0.0005ms 0\n8 1 200Gbps 0.0005ms 0\n2 9 200Gbps 0.0005ms 0\n3 8 200Gbps 0.0005ms 0\n\
                     8 10 800Gbps 1us 0\n9 10 800Gbps 1us 0\n";

#[test]
fn servers_are_told_from_the_network() {
    let found = read(RAILS);
    let leaf_bundle = Bundle { link: link(800, 1000), members: 1 };
    assert_eq!(clos(&found), Clos { leaf_bundle, ..Clos::leaf_spine(2, 1, 2, link(200, 500)) });
    let scale_up = ScaleUp { rate: Rate::gbps(800), latency: Time::ns(50), cycle: Time::ZERO };
    assert_eq!((found.planes, found.gpus, found.scale_up), (1, 2, Some(scale_up)));
    // The first leaf is that of the first GPU; NVSwitches are none of the nodes.
    assert_eq!(hosts(&found.nodes), [0, 2, 1, 3].map(HostId));
    assert_eq!(found.nodes[4..], [1, 0, 2].map(|switch| Node::Switch(SwitchId(switch))));
    assert_eq!(found.names, ["0", "1", "2", "3", "8", "9", "10"]);
    assert!(found.remarks.is_empty());
    // The newer first line.
    assert_eq!(read(&RAILS.replace("H800", "H800 8")), found);
    // Servers of one GPU need no NVSwitch.
    let alone = "4 1 0 1 3 NONE\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n";
    let found = read(alone);
    assert_eq!((found.gpus, found.scale_up), (1, None));
    assert_eq!(clos(&found), Clos::leaf_spine(1, 1, 3, link(1, 1000)));
}

/// The first lines of Ethereal's files have seven numbers.
#[test]
fn files_are_told_apart() {
    let links = "2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
    let kind = |head: &str| import::read("x", &format!("{head}\n{links}")).unwrap();
    for head in ["3 1 2", "3 1 2 1 0", "3 1 2 2 0 1 2"] {
        assert!(matches!(kind(head), Topology::Ns3(_)), "{head}");
    }
    for head in ["3 1 0 1 2 A100", "3 1 0 1 2 H20 8"] {
        assert!(matches!(kind(head), Topology::Simai(_)), "{head}");
    }
}

/// Two ports of each GPU at leaves that meet in no spine: a network twice.
#[test]
fn leaves_that_never_meet_are_planes() {
    let dual = SimaiFile { servers: 4, tors: 2, meet: false, ..SMALL };
    let found = read(&dual.text());
    let leaf_bundle = Bundle { link: link(800, 1000), members: 1 };
    assert_eq!(clos(&found), Clos { leaf_bundle, ..Clos::leaf_spine(4, 2, 2, link(200, 500)) });
    assert_eq!(found.planes, 2);
    let fabric = Fabric::build(&clos(&found)).unwrap().in_planes(2).unwrap();
    // Nodes 12 to 15 are leaves of the first plane, 16 to 19 of the second, then come two spines of each.
    let name = |number: &str| {
        let at = found.names.iter().position(|name| name == number).unwrap();
        fabric.name(found.nodes[at])
    };
    let named = ["1", "12", "16", "19", "20", "23"].map(name);
    let expected = [
        "host-2",
        "plane-0-leaf-0",
        "plane-1-leaf-0",
        "plane-1-leaf-3",
        "plane-0-spine-0",
        "plane-1-spine-1",
    ];
    assert_eq!(named, expected);
    // Where they differ NICs have two homes that meet nowhere.
    let other = read(&dual.text().replacen("19 23 800Gbps", "18 23 800Gbps", 1));
    assert!(matches!(other.network, Network::Graph { .. }));
    assert_eq!(other.planes, 1);
}

/// Two ports at leaves that meet: NICs with several homes, as in files of ASTRA-sim.
#[test]
fn leaves_that_meet_are_homes() {
    let found = read(&SimaiFile { servers: 4, tors: 2, ..SMALL }.text());
    let Network::Graph { graph, why } = &found.network else { panic!("no graph") };
    assert!(why.starts_with("x.topo:5: host 0 has another link on line 4"), "{why}");
    assert_eq!((found.planes, found.gpus), (1, 2));
    assert_eq!(graph.host_switches, [12, 12, 13, 13, 14, 14, 15, 15]);
    assert_eq!(graph.other_switches.concat(), [16, 16, 17, 17, 18, 18, 19, 19]);
    assert_eq!(hosts(&found.nodes), [0, 2, 1, 3, 4, 6, 5, 7].map(HostId));
}

#[test]
fn switches_without_a_link_are_left_out() {
    let more = RAILS.replace("11 2 4 3 14", "13 2 4 5 14").replace("10 \n", "10 11 12\n");
    let found = read(&more);
    assert_eq!(
        found.remarks,
        ["switches without a link are left out: 2, of which 11 is the first"]
    );
    assert_eq!(Simai { remarks: Vec::new(), ..found }, read(RAILS));
}

#[test]
fn first_lines_are_refused() {
    let first = "x.topo:1: SimAI's first line counts nodes, GPUs of a server, NVSwitches, switches and links, and \
                 names the GPU, such as '34 8 2 16 96 H20'; correct it";
    for head in ["6 2 2 1 x H100", "6 2 2 1 5 H100 x", "6 2 2 1 5 H100 8 8", "6 -2 2 1 5 H100"] {
        assert_eq!(refusal(head), first, "{head}");
    }
    let head = |head: &str| refusal(&format!("{head} H100\n"));
    assert_eq!(
        head("4 2 2 2 4"),
        "x.topo:1: 4 nodes with 4 switches among them; a fabric has switches and GPUs"
    );
    assert_eq!(head("4294967295 2 4294967295 4294967295 4"), head("4294967295 2 1 4294967294 4"));
    let odd = |count: u32| {
        format!("x.topo:1: 3 GPUs are no whole number of servers of {count}; correct the counts")
    };
    assert_eq!([head("6 2 2 1 9"), head("6 0 2 1 9")], [odd(2), odd(0)]);
    assert_eq!(
        head("5 2 0 1 4"),
        "x.topo:1: servers of 2 GPUs, and no NVSwitch that connects them; add some, or use 1 GPU a server"
    );
    assert!(head("6 2 2 0 4").starts_with("x.topo:1: no switches but NVSwitches"));
    assert_eq!(
        refusal("7 2 2 1 9 H100\n4 5"),
        "x.topo:1: 3 switches promised, but the file ends after 2 of their numbers: it is truncated; fetch it again \
         or correct the count"
    );
}

#[test]
fn what_contradicts_servers_is_refused() {
    let with = |from: &str, to: &str| {
        assert!(RAILS.contains(from));
        refusal(&RAILS.replacen(from, to, 1))
    };
    assert_eq!(
        with("2 4 400Gbps", "2 6 400Gbps"),
        "x.topo:9: GPUs 0 (line 6) and 2 share NVSwitch 6, but are in different servers of 2 GPUs (line 1); correct a \
         line or the count"
    );
    assert_eq!(
        with("11 2 4", "11 4 4"),
        "x.topo:1: GPUs 0 and 2 are in one server of 4 GPUs, but at other NVSwitches; correct this count, or their \
         links"
    );
    assert_eq!(
        with("0 6 400Gbps 0.000025ms 0\n", "0 9 200Gbps 0.0005ms 0\n"),
        "x.topo:1: GPU 1 has 2 links to NVSwitches, and GPU 0 has 1; give all as many, at least one"
    );
    assert_eq!(
        with("0 6 400Gbps", "0 6 900Gbps"),
        "x.topo:6: 900Gbps and 25ns, but 400Gbps and 25ns on line 5; links to NVSwitches have one rate and delay"
    );
    assert_eq!(
        with("0 6 400Gbps", "9 6 400Gbps"),
        "x.topo:6: NVSwitch 6 is linked to switch 9; NVSwitches connect the GPUs of a server and nothing else"
    );
    assert_eq!(
        with("5 6 4\n7 8", "5 6 3\n7 8"),
        "x.topo: switch 3 has a number of a GPU: these are 0 to 3; give switches the numbers behind them"
    );
    // What ns-3's files are refused for, too.
    assert!(with("25ns 0.0", "25ns 0.1").starts_with("x.topo:7: error rate \"0.1\""));
    assert_eq!(
        with("0 9 200Gbps", "0 1 200Gbps"),
        "x.topo:13: hosts 0 and 1 are linked; link each to a switch"
    );
    assert!(with("8 1 200Gbps", "8 1 100Gbps").contains("links of one tier have one rate"));
}

trials! {
    #![cases(64)]

    /// What the generator wires is found as such, and every GPU is below its leaf.
    fn written_and_read_back(
        (gpus, nvswitches, spines, tors) in (1u32..5, 1u32..3, 1u32..4, 1u32..4),
        (per_leaf, groups) in (1u32..4, 1u32..4),
        rails in any::<bool>(),
    ) {
        let under = if rails { per_leaf } else { per_leaf * gpus };
        let servers = per_leaf * groups;
        let written = SimaiFile { servers, gpus, nvswitches, rails, under, spines, tors, meet: false };
        let found = simai::read("x.topo", &written.text()).unwrap();
        let leaves = if rails { groups * gpus } else { groups };
        let mut expected = Clos::leaf_spine(leaves, spines, under, link(200, 500));
        expected.leaf_bundle.link = link(800, 1000);
        prop_assert_eq!(clos(&found), expected);
        prop_assert_eq!((found.planes, found.gpus), (tors, gpus));
        let rate = found.scale_up.map(|scale_up| scale_up.rate);
        prop_assert_eq!(rate, (gpus > 1).then(|| Rate::gbps(400 * u64::from(nvswitches))));
        for (gpu, host) in (0..).zip(hosts(&found.nodes)) {
            prop_assert_eq!(host.0 / under, written.leaf(gpu));
        }
    }
}
