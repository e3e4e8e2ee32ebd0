//! How evenly uplinks are used: the measures of CTCCL (2025), and what is said before DNLB runs where
//! it cannot balance them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use weft_experiment::value::Value;
use weft_experiment::{Cell, Column, Format, Request, RunResult, Threads, expand, read_run, run};

/// Two leaves of 8 hosts with 8 uplinks each; host h sends to h + 8, as far as there are `nics`.
fn result(nics: u32, scheme: &str, more: &str) -> RunResult {
    let pairs: String = (0..nics).map(|nic| format!("{nic},{},983040\n", nic + 8)).collect();
    let csv = file("pairs.csv", &format!("src,dst,size\n{pairs}"));
    let text = format!(
        "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 8\nhosts_per_leaf = 8\n\
         [workload]\nfile = \"{}\"\n[balance]\nscheme = \"{scheme}\"\n{more}",
        csv.display()
    );
    of(&text)
}

/// A file of its own for whoever asks.
fn file(name: &str, text: &str) -> PathBuf {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let folder = format!("weft-uplinks-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn of(text: &str) -> RunResult {
    let (format, source) = (Format::Toml, "test.toml");
    let all = expand(&Request { text, format, source, overrides: &[], seeds: None })
        .unwrap_or_else(|error| panic!("{error}"));
    let experiment = Value::Table(all.runs[0].experiment.clone()).to_json();
    let resolved = read_run(&experiment).expect("resolved");
    run(&resolved, 1, Threads::ONE, &AtomicBool::new(false)).unwrap_or_else(|e| panic!("{e}"))
}

fn number(result: &RunResult, name: &str) -> f64 {
    match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::F64(number))) => *number,
        other => panic!("{name} is {other:?}"),
    }
}

