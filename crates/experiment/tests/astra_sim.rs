//! ASTRA-sim's analytical network: its own regression, and the formula behind that.

use crate::common::{find, mistake, settled};
use std::sync::atomic::AtomicBool;
use weft_experiment::{Cell, Resolved, Threads, run};
use weft_trial::prelude::*;

const REGRESSION: &str = include_str!("../../../experiments/astra-sim/regression.toml");

/// What a run of `experiment` takes, and the least that it can, in seconds.
fn times(experiment: &Resolved) -> (f64, f64) {
    let result = run(experiment, 1, Threads::ONE, &AtomicBool::new(false)).expect("a run");
    let of = |column: &str| {
        let cell = result.row.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell);
        let Some(Cell::F64(seconds)) = cell else { panic!("{column}: {cell:?}") };
        *seconds
    };
    (of("cct_s"), of("bound_s"))
}

/// A ring all-reduce in ASTRA-sim's words.
#[derive(Clone, Copy, Debug)]
struct Ring {
    ranks: u64,
    splits: u64,
    /// Of a rank's buffer; subflows are of equal size.
    bytes: u64,
    /// In ns.
    latency: u64,
    endpoint: u64,
    /// In GB/s of 2^30 bytes.
    bandwidth: u64,
    /// In GB/s of 10^9 bytes.
    memory: u64,
}

/// What the regression's input files say.
const PRINTED: Ring = Ring {
    ranks: 8,
    splits: 4,
    bytes: 1 << 20,
    latency: 500,
    endpoint: 10,
    bandwidth: 50,
    memory: 50,
};

impl Ring {
    /// How many cycles of 1 ns it takes there.
    fn cycles(&self) -> u64 {
        let Ring { ranks: n, splits: k, latency, endpoint, memory, .. } = *self;
        let subflow = self.bytes / (k * n);
        let link = subflow * 1_000_000_000 / (self.bandwidth << 30);
        let sent = latency + link + endpoint;
        k * ((n - 1) * (sent + 3 * (subflow / memory)) + (n - 1) * sent + endpoint)
    }

    fn experiment(&self) -> Resolved {
        let keys = [
            ("fabric.server.gpus", self.ranks.to_string()),
            ("fabric.server.scale_up", format!("{}bps", (self.bandwidth << 30) * 8)),
            ("fabric.server.scale_up_latency", format!("{}ns", self.latency)),
            ("fabric.server.endpoint_delay", format!("{}ns", self.endpoint)),
            ("fabric.server.memory", format!("{}Gbps", self.memory * 8)),
            ("workload.splits", self.splits.to_string()),
            ("workload.size", format!("{}B", self.bytes)),
        ];
        let keys: Vec<_> = keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        settled(REGRESSION, &keys)
    }
}

fn seconds(cycles: u64) -> f64 {
    (cycles * 1000) as f64 / 1e12
}

#[test]
fn the_regression_takes_as_long_as_it_prints() {
    assert_eq!(PRINTED.cycles(), 117_780);
    let file = settled(REGRESSION, &[]);
    assert_eq!(times(&file), (seconds(117_780), seconds(117_780)));
    assert_eq!(times(&PRINTED.experiment()), times(&file));
}

#[test]
fn each_part_of_it_counts() {
    let alone = |keys: &[(&str, &str)]| times(&settled(REGRESSION, keys)).0;
    let none = [
        ("fabric.server.endpoint_delay", "0ns"),
        ("fabric.server.memory", "unlimited"),
        ("fabric.server.cycle", "0ns"),
    ];
    // 4 chunks of 14 steps, each 500 ns and 32768 bytes at 429.4967296 Gb/s: 610.35... ns.
    let step = 500_000 + (32_768u64 * 8_000_000_000_000).div_ceil(429_496_729_600);
    assert_eq!(alone(&none), (56 * step) as f64 / 1e12);
    assert_eq!(alone(&none[..2]), seconds(56 * (500 + 610)));
    assert_eq!(alone(&none[..1]), seconds(117_780 - 4 * 15 * 10));
    assert_eq!(alone(&none[1..2]), seconds(117_780 - 4 * 7 * 3 * 655));
    // In one chunk a subflow is four times as long.
    assert_eq!(alone(&[("workload.splits", "1")]), seconds(Ring { splits: 1, ..PRINTED }.cycles()));
}

