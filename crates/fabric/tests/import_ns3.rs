//! Topology files of ASTRA-sim's ns-3 backend: by hand, written from random fabrics and read
//! back, and refused.

use weft_fabric::import::ns3::{self, Ns3};
use weft_fabric::import::{self, Topology};
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, Tiers};
use weft_trial::prelude::*;
use weft_units::{HostId, Rate, SwitchId, Time};

fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}
fn read(text: &str) -> Ns3 {
    ns3::read("x.txt", text).unwrap()
}
fn refusal(text: &str) -> String {
    let line = ns3::read("x.txt", text).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
/// A file of 100 Gb/s, 1 us links; `switches` and `links` in words.
fn file(nodes: u32, switches: &str, links: &[&str]) -> String {
    let count = switches.split_whitespace().count();
    let mut text = format!("{nodes} {count} {}\n{switches}\n", links.len());
    for link in links {
        text += &format!("{link} 100Gbps 1us 0\n");
    }
    text
}

/// Four hosts, two leaves, two spines with bundles of two: hosts of the second leaf have
/// the smaller numbers, one link stands the other way round.
#[test]
fn two_tiers_by_hand() {
    let text = "8 4 12\n\
                4 5 6 7 \n\
                2 4 100Gbps 0.0005ms 0\n\
                3 4 100Gbps 500ns 0\n\
                0 5 100Gbps 0.5us 0.0\n\
                5 1 100Gbps 500ns 0.000000\n\
                4 6 200Gbps 1us 0\n4 6 200Gbps 1us 0\n4 7 200Gbps 1us 0\n4 7 200Gbps 1us 0\n\
                5 6 200Gbps 1us 0\n5 6 200Gbps 1us 0\n5 7 200Gbps 1us 0\n7 5 200Gbps 1us 0\n";
    let found = read(text);
    let mut clos = Clos::leaf_spine(2, 2, 2, link(100, 500));
    clos.leaf_bundle = Bundle { link: link(200, 1000), members: 2 };
    assert_eq!(found.clos, clos);
    let host = |host| Node::Host(HostId(host));
    let switch = |switch| Node::Switch(SwitchId(switch));
    let nodes = [host(0), host(1), host(2), host(3), switch(1), switch(0), switch(2), switch(3)];
    assert_eq!(found.nodes, nodes);
    assert_eq!(found.hosts(), [0, 1, 2, 3].map(HostId));
}

/// The fat-tree with k = 4, its hosts dealt out over the leaves: host h is under leaf
/// h mod 8. Counted by hand.
#[test]
fn three_tiers_by_hand() {
    let mut links = Vec::new();
    for host in 0..16 {
        links.push(format!("{host} {}", 16 + host % 8));
    }
    for leaf in 0..8 {
        let pod = leaf / 2;
        links.push(format!("{} {}", 16 + leaf, 24 + 2 * pod));
        links.push(format!("{} {}", 16 + leaf, 25 + 2 * pod));
    }
    for agg in 0..8 {
        // Every other pod has its planes the other way round.
        let plane = (agg + agg / 2) % 2;
        links.push(format!("{} {}", 24 + agg, 32 + 2 * plane));
        links.push(format!("{} {}", 33 + 2 * plane, 24 + agg));
    }
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let text = file(36, "16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31\n32 33 34 35", &links);
    let found = read(&text.replacen("36 20 48", "36 20 48 2 4 2 8", 1));
    assert_eq!(found.clos, Clos::fat_tree(4, link(100, 1000)));
    assert_eq!(found.hosts(), [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15].map(HostId));
    // The second pod's switches change places, the first one's do not.
    let switch = |node: usize| found.nodes[node];
    assert_eq!(switch(24), Node::Switch(SwitchId(8)));
    assert_eq!([switch(26), switch(27)], [11, 10].map(|id| Node::Switch(SwitchId(id))));
    assert_eq!(switch(35), Node::Switch(SwitchId(19)));
}

#[test]
fn a_lone_switch_is_a_leaf() {
    let found = read(&file(4, "3", &["0 3", "1 3", "2 3"]));
    assert_eq!(found.clos, Clos::leaf_spine(1, 1, 3, link(100, 1000)));
    assert_eq!(found.nodes[3], Node::Switch(SwitchId(0)));
    let older = file(4, "3", &["0 3", "1 3", "2 3"]).replacen("4 1 3", "4 1 3 1 0", 1);
    assert_eq!(read(&older), found);
}

#[test]
fn heads_are_refused() {
    let first = "the first line counts nodes, switches and links, such as '6 2 5' (Ethereal's \
                 files add four numbers); correct it";
    for head in ["6 2", "6 2 5 1", "6 2 five", "-6 2 5", "6 8 2 2 5 H100", "99999999999 1 1"] {
        assert_eq!(refusal(head), format!("x.txt:1: {first}"));
    }
    let empty = "x.txt: the file says nothing; it is empty or truncated";
    assert_eq!(refusal(" \n\n"), empty);
    let switches = |nodes: u32, switches: u32| {
        format!(
            "x.txt:1: {nodes} nodes with {switches} switches among them; a fabric has switches \
             and hosts"
        )
    };
    assert_eq!(refusal("6 0 5\n\n"), switches(6, 0));
    assert_eq!(refusal("6 6 5\n\n"), switches(6, 6));
    assert_eq!(
        refusal("6 3 5\n4 5"),
        "x.txt:1: 3 switches promised, but the file ends after 2 of their numbers: it is \
         truncated; fetch it again or correct the count"
    );
    assert_eq!(
        refusal("6 1 5\n4 5"),
        "x.txt:2: more numbers of switches than the 1 promised; correct the count"
    );
    assert_eq!(refusal("6 2 5\n4 4"), "x.txt: switch 4 is listed twice; remove one");
    assert_eq!(
        refusal("6 2 5\n4 6"),
        "x.txt:2: node 6 of 6 nodes; they count from 0, so use 5 at most"
    );
}

#[test]
fn links_are_refused() {
    let with = |link: &str| refusal(&format!("3 1 2\n2\n0 2 100Gbps 1us 0\n{link}\n"));
    assert_eq!(
        with("1 2 100Gbps 1us"),
        "x.txt:4: 4 words, where a link has five: 'source destination rate delay error', such \
         as '0 256 400Gbps 0.0005ms 0'"
    );
    assert_eq!(
        with("1 a 100Gbps 1us 0"),
        "x.txt:4: \"a\" is no node's number; the 1 switches are listed first, then links as \
         'source destination rate delay error'"
    );
    assert_eq!(with("1 1 1Gbps 1us 0"), "x.txt:4: node 1 is linked to itself; remove the line");
    for error in ["0.01", "1", "-1", "NaN", "none"] {
        assert_eq!(
            with(&format!("1 2 100Gbps 1us {error}")),
            format!(
                "x.txt:4: error rate {error:?}; only 0 can be imported: use 0 here, and say \
                 which links are flaky where failures are described"
            )
        );
    }
    assert_eq!(with("1 2 100 1us 0"), "x.txt:4: rate \"100\" has no unit: write \"100Gbps\"");
    assert_eq!(
        with("1 2 100Gbps 2000s 0"),
        "x.txt:4: a delay of 2000s is out of range; use 1000s at most"
    );
    assert_eq!(
        with(""),
        "x.txt:1: 2 links promised, but the file ends after 1: it is truncated; fetch it again \
         or correct the count"
    );
    assert_eq!(
        with("1 2 100Gbps 1us 0\n1 2 100Gbps 1us 0"),
        "x.txt:5: one link more than the 2 of line 1; correct the count or remove the line"
    );
    assert_eq!(
        refusal("4000000000 1 1\n2\n0 2 100Gbps 1us 0"),
        "x.txt:1: 1 links cannot connect 4000000000 nodes; correct the counts or add links"
    );
    assert_eq!(
        refusal("2 1 1\n1\n0 1 100Gbps 0ns 0"),
        "x.txt: a link without delay would let events at two ends happen at one instant: use \
         at least 1ps"
    );
}

#[test]
fn odd_hosts_are_refused() {
    assert_eq!(
        refusal(&file(4, "2 3", &["0 2", "1 2", "0 3"])),
        "x.txt:5: host 0 has another link on line 3; a folded Clos has hosts of one link"
    );
    assert_eq!(
        refusal(&file(3, "2", &["0 2", "0 1"])),
        "x.txt:4: hosts 0 and 1 are linked; link each to a switch"
    );
    assert_eq!(
        refusal(&file(4, "2 3", &["0 2", "2 3", "2 3"])),
        "x.txt: host 1 has no link; connect it or drop it"
    );
    assert_eq!(
        refusal(&file(6, "3 4 5", &["0 3", "1 3", "2 4", "3 5", "4 5"])),
        "x.txt: switch 3 has 2 hosts and switch 4 has 1; every leaf needs as many"
    );
}

#[test]
fn odd_tiers_are_refused() {
    assert_eq!(
        refusal(&file(4, "2 3", &["0 2", "1 3", "2 3"])),
        "x.txt:5: switches 2 and 3 are linked, but both are of one tier (leaf); a folded Clos \
         has no such link"
    );
    let unequal = file(5, "2 3 4", &["0 2", "1 3", "2 4", "3 4"]);
    assert_eq!(
        refusal(&unequal.replace("3 4 100Gbps", "4 3 200Gbps")),
        "x.txt:6: 200Gbps and 1us from 4 to 3, but 100Gbps and 1us on line 5, of the same \
         tier; links of one tier have one rate and delay"
    );
    assert_eq!(
        refusal(&unequal.replace("3 4 100Gbps 1us", "3 4 100Gbps 2us")),
        "x.txt:6: 100Gbps and 2us from 3 to 4, but 100Gbps and 1us on line 5, of the same tier; \
         links of one tier have one rate and delay"
    );
    assert_eq!(
        refusal(&file(5, "1 2 3 4", &["0 1", "1 2", "2 3", "3 4"])),
        "x.txt: switch 4 is not within three links of a host; only two or three tiers of \
         switches can be imported"
    );
    assert_eq!(
        refusal(&file(4, "2 3", &["0 2", "1 3", "1 3"])),
        "x.txt:5: host 1 has another link on line 4; a folded Clos has hosts of one link"
    );
    assert_eq!(
        refusal(&file(6, "2 3 4 5", &["0 2", "1 3", "2 4", "2 4", "3 5"])),
        "x.txt: switches 2 and 3 are not connected; every leaf needs a link to every spine"
    );
}

#[test]
fn missing_and_uneven_bundles_are_refused() {
    let links = ["0 2", "1 3", "2 4", "2 5", "3 4", "3 5"];
    assert_eq!(
        refusal(&file(6, "2 3 4 5", &links[..5])),
        "x.txt: switches 3 and 5 have no link, where 2 and 4 have 1; add it, and describe dead \
         links as failures"
    );
    let twice: Vec<&str> = links.into_iter().chain(["3 5"]).collect();
    assert_eq!(
        refusal(&file(6, "2 3 4 5", &twice)),
        "x.txt: links between switches 3 and 5: 2, between 2 and 4: 1; every bundle of a tier \
         needs as many"
    );
}

/// Two pods of a leaf (4, 5) and two aggregation switches (6 7, 8 9), cores from 10.
fn cores(hosts: &[&str], cores: &[&str]) -> String {
    let pods = ["4 6", "4 7", "5 8", "5 9"];
    let links: Vec<&str> = hosts.iter().chain(&pods).chain(cores).copied().collect();
    refusal(&file(12, "4 5 6 7 8 9 10 11", &links))
}

#[test]
fn odd_cores_are_refused() {
    let hosts = ["0 4", "1 4", "2 5", "3 5"];
    let good = ["6 10", "8 10", "7 11", "9 11"];
    let text = |links: &[&str]| cores(&hosts, links);
    assert_eq!(
        text(&good[..3]),
        "x.txt: core 11 has no link into the pod of switch 5; a core has a link to one switch \
         of each"
    );
    assert_eq!(
        text(&["6 10", "8 10", "7 11", "9 11", "7 10"]),
        "x.txt: core 10 has links to switches 6 and 7 of one pod; a core has a link to one \
         switch of each"
    );
    assert_eq!(
        text(&["6 10", "8 10", "6 11", "8 11"]),
        "x.txt: switch 6 is below 2 cores and switch 7 below 0; every aggregation switch needs \
         as many"
    );
    assert_eq!(
        text(&["6 10", "8 10", "7 11", "8 11"]),
        "x.txt: switch 8 is below cores 10 and 11, which are above different switches of the \
         first pod; cores in planes are above the same ones"
    );
    assert_eq!(
        text(&["6 10", "8 10", "7 11", "9 11", "9 11"]),
        "x.txt: links between switches 9 and 11: 2, between 6 and 10: 1; every bundle of a \
         tier needs as many"
    );
}

#[test]
fn unequal_pods_are_refused() {
    let links = ["0 3", "1 4", "2 5", "3 6", "4 6", "5 7", "6 8", "7 8"];
    assert_eq!(
        refusal(&file(9, "3 4 5 6 7 8", &links)),
        "x.txt: the pod of switch 3 has 2 leaves and that of switch 5 has 1; every pod needs \
         as many"
    );
    let links = ["0 2", "1 3", "2 4", "3 5", "3 6", "4 7", "5 7", "6 7"];
    assert_eq!(
        refusal(&file(8, "2 3 4 5 6 7", &links)),
        "x.txt: the pod of switch 2 has 1 aggregation switches and that of switch 3 has 2; \
         every pod needs as many"
    );
}

/// Any fabric with other links in every tier, and a shuffled numbering of all its nodes.
fn any_clos() -> impl Strategy<Value = Clos> {
    let bundle = |gbps| {
        (1u32..4, 1u64..900).prop_map(move |(members, ns)| Bundle { link: link(gbps, ns), members })
    };
    let tiers = prop_oneof![
        (1u32..6, 1u32..6).prop_map(|(leaves, spines)| Tiers::Two { leaves, spines }),
        (1u32..4, 1u32..4, 1u32..4, 1u32..4).prop_map(
            |(pods, leaves_per_pod, aggs_per_pod, per_plane)| {
                let cores = aggs_per_pod * per_plane;
                Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }
            }
        ),
    ];
    (tiers, 1u32..5, bundle(200), bundle(400)).prop_map(
        |(tiers, hosts, leaf_bundle, agg_bundle)| {
            let clos = Clos::uniform(tiers, hosts, link(100, 1000));
            match tiers {
                Tiers::Two { .. } => Clos { leaf_bundle, ..clos },
                Tiers::Three { .. } => Clos { leaf_bundle, agg_bundle, ..clos },
                Tiers::Rails { .. } => unreachable!("none is drawn"),
            }
        },
    )
}

