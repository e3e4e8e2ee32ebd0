//! Jobs in experiments: what they are told, where their ranks are, and what they measure.

use crate::common::{find, mistake, settled};
use std::sync::atomic::AtomicBool;
use weft_experiment::traffic::Ranks;
use weft_experiment::{Cell, Column, Resolved, RunResult, Threads, run};
use weft_trial::prelude::*;
use weft_trial::proptest::test_runner::TestCaseResult;
use weft_workload::collective::{ALGORITHMS, Algorithm, Operation};

const JOB: &str = r#"[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[workload]
collective = "all-reduce"
size = "1MB"
[balance]
scheme = "ethereal"
"#;

type Overrides<'a> = &'a [(&'a str, &'a str)];
type Changes = Vec<(&'static str, String)>;

fn result(experiment: &Resolved) -> RunResult {
    run(experiment, 1, Threads::ONE, &AtomicBool::new(false)).expect("a run")
}

fn of(result: &RunResult, column: &str) -> f64 {
    let cell = result.row.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell);
    match cell {
        Some(Cell::F64(number)) => *number,
        Some(Cell::U64(number)) => *number as f64,
        other => panic!("{column}: {other:?}"),
    }
}

fn ranks(overrides: Overrides<'_>) -> Ranks {
    ranks_of(&settled(JOB, overrides))
}

fn ranks_of(experiment: &Resolved) -> Ranks {
    experiment.traffic(1).expect("traffic").ranks.expect("ranks")
}

/// The same with another workload.
fn with(workload: &str) -> String {
    JOB.replace("collective = \"all-reduce\"\nsize = \"1MB\"", workload)
}

fn hosts(overrides: Overrides<'_>) -> Vec<u32> {
    ranks(overrides).hosts.iter().map(|host| host.0).collect()
}

#[test]
fn what_is_left_out_is_written_out() {
    let job = settled(JOB, &[]);
    let said = |key: &str| find(job.table(), key);
    assert_eq!(said("workload.algorithm").as_deref(), Some("ring"));
    assert_eq!(said("workload.ranks").as_deref(), Some("all"));
    assert_eq!(said("workload.placement").as_deref(), Some("packed"));
    assert_eq!(said("fabric.server.gpus").as_deref(), Some("1"));
    assert_eq!(said("workload.trace"), None);
    assert_eq!(said("workload.pattern"), None);
    let model = settled(&with("model = \"llama2-7b\"\ntensor = 2"), &[]);
    assert_eq!(find(model.table(), "workload.tensor").as_deref(), Some("2"));
    assert_eq!(find(model.table(), "workload.collective"), None);
}

#[test]
fn a_ring_without_congestion_is_nearly_as_fast_as_its_links() {
    let large = result(&settled(JOB, &[("workload.size", "64MB"), ("fabric.nic.mtu", "8192B")]));
    // 100 Gb/s are 12.5 GB/s, less 48 bytes of header a packet.
    let line = 12.5 * 8192.0 / 8240.0;
    let busbw = of(&large, "busbw_gb_s");
    assert!((0.98 * line..line).contains(&busbw), "{busbw}");
    // nccl-tests: of an all-reduce the bus carries 2 (n - 1) / n of the buffer.
    assert!((of(&large, "algbw_gb_s") * 30.0 / 16.0 / busbw - 1.0).abs() < 1e-9);
    assert!(of(&large, "slowdown") < 1.02);
    assert_eq!(of(&large, "collectives"), 1.0);
    assert_eq!(of(&large, "messages"), 16.0 * 30.0);
    assert_eq!(of(&large, "payload_bytes"), 64e6 * 30.0);
    let Column::F64(times) = &large.collectives.iter().find(|c| c.0 == "time_s").expect("it").1
    else {
        panic!("seconds")
    };
    assert_eq!(times[..], [of(&large, "cct_s")]);
}

#[test]
fn recursive_doubling_needs_few_queue_pairs() {
    // The fabric and the bound of Ethereal (2025), section 4: at most 32.
    let paper = [
        ("fabric.leaves", "16"),
        ("fabric.spines", "16"),
        ("fabric.hosts_per_leaf", "16"),
        ("fabric.link", "400Gbps"),
        ("workload.algorithm", "recursive-doubling"),
    ];
    let result = result(&settled(JOB, &paper));
    assert_eq!(of(&result, "max_qps"), 32.0);
}

