//! Links that fail, by pencil and paper: which packets meet it, which do not, and when routing
//! goes around. A full packet takes 80 ns, or 800 ns over a link that lost nine tenths; 500 ns a
//! link.

use crate::common::{LINK, Setup, ethereal, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, FailureKind, Failures};
use weft_sim::{EcnConfig, Outcome, PortResult};
use weft_transport::{CongestionConfig, FixedRateConfig, RecoveryConfig};
use weft_units::{HostId, MessageId, PortId, Rate, SwitchId, Time};

const SLOW: FailureKind = FailureKind::Degraded { lost: 0.9 };
const DEAD: FailureKind = FailureKind::down(None);

fn received(setup: &Setup) -> Time {
    setup.run_both().messages[MessageId(0)].received
}
/// From the first leaf to the spine.
fn uplink(setup: &Setup) -> PortId {
    PortId(setup.fabric.ports_of(SwitchId(0)).first.0 + 1)
}
const UP: &str = "leaf-0 -> spine-0";

mod degraded {
    use super::*;

    #[test]
    fn from_the_start() {
        let setup = Setup::line(10).failing(UP, SLOW, Time::ZERO, Time::MAX);
        assert_eq!(received(&setup), Time::ns(3 * 580 + 1300 + 9 * 800));
        let setup = Setup::line(10).failing("host-0 -> leaf-0", SLOW, Time::ZERO, Time::MAX);
        assert_eq!(received(&setup), Time::ns(3 * 580 + 1300 + 9 * 800));
        // The way back: an acknowledgement takes 40 ns there.
        let setup = Setup::line(1).failing("spine-0 -> leaf-0", SLOW, Time::ZERO, Time::MAX);
        let message = setup.run_both().messages[MessageId(0)];
        assert_eq!(message.sent - message.received, Time::ns(4 * 504 + 36));
    }

    /// Both lose a half.
    #[test]
    fn twice() {
        let half = FailureKind::Degraded { lost: 0.5 };
        let setup = Setup::line(10).failing(UP, half, Time::ZERO, Time::MAX);
        let setup = setup.failing(UP, half, Time::ZERO, Time::MAX);
        assert_eq!(received(&setup), Time::ns(3 * 580 + 820 + 9 * 320));
    }

    /// Buffers and marks are bytes, whatever the rate: at 580 ns + 80 k the k-th packet finds
    /// 900 k bytes, of which three packets have room.
    #[test]
    fn buffers_and_marks_are_bytes() {
        // From the start, or from a moment later.
        for start in [Time::ZERO, Time::ns(1)] {
            let mut setup = Setup::line(5).failing(UP, SLOW, start, Time::MAX).port_buffer(3_000);
            setup.transport.rto = Time::us(100);
            let outcome = setup.run_both();
            assert_eq!((outcome.ports[uplink(&setup)].drops, outcome.totals.drops), (2, 2));
            assert_eq!(outcome.ports[uplink(&setup)].peak_queue, 2_800);
            let mut setup = Setup::line(5).failing(UP, SLOW, start, Time::MAX);
            setup.switch.ecn = Some(EcnConfig { kmin: 2_000, kmax: 2_000, pmax: 1.0 });
            assert_eq!(setup.run_both().totals.marks, 2);
        }
    }

    /// From 1000 to 3000 ns. The packet in service keeps its rate: the sixth, which began at
    /// 980 ns, and the ninth, which began at 2660 ns and has left at 3460 ns. Then eleven more.
    #[test]
    fn for_a_while() {
        let setup = Setup::line(20).failing(UP, SLOW, Time::ns(1000), Time::ns(3000));
        assert_eq!(received(&setup), Time::ns(3460 + 11 * 80 + 500 + 2 * 580));
        // For longer: the last comes at 2100 ns, where the eighth has 560 of 800 ns to go, before
        // twelve.
        let setup = Setup::line(20).failing(UP, SLOW, Time::ns(1000), Time::us(100));
        let outcome = setup.run_both();
        assert_eq!(outcome.ports[uplink(&setup)].peak_queue, 12_700);
        assert_eq!(outcome.totals.cct, Time::ns(1060 + 14 * 800 + 500 + 2 * 580));
    }