/// Every link once, as numbers of nodes: hosts first, then switches.
fn links(fabric: &Fabric) -> Vec<(usize, usize, Link)> {
    let number = |node| match node {
        Node::Host(host) => host.0 as usize,
        Node::Switch(switch) => (fabric.hosts() + switch.0) as usize,
    };
    let once = fabric.ports().enumerate().filter(|(id, port)| *id < port.reverse);
    once.map(|(_, port)| {
        let link = Link { rate: port.rate, delay: port.delay };
        (number(port.owner), number(port.peer), link)
    })
    .collect()
}

/// `fabric` as a file in which node `n` has the number `names[n]`.
fn write(fabric: &Fabric, names: &[usize], order: &[u32]) -> String {
    let hosts = fabric.hosts() as usize;
    let links = links(fabric);
    let count = links.len();
    // Some order that has nothing to do with that of the ports.
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by_key(|place| (order[place % order.len()], *place));
    let mut text = format!("{} {} {count}\n", names.len(), names.len() - hosts);
    for switch in &names[hosts..] {
        text += &format!("{switch} ");
    }
    for place in places {
        let (mut a, mut b, Link { rate, delay }) = links[place];
        if order[place % order.len()] % 2 == 1 {
            (a, b) = (b, a);
        }
        text += &format!("\n{} {} {rate} {delay} 0", names[a], names[b]);
    }
    text
}

