//! Runs whose times follow from pencil and paper, to the picosecond.

use crate::common::random::{clos, packet};
use crate::common::{LINK, PACKET, Setup, messages};
use weft_fabric::{Bundle, Clos, Fabric, Link};
use weft_sim::{Outcome, PacketConfig, Service};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Rate, Time, Wire};

/// The only message's (received, sent), alike on both kinds of port.
fn ends(setup: &Setup) -> (Time, Time) {
    let of = |outcome: Outcome| {
        let message = outcome.messages[MessageId(0)];
        (message.received, message.sent)
    };
    let fifo = of(setup.run());
    assert_eq!(fifo, of(setup.run_queued().unwrap()));
    fifo
}
fn lone(clos: Clos, src: u32, dst: u32, bytes: u64) -> Setup {
    let hosts = clos.hosts();
    Setup::new(clos, messages(hosts, &[(src, dst, bytes)]))
}
fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}

/// 80 ps a byte, 500 ns a link; 1000 bytes a full packet, 50 an acknowledgement: a full packet
/// takes 80 ns to serialise, an acknowledgement 4 ns.
mod uniform {
    use super::*;

    #[test]
    fn one_packet_within_a_rack() {
        let setup = lone(Clos::leaf_spine(2, 2, 2, LINK), 0, 1, 960);
        // 2 * (80 + 500) there; 2 * (4 + 500) back.
        assert_eq!(ends(&setup), (Time::ns(1160), Time::ns(2168)));
    }

    #[test]
    fn less_than_a_packet() {
        // One byte and 40 of header: 3280 ps a link.
        let setup = lone(Clos::leaf_spine(2, 2, 2, LINK), 0, 1, 1);
        assert_eq!(ends(&setup).0, Time::ps(2 * (3_280 + 500_000)));
    }

    #[test]
    fn many_packets_over_a_leaf_spine() {
        // 9 full packets and one of 10 + 40 bytes (4 ns). The last enters the first link at
        // 720 ns, and waits at every switch for the full one before it: it reaches the wire
        // of the last link when that has left, at 3 * 580 + 9 * 80 = 2460 ns.
        let setup = lone(Clos::leaf_spine(2, 3, 2, LINK), 0, 3, 9 * 960 + 10);
        // Its acknowledgement finds the way back idle: 4 * (4 + 500).
        assert_eq!(ends(&setup), (Time::ns(2964), Time::ns(2964 + 2016)));
    }

    #[test]
    fn many_packets_over_a_fat_tree() {
        // 6 links: 6 * 580 for the first packet, 80 for each of the 99 others.
        let setup = lone(Clos::fat_tree(4, LINK), 0, 15, 100 * 960);
        let received = Time::ns(6 * 580 + 99 * 80);
        assert_eq!(ends(&setup), (received, received + Time::ns(6 * 504)));
        // Within a pod 4 links, within a rack 2.
        let pod = lone(Clos::fat_tree(4, LINK), 0, 3, 100 * 960);
        assert_eq!(ends(&pod).0, Time::ns(4 * 580 + 99 * 80));
        let rack = lone(Clos::fat_tree(4, LINK), 0, 1, 100 * 960);
        assert_eq!(ends(&rack).0, Time::ns(2 * 580 + 99 * 80));
    }

    #[test]
    fn whose_turn_it_is_at_a_nic() {
        // Ten packets to each of two neighbours. In turn, the first message's last packet is the
        // 19th to leave; the oldest first, it is the 10th. The other's is the 20th either way.
        let clos = Clos::leaf_spine(2, 2, 3, LINK);
        let two = messages(clos.hosts(), &[(0, 1, 9_600), (0, 2, 9_600)]);
        let mut setup = Setup::new(clos, two);
        for (service, first) in [(Service::RoundRobin, 19), (Service::OldestFirst, 10)] {
            setup.service = service;
            for outcome in [setup.run(), setup.run_queued().unwrap()] {
                let received = |id| outcome.messages[MessageId(id)].received;
                let nth = |n: u64| Time::ns(2 * 580 + (n - 1) * 80);
                assert_eq!((received(0), received(1)), (nth(first), nth(20)), "{service:?}");
            }
        }
    }

    #[test]
    fn a_window_of_one_packet_stops_and_waits() {
        // A round trip is 4 * 580 + 4 * 504 = 4336 ns.
        let setup = lone(Clos::leaf_spine(2, 3, 2, LINK), 0, 3, 7 * 960).window(1);
        assert_eq!(ends(&setup), (Time::ns(6 * 4336 + 2320), Time::ns(7 * 4336)));
    }