    /// A packet that begins at the very instant has the old rate: the seventh, at 1060 ns, and
    /// after two slow ones the tenth, at 3540 ns.
    #[test]
    fn at_the_very_instant() {
        let setup = Setup::line(20).failing(UP, SLOW, Time::ns(1060), Time::ns(3540));
        // Slow: 1140 to 1940, 2740, 3540, and 4340; then nine.
        assert_eq!(received(&setup), Time::ns(4340 + 9 * 80 + 500 + 2 * 580));
    }

    /// A NIC that gets slower while it sends, and one that gets faster.
    #[test]
    fn a_nic_for_a_while() {
        let link = "host-0 -> leaf-0";
        let setup = Setup::line(10).failing(link, SLOW, Time::ns(100), Time::ns(900));
        // Two at 80 ns; one from 160 to 960; seven.
        assert_eq!(received(&setup), Time::ns(960 + 7 * 80 + 500 + 3 * 580));
    }

    /// The longest queue is told in bytes at the rate of its time: nine packets wait after one
    /// of ten at full rate, and no more when the link is slow.
    #[test]
    fn the_peak_of_a_link_that_gets_slower() {
        let clos = Clos::leaf_spine(1, 1, 11, LINK);
        let list: Vec<_> = (1..11).map(|src| (src, 0, 960)).collect();
        let setup = Setup::new(clos, messages(11, &list));
        let setup = setup.failing("leaf-0 -> host-0", SLOW, Time::ns(700), Time::MAX);
        let outcome = setup.run_both();
        let down = setup.fabric.ports_of(SwitchId(0)).first;
        assert_eq!(outcome.ports[down].peak_queue, 10_000);
        // Two have begun by 700 ns.
        assert_eq!(outcome.totals.cct, Time::ns(580 + 2 * 80 + 8 * 800 + 500));
    }
}

mod dead {
    use super::*;

    /// From 200 to 400 ns: the third to fifth packet are on the wire, [160, 240) to [320, 400).
    #[test]
    fn loses_what_is_on_the_wire() {
        let over = |start, end| {
            let setup = Setup::line(10).failing("host-0 -> leaf-0", DEAD, start, end);
            let outcome = setup.run_both();
            let message = outcome.messages[MessageId(0)];
            let totals = outcome.totals;
            let lost = u64::from(message.lost);
            assert_eq!((totals.wire_drops, totals.wire_dropped_bytes), (lost, 1000 * lost));
            assert_eq!((totals.drops, totals.retransmits, totals.spurious), (0, lost, 0));
            (lost, message.received)
        };
        // Each comes again a time-out after it left.
        let third = Time::ms(1) + Time::ns(2 * 80 + 2320);
        assert_eq!(over(Time::ns(200), Time::ns(400)), (3, third + Time::ns(160)));
        // To the picosecond.
        let (ps, before) = (Time::ps(1), Time::ns(240));
        assert_eq!(over(before - ps, Time::ns(241)), (2, third + Time::ns(80)));
        assert_eq!(over(before, Time::ns(241)), (1, third + Time::ns(80)));
        assert_eq!(over(Time::ns(239), before), (1, third));
        assert_eq!(over(Time::ns(239), before + ps), (2, third + Time::ns(80)));
        assert_eq!(over(Time::us(2), Time::us(3)).0, 0);
    }

    /// What is lost on the way back is no loss of data.
    #[test]
    fn acknowledgements_are_lost_too() {
        // They come to the spine every 80 ns from 3328 ns on, and take 4 ns: five of ten.
        let setup =
            Setup::line(10).failing("spine-0 -> leaf-0", DEAD, Time::ns(3331), Time::ns(3649));
        let outcome = setup.run_both();
        assert_eq!((outcome.totals.wire_drops, outcome.totals.wire_dropped_bytes), (5, 250));
        // The later ones say that all is here.
        let message = outcome.messages[MessageId(0)];
        assert_eq!((message.lost, message.retransmits, outcome.totals.drops), (0, 0, 0));
    }

