//! Buffers: PFC loses nothing under any incast, per-port buffers drop, and a shared buffer
//! holds each queue to its dynamic threshold.

use crate::common::compare::confirmed;
use crate::common::random::{clos, packet};
use crate::common::{LINK, Setup, all_to_all, dctcp, incast, messages, pattern};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failures};
use weft_sim::ports::pfc_set_aside;
use weft_sim::{Buffer, PfcConfig, ProbeConfig};
use weft_transport::FixedRateConfig;
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, SwitchId, Time};
use weft_workload::pattern::{AllToAll, Incast, Launch, Pattern};

const PFC: PfcConfig =
    PfcConfig { threshold: None, alpha: 1.0, reserve: 2000, headroom: None, resume_offset: 2000 };

/// Lossless switches with `shared` bytes beside reserves and headroom.
fn lossless(mut setup: Setup, pfc: PfcConfig, shared: u64) -> Setup {
    let bytes = pfc_set_aside(&setup.fabric, &Failures::default(), &setup.packet, &pfc) + shared;
    setup.switch.buffer = Buffer::Shared { bytes, alpha: 1.0 };
    setup.switch.pfc = Some(pfc);
    setup
}
/// 15 hosts of 2 leaves send 100 packets each to host 0, without congestion control.
fn fifteen_to_one() -> Setup {
    let clos = Clos::leaf_spine(2, 2, 8, LINK);
    Setup::new(clos, incast(&clos, 96_000))
}

trials! {
    /// Buffers down to nothing but headroom: then every packet pauses its sender.
    fn nothing_is_lost(
        clos in clos(),
        packet in packet(),
        senders in prop::option::of(1u32..40),
        bytes in 10_000u64..60_000,
        shared in prop_oneof![Just(0), 0u64..3000, 0u64..100_000],
        alpha in 0.05f64..8.0,
        reserve in prop_oneof![Just(0), 0u64..5000],
        resume_offset in 0u64..10_000,
        blast in any::<bool>(),
    ) {
        let traffic = match senders {
            Some(n) => {
                let senders = Some(n.min(clos.hosts() - 1));
                Pattern::Incast(Incast { senders, receiver: 0 })
            }
            None => Pattern::AllToAll(AllToAll { launch: Launch::SameRank { start: 0 }, skew: None }),
        };
        let pfc = PfcConfig { threshold: None, alpha, reserve, headroom: None, resume_offset };
        let mut setup = Setup { packet, ..Setup::new(clos, pattern(&clos, &traffic, bytes)) };
        if !blast {
            setup.transport.congestion = dctcp(30_000, 100_000);
        }
        let outcome = lossless(setup, pfc, shared).run();
        prop_assert_eq!(outcome.totals.drops, 0);
        prop_assert_eq!(outcome.totals.retransmits, outcome.totals.spurious, "late, never lost");
    }
}

#[test]
fn an_incast_pauses_instead_of_dropping() {
    let setup = lossless(fifteen_to_one(), PFC, 30_000);
    let outcome = setup.run();
    assert_eq!((outcome.totals.drops, outcome.totals.retransmits), (0, 0));
    assert!(outcome.totals.pauses > 100, "{} pauses", outcome.totals.pauses);
    // The receiver's link never idles: 1500 packets of 80 ns after the first has come.
    let first = Time::ns(580);
    assert_eq!(outcome.totals.cct, first + Time::ns(1500 * 80 + 500));
    // Pauses reach the senders, and their NICs are held for about half of the time.
    let nic = &outcome.ports[setup.fabric.nic(HostId(1))];
    assert!(nic.pauses > 0 && nic.paused > Time::us(50), "{nic:?}");
    assert!(nic.paused < outcome.totals.cct);
}

#[test]
fn the_same_incast_drops_without_pfc() {
    let outcome = fifteen_to_one().port_buffer(30_000).run();
    assert!(outcome.totals.drops > 100 && outcome.totals.pauses == 0);
    let mut shared = fifteen_to_one();
    shared.switch.buffer = Buffer::Shared { bytes: 30_000, alpha: 1.0 };
    assert!(shared.run().totals.drops > 100);
}

