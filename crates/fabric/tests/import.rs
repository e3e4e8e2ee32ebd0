//! Topology files of other simulators, all kinds: htsim's and the analytical ones by hand and
//! refused, any text, and the real files. Those of ns-3 by hand: `import_ns3.rs`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use weft_fabric::import::{self, Htsim, Queues, Topology};
use weft_fabric::{Bundle, Clos, Fabric, FabricError, Link, Node, Tiers};
use weft_trial::prelude::*;
use weft_units::{HostId, Rate, SwitchId, Time};

fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}
/// The one line of a refusal.
fn line<T: std::fmt::Debug>(read: Result<T, FabricError>) -> String {
    let line = read.unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

mod htsim {
    use super::*;

    /// Eight hosts, two pods of two leaves and two aggregation switches, four cores with two
    /// half-rate links to each of their switches.
    const THREE: &str = "\
# a remark
Nodes 8
TIERS 3
Podsize 4   # hosts

Tier 0
downlink_speed_gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Queue_up 100000
Queue_down 200000
Oversubscribed 1

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 700
Switch_Latency_ns 300
Bundle 1
Oversubscribed 1

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 900
Switch_Latency_ns 300
Queue_down 50000
Bundle 2
";
    const TWO: &str = "Nodes 12\nTiers 2\nPodsize 12\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down \
                       4\nRadix_Up 6\nDownlink_Latency_ns 1\nTier 1\nDownlink_speed_Gbps \
                       400\nRadix_Down 9\nDownlink_Latency_ns 2\nBundle 3\n";

    fn read(text: &str) -> Htsim {
        import::htsim::read("x.topo", text).unwrap()
    }
    /// What is said when `from` is replaced in the three-tier file.
    fn with(from: &str, to: &str) -> String {
        assert!(THREE.contains(from), "{from}");
        line(import::htsim::read("x.topo", &THREE.replacen(from, to, 1)))
    }

    #[test]
    fn three_tiers_by_hand() {
        let found = read(THREE);
        let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
        let mut clos = Clos::uniform(tiers, 2, link(200, 1000));
        clos.leaf_bundle.link = link(200, 700);
        clos.agg_bundle = Bundle { link: link(100, 900), members: 2 };
        clos.switch_latency = Time::ns(300);
        assert_eq!(found.clos, clos);
        assert_eq!(found.switch_latency, Some(Time::ns(300)));
        let queues = |up, down| Queues { up, down };
        assert_eq!(
            found.queues,
            [queues(Some(100_000), Some(200_000)), Queues::default(), queues(None, Some(50_000))]
        );
    }

    /// Three leaves of four hosts under two spines, three links to each.
    #[test]
    fn two_tiers_by_hand() {
        let found = read(TWO);
        let mut clos = Clos::leaf_spine(3, 2, 4, link(100, 1));
        clos.leaf_bundle = Bundle { link: link(400, 2), members: 3 };
        assert_eq!((found.clos, found.switch_latency), (clos, None));
    }

    #[test]
    fn lines_are_refused() {
        assert_eq!(
            with("Radix_Up 4", "Radix 4"),
            "x.topo:19: unknown key \"Radix\"; a line starts with one of Nodes, Tiers, Podsize, \
             Tier, Radix_Down, Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Up, Bundle, \
             Oversubscribed, Switch_Latency_ns, Queue_down, Queue_up"
        );
        assert_eq!(with("Nodes 8", "Nodes"), "x.topo:2: \"Nodes\" is not 'key number'; correct it");
        assert_eq!(
            with("Nodes 8", "Nodes 8.5"),
            "x.topo:2: Nodes \"8.5\" is no whole number; correct it"
        );
        assert_eq!(
            with("Queue_up 100000", "Radix_up 2"),
            "x.topo:12: Radix_up is already given on line 9; remove one"
        );
        assert_eq!(
            with("Tier 1", "Tier 0"),
            "x.topo:16: Tier 0 already starts on line 6; remove one"
        );
        assert_eq!(with("Tier 2", "Tier 3"), "x.topo:25: Tier 3; tiers are 0 (leaves), 1 and 2");
        assert_eq!(
            with("# a remark", "Bundle 1"),
            "x.topo:1: Bundle before 'Tier 0'; it belongs below the line of a tier"
        );
        assert_eq!(with("TIERS 3", ""), "x.topo: no 'Tiers' at the top of the file; add it");
        assert_eq!(with("Nodes 8", "Nodes 0"), "x.topo:2: Nodes is 0; correct it");
        assert_eq!(with("TIERS 3", "Tiers 4"), "x.topo:3: Tiers 4; use 2 or 3");
        assert_eq!(with("Bundle 2", "Bundle 0"), "x.topo:31: Bundle is 0; correct it");
        assert_eq!(
            with("Downlink_Latency_ns 700", "Downlink_Latency_ns 0"),
            "x.topo:20: Downlink_Latency_ns is 0; correct it"
        );
        assert_eq!(with("Radix_Up 4", ""), "x.topo:16: Tier 1 has no 'Radix_Up'; add it");
        assert_eq!(
            with("Bundle 2", "Queue_up 5"),
            "x.topo:31: Queue_up in the top tier, which has no links up; remove it"
        );
        assert_eq!(
            with("TIERS 3", "Tiers 2"),
            "x.topo:19: Radix_Up in the top tier, which has no links up; remove it"
        );
        let three = TWO.replace("Tiers 2", "Tiers 3").replace("Bundle 3", "Bundle 3\nRadix_Up 1");
        assert_eq!(
            line(import::htsim::read("x.topo", &three)),
            "x.topo: no 'Tier 2'; add it with its keys"
        );
        let extra = format!("{TWO}Tier 2\n");
        assert_eq!(
            line(import::htsim::read("x.topo", &extra)),
            "x.topo:14: Tier 2 of 2 tiers, which count from 0; correct 'Tiers' or remove it"
        );
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(
            with("Nodes 8", "Nodes 10"),
            "x.topo:2: 10 hosts are no whole pods of 4; correct one of them"
        );
        assert_eq!(
            with("Radix_Down 2", "Radix_Down 3"),
            "x.topo:4: 4 hosts of a pod are no whole leaves of 3; correct one of them"
        );
        assert_eq!(
            with("Bundle 2", "Bundle 3"),
            "x.topo:19: 4 ports up are no whole bundles of 3; correct one of them"
        );
        assert_eq!(
            with("Radix_Down 4", "Radix_Down 8"),
            "x.topo:27: Radix_Down 8, but 2 pods and 2 links to each make 4; correct one of them"
        );
        assert_eq!(
            with("Bundle 1\n", "Bundle 2\n"),
            "x.topo:18: Radix_Down 2, but 2 leaves of a pod and 2 links to each make 4; correct \
             one of them"
        );
        assert_eq!(
            with("Oversubscribed 1", "Oversubscribed 2"),
            "x.topo:14: Oversubscribed 2, but the links of a switch carry 400 Gb/s below and 400 \
             Gb/s above; correct it or the radices"
        );
        assert_eq!(
            with("Bundle 1\nOversubscribed 1", "Bundle 1\nOversubscribed 3"),
            "x.topo:23: Oversubscribed 3, but the links of a switch carry 400 Gb/s below and 400 \
             Gb/s above; correct it or the radices"
        );
        assert_eq!(
            with("Queue_up 100000", "Bundle 2"),
            "x.topo:12: Bundle 2 below leaves; only hosts with one link are imported"
        );
        assert_eq!(
            with("Switch_Latency_ns 300\nQueue_up", "Switch_Latency_ns 3000\nQueue_up"),
            "x.topo:21: Switch_Latency_ns 300 here and 3000 in Tier 0, which is more than its links can make up for; \
             give all switches one latency"
        );
        let pods = TWO.replace("Podsize 12", "Podsize 4");
        assert_eq!(
            line(import::htsim::read("x.topo", &pods)),
            "x.topo:3: Podsize 4 with two tiers, which are one pod; use all 12 hosts or three tiers"
        );
    }

    /// What switches of upper tiers take more or less is on their links: every path takes as long as their latencies and
    /// the delays of the links make.
    #[test]
    fn latencies_of_tiers() {
        let plain = import::htsim::read("x.topo", THREE).unwrap().clos;
        let text = THREE
            .replacen("Switch_Latency_ns 300\nBundle", "Switch_Latency_ns 500\nBundle", 1)
            .replacen("900\nSwitch_Latency_ns 300", "900\nSwitch_Latency_ns 101", 1);
        let found = import::htsim::read("x.topo", &text).unwrap();
        assert_eq!(found.switch_latency, Some(Time::ns(300)));
        let delay = |clos: &Clos, to: u32| {
            let fabric = Fabric::build(clos).unwrap();
            let (mut at, mut all) = (Node::Host(HostId(0)), Time::ZERO);
            let to = HostId(to);
            while at != Node::Host(to) {
                let port = match at {
                    Node::Host(host) => fabric.nic(host),
                    Node::Switch(switch) => fabric.equal_hops(switch, to)[0],
                };
                all += fabric.ports()[port].delay;
                at = fabric.ports()[port].peer;
            }
            all
        };
        // Below one leaf, over a switch of the pod, over a core and twice one of the pod.
        let more = [(1, 0), (2, 200), (7, 2 * 200 - 199)];
        for (host, more) in more {
            let as_before = delay(&plain, host).0 as i64;
            assert_eq!(delay(&found.clos, host).0 as i64 - as_before, 1000 * more, "{host}");
        }
    }
}

trials! {
    #![cases(256)]

/// Whatever the text, there is an answer.
    fn no_text_panics(text in "[0-9a-zA-Z_:#,.\\[\\]\\- \n]{0,200}") {
        let _ = import::read("x", &text);
        let _ = import::ns3::read("x", &text);
        let _ = import::simai::read("x", &text);
        let _ = import::htsim::read("x", &text);
        let _ = import::infragraph::read("x", &text);
    }

    /// Nor with words that the grammars know and extreme numbers.
    fn no_words_panic(words in prop::collection::vec(prop_oneof![
        Just("Nodes "), Just("Tiers "), Just("Podsize "), Just("\nTier "), Just("Radix_Down "),
        Just("Radix_Up "), Just("Bundle "), Just("Oversubscribed "), Just("Queue_up "),
        Just("Downlink_speed_Gbps "), Just("Downlink_Latency_ns "), Just("Switch_Latency_ns "),
        Just("0\n"), Just("1\n"), Just("2\n"), Just("3\n"), Just("4294967295\n"), Just("65536\n"),
        Just("topology: ["), Just("npus_count: ["), Just("bandwidth: ["), Just("latency: ["),
        Just("]\n"), Just("Ring, "), Just("1e300, "), Just("- 3\n"), Just("#"), Just("é"),
        Just("devices:\n"), Just("instances:\n"), Just("edges:\n"), Just("links:\n"), Just("  "),
        Just("- {name: a, "), Just("count: 1, "), Just("choice: nic}"), Just("components: ["),
        Just("{instance: a"), Just("[0:4294967295]"), Just(", component: nic"), Just("}"), Just("ep1: "),
        Just("5 2 1 2 4 H100\n"), Just("2 3 4\n"), Just("0 3 1bps 0ps 0\n"), Just("4 2 3\n"), Just("2 3\n"), Just("0 2 1bps 1ps 0\n"), Just("1 3 1Gbps 1us 0\n"),
    ], 0..60)) {
        let text = words.concat();
        let readers = [
            import::read("x", &text).err(),
            import::ns3::read("x", &text).err(),
            import::simai::read("x", &text).err(),
            import::htsim::read("x", &text).err(),
            import::infragraph::read("x", &text).err(),
        ];
        for error in readers.into_iter().flatten() {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

/// Which kind a file is shows in its first words.
#[test]
fn kinds_are_told_apart() {
    let kind = |text: &str| import::read("x", text).unwrap();
    assert!(matches!(kind("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0"), Topology::Ns3(_)));
    let analytical =
        "# a remark\n\ntopology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]";
    assert!(
        line(import::read("x", analytical)).starts_with("x: a network of ASTRA-sim's analytical")
    );
    assert_eq!(
        line(import::read("x", "Gpus 4")),
        "x:1: unknown key \"Gpus\"; a line starts with one of Nodes, Tiers, Podsize, Tier, \
         Radix_Down, Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Up, Bundle, Oversubscribed, \
         Switch_Latency_ns, Queue_down, Queue_up"
    );
    assert_eq!(
        line(import::read("x", "{ \"logical-dims\": [\"8\"] }")),
        "x: this is JSON, as ASTRA-sim's logical dimensions are, which name no links; give the \
         topology file of its network"
    );
    for toml in ["[fabric]\nleaves = 2\n", "# racks\ntitle = \"Two: racks\"\n"] {
        assert_eq!(
            line(import::read("x", toml)),
            "x: this is TOML, as experiments and clusters are; give a topology file, or run the experiment"
        );
    }
    assert_eq!(
        line(import::read("x", "# nothing\n")),
        "x: the file says nothing; it is empty or truncated"
    );
}

/// The folder of real files, or `None`, with a line saying so, where there is none.
fn shared() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !root.is_dir() {
        eprintln!("skipped: no files in {}", root.display());
        return None;
    }
    Some(root)
}

/// The real files of `folder`, by name. The crate reads no files; its tests may.
fn files(folder: &str) -> Vec<(String, String)> {
    let Some(root) = shared() else { return Vec::new() };
    let names = std::fs::read_dir(root.join(folder)).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    #[allow(clippy::disallowed_methods)]
    let text = |name: &String| std::fs::read_to_string(root.join(folder).join(name)).unwrap();
    names.into_iter().map(|name| (text(&name), name)).map(|(text, name)| (name, text)).collect()
}

/// The fabric of Ethereal's evaluation (2025): 256 GPUs, 16 leaves and 16 spines at 400G.
#[test]
fn ethereals_fabric() {
    let name = "leaf-spine-16-16-256.txt";
    if shared().is_none() {
        return;
    }
    let text =
        files("ethereal").into_iter().find_map(|(file, text)| (file == name).then_some(text));
    let Topology::Ns3(found) = import::read(name, &text.unwrap()).unwrap() else { panic!() };
    assert_eq!(found.clos, Clos::leaf_spine(16, 16, 16, link(400, 500)));
    assert!(found.hosts().into_iter().eq((0..256).map(HostId)));
    assert!((0..32).all(|id| found.nodes[256 + id as usize] == Node::Switch(SwitchId(id))));
}

/// All of htsim's files against what their names and radices say.
#[test]
fn real_htsim_files() {
    let mut seen = BTreeSet::new();
    for folder in ["uec_htsim", "astra_sim/network/htsim"] {
        for (name, text) in files(folder) {
            let Some(stem) = name.strip_suffix(".topo") else { continue };
            let Topology::Htsim(found) = import::read(&name, &text).unwrap() else {
                panic!("{name}")
            };
            assert_eq!(found.clos.switch_latency, Time::ZERO);
            assert!(found.queues.iter().all(|queues| *queues == Queues::default()), "{name}");
            Fabric::build(&found.clos).unwrap();
            check_against_name(stem, &found.clos);
            seen.insert(stem.to_owned());
        }
    }
    assert!(shared().is_none() || seen.len() == 28, "{seen:?}");
}

/// Hosts and oversubscription are in the names of htsim's files.
fn check_against_name(stem: &str, clos: &Clos) {
    let words: Vec<&str> = stem.split('_').collect();
    let size = words.iter().find_map(|word| word.parse::<u32>().ok().filter(|n| *n > 8));
    let hosts = match stem {
        "8nodes" | "test" => 8,
        "leaf_spine_tiny" => 32,
        _ => size.unwrap(),
    };
    assert_eq!(clos.hosts(), hosts, "{stem}");
    let bps = |link: Link, members: u32| link.rate.as_bps() * u64::from(members);
    let up = bps(clos.leaf_bundle.link, clos.leaf_bundle.members * clos.mids_per_pod());
    let leaf_ratio = bps(clos.host_link, clos.hosts_per_leaf) / up;
    let ratio = if clos.cores() == 0 {
        leaf_ratio
    } else {
        let core = bps(clos.agg_bundle.link, clos.agg_bundle.members * clos.cores_per_plane());
        let down = bps(clos.leaf_bundle.link, clos.leaf_bundle.members * clos.leaves_per_pod());
        leaf_ratio * down / core
    };
    let named = match stem {
        _ if stem.ends_with("4os") || stem.ends_with("4_to_1") || stem.ends_with("tiny") => 4,
        _ if stem.ends_with("8os") || stem.ends_with("8_to_1") || stem.ends_with("8-1") => 8,
        "leaf_spine_1024_oversub" => 4,
        _ => 1,
    };
    assert_eq!(ratio, named, "{stem}");
}

/// ASTRA-sim's analytical networks are none.
#[test]
fn real_analytical_files_are_refused() {
    let mut count = 0;
    for folder in ["analytical", "inputs_network", "../regression"] {
        for (name, text) in files(&format!("astra_sim/network/{folder}")) {
            if !name.ends_with(".yml") {
                continue;
            }
            count += 1;
            let prefix =
                format!("{name}: a network of ASTRA-sim's analytical backend has no switches");
            assert!(line(import::read(&name, &text)).starts_with(&prefix));
        }
    }
    assert!(shared().is_none() || count == 15, "{count} files");
}

/// ASTRA-sim's logical dimensions are no topology.
#[test]
fn real_logical_dimensions_are_refused() {
    for (name, text) in files("astra_sim/network/ns3") {
        assert!(line(import::read(&name, &text)).starts_with(&format!("{name}: this is JSON")));
    }
}

/// Nor are MSCCL's collectives.
#[test]
fn collectives_in_xml_are_refused() {
    let text = "<algo name=\"ring\" ngpus=\"8\">\n  <gpu id=\"0\">\n  </gpu>\n</algo>\n";
    assert!(line(import::read("ring.xml", text)).starts_with("ring.xml: this is XML, as MSCCL's"));
}