    /// A dead link is no slower for its port, and takes what the port gives it.
    #[test]
    fn ports_do_not_notice() {
        let setup = Setup::line(10).failing(UP, DEAD, Time::ZERO, Time::us(100));
        let outcome = setup.run_both();
        assert_eq!(outcome.messages[MessageId(0)].lost, 10);
        let up = outcome.ports[uplink(&setup)];
        assert_eq!((up.packets, up.bytes), (20, 20_000));
    }

    /// Ten packets are lost together: that is one time-out. Two in a row without anything between
    /// them, and the next one takes twice as long, for what is out as well, until something gets through; 16 times
    /// at most. Whether it has, the NIC looks 16 times in a usual time-out.
    #[test]
    fn time_outs_double_while_nothing_gets_through() {
        let back = |backs_off, end| {
            let mut setup = Setup::line(10).failing(UP, DEAD, Time::ZERO, Time::us(end));
            setup.transport.backs_off = backs_off;
            received(&setup)
        };
        let (first, last) = (Time::ns(2320), Time::ns(9 * 80 + 2320));
        let look = Time::ns(62_500);
        for backs_off in [false, true] {
            assert_eq!(back(backs_off, 500), Time::ms(1) + last);
        }
        assert_eq!(back(false, 1_500), Time::ms(2) + last);
        // The first one comes again after 2 ms and ends the longer time-out of the others, which left at 1 ms.
        assert_eq!(back(true, 1_500), Time::ms(2) + look + last - Time::ns(80));
        // 1, 2, 4, 8, 16, 32 and 48 ms; the others 1, 3, 7, 15, 31 and 47, which is behind a gap.
        assert_eq!(back(false, 33_000), Time::ms(33) + last);
        assert_eq!(back(true, 33_000), Time::ms(48) + first);
    }

    /// A slow link that dies: what is on its wire longer is lost longer. From 1400 to 1500 ns the
    /// second packet is on it, 1380 to 2180 ns.
    #[test]
    fn slow_and_dead() {
        let setup = Setup::line(3).failing(UP, SLOW, Time::ZERO, Time::MAX);
        let setup = setup.failing(UP, DEAD, Time::ns(1400), Time::ns(1500));
        assert_eq!(setup.run_both().messages[MessageId(0)].lost, 1);
    }
}

mod flaky {
    use super::*;

    /// Every packet that meets a burst is lost, and no other: bursts as the failure tells them,
    /// packets as the link at line rate has them.
    #[test]
    fn bursts_take_what_meets_them() {
        let mut all = 0;
        for (regular, seed) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let kind = FailureKind::Flaky { every: Time::us(10), length: Time::us(1), regular };
            let end = Time::us(100);
            let mut setup = Setup::line(1000).failing("host-0 -> leaf-0", kind, Time::us(5), end);
            setup.seed = seed;
            let failures = Failures::new(&setup.fabric, &setup.failures, seed).unwrap();
            let bursts: Vec<_> = failures.bursts(PortId(0)).flatten().collect();
            let meets = |packet: &u64| {
                let (from, to) = (Time::ns(packet * 80), Time::ns(packet * 80 + 80));
                bursts.iter().any(|burst| burst.0 < to && burst.1 > from)
            };
            let expected = (0..1000).filter(meets).count();
            let outcome = setup.run_both();
            assert_eq!(outcome.messages[MessageId(0)].lost, expected as u32, "{regular} {seed}");
            assert_eq!(outcome.totals.wire_drops, expected as u64);
            all += expected;
        }
        // About a tenth of what came between 5 and 80 us.
        assert!((100..1000).contains(&all), "{all}");
    }
}

mod detected {
    use super::*;

    const RATE: Rate = Rate::gbps(10);