/// Usages, in percent, of the uplinks of a leaf, as `links.parquet` has them.
fn usages(result: &RunResult, leaf: &str) -> Vec<f64> {
    let column = |name: &str| &result.links.iter().find(|(own, _)| *own == name).expect(name).1;
    let (Column::Text(from), Column::Text(tier)) = (column("from"), column("tier")) else {
        panic!("names")
    };
    let Column::F64(used) = column("utilisation") else { panic!("shares") };
    let rows = from.iter().zip(tier).zip(used);
    rows.filter(|((from, tier), _)| *from == leaf && *tier == "leaf-up")
        .map(|(_, used)| used * 100.0)
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of squares less the square of the mean.
fn variance(values: &[f64]) -> f64 {
    let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
    mean(&squares) - mean(values).powi(2)
}

#[test]
fn the_measures_are_those_of_the_links() {
    let result = result(8, "e-ecmp-2", "");
    let leaves = ["leaf-0", "leaf-1"].map(|leaf| usages(&result, leaf));
    assert!(leaves.iter().all(|leaf| leaf.len() == 8));
    let near = |name: &str, expected: f64| {
        let found = number(&result, name);
        assert!((found - expected).abs() < 1e-6 * expected, "{name}: {found} of {expected}");
    };
    near("uplink_usage_pct", mean(&leaves.each_ref().map(|leaf| mean(leaf))));
    near("uplink_variance_pct2", mean(&leaves.each_ref().map(|leaf| variance(leaf))));
    let spread = |leaf: &Vec<f64>| {
        let most = leaf.iter().copied().fold(0.0, f64::max);
        most - leaf.iter().copied().fold(f64::INFINITY, f64::min)
    };
    near("uplink_spread_pct", spread(&leaves[0]).max(spread(&leaves[1])));
    assert!(number(&result, "uplink_variance_pct2") > 50.0);
}

#[test]
fn dnlb_balances_them_and_a_dead_uplink_does_not_count() {
    let even = result(8, "dnlb-8", "");
    assert!(number(&even, "uplink_variance_pct2") < 0.1);
    assert_eq!(even.warnings, Vec::<String>::new());
    let down = "[transport]\nrto = \"100us\"\n[failures.one]\nlinks = [\"leaf-0 <-> spine-3\"]\n\
                kind = \"down\"\ndetect = \"0ns\"\n";
    let failed = result(8, "dnlb-7", down);
    let usages = usages(&failed, "leaf-0");
    assert!(usages[3] < 0.5 * mean(&usages), "{usages:?}");
    // The dead one would make it so much by itself.
    assert!(number(&failed, "uplink_spread_pct") > 0.0);
    assert!(number(&failed, "uplink_variance_pct2") < variance(&usages) / 2.0);
}

#[test]
fn nothing_over_the_uplinks_is_no_variance() {
    let text = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 1\nspines = 2\nhosts_per_leaf = 4\n\
                [workload]\npattern = \"permutation\"\nsize = \"10KB\"\n[balance]\nscheme = \"ecmp\"";
    let quiet = of(text);
    for name in ["uplink_usage_pct", "uplink_variance_pct2", "uplink_spread_pct"] {
        assert_eq!(number(&quiet, name).to_bits(), 0.0f64.to_bits(), "{name}");
    }
}

/// Equation 4, what it leaves out, and what follows from each.
#[test]
fn what_dnlb_cannot_balance_is_said_and_so() {
    let few = result(2, "dnlb-2", "");
    assert_eq!(
        few.warnings,
        [
            "dnlb-2: leaf-0 has 2 busy NIC(s) x 2 queue pair(s) for 8 uplinks, fewer than equation 4 asks \
          for: 4 of the uplinks carry nothing; use balance.queue_pairs = 4"
        ]
    );
    // Acknowledgements come back over leaf 1; nothing of size goes up from there.
    assert_eq!(usages(&few, "leaf-0").iter().filter(|used| **used == 0.0).count(), 4);
    assert_eq!(result(8, "dnlb-3", "").warnings, Vec::<String>::new());
    let uneven = result(3, "dnlb-3", "");
    assert_eq!(
        uneven.warnings,
        [
            "dnlb-3: leaf-0 has 3 busy NIC(s) x 3 queue pair(s) for 8 uplinks, which do not divide 9: some \
          uplinks have 2 queue pairs, others 1; use balance.queue_pairs = 8"
        ]
    );
    // As asked for.
    assert!(number(&uneven, "uplink_variance_pct2") > 10.0);
    assert_eq!(result(2, "dnlb-4", "").warnings, Vec::<String>::new());
    assert_eq!(result(2, "e-ecmp-2", "").warnings, Vec::<String>::new());
}

/// Six uplinks do not divide the 16384 ports. As printed, ports miss their segments; those behind the
/// last one are hashed.
#[test]
fn the_formula_as_printed_is_out_of_balance_where_uplinks_do_not_divide_the_ports() {
    let run = |formula: &str| {
        of(&format!(
            "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 6\nhosts_per_leaf = 12\n\
             [fabric.nic]\nmtu = \"1024B\"\n[workload]\ncollective = \"send-recv\"\n\
             algorithm = \"ring\"\nsize = \"196608B\"\nplacement = \"round-robin\"\n[balance]\n\
             scheme = \"dnlb-8\"\nformula = \"{formula}\"\n"
        ))
    };
    let (printed, repaired) = (run("printed"), run("repaired"));
    assert!(number(&repaired, "uplink_variance_pct2") < 1e-9);
    assert_eq!(repaired.warnings, Vec::<String>::new());
    assert!(number(&printed, "uplink_variance_pct2") > 1.0);
    let [warning] = &printed.warnings[..] else { panic!("{:?}", printed.warnings) };
    assert!(
        warning.starts_with("dnlb-8: leaf-0 has 12 busy NIC(s) x 8 queue pair(s) for 6 uplinks")
    );
    assert!(warning.contains("\"printed\" misses segments"), "{warning}");
}

/// Figure 4: the NICs of a server under one leaf, or each under its own; a whole cluster or the
/// first servers of it.
#[test]
fn single_and_multi_rail_clusters_are_balanced() {
    for rails in [false, true] {
        for servers in [4, 8] {
            let run = of(&format!(
                "[fabric]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 8\nhosts_per_leaf = 4\n\
                 [fabric.nic]\nmtu = \"1024B\"\n[fabric.server]\ngpus = 2\nnics = 2\nrails = {rails}\n\
                 [workload]\ncollective = \"all-to-all\"\nalgorithm = \"direct\"\nranks = {}\n\
                 size = \"{}B\"\n[balance]\nscheme = \"dnlb-8\"\n",
                2 * servers,
                2 * servers * 8 * 8 * 1024
            ));
            let variance = number(&run, "uplink_variance_pct2");
            assert!(number(&run, "uplink_usage_pct") > 1.0);
            assert!(variance < 1e-9, "rails {rails}, {servers} servers: {variance}");
            assert_eq!(run.warnings, Vec::<String>::new());
        }
    }
}

/// The DSCP marks the first job only: every uplink carries an equal share of it, whatever the hash
/// does with the other one.
#[test]
fn what_is_not_marked_goes_on_over_plain_ecmp() {
    let run = |jobs: &str, second: &str| {
        of(&format!(
            "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 8\nhosts_per_leaf = 8\n\
             [fabric.server]\ngpus = 2\n[fabric.nic]\nmtu = \"1024B\"\n\
             [workload.jobs.one]\ncollective = \"send-recv\"\nsize = \"524288B\"\nranks = 30\n\
             {second}[workload]\nplacement_file = \"{}\"\n[balance]\nscheme = \"dnlb-8\"\n\
             jobs = {jobs}\n",
            placement().display()
        ))
    };
    let second = "[workload.jobs.two]\ncollective = \"send-recv\"\nsize = \"524288B\"\nranks = 2\n";
    let alone = bytes(&run("1", ""), "leaf-0");
    assert!(alone.iter().all(|uplink| *uplink == alone[0]), "{alone:?}");
    let both = bytes(&run("1", second), "leaf-0");
    assert!(both.iter().all(|uplink| *uplink >= alone[0]), "{both:?}");
    // One queue pair of the other job's eight carries 64 KiB.
    let (least, most) = (both.iter().min().unwrap(), both.iter().max().unwrap());
    assert!(most - least > 64 * 1024, "{both:?}");
    // Marked as well, it is in balance too.
    let marked = bytes(&run("2", second), "leaf-0");
    assert!(marked.iter().all(|uplink| *uplink == marked[0] && *uplink > alone[0]), "{marked:?}");
}

/// What each uplink of a leaf carried.
fn bytes(result: &RunResult, leaf: &str) -> Vec<u64> {
    let column = |name: &str| &result.links.iter().find(|(own, _)| *own == name).expect(name).1;
    let (Column::Text(from), Column::Text(tier)) = (column("from"), column("tier")) else {
        panic!("names")
    };
    let Column::U64(bytes) = column("bytes") else { panic!("bytes") };
    let rows = from.iter().zip(tier).zip(bytes);
    rows.filter(|((from, tier), _)| *from == leaf && *tier == "leaf-up")
        .map(|(_, bytes)| *bytes)
        .collect()
}

/// A ring that changes leaves at every hop: on 16 servers of two GPUs, the first job has one of each
/// and both of the first fourteen, the other a pair that faces each other.
fn placement() -> PathBuf {
    let server = |turn: u32| turn % 2 * 8 + turn / 2;
    let first = (0..16).map(|turn| server(turn) * 2);
    let more = (0..14).map(|turn| server(turn) * 2 + 1);
    let other = (14..16).map(|turn| server(turn) * 2 + 1);
    let all: Vec<String> = first.chain(more).chain(other).map(|gpu| gpu.to_string()).collect();
    file("placement.txt", &all.join("\n"))
}