/// The headroom that is worked out is needed: with a quarter of it packets are lost.
#[test]
fn too_little_headroom_drops() {
    let setup = fifteen_to_one();
    let aside = pfc_set_aside(
        &setup.fabric,
        &Failures::default(),
        &setup.packet,
        &PfcConfig { reserve: 0, ..PFC },
    );
    let each = aside / 10; // The leaves have 10 ports.
    for (headroom, drops) in [(each / 4, 1), (0, 1), (each, 0)] {
        let pfc = PfcConfig { headroom: Some(headroom), ..PFC };
        let totals = lossless(setup.clone(), pfc, 30_000).run().totals;
        assert!(totals.drops >= drops && (drops > 0 || totals.drops == 0), "{totals:?}");
        assert!(totals.pauses > 10, "it pauses all the same: {totals:?}");
    }
}

/// Ingresses near their thresholds nearly all the time, fixed and dynamic ones: whether somebody is paused in a window
/// depends on what leaves in it, and on which ports are held meanwhile.
#[test]
fn whether_a_window_is_calm_depends_on_what_leaves() {
    let clos = Clos::fat_tree(8, LINK);
    let spray = SchemeConfig::read("spray-label", &[]).unwrap();
    for (threshold, shared) in [(Some(8_000), 0), (None, 12_000)] {
        let pfc = PfcConfig { threshold, alpha: 64.0, reserve: 0, ..PFC };
        let mut setup = Setup::new(clos, all_to_all(&clos, 6_000)).under(spray.clone());
        setup.transport.congestion = FixedRateConfig { rate: None }.into();
        let outcome = confirmed(&lossless(setup, pfc, shared)).unwrap();
        assert!(outcome.totals.pauses > 60 && outcome.totals.drops == 0, "{:?}", outcome.totals);
    }
}

/// With a class of its own, control is not held by a pause of the data: the acknowledgements
/// that host 1 owes leave its NIC although that is paused most of the time.
#[test]
fn a_pause_spares_control_of_a_class_of_its_own() {
    let clos = Clos::leaf_spine(1, 1, 16, LINK);
    // Hosts 1 to 15 overload host 0, so that their NICs are paused; host 0 sends to host 1.
    let mut list: Vec<_> = (1..16).map(|host| (host, 0, 192_000)).collect();
    list.push((0, 1, 19_200));
    let pfc = PfcConfig { reserve: 0, ..PFC };
    let mut setup = lossless(Setup::new(clos, messages(16, &list)), pfc, 5_000);
    let sent = |setup: &Setup| {
        let outcome = setup.run();
        assert!(outcome.totals.pauses > 0 && outcome.totals.drops == 0);
        outcome.messages[weft_units::MessageId(15)].sent
    };
    let held = sent(&setup);
    setup.switch.control_priority = true;
    let spared = sent(&setup);
    // 20 packets of 80 ns and a round trip of 2168 ns; on the way there are PFC frames, other
    // acknowledgements and a packet in service to wait for, but no pause.
    assert!(spared < Time::ns(2 * (20 * 80 + 2168)), "{spared}");
    assert!(held > spared * 2, "{held} held, {spared} spared");
}

/// A sender of 100 Gb/s, a pause on the way: headroom by pencil and paper. In the worst case
/// the pause waits for a full packet (80 ns), is sent (64 bytes, 5.12 ns), travels 500 ns, and
/// what left until then arrives 500 ns later: 1085.12 ns or 13,564 bytes, a packet more that
/// has just begun, and the one that made the pause.
#[test]
fn headroom_by_hand() {
    let setup = fifteen_to_one();
    let pfc = PfcConfig { reserve: 0, ..PFC };
    let aside = pfc_set_aside(&setup.fabric, &Failures::default(), &setup.packet, &pfc);
    assert_eq!(aside, 10 * (13_564 + 2 * 1000));
}

