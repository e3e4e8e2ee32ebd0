//! When queue pairs that send at a rate do so, by pencil and paper; and flows in several units
//! of accounting.
//!
//! 80 ps a byte and 500 ns a link: a full packet takes 80 ns, 1160 ns over a rack, and its
//! acknowledgement 1008 ns back.

use crate::common::{LINK, Setup, messages};
use weft_balance::scheme::{SchemeConfig, Spray};
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Outcome, Rates};
use weft_transport::{CongestionConfig, FixedRateConfig};
use weft_units::{MessageId, Rate, SwitchId, Time};

/// Over a rack.
const WAY: Time = Time::ns(1160);
/// Of a full packet at 10 Gb/s.
const GAP: Time = Time::ns(800);

/// Messages between the four hosts of a rack, all at one rate.
fn rack(list: &[(u32, u32, u64)], gbps: u64) -> Setup {
    let clos = Clos::leaf_spine(1, 1, 4, LINK);
    let mut setup = Setup::new(clos, messages(4, list));
    setup.transport.congestion =
        CongestionConfig::FixedRate(FixedRateConfig { rate: Some(Rate::gbps(gbps)) });
    setup
}
fn with_rates(mut setup: Setup, gbps: &[u64]) -> Setup {
    setup.pacing.rates = Rates::Each(gbps.iter().map(|gbps| Rate::gbps(*gbps)).collect());
    setup
}
/// Alike on both kinds of port.
fn run(setup: &Setup) -> Outcome {
    let outcome = setup.run();
    assert_eq!(outcome.messages, setup.run_queued().unwrap().messages);
    outcome
}
fn received(setup: &Setup) -> Vec<Time> {
    run(setup).messages.iter().map(|message| message.received).collect()
}

#[test]
fn the_rate_of_a_message_stands_over_that_of_all() {
    for common in [1, 50, 100] {
        let setup = with_rates(rack(&[(0, 1, 20 * 960)], common), &[10]);
        assert_eq!(received(&setup), [GAP * 19 + WAY]);
    }
}

#[test]
fn a_rate_above_the_line_is_the_line() {
    let setup = with_rates(rack(&[(0, 1, 20 * 960)], 1), &[250]);
    assert_eq!(received(&setup), [Time::ns(19 * 80) + WAY]);
}

/// The gap follows the packet that was sent: the last one, of 50 bytes, is due 800 ns after the
/// full one before it. A lone packet has none.
#[test]
fn a_short_last_packet() {
    let setup = rack(&[(0, 1, 3 * 960 + 10), (2, 3, 10)], 10);
    let short = Time::ns(2 * 504);
    assert_eq!(received(&setup), [GAP * 3 + short, short]);
}

/// At 40 and 25 Gb/s packets are due every 200 and 320 ns. Where both are due, the flow that was
/// opened first sends first; the other is late by a packet, and on time again with the next.
#[test]
fn two_paced_flows_keep_their_beat() {
    let setup = with_rates(rack(&[(0, 1, 9600), (0, 2, 9600)], 1), &[25, 40]);
    assert_eq!(received(&setup), [Time::ns(9 * 320) + WAY, Time::ns(9 * 200) + WAY]);
    // At 50 Gb/s each they fill the link: the second flow is always a packet late.
    let setup = with_rates(rack(&[(0, 1, 9600), (0, 2, 9600)], 1), &[50, 50]);
    assert_eq!(received(&setup), [Time::ns(9 * 160) + WAY, Time::ns(9 * 160 + 80) + WAY]);
    // Beyond, what is due is made up for as soon as the link is free: 30 packets on end.
    let setup = with_rates(rack(&[(0, 1, 9600), (0, 2, 9600), (0, 3, 9600)], 1), &[50, 50, 50]);
    assert_eq!(received(&setup).into_iter().max(), Some(Time::ns(29 * 80) + WAY));
}

/// A link that is dead for its first nanosecond takes the first packet. The NACK for the second
/// leaves at 800 + 1160 ns and is back 1008 ns later.
fn first_is_lost(packets: u64) -> Setup {
    let mut setup = rack(&[(0, 1, packets * 960)], 10);
    setup.failures = vec![Failure {
        links: LinkChoice::Named(vec!["host-0 -> leaf-0".into()]),
        kind: FailureKind::down(None),
        start: Time::ZERO,
        end: Time::ns(1),
    }];
    setup
}
const NACKED: Time = Time::ns(800 + 1160 + 1008);

#[test]
fn what_is_sent_again_keeps_the_beat() {
    // The fifth packet would have been due at 3200 ns.
    let outcome = run(&first_is_lost(5));
    let message = outcome.messages[MessageId(0)];
    assert_eq!(message.received, GAP * 4 + GAP * 4 + WAY);
    // Four had left.
    assert_eq!((message.retransmits, message.lost), (4, 1));
}

/// A flow that has been idle begins a new beat with the NACK instead of making up for it.
#[test]
fn idle_time_is_not_made_up_for() {
    let message = run(&first_is_lost(3)).messages[MessageId(0)];
    assert_eq!(message.received, NACKED + GAP * 2 + WAY);
    assert_eq!(message.retransmits, 3);
}

/// After a NACK one gap, and no more, is between a half and one and a half.
#[test]
fn who_lost_together_parts() {
    let (mut least, mut most) = (Time::MAX, Time::ZERO);
    for seed in 0..40 {
        let mut setup = first_is_lost(3).seeded(seed);
        setup.pacing.desynchronise = true;
        let gaps = run(&setup).messages[MessageId(0)].received - NACKED - WAY;
        (least, most) = (least.min(gaps), most.max(gaps));
    }
    let usual = GAP * 2;
    assert!(least >= usual - Time::ns(400) && most < usual + Time::ns(400), "{least} {most}");
    assert!(least < usual - Time::ns(300) && most > usual + Time::ns(300), "{least} {most}");
}

