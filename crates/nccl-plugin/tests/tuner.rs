//! The library as NCCL's tuner: what it does to NCCL's table of costs, with a plan and beside it.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{environment, symbol};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use weft_config::cluster::{self, Format};
use weft_config::plan_file::{PlanForHosts, to_json};
use weft_nccl_abi::tuner::{
    ALGORITHMS, IGNORED, PROTOCOLS, TunerV4, TunerV5, algorithm, function, protocol,
};

type Table = [[f32; PROTOCOLS]; ALGORITHMS];

/// Bytes that were planned, and ranks.
const SIZE: usize = 64_000_000;
const RANKS: usize = 4;

/// Two plans, each of a plane and of some of the jobs, cut down to what hosts read.
fn set_up() {
    let job = |operation: &str, algorithm: &str, more: &str| {
        format!(
            r#"{{"collective":"{operation}","algorithm":"{algorithm}","size":"64MB","group":"all",
                "ranks":4{more}}}"#
        )
    };
    let jobs = [
        job("all-reduce", "ring", r#","channels":2"#),
        job("all-gather", "pat", ""),
        job("reduce-scatter", "recursive-doubling", ""),
    ];
    let fabric =
        "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
    let (cluster, _) = cluster::read(fabric, Format::Toml, "test", 1).expect("a cluster");
    let plan = to_json(&PlanForHosts::new("ethereal".into(), 1, cluster));
    let plan = plan.strip_suffix('}').expect("an object");
    let of = |number: usize, jobs: &[String]| {
        let names = jobs.iter().zip(["a", "b"]).map(|(job, name)| format!(r#""{name}":{job}"#));
        let jobs = names.collect::<Vec<_>>().join(",");
        let text = format!(r#"{plan},"experiment":{{"workload":{{"jobs":{{{jobs}}}}}}}}}"#);
        let name = format!("{}-{number}.json", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, text).expect("it is written");
        file.to_str().expect("text").to_owned()
    };
    let files = [of(0, &jobs[..1]), of(1, &jobs[1..])];
    environment(&[("WEFT_CONFIG", &files.join(","))]);
}

/// Estimates of NCCL's: trees are best; collective networks are not there.
fn costs() -> Table {
    let mut table = [[IGNORED; PROTOCOLS]; ALGORITHMS];
    table[algorithm::TREE] = [30.0, 20.0, 10.0];
    table[algorithm::RING] = [90.0, 60.0, 70.0];
    table
}

fn v5() -> &'static TunerV5 {
    symbol("ncclTunerPlugin_v5")
}

fn begin(ranks: usize) -> *mut c_void {
    let mut context = null_mut();
    // SAFETY: a place for one pointer; the rest is not looked at.
    let result =
        unsafe { (v5().init)(&raw mut context, 7, ranks, 2, None, null_mut(), null_mut()) };
    assert!(result.is_success());
    context
}

/// The table and the channels after a call.
fn asked(context: *mut c_void, function: c_int, bytes: usize, mut table: Table) -> (Table, c_int) {
    let mut channels = 0;
    let rows = (&raw mut table).cast();
    // SAFETY: the table has as many entries as is said.
    let result = unsafe {
        let sizes = (ALGORITHMS as c_int, PROTOCOLS as c_int);
        let channels = &raw mut channels;
        (v5().get_coll_info)(context, function, bytes, 1, rows, sizes.0, sizes.1, 0, channels)
    };
    assert!(result.is_success());
    (table, channels)
}

#[test]
fn the_planned_algorithm_is_the_cheapest() {
    set_up();
    let context = begin(RANKS);
    for bytes in [SIZE / 2, SIZE, 2 * SIZE] {
        let (table, channels) = asked(context, function::ALL_REDUCE, bytes, costs());
        let mut expected = costs();
        // By the protocol that was best of its own.
        expected[algorithm::RING][1] = 0.0;
        assert_eq!((table, channels), (expected, 2));
    }
    // What the job does not say is NCCL's affair.
    let mut possible = costs();
    possible[algorithm::PAT][protocol::SIMPLE] = 50.0;
    let (table, channels) = asked(context, function::ALL_GATHER, SIZE, possible);
    assert_eq!((table[algorithm::PAT][protocol::SIMPLE], channels), (0.0, 0));
    // SAFETY: the context is that of `init`.
    assert!(unsafe { (v5().finalize)(context) }.is_success());
}

#[test]
fn what_was_not_planned_is_left_alone() {
    set_up();
    let context = begin(RANKS);
    for (function, bytes) in [
        (function::ALL_REDUCE, SIZE / 2 - 1),
        (function::ALL_REDUCE, 2 * SIZE + 1),
        (function::BROADCAST, SIZE),
        // NCCL has no such algorithm.
        (function::REDUCE_SCATTER, SIZE),
        // It cannot do it here.
        (function::ALL_GATHER, SIZE),
    ] {
        assert_eq!(asked(context, function, bytes, costs()), (costs(), 0));
    }
    // SAFETY: the context is that of `init`.
    assert!(unsafe { (v5().finalize)(context) }.is_success());
    let other = begin(RANKS + 1);
    assert!(other.is_null(), "no plan is of so many ranks");
    assert_eq!(asked(other, function::ALL_REDUCE, SIZE, costs()), (costs(), 0));
    // SAFETY: as above.
    assert!(unsafe { (v5().finalize)(other) }.is_success());
}

#[test]
fn version_4_does_the_same() {
    set_up();
    let v4: &TunerV4 = symbol("ncclTunerPlugin_v4");
    let (mut context, mut table, mut channels) = (null_mut(), costs(), 0);
    // SAFETY: places for what it writes; the table has as many entries as is said.
    unsafe {
        assert!((v4.init)(RANKS, 2, None, &raw mut context).is_success());
        let (rows, count) = ((&raw mut table).cast(), &raw mut channels);
        let (algorithms, protocols) = (ALGORITHMS as c_int, PROTOCOLS as c_int);
        let ask = v4.get_coll_info;
        let result =
            ask(context, function::ALL_REDUCE, SIZE, 1, rows, algorithms, protocols, 0, count);
        assert!(result.is_success());
        assert!((v4.finalize)(context).is_success());
    }
    assert_eq!((table[algorithm::RING][1], channels), (0.0, 2));
}