    /// `packets` at 10 Gb/s, which come to the leaf at 580 ns + 800 k, over the one of two
    /// spines that the hash chooses; which fails from 5 to 20 us, found out `detect` later.
    fn around(packets: u64, detect: Option<Time>, end: Time) -> (Setup, PortId, PortId) {
        let clos = Clos::leaf_spine(2, 2, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, packets * 960)]));
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        setup.transport.congestion =
            CongestionConfig::FixedRate(FixedRateConfig { rate: Some(RATE) });
        let first = uplink(&setup);
        let usual = setup.run();
        let uses_first = usual.ports[first].packets > 0;
        let (mine, other) = (u32::from(!uses_first), u32::from(uses_first));
        let (mine, other) = (PortId(first.0 + mine), PortId(first.0 + other));
        assert_eq!(usual.ports[other].packets, 0);
        let link = setup.fabric.port_name(mine);
        let kind = FailureKind::down(detect);
        (setup.failing(&link, kind, Time::us(5), end), mine, other)
    }
    fn packets(outcome: &Outcome, port: PortId) -> u64 {
        let PortResult { packets, .. } = outcome.ports[port];
        packets
    }

    /// Found out 10 us later: 13 packets, the seventh to the 19th (14,980 ns), are lost. The
    /// others go around, and the lost ones too when they come again.
    #[test]
    fn routing_goes_around() {
        let (setup, mine, other) = around(50, Some(Time::us(10)), Time::MAX);
        let outcome = setup.run_both();
        assert_eq!(outcome.messages[MessageId(0)].lost, 13);
        assert_eq!((packets(&outcome, mine), packets(&outcome, other)), (19, 50 - 19 + 13));
        assert_eq!((outcome.totals.retransmits, outcome.totals.spurious), (13, 0));
        // A packet that comes at the very instant does not know yet.
        let (setup, mine, _) = around(50, Some(Time::ns(14_980 - 5_000)), Time::MAX);
        assert_eq!(packets(&setup.run_both(), mine), 19);
        let (setup, mine, _) = around(50, Some(Time::ns(14_979 - 5_000)), Time::MAX);
        assert_eq!(packets(&setup.run_both(), mine), 18);
    }

    /// Back at 20 us, known at 30 us: from the 20th packet (15,780 ns) to the 37th (29,380 ns)
    /// all go around.
    #[test]
    fn and_comes_back() {
        let (setup, mine, other) = around(50, Some(Time::us(10)), Time::us(20));
        let outcome = setup.run_both();
        assert_eq!(outcome.messages[MessageId(0)].lost, 13);
        assert_eq!((packets(&outcome, mine), packets(&outcome, other)), (50 - 18 + 13, 18));
    }

    /// Nobody finds out, or not in time: all that comes between 5 and 20 us is lost.
    #[test]
    fn what_nobody_finds_out() {
        for detect in [None, Some(Time::us(15)), Some(Time::us(500))] {
            let (setup, mine, other) = around(50, detect, Time::us(20));
            let outcome = setup.run_both();
            // The seventh to the 25th, 5,380 to 19,780 ns.
            assert_eq!(outcome.messages[MessageId(0)].lost, 19);
            assert_eq!((packets(&outcome, mine), packets(&outcome, other)), (50 + 19, 0));
        }
    }

    /// A half takes the spine that dies. What of it is lost times out packet by packet, and goes by the other spine:
    /// only the first time-out is about the path that the half is on.
    #[test]
    fn a_pinned_flow_moves_once_for_what_was_lost_together() {
        let clos = Clos::leaf_spine(2, 2, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, 100 * 960)])).under(ethereal());
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        let mine = uplink(&setup);
        let setup = setup.failing(UP, DEAD, Time::us(5), Time::MAX);
        let outcome = setup.run_both();
        let lost = outcome.messages[MessageId(0)].lost;
        assert!(lost > 20, "{lost}");
        assert_eq!((outcome.totals.retransmits, outcome.totals.spurious), (u64::from(lost), 0));
        assert_eq!(packets(&outcome, mine), 50);
        assert_eq!(packets(&outcome, PortId(mine.0 + 1)), 50 + u64::from(lost));
    }

    /// Known from the very beginning.
    #[test]
    fn at_once() {
        let (mut setup, mine, other) = around(50, Some(Time::ZERO), Time::MAX);
        setup.failures[0].start = Time::ZERO;
        let outcome = setup.run_both();
        assert_eq!(outcome.messages[MessageId(0)].lost, 0);
        assert_eq!((packets(&outcome, mine), packets(&outcome, other)), (0, 50));
    }

    /// Where no way is left, the leaf drops what it cannot send, as if a link had lost it: ten
    /// packets until routing knows of the end, at 2 us.
    #[test]
    fn no_way_is_left() {
        let kind = FailureKind::down(Some(Time::us(1)));
        let setup = Setup::line(10).failing(UP, kind, Time::ZERO, Time::us(1) + Time::ps(1));
        let outcome = setup.run_both();
        // Those of 580, 660, .. 980 ns meet the dead link, the others no way.
        assert_eq!(outcome.totals.wire_drops, 10);
        assert_eq!(outcome.messages[MessageId(0)].lost, 10);
        assert_eq!(packets(&outcome, uplink(&setup)), 6 + 10);
        assert_eq!(packets(&outcome, setup.fabric.nic(HostId(0))), 20);
    }

    /// Two links to the only spine, of which each leaf loses another one: no path by name is left, and
    /// what is pinned to one goes by the link that is, once routing knows.
    #[test]
    fn members_of_a_bundle_stand_in_for_each_other() {
        let mut clos = Clos::leaf_spine(2, 1, 2, LINK);
        clos.leaf_bundle.members = 2;
        for scheme in SchemeConfig::all() {
            let mut setup = Setup::new(clos, messages(4, &[(0, 2, 9600), (3, 1, 9600)]));
            if scheme.fits(&setup.fabric).is_err() {
                continue;
            }
            setup = setup.under(scheme.clone());
            setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
            setup.transport.rto = Time::us(20);
            setup.stall_after = Time::ms(5);
            let ups = |leaf| setup.fabric.ports_of(SwitchId(leaf)).ids().skip(2);
            let dead = [ups(0).next().unwrap(), ups(1).nth(1).unwrap()];
            let ends = |port| [port, setup.fabric.ports()[port].reverse];
            let links = dead.map(|port| ends(port).map(|port| setup.fabric.port_name(port)));
            let kind = FailureKind::down(Some(Time::us(5)));
            for link in links.as_flattened() {
                setup = setup.failing(link, kind, Time::ns(1), Time::MAX);
            }
            assert_eq!(setup.try_run().err(), None, "{}", scheme.name());
        }
    }

    /// A flow that no dead link concerns goes where it went.
    #[test]
    fn who_is_not_concerned_stays() {
        let clos = Clos::leaf_spine(3, 4, 4, LINK);
        let pairs = (0..4).flat_map(|host| [(host, 7 - host, 9600), (host + 4, host, 960)]);
        let setup = Setup::new(clos, messages(12, &pairs.collect::<Vec<_>>()));
        let usual = setup.run_both();
        let kind = FailureKind::down(Some(Time::ZERO));
        let setup = setup.failing("leaf-2 <-> spine-1", kind, Time::ZERO, Time::MAX);
        assert_eq!(setup.run_both().ports, usual.ports);
    }

    /// Nobody finds out, but a scheme that moves after a time-out does.
    #[test]
    fn some_schemes_find_out() {
        let uplinks = |time_outs: &str| {
            let (around, ..) = around(50, None, Time::us(20));
            let clos = Clos::leaf_spine(2, 8, 1, LINK);
            let scheme = SchemeConfig::read("host-flowlets", &[("time_outs", time_outs)]).unwrap();
            let mut setup = Setup::new(clos, around.workload.clone()).under(scheme);
            setup.transport = around.transport;
            let first = uplink(&setup);
            let usual = setup.run();
            let used = |outcome: &Outcome| {
                let ports = (first.0..first.0 + 8).map(PortId);
                ports.filter(|port| packets(outcome, *port) > 0).collect::<Vec<_>>()
            };
            assert_eq!(used(&usual).len(), 1);
            let link = setup.fabric.port_name(used(&usual)[0]);
            let setup = setup.failing(&link, DEAD, Time::us(5), Time::us(20));
            used(&setup.run_both()).len()
        };
        assert_eq!(uplinks("false"), 1);
        assert!(uplinks("true") > 1);
    }
}

