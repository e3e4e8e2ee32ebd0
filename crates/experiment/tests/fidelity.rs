//! `run.fidelity`: what rates say against what packets say.

use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{
    Cell, Column, Columns, ExperimentError, Format, Request, Resolved, RunResult, Threads, expand,
    read_run, run,
};
use weft_trial::prelude::*;

const FABRIC: &str = r#"
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 4
link = "100Gbps"
delay = "500ns"
"#;

fn resolved(text: &str, overrides: &[(&str, &str)]) -> Result<Resolved, ExperimentError> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let overrides: Vec<_> = overrides.iter().map(own).collect();
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text, format, source, overrides: &overrides, seeds: None };
    let all = expand(&request)?;
    Ok(read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).expect("resolved"))
}

fn result(text: &str, fidelity: &str) -> RunResult {
    let resolved = resolved(text, &[("run.fidelity", fidelity)]);
    let resolved = resolved.unwrap_or_else(|error| panic!("{error}"));
    run(&resolved, 1, Threads::ONE, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn both(text: &str) -> [RunResult; 2] {
    ["packet", "fluid"].map(|fidelity| result(text, fidelity))
}

fn cell<'a>(result: &'a RunResult, name: &str) -> &'a Cell {
    &result.row.iter().find(|(column, _)| *column == name).expect("a column").1
}

fn number(result: &RunResult, name: &str) -> f64 {
    match cell(result, name) {
        Cell::F64(number) => *number,
        other => panic!("{name} is {other:?}"),
    }
}

fn seconds(result: &RunResult) -> f64 {
    number(result, "cct_s")
}

/// The largest share of its capacity that a link carried.
fn utilisation(result: &RunResult) -> f64 {
    match result.links.iter().find(|(column, _)| *column == "utilisation") {
        Some((_, Column::F64(shares))) => shares.iter().copied().fold(0.0, f64::max),
        other => panic!("utilisation is {other:?}"),
    }
}

