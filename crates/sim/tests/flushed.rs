//! Queues that are thrown away with a link, by pencil and paper. A full packet takes 80 ns, or 800 ns
//! at the uplink, which lost nine tenths; 500 ns a link.

use crate::common::Setup;
use weft_fabric::{FailureKind, Queued};
use weft_sim::{Buffer, Outcome, PfcConfig, PortResult, TrimConfig, Victim};
use weft_transport::Trim;
use weft_units::{HostId, MessageId, PortId, SwitchId, Time};

const UP: &str = "leaf-0 -> spine-0";

/// The uplink lost nine tenths: packet k begins at 580 ns + 800 k.
fn slow(packets: u64) -> Setup {
    let kind = FailureKind::Degraded { lost: 0.9 };
    Setup::line(packets).failing(UP, kind, Time::ZERO, Time::MAX)
}
/// The uplink is dead from `start` to `end`, in ns.
fn dead(setup: Setup, queued: Queued, start: u64, end: u64) -> Setup {
    let kind = FailureKind::Down { detect: None, queued, hosts_know: true };
    setup.failing(UP, kind, Time::ns(start), Time::ns(end))
}
fn uplink(setup: &Setup, outcome: &Outcome) -> PortResult {
    outcome.ports[PortId(setup.fabric.ports_of(SwitchId(0)).first.0 + 1)]
}
/// Packets that the uplink dropped, and that its wire lost.
fn lost(setup: &Setup) -> (u64, u64) {
    let outcome = setup.run_both();
    let totals = outcome.totals;
    let port = uplink(setup, &outcome);
    assert_eq!((port.drops, port.dropped_bytes), (totals.drops, 1_000 * totals.drops));
    assert_eq!(totals.drops + totals.wire_drops, u64::from(outcome.messages[MessageId(0)].lost));
    (totals.drops, totals.wire_drops)
}

/// At 3000 ns three of ten packets have left, the fourth is on the wire, and six wait. Draining,
/// the fifth and the sixth are lost as well, and the seventh begins when the link is back.
#[test]
fn what_waits() {
    let setup = dead(slow(10), Queued::Lost, 3_000, 5_000);
    assert_eq!(lost(&setup), (6, 1));
    let outcome = setup.run_both();
    // Seven come again a time-out after they left, the fourth first.
    let again = Time::ms(1) + Time::ns(3 * 80 + 580 + 7 * 800 + 500 + 2 * 580);
    assert_eq!(outcome.totals.cct, again);
    // What was thrown away was not sent: four, and seven again.
    let sent = uplink(&setup, &outcome);
    assert_eq!((sent.packets, sent.bytes), (11, 11_000));
    assert_eq!(lost(&dead(slow(10), Queued::Drains, 3_000, 5_000)), (0, 3));
}

/// By 3000 ns 31 of 40 packets have come, of which 27 wait; nine come later.
#[test]
fn what_comes_later() {
    assert_eq!(lost(&dead(slow(40), Queued::Lost, 3_000, 5_000)), (27 + 9, 1));
    // Back at 3380 ns, when the 36th comes.
    assert_eq!(lost(&dead(slow(40), Queued::Lost, 3_000, 3_380)), (27 + 4, 1));
    assert_eq!(lost(&dead(slow(40), Queued::Lost, 3_000, 3_381)), (27 + 5, 1));
    // Two outages that overlap; one within the other.
    let twice = |end| dead(slow(40), Queued::Lost, 3_000, end);
    assert_eq!(lost(&dead(twice(3_200), Queued::Lost, 3_100, 3_380)), (27 + 4, 1));
    assert_eq!(lost(&dead(twice(3_380), Queued::Lost, 3_100, 3_200)), (27 + 4, 1));
    // The second one finds the port open, the packet that has come meanwhile waiting.
    assert_eq!(lost(&dead(twice(3_010), Queued::Lost, 3_080, 3_380)), (27 + 1 + 3, 1));
}

/// The port is never idle: a packet that begins as the link dies is on its wire, and one that comes
/// as it is back gets through.
#[test]
fn at_the_very_instant() {
    // The seventh begins at 1060 ns.
    assert_eq!(lost(&dead(Setup::line(20), Queued::Lost, 1_060, 1_061)), (0, 1));
    // The sixth is on the wire from 980 to 1060 ns.
    assert_eq!(lost(&dead(Setup::line(20), Queued::Lost, 1_000, 1_060)), (0, 1));
    assert_eq!(lost(&dead(Setup::line(20), Queued::Lost, 1_000, 1_061)), (1, 1));
}

