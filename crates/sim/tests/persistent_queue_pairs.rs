//! Persistent queue pairs, in the simulator: how many there are, what order they keep, and what
//! they do to uplinks.

use crate::common::{LINK, Setup, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::Outcome;
use weft_transport::RecoveryConfig;
use weft_units::{HostId, MessageId, Rate, SwitchId, Time};

fn scheme(name: &str, options: &[(&str, &str)]) -> SchemeConfig {
    SchemeConfig::read(name, options).unwrap()
}

/// Two leaves of 4 hosts, 4 spines: host h sends to h + 4, and the other way.
fn across(bytes: u64) -> Setup {
    let pairs: Vec<_> = (0..8).map(|host| (host, (host + 4) % 8, bytes)).collect();
    Setup::new(Clos::leaf_spine(2, 4, 4, LINK), messages(8, &pairs))
}

/// Bytes over each uplink of a leaf.
fn uplinks(setup: &Setup, outcome: &Outcome, leaf: u32) -> Vec<u64> {
    let group = setup.fabric.next_hops(SwitchId(leaf), HostId((leaf + 1) % 2 * 4));
    group.ids().map(|port| outcome.ports[port].bytes).collect()
}

#[test]
fn dnlb_loads_all_uplinks_alike_if_its_condition_holds() {
    // 4 NICs with 4 queue pairs each, 4 uplinks; parts of whole packets.
    let setup = across(4 * 960 * 50).under(scheme("dnlb-4", &[]));
    let outcome = setup.run();
    for leaf in 0..2 {
        let bytes = uplinks(&setup, &outcome, leaf);
        assert!(bytes.iter().all(|one| *one == bytes[0]), "{bytes:?}");
    }
    assert_eq!((outcome.totals.max_qps, outcome.totals.established_qps), (4, 4));
    // With one queue pair each, and the NICs of a leaf next to each other, too.
    let setup = across(960 * 50).under(scheme("dnlb-1", &[]));
    let bytes = uplinks(&setup, &setup.run(), 0);
    assert!(bytes.iter().all(|one| *one == bytes[0]), "{bytes:?}");
    // Three queue pairs for four uplinks of one NIC: one of them carries acknowledgements only.
    let alone = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), messages(8, &[(0, 4, 300 * 960)]));
    let alone = alone.under(scheme("dnlb-3", &[]));
    let bytes = uplinks(&alone, &alone.run(), 0);
    assert_eq!(bytes[3], 0);
}

/// An uplink dies in the middle, and switches never learn of it: hosts leave its queue pairs, and
/// the live uplinks carry the rest alike.
#[test]
fn dnlb_moves_to_live_queue_pairs() {
    let mut setup = across(1).under(scheme("dnlb-4", &[("chunk", "192000B")]));
    // 40 messages a host, so that most of them are sent after the failure.
    let list: Vec<_> =
        (0..20).flat_map(|_| (0..4).map(|host| (host, host + 4, 960 * 800))).collect();
    setup.workload = messages(8, &list);
    let mut setup = setup.window(30);
    setup.transport.rto = Time::us(300);
    let start = Time::us(20);
    let links = LinkChoice::Named(vec!["leaf-0 <-> spine-1".into()]);
    let kind = FailureKind::down(None);
    setup.failures.push(Failure { links, kind, start, end: Time::MAX });
    let outcome = setup.run();
    assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO));
    let bytes = uplinks(&setup, &outcome, 0);
    let live = [bytes[0], bytes[2], bytes[3]];
    let (least, most) = (live.iter().min().unwrap(), live.iter().max().unwrap());
    assert!(most - least < most / 100, "{bytes:?}");
    assert!(bytes[1] < least / 10, "{bytes:?}");
}

#[test]
fn paralet_fills_the_line_with_shares_of_it() {
    let packets = 4_000;
    let one = messages(8, &[(0, 4, packets * 960)]);
    let setup = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), one);
    let setup = setup.under(scheme("paralet-8", &[("flowlet", "19200B")]));
    let outcome = setup.run();
    let totals = &outcome.totals;
    assert_eq!((totals.max_qps, totals.established_qps), (8, 8));
    // 1000 bytes at 100 Gb/s, and one last flowlet at an eighth of it; some microseconds on the way.
    let line = Time::ns(80 * packets);
    let longest = line + Time::ns(80 * 8 * 20) + Time::us(5);
    let received = outcome.messages[MessageId(0)].received;
    assert!(line <= received && received <= longest, "{received} of {line} to {longest}");
    assert_eq!(outcome.messages[MessageId(0)].subflows, 200);
    // A lone flowlet has its share of the line and no more.
    let setup = Setup { workload: messages(8, &[(0, 4, 10 * 960)]), ..setup };
    let received = setup.run().messages[MessageId(0)].received;
    assert!(
        received >= Time::ns(9 * 640) && received < Time::ns(11 * 640) + Time::us(4),
        "{received}"
    );
}