trials! {
    #![cases(256)]

    /// Under any numbering of the nodes and any order of the links the same fabric is found,
    /// and the nodes are placed so that every link of the file is one of the fabric.
    fn written_and_read_back(
        clos in any_clos(),
        keys in prop::collection::vec(any::<u32>(), 200),
        order in prop::collection::vec(any::<u32>(), 1..40),
        shuffled in any::<bool>(),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let nodes = (fabric.hosts() + fabric.switches()) as usize;
        let mut names: Vec<usize> = (0..nodes).collect();
        if shuffled {
            names.sort_by_key(|node| (keys[node % keys.len()], *node));
        }
        let text = write(&fabric, &names, &order);
        let found = ns3::read("x.txt", &text).unwrap();
        prop_assert_eq!(found.clos, clos);

        let place = |node: usize| match found.nodes[names[node]] {
            Node::Host(host) => host.0 as usize,
            Node::Switch(switch) => (fabric.hosts() + switch.0) as usize,
        };
        let ordered = |(a, b, link): (usize, usize, Link)| {
            (a.min(b), a.max(b), link.rate, link.delay)
        };
        let mut ours: Vec<_> = links(&fabric).into_iter().map(ordered).collect();
        let mut theirs: Vec<_> =
            links(&fabric).into_iter().map(|(a, b, l)| ordered((place(a), place(b), l))).collect();
        ours.sort();
        theirs.sort();
        prop_assert_eq!(ours, theirs);

        // Hosts of a leaf keep their order, and so do leaves by their first hosts in a pod.
        let mut hosts: Vec<usize> = (0..fabric.hosts() as usize).collect();
        hosts.sort_by_key(|host| names[*host]);
        let per_leaf = clos.hosts_per_leaf as usize;
        let mut last = vec![None; hosts.len()];
        for host in hosts {
            let leaf = place(host) / per_leaf;
            prop_assert!(last[leaf] < Some(place(host)));
            prop_assert_eq!(place(host) % per_leaf, last[leaf].map_or(0, |last| last % per_leaf + 1));
            last[leaf] = Some(place(host));
        }
        if !shuffled {
            prop_assert!((0..nodes).all(|node| place(node) == node));
        }
    }

    /// A file with a link too few, too many or to elsewhere is no longer the same fabric.
    fn a_changed_link_is_noticed(clos in any_clos(), which in any::<prop::sample::Index>(), to in any::<u32>()) {
        let fabric = Fabric::build(&clos).unwrap();
        let all = links(&fabric);
        let names: Vec<usize> = (0..(fabric.hosts() + fabric.switches()) as usize).collect();
        let text = write(&fabric, &names, &[0]);
        let (mut head, mut lines): (Vec<&str>, Vec<&str>) =
            (text.lines().take(2).collect(), text.lines().skip(2).collect());
        let at = which.index(lines.len());
        let (a, b, Link { rate, delay }) = all[at];
        let new = to as usize % names.len();
        prop_assume!(new != b && new != a);
        let moved = format!("{a} {new} {rate} {delay} 0");
        lines[at] = &moved;
        head.append(&mut lines);
        // Regular it may be (one of several spines with one leaf), but then it is another fabric.
        if let Ok(found) = ns3::read("x.txt", &head.join("\n")) {
            prop_assert!(found.clos != clos || found.nodes != ns3::read("x.txt", &text).unwrap().nodes);
        }
    }
}

