//! What a run counts, by hand: packets lost by message, packets out of order, marks on the way
//! back, and round-trip times as Swift and load balancers get them.

use crate::common::{LINK, Setup, dctcp, messages};
use weft_balance::scheme::{SchemeConfig, SwitchRotation};
use weft_fabric::{Clos, FailureKind};
use weft_sim::{EcnConfig, MessageResult, Outcome, Rates, TrimConfig, Victim};
use weft_transport::{CongestionConfig, FixedRateConfig, RecoveryConfig, SwiftConfig, Trim};
use weft_units::{MessageId, PortId, Rate, SwitchId, Time};

fn sum(outcome: &Outcome, of: impl Fn(&MessageResult) -> u32) -> u64 {
    outcome.messages.iter().map(|message| u64::from(of(message))).sum()
}

mod lost {
    use super::*;

    /// Two racks of five hosts; all send to host 0, whose acknowledgements have the way back for
    /// themselves.
    fn incast() -> Setup {
        let clos = Clos::leaf_spine(2, 2, 5, LINK);
        let list: Vec<_> = (1..10).map(|src| (src, 0, 30 * 960)).collect();
        let mut setup = Setup::new(clos, messages(10, &list)).port_buffer(8_000);
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        setup.transport.rto = Time::us(50);
        setup
    }

    #[test]
    fn at_ports() {
        let outcome = incast().run();
        assert!(outcome.totals.drops > 50);
        assert_eq!(sum(&outcome, |message| message.lost), outcome.totals.drops);
        // Whatever was lost was sent again, by its own message, and nothing else was.
        assert!(outcome.messages.iter().all(|m| m.retransmits - m.spurious == m.lost));
    }

    #[test]
    fn at_ports_and_on_links() {
        let kind = FailureKind::Flaky { every: Time::us(5), length: Time::us(1), regular: true };
        let setup = incast().failing("leaf-0 -> host-0", kind, Time::ZERO, Time::ms(1));
        let outcome = setup.run();
        let totals = outcome.totals;
        assert!(totals.drops > 50 && totals.wire_drops > 5, "{totals:?}");
        assert_eq!(sum(&outcome, |message| message.lost), totals.drops + totals.wire_drops);
        assert!(outcome.messages.iter().all(|m| m.retransmits - m.spurious == m.lost));
    }

    #[test]
    fn in_other_partitions() {
        let kind = FailureKind::Flaky { every: Time::us(5), length: Time::us(1), regular: true };
        let setup = incast().failing("spine-0 -> leaf-0", kind, Time::ZERO, Time::ms(1));
        let one = setup.run();
        assert!(one.totals.wire_drops > 0);
        assert_eq!(one.messages, setup.run_in(2, 2).unwrap().messages);
        assert_eq!(sum(&one, |message| message.lost), one.totals.drops + one.totals.wire_drops);
    }

    /// A trimmed packet is lost if its header is.
    #[test]
    fn headers() {
        let mut setup = incast();
        let (queue, victim) = (256, Victim::Either);
        let trim = TrimConfig { size: Some(64), queue, return_to_sender: false, victim };
        setup.switch.trim = Some(trim);
        setup.transport.recovery = Trim.into();
        let outcome = setup.run();
        let totals = outcome.totals;
        assert!(totals.header_drops > 10 && totals.trims > totals.header_drops, "{totals:?}");
        assert_eq!((totals.drops, totals.spurious), (totals.header_drops, 0));
        assert_eq!(sum(&outcome, |message| message.lost), totals.drops);
        assert_eq!(totals.retransmits, totals.trims);
    }
}

mod reordering {
    use super::*;

    /// `packets` that the leaf sends over two spines in turn, one of which is slow.
    fn turns(packets: u64, slow: u32) -> Outcome {
        let clos = Clos::leaf_spine(2, 2, 1, LINK);
        let setup = Setup::new(clos, messages(2, &[(0, 1, packets * 960)])).under(SwitchRotation);
        let kind = FailureKind::Degraded { lost: 0.91 };
        let link = format!("leaf-0 -> spine-{slow}");
        setup.failing(&link, kind, Time::ZERO, Time::MAX).run()
    }
    fn counts(outcome: &Outcome) -> (u32, u32, u64) {
        let message = outcome.messages[MessageId(0)];
        assert_eq!(u64::from(message.reordered), outcome.totals.reordered);
        (message.reordered, message.farthest, outcome.totals.reorder_distance)
    }

    /// Of four, those with odd or with even numbers come 809 and 1618 ns late: they arrive as
    /// 0, 2, 1, 3, or as 1, 3, 0, 2.
    #[test]
    fn four_packets_on_two_paths() {
        let mut both = [0, 1].map(|slow| counts(&turns(4, slow)));
        both.sort_unstable();
        // 1 is one behind 2; 0 is three behind 3, and 2 is one.
        assert_eq!(both, [(1, 1, 1), (2, 3, 4)]);
    }