mod known_to_hosts {
    use super::*;
    use weft_fabric::Queued;
    use weft_workload::Workload;

    const KNOWN: FailureKind = FailureKind::down(Some(Time::ZERO));
    const ALONE: FailureKind =
        FailureKind::Down { detect: Some(Time::ZERO), queued: Queued::Drains, hosts_know: false };

    /// Two messages over four spines under Ethereal, the second one 60 us after the first; the link to one spine is
    /// dead from `start` to `end`. How many packets were lost on the wire, and how many entered the link.
    fn two(kind: FailureKind, start: Time, end: Time) -> (u64, u64) {
        run((kind, start, end), [Time::ZERO, Time::us(60)])
    }
    fn run((kind, start, end): (FailureKind, Time, Time), posted: [Time; 2]) -> (u64, u64) {
        let mut workload = Workload::new(2);
        for start in posted {
            workload.push(
                weft_workload::Message { start, ..crate::common::message(0, 1, 96_000) },
                &[],
            );
        }
        let clos = Clos::leaf_spine(2, 4, 1, LINK);
        let setup = Setup::new(clos, workload).under(crate::common::ethereal());
        let mut setup = setup.failing("leaf-0 <-> spine-0", kind, start, end);
        setup.transport.rto = Time::us(30);
        let outcome = setup.run_both();
        (outcome.totals.wire_drops, outcome.ports[uplink(&setup)].packets)
    }
    #[test]
    fn what_is_dead_from_the_start_is_avoided() {
        assert_eq!(two(KNOWN, Time::ZERO, Time::MAX), (0, 0));
        // A quarter of the first message, until it times out.
        let (lost, sent) = two(ALONE, Time::ZERO, Time::MAX);
        assert!(lost >= 25 && lost == sent, "{lost} of {sent}");
    }

