//! Shares on random fabrics of unequal links, against the optimum.

use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link, Tiers};
use weft_plan::{Bound, Hashes, PathShares, PlannedFabric, Transfer};
use weft_units::{Draw, HostId, IdVec, PortId, Rate, Time};

fn balance() -> BalanceConfig {
    let scheme = SchemeConfig::read("ethereal", &[]).expect("a scheme");
    let (start_jitter, random_position, bdp) = (Time::ZERO, false, 1);
    BalanceConfig { scheme, start_jitter, random_position, bdp }
}

/// A fabric of which every link between switches keeps a random part, some nothing.
fn capacities(fabric: &Fabric, seed: u64) -> IdVec<PortId, u64> {
    let mut stream = Draw::new(seed, "capacities").stream(0);
    let mut all: IdVec<PortId, u64> = fabric.ports().iter().map(|p| p.rate.as_bps()).collect();
    let hosts = fabric.hosts();
    for port in fabric.ports().ids().filter(|port| port.0 >= hosts) {
        let back = fabric.ports()[port].reverse;
        if back < port || back.0 < hosts {
            continue;
        }
        let left = [100, 100, 100, 75, 50, 25, 10, 0][stream.below(8) as usize];
        for port in [port, back] {
            all[port] = all[port] * left / 100;
        }
    }
    all
}

fn messages(fabric: &Fabric, seed: u64) -> Vec<Transfer> {
    let mut stream = Draw::new(seed, "messages").stream(0);
    let hosts = fabric.hosts();
    let uniform = stream.below(2) == 0;
    let mut all = Vec::new();
    for src in 0..hosts {
        for dst in (0..hosts).filter(|dst| *dst != src) {
            let bytes = if uniform { 1000 } else { u64::from(stream.below(2000)) };
            if bytes > 0 {
                let (src, dst) = (HostId(src), HostId(dst));
                all.push(Transfer { src, dst, bytes, job: 0, ranks: (0, 0) });
            }
        }
    }
    all
}

fn shares_are_near_the_optimum(fabric: &Fabric, cases: u64) {
    let (mut near, mut all, mut worst) = (0, 0, 1.0f64);
    for seed in 0..cases {
        let network =
            PlannedFabric::new(fabric, capacities(fabric, seed), &balance(), Hashes::default());
        let messages = messages(fabric, seed);
        let bound = Bound::of(&network, &messages);
        let Ok(spread) = PathShares::new(&network, &messages, 0.0) else { continue };
        // Only what lies between switches can be spread.
        assert!(spread.seconds.is_finite() && spread.seconds > 0.0);
        let over = spread.seconds.max(bound.seconds) / bound.seconds;
        worst = worst.max(over);
        all += 1;
        near += usize::from(over < 1.01);
        for shares in spread.pairs.values() {
            let sum: f64 = shares.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9);
        }
    }
    println!("{near} of {all} within 1 %, the worst {worst}");
    assert!(near * 100 >= all * 95, "{near} of {all}, the worst {worst}");
}

#[test]
fn shares_in_random_leaf_spines_are_near_the_optimum() {
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    shares_are_near_the_optimum(&Fabric::build(&Clos::leaf_spine(6, 4, 4, link)).unwrap(), 60);
    shares_are_near_the_optimum(&Fabric::build(&Clos::leaf_spine(8, 8, 8, link)).unwrap(), 20);
}

#[test]
fn shares_in_random_fat_trees_are_near_the_optimum() {
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    let tiers = Tiers::Three { pods: 4, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
    shares_are_near_the_optimum(&Fabric::build(&Clos::uniform(tiers, 2, link)).unwrap(), 40);
}