    /// Of twenty, 0 2 4 .. 18 are fast, one every 160 ns, or 1 3 5 .. 19 are; the slow ones leave
    /// after 889 ns each, so that all but the first come after all fast ones.
    #[test]
    fn twenty_packets_on_two_paths() {
        let mut both = [0, 1].map(|slow| counts(&turns(20, slow)));
        both.sort_unstable();
        // 1 comes after 10, and the others after 18: 3, 5, .. 17 behind by 15, 13, .. 1. And 19
        // is last.
        let odd = (9, 15, 9 + 64);
        // 0 comes after 9, and 2, 4, .. 18 after 19.
        let even = (10, 17, 9 + 81);
        assert_eq!(both, [odd, even]);
    }

    /// What was sent again is late, not out of order; what overtakes it is in order.
    #[test]
    fn copies_do_not_count() {
        let clos = Clos::leaf_spine(2, 1, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, 10 * 960)]));
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        let dead = FailureKind::down(None);
        let setup = setup.failing("host-0 -> leaf-0", dead, Time::ns(160), Time::ns(240));
        let outcome = setup.run();
        assert_eq!(outcome.totals.retransmits, 1);
        assert_eq!(counts(&outcome), (0, 0, 0));
    }

    #[test]
    fn one_path_keeps_order() {
        let clos = Clos::leaf_spine(2, 2, 1, LINK);
        let setup = Setup::new(clos, messages(2, &[(0, 1, 100 * 960)]));
        assert_eq!(counts(&setup.run()), (0, 0, 0));
    }
}

mod marks {
    use super::*;

    /// Host 0 sends to host 2 in the other rack, while its neighbours' friends fill the port to
    /// host 0, where the acknowledgements come.
    fn crowded(mark_control: bool) -> Setup {
        let clos = Clos::leaf_spine(2, 4, 6, LINK);
        let mut list: Vec<_> = (1..6).map(|src| (src, 0, 400 * 960)).collect();
        list.push((0, 6, 400 * 960));
        let mut setup = Setup::new(clos, messages(12, &list));
        setup.switch.ecn = Some(EcnConfig { kmin: 10_000, kmax: 10_000, pmax: 1.0 });
        setup.switch.mark_control = mark_control;
        setup
    }
    const OWN: MessageId = MessageId(5);

    /// Whether the acknowledgement was marked does not matter to DCTCP, but its packet's mark.
    #[test]
    fn an_answer_echoes_the_mark_of_its_packet() {
        let run = |mark_control| {
            let mut setup = crowded(mark_control);
            setup.transport.congestion = dctcp(50 * 960, 50 * 960);
            setup.run()
        };
        let (with, without) = (run(true), run(false));
        // All that differs is that the acknowledgements are marked: 400 of them at most.
        let more = with.totals.marks - without.totals.marks;
        assert!((100..=400).contains(&more), "{more} acknowledgements were marked");
        assert_eq!(with.messages, without.messages);
        // Those whose packets are marked hear of it, and their five windows of 50 packets do not
        // stand before the acknowledgements for long.
        let mut unmarked = crowded(false);
        unmarked.switch.ecn = None;
        unmarked.transport.congestion = dctcp(50 * 960, 50 * 960);
        let received = |outcome: &Outcome| outcome.messages[OWN].received;
        let (short, long) = (received(&without), received(&unmarked.run()));
        assert!(short * 2 < long, "{short} {long}");
    }

    /// A scheme that looks at marked answers leaves its path, where one that looks at marked
    /// data does not.
    #[test]
    fn some_look_at_the_answers() {
        let uplinks = |marks: &str, mark_control| {
            let options = [("marks", marks), ("packets", "10")];
            let scheme = SchemeConfig::read("host-flowlets", &options).unwrap();
            let mut setup = crowded(mark_control).under(scheme);
            setup.transport.congestion = dctcp(50 * 960, 50 * 960);
            let outcome = setup.run();
            assert!(outcome.messages[OWN].received > Time::ZERO);
            let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 6;
            (first..first + 4).filter(|port| outcome.ports[PortId(*port)].packets > 0).count()
        };
        assert!(uplinks("answers", true) > 2);
        assert_eq!(uplinks("answers", false), 1);
        assert_eq!(uplinks("data", true), 1);
    }
}

mod in_flight {
    use super::*;