    #[test]
    fn a_window_below_the_bandwidth_delay_product() {
        // Bursts of 10 packets (800 ns), one a round trip of 4336 ns.
        let setup = lone(Clos::leaf_spine(2, 3, 2, LINK), 0, 3, 30 * 960).window(10);
        let (received, sent) = ends(&setup);
        assert_eq!(received, Time::ns(2 * 4336 + 2320 + 9 * 80));
        assert_eq!(sent, Time::ns(3 * 4336 + 9 * 80));
    }

    #[test]
    fn a_paced_flow() {
        // 10 Gb/s: a packet every 800 ns.
        let mut setup = lone(Clos::leaf_spine(2, 3, 2, LINK), 0, 3, 20 * 960);
        let rate = Some(Rate::gbps(10));
        setup.transport.congestion =
            weft_transport::CongestionConfig::FixedRate(weft_transport::FixedRateConfig { rate });
        assert_eq!(ends(&setup).0, Time::ns(19 * 800 + 2320));
    }

    #[test]
    fn two_queue_pairs_take_turns() {
        // 10 packets each: the first ends with the 19th packet on the wire, the other with
        // the 20th.
        let clos = Clos::leaf_spine(2, 2, 3, LINK);
        let setup = Setup::new(clos, messages(6, &[(0, 1, 9600), (0, 2, 9600)]));
        let outcome = setup.run();
        let received = |id| outcome.messages[MessageId(id)].received;
        assert_eq!(received(0), Time::ns(18 * 80 + 2 * 580));
        assert_eq!(received(1), Time::ns(19 * 80 + 2 * 580));
    }

    #[test]
    fn an_incast_drains_at_line_rate() {
        // 3 hosts of the rack send 5 packets each: 15 packets over the last link, the first of
        // which begins at 580 ns.
        let clos = Clos::leaf_spine(1, 1, 4, LINK);
        let setup = Setup::new(clos, messages(4, &[(1, 0, 4800), (2, 0, 4800), (3, 0, 4800)]));
        let outcome = setup.run();
        assert_eq!(outcome.totals.cct, Time::ns(580 + 15 * 80 + 500));
        // At 580 ns three packets come at once and each round adds two to the queue: after
        // the fifth round, 3 + 4 * 2 = 11 stand there, the one in service whole.
        let down = Fabric::build(&clos).unwrap().sample_path(HostId(1), HostId(0))[1];
        assert_eq!(outcome.ports[down].peak_queue, 11_000);
    }

    #[test]
    fn switches_and_nics_take_their_time() {
        let mut clos = Clos::leaf_spine(2, 3, 2, LINK);
        (clos.switch_latency, clos.nic_latency) = (Time::ns(300), Time::ns(70));
        // Three switches and a NIC each way.
        let setup = lone(clos, 0, 3, 960);
        assert_eq!(ends(&setup), (Time::ns(2320 + 970), Time::ns(2320 + 2016 + 2 * 970)));
    }
}

/// Three packets come to one port at 580 ns, where there is room for two: that of host 3 is
/// lost, because its link has the highest number.
mod losses {
    use super::*;
    use weft_sim::MessageResult;
    use weft_transport::RecoveryConfig;

    /// What becomes of `packets` packets of host 3 after the loss of the first.
    fn third(packets: u64, recovery: RecoveryConfig) -> MessageResult {
        let list = [(1, 0, 960), (2, 0, 960), (3, 0, packets * 960)];
        let clos = Clos::leaf_spine(1, 1, 4, LINK);
        let mut setup = Setup::new(clos, messages(4, &list)).port_buffer(2_000);
        setup.transport.recovery = recovery;
        let outcome = setup.run();
        assert_eq!(outcome.totals.drops, 1);
        assert_eq!(outcome.messages, setup.run_queued().unwrap().messages);
        outcome.messages[MessageId(2)]
    }

    #[test]
    fn a_nack_comes_after_a_round_trip() {
        // The second packet stands behind two others at 660 ns and arrives at 1320 ns. The
        // NACK takes 1008 ns; then both leave again.
        let message = third(2, RecoveryConfig::GO_BACK_N);
        assert_eq!(message.received, Time::ns(1320 + 1008 + 1160 + 80));
        assert_eq!((message.retransmits, message.spurious), (2, 0));
    }