/// A link that is slower when it is back: the new rate holds, and buffers in its bytes.
#[test]
fn the_rate_may_change_meanwhile() {
    let kind = FailureKind::Degraded { lost: 0.9 };
    let setup = Setup::line(20).failing(UP, kind, Time::ns(1_500), Time::us(500));
    // The 12th is on the wire at 1500 ns. The 13th to 17th come by 1860 ns; the three others from
    // 1940 ns on.
    let setup = dead(setup, Queued::Lost, 1_500, 1_861).port_buffer(2_800);
    let outcome = setup.run_both();
    assert_eq!((outcome.totals.drops, outcome.totals.wire_drops), (5, 1));
    // They have just room: 800 bytes of the first are left when the last comes.
    assert_eq!(uplink(&setup, &outcome).peak_queue, 2_800);
    assert_eq!(setup.port_buffer(2_799).run_both().totals.drops, 6);
}

/// Memory of the switch is free at once: 27 packets wait and one is on the wire, until 3780 ns.
#[test]
fn shared_memory() {
    let mut setup = dead(slow(40), Queued::Lost, 3_000, 5_000);
    setup.switch.buffer = Buffer::Shared { bytes: 100_000, alpha: 1.0 };
    setup.probes.interval = Some(Time::ns(100));
    setup.probes.switches = vec![SwitchId(0)];
    let outcome = setup.run_both();
    let bytes = &outcome.series.last().unwrap().bytes;
    assert_eq!(bytes[30..39], [28_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 0]);
    // Draining, what comes takes memory: 40 but for three that have left.
    setup.failures[1].kind = FailureKind::down(None);
    let outcome = setup.run_both();
    let bytes = &outcome.series.last().unwrap().bytes;
    assert_eq!((bytes[31], bytes[37]), (29_000, 37_000));
}

/// Four packets are more than the threshold at 820 ns; the NIC hears of it at 1325.12 ns, when 17
/// are under way. At 2000 ns two have begun; 15 are thrown away, and the ingress resumes at once.
/// All but the first come again a time-out later, and pause it until 14 of 16 have left.
#[test]
fn pauses_end() {
    let mut setup = dead(slow(20), Queued::Lost, 2_000, 3_000);
    setup.switch.buffer = Buffer::PerPort { bytes: 3_000 };
    let (threshold, resume_offset) = (Some(3_000), 1_000);
    setup.switch.pfc =
        Some(PfcConfig { threshold, alpha: 1.0, reserve: 0, headroom: None, resume_offset });
    assert_eq!(lost(&setup), (15, 1));
    let outcome = setup.run_both();
    let nic = outcome.ports[setup.fabric.nic(HostId(0))];
    let (first, second) = (Time::ns(2_000 - 820), Time::ns(580 + 14 * 800 - 820));
    assert_eq!((nic.pauses, nic.paused), (2, first + second));
}

/// Headers that wait are thrown away too, and a dead port makes none.
#[test]
fn headers() {
    let mut setup = dead(slow(12), Queued::Lost, 1_300, 5_000).port_buffer(3_000);
    let (size, queue, victim) = (Some(64), 10_000, Victim::Arriving);
    setup.switch.trim = Some(TrimConfig { size, queue, return_to_sender: false, victim });
    setup.transport.recovery = Trim.into();
    let outcome = setup.run_both();
    // By 1300 ns ten have come: one is on the wire, two wait, seven are trimmed. Two come later.
    let port = uplink(&setup, &outcome);
    assert_eq!((port.drops, port.header_drops, outcome.totals.wire_drops), (11, 7, 1));
}

/// A NIC keeps its pace: it would send for ever in no time.
#[test]
fn a_nic_drains() {
    let link = "host-0 -> leaf-0";
    let over = |queued| {
        let kind = FailureKind::Down { detect: None, queued, hosts_know: true };
        Setup::line(10).failing(link, kind, Time::ns(200), Time::ns(400)).run_both()
    };
    assert_eq!(over(Queued::Lost), over(Queued::Drains));
}
