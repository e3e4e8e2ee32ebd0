//! What a run leaves: the columns that the interface promises, and how runs end early.

use std::sync::atomic::AtomicBool;
use weft_balance::scheme::{SCHEMES, SchemeConfig};
use weft_experiment::value::Value;
use weft_experiment::{
    Cell, Column, Columns, Format, Request, Resolved, RunError, RunResult, Threads, expand,
    read_run, run,
};
use weft_units::Time;

const INCAST: &str = r#"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
links_per_pair = 2
[workload]
pattern = "incast"
size = "100KB"
[balance]
scheme = "spray"
[probe]
interval = "2us"
ports = ["leaf-0 -> host-0", "leaf-0 -> spine-1#1"]
switches = ["leaf-0"]
"#;

fn resolved(text: &str) -> Resolved {
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text, format, source, overrides: &[], seeds: None };
    let all = expand(&request).unwrap_or_else(|error| panic!("{error}"));
    read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).expect("resolved")
}

fn result(text: &str) -> RunResult {
    run(&resolved(text), 1, Threads::ONE, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn number(result: &RunResult, name: &str) -> f64 {
    match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::F64(number))) => *number,
        Some((_, Cell::U64(number))) => *number as f64,
        other => panic!("{name} is {other:?}"),
    }
}