/// One queue of a shared buffer of B bytes gets at most alpha B / (1 + alpha), because what it
/// takes is not free any more; with alpha = 1 half of it. Two queues get a third each.
#[test]
fn queues_keep_to_the_dynamic_threshold() {
    let clos = Clos::leaf_spine(1, 1, 10, LINK);
    let to = |list: &[u32]| {
        let pairs = list.iter().flat_map(|dst| (2..10).map(|src| (src, *dst, 96_000)));
        pairs.collect::<Vec<_>>()
    };
    for (alpha, receivers, expected) in [
        (1.0, &[0][..], 100_000.0),
        (1.0, &[0, 1], 66_667.0),
        (0.5, &[0], 66_667.0),
        (3.0, &[0], 150_000.0),
    ] {
        let mut setup = Setup::new(clos, messages(10, &to(receivers)));
        setup.switch.buffer = Buffer::Shared { bytes: 200_000, alpha };
        let down = setup.fabric.ports_of(SwitchId(0)).first;
        setup.probes = ProbeConfig {
            interval: Some(Time::ns(100)),
            ports: vec![down],
            switches: vec![SwitchId(0)],
            ..ProbeConfig::default()
        };
        let outcome = setup.run();
        assert!(outcome.totals.drops > 0);
        let peak = outcome.ports[down].peak_queue as f64;
        let packet = 1000.0;
        // One queue alone may stand higher before a second one has built up.
        if receivers.len() == 1 {
            assert!(peak <= expected + packet, "alpha {alpha}: {peak}, not {expected}");
        }
        assert!(peak >= expected - 2.0 * packet, "alpha {alpha}: {peak}, not {expected}");
        let used = outcome.series[1].bytes.iter().max().unwrap();
        let all = receivers.len() as f64 * expected;
        assert!((*used as f64) < all + 4.0 * packet, "{used} bytes in the switch, not {all}");
    }
}

/// A port of N packets takes N and drops the next.
#[test]
fn a_port_buffer_holds_what_it_says() {
    let clos = Clos::leaf_spine(1, 1, 9, LINK);
    let list: Vec<_> = (1..9).map(|src| (src, 0, 960)).collect();
    // 8 packets arrive at once.
    for (packets, drops) in [(8, 0), (7, 1), (5, 3)] {
        let setup = Setup::new(clos, messages(9, &list)).port_buffer(packets * 1000);
        let first = setup.run();
        let at = |port: PortId| first.ports[port].drops;
        let down = setup.fabric.ports_of(SwitchId(0)).first;
        // All of the lost ones come back after the time-out, together, and fit then.
        assert_eq!((at(down), first.totals.drops), (drops, drops));
        assert_eq!(first.ports[down].peak_queue, packets * 1000);
        assert_eq!(first.totals.retransmits, drops);
    }
}

/// Odd rates round every packet up; a buffer of so many packets still takes them.
#[test]
fn a_port_buffer_holds_what_it_says_at_odd_rates() {
    for gbps in [37, 300, 600, 1200, 123] {
        let link = weft_fabric::Link { rate: weft_units::Rate::gbps(gbps), delay: LINK.delay };
        let clos = Clos::leaf_spine(1, 1, 9, link);
        let list: Vec<_> = (1..9).map(|src| (src, 0, 960)).collect();
        for packets in [1, 8] {
            let outcome =
                Setup::new(clos, messages(9, &list)).port_buffer(packets * 1000).try_run();
            let drops = outcome.map(|outcome| outcome.totals.drops);
            if packets == 8 {
                assert_eq!(drops, Ok(0), "{gbps}");
            } else {
                assert!(drops.is_ok_and(|drops| drops > 0), "{gbps}");
            }
        }
    }
}

/// Acknowledgements with priority overtake the data that waits in a switch.
#[test]
fn control_overtakes_data() {
    let clos = Clos::leaf_spine(1, 1, 4, LINK);
    // Hosts 2 and 3 fill the queue to host 0, through which the acknowledgements for host 0's
    // own message come.
    let list = [(2, 0, 96_000), (3, 0, 96_000), (0, 1, 960)];
    let mut setup = Setup::new(clos, messages(4, &list));
    let sent = |setup: &Setup| setup.run().messages[weft_units::MessageId(2)].sent;
    // Alone: 2168 ns. In the queue behind data: up to 1 packet of 80 ns in each round more.
    let last = sent(&setup);
    setup.switch.control_priority = true;
    let first = sent(&setup);
    // With priority it waits for the packet in service at most.
    assert!(first >= Time::ns(2168) && first <= Time::ns(2168 + 80), "{first}");
    assert!(last > Time::ns(2168 + 500), "{last}");
}