    /// Whether routing learns of it or not: nobody tells hosts that have begun.
    #[test]
    fn what_dies_later_is_not_known() {
        for detect in [Some(Time::ZERO), Some(Time::us(20)), None] {
            let (lost, _) = two(FailureKind::down(detect), Time::us(3), Time::MAX);
            assert!(lost > 0, "{detect:?}");
        }
        // Nor what routing has not found out by then.
        let slow = FailureKind::down(Some(Time::us(1)));
        assert!(two(slow, Time::ZERO, Time::MAX).0 > 0);
    }

    /// A quarter of the second message.
    #[test]
    fn what_is_back_is_used_again() {
        assert_eq!(two(KNOWN, Time::ZERO, Time::us(50)), (0, 25));
        // The second one is early for that.
        assert_eq!(two(FailureKind::down(Some(Time::ZERO)), Time::ZERO, Time::us(61)), (0, 0));
    }

    /// What counts is what routing knows when the traffic begins.
    #[test]
    fn traffic_that_begins_later_knows_more() {
        let dead = (FailureKind::down(Some(Time::us(20))), Time::us(10), Time::MAX);
        assert_eq!(run(dead, [Time::us(40), Time::us(100)]), (0, 0));
        assert!(run(dead, [Time::us(29), Time::us(100)]).0 > 0);
    }
}

/// A path that lost packets is probed under MRC: it takes the place of others when its link is back, and not before.
#[test]
fn paths_come_back_when_probes_do() {
    let losses = |back: Time| {
        let clos = Clos::leaf_spine(2, 8, 1, LINK);
        let options = [
            ("entropies", "8"),
            ("active", "6"),
            ("carried", "structured"),
            ("probe_every", "50us"),
            ("good_probes", "2"),
        ];
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, 40_000_000)]))
            .under(SchemeConfig::read("mrc", &options).unwrap());
        setup.transport.recovery = RecoveryConfig::read("uet", &[]).unwrap();
        setup.transport.rto = Time::us(60);
        let up = |spine| format!("leaf-0 -> spine-{spine}");
        // One that is in use, and later three others: two of them have backups.
        let mut setup = setup.failing(&up(0), DEAD, Time::us(10), back);
        for spine in [1, 3, 4] {
            setup = setup.failing(&up(spine), DEAD, Time::us(600), Time::MAX);
        }
        let outcome = setup.run();
        let name = |port: &PortId| setup.fabric.port_name(*port) == up(0);
        let first = setup.fabric.ports().ids().find(name).unwrap();
        (outcome.totals.retransmits, outcome.ports[first].packets)
    };
    let (lost, sent) = losses(Time::MAX);
    // What was on its way for a time-out, and then probes only.
    assert!((1..400).contains(&sent) && lost > 0, "{sent} packets by a dead link");
    let (_, sent) = losses(Time::us(300));
    assert!(sent > 1000, "{sent} packets by a link that is back");
}