fn floats(columns: &Columns, name: &str) -> Vec<f64> {
    match columns.iter().find(|(column, _)| *column == name) {
        Some((_, Column::F64(values))) => values.clone(),
        Some((_, Column::U64(values))) => values.iter().map(|value| *value as f64).collect(),
        Some((_, Column::U32(values))) => values.iter().map(|value| f64::from(*value)).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_row_has_the_promised_columns_in_order() {
    let names: Vec<_> = result(INCAST).row.iter().map(|(name, _)| *name).collect();
    let promised = [
        "scheme",
        "workload",
        "algorithm",
        "size_bytes",
        "hosts",
        "seed",
        "cct_s",
        "bound_s",
        "slowdown",
        "normalised",
        "packets",
        "control_packets",
        "packet_hops",
        "drops",
        "marks",
        "trims",
        "pauses",
        "retransmits",
        "spurious_retransmits",
        "subflows",
        "max_qps",
        "established_qps",
        "fct_mean_s",
        "fct_p50_s",
        "fct_p99_s",
        "peak_queue_bytes",
        "leaf_flows",
        "leaf_letters",
        "reroutes",
        "reorder_queues",
        "reorder_bytes",
        "held_packets",
        "held_mean_s",
        "held_max_s",
        "flushes",
        "premature_flushes",
        "blocked_nacks",
        "late_nacks",
    ];
    let places: Vec<_> = promised.iter().map(|name| names.iter().position(|n| n == name)).collect();
    assert!(places.iter().all(Option::is_some), "{names:?}");
    assert!(places.is_sorted());
}

/// Equation 1 of McClure et al. (2025): four queues of eight packets, over a threshold of three, or six.
#[test]
fn a_row_has_the_subflows_that_auto_came_to() {
    let text = |accounting: &str| {
        format!(
            "[fabric]\ntopology = \"fat-tree\"\nk = 4\n[fabric.nic]\nmtu = \"4000B\"\n\
             header = \"64B\"\n[fabric.switch]\nbuffer_kind = \"per-port\"\nbuffer = \"32768B\"\n\
             ecn = false\n[workload]\npattern = \"permutation\"\nsize = \"80KB\"\n[balance]\n\
             scheme = \"spray\"\n[transport]\nrecovery = \"tcp\"\n{accounting}\n"
        )
    };
    let cases = [
        ("dup_acks = 3\nsubflows = \"auto\"", 11.0),
        ("dup_acks = 6\nsubflows = \"auto\"", 6.0),
        ("subflows = 2", 2.0),
        ("", 1.0),
    ];
    for (accounting, expected) in cases {
        assert_eq!(number(&result(&text(accounting)), "subflows"), expected, "{accounting}");
    }
}

#[test]
fn the_row_agrees_with_flows_and_links() {
    let result = result(INCAST);
    let mut times = floats(&result.flows, "fct_s");
    times.sort_by(f64::total_cmp);
    // Seven messages: the median by nearest rank is the fourth, the 99th percentile the last.
    assert_eq!(number(&result, "fct_p50_s"), times[3]);
    assert_eq!(number(&result, "fct_p99_s"), times[6]);
    let mean = times.iter().sum::<f64>() / 7.0;
    assert!((number(&result, "fct_mean_s") / mean - 1.0).abs() < 1e-9);
    let last = floats(&result.flows, "finish_s").into_iter().fold(0.0, f64::max);
    assert_eq!(number(&result, "cct_s"), last);
    // 700 kB into one host at 100 Gb/s: 56 us.
    assert_eq!(number(&result, "normalised"), last / 56e-6);
    assert_eq!(number(&result, "slowdown"), last / number(&result, "bound_s"));
    let packets: f64 = floats(&result.links, "packets").iter().sum();
    assert_eq!(number(&result, "packet_hops"), packets);
    assert!(floats(&result.links, "utilisation").iter().all(|share| (0.0..=1.0).contains(share)));
    let peak = floats(&result.links, "peak_queue_bytes").into_iter().fold(0.0, f64::max);
    assert_eq!(number(&result, "peak_queue_bytes"), peak);
}

#[test]
fn links_name_their_ends_and_tiers() {
    let fat_tree = r#"
        fabric = { topology = "fat-tree", k = 4 }
        workload = { pattern = "permutation", size = "1KB" }
        balance = { scheme = "ecmp" }
    "#;
    let links = result(fat_tree).links;
    let column = |name: &str| match links.iter().find(|(column, _)| *column == name) {
        Some((_, Column::Text(values))) => values.clone(),
        other => panic!("{name} is {other:?}"),
    };
    let (from, to, tiers) = (column("from"), column("to"), column("tier"));
    let count = |tier: &str| tiers.iter().filter(|name| *name == tier).count();
    for tier in ["nic", "leaf-down", "leaf-up", "spine-down", "agg-up", "core-down"] {
        assert_eq!(count(tier), 16, "{tier}");
    }
    assert_eq!((from[0].as_str(), to[0].as_str()), ("host-0", "leaf-0"));
    assert_eq!(from.last().map(String::as_str), Some("core-3"));
}

#[test]
fn probes_are_sampled_from_time_zero_on_and_named() {
    let series = result(INCAST).series;
    assert_eq!(series.names, ["leaf-0 -> host-0", "leaf-0 -> spine-1#1", "leaf-0"]);
    assert_eq!(series.kinds, ["port", "port", "switch"]);
    assert_eq!(series.time_s[..3], [0.0, 2e-6, 4e-6]);
    assert!(series.bytes.iter().all(|bytes| bytes.len() == series.time_s.len()));
    assert!(series.bytes[0].iter().max() > Some(&10_000), "an incast builds a queue");
    let without = INCAST.split("[probe]").next().expect("text before it");
    assert_eq!(result(without).series, weft_experiment::Series::default());
}

/// What hosts receive in each interval adds up to the payload, also where packets come twice, and
/// its maximum is what they can receive at most.
#[test]
fn goodput_counts_payload_once() {
    let lossy = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
                 switch = { buffer_kind = \"per-port\", buffer = \"20KB\" }\n[workload]\n\
                 pattern = \"permutation\"\nsize = \"400KB\"\n[balance]\nscheme = \"ecmp\"\n\
                 [probe]\ninterval = \"10us\"\ngoodput = true\n";
    let found = result(lossy);
    assert!(number(&found, "retransmits") > 0.0, "nothing was sent twice");
    assert_eq!(
        (&found.series.names[..], &found.series.kinds[..]),
        (&["all hosts".to_owned()][..], &["goodput"][..])
    );
    let bytes = &found.series.bytes[0];
    assert_eq!(bytes.iter().sum::<u64>() as f64, number(&found, "payload_bytes"));
    assert_eq!(bytes[0], 0, "nothing has arrived at time zero");
    let most = *bytes.iter().max().unwrap() as f64;
    assert!((number(&found, "max_goodput_gb_s") - most / 10e-6 / 1e9).abs() < 1e-9);
    // Eight hosts at 400 Gb/s, and a packet that arrives whole though it began before.
    assert!(most <= 8.0 * (10e-6 * 50e9 + 4096.0), "{most}");
    // It changes nothing, and is not there unless asked for.
    let without = result(lossy.split("[probe]").next().expect("text before it"));
    assert_eq!(number(&without, "max_goodput_gb_s"), 0.0);
    assert_eq!(number(&without, "cct_s"), number(&found, "cct_s"));
}

/// What each port sends in each interval adds up to the port's bytes, and no interval has more than
/// the link carries; also where a link is slow for a while.
#[test]
fn sent_bytes_add_up_to_those_of_the_port() {
    let sent = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
                link = \"100Gbps\"\n[workload]\npattern = \"permutation\"\nsize = \"400KB\"\n\
                [balance]\nscheme = \"ecmp\"\n[failures.slow]\nlinks = [\"leaf-0 <-> spine-0\"]\n\
                kind = \"degraded\"\nlost = 0.9\nstart = \"7us\"\nduration = \"20us\"\n\
                [probe]\ninterval = \"2us\"\nsent = [\"* -> *\"]\n";
    for kind in ["shared", "per-port"] {
        let buffers = format!("{sent}[fabric.switch]\nbuffer_kind = {kind:?}\n");
        let found = result(&buffers);
        let bytes = found.links.iter().find(|(name, _)| *name == "bytes");
        let Some((_, Column::U64(bytes))) = bytes else { panic!("bytes of links") };
        assert_eq!(found.series.bytes.len(), bytes.len());
        assert!(found.series.kinds.iter().all(|kind| *kind == "sent"));
        for (sent, bytes) in found.series.bytes.iter().zip(bytes) {
            // The last acknowledgement may still be on its way over other links.
            let (sum, most) = (sent.iter().sum::<u64>(), sent.iter().max().expect("samples"));
            assert!(sum <= *bytes && *bytes - sum <= 4 * 60, "{sum} of {bytes} under {kind}");
            assert!(*most <= 25_000 + 4_144, "{most} in an interval under {kind}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let (one, two) = (result(INCAST), result(INCAST));
    assert_eq!(one.row, two.row);
    assert_eq!((one.flows, one.links, one.series), (two.flows, two.links, two.series));
}

#[test]
fn a_set_flag_cancels() {
    // Long enough for the engine to look at the flag at all.
    let long = INCAST.replace("100KB", "10MB");
    let ended = run(&resolved(&long), 1, Threads::ONE, &AtomicBool::new(true));
    assert!(matches!(ended, Err(RunError::Cancelled)));
}

#[test]
fn a_stall_says_who_waits() {
    // A buffer of one packet under an incast loses some, and nobody waits for the time-out: the
    // reader would refuse that.
    let lossy = INCAST.replace(
        "[workload]",
        "switch = { buffer_kind = \"per-port\", buffer = \"5KB\" }\n[workload]",
    );
    let mut impatient = resolved(&lossy);
    impatient.transport.rto = Some(Time::MAX);
    impatient.probes.interval = None;
    impatient.stall_after = Some(Time::ms(1));
    match run(&impatient, 1, Threads::ONE, &AtomicBool::new(false)) {
        Err(RunError::Stalled(who)) => {
            assert!(who.contains("host") && !who.contains('\n'), "{who}")
        }
        other => panic!("{:?}", other.map(|result| result.row)),
    }
}

/// A lone message across the fabric: its acknowledgement of 60 bytes takes 80 ps a byte and 500 ns
/// on each of four links.
#[test]
fn a_message_may_count_as_complete_when_its_sender_hears_of_it() {
    let folder = std::env::temp_dir().join(format!("weft-completion-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("one.csv").display().to_string();
    std::fs::write(&file, "src,dst,size\n0,5,4096\n").unwrap();
    let lone =
        INCAST.replace("pattern = \"incast\"\nsize = \"100KB\"", &format!("file = {file:?}"));
    let late = result(&format!("{lone}[run]\ncompletion = \"acknowledged\"\n"));
    let soon = result(&lone);
    let back = 4.0 * (60.0 * 80e-12 + 500e-9);
    let differ = number(&late, "cct_s") - number(&soon, "cct_s");
    assert!((differ - back).abs() < 1e-12, "{differ}");
    for column in ["finish_s", "fct_s"] {
        let differ = floats(&late.flows, column)[0] - floats(&soon.flows, column)[0];
        assert!((differ - back).abs() < 1e-12, "{column}: {differ}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A link that never comes back, and of which nobody learns: told within a simulated second,
/// whatever waits for it.
#[test]
fn a_blackhole_is_diagnosed_within_a_second() {
    let dead = "[failures.dead]\nlinks = [\"leaf-0 -> host-0\"]\nkind = \"down\"\n\
                detect = \"never\"\nstart = \"10us\"\n";
    let ports = "switch = { buffer_kind = \"per-port\", buffer = \"100KB\" }\n[workload]";
    for info in weft_transport::RECOVERIES {
        let text = INCAST.replace("[workload]", ports);
        let text = format!("{text}{dead}[transport]\nrecovery = {:?}\n", info.name);
        let ended = run(&resolved(&text), 1, Threads::ONE, &AtomicBool::new(false));
        let Err(RunError::Stalled(who)) = ended else { panic!("{}: {ended:?}", info.name) };
        let now = who.split_once("(now ").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
        let now = weft_units::parse_time(now).unwrap();
        assert!(now >= Time::ms(900) && now < Time::secs(1), "{}: {who}", info.name);
    }
}

/// Senders repeat what has arrived, because its acknowledgements were lost: nothing to tune.
#[test]
fn lost_acknowledgements_are_not_taken_for_queues() {
    let incast = INCAST.replace("100KB", "1MB").replace("spray", "ecmp");
    let slow = "[transport]\nrecovery = \"selective-repeat\"\nrto = \"30us\"\n";
    let is_hinted = |text: &str| {
        let result = result(text);
        assert!(number(&result, "spurious_retransmits") > number(&result, "packets") / 100.0);
        let hint = |warning: &String| warning.contains("they queued for longer than transport.rto");
        result.warnings.iter().any(hint)
    };
    assert!(is_hinted(&format!("{incast}{slow}")));
    let down = "[failures.a]\nlinks = [\"leaf-1 <-> spine-0\"]\nkind = \"down\"\nstart = \"20us\"\n\
                duration = \"5ms\"\n";
    let usual = "[transport]\nrecovery = \"selective-repeat\"\n";
    let small = INCAST.replace("pattern = \"incast\"", "pattern = \"all-to-all\"");
    assert!(!is_hinted(&format!("{}{usual}{down}", small.replace("spray", "ecmp"))));
}

/// Nor are packets that came out of order after ConWeave's leaves had held them for long enough.
#[test]
fn packets_out_of_order_are_not_taken_for_queues() {
    let text = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
                link = \"100Mbps\"\ndelay = \"1us\"\n[workload]\npattern = \"permutation\"\n\
                size = \"256KB\"\n[balance]\nscheme = \"conweave\"\n";
    let said = |text: &str| result(text).warnings.join("; ");
    assert!(said(text).contains("they came behind later ones"), "{}", said(text));
    let mended = format!("{text}[transport]\nrecovery = \"selective-repeat\"\n");
    assert_eq!(said(&mended), "");
}

/// Whatever the registry lists can be named in an experiment, and runs to its end.
/// Buffers of two packets on links that hold thirty: pauses of a dragonfly wait for each other in a circle. Coding sends
/// more than it needs, so that all messages are there, and what is left over waits for good.
#[test]
fn a_deadlock_of_pauses_that_nobody_waits_for_is_told() {
    let text = |recovery: &str| {
        format!(
            r#"
[fabric]
topology = "dragonfly"
groups = 3
routers = 2
hosts_per_leaf = 1
global_ports = 1
link = "100Gbps"
delay = "10us"
[fabric.switch]
buffer_kind = "per-port"
buffer = "20KB"
ecn = false
pfc = true
[fabric.nic]
mtu = "4096B"
[workload]
pattern = "all-to-all"
size = "20KB"
[balance]
scheme = "ecmp"
[transport]
recovery = "{recovery}"
"#
        )
    };
    let coded = result(&text("coding"));
    let told = |warning: &String| warning.contains("PFC deadlock");
    assert!(coded.warnings.iter().any(told), "{:?}", coded.warnings);
    assert!(number(&coded, "slowdown") < 2.0);
    assert!(!result(&text("go-back-n")).warnings.iter().any(told));
}

#[test]
fn every_registered_scheme_runs() {
    for (info, usual) in SCHEMES.iter().zip(SchemeConfig::all()) {
        let text = INCAST.replace("scheme = \"spray\"", &format!("scheme = {:?}", info.name));
        let result = result(&text);
        let scheme = result.row.iter().find(|(column, _)| *column == "scheme");
        // With its number, if it has one: `subflows-4`.
        assert_eq!(scheme, Some(&("scheme", Cell::Text(usual.name()))));
        assert!(number(&result, "slowdown") >= 1.0, "{}", info.name);
        // Seven senders of 100,000 bytes in packets of 4096.
        assert!(number(&result, "packets") >= 7.0 * 25.0, "{}", info.name);
    }
}