/// A ring of four switches with a host each: no Clos, and a network all the same.
#[test]
fn what_is_no_clos_is_a_graph() {
    let text = "8 4 8\n4 5 6 7\n2 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n0 6 100Gbps 1us 0\n\
                1 7 100Gbps 1us 0\n4 5 200Gbps 1us 0\n5 6 100Gbps 1us 0\n6 7 100Gbps 2us 0\n\
                7 4 100Gbps 1us 0\n";
    let why = ns3::read("x.txt", text).unwrap_err();
    let Ok(Topology::Ns3Graph(found)) = import::read("x.txt", text) else { panic!("a graph") };
    assert_eq!(found.why, why.0);
    // In the order of the hosts in the file.
    assert_eq!(found.graph.host_switches, [6, 7, 4, 5]);
    let fabric = Fabric::of_wiring(found.graph.wiring().unwrap()).unwrap();
    let names: Vec<String> = found.nodes.iter().map(|node| fabric.name(*node)).collect();
    let expected =
        ["host-0", "host-1", "host-2", "host-3", "switch-4", "switch-5", "switch-6", "switch-7"];
    assert_eq!(names, expected);
    assert_eq!(fabric.path_set(HostId(0), HostId(2)).len(), 2);
    let fast = fabric.links().filter(|id| fabric.ports()[*id].rate == Rate::gbps(200)).count();
    assert_eq!(fast, 1);
    // In two parts it is no network: the reason is that of the Clos. With two links of one host it is none, either.
    let hosts = "2 4 1Gbps 1us 0\n3 5 1Gbps 1us 0\n0 6 1Gbps 1us 0\n1 7 1Gbps 1us 0\n";
    let apart = "4 5 1Gbps 1us 0\n4 5 1Gbps 1us 0\n6 7 1Gbps 1us 0\n";
    let twice = "4 5 1Gbps 1us 0\n5 6 1Gbps 1us 0\n6 7 1Gbps 1us 0\n2 7 1Gbps 1us 0\n";
    for (count, links) in [(7, apart), (8, twice)] {
        let text = format!("8 4 {count}\n4 5 6 7\n{hosts}{links}");
        let why = match count {
            7 => ns3::read("x.txt", &text).unwrap_err().0,
            _ => "x.txt: host 2 has 2, and host 0 has 1 ports; give all as many, at most 8"
                .to_owned(),
        };
        assert_eq!(import::read("x.txt", &text).unwrap_err().0, why);
    }
}