#[test]
fn servers_share_nics_and_keep_to_themselves() {
    let two = [("fabric.server.gpus", "2")];
    assert_eq!(ranks(&two).jobs[0].ranks(), 32);
    assert_eq!(hosts(&two)[..6], [0, 0, 1, 1, 2, 2]);
    // Half of a ring's hops stay in a server.
    let result = result(&settled(JOB, &two));
    assert_eq!(of(&result, "messages"), 16.0 * 62.0);
    // Four servers of four GPUs, each GPU under a leaf of its own.
    let rails =
        [("fabric.server.gpus", "4"), ("fabric.server.nics", "4"), ("fabric.server.rails", "true")];
    assert_eq!(hosts(&rails), [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]);
    assert_eq!(ranks(&rails).servers[..5], [0, 0, 0, 0, 1]);
    let beside = [("fabric.server.gpus", "4"), ("fabric.server.nics", "2")];
    assert_eq!(hosts(&beside)[..8], [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn ranks_are_where_they_are_told() {
    assert_eq!(hosts(&[("workload.ranks", "3")]), [0, 1, 2]);
    let rotated = [("workload.placement", "round-robin")];
    assert_eq!(hosts(&rotated)[..6], [0, 4, 8, 12, 1, 5]);
    let random = |seed| {
        let experiment = settled(JOB, &[("workload.placement", "random")]);
        let ranks = experiment.traffic(seed).expect("traffic").ranks.expect("ranks");
        ranks.hosts.iter().map(|host| host.0).collect::<Vec<_>>()
    };
    assert_ne!(random(1), random(2));
    let mut all = random(1);
    all.sort_unstable();
    assert_eq!(all, (0..16).collect::<Vec<_>>());
}

#[test]
fn jobs_run_side_by_side() {
    let two = with(
        "jobs.a = {collective = \"all-to-all\", size = \"1MB\", ranks = 6}\n\
         jobs.b = {collective = \"broadcast\", size = \"2MB\", root = 3}",
    );
    let two = settled(&two, &[]);
    let ranks = ranks_of(&two);
    assert_eq!(ranks.jobs.iter().map(|job| job.ranks()).collect::<Vec<_>>(), [6, 10]);
    assert_eq!(ranks.hosts.len(), 16);
    let result = result(&two);
    assert_eq!(of(&result, "collectives"), 2.0);
    assert_eq!(of(&result, "messages"), 6.0 * 5.0 + 9.0);
}

#[test]
fn a_training_computes_and_communicates() {
    let model = with(
        "model = \"gpt2-small\"\nranks = 8\nglobal_batch = 8\nforward = \"1ms\"\n\
         backward = \"2ms\"\noverlap = false",
    );
    let result = result(&settled(&model, &[]));
    // Twelve layers, forward and backward.
    assert!((of(&result, "compute_s") - 0.036).abs() < 1e-9);
    let exposed = of(&result, "cct_s") - of(&result, "compute_s");
    assert!((of(&result, "exposed_s") - exposed).abs() < 1e-12);
    // 4 bytes a parameter, 14/8 of them over each link, 100 Gb/s.
    let least = 4.0 * 124_439_808.0 * 14.0 / 8.0 * 8.0 / 100e9;
    assert!((least..1.05 * least).contains(&exposed), "{exposed} {least}");
}

#[test]
fn messages_are_listed_if_asked_for() {
    let quiet = result(&settled(JOB, &[]));
    let told = result(&settled(JOB, &[("probe.timeline", "true")]));
    let rows = |columns: &weft_experiment::Columns| match &columns[0].1 {
        Column::U32(numbers) => numbers.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((rows(&quiet.nodes), rows(&quiet.messages)), (0, 0));
    assert_eq!((rows(&told.nodes), rows(&told.messages)), (16, 16 * 30));
    assert_eq!(quiet.row, told.row);
}

#[test]
fn mistakes_name_the_key_and_the_mend() {
    let of = |overrides: Overrides<'_>| mistake(JOB, overrides);
    let cases: [(Overrides<'_>, &str); 16] = [
        (
            &[
                ("workload.algorithm", "sharp"),
                ("workload.ranks", "6"),
                ("fabric.server.gpus", "4"),
                ("fabric.server.nics", "2"),
            ],
            "workload.algorithm (command line): \"sharp\" needs a NIC for each rank that a tree joins, \
             but two are at host-0; let groups fill whole servers, or use \"ring\"",
        ),
        (
            &[("workload.algorithm", "sharp"), ("workload.splits", "5000")],
            "workload.splits (command line): 5000 chunks of a collective, one after the other, are \
             more than the 4096 that \"sharp\" can number; use fewer splits or chunks",
        ),
        (
            &[("workload.algorithm", "sharp"), ("run.fidelity", "fluid")],
            "run.fidelity (command line): \"fluid\" cannot tell: switches add up for \
             workload.algorithm = \"sharp\", packet by packet; use \"packet\"",
        ),
        (
            &[("workload.algorithm", "nvls"), ("fabric.switch.reduction_segment", "8KB")],
            "fabric.switch.reduction_segment (command line): ",
        ),
        (
            &[("workload.algorithm", "nvls"), ("workload.chunks", "600"), ("workload.trees", "2")],
            "1200 chunks and trees together are too many; use up to 1024",
        ),
        (
            &[("workload.algorithm", "pat")],
            "workload.algorithm (command line): pat cannot do all-reduce; use one of ring",
        ),
        (
            &[("workload.ranks", "17")],
            "workload.ranks (command line): 17 are more than the 16 GPUs",
        ),
        (
            &[("workload.group", "5")],
            "workload.group (command line): 16 ranks cannot be cut into groups",
        ),
        (&[("workload.root", "16")], "workload.root (command line): there is no rank 16"),
        (&[("workload.pattern", "ring")], "workload.pattern (command line): stands beside a job"),
        (&[("workload.model", "gpt2-small")], "stands beside collective; remove one"),
        (&[("fabric.server.nics", "3")], "1 GPUs cannot share 3 NICs equally"),
        (
            &[("fabric.server.nics", "8"), ("fabric.server.gpus", "8")],
            "8 do not divide 4 hosts of a leaf",
        ),
        (&[("workload.algorithm", "recursive-doubling"), ("workload.ranks", "6")], "power of two"),
        (
            &[
                ("transport.congestion", "fixed-rate"),
                ("transport.rate", "fair"),
                ("transport.recovery", "coding"),
            ],
            "transport.rate (command line): \"fair\" needs messages that are known in advance",
        ),
        (&[("workload.placement_file", "nowhere.txt")], "cannot read nowhere.txt"),
    ];
    for (overrides, part) in cases {
        let line = of(overrides);
        assert!(line.contains(part), "{line}\n  lacks {part}");
    }
    let line = mistake(&with("trace = \"nowhere\""), &[]);
    assert!(
        line.contains("workload.trace (line 7): there is neither a file nowhere nor"),
        "{line}"
    );
}

/// Any collective that no switches do, somewhere.
fn job() -> impl Strategy<Value = Changes> {
    let pairs = ALGORITHMS.iter().filter(|info| !["sharp", "nvls"].contains(&info.name));
    let pairs = pairs.flat_map(|info| info.operations.iter().map(|of| (*of, info.name)));
    let what = any_of(pairs.collect::<Vec<_>>());
    let where_to = prop_oneof![Just("packed"), Just("round-robin"), Just("random")];
    let schemes = prop_oneof![Just("ecmp"), Just("spray"), Just("ethereal")];
    let servers = prop_oneof![Just((1, 1)), Just((2, 1)), Just((4, 2)), Just((4, 4))];
    let shape = (2u32..17, any::<bool>(), any::<prop::sample::Index>());
    let pxn = (prop_oneof![Just("off"), Just("source"), Just("destination")], 1u64..200_000);
    let options = (1u32..4, 1u32..4, prop::option::of(1u32..4), prop_oneof![Just(0.0), 0.1..4.0]);
    (what, where_to, schemes, servers, shape, pxn, options, held_up()).prop_map(
        |(
            (operation, algorithm),
            placement,
            scheme,
            (gpus, nics),
            (ranks, rails, root),
            (at, chunk),
            (channels, chunks, window, skew),
            held_up,
        )| {
            let ranks = match algorithm {
                "recursive-doubling" => 16,
                "hierarchical" => ranks.next_multiple_of(gpus),
                _ => ranks,
            };
            let mut all = vec![
                ("workload.collective", operation.name().to_owned()),
                ("workload.algorithm", algorithm.to_owned()),
                ("workload.ranks", ranks.to_string()),
                ("workload.root", root.index(ranks as usize).to_string()),
                ("workload.placement", placement.to_owned()),
                ("balance.scheme", scheme.to_owned()),
                ("fabric.server.gpus", gpus.to_string()),
                ("fabric.server.nics", nics.to_string()),
                ("fabric.server.rails", rails.to_string()),
                ("fabric.server.pxn", (at != "off").to_string()),
                ("fabric.server.pxn_at", at.replace("off", "source")),
                ("fabric.server.pxn_chunk", format!("{chunk}B")),
            ];
            let has = |key| Algorithm::has_use_for(algorithm, key, operation);
            match (algorithm, operation, window) {
                ("ring" | "hierarchical", ..) => {
                    all.push(("workload.channels", channels.to_string()));
                }
                ("direct", _, Some(window)) => all.push(("workload.window", window.to_string())),
                ("direct", Operation::AllToAll, _) => {
                    all.push(("workload.skew", skew.to_string()));
                }
                _ => {}
            }
            if matches!(algorithm, "ring" | "double-binary-tree") && has("chunks") {
                all.push(("workload.chunks", chunks.to_string()));
            }
            all.extend(held_up);
            all
        },
    )
}

/// How large and how often, in how many chunks, and all that may hold a rank up beside the network.
fn held_up() -> impl Strategy<Value = Changes> {
    let some = |most: u64| prop_oneof![Just(0), 1..most];
    let size = prop_oneof![1u64..20, 1u64..400_000];
    let awaited = prop_oneof![Just("never"), Just("end"), Just("step")];
    let late = ("fixed", "uniform", "exponential");
    let late = prop_oneof![Just(late.0), Just(late.1), Just(late.2)];
    (size, 1u32..5, 1u32..4, awaited, some(50_000), some(400), (some(50_000), late)).prop_map(
        |(size, times, splits, awaited, delay, memory, (start, late))| {
            let mut all = vec![
                ("workload.size", format!("{size}B")),
                ("workload.times", times.to_string()),
                ("workload.splits", splits.to_string()),
                ("workload.await_sends", awaited.to_owned()),
                ("fabric.server.endpoint_delay", format!("{delay}ns")),
            ];
            if memory > 0 {
                all.push(("fabric.server.memory", format!("{memory}Gbps")));
            }
            if start > 0 {
                all.push(("stragglers.start_delay", format!("{start}ns")));
                all.push(("stragglers.start_distribution", late.to_owned()));
                all.push(("stragglers.ranks", "[1]".to_owned()));
                all.push(("stragglers.factor", "4".to_owned()));
            }
            all
        },
    )
}

/// That a run with these changes takes as long as its bound at least.
fn no_sooner_than_its_bound(changes: &[(&str, &str)]) -> TestCaseResult {
    let result = result(&settled(JOB, changes));
    let (cct, bound) = (of(&result, "cct_s"), of(&result, "bound_s"));
    prop_assert!(cct >= bound && bound > 0.0, "{cct} {bound}");
    prop_assert!(of(&result, "collectives") > 0.0);
    Ok(())
}

trials! {
    #![cases(200)]
    fn no_job_beats_its_bound(changes in job()) {
        let changes: Vec<_> = changes.iter().map(|(key, value)| (*key, value.as_str())).collect();
        no_sooner_than_its_bound(&changes)?;
    }
}

trials! {
    #![cases(60)]
    fn no_job_on_several_homes_beats_its_bound(changes in job(), homes in prop_oneof![Just("2"), Just("4")]) {
        let whole = |key: &str| !["nics", "rails"].iter().any(|end| key.ends_with(end));
        let kept = changes.iter().filter(|(key, _)| whole(key));
        let mut changes: Vec<_> = kept.map(|(key, value)| (*key, value.as_str())).collect();
        changes.retain(|(key, _)| *key != "fabric.server.gpus");
        changes.extend([("fabric.homes", homes), ("fabric.leaves", "16")]);
        no_sooner_than_its_bound(&changes)?;
    }
}

/// Any collective that switches do, somewhere, on links some of which may be slow.
fn switched() -> impl Strategy<Value = Changes> {
    let operations = ["all-reduce", "all-gather", "reduce-scatter", "broadcast"];
    let what = prop::sample::select(operations.to_vec());
    let algorithm = prop_oneof![Just("sharp"), Just("nvls")];
    let servers = prop_oneof![Just((1, 1)), Just((2, 2)), Just((4, 2)), Just((4, 4))];
    let options = (1u32..4, 1u32..3, prop::option::of((0u32..4, 0u32..2)));
    let shape = (2u32..17, any::<bool>(), held_up());
    (what, algorithm, servers, options, shape).prop_map(
        |(operation, algorithm, (gpus, nics), (chunks, trees, slow), (ranks, rails, held_up))| {
            let ranks = ranks.next_multiple_of(gpus).min(16 / nics * gpus);
            let mut all = vec![
                ("workload.collective", operation.to_owned()),
                ("workload.algorithm", algorithm.to_owned()),
                ("workload.ranks", ranks.to_string()),
                ("workload.chunks", chunks.to_string()),
                ("workload.trees", trees.to_string()),
                ("fabric.server.gpus", gpus.to_string()),
                ("fabric.server.nics", nics.to_string()),
                ("fabric.server.rails", (rails && 16 % (4 * nics) == 0).to_string()),
            ];
            if let Some((leaf, spine)) = slow {
                all.push(("failures.slow.links", format!("[\"leaf-{leaf} <-> spine-{spine}\"]")));
                all.push(("failures.slow.kind", "degraded".to_owned()));
                all.push(("failures.slow.lost", "0.7".to_owned()));
            }
            all.extend(held_up);
            all
        },
    )
}

trials! {
    #![cases(200)]
    fn nothing_that_switches_do_beats_its_bound(changes in switched()) {
        let changes: Vec<_> = changes.iter().map(|(key, value)| (*key, value.as_str())).collect();
        no_sooner_than_its_bound(&changes)?;
    }
}

trials! {
    #![cases(60)]
    fn no_job_on_rails_beats_its_bound(changes in job()) {
        let whole = |key: &str| !["nics", "rails", "pxn"].iter().any(|end| key.ends_with(end));
        let kept = changes.iter().filter(|(key, _)| whole(key));
        let mut changes: Vec<_> = kept.map(|(key, value)| (*key, value.as_str())).collect();
        changes.retain(|change| *change != ("fabric.server.gpus", "1"));
        changes.extend([("fabric.topology", "rail-only"), ("fabric.rails", "2")]);
        no_sooner_than_its_bound(&changes)?;
    }
}

/// Where rails never meet, messages between them need GPUs that pass them on; within a rail nobody is needed.
#[test]
fn messages_between_rails_that_never_meet_are_refused() {
    let shape = [("fabric.topology", "rail-only"), ("fabric.rails", "2")];
    let job = [("workload.collective", "all-to-all"), ("fabric.server.pxn", "false")];
    let keys = |more: Overrides<'static>| [&shape[..], &job, more].concat();
    let refused = mistake(JOB, &keys(&[]));
    let why = "fig.toml: fabric.server.pxn (command line): a message goes from host-0 of rail 0 to host-17 of rail 1, and \
               rails never meet; set pxn = true, so that GPUs of a server pass it on";
    assert_eq!(refused, why);
    settled(JOB, &keys(&[("fabric.server.pxn", "true")]));
    let file = std::env::temp_dir().join(format!("weft-rails-{}.txt", std::process::id()));
    // The first GPUs of all servers, whose NICs are in the first rail.
    let gpus: Vec<String> = (0..16).map(|server| (2 * server).to_string()).collect();
    std::fs::write(&file, gpus.join("\n")).expect("a file");
    let place = ("workload.placement_file", file.to_str().expect("a path"));
    settled(JOB, &[&shape[..], &job, &[place, ("workload.ranks", "16")]].concat());
    std::fs::remove_file(&file).expect("it is there");
    let text = JOB.replace("collective = \"all-reduce\"", "pattern = \"all-to-all\"");
    let refused = mistake(&text, &shape);
    assert!(
        refused.contains("workload (line 6): a message goes from host-0")
            && refused.contains("use a job"),
        "{refused}"
    );
}

/// Editors write one before the first rank's number.
#[test]
fn a_placement_may_have_a_byte_order_mark() {
    let file = std::env::temp_dir().join(format!("weft-marked-{}.txt", std::process::id()));
    std::fs::write(&file, "\u{feff}3\r\n1\r\n").expect("a file");
    let place = ("workload.placement_file", file.to_str().expect("a path"));
    settled(JOB, &[place, ("workload.ranks", "2")]);
    std::fs::remove_file(&file).expect("it is there");
}

/// Half of what a ring moves, and the bound says so of both.
#[test]
fn trees_take_half_of_a_ring_and_their_bounds_know() {
    let time = |algorithm| {
        let experiment =
            settled(JOB, &[("workload.algorithm", algorithm), ("workload.size", "16MB")]);
        let result = result(&experiment);
        let (cct, bound) = (of(&result, "cct_s"), of(&result, "bound_s"));
        assert!(cct < 1.05 * bound, "{algorithm}: {cct} {bound}");
        cct
    };
    let (ring, sharp) = (time("ring"), time("sharp"));
    // 2 (n - 1)/n of 16 ranks.
    assert!((1.8..2.0).contains(&(ring / sharp)), "{ring} {sharp}");
}

/// Others wait for the root of a broadcast, however little it sends; in a server for each crossing of its links.
#[test]
fn bounds_of_little_that_switches_do_know_its_way() {
    let small = |algorithm, more: Overrides<'_>| {
        let own = [("workload.algorithm", algorithm), ("workload.size", "1KB")];
        let result = result(&settled(JOB, &[&own[..], more].concat()));
        (of(&result, "cct_s"), of(&result, "bound_s"))
    };
    for (algorithm, root) in [("sharp", "0"), ("sharp", "3"), ("nvls", "3")] {
        let (cct, bound) =
            small(algorithm, &[("workload.collective", "broadcast"), ("workload.root", root)]);
        assert!(bound <= cct && cct < 1.5 * bound, "{algorithm} {root}: {cct} {bound}");
    }
    let server = [("fabric.server.gpus", "4"), ("workload.ranks", "4")];
    for operation in ["all-reduce", "all-gather", "reduce-scatter"] {
        let (cct, bound) =
            small("nvls", &[&server[..], &[("workload.collective", operation)]].concat());
        assert!(bound <= cct && cct < 1.01 * bound, "{operation}: {cct} {bound}");
    }
}

/// A job without messages is still measured.
#[test]
fn columns_of_what_switches_do() {
    let result = result(&settled(JOB, &[("workload.algorithm", "sharp")]));
    assert_eq!(of(&result, "messages"), 0.0);
    assert_eq!(of(&result, "payload_bytes"), 16e6);
    assert!((1.0..1.2).contains(&of(&result, "normalised")));
    assert!(of(&result, "busbw_gb_s") > 20.0);
}

const EXCHANGE: [(&str, &str); 2] =
    [("workload.collective", "all-to-all"), ("workload.size", "3MB")];

/// What every host is sent.
fn received(experiment: &Resolved) -> Vec<u64> {
    let mut all = vec![0; 16];
    let traffic = experiment.traffic(1).expect("traffic");
    traffic.streams(|stream| all[stream.dst.0 as usize] += stream.bytes * stream.times);
    all
}

#[test]
fn a_skewed_all_to_all_fills_the_link_of_the_most_popular_rank() {
    let skewed = |skew| settled(JOB, &[EXCHANGE[0], EXCHANGE[1], ("workload.skew", skew)]);
    let even = skewed("0");
    assert_eq!(received(&even), received(&settled(JOB, &EXCHANGE)));
    let mut last = 0.0;
    for exponent in ["0", "0.5", "1", "2", "4"] {
        let experiment = skewed(exponent);
        let (result, into) = (result(&experiment), received(&experiment));
        assert_eq!(into.iter().sum::<u64>(), 15 * 3_000_000);
        let cct = of(&result, "cct_s");
        // nccl-tests: of an all-to-all the bus carries (n - 1) / n of the buffer, whoever gets it.
        assert!((of(&result, "busbw_gb_s") - 3e-3 * 15.0 / 16.0 / cct).abs() < 1e-9);
        // 100 Gb/s, and what comes in takes headers, too.
        let busiest = *into.iter().max().unwrap() as f64 * 8e-11;
        let bound = of(&result, "bound_s");
        assert!(busiest < bound && bound <= cct && bound > last, "{exponent}: {bound} {cct}");
        last = bound;
    }
}

#[test]
fn a_skew_is_of_all_to_alls_alone() {
    let says = |keys: Overrides<'_>| mistake(JOB, keys);
    let direct = ("workload.algorithm", "direct");
    let all_reduce = says(&[direct, ("workload.skew", "1")]);
    assert!(
        all_reduce
            .contains("workload.skew (command line): only an all-to-all has one, not all-reduce"),
        "{all_reduce}"
    );
    // The all-reduces of a model go the way they went.
    let model = with("model = \"llama2-7b\"\ntensor = 2\nexperts = 8\nexpert = 4");
    let algorithm = |keys: Overrides<'_>, operation| {
        let ranks = ranks_of(&settled(&model, keys));
        ranks.jobs[0].algorithm(weft_workload::trace::Action::Operation(operation))
    };
    let keys = [direct, ("workload.skew", "1")];
    assert_eq!(algorithm(&keys, weft_workload::collective::Operation::AllReduce), "ring");
    assert_eq!(algorithm(&keys, weft_workload::collective::Operation::AllToAll), "direct");
    assert_eq!(algorithm(&keys[..1], weft_workload::collective::Operation::AllReduce), "direct");
}