/// Without a NACK there is no reason to part.
#[test]
fn who_lost_nothing_stays() {
    let mut setup = rack(&[(0, 1, 20 * 960)], 10);
    setup.pacing.desynchronise = true;
    assert_eq!(received(&setup), [GAP * 19 + WAY]);
}

/// Flows start up to three of their gaps late, each for itself; the gaps stay as they are. A
/// message shorter than a packet has a shorter gap: 40 ns for 50 bytes.
#[test]
fn late_starts() {
    let (mut least, mut most) = (Time::MAX, Time::ZERO);
    for seed in 0..40 {
        let list = [(0, 1, 20 * 960), (2, 3, 20 * 960), (1, 0, 10)];
        let mut setup = rack(&list, 10).seeded(seed);
        setup.pacing.start_gaps = 3.0;
        let ends = received(&setup);
        assert_ne!(ends[0], ends[1]);
        let late = |end: Time| end - GAP * 19 - WAY;
        least = least.min(late(ends[0])).min(late(ends[1]));
        most = most.max(late(ends[0])).max(late(ends[1]));
        assert!(ends[2] - Time::ns(1008) < Time::ns(3 * 40), "{}", ends[2]);
    }
    assert!(least < Time::ns(240) && most < GAP * 3 && most > Time::ns(2160), "{least} {most}");
}

/// Every gap is longer by up to a tenth, by a twentieth in the mean.
#[test]
fn jitter_between_packets() {
    const FLOWS: u64 = 40;
    let gaps = |seed| {
        let mut setup = rack(&[(0, 1, 100 * 960)], 10).seeded(seed);
        setup.pacing.gap_jitter = 0.1;
        received(&setup)[0] - WAY
    };
    let all: Vec<Time> = (0..FLOWS).map(gaps).collect();
    assert!(all.iter().all(|gaps| *gaps > GAP * 99 && *gaps < Time::ns(880 * 99)), "{all:?}");
    // A gap's deviation is 80 ns / sqrt(12): the mean of 3960 is off by 0.4 ns.
    let mean = all.iter().fold(Time::ZERO, |sum, gaps| sum + *gaps).0 / (99 * FLOWS);
    assert!(mean.abs_diff(840_000) < 2_000, "{mean} ps");
}

/// Four queue pairs share the rate of a message: five packets each at a quarter of it.
#[test]
fn sub_flows_share_the_rate() {
    let mut setup = with_rates(rack(&[(0, 1, 20 * 960)], 1), &[10]);
    setup.pacing.subflows = 4;
    let outcome = run(&setup);
    let message = outcome.messages[MessageId(0)];
    // The fourth waits for three others at every beat.
    assert_eq!(message.received, GAP * 4 * 4 + Time::ns(3 * 80) + WAY);
    assert_eq!((message.subflows, outcome.totals.max_qps), (4, 4));
}

/// Ten packets in four parts are 2, 3, 2 and 3, the last packet short; the rate follows the bytes.
#[test]
fn unequal_sub_flows() {
    let bytes = 9 * 960 + 480;
    let mut setup = with_rates(rack(&[(0, 1, bytes)], 1), &[10]);
    setup.pacing.subflows = 4;
    let outcome = run(&setup);
    assert_eq!((outcome.totals.packets, outcome.messages[MessageId(0)].subflows), (10, 4));
    // The fourth part has 2400 of 9120 bytes and ends last, with a packet of 520: its first
    // waited for three others, but the beat began with them.
    let rate = Rate::bps(10_000_000_000 * 2400 / bytes);
    let gap = weft_units::Wire::new(rate).time(1000);
    let end = gap * 2 + Time::ps(2 * (520 * 80 + 500_000));
    assert_eq!(outcome.messages[MessageId(0)].received, end);
}

#[test]
fn no_more_sub_flows_than_packets() {
    let mut setup = rack(&[(0, 1, 2 * 960 + 1), (2, 3, 1)], 10);
    setup.pacing.subflows = 11;
    let outcome = run(&setup);
    let subflows: Vec<u32> = outcome.messages.iter().map(|message| message.subflows).collect();
    assert_eq!((subflows, outcome.totals.packets), (vec![3, 1], 4));
}

/// How many packets each of four uplinks carried for one message in 11 parts.
fn uplinks(scheme: impl Into<SchemeConfig>, packets: u64, seed: u64) -> Vec<u64> {
    let clos = Clos::leaf_spine(2, 4, 1, LINK);
    let mut setup = Setup::new(clos, messages(2, &[(0, 1, packets * 960)])).under(scheme);
    (setup.pacing.subflows, setup.seed) = (11, seed);
    let outcome = setup.run();
    let ports = setup.fabric.ports_of(SwitchId(0)).ids().skip(1);
    ports.map(|port| outcome.ports[port].packets).collect()
}

/// Sub-flows stay on the route of their flow, and spray each for itself.
#[test]
fn sub_flows_and_routes() {
    let one = uplinks(weft_balance::scheme::Ecmp, 110, 1);
    assert!(one.contains(&110) && one.iter().sum::<u64>() == 110, "{one:?}");
    // Eleven packets, the first of each sub-flow: if they drew alike, all would go one way.
    for seed in 0..20 {
        let spread = uplinks(Spray, 11, seed);
        assert!(!spread.contains(&11), "{spread:?}");
    }
}
