//! Topology files of other tools as fabrics: what they become, what goes before them, and every
//! mistake.

use crate::common::{GOOD, find};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{
    Cell, Expansion, Format, Request, Resolved, ShortKind, Threads, expand, read_run, run,
    shorthand, topology_info,
};
use weft_fabric::{Bundle, Clos, Link, Tiers};
use weft_sim::Buffer;
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

/// Two leaves of two hosts under two spines. The hosts of the second leaf come first, and nodes
/// 4 and 5 are the leaves.
const NS3: &str = "8 4 8\n4 5 6 7\n0 5 100Gbps 0.001ms 0\n1 4 100Gbps 0.001ms 0\n\
                   2 5 100Gbps 0.001ms 0\n3 4 100Gbps 0.001ms 0\n4 6 200Gbps 0.002ms 0\n\
                   4 7 200Gbps 0.002ms 0\n5 6 200Gbps 0.002ms 0\n5 7 200Gbps 0.002ms 0\n";
/// The same with the hosts of a leaf beside each other.
const IN_ORDER: &str = "8 4 8\n4 5 6 7\n0 4 100Gbps 0.001ms 0\n1 4 100Gbps 0.001ms 0\n\
                        2 5 100Gbps 0.001ms 0\n3 5 100Gbps 0.001ms 0\n4 6 200Gbps 0.002ms 0\n\
                        4 7 200Gbps 0.002ms 0\n5 6 200Gbps 0.002ms 0\n5 7 200Gbps 0.002ms 0\n";
const NS3_KEYS: &str = "topology = \"clos\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                        delay = \"1us\"\nuplink = \"200Gbps\"\nuplink_delay = \"2us\"";

/// Two pods of two leaves and two aggregation switches, four cores with two links to each.
const TOPO: &str = "\
Nodes 8
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Queue_up 100000
Queue_down 100000
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 700
Switch_Latency_ns 300
Queue_up 100000
Queue_down 100000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 900
Switch_Latency_ns 300
Queue_down 100000
Bundle 2
";
const TOPO_KEYS: &str = "topology = \"clos\"\ntiers = 3\npods = 2\nleaves = 2\naggs = 2\n\
                         cores = 4\nhosts_per_leaf = 2\nlink = \"200Gbps\"\ndelay = \"1us\"\n\
                         uplink_delay = \"700ns\"\ncore_link = \"100Gbps\"\n\
                         core_delay = \"900ns\"\ncore_links_per_pair = 2\n\
                         switch.latency = \"300ns\"\nswitch.buffer_kind = \"per-port\"\n\
                         switch.buffer = \"100KB\"";

const ANALYTICAL: &str =
    "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";

/// A folder with experiments in it; if it is the test's own, gone with it.
pub(crate) struct Folder {
    path: PathBuf,
    own: bool,
}

