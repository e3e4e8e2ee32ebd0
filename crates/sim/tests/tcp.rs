//! TCP's recovery in the engine, by pencil and paper: full packets take 80 ns, 1160 ns over a
//! rack, and their acknowledgements 1008 ns back; the k-th is answered at 80 k + 2168 ns. And the
//! sub-flows of McClure et al. (2025), section 7, on its fabric.

use crate::common::{LINK, Setup, messages, permutation};
use weft_balance::scheme::{Spray, SwitchRotation};
use weft_fabric::{Clos, Failure, FailureKind, Link, LinkChoice};
use weft_sim::{MessageResult, PacketConfig, Rates};
use weft_transport::{Tcp, subflows_against_reordering};
use weft_units::{MessageId, Rate, Time};

const TCP: Tcp = Tcp {
    dup_acks: 3,
    fast_retransmit: true,
    sack: false,
    adaptive_rto: false,
    min_rto: Time::us(100),
};
/// From a packet to its answer.
const ROUND: Time = Time::ns(2168);
const WAY: Time = Time::ns(1160);

fn packet(number: u64) -> Time {
    Time::ns(80) * number
}
/// Ten packets within a rack, of which those that begin in these times are lost: [160, 240) is
/// the third.
fn ten(tcp: Tcp, dead: &[(Time, Time)]) -> MessageResult {
    let clos = Clos::leaf_spine(1, 1, 2, LINK);
    let mut setup = Setup::new(clos, messages(2, &[(0, 1, 9600)]));
    setup.transport.recovery = tcp.into();
    setup.failures.extend(dead.iter().map(|(start, end)| Failure {
        links: LinkChoice::Named(vec!["host-0 -> leaf-0".into()]),
        kind: FailureKind::down(None),
        start: *start,
        end: *end,
    }));
    let outcome = setup.run();
    assert_eq!(outcome.messages, setup.run_queued().unwrap().messages);
    outcome.messages[MessageId(0)]
}
fn only(number: u64) -> (Time, Time) {
    (packet(number), packet(number + 1))
}

/// The third duplicate is caused by the third packet after the lost one.
#[test]
fn fast_retransmit() {
    for (dup_acks, lost) in [(3, 2), (3, 6), (1, 2), (7, 2)] {
        let message = ten(Tcp { dup_acks, ..TCP }, &[only(lost)]);
        let again = packet(lost + u64::from(dup_acks)) + ROUND;
        assert_eq!((message.received, message.sent), (again + WAY, again + ROUND));
        assert_eq!((message.retransmits, message.spurious, message.lost), (1, 0, 1));
    }
}

/// Two packets after the lost one are no three duplicates; nor does anybody count them if told
/// not to. The time-out counts from the last progress.
#[test]
fn time_outs() {
    let message = ten(TCP, &[only(7)]);
    let again = packet(6) + ROUND + Time::ms(1);
    // Everything from there on goes again, of which two had come.
    assert_eq!(message.received, again + WAY);
    assert_eq!((message.retransmits, message.spurious), (3, 2));
    let message = ten(Tcp { fast_retransmit: false, ..TCP }, &[only(2)]);
    assert_eq!(message.received, packet(1) + ROUND + Time::ms(1) + WAY);
    assert_eq!((message.retransmits, message.spurious), (8, 7));
}

/// Round trips are all 2168 ns, and a time-out no less than 100 us. It doubles when the copy is
/// lost too.
#[test]
fn adaptive_time_outs() {
    let tcp = Tcp { adaptive_rto: true, ..TCP };
    let last = packet(8) + ROUND;
    let first = last + Time::us(100);
    assert_eq!(ten(tcp, &[only(9)]).received, first + WAY);
    let dead = (packet(9), first + Time::ns(1));
    assert_eq!(ten(tcp, &[dead]).received, first + Time::us(200) + WAY);
    let dead = (packet(9), first + Time::us(200) + Time::ns(1));
    assert_eq!(ten(tcp, &[dead]).received, first + Time::us(600) + WAY);
    // Of nine samples: the deviation, half of the first, shrinks by a quarter with each other.
    let tcp = Tcp { min_rto: Time::ns(1), ..tcp };
    let deviation = (1..9).fold(ROUND.0 / 2, |deviation, _| 3 * deviation / 4);
    let first = last + ROUND + Time(4 * deviation);
    assert_eq!(ten(tcp, &[only(9)]).received, first + WAY);
}