    /// PLB moves an idle flow after three congested rounds, and a busy one after twelve. Of ten
    /// packets each is acknowledged before the next leaves, marked by the queue of others; or
    /// they leave within a round trip.
    #[test]
    fn a_flow_is_idle_when_nothing_is_out_but_the_packet_that_leaves() {
        let uplinks = |gbps| {
            let clos = Clos::leaf_spine(2, 8, 2, LINK);
            let list = [(0, 2, 10 * 960), (3, 2, 2000 * 960)];
            let mut setup = Setup::new(clos, messages(4, &list));
            let plb = SchemeConfig::read("plb", &[]).unwrap();
            setup.switch.ecn = Some(EcnConfig { kmin: 0, kmax: 0, pmax: 1.0 });
            setup.transport.congestion = CongestionConfig::FixedRate(FixedRateConfig::default());
            setup.pacing.rates = Rates::Each([gbps, 100].map(Rate::gbps).into_iter().collect());
            let setup = setup.under(plb);
            let outcome = setup.run();
            assert!(outcome.totals.marks >= 10);
            let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 2;
            (first..first + 8).filter(|port| outcome.ports[PortId(*port)].packets > 0).count()
        };
        assert!(uplinks(1) > 1);
        assert_eq!(uplinks(20), 1);
    }
}

/// Over an idle path, whose round trip is 4 * 580 + 4 * 504 = 4336 ns.
mod round_trips {
    use super::*;

    const ROUND: Time = Time::ns(4336);
    const THERE: Time = Time::ns(2320);

    /// Swift without flow scaling, whose window starts at `window` bytes.
    fn swift(packets: u64, window: u64, target: Time) -> Setup {
        let clos = Clos::leaf_spine(2, 1, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, packets * 960)]));
        setup.transport.congestion = CongestionConfig::Swift(SwiftConfig {
            base_target: target,
            per_hop: Time::ZERO,
            scaling_range: Time::ZERO,
            ..SwiftConfig::with_windows(window, 100 * 960)
        });
        setup
    }
    fn received(setup: &Setup) -> Time {
        let outcome = setup.run();
        assert_eq!(outcome.messages, setup.run_queued().unwrap().messages);
        outcome.messages[MessageId(0)].received
    }

    /// One packet; then two; the window grows to 2.5 and 2.9 packets, then 3.24: three.
    #[test]
    fn a_window_grows_below_the_target() {
        let setup = swift(6, 960, Time::ns(4337));
        assert_eq!(received(&setup), ROUND * 3 + THERE);
        // Two in the third round, of which the second leaves a packet behind the first.
        let setup = swift(5, 960, Time::ns(4337));
        assert_eq!(received(&setup), ROUND * 2 + Time::ns(80) + THERE);
    }

    /// At the target itself the window neither grows nor shrinks.
    #[test]
    fn a_window_at_the_target() {
        let setup = swift(6, 960, Time::ns(4336));
        assert_eq!(received(&setup), ROUND * 5 + THERE);
    }

    /// Half a packet in the window is a packet every two round trips: as long as none has been
    /// measured, of the target's 10 us. After the first the window is a packet and a half.
    #[test]
    fn a_window_below_a_packet_is_a_gap() {
        assert_eq!(received(&swift(2, 480, Time::us(10))), Time::us(20) + THERE);
        assert_eq!(received(&swift(3, 480, Time::us(10))), Time::us(20) + ROUND + THERE);
    }

    /// Far above the target, 1 us, the window of four packets is cut by a half, once a round
    /// trip, until it is 960 bytes: a packet at a time.
    #[test]
    fn a_window_shrinks_above_the_target() {
        let mut setup = swift(9, 4 * 960, Time::us(1));
        let CongestionConfig::Swift(config) = &mut setup.transport.congestion else {
            unreachable!("it is Swift")
        };
        config.min_window = 960;
        // The first answer, at 4336 ns, leaves two packets of window where three are out: the
        // fifth packet leaves with the third answer, 160 ns later, the sixth with the fourth.
        // The first of these measures a round trip after the cut, and cuts again: one packet.
        // So one leaves when both are back, and so on.
        let second = ROUND + Time::ns(160);
        let third = second + ROUND + Time::ns(80);
        assert_eq!(received(&setup), third + ROUND * 2 + THERE);
    }

    /// A scheme that counts rounds, too, gets round-trip times from answers in order: without
    /// them FlowBender would take every answer for a round.
    #[test]
    fn schemes_get_them_too() {
        let clos = Clos::leaf_spine(2, 8, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, 500 * 960)]));
        let bender = SchemeConfig::read("flowbender", &[]).unwrap();
        // All are marked: from now to the end every round is bad.
        setup.switch.ecn = Some(EcnConfig { kmin: 0, kmax: 0, pmax: 1.0 });
        setup.transport.congestion = CongestionConfig::FixedRate(FixedRateConfig::default());
        let outcome = setup.under(bender).run();
        assert!(outcome.totals.reordered < 10, "{:?}", outcome.totals);
    }
}
