//! PFC at a fixed threshold, by pencil and paper: one sender over a port of a tenth of its rate.
//!
//! A full packet takes 80 ns from the sender, 800 ns at the slow port, and 500 ns on a link. The
//! first is at the leaf at 580 ns and has left it at 1380 ns; the k-th comes 80 k later. A pause
//! frame takes 5.12 ns.

use crate::common::{LINK, Setup, messages};
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Buffer, Outcome, PfcConfig};
use weft_units::{HostId, MessageId, SwitchId, Time};

const PFC: PfcConfig = PfcConfig {
    threshold: Some(3_000),
    alpha: 1.0,
    reserve: 0,
    headroom: None,
    resume_offset: 1_000,
};

/// `packets` from host 1 to host 0, whose link lost nine tenths.
fn slow(packets: u64, pfc: PfcConfig) -> Setup {
    let clos = Clos::leaf_spine(1, 1, 3, LINK);
    let mut setup = Setup::new(clos, messages(3, &[(1, 0, packets * 960)]));
    setup.switch.buffer = Buffer::PerPort { bytes: 3_000 };
    setup.switch.pfc = Some(pfc);
    setup.failures = vec![Failure {
        links: LinkChoice::Named(vec!["leaf-0 -> host-0".into()]),
        kind: FailureKind::Degraded { lost: 0.9 },
        start: Time::ZERO,
        end: Time::MAX,
    }];
    setup
}
fn run(setup: &Setup) -> Outcome {
    let outcome = setup.run_both();
    assert_eq!((outcome.totals.drops, outcome.totals.retransmits), (0, 0));
    outcome
}
/// How often the NIC of the sender was paused, and for how long.
fn paused(setup: &Setup, outcome: &Outcome) -> (u64, Time) {
    let nic = outcome.ports[setup.fabric.nic(HostId(1))];
    assert_eq!(nic.pauses, outcome.totals.pauses);
    (nic.pauses, nic.paused)
}
fn ps(ns: u64, more: u64) -> Time {
    Time::ns(ns) + Time::ps(more)
}

/// Three packets at once are as much as the threshold, and no more.
#[test]
fn nobody_pauses_at_the_threshold() {
    let setup = slow(3, PFC);
    assert_eq!(paused(&setup, &run(&setup)), (0, Time::ZERO));
    // Four are more. The frame arrives long after the last packet.
    let setup = slow(4, PFC);
    let outcome = run(&setup);
    assert_eq!(outcome.totals.pauses, 1);
    // A byte decides.
    let setup = slow(4, PfcConfig { threshold: Some(4_000), ..PFC });
    assert_eq!(run(&setup).totals.pauses, 0);
    let setup = slow(4, PfcConfig { threshold: Some(3_999), ..PFC });
    assert_eq!(run(&setup).totals.pauses, 1);
}

/// The fourth packet comes at 820 ns; its pause is at the sender at 1325.12 ns, in the middle of
/// the 17th packet. The leaf holds less than 2001 bytes when 15 of them have left, at 12,580 ns.
#[test]
fn a_pause_from_threshold_to_offset() {
    let setup = slow(19, PFC);
    let outcome = run(&setup);
    assert_eq!(paused(&setup, &outcome), (1, Time::ns(12_580 - 820)));
    // The slow port never idles.
    assert_eq!(outcome.totals.cct, Time::ns(580 + 19 * 800 + 500));
    // When the 17th comes, at 1860 ns, one has left, and 480 ns of the second.
    let down = setup.fabric.ports_of(SwitchId(0)).first;
    assert_eq!(outcome.ports[down].peak_queue, 16_000 - 600);
    // Of 20 packets the last three come before any of them has left, and one was there: again
    // more than the threshold.
    let setup = slow(20, PFC);
    assert_eq!(paused(&setup, &run(&setup)).0, 2);
}