/// More messages do not make more queue pairs, and whatever waits for them comes in the end.
#[test]
fn queue_pairs_do_not_grow_with_peers() {
    let list: Vec<_> = (0..8)
        .flat_map(|src| (0..8).filter(move |dst| *dst != src).map(move |dst| (src, dst, 50_000)))
        .collect();
    let setup = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), messages(8, &list));
    let paralet = setup.clone().under(scheme("paralet-4", &[("flowlet", "4800B")])).run();
    assert_eq!((paralet.totals.max_qps, paralet.totals.established_qps), (4, 4));
    // Of a connection each, they do.
    let connected = setup.under(scheme("e-ecmp-4", &[])).run();
    assert_eq!(connected.totals.established_qps, 28);
}

#[test]
fn a_queue_pair_carries_one_subflow_after_the_other() {
    // Three messages to one peer, on one queue pair.
    let list = [(0, 4, 96_000), (0, 4, 96_000), (0, 4, 96_000)];
    let setup = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), messages(8, &list));
    for recovery in RecoveryConfig::all() {
        let mut setup = setup.clone().under(scheme("e-ecmp-1", &[]));
        setup.transport.recovery = recovery;
        let outcome = setup.run();
        let received: Vec<Time> = outcome.messages.iter().map(|one| one.received).collect();
        assert!(received.is_sorted(), "{}: {received:?}", recovery.name());
        // A message takes 8 us on the wire: nobody's packets are among another's.
        let apart = received[0].until(received[1]).min(received[1].until(received[2]));
        assert!(apart >= Time::us(8), "{}: {received:?}", recovery.name());
        assert_eq!(outcome.totals.established_qps, 1);
    }
}

/// Where the transport gives every message a rate, its queue pairs have it together.
#[test]
fn a_rate_is_that_of_the_message() {
    let list = [(0, 4, 960_000)];
    for name in ["paralet-4", "e-ecmp-4"] {
        let mut setup = Setup::new(Clos::leaf_spine(2, 1, 4, LINK), messages(8, &list));
        setup.balance.scheme = scheme(name, &[]);
        setup.pacing.rates = weft_sim::Rates::Same(Rate::gbps(10));
        // 1,000 packets of 1000 bytes at 10 Gb/s; the last flowlet has a quarter of it.
        let cct = setup.run().totals.cct;
        assert!(Time::us(790) < cct && cct < Time::us(1_100), "{name}: {cct}");
    }
}

/// Four hosts of a leaf send to those of another, and nobody back: what each uplink carries.
fn one_way(name: &str, options: &[(&str, &str)], packets: u64) -> (Vec<u64>, Outcome) {
    let list: Vec<_> = (0..4).map(|host| (host, host + 4, packets * 960)).collect();
    let setup = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), messages(8, &list));
    let setup = setup.under(scheme(name, options));
    let outcome = setup.run();
    (uplinks(&setup, &outcome, 0), outcome)
}

/// Section 3 of ParaLet (2024): with one queue pair ParaLet is flow-level balancing. A message is on one
/// path, however many flowlets it is cut into, and takes as long as a flow.
#[test]
fn with_one_queue_pair_paralet_is_flow_level() {
    let packets = 2_000;
    let (bytes, outcome) = one_way("paralet-1", &[("flowlet", "19200B")], packets);
    assert!(outcome.messages.iter().all(|message| message.subflows == 100));
    assert!(bytes.iter().all(|one| one.is_multiple_of(packets * 1000)), "{bytes:?}");
    assert_eq!(outcome.totals.reordered, 0);
    let alone = |name: &str, options: &[(&str, &str)]| {
        let one = messages(8, &[(0, 4, packets * 960)]);
        let setup = Setup::new(Clos::leaf_spine(2, 4, 4, LINK), one);
        setup.under(scheme(name, options)).run().totals.cct
    };
    let (paralet, ecmp) = (alone("paralet-1", &[("flowlet", "19200B")]), alone("ecmp", &[]));
    assert!(paralet.max(ecmp) - paralet.min(ecmp) <= Time::ns(80), "{paralet}, {ecmp}");
}

/// And with very many, each flowlet a packet with a port of its own, it is spraying.
#[test]
fn with_a_flowlet_a_packet_paralet_is_spraying() {
    let packets = 4_000;
    let many = [("flowlet", "960B"), ("ports", "flowlet")];
    let (paralet, of_paralet) = one_way("paralet-512", &many, packets);
    let (spray, of_spray) = one_way("spray", &[], packets);
    let ideal = (packets * 1000) as f64;
    for bytes in [&paralet, &spray] {
        // Binomial: 4,000 of 16,000 packets, with a deviation of 55; four of these.
        assert!(bytes.iter().all(|one| (*one as f64 / ideal - 1.0).abs() < 0.055), "{bytes:?}");
    }
    let (one, other) = (of_paralet.totals.cct.as_secs_f64(), of_spray.totals.cct.as_secs_f64());
    // The last flowlets take 512 packet times, 41 us, of some 320.
    assert!(one > 0.95 * other && one < other + 45e-6, "{one} against {other}");
    // Few queue pairs lie in between.
    let (few, _) = one_way("paralet-8", &[("flowlet", "19200B")], packets);
    let most = |bytes: &[u64]| *bytes.iter().max().unwrap() as f64 / ideal;
    assert!(most(&few) > 1.1 * most(&paralet), "{few:?}");
}