    #[test]
    fn selective_repeat_resends_one_packet_when_its_timer_runs_out() {
        // The timer counts from the send, at zero.
        let message = third(2, RecoveryConfig::SELECTIVE_REPEAT);
        assert_eq!(message.received, Time::ms(1) + Time::ns(1160));
        assert_eq!((message.retransmits, message.spurious), (1, 0));
    }

    #[test]
    fn nobody_reports_a_lost_tail() {
        for recovery in [RecoveryConfig::GO_BACK_N, RecoveryConfig::SELECTIVE_REPEAT] {
            let message = third(1, recovery);
            assert_eq!(message.received, Time::ms(1) + Time::ns(1160));
            assert_eq!((message.retransmits, message.spurious), (1, 0));
        }
    }
}

mod rates {
    use super::*;

    fn tiers(host: Link, uplink: Link) -> Clos {
        let mut clos = Clos::leaf_spine(2, 1, 1, host);
        clos.leaf_bundle = Bundle { link: uplink, members: 1 };
        clos
    }

    #[test]
    fn slow_hosts_under_fast_uplinks() {
        // Host 100G: 80 ns; uplinks 400G: 20 ns. The host's link paces everything.
        let setup = lone(tiers(link(100, 500), link(400, 250)), 0, 1, 50 * 960);
        assert_eq!(ends(&setup).0, Time::ns(2 * (80 + 500) + 2 * (20 + 250) + 49 * 80));
    }

    #[test]
    fn fast_hosts_under_slow_uplinks() {
        // Host 400G: 20 ns; uplinks 100G: 80 ns, which pace.
        let setup = lone(tiers(link(400, 500), link(100, 250)), 0, 1, 50 * 960);
        let received = Time::ns(2 * (20 + 500) + 2 * (80 + 250) + 49 * 80);
        // 50 bytes back: 1 ns and 4 ns.
        let back = Time::ns(2 * (1 + 500) + 2 * (4 + 250));
        assert_eq!(ends(&setup), (received, received + back));
    }
}

/// When the receiver has everything and the sender knows, by the recurrence of store and
/// forward: on every link a packet starts when it is there and the one before it is gone.
fn recurrence(
    fabric: &Fabric,
    packet: &PacketConfig,
    (src, dst): (HostId, HostId),
    bytes: u64,
    window: usize,
) -> (Time, Time) {
    let count = bytes.div_ceil(u64::from(packet.mtu)) as usize;
    let (there, back) = (fabric.sample_path(src, dst), fabric.sample_path(dst, src));
    let mut free = vec![Time::ZERO; there.len() + back.len()];
    let mut acked = vec![Time::ZERO; count];
    let mut received = Time::ZERO;
    for index in 0..count {
        let payload = match index + 1 == count {
            true => bytes - (count as u64 - 1) * u64::from(packet.mtu),
            false => u64::from(packet.mtu),
        };
        let mut at = if index >= window { acked[index - window] } else { Time::ZERO };
        for (hop, port) in there.iter().chain(&back).enumerate() {
            let size = match hop < there.len() {
                true => payload as u32 + packet.header,
                false => packet.ack,
            };
            let port = &fabric.ports()[*port];
            free[hop] = free[hop].max(at) + Wire::new(port.rate).time(size);
            at = free[hop] + port.delay;
            received = if hop + 1 == there.len() { at } else { received };
        }
        acked[index] = at;
    }
    (received, acked[count - 1])
}

trials! {
    /// Any fabric, pair, size and window, odd rates included.
    fn a_lone_flow_follows_the_recurrence(
        clos in clos(),
        pair in any::<(u32, u32)>(),
        bytes in 1u64..60_000,
        packet in packet(),
        window in prop_oneof![1u32..6, 1u32..100],
    ) {
        let hosts = clos.hosts();
        let src = pair.0 % hosts;
        let dst = (src + 1 + pair.1 % (hosts - 1)) % hosts;
        let setup = Setup { packet, ..lone(clos, src, dst, bytes) }.window(window);
        let pair = (HostId(src), HostId(dst));
        let expected = recurrence(&setup.fabric, &packet, pair, bytes, window as usize);
        prop_assert_eq!(ends(&setup), expected);
    }
}

/// The recurrence itself against a time worked out above.
#[test]
fn the_recurrence_agrees_with_pencil_and_paper() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 3, 2, LINK)).unwrap();
    let ends = recurrence(&fabric, &PACKET, (HostId(0), HostId(3)), 9 * 960 + 10, 100);
    assert_eq!(ends, (Time::ns(2964), Time::ns(4980)));
}
