//! Weighted Ethereal in a network: what hosts learn and when, flows under way that move, and the
//! same run however the fabric is cut.

use crate::common::compare::{confirmed, equals};
use crate::common::{LINK, Setup, all_to_all, dctcp, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, FailureKind};
use weft_sim::{Outcome, PacketConfig};
use weft_units::{PortId, SwitchId, Time};

const QUARTER: FailureKind = FailureKind::Degraded { lost: 0.75 };

fn scheme(options: &[(&str, &str)]) -> SchemeConfig {
    SchemeConfig::read("ethereal-weighted", options).unwrap()
}
/// Payload up each link of leaf 0, which has two hosts, where there are no headers.
fn up(setup: &Setup, outcome: &Outcome) -> Vec<u64> {
    let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 2;
    (0..4).map(|spine| outcome.ports[PortId(first + spine)].bytes).collect()
}
/// Two hosts that send to the other rack only, over four spines.
fn pair(bytes: u64) -> Setup {
    let list = [(0, 2, bytes), (1, 3, bytes)];
    let setup = Setup::new(Clos::leaf_spine(2, 4, 2, LINK), messages(4, &list));
    Setup { packet: PacketConfig { mtu: 1_000, header: 0, ack: 40 }, ..setup }
}

/// The way there by slow links, which are slow from the start: known before the first batch, even
/// one that does not wait.
#[test]
fn slow_links_carry_their_share() {
    for (link, batch) in [("leaf-0 -> spine-2", "100ns"), ("spine-2 -> leaf-1", "0s")] {
        let setup = pair(1_300_000).under(scheme(&[("batch", batch)]));
        let setup = setup.failing(link, QUARTER, Time::ZERO, Time::MAX);
        assert_eq!(up(&setup, &setup.run()), [800_000, 800_000, 200_000, 800_000], "{link}");
    }
    let setup = pair(1_300_000).under(scheme(&[]));
    assert_eq!(up(&setup, &setup.run()), [650_000; 4]);
}

/// Posted at 20 us, by when routing knows of a link that died at 5 us, or not.
#[test]
fn hosts_know_when_routing_does() {
    let died = |detect| {
        let mut setup = pair(1_200_000).under(scheme(&[]));
        let mut workload = weft_workload::Workload::new(4);
        for message in setup.workload.messages().iter() {
            let start = Time::us(20);
            workload.push(weft_workload::Message { start, ..*message }, &[]);
        }
        setup.workload = workload;
        setup.failing("leaf-0 -> spine-2", FailureKind::down(detect), Time::us(5), Time::MAX)
    };
    let setup = died(Some(Time::us(10)));
    assert_eq!(up(&setup, &setup.run()), [800_000, 800_000, 0, 800_000]);
    for detect in [None, Some(Time::us(16))] {
        let setup = died(detect);
        assert!(up(&setup, &setup.run())[2] > 0, "{detect:?}");
    }
}

/// Sixteen messages a host, four a path, when one path gets slower: who stays on it needs four
/// times as long, unless some go elsewhere.
#[test]
fn flows_under_way_leave_a_link_that_gets_slow() {
    let run = |redistribute| {
        let list: Vec<_> = (0..32).map(|n| (n % 2, 2 + n % 2, 200_000)).collect();
        let setup = Setup { workload: messages(4, &list), ..pair(1) };
        let setup = setup.under(scheme(&[("redistribute", redistribute)]));
        setup.failing("leaf-0 -> spine-1", QUARTER, Time::us(20), Time::MAX).run()
    };
    let (stays, moves) = (run("false"), run("true"));
    // 1.6 MB on each path at 200 Gb/s for all: a quarter is left to the slow one, 25 Gb/s.
    assert!(stays.totals.cct > Time::us(350), "{}", stays.totals.cct);
    assert!(moves.totals.cct < Time::us(320), "{}", moves.totals.cct);
}

/// Redistribution, by news and by time-outs, in every cut and on any number of threads.
#[test]
fn cuts_do_not_matter() {
    let mut moved = 0;
    for (turn, clos) in (0..).zip([Clos::leaf_spine(4, 4, 4, LINK), Clos::fat_tree(4, LINK)]) {
        let (slow, dead) = match turn {
            0 => ("leaf-0 -> spine-1", "spine-2 <-> leaf-1"),
            _ => ("leaf-0 -> pod-0-agg-1", "core-2 <-> pod-1-agg-1"),
        };
        for detect in [Some(Time::us(30)), None] {
            let mut base = Setup::new(clos, all_to_all(&clos, 100_000));
            base.transport.congestion = dctcp(30_000, 200_000);
            base.transport.rto = Time::us(50);
            let base = base.failing(slow, QUARTER, Time::us(15), Time::MAX);
            let base = base.failing(dead, FailureKind::down(detect), Time::us(10), Time::MAX);
            let setup = base.clone().under(scheme(&[("redistribute", "true")]));
            let one = confirmed(&setup);
            for (partitions, threads) in [(2, 1), (3, 2), (4, 4)] {
                assert_eq!(equals(&one, &setup, partitions, threads), Ok(()), "{detect:?}");
            }
            let outcome = one.unwrap();
            assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO));
            let stays = base.under(scheme(&[])).run();
            moved += u32::from(outcome.ports != stays.ports);
        }
    }
    assert_eq!(moved, 4, "redistribution changes nothing");
}