/// Without an offset 14 must leave, 11,780 ns; with an offset beyond the threshold all must.
#[test]
fn other_offsets() {
    let setup = slow(18, PfcConfig { resume_offset: 0, ..PFC });
    assert_eq!(paused(&setup, &run(&setup)), (1, Time::ns(11_780 - 820)));
    // A byte more is a packet more.
    let setup = slow(18, PfcConfig { resume_offset: 1, ..PFC });
    assert_eq!(paused(&setup, &run(&setup)), (1, Time::ns(12_580 - 820)));
    for resume_offset in [3_000, 1 << 40] {
        let setup = slow(19, PfcConfig { resume_offset, ..PFC });
        let outcome = run(&setup);
        assert_eq!(paused(&setup, &outcome), (1, Time::ns(580 + 17 * 800 - 820)));
        // The last two begin anew: 5.12 + 500 + 580 ns after the port has emptied.
        let again = Time::ns(580 + 17 * 800) + ps(505, 120) + Time::ns(580);
        assert_eq!(outcome.totals.cct, again + Time::ns(2 * 800 + 500));
    }
}

/// The buffer of a port plays no part, nor do `alpha` and `reserve`.
#[test]
fn what_does_not_matter() {
    let usual = run(&slow(40, PFC));
    let mut setup = slow(40, PfcConfig { alpha: 0.1, reserve: 50_000, ..PFC });
    assert_eq!(run(&setup), usual);
    setup.switch.buffer = Buffer::PerPort { bytes: 1 };
    assert_eq!(run(&setup), usual);
    let bytes = 10_000_000;
    setup.switch.buffer = Buffer::Shared { bytes, alpha: 1.0 };
    assert_eq!(run(&setup).messages, usual.messages);
}

/// Every ingress has a threshold of its own, whatever else is in the switch.
#[test]
fn ingresses_are_apart() {
    let clos = Clos::leaf_spine(1, 1, 6, LINK);
    // Five senders at once: each holds three packets at most.
    let list: Vec<_> = (1..6).map(|src| (src, 0, 3 * 960)).collect();
    let mut setup = Setup::new(clos, messages(6, &list));
    setup.switch.buffer = Buffer::PerPort { bytes: 3_000 };
    setup.switch.pfc = Some(PFC);
    let outcome = run(&setup);
    assert_eq!(outcome.totals.pauses, 0);
    assert_eq!(outcome.totals.cct, Time::ns(580 + 15 * 80 + 500));
    setup.switch.pfc = Some(PfcConfig { threshold: Some(2_999), ..PFC });
    let outcome = run(&setup);
    assert!((1..=5).contains(&outcome.totals.pauses), "{}", outcome.totals.pauses);
}

/// Headroom for two packets: of the 17, three are in, two in headroom; six come before the first
/// has left, of which the sixth at that very instant, and are lost; then there is room for one,
/// and the last five are lost.
#[test]
fn too_little_headroom() {
    let mut setup = slow(17, PfcConfig { headroom: Some(2_000), ..PFC });
    setup.transport.rto = Time::ms(1);
    setup.transport.recovery = weft_transport::RecoveryConfig::SELECTIVE_REPEAT;
    let outcome = setup.run();
    let message = outcome.messages[MessageId(0)];
    assert_eq!(message.lost, outcome.totals.drops as u32);
    // Sent again, 11 packets come as fast: three, two, five and one.
    assert_eq!(outcome.totals.drops, 11 + 5);
}

/// A pause frame that waits behind a packet on a slow way back comes late: headroom knows. Here it
/// takes 50 times as long, during which the sender goes on.
#[test]
fn headroom_for_a_slow_way_back() {
    let mut setup = slow(200, PFC);
    setup.workload = messages(3, &[(1, 0, 200 * 960), (0, 1, 200 * 960)]);
    setup.failures.push(Failure {
        links: LinkChoice::Named(vec!["leaf-0 -> host-1".into()]),
        kind: FailureKind::Degraded { lost: 0.98 },
        start: Time::ZERO,
        end: Time::MAX,
    });
    (setup.transport.rto, setup.stall_after) = (Time::ms(10), Time::ms(100));
    let outcome = setup.run();
    assert!(outcome.totals.pauses > 0);
    assert_eq!(outcome.totals.drops, 0);
}