fn counts(columns: &Columns, name: &str) -> Vec<u64> {
    match columns.iter().find(|(column, _)| *column == name) {
        Some((_, Column::U64(values))) => values.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

#[track_caller]
fn close(text: &str, within: f64) {
    let [packet, fluid] = both(text).map(|one| seconds(&one));
    let error = fluid / packet - 1.0;
    assert!(error.abs() <= within, "{packet} s by packets, {fluid} s by rates: {error:+.4}");
}

#[test]
fn flows_on_one_path_take_as_long_as_by_packets() {
    let traffic = [
        "pattern = \"permutation\"\nsize = \"4MB\"",
        "collective = \"all-to-all\"\nsize = \"4MB\"",
        "collective = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"4MB\"",
    ];
    for workload in traffic {
        for scheme in ["ecmp", "ethereal", "dnlb-4", "path-pinning"] {
            let balance = format!("[balance]\nscheme = \"{scheme}\"\n");
            close(&format!("{FABRIC}{balance}[workload]\n{workload}\n"), 0.05);
        }
    }
}

#[test]
fn spraying_takes_as_long_as_by_packets_where_many_flows_share() {
    for scheme in ["spray", "switch-spray", "reps"] {
        let balance = format!("[balance]\nscheme = \"{scheme}\"\n");
        let workload = "[workload]\ncollective = \"all-to-all\"\nsize = \"8MB\"\n";
        close(&format!("{FABRIC}{balance}{workload}"), 0.03);
    }
}

/// In several planes a queue pair that keeps to a path is one in each, and packets that are sprayed take all.
#[test]
fn planes_take_as_long_as_by_packets() {
    let pinned = ["ecmp", "ethereal"];
    let sprayed = ["spray", "switch-spray", "spray-counter"];
    let traffic: [(&str, &[&str], f64); 4] = [
        ("pattern = \"permutation\"\nsize = \"16MB\"", &pinned, 0.05),
        ("collective = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"16MB\"", &pinned, 0.05),
        ("collective = \"all-to-all\"\nsize = \"32MB\"", &sprayed, 0.03),
        ("pattern = \"incast\"\nsize = \"1MB\"", &sprayed, 0.03),
    ];
    for (workload, schemes, within) in traffic {
        for scheme in schemes {
            let balance = format!("[balance]\nscheme = \"{scheme}\"\n");
            close(&format!("{FABRIC}planes = 4\n{balance}[workload]\n{workload}\n"), within);
        }
    }
}

#[test]
fn entropy_values_in_turn_load_the_links_that_they_hash_onto() {
    let text = |balance: &str| {
        format!(
            "{FABRIC}[workload]\npattern = \"permutation\"\nsize = \"4MB\"\n[balance]\n{balance}\n"
        )
    };
    let counted = text("scheme = \"spray-counter\"\nentropies = 8");
    close(&counted, 0.08);
    let random = text("scheme = \"spray\"");
    let [counted, random] = [counted, random].map(|text| seconds(&result(&text, "fluid")));
    assert!(counted > 1.2 * random, "{counted} s, and {random} s at random");
}

#[test]
fn jobs_on_several_tiers_take_as_long_as_by_packets() {
    for scheme in ["ecmp", "path-pinning"] {
        let text = format!(
            r#"
[fabric]
topology = "fat-tree"
k = 4
link = "100Gbps"
delay = "500ns"
[balance]
scheme = "{scheme}"
[workload]
model = "gpt2-small"
ranks = 16
tensor = 2
pipeline = 2
global_batch = 8
"#
        );
        close(&text, 0.03);
    }
}

/// Eight GPUs and NICs a server, one rail a rack: the usual way to wire them.
const RAILS: &str = r#"
[fabric]
topology = "leaf-spine"
leaves = 8
spines = 16
hosts_per_leaf = 8
link = "400Gbps"
delay = "500ns"
[fabric.server]
gpus = 8
nics = 8
rails = true
"#;

#[test]
fn what_waits_in_queues_has_left_its_nic() {
    // Ranks of servers pile up messages, which take ways of their own. Short ones were 39 % too slow while
    // each held its NIC until it was there.
    for (scheme, size, within) in [
        ("ecmp", "8MB", 0.12),
        ("ecmp", "64MB", 0.05),
        ("hpn", "64MB", 0.05),
        ("e-ecmp-8", "64MB", 0.05),
    ] {
        let text = format!(
            "{RAILS}[balance]\nscheme = \"{scheme}\"\n[workload]\ncollective = \"all-reduce\"\n\
             algorithm = \"ring\"\nchannels = 1\nsize = \"{size}\"\n"
        );
        close(&text, within);
    }
}

#[test]
fn two_levels_of_rings_take_as_long_as_by_packets() {
    for operation in ["all-reduce", "all-gather", "reduce-scatter"] {
        for scheme in ["ecmp", "ethereal", "spray"] {
            let text = format!(
                "{RAILS}[balance]\nscheme = \"{scheme}\"\n[workload]\ncollective = \"{operation}\"\n\
                 algorithm = \"hierarchical\"\nsize = \"16MB\"\n"
            );
            close(&text, 0.03);
        }
    }
}

#[test]
fn a_link_that_dies_costs_its_time_out_as_by_packets() {
    let dead = r#"
[failures.dead]
links = ["leaf-0 <-> spine-0"]
kind = "down"
start = "50us"
[balance]
scheme = "ecmp"
[workload]
pattern = "permutation"
size = "4MB"
"#;
    let text = format!("{FABRIC}{dead}");
    close(&text, 0.05);
    let [_, fluid] = both(&text).map(|one| seconds(&one));
    let without = text.replace("start = \"50us\"", "start = \"50s\"");
    assert!(fluid > 2.0 * seconds(&result(&without, "fluid")), "the failure cost nothing: {fluid}");
}

/// What is on its way to a link that gets slow crosses it slowly: nobody is there before the bound.
#[test]
fn what_is_on_the_way_to_a_link_that_gets_slow_is_held_up() {
    let text = r#"
[fabric]
topology = "leaf-spine"
leaves = 3
spines = 1
hosts_per_leaf = 2
link = "100Gbps"
delay = "5us"
[failures.slow]
links = ["leaf-0 <-> spine-0"]
kind = "degraded"
lost = 0.7
start = "40us"
[balance]
scheme = "ethereal"
[workload]
pattern = "permutation"
size = "1MB"
"#;
    close(text, 0.03);
    assert!(number(&result(text, "fluid"), "slowdown") >= 1.0);
}

/// What waits before a link that is slow for a while is through soon once the link is whole again: as many bytes wait
/// as before, not for as long.
#[test]
fn what_waits_before_a_link_that_is_whole_again_leaves_at_its_rate() {
    let rest = r#"
[failures.slow]
links = ["leaf-0 <-> spine-0"]
kind = "degraded"
lost = 0.75
start = "5us"
duration = "30us"
[balance]
scheme = "ethereal"
[workload]
pattern = "permutation"
size = "1MB"
"#;
    close(&format!("{FABRIC}{rest}"), 0.08);
}

/// The path that a queue pair draws when it has timed out is dead, too: its second time-out is as long as the first, and
/// what else was out when that came waits no longer once something gets through.
#[test]
fn who_draws_a_dead_path_again_times_out_twice_by_packets_and_by_rates() {
    let text = r#"
[fabric]
topology = "fat-tree"
k = 4
link = "100Gbps"
delay = "500ns"
[failures.dead]
links = ["leaf-0 <-> pod-0-agg-0"]
kind = "down"
start = "5us"
[balance]
scheme = "ethereal"
[workload]
pattern = "permutation"
size = "1MB"
[transport]
"#;
    for recovery in ["go-back-n", "selective-repeat"] {
        let text = format!("{text}recovery = \"{recovery}\"");
        let (rto, time) =
            (number(&result(&text, "packet"), "rto_s"), both(&text).map(|one| seconds(&one)));
        for time in time {
            assert!((2.0..2.2).contains(&(time / rto)), "{recovery}: {time} s, time-out {rto} s");
        }
        close(&text, 0.05);
    }
}

trials! {
    #![cases(120)]

    /// Flows take other links and give up theirs while others come and go: the engine checks that each gives up
    /// its own.
    fn flows_move_while_links_die_and_come_back(
        (scheme, workload, recovery) in (
            any_of(vec!["ecmp", "wcmp", "subflows-4", "e-ecmp-4", "ethereal", "ethereal-weighted", "hpn"]),
            any_of(vec![
                "collective = \"all-to-all\"\nsize = \"1MB\"",
                "collective = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"4MB\"",
                "pattern = \"permutation\"\nsize = \"500KB\"",
            ]),
            any_of(vec!["go-back-n", "selective-repeat", "selective-nack", "tcp"]),
        ),
        (start, lasts, detect) in (1u32..100, 1u32..200, 0u32..50),
        kind in any_of(vec!["down", "degraded"]),
    ) {
        let more = match kind {
            "down" => format!("detect = \"{detect}us\""),
            _ => "lost = 0.5".to_owned(),
        };
        let text = format!(
            "{FABRIC}[failures.one]\nlinks = [\"leaf-0 <-> spine-1\", \"leaf-2 -> spine-0\"]\nkind = \"{kind}\"\n\
             start = \"{start}us\"\nduration = \"{lasts}us\"\n{more}\n\
             [balance]\nscheme = \"{scheme}\"\n[transport]\nrecovery = \"{recovery}\"\n\
             [workload]\n{workload}\n"
        );
        let fluid = result(&text, "fluid");
        let bound = number(&fluid, "bound_s");
        prop_assert!(seconds(&fluid) >= bound, "{} s, and {bound} s at the least", seconds(&fluid));
        prop_assert!(utilisation(&fluid) <= 1.0, "{}", utilisation(&fluid));
    }
}

#[test]
fn what_is_under_way_when_a_link_dies_is_lost() {
    // All has left its NIC, and is before the link that dies.
    let text = r#"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 1
link = "100Gbps"
delay = "5us"
[failures.dead]
links = ["spine-0 -> leaf-0", "spine-0 -> leaf-1"]
kind = "down"
start = "8us"
duration = "100us"
[balance]
scheme = "ecmp"
[workload]
pattern = "incast"
senders = 1
size = "64KB"
"#;
    close(text, 0.01);
    let fluid = result(text, "fluid");
    assert!(seconds(&fluid) > 1.5 * number(&fluid, "bound_s"), "it cost no time-out");
}

/// A link that is dead for a while in the middle of an all-to-all.
fn outage(scheme: &str, recovery: &str, times: &str) -> String {
    format!(
        "{FABRIC}[failures.dead]\nlinks = [\"leaf-0 <-> spine-1\"]\nkind = \"down\"\n{times}\n\
         [balance]\nscheme = \"{scheme}\"\n[transport]\nrecovery = \"{recovery}\"\n\
         [workload]\ncollective = \"all-to-all\"\nsize = \"1MB\"\n"
    )
}

#[test]
fn receivers_tell_of_an_outage_if_packets_come_behind_it() {
    let short = "start = \"20us\"\nduration = \"5us\"\ndetect = \"100us\"";
    for scheme in ["ecmp", "subflows-4", "ethereal"] {
        for recovery in ["go-back-n", "selective-nack"] {
            close(&outage(scheme, recovery, short), 0.1);
        }
        // Nobody tells: each packet has a timer.
        let text = outage(scheme, "selective-repeat", short);
        close(&text, 0.02);
        let told = seconds(&result(&outage(scheme, "go-back-n", short), "fluid"));
        assert!(seconds(&result(&text, "fluid")) > 5.0 * told, "{scheme}: {told} s");
    }
    // Routing finds another way for those that it may send there.
    let detected = "start = \"20us\"\ndetect = \"10us\"";
    close(&outage("ecmp", "go-back-n", detected), 0.15);
}

#[test]
fn no_link_carries_more_than_its_rate() {
    for size in ["1KB", "4KB", "64KB"] {
        let text = format!(
            "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
             link = \"25Gbps\"\ndelay = \"100ns\"\n[fabric.server]\ngpus = 4\nnics = 1\n\
             [balance]\nscheme = \"ecmp\"\n\
             [workload]\ncollective = \"all-to-all\"\nsize = \"{size}\"\n"
        );
        let used = utilisation(&result(&text, "fluid"));
        assert!(used <= 1.0, "{size}: {used}");
        close(&text, 0.08);
    }
}

#[test]
fn hosts_know_the_same_dead_links_as_by_packets() {
    let text = format!(
        "{FABRIC}[failures.dead]\nlinks = [\"leaf-0 <-> spine-0\"]\nkind = \"down\"\ndetect = \"0ns\"\n\
         [balance]\nscheme = \"ethereal\"\n[workload]\ncollective = \"all-to-all\"\nsize = \"1MB\"\n"
    );
    let [packet, fluid] = both(&text);
    assert_eq!(cell(&packet, "wire_drops"), &Cell::U64(0));
    assert_eq!(counts(&packet.links, "bytes"), counts(&fluid.links, "bytes"));
    let alone = text.replace("\"0ns\"", "\"0ns\"\nhosts_know = false");
    assert!(seconds(&result(&alone, "fluid")) > 2.0 * seconds(&fluid), "not to know cost nothing");
}

#[test]
fn pinned_flows_load_every_link_to_the_byte_as_by_packets() {
    for (scheme, planes) in
        [("ecmp", 1), ("ethereal", 1), ("dnlb-4", 1), ("ecmp", 4), ("ethereal", 4)]
    {
        let balance = format!("planes = {planes}\n[balance]\nscheme = \"{scheme}\"\n");
        let workload = "[workload]\ncollective = \"all-to-all\"\nsize = \"1MB\"\n";
        let [packet, fluid] = both(&format!("{FABRIC}{balance}{workload}"));
        assert_eq!(counts(&packet.links, "bytes"), counts(&fluid.links, "bytes"), "{scheme}");
        assert_eq!(counts(&packet.links, "packets"), counts(&fluid.links, "packets"), "{scheme}");
        for count in ["packets", "packet_hops", "max_qps", "established_qps", "messages"] {
            assert_eq!(cell(&packet, count), cell(&fluid, count), "{scheme}: {count}");
        }
    }
}

/// Subflows on all paths are one flow to `fluid`; with starts so far apart that they are not, the same
/// comes out.
#[test]
fn an_even_split_is_as_good_as_its_subflows() {
    let text = |jitter: &str| {
        format!(
            "[fabric]\ntopology = \"fat-tree\"\nk = 4\nlink = \"100Gbps\"\ndelay = \"500ns\"\n\
             [balance]\nscheme = \"ethereal\"\nstart_jitter = \"{jitter}\"\n\
             [workload]\ncollective = \"all-reduce\"\nalgorithm = \"recursive-doubling\"\n\
             size = \"8MB\"\n"
        )
    };
    let [whole, apart] = ["50ns", "1us"].map(|jitter| result(&text(jitter), "fluid"));
    assert!(whole.timing.events * 2 < apart.timing.events, "they are not one flow");
    let (one, other) = (seconds(&whole), seconds(&apart));
    assert!((one / other - 1.0).abs() < 0.01, "{one} s and {other} s");
    let packet = result(&text("50ns"), "packet");
    for column in ["bytes", "packets"] {
        assert_eq!(counts(&whole.links, column), counts(&packet.links, column), "{column}");
    }
}

/// The row of a run under `fast` and the one by packets; what both say of how they came about is left out.
fn fast_and_packet(text: &str) -> [RunResult; 2] {
    ["fast", "packet"].map(|fidelity| result(text, fidelity))
}

#[test]
fn hosts_that_are_not_in_each_others_way_need_no_packets() {
    for (scheme, workload) in [
        (
            "ethereal",
            "collective = \"all-reduce\"\nalgorithm = \"recursive-doubling\"\nsize = \"8MB\"",
        ),
        ("path-pinning", "collective = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"8MB\""),
        ("conga", "pattern = \"permutation\"\nsize = \"1MB\""),
    ] {
        let text = format!("{FABRIC}[balance]\nscheme = \"{scheme}\"\n[workload]\n{workload}\n");
        let [fast, packet] = fast_and_packet(&text);
        let is_skipped = cell(&fast, "skipped_pct") == &Cell::F64(100.0);
        // What CONGA does, only packets tell.
        assert_eq!(is_skipped, scheme != "conga", "{scheme}");
        let (one, other) = (seconds(&fast), seconds(&packet));
        assert!((one / other - 1.0).abs() < 0.005, "{scheme}: {one} s, by packets {other} s");
        assert_eq!(counts(&fast.links, "bytes"), counts(&packet.links, "bytes"), "{scheme}");
        for count in ["packets", "packet_hops", "max_qps", "established_qps", "messages"] {
            assert_eq!(cell(&fast, count), cell(&packet, count), "{scheme}: {count}");
        }
    }
}

#[test]
fn hosts_that_share_links_for_long_need_no_packets() {
    let job = |scheme: &str| {
        let model =
            "model = \"gpt2-small\"\nranks = 16\ntensor = 2\npipeline = 2\nglobal_batch = 8";
        format!("{FABRIC}[balance]\nscheme = \"{scheme}\"\n[workload]\n{model}\n")
    };
    // Pinned, they share for a twelfth of the run, hundreds of round trips at a time; Ethereal's
    // parts have others beside them again and again.
    for (scheme, skipped) in [("path-pinning", 100.0), ("ethereal", 0.0)] {
        let [fast, packet] = fast_and_packet(&job(scheme));
        assert_eq!(cell(&fast, "skipped_pct"), &Cell::F64(skipped), "{scheme}");
        let (one, other) = (seconds(&fast), seconds(&packet));
        assert!((one / other - 1.0).abs() < 0.01, "{scheme}: {one} s, by packets {other} s");
    }
}

#[test]
fn where_queues_of_chance_are_marked_packets_tell() {
    // Fifteen hosts send to each one; 16 KB and 65 KB are marked, of packets of 4 KB.
    for (link, skipped) in [("25Gbps", 0.0), ("100Gbps", 100.0)] {
        for scheme in ["ethereal", "path-pinning"] {
            let fabric = FABRIC.replace("100Gbps", link);
            let workload =
                "collective = \"all-to-all\"\nsize = \"4MB\"\nalgorithm = \"direct\"\ntimes = 2";
            let text =
                format!("{fabric}[balance]\nscheme = \"{scheme}\"\n[workload]\n{workload}\n");
            let [fast, packet] = fast_and_packet(&text);
            assert_eq!(cell(&fast, "skipped_pct"), &Cell::F64(skipped), "{scheme} at {link}");
            let (one, other) = (seconds(&fast), seconds(&packet));
            assert!((one / other - 1.0).abs() < 0.005, "{scheme}: {one} s, by packets {other} s");
        }
    }
}

#[test]
fn whatever_else_is_done_by_packets() {
    let ring = "[workload]\ncollective = \"all-reduce\"\nalgorithm = \"ring\"\nsize = \"1MB\"\n";
    let incast = "[workload]\npattern = \"incast\"\nsize = \"100KB\"\nsenders = 4\n";
    let pinned = "[balance]\nscheme = \"path-pinning\"\n";
    for (what, text) in [
        ("hosts that send to one", format!("{FABRIC}{pinned}{incast}")),
        ("spraying", format!("{FABRIC}[balance]\nscheme = \"spray\"\n{ring}")),
        (
            "a small window",
            format!("{FABRIC}{pinned}[transport]\ndctcp_initial_window = \"10KB\"\n{ring}"),
        ),
        (
            "a slow link",
            format!(
                "{FABRIC}{pinned}[failures.slow]\nlinks = [\"leaf-0 <-> spine-0\"]\n\
                 kind = \"degraded\"\nlost = 0.5\n{ring}"
            ),
        ),
        (
            "queues that are sampled",
            format!(
                "{FABRIC}{pinned}[probe]\ninterval = \"1us\"\nports = [\"leaf-0 -> spine-0\"]\n{ring}"
            ),
        ),
    ] {
        let [fast, packet] = fast_and_packet(&text);
        assert_eq!(cell(&fast, "skipped_pct"), &Cell::F64(0.0), "{what}");
        for ((name, one), (_, other)) in fast.row.iter().zip(&packet.row) {
            assert!(*name == "fidelity" || one == other, "{what}: {name} {one:?} {other:?}");
        }
        assert_eq!(fast.links, packet.links, "{what}");
    }
}

#[test]
fn a_row_says_its_fidelity_and_nothing_that_only_packets_tell() {
    let balance = "[balance]\nscheme = \"ecmp\"\n";
    let text =
        format!("{FABRIC}{balance}[workload]\npattern = \"permutation\"\nsize = \"100KB\"\n");
    let [packet, fluid] = both(&text);
    assert_eq!(cell(&packet, "fidelity"), &Cell::from("packet"));
    assert_eq!(cell(&fluid, "fidelity"), &Cell::from("fluid"));
    for column in ["drops", "marks", "pauses", "retransmits", "peak_queue_bytes", "reordered"] {
        assert_ne!(cell(&packet, column), &Cell::Unknown, "{column}");
        assert_eq!(cell(&fluid, column), &Cell::Unknown, "{column}");
    }
    assert!(fluid.warnings.iter().any(|one| one.contains("run.fidelity")), "{:?}", fluid.warnings);
    assert!(packet.warnings.is_empty(), "{:?}", packet.warnings);
}

#[test]
fn rates_tell_where_packets_would_be_paused_or_lost() {
    let fabric = FABRIC.replace("spines = 4\nhosts_per_leaf = 4", "spines = 8\nhosts_per_leaf = 8");
    let switches = [
        "pfc = true\nbuffer = \"1MiB\"\n",
        "pfc = true\nbuffer = \"4MiB\"\n",
        "pfc = true\nbuffer = \"16MiB\"\npfc_threshold = \"200KB\"\n",
        "pfc = false\nbuffer = \"1MiB\"\n",
        "pfc = false\nbuffer = \"4MiB\"\n",
        "pfc = false\nbuffer = \"800KB\"\nbuffer_kind = \"per-port\"\n",
    ];
    let mut seen = [0, 0];
    for scheme in ["ecmp", "subflows-4", "spray"] {
        for switch in switches {
            for (senders, congestion) in [(4, "dctcp"), (16, "dctcp"), (4, "fixed-rate")] {
                let text = format!(
                    "{fabric}[fabric.switch]\n{switch}[balance]\nscheme = \"{scheme}\"\n\
                     [transport]\ncongestion = \"{congestion}\"\n[workload]\n\
                     pattern = \"incast\"\nsenders = {senders}\nsize = \"2MB\"\n"
                );
                let [packet, fluid] = both(&text);
                let none = |column| cell(&packet, column) == &Cell::U64(0);
                let is_full = !none("pauses") || !none("drops");
                // All meet at one switch.
                let full = Cell::U64(u64::from(is_full));
                assert_eq!(cell(&fluid, "full_buffers"), &full, "{text}");
                assert_eq!(cell(&packet, "full_buffers"), &Cell::Unknown);
                let is_told = fluid.warnings.iter().any(|one| one.contains("fill the buffers"));
                assert_eq!(is_told, is_full, "{:?}", fluid.warnings);
                seen[usize::from(is_full)] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
}

/// A flow past the leaf of an incast, whose buffer that fills, waits before the links which the leaf pauses.
#[test]
fn who_meets_a_full_buffer_waits_as_long_as_by_packets() {
    let fabric = FABRIC.replace("spines = 4\nhosts_per_leaf = 4", "spines = 8\nhosts_per_leaf = 8");
    let file = std::env::temp_dir().join(format!("weft-incast-{}.csv", std::process::id()));
    let senders: String = (9..32).map(|src| format!("{src},0,1000000\n")).collect();
    std::fs::write(&file, format!("src,dst,size\n{senders}8,1,23000000\n")).expect("a file");
    let text = |scheme: &str, buffer: &str| {
        format!(
            "{fabric}[fabric.switch]\nbuffer = \"{buffer}\"\n[balance]\nscheme = \"{scheme}\"\n\
             [workload]\nfile = {file:?}\n"
        )
    };
    for scheme in ["ethereal", "dnlb-16", "subflows-4"] {
        let [[packet, fluid], [without, fluid_without]] = ["4MiB", "64MiB"]
            .map(|buffer| both(&text(scheme, buffer)).map(|one| number(&one, "slowdown")));
        let said = format!(
            "{scheme}: {packet} and {without} by packets, {fluid} and {fluid_without} by rates"
        );
        assert!(packet > 1.3 * without, "{said}");
        assert!((fluid / packet - 1.0).abs() < 0.1, "{said}");
        assert!((fluid_without / without - 1.0).abs() < 0.1, "{said}");
    }
    std::fs::remove_file(&file).expect("it is there");
}

#[test]
fn what_only_packets_tell_is_refused_by_the_key() {
    let flaky = "[failures.bad]\nlinks = [\"leaf-0 <-> spine-0\"]\nkind = \"flaky\"\n\
                 every = \"100us\"\nlength = \"5us\"\n";
    let workload = "[workload]\npattern = \"permutation\"\nsize = \"100KB\"\n";
    let of = |scheme: &str, failures: &str| {
        let balance = format!("[balance]\nscheme = \"{scheme}\"\n");
        let text = format!("{FABRIC}{failures}{balance}{workload}");
        resolved(&text, &[("run.fidelity", "fluid")]).map(|_| ()).map_err(|error| error.to_string())
    };
    let slow =
        "[failures.bad]\nlinks = [\"leaf-0 <-> spine-0\"]\nkind = \"degraded\"\nlost = 0.5\n";
    let refused = [
        ("plb", ""),
        ("letflow", ""),
        ("spray", flaky),
        ("ethereal", flaky),
        ("reps", slow),
        ("spray-bitmap", slow),
    ];
    for (scheme, failures) in refused {
        let error = of(scheme, failures).expect_err(scheme);
        let said = error.contains("run.fidelity") && error.contains("use \"packet\"");
        assert!(said && error.contains(scheme), "{error}");
    }
    let planes = format!("{FABRIC}planes = 2\n{slow}[balance]\nscheme = \"ethereal\"\n{workload}");
    let planes = planes.replace("leaf-0 <-> spine-0", "plane-0-leaf-0 <-> plane-0-spine-0");
    let error = resolved(&planes, &[("run.fidelity", "fluid")]).expect_err("one plane is slower");
    assert!(error.to_string().contains("over several planes, of which some"), "{error}");
    // Where other fidelities can, they do, and the user is told.
    let text = format!("{FABRIC}[balance]\nscheme = \"plb\"\n{workload}");
    let both = [("sweep.run.fidelity".to_owned(), "[\"fluid\", \"packet\"]".to_owned())];
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text: &text, format, source, overrides: &both, seeds: None };
    let expansion = expand(&request).expect("packets can");
    assert_eq!(expansion.runs.len(), 1);
    assert!(expansion.warnings.iter().any(|one| one.starts_with("left out: ")));
    assert_eq!(of("spray", ""), Ok(()));
    assert_eq!(of("spray", slow), Ok(()));
    assert_eq!(of("ethereal", slow), Ok(()));
}
