//! Topology files of SimAI as fabrics: servers and planes follow from them.

use crate::simai_file::{SMALL, SimaiFile};
use crate::topology_files::{Folder, info, on};
use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{Cell, Threads, run};
use weft_units::HostId;

/// Four servers of two GPUs each.
const FOUR: SimaiFile = SimaiFile { servers: 4, ..SMALL };
/// What is inside each of their servers.
const SERVER: &str = "server.gpus = 2\nserver.nics = 2\nserver.scale_up = \"400Gbps\"\n\
                      server.scale_up_latency = \"50ns\"\n";
const LINKS: &str = "link = \"200Gbps\"\nuplink = \"800Gbps\"\nuplink_delay = \"1us\"\n";

/// Files, and the keys that somebody would write instead.
fn files() -> [(&'static str, SimaiFile, String); 4] {
    let rails =
        format!("topology = \"clos\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\n{LINKS}{SERVER}");
    let beside = rails.replace("leaves = 4", "leaves = 2").replace("per_leaf = 2", "per_leaf = 4");
    let rails = format!("{rails}server.rails = true");
    let planes = format!("{rails}\nplanes = 2");
    let homes = format!(
        "topology = \"graph\"\nhost_switches = [12, 12, 13, 13, 14, 14, 15, 15]\n\
         other_switches = [\"16\", \"16\", \"17\", \"17\", \"18\", \"18\", \"19\", \"19\"]\n\
         link = \"200Gbps\"\nlinks = [{}]\n{SERVER}server.rails = true",
        (12..20)
            .flat_map(|leaf| [20, 21].map(|spine| format!("\"{leaf} {spine} 800Gbps 1us\"")))
            .collect::<Vec<_>>()
            .join(", ")
    );
    [
        ("rails.topo", FOUR, rails),
        ("beside.topo", SimaiFile { rails: false, under: 4, ..FOUR }, beside),
        ("planes.topo", SimaiFile { tors: 2, meet: false, ..FOUR }, planes),
        ("homes.topo", SimaiFile { tors: 2, ..FOUR }, homes),
    ]
}

fn folder(name: &str) -> Folder {
    let texts = files().map(|(name, file, _)| (name, file.text()));
    Folder::new(name, &texts.each_ref().map(|(name, text)| (*name, &**text)))
}

fn job(fabric: &str) -> String {
    on(fabric).replace("pattern = \"all-to-all\"", "collective = \"all-reduce\"")
}

#[test]
fn a_file_is_what_its_keys_would_describe() {
    let folder = folder("simai-keys");
    for (name, _, keys) in files() {
        let settled = |fabric: &str| {
            let all = folder.expand(&job(fabric), &[]);
            let run = &all.runs[0];
            (Value::Table(run.experiment.clone()).to_json(), run.key.clone())
        };
        assert_eq!(settled(&format!("file = \"{name}\"")), settled(&keys), "{name}");
    }
}

#[test]
fn a_file_gives_the_results_of_its_keys() {
    let folder = folder("simai-results");
    for (name, _, keys) in files() {
        let row = |fabric: &str| {
            let experiment = folder.settled(&job(fabric), &[]);
            run(&experiment, 1, Threads::ONE, &AtomicBool::new(false)).expect("a run").row
        };
        let rows = row(&format!("file = \"{name}\""));
        assert_eq!(rows, row(&keys), "{name}");
        assert!(rows.contains(&("ranks", Cell::U64(8))), "{rows:?}");
    }
}

/// A rank is the GPU of its number: below the leaf that the file has there, beside those of its server.
#[test]
fn ranks_are_the_files_gpus() {
    let folder = folder("simai-ranks");
    for (name, file, _) in files() {
        let settled = folder.settled(&job(&format!("file = \"{name}\"")), &[]);
        let ranks = settled.traffic(1).expect("traffic").ranks.expect("a job");
        let leaves: Vec<u32> =
            ranks.hosts.iter().map(|host| settled.fabric.leaf_of(*host)).collect();
        let expected: Vec<u32> = (0..8).map(|gpu| file.leaf(gpu)).collect();
        assert_eq!(leaves, expected, "{name}");
        assert_eq!(ranks.servers, [0, 0, 1, 1, 2, 2, 3, 3], "{name}");
    }
}

/// The last leaves of a rail may have fewer GPUs than the others; then it is a graph.
#[test]
fn rails_need_not_be_full() {
    let five = SimaiFile { servers: 5, ..SMALL }.text();
    let folder = Folder::new("simai-five", &[("five.topo", &*five)]);
    let all = folder.expand(&job("file = \"five.topo\""), &[]);
    assert!(all.warnings[0].contains("so it is a graph"), "{:?}", all.warnings);
    let settled = folder.settled(&job("file = \"five.topo\""), &[]);
    let ranks = settled.traffic(1).expect("traffic").ranks.expect("a job");
    assert_eq!(ranks.hosts, [0, 2, 1, 3, 4, 6, 5, 7, 8, 9].map(HostId));
    let uneven = "topology = \"graph\"\nhost_switches = [0, 0, 1, 1, 2, 2, 3]\nlinks = [\"0 1\", \"1 2\", \"2 3\"]\n\
                  server = { gpus = 2, nics = 2, rails = true }";
    assert_eq!(
        folder.mistake(&on(uneven), &[]),
        "fig.toml: fabric.server.rails (line 6): true, but 2 leaves that share servers have other numbers of hosts; \
         give them as many"
    );
}

#[test]
fn what_contradicts_the_file_is_refused() {
    let folder = folder("simai-beside");
    let wrong = |name: &str, beside: &str| {
        let line = folder.mistake(&on(&format!("file = \"{name}\"\n{beside}")), &[]);
        line.strip_prefix("fig.toml: fabric.").expect("the section").to_owned()
    };
    let cases = [
        ("server.gpus = 4", "server.gpus (line 4): 4, where rails.topo has 2; remove it"),
        ("server.nics = 1", "server.nics (line 4): 1, where rails.topo has 2; remove it"),
        (
            "server.rails = false",
            "server.rails (line 4): false, where rails.topo has true; remove it",
        ),
        ("planes = 2", "planes (line 4): 2, where rails.topo has 1; remove it"),
        ("homes = 2", "homes (line 4): 2, where rails.topo has 1; remove it"),
        ("leaves = 4", "leaves (line 4): stands beside file, which says it; remove one of them"),
    ];
    for (beside, said) in cases {
        assert_eq!(wrong("rails.topo", beside), said);
    }
    assert_eq!(
        wrong("planes.topo", "planes = 1"),
        "planes (line 4): 1, where planes.topo has 2; remove it"
    );
    // The same may stand there, and other links between the GPUs of a server.
    let key = |beside: &str| {
        folder.expand(&job(&format!("file = \"rails.topo\"\n{beside}")), &[]).runs[0].key.clone()
    };
    assert_eq!(key("server.gpus = 2"), key(""));
    assert_eq!(key("server.scale_up = \"400Gbps\""), key(""));
    assert_ne!(key("server.scale_up = \"900Gbps\""), key(""));
}

#[test]
fn what_servers_cannot_be_is_refused() {
    let small = SMALL.text();
    let fast = small.replace("400Gbps", "9000Gbps");
    // Server 1 before server 0 on one rail.
    let crossed = SimaiFile { servers: 4, gpus: 1, nvswitches: 0, rails: false, ..SMALL }.text();
    let crossed = crossed.replacen("1 4 200", "1 5 200", 1).replacen("2 5 200", "2 4 200", 1);
    let narrow = SimaiFile { servers: 3, rails: false, under: 3, ..SMALL }.text();
    let files = [("fast.topo", &*fast), ("crossed.topo", &crossed), ("narrow.topo", &narrow)];
    let folder = Folder::new("simai-odd", &files);
    let of = |name: &str| folder.mistake(&on(&format!("file = \"{name}\"")), &[]);
    let cases = [
        (
            "fast.topo",
            "server.scale_up: \"9000Gbps\" is out of range; use \"1Mbps\" to \"8000Gbps\"",
        ),
        (
            "crossed.topo",
            "GPU 1 is at another leaf than servers of 1 GPUs have it, whether they are on rails or not; number GPUs \
             server by server, and those of a leaf's servers one after the other",
        ),
        ("narrow.topo", "server.nics: 2 do not divide 3 hosts of a leaf; use a divisor"),
    ];
    for (name, what) in cases {
        assert_eq!(of(name), format!("fig.toml: fabric.file (line 3): {name}: {what}"));
    }
}

#[test]
fn files_are_described() {
    let folder = folder("simai-info");
    let has = |name: &str, parts: &[&str]| {
        let text = info(&folder, name);
        for part in parts {
            assert!(text.contains(part), "{text}\n  lacks {part}");
        }
    };
    let server = r#""server":{"gpus":2,"nics":2,"rails":true,"scale_up":"400Gbps","scale_up_latency":"50ns"}"#;
    let rails = [
        r#""name":"rails.topo","kind":"simai","hosts":8,"switches":6,"links":16"#,
        r#""in_order":true,"fabric":{"topology":"clos","tiers":2,"leaves":4"#,
        server,
        r#""remarks":[],"problems":[],"file_nodes":["0","1","2","3","4","5","6","7","12""#,
        r#""planes":1"#,
    ];
    has("rails.topo", &rails);
    has("planes.topo", &["\"planes\":2,\"server\":{", "plane-1-spine-1", "\"planes\":2}"]);
    has("homes.topo", &[r#""topology":"graph""#, server, "it is no folded Clos: "]);
}