/// Without selective acknowledgements the answer to a copy names the next hole; with them both
/// are known at once.
#[test]
fn two_holes() {
    let dead = [only(2), only(4)];
    let message = ten(TCP, &dead);
    // Duplicates by the fourth, sixth and seventh packet.
    let again = packet(6) + ROUND;
    assert_eq!(message.received, again + ROUND + WAY);
    assert_eq!((message.retransmits, message.spurious), (2, 0));
    let message = ten(Tcp { sack: true, ..TCP }, &dead);
    // The second hole has three packets above it with the eighth.
    assert_eq!(message.received, packet(7) + ROUND + WAY);
    assert_eq!((message.retransmits, message.spurious), (2, 0));
}

/// Four packets in turn over two spines, of which one is slow: 0, 2, 1, 3 or 1, 3, 0, 2. So one
/// or two are ahead of the one that is missing.
#[test]
fn what_is_late_is_not_lost() {
    let turns = |dup_acks, sack, slow: u32| {
        let clos = Clos::leaf_spine(2, 2, 1, LINK);
        let mut setup = Setup::new(clos, messages(2, &[(0, 1, 4 * 960)])).under(SwitchRotation);
        setup.transport.recovery = Tcp { dup_acks, sack, ..TCP }.into();
        setup.failures.push(Failure {
            links: LinkChoice::Named(vec![format!("leaf-0 -> spine-{slow}")]),
            kind: FailureKind::Degraded { lost: 0.91 },
            start: Time::ZERO,
            end: Time::MAX,
        });
        let totals = setup.run().totals;
        assert!(totals.reordered > 0 && totals.drops == 0);
        (totals.retransmits, totals.spurious)
    };
    let both = |dup_acks, sack| {
        let mut both = [0, 1].map(|slow| turns(dup_acks, sack, slow));
        both.sort_unstable();
        both
    };
    for sack in [false, true] {
        assert_eq!(both(3, sack), [(0, 0), (0, 0)]);
    }
    // Two are ahead of 0. When that has come, its answer names 2.
    assert_eq!(both(2, false), [(0, 0), (2, 2)]);
    assert_eq!(both(2, true), [(0, 0), (1, 1)]);
    assert!(both(1, false).iter().all(|(copies, spurious)| *copies > 0 && spurious == copies));
}

/// One permutation on the fabric of McClure et al. (2025), sprayed at nine tenths of the line rate: 128 hosts,
/// 100 Gb/s, 1 us, 8 packets of 4000 bytes a port. With selective acknowledgements, none of which
/// is lost: they go first, and a full port has room for some more bytes than 8 packets need. So
/// time-outs, long after everything else, resend what was lost and nothing else.
///
/// Returns how many packets were sent again that were not lost, and how far the farthest packet
/// was behind.
fn sprayed(subflows: u32, seed: u64) -> (u64, u32) {
    let clos = Clos::fat_tree(8, Link { rate: Rate::gbps(100), delay: Time::us(1) });
    let setup = Setup::new(clos, permutation(&clos, 500 * 4000)).port_buffer(32_040);
    let mut setup = setup.under(Spray).seeded(seed);
    setup.packet = PacketConfig { mtu: 4000, header: 0, ack: 1 };
    setup.switch.control_priority = true;
    setup.transport.recovery = Tcp { sack: true, ..TCP }.into();
    (setup.transport.rto, setup.stall_after) = (Time::secs(1), Time::secs(10));
    setup.pacing.subflows = subflows;
    setup.pacing.rates = Rates::Same(Rate::gbps(90));
    let outcome = setup.run();
    assert!(outcome.totals.drops > 1000 && outcome.totals.reordered > 100);
    let farthest = outcome.messages.iter().map(|message| message.farthest).max();
    (outcome.totals.spurious, farthest.unwrap_or(0))
}

/// Of 64,000 packets some hundred are overtaken. With as many sub-flows as equation 1 asks for,
/// no packet by more than two of its own sub-flow: too few to look like a loss, and none does. With
/// fewer sub-flows some do.
#[test]
fn equation_1_on_the_fabric_of_the_study() {
    let enough = subflows_against_reordering(TCP.dup_acks, 8, 4, 1);
    assert_eq!(enough, 11);
    for seed in 1..4 {
        let (copies, farthest) = sprayed(enough, seed);
        assert_eq!(copies, 0);
        assert!(farthest < TCP.dup_acks, "{farthest} behind");
        let (copies, farthest) = sprayed(4, seed);
        assert!(copies > 0 && farthest > TCP.dup_acks, "{copies} copies, {farthest} behind");
        let (copies, _) = sprayed(1, seed);
        assert!(copies > 5000, "{copies} copies");
    }
}