#[test]
fn without_these_keys_nothing_is_added() {
    let plain = REGRESSION
        .lines()
        .filter(|line| {
            !["endpoint_delay", "memory", "cycle", "splits"].iter().any(|key| line.starts_with(key))
        })
        .collect::<Vec<_>>()
        .join("\n");
    let plain = settled(&plain, &[]);
    let said = |key: &str| find(plain.table(), key);
    assert_eq!(said("fabric.server.endpoint_delay").as_deref(), Some("0ns"));
    assert_eq!(said("fabric.server.memory").as_deref(), Some("unlimited"));
    assert_eq!(said("fabric.server.cycle").as_deref(), Some("0ns"));
    assert_eq!(said("workload.splits").as_deref(), Some("1"));
    let step = 500_000 + (131_072u64 * 8_000_000_000_000).div_ceil(429_496_729_600);
    assert_eq!(times(&plain).0, (14 * step) as f64 / 1e12);
}

#[test]
fn mistakes_are_said_in_a_line() {
    let says = |key: &str, value: &str| mistake(REGRESSION, &[(key, value)]);
    assert!(
        says("workload.splits", "0").contains("workload.splits"),
        "{}",
        says("workload.splits", "0")
    );
    assert!(says("fabric.server.memory", "fast").contains("fabric.server.memory"));
    assert!(says("fabric.server.endpoint_delay", "-1ns").contains("fabric.server.endpoint_delay"));
}

/// Servers that talk over a fabric, with everything that takes time.
fn over_a_fabric(keys: &[(&str, &str)]) -> Resolved {
    const TEXT: &str = r#"[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[workload]
collective = "all-reduce"
size = "100KB"
[balance]
scheme = "spray"
"#;
    settled(TEXT, keys)
}

#[test]
fn messages_over_the_fabric_are_handled_too() {
    let takes = |delay, memory| {
        let keys = [("fabric.server.endpoint_delay", delay), ("fabric.server.memory", memory)];
        times(&over_a_fabric(&keys)).0
    };
    let plain = takes("3us", "unlimited");
    let near = |added: f64, expected: f64| assert!((added - expected).abs() < 1e-12, "{added}");
    // A ring of 8: 15 delays, and 7 subflows of 12500 bytes, each 3 us for three passes.
    near(takes("5us", "unlimited") - plain, 15.0 * 2e-6);
    near(takes("3us", "100Gbps") - plain, 7.0 * 3e-6);
}

trials! {
    #![cases(200)]

    fn it_follows_the_formula(
        ranks in 2u64..=24,
        splits in 1u64..=9,
        subflow in 1u64..=60_000,
        latency in 1u64..=3_000,
        endpoint in 0u64..=100,
        bandwidth in 1u64..=400,
        memory in 1u64..=1_000,
    ) {
        let bytes = ranks * splits * subflow;
        let ring = Ring { ranks, splits, bytes, latency, endpoint, bandwidth, memory };
        let (took, bound) = times(&ring.experiment());
        prop_assert_eq!(took, seconds(ring.cycles()));
        prop_assert!(bound <= took);
    }

    fn nothing_beats_the_bound(
        gpus in prop::sample::select(vec![1u32, 2, 4]),
        endpoint in 0u64..=5_000,
        memory in 1u64..=400,
        splits in 1u32..=5,
        cycle in prop::sample::select(vec!["0ns", "1ns", "1us"]),
        how in prop::sample::select(vec![
            ("all-reduce", "ring"), ("all-reduce", "direct"), ("all-reduce", "double-binary-tree"),
            ("all-reduce", "recursive-doubling"), ("reduce-scatter", "pat"), ("broadcast", "ring"),
            ("all-to-all", "direct"), ("all-gather", "direct"),
        ]),
        bytes in prop::sample::select(vec![3u64, 1_000, 64_000]),
    ) {
        let (gpus, splits) = (gpus.to_string(), splits.to_string());
        let (endpoint, memory) = (format!("{endpoint}ns"), format!("{memory}Gbps"));
        let bytes = format!("{bytes}B");
        let (took, bound) = times(&over_a_fabric(&[
            ("fabric.server.gpus", &gpus),
            ("fabric.server.endpoint_delay", &endpoint),
            ("fabric.server.memory", &memory),
            ("fabric.server.cycle", cycle),
            ("workload.splits", &splits),
            ("workload.collective", how.0),
            ("workload.algorithm", how.1),
            ("workload.size", &bytes),
        ]));
        prop_assert!(bound > 0.0 && bound <= took, "{} beats {}", took, bound);
    }
}
