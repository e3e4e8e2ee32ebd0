//! The hash of a switch: uniform, no more even than chance, and independent of other salts.

use crate::common::chi_square;
use weft_balance::hash::{choose, salt};
use weft_units::SwitchId;

/// The chi-square statistic over its degrees of freedom: about one for a random function.
fn unevenness(counts: &[u64]) -> f64 {
    chi_square(counts) / (counts.len() as f64 - 1.0)
}
/// How far from one the statistic may be: 4.5 standard deviations.
fn slack(cells: usize) -> f64 {
    4.5 * (2.0 / (cells as f64 - 1.0)).sqrt()
}

const PORTS: [u32; 7] = [2, 3, 8, 16, 31, 32, 64];

#[test]
fn is_below_the_number_of_ports() {
    for ports in 1..300 {
        for entropy in 0..200 {
            assert!(choose(ports * 77, entropy, salt(1, SwitchId(4)), ports) < ports);
        }
    }
}

#[test]
fn spreads_entropies_and_flows_evenly() {
    let salt = salt(1, SwitchId(0));
    for ports in PORTS {
        let mut by_entropy = vec![0u64; ports as usize];
        let mut by_flow = by_entropy.clone();
        let mut by_pair = by_entropy.clone();
        for n in 0..60_000u32 {
            by_entropy[choose(77, n as u16, salt, ports) as usize] += 1;
            by_flow[choose(n, 77, salt, ports) as usize] += 1;
            // Source and destination in halves of the key, as a host of a collective has them.
            by_pair[choose(((n / 245) << 16) | (n % 245), 77, salt, ports) as usize] += 1;
        }
        for counts in [by_entropy, by_flow, by_pair] {
            assert!((unevenness(&counts) - 1.0).abs() < slack(counts.len()), "{ports}: {counts:?}");
        }
    }
}

/// 64 consecutive entropies, as a counting spray sends them, collide as often as 64 random
/// ones: neither more nor less.
#[test]
fn short_runs_are_as_uneven_as_chance() {
    for ports in PORTS {
        for run in [16u16, 64] {
            let mut sum = 0.0;
            let runs = 4000;
            for flow in 0..runs {
                let salt = salt(9, SwitchId(flow % 20));
                let mut counts = vec![0u64; ports as usize];
                (0..run).for_each(|n| counts[choose(flow, n, salt, ports) as usize] += 1);
                sum += unevenness(&counts);
            }
            let mean = sum / f64::from(runs);
            let slack = slack(ports as usize) / f64::from(runs).sqrt();
            assert!((mean - 1.0).abs() < 1.5 * slack, "{ports} ports, runs of {run}: {mean}");
        }
    }
}

#[test]
fn switches_choose_independently() {
    for (a, b) in [(0, 1), (2, 300), (7, 8)] {
        let (a, b) = (salt(1, SwitchId(a)), salt(1, SwitchId(b)));
        for ports in [2u32, 8, 16] {
            let mut joint = vec![0u64; (ports * ports) as usize];
            for n in 0..60_000u32 {
                let (flow, entropy) = (n >> 6, n as u16 & 63);
                let at_a = choose(flow, entropy, a, ports);
                joint[(at_a * ports + choose(flow, entropy, b, ports)) as usize] += 1;
            }
            assert!((unevenness(&joint) - 1.0).abs() < slack(joint.len()), "{joint:?}");
        }
    }
}

#[test]
fn salts_differ_by_switch_and_seed() {
    assert_eq!(salt(1, SwitchId(3)), salt(1, SwitchId(3)));
    assert_ne!(salt(1, SwitchId(3)), salt(1, SwitchId(4)));
    assert_ne!(salt(1, SwitchId(3)), salt(2, SwitchId(3)));
}
