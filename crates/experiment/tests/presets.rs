//! Presets: what they set, that whatever is said stays, and how long messages get.

use crate::common::{find, mistake, settled};
use weft_experiment::{Catalogue, Resolved};

const JOB: &str = r#"preset = "nccl-2.28"
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[workload]
collective = "all-reduce"
size = "64MiB"
"#;

fn said(experiment: &Resolved, keys: &[&str]) -> Vec<Option<String>> {
    keys.iter().map(|key| find(experiment.table(), key)).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

const KEYS: [&str; 6] = [
    "workload.algorithm",
    "workload.channels",
    "workload.message_limit",
    "balance.scheme",
    "balance.queue_pairs",
    "balance.split",
];

#[test]
fn it_says_what_is_not_said() {
    let usual = settled(JOB, &[]);
    assert_eq!(
        said(&usual, &KEYS),
        some(&["ring", "4", "1048576B", "e-ecmp-2", "2", "round-robin"])
    );
    assert_eq!(find(usual.table(), "preset"), None);
    assert_eq!(find(usual.table(), "balance.chunk"), None);
    // As many rings for each NIC of a server.
    let servers = [("fabric.server.gpus", "4"), ("fabric.server.nics", "4")];
    let of_servers = settled(JOB, &servers);
    assert_eq!(find(of_servers.table(), "workload.channels").as_deref(), Some("16"));
    // Every collective that rings can do, of a model.
    let model =
        JOB.replace("collective = \"all-reduce\"\nsize = \"64MiB\"", "model = \"gpt2-small\"");
    assert_eq!(said(&settled(&model, &[]), &KEYS[..2]), some(&["ring", "4"]));
    let exchange = settled(JOB, &[("workload.collective", "all-to-all")]);
    assert_eq!(find(exchange.table(), "balance.chunk").as_deref(), Some("131072B"));
    assert_eq!(find(exchange.table(), "workload.message_limit").as_deref(), Some("none"));
    // It is the same as to say all of it.
    let lines = "algorithm = \"ring\"\nchannels = 4\nmessage_limit = \"1MiB\"\n[balance]\nscheme = \"e-ecmp\"\n\
                 queue_pairs = 2\nsplit = \"round-robin\"\n";
    let told = settled(&(JOB.replace("preset = \"nccl-2.28\"\n", "") + lines), &[]);
    assert_eq!(told.key(1), usual.key(1));
}

#[test]
fn what_is_said_stays() {
    let told =
        [("workload.channels", "2"), ("balance.queue_pairs", "4"), ("balance.split", "even")];
    let own = settled(JOB, &told);
    assert_eq!(said(&own, &KEYS), some(&["ring", "2", "1048576B", "e-ecmp-4", "4", "even"]));
    let other =
        settled(JOB, &[("workload.algorithm", "recursive-doubling"), ("balance.scheme", "spray")]);
    assert_eq!(said(&other, &KEYS[..2]), vec![Some("recursive-doubling".to_owned()), None]);
    assert_eq!(said(&other, &KEYS[3..5]), vec![Some("spray".to_owned()), None]);
    let numbered = settled(JOB, &[("balance.scheme", "e-ecmp-8")]);
    assert_eq!(said(&numbered, &KEYS[4..]), some(&["8", "round-robin"]));
}

#[test]
fn messages_are_no_longer_than_the_limit() {
    let volume = |told: &[(&str, &str)]| settled(JOB, told).traffic(1).expect("traffic").volume();
    // A block of a ring of four is 64 MiB / 4 / 16, which is within it.
    assert_eq!(volume(&[]).largest, 1 << 20);
    let none = volume(&[("workload.message_limit", "none")]);
    assert_eq!(none.largest, 1 << 20);
    let short = volume(&[("workload.message_limit", "100KB")]);
    // Eleven chunks of 1 MiB.
    assert_eq!(short.largest, (1_u64 << 20).div_ceil(11));
    assert_eq!((short.messages, short.bytes), (11 * none.messages, none.bytes));
    for algorithm in ["recursive-doubling", "double-binary-tree", "direct"] {
        let told = [("workload.algorithm", algorithm), ("workload.message_limit", "300KB")];
        let limited = volume(&told);
        assert!(limited.largest <= 300_000, "{algorithm}: {}", limited.largest);
        let free = volume(&[told[0], ("workload.message_limit", "none")]);
        assert_eq!(limited.bytes, free.bytes, "{algorithm}");
    }
    for operation in ["broadcast", "reduce", "all-gather", "reduce-scatter"] {
        let told = [("workload.collective", operation), ("workload.message_limit", "300KB")];
        assert!(volume(&told).largest <= 300_000, "{operation}");
    }
}

#[test]
fn mistakes_are_told() {
    assert_eq!(
        mistake(&JOB.replace("nccl-2.28", "nccl"), &[]),
        "fig.toml: preset (line 1): \"nccl\" is no preset; use one of nccl-2.28"
    );
    assert_eq!(
        mistake(JOB, &[("workload.message_limit", "0B")]),
        "fig.toml: workload.message_limit (command line): \"0B\" is out of range; use \"1B\" to \"1000TB\", \
         or \"none\""
    );
    let large = [("workload.message_limit", "1B"), ("workload.size", "1GB")];
    let error = mistake(JOB, &large);
    assert!(error.starts_with("fig.toml: workload.message_limit (command line): cuts"), "{error}");
    assert!(error.ends_with("chunks, one after the other, which are more than 65536; raise it"));
}

#[test]
fn all_that_it_sets_is_listed() {
    let entries = Catalogue::Presets.entries();
    let [entry] = &entries[..] else { panic!("{}", entries.len()) };
    let listed: Vec<&str> = entry.options.iter().map(|option| option.key.as_str()).collect();
    assert_eq!(listed, [&KEYS[..], &["balance.chunk"]].concat());
}