impl Folder {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let name = format!("weft-topology-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        for (name, text) in files {
            std::fs::write(path.join(name), text).expect("a temporary file");
        }
        Folder { path, own: true }
    }
    fn source(&self) -> String {
        self.path.join("fig.toml").to_string_lossy().into_owned()
    }
    fn try_expand(&self, text: &str, set: Overrides<'_>) -> Result<Expansion, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let overrides: Vec<_> = set.iter().map(own).collect();
        let (format, source) = (Format::Toml, &*self.source());
        let request = Request { text, format, source, overrides: &overrides, seeds: None };
        expand(&request).map_err(|error| error.to_string())
    }
    pub(crate) fn expand(&self, text: &str, set: Overrides<'_>) -> Expansion {
        self.try_expand(text, set).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
    /// The first run of `text`, which reads back as the same where no file is.
    pub(crate) fn settled(&self, text: &str, set: Overrides<'_>) -> Resolved {
        settled(&self.expand(text, set))
    }
    /// What is wrong, without the folder.
    pub(crate) fn mistake(&self, text: &str, set: Overrides<'_>) -> String {
        let Err(line) = self.try_expand(text, set) else { panic!("accepted: {text} {set:?}") };
        assert!(!line.contains('\n'), "{line}");
        line.replace(&format!("{}/", self.path.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.own {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

pub(crate) type Overrides<'a> = &'a [(&'a str, &'a str)];

fn settled(all: &Expansion) -> Resolved {
    let run = &all.runs[0];
    let json = Value::Table(run.experiment.clone()).to_json();
    let again = read_run(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(Value::Table(again.table().clone()).to_json(), json);
    assert_eq!(again.key(run.seed), run.key);
    assert_eq!(find(again.table(), "fabric.file"), None);
    again
}

/// The good experiment with other keys of the fabric.
pub(crate) fn on(fabric: &str) -> String {
    let own = "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4";
    assert!(GOOD.contains(own));
    GOOD.replace(own, fabric)
}

fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}

#[test]
fn a_file_is_the_fabric_that_its_keys_would_describe() {
    let folder = Folder::new("keys", &[("a.txt", NS3), ("b.topo", TOPO)]);
    for (file, keys) in [("a.txt", NS3_KEYS), ("b.topo", TOPO_KEYS)] {
        let file = folder.expand(&on(&format!("file = \"{file}\"")), &[]);
        let keys = folder.expand(&on(keys), &[]);
        let json = |all: &Expansion| Value::Table(all.runs[0].experiment.clone()).to_json();
        assert_eq!(json(&file), json(&keys));
        assert_eq!(file.runs[0].key, keys.runs[0].key);
        settled(&file);
    }
    let two = *folder.settled(&on("file = \"a.txt\""), &[]).fabric.clos().expect("a Clos");
    let mut expected = Clos::leaf_spine(2, 2, 2, link(100, 1000));
    expected.leaf_bundle.link = link(200, 2000);
    expected.agg_bundle = two.agg_bundle;
    assert_eq!(two, expected);
    let three = *folder.settled(&on("file = \"b.topo\""), &[]).fabric.clos().expect("a Clos");
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
    let mut expected = Clos::uniform(tiers, 2, link(200, 1000));
    expected.leaf_bundle.link = link(200, 700);
    expected.agg_bundle = Bundle { link: link(100, 900), members: 2 };
    expected.switch_latency = Time::ns(300);
    assert_eq!(three, expected);
}

#[test]
fn a_file_gives_the_results_of_its_keys() {
    let folder = Folder::new("results", &[("a.txt", NS3)]);
    let row = |fabric: &str| {
        let job = on(fabric).replace("pattern = \"all-to-all\"", "collective = \"all-reduce\"");
        let experiment = folder.settled(&job, &[]);
        run(&experiment, 1, Threads::ONE, &AtomicBool::new(false)).expect("a run").row
    };
    let rows = row("file = \"a.txt\"");
    assert_eq!(rows, row(NS3_KEYS));
    assert!(rows.contains(&("hosts", Cell::U64(4))), "{rows:?}");
}

#[test]
fn what_the_file_says_of_switches_is_a_default() {
    let plain = TOPO.replace("Queue", "# Queue");
    let folder = Folder::new("switch", &[("q.topo", TOPO), ("p.topo", &plain), ("a.txt", NS3)]);
    let switch = |file: &str, set: Overrides<'_>| {
        let told = folder.settled(&on(&format!("file = \"{file}\"")), set);
        (
            told.fabric.clos().expect("a Clos").switch_latency,
            told.switch.buffer,
            told.switch.pfc.is_some(),
        )
    };
    let shared = |bytes| Buffer::Shared { bytes, alpha: 1.0 };
    let own = Buffer::PerPort { bytes: 100_000 };
    assert_eq!(switch("q.topo", &[]), (Time::ns(300), own, false));
    assert_eq!(switch("p.topo", &[]), (Time::ns(300), shared(64_000_000), true));
    assert_eq!(switch("a.txt", &[]), (Time::ZERO, shared(64_000_000), true));
    let less = [("fabric.switch.latency", "1ns"), ("fabric.switch.buffer", "50KB")];
    assert_eq!(switch("q.topo", &less), (Time::ns(1), Buffer::PerPort { bytes: 50_000 }, false));
    let kind = [("fabric.switch.buffer_kind", "shared")];
    assert_eq!(switch("q.topo", &kind), (Time::ns(300), shared(64_000_000), true));
    let pauses = [("fabric.switch.pfc", "true"), ("fabric.nic.latency", "50ns")];
    assert_eq!(switch("q.topo", &pauses), (Time::ns(300), own, true));
}

/// All ports have one size of queue here; a file with several has to be told which.
#[test]
fn unequal_queues_need_a_decision() {
    let unequal = TOPO.replacen("Queue_up 100000", "Queue_up 50000", 1);
    let missing = TOPO.replacen("Queue_up 100000\n", "", 1);
    let none = TOPO.replace("100000", "0");
    let files = [("u.topo", &*unequal), ("m.topo", &missing), ("n.topo", &none)];
    let folder = Folder::new("queues", &files);
    let sizes = ["50KB, 100KB", "no size, 100KB", "0B"];
    for ((name, _), sizes) in files.iter().zip(sizes) {
        let text = on(&format!("file = \"{name}\""));
        assert_eq!(
            folder.mistake(&text, &[]),
            format!(
                "fig.toml: fabric.switch.buffer: missing; {name} gives queues {sizes}, where all \
                 ports here have one; add it, for example buffer = \"100KB\""
            )
        );
        let told = folder.settled(&text, &[("fabric.switch.buffer", "70KB")]);
        assert_eq!(told.switch.buffer, Buffer::PerPort { bytes: 70_000 });
        folder.settled(&text, &[("fabric.switch.buffer_kind", "shared")]);
    }
}

#[test]
fn files_are_swept() {
    let folder = Folder::new("sweep", &[("a.txt", NS3), ("b.topo", TOPO), ("c.txt", NS3)]);
    let hosts = |all: &Expansion| -> Vec<u32> {
        let json = |table: &_| Value::Table(Clone::clone(table)).to_json();
        let runs = all.runs.iter().map(|run| read_run(&json(&run.experiment)).expect("settled"));
        runs.map(|run| run.fabric.hosts()).collect()
    };
    let sweep = "[sweep]\n\"fabric.file\" = [\"a.txt\", \"b.topo\"]\n\
                 \"balance.scheme\" = [\"ecmp\", \"spray\"]\n";
    let all = folder.expand(&format!("{}{sweep}", on("switch.ecn = false")), &[]);
    assert_eq!(hosts(&all), [4, 4, 8, 8]);
    assert_eq!(all.runs[2].label, "b.topo, ecmp");
    // What is in a file counts, not its name.
    let key =
        |name: &str| folder.expand(&on(&format!("file = \"{name}\"")), &[]).runs[0].key.clone();
    assert_eq!(key("c.txt"), key("a.txt"));
    assert_ne!(key("b.topo"), key("a.txt"));
}

/// As with any choice: a file that a sweep or `--set` gives puts aside what stands in its place.
#[test]
fn a_file_of_a_sweep_takes_the_place_of_a_topology() {
    let folder = Folder::new("instead", &[("a.txt", NS3)]);
    let key = |text: &str, set| folder.expand(text, set).runs[0].key.clone();
    let file = key(&on("file = \"a.txt\""), &[]);
    assert_eq!(key(GOOD, &[("fabric.file", "a.txt")]), file);
    let swept = format!("{GOOD}[sweep]\n\"fabric.file\" = [\"a.txt\"]\n");
    assert_eq!(key(&swept, &[]), file);
    let two = format!(
        "{}[sweep]\nfabric = [{{ name = \"file\", file = \"a.txt\" }}, \
         {{ name = \"keys\", topology = \"fat-tree\", k = 4 }}]\n",
        on("nic.mtu = \"1KB\"")
    );
    assert_eq!(folder.expand(&two, &[]).runs.len(), 2);
}

#[test]
fn each_mistake_names_file_key_and_mend() {
    let torn = NS3.rsplit_once("5 7").expect("it").0;
    let fast = IN_ORDER.replace("100Gbps", "9000Gbps");
    let far = IN_ORDER.replace("0.002ms", "1001s");
    let files = [
        ("a.txt", NS3),
        ("torn.txt", torn),
        ("fast.txt", &fast),
        ("far.txt", &far),
        ("ring.yml", ANALYTICAL),
        ("bad.topo", "Nodes 8\nTears 3\n"),
        ("dims.json", "{ \"logical-dims\": [\"8\"] }"),
    ];
    let folder = Folder::new("mistakes", &files);
    std::fs::write(folder.path.join("bytes.topo"), [0xff, 0xfe, 0x00]).expect("a file");
    let of = |fabric: &str| folder.mistake(&on(fabric), &[]);
    let file = |name: &str| of(&format!("file = \"{name}\""));
    let cases = [
        ("none.topo", "there is no file none.topo; correct the path"),
        ("bytes.topo", "bytes.topo is not text; give another file"),
        (
            "bad.topo",
            "bad.topo:2: unknown key \"Tears\"; a line starts with one of Nodes, Tiers, Podsize, \
             Tier, Radix_Down, Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Up, Bundle, \
             Oversubscribed, Switch_Latency_ns, Queue_down, Queue_up",
        ),
        (
            "torn.txt",
            "torn.txt:1: 8 links promised, but the file ends after 7: it is truncated; fetch it \
             again or correct the count",
        ),
        ("fast.txt", "fast.txt: link: \"9000Gbps\" is out of range; use \"1Mbps\" to \"8000Gbps\""),
        ("far.txt", "far.txt:7: a delay of 1001s is out of range; use 1000s at most"),
        (
            "dims.json",
            "dims.json: this is JSON, as ASTRA-sim's logical dimensions are, which name no links; \
             give the topology file of its network",
        ),
        (
            "ring.yml",
            "ring.yml: a network of ASTRA-sim's analytical backend has no switches that packets \
             could queue in; write topology with its counts instead of file, and what is within \
             a server as gpus and scale_up of [fabric.server]",
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(file(name), format!("fig.toml: fabric.file (line 3): {expected}"));
    }
    for key in ["topology = \"clos\"", "leaves = 2", "link = \"1Gbps\"", "k = 4", "core_delay = 1"]
    {
        let name = key.split(' ').next().expect("a key");
        assert_eq!(
            of(&format!("file = \"a.txt\"\n{key}")),
            format!(
                "fig.toml: fabric.{name} (line 4): stands beside file, which says it; remove one \
                 of them"
            )
        );
    }
    assert_eq!(
        of("file = \"a.txt\"\nswich.ecn = false"),
        "fig.toml: fabric.swich (line 4): unknown key; did you mean \"switch\"?"
    );
    assert_eq!(
        of("fil = \"a.txt\""),
        "fig.toml: fabric.fil (line 3): unknown key; did you mean \"file\"?"
    );
    assert_eq!(
        of("file = 3"),
        "fig.toml: fabric.file (line 3): 3 is a whole number, not text; write one such as \"text\""
    );
    assert_eq!(
        of("file = \"a.txt\"\nserver = { gpus = 4, nics = 4 }"),
        "fig.toml: fabric.server.nics (line 4): 4 do not divide 2 hosts of a leaf; use a divisor"
    );
}

/// A description that is small on disk and large as a fabric.
#[test]
fn too_many_links_are_refused() {
    let topo = "Nodes 65536\nTiers 2\nPodsize 65536\nTier 0\nDownlink_speed_Gbps 1\n\
                Radix_Down 1\nRadix_Up 300\nDownlink_Latency_ns 1\nTier 1\n\
                Downlink_speed_Gbps 1\nRadix_Down 65536\nDownlink_Latency_ns 1\n";
    let folder = Folder::new("large", &[("large.topo", topo)]);
    assert_eq!(
        folder.mistake(&on("file = \"large.topo\""), &[]),
        "fig.toml: fabric.file (line 3): large.topo: 19726336 links are more than 16777216; use \
         a smaller file"
    );
}

#[test]
fn hosts_with_other_numbers_are_a_warning() {
    let folder = Folder::new("order", &[("a.txt", NS3), ("b.txt", IN_ORDER)]);
    let warnings = |name: &str| folder.expand(&on(&format!("file = \"{name}\"")), &[]).warnings;
    assert_eq!(warnings("b.txt"), [""; 0]);
    let expected = format!(
        "{}: hosts of a leaf are numbered together, so that its node 1, rank 1 of ASTRA-sim, is \
         host-2; weft topology info lists all",
        folder.path.join("a.txt").display()
    );
    assert_eq!(warnings("a.txt"), [expected]);
}

#[test]
fn short_forms_name_files() {
    let json = |text| Value::Table(shorthand(ShortKind::Fabric, text).expect("valid")).to_json();
    assert_eq!(json("x/a.topo"), r#"{"file":"x/a.topo"}"#);
    assert_eq!(json("nets/large"), r#"{"file":"nets/large"}"#);
    assert_eq!(
        json("a.txt:switch.pfc=false,nic.mtu=1KB"),
        r#"{"file":"a.txt","switch":{"pfc":false},"nic":{"mtu":"1KB"}}"#
    );
    let wrong = |text| shorthand(ShortKind::Fabric, text).expect_err("a mistake").to_string();
    assert_eq!(wrong("a.txt:swich=3"), "swich: unknown key; did you mean \"switch\"?");
    let said = "stands beside file, which says it; remove one of them";
    assert_eq!(wrong("a.txt:hosts=4"), format!("hosts_per_leaf: {said}"));
    assert_eq!(wrong("a.txt:k=4"), format!("k: {said}"));
}

/// The description of a file as JSON text.
pub(crate) fn info(folder: &Folder, name: &str) -> String {
    topology_info(&folder.path.join(name)).expect("a description")
}

#[test]
fn files_are_described() {
    let folder = Folder::new("info", &[("a.txt", NS3), ("b.topo", TOPO)]);
    let has = |name: &str, parts: &[&str]| {
        let text = info(&folder, name);
        for part in parts {
            assert!(text.contains(part), "{text}\n  lacks {part}");
        }
    };
    let parts = [
        r#""name":"a.txt","kind":"ns-3","hosts":4,"switches":4,"links":8,"pods":1"#,
        r#"{"name":"leaf","switches":2,"ports_down":2,"ports_up":2,"oversubscription":0.5"#,
        r#"{"ends":["leaf","spine"],"links":4,"per_pair":1,"rate_bps":200000000000,"delay_s":2e-6}"#,
        r#""oversubscription":0.5,"switch_latency_s":false"#,
        r#""nodes":["host-0","host-2","host-1","host-3","leaf-1","leaf-0","spine-0","spine-1"]"#,
        r#""in_order":false,"fabric":{"topology":"clos","tiers":2,"leaves":2"#,
        r#""remarks":["hosts of a leaf are numbered together, so that its node 1, rank 1"#,
        r#""problems":[]"#,
    ];
    has("a.txt", &parts);
    let parts = [
        r#""kind":"htsim","hosts":8,"switches":12,"links":32,"pods":2"#,
        r#"{"name":"core","switches":4,"ports_down":4,"ports_up":0,"oversubscription":false,"queue_down":100000,"queue_up":false}"#,
        r#"{"ends":["aggregation","core"],"links":16,"per_pair":2,"rate_bps":100000000000"#,
        r#""oversubscription":1.0,"switch_latency_s":3e-7,"nodes":[],"in_order":true"#,
    ];
    has("b.topo", &parts);
    let missing = topology_info(Path::new("none.topo")).expect_err("a mistake").to_string();
    assert_eq!(missing, "there is no file none.topo; correct the path");
}

/// Capacity over capacity, in all tiers together: 4 : 1 at the leaf, 2 : 1 above.
#[test]
fn oversubscription_adds_up() {
    let topo = "Nodes 32\nTiers 3\nPodsize 16\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                Radix_Up 1\nDownlink_Latency_ns 1\nTier 1\nDownlink_speed_Gbps 100\n\
                Radix_Down 4\nRadix_Up 2\nDownlink_Latency_ns 1\nTier 2\n\
                Downlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1\n";
    let folder = Folder::new(
        "over",
        &[("x.topo", topo), ("one.txt", "3 1 2\n2\n0 2 1Gbps 1ns 0\n1 2 1Gbps 1ns 0\n")],
    );
    let text = info(&folder, "x.topo");
    assert!(text.contains(r#""oversubscription":8.0"#), "{text}");
    // A lone switch has nothing above.
    let text = info(&folder, "one.txt");
    assert!(text.contains(r#""oversubscription":false,"switch_latency_s""#), "{text}");
    assert!(text.contains("one switch connects all hosts"), "{text}");
    folder.settled(&on("file = \"one.txt\""), &[]);
}

/// A two-tier description of htsim's, and what it means.
fn described() -> impl Strategy<Value = (String, Clos)> {
    let shape = (1u32..6, 1u32..6, 1u32..6, 1u32..4);
    let links = (1u64..800, 1u64..5_000, 1u64..800, 1u64..5_000);
    (shape, links, 0u64..2_000).prop_map(|((leaves, spines, hosts, members), links, latency)| {
        let (rate, delay, up_rate, up_delay) = links;
        let mut clos = Clos::leaf_spine(leaves, spines, hosts, link(rate, delay));
        clos.leaf_bundle = Bundle { link: link(up_rate, up_delay), members };
        clos.switch_latency = Time::ns(latency);
        let text = format!(
            "Nodes {nodes}\nTiers 2\nPodsize {nodes}\nTier 0\nRadix_Down {hosts}\n\
             Radix_Up {up}\nDownlink_speed_Gbps {rate}\nDownlink_Latency_ns {delay}\n\
             Switch_Latency_ns {latency}\nTier 1\nRadix_Down {down}\nBundle {members}\n\
             Downlink_speed_Gbps {up_rate}\nDownlink_Latency_ns {up_delay}\n\
             Switch_Latency_ns {latency}\n",
            nodes = leaves * hosts,
            up = spines * members,
            down = leaves * members
        );
        (text, clos)
    })
}

trials! {
    #![cases(100)]
    fn what_is_described_is_what_runs((text, clos) in described()) {
        prop_assume!(clos.hosts() > 1);
        let folder = Folder::new("any", &[("x.topo", &text)]);
        let found = *folder.settled(&on("file = \"x.topo\""), &[]).fabric.clos().expect("a Clos");
        prop_assert_eq!(Clos { agg_bundle: clos.agg_bundle, ..found }, clos);
    }
}

/// The files of other tools that lie beside the repository, or none, with a line saying so.
fn shared() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !root.is_dir() {
        eprintln!("skipped: no files in {}", root.display());
        return Vec::new();
    }
    let folders =
        ["uec_htsim", "astra_sim/network/htsim", "ethereal", "astra_sim/network/analytical"];
    let entries =
        folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("it"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// A small fabric in short, so that its traffic is generated quickly.
const LITTLE: &str = "[workload]\ncollective = \"all-reduce\"\n\
                      algorithm = \"recursive-doubling\"\nsize = \"1MB\"\nranks = 2\n\
                      placement = \"round-robin\"\n[balance]\nscheme = \"ecmp\"\n";

#[test]
fn real_files_are_fabrics() {
    let (mut fabrics, mut networks) = (0, 0);
    for path in shared() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let folder = Folder { path: path.parent().expect("a folder").to_owned(), own: false };
        let text = format!("[fabric]\nfile = \"{name}\"\n{LITTLE}");
        if name.ends_with(".topo") || name.starts_with("leaf-spine") {
            assert_eq!(folder.expand(&text, &[]).warnings, [""; 0], "{name}");
            folder.settled(&text, &[]);
            fabrics += 1;
        } else if name.ends_with(".yml") {
            assert!(folder.mistake(&text, &[]).contains("no switches"), "{name}");
            networks += 1;
        }
    }
    assert!(fabrics == 0 || (fabrics, networks) == (29, 4), "{fabrics} {networks}");
}
