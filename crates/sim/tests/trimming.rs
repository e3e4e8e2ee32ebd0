//! Trimming by pencil and paper. Single packets come to a leaf at 580 ns, to a port with room for
//! two: the third is trimmed. 80 ps a byte, 500 ns a link: a full packet takes 80 ns, 64 bytes
//! take 5.12 ns, an acknowledgement 4 ns.

use crate::common::{LINK, PACKET, Setup, message, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Link};
use weft_sim::{EcnConfig, MessageResult, Outcome, PacketConfig, PortResult, TrimConfig, Victim};
use weft_transport::{RecoveryConfig, Trim};
use weft_units::{IdVec, MessageId, PortId, Rate, SwitchId, Time};
use weft_workload::Message;

const TRIM: TrimConfig =
    TrimConfig { size: Some(64), queue: 2_000, return_to_sender: false, victim: Victim::Arriving };

/// Messages of a rack with 12 hosts, in buffers of two packets, trimmed as `trim` says.
fn rack(list: &[(u32, u32, u64)], trim: TrimConfig) -> Setup {
    let clos = Clos::leaf_spine(1, 1, 12, LINK);
    let mut setup = Setup::new(clos, messages(12, list)).port_buffer(2_000);
    setup.switch.trim = Some(trim);
    setup.transport.recovery = Trim.into();
    setup
}
/// Hosts 1, 2, .. send one packet each to host 0.
fn incast(senders: u32, trim: TrimConfig) -> Setup {
    let list: Vec<_> = (1..=senders).map(|src| (src, 0, 960)).collect();
    rack(&list, trim)
}
/// From the port of the leaf to host 0.
fn down(setup: &Setup, outcome: &Outcome) -> PortResult {
    outcome.ports[PortId(setup.fabric.ports_of(SwitchId(0)).first.0)]
}
fn received(messages: &IdVec<MessageId, MessageResult>) -> Vec<Time> {
    messages.iter().map(|message| message.received).collect()
}
fn ps(ns: u64, more: u64) -> Time {
    Time::ns(ns) + Time::ps(more)
}

/// The header waits for the packet in service until 660 ns and goes before the one that waits.
/// It is there at 1165.12 ns, its NACK at 2173.12 ns, and the packet again 1160 ns later.
#[test]
fn a_header_overtakes_data() {
    let setup = incast(3, TRIM);
    let outcome = setup.run();
    let expected = [Time::ns(1240 - 80), ps(1245, 120), ps(3333, 120)];
    assert_eq!(received(&outcome.messages), expected);
    let third = outcome.messages[MessageId(2)];
    assert_eq!((third.retransmits, third.spurious, third.lost), (1, 0, 0));
    let totals = outcome.totals;
    assert_eq!((totals.trims, totals.trimmed_bytes, totals.header_drops), (1, 936, 0));
    assert_eq!((totals.packets, totals.control_packets, totals.drops), (4, 4, 0));
    let down = down(&setup, &outcome);
    assert_eq!((down.packets, down.bytes, down.trims), (4, 3064, 1));
    assert_eq!(down.peak_queue, 2064);
}

/// Trimming that saves nothing: the header takes as long as its packet did.
#[test]
fn trimmed_to_full_size() {
    let setup = incast(3, TrimConfig { size: None, ..TRIM });
    let outcome = setup.run();
    let expected = [1160, 1320, 1240 + 1008 + 1160].map(Time::ns);
    assert_eq!(received(&outcome.messages), expected);
    assert_eq!((outcome.totals.trims, outcome.totals.trimmed_bytes), (1, 0));
    let down = down(&setup, &outcome);
    assert_eq!((down.packets, down.bytes, down.dropped_bytes), (4, 4000, 0));
}

/// A packet that is smaller than what is left of others keeps its size: five of 520 bytes, of
/// which three fit.
#[test]
fn small_packets_stay_small() {
    let list: Vec<_> = (1..=5).map(|src| (src, 0, 480)).collect();
    for (size, cut) in [(519, 1), (520, 0), (600, 0)] {
        let outcome = rack(&list, TrimConfig { size: Some(size), ..TRIM }).run();
        assert_eq!((outcome.totals.trims, outcome.totals.trimmed_bytes), (2, 2 * cut));
    }
}

/// Five packets at once: two have room, one has room as a header, two are lost for good. These
/// come back after a time-out, together.
#[test]
fn a_full_queue_of_headers_drops() {
    let setup = incast(5, TrimConfig { queue: 64 + 63, ..TRIM });
    let outcome = setup.run();
    let expected =
        [Time::ns(1160), ps(1245, 120), ps(3333, 120), ps(1_001_160, 0), ps(1_001_240, 0)];
    assert_eq!(received(&outcome.messages), expected);
    let totals = outcome.totals;
    assert_eq!((totals.trims, totals.drops, totals.header_drops), (3, 2, 2));
    assert_eq!(down(&setup, &outcome).dropped_bytes, 128);
    let lost: Vec<u32> = outcome.messages.iter().map(|message| message.lost).collect();
    assert_eq!(lost, [0, 0, 0, 1, 1]);
    // A byte more, and another header fits.
    let setup = incast(5, TrimConfig { queue: 128, ..TRIM });
    assert_eq!(setup.run().totals.header_drops, 1);
}

/// Nine are trimmed at once. Odd rates round every header up; room for so many takes them still.
#[test]
fn a_queue_of_headers_holds_what_it_says_at_odd_rates() {
    for gbps in [37, 100, 123, 300] {
        let clos = Clos::leaf_spine(1, 1, 12, Link { rate: Rate::gbps(gbps), ..LINK });
        let list: Vec<_> = (1..12).map(|src| (src, 0, 960)).collect();
        for (headers, drops) in [(9, 0), (8, 1)] {
            let mut setup = Setup::new(clos, messages(12, &list)).port_buffer(2_000);
            setup.switch.trim = Some(TrimConfig { queue: headers * 64, ..TRIM });
            setup.transport.recovery = Trim.into();
            assert_eq!(setup.run().totals.header_drops, drops, "{headers} at {gbps} Gb/s");
        }
    }
}

/// The switch itself sends the header back, at once: it takes 505.12 ns, where the reflected one
/// waited 80 ns, took as long, and then two times 504 ns.
#[test]
fn a_header_returns_to_its_sender() {
    let setup = incast(3, TrimConfig { return_to_sender: true, ..TRIM });
    let outcome = setup.run();
    let again = ps(580 + 505, 120);
    assert_eq!(
        received(&outcome.messages),
        [Time::ns(1160), Time::ns(1240), again + Time::ns(1160)]
    );
    let third = outcome.messages[MessageId(2)];
    assert_eq!((third.retransmits, third.spurious, third.lost), (1, 0, 0));
    let totals = outcome.totals;
    // Nobody has sent a NACK.
    assert_eq!((totals.control_packets, totals.trims, totals.trimmed_bytes), (3, 1, 936));
    let back = outcome.ports[PortId(setup.fabric.ports_of(SwitchId(0)).first.0 + 3)];
    assert_eq!((back.packets, back.bytes), (2, 64 + 50));
}

/// At 590 ns the packet of host 11 finds three others before it, and its header turns back to a
/// port where one packet is in service until 660 ns and two wait. It goes before these.
#[test]
fn a_header_overtakes_data_on_its_way_back() {
    let start = Time::ns(10);
    let late = [1, 2, 3, 11].map(|src| Message { start, ..message(src, 0, 960) });
    let mut workload = messages(12, &[(4, 11, 960), (5, 11, 960), (6, 11, 960)]);
    for message in late {
        workload.push(message, &[]);
    }
    let mut setup = Setup { workload, ..incast(1, TRIM) }.port_buffer(3_000);
    setup.switch.trim = Some(TrimConfig { return_to_sender: true, ..TRIM });
    let outcome = setup.run();
    assert_eq!(outcome.messages[MessageId(6)].received, ps(660 + 505 + 1160, 120));
    // Where it has no room it is lost, as a header.
    setup.switch.trim = Some(TrimConfig { return_to_sender: true, queue: 63, ..TRIM });
    let outcome = setup.run();
    assert_eq!((outcome.totals.drops, outcome.totals.header_drops), (1, 1));
    assert_eq!(outcome.messages[MessageId(6)].received, Time::ms(1) + start + Time::ns(1160));
}

/// From the far leaf, over both switches; and the flow goes on.
#[test]
fn a_header_returns_over_the_fabric() {
    let clos = Clos::leaf_spine(2, 1, 3, LINK);
    // The packets of hosts 0 and 4 come to the port of host 3 at different times.
    let list = [(0, 3, 3 * 960), (4, 3, 3 * 960), (5, 3, 3 * 960)];
    let mut setup = Setup::new(clos, messages(6, &list)).port_buffer(1_000);
    setup.switch.trim = Some(TrimConfig { return_to_sender: true, ..TRIM });
    setup.transport.recovery = Trim.into();
    let outcome = setup.run();
    let totals = outcome.totals;
    assert!(totals.trims >= 3 && totals.drops == 0, "{totals:?}");
    assert_eq!((totals.retransmits, totals.spurious), (totals.trims, 0));
    assert!(totals.cct < Time::us(50), "no time-out: {}", totals.cct);
    assert_eq!(totals.packets, 9 + totals.trims);
}

fn again(setup: &Setup) -> Vec<u32> {
    setup.run().messages.iter().map(|message| message.retransmits).collect()
}

/// Who is last in the queue gives way to the one that arrives.
#[test]
fn the_tail_is_trimmed() {
    // Hosts 1 and 2 are in; 3 and 4 find it full. Each takes the place of the one before.
    assert_eq!(again(&incast(4, TrimConfig { victim: Victim::Tail, ..TRIM })), [0, 1, 1, 0]);
    assert_eq!(again(&incast(4, TRIM)), [0, 0, 1, 1]);
}

/// Unless they differ in size: a packet of 140 bytes has come at 591.2 ns, and the second one of
/// host 1 finds no room at 660 ns.
#[test]
fn a_tail_of_another_size_is_spared() {
    let list = [(1, 0, 2 * 960), (3, 0, 960 + 100)];
    assert_eq!(again(&rack(&list, TrimConfig { victim: Victim::Tail, ..TRIM })), [1, 0]);
}

/// Nor is an acknowledgement trimmed that is as large as a packet: it comes at 1740 ns, behind the
/// packet of host 1, and that of host 2 finds no room at 1760 ns.
#[test]
fn an_acknowledgement_at_the_tail_is_spared() {
    let mut workload = messages(12, &[(0, 4, 960)]);
    for (src, start) in [(1, 1120), (2, 1180)] {
        workload.push(Message { start: Time::ns(start), ..message(src, 0, 960) }, &[]);
    }
    let mut setup = incast(1, TrimConfig { victim: Victim::Tail, ..TRIM });
    (setup.workload, setup.packet.ack) = (workload, 1000);
    let outcome = setup.run();
    assert_eq!(outcome.totals.trims, 1);
    // It only waits for the header.
    assert_eq!(outcome.messages[MessageId(0)].sent, ps(1780 + 5 + 80 + 500, 120));
    assert_eq!(outcome.messages[MessageId(2)].retransmits, 1);
}

/// What is in service cannot be trimmed any more.
#[test]
fn nobody_is_last_but_the_packet_in_service() {
    let setup = incast(2, TrimConfig { victim: Victim::Tail, ..TRIM }).port_buffer(1_000);
    let outcome = setup.run();
    assert_eq!(outcome.messages[MessageId(0)].retransmits, 0);
    assert_eq!(outcome.messages[MessageId(1)].retransmits, 1);
}

/// A coin for each packet that finds no room.
#[test]
fn either_is_trimmed() {
    let mut tails = 0;
    for seed in 0..200 {
        let setup = incast(3, TrimConfig { victim: Victim::Either, ..TRIM }).seeded(seed);
        let again = [1, 2].map(|id| setup.run().messages[MessageId(id)].retransmits);
        assert!(again == [1, 0] || again == [0, 1], "{again:?}");
        tails += again[0];
    }
    // 100 with a deviation of 7.
    assert!((70..130).contains(&tails), "{tails} of 200");
}

/// Who takes the place of the last packet has found a long queue, as that had, and is marked.
#[test]
fn who_takes_the_place_of_the_last_is_marked() {
    let marks = |victim| {
        let mut setup = incast(3, TrimConfig { victim, ..TRIM });
        setup.switch.ecn = Some(EcnConfig { kmin: 500, kmax: 500, pmax: 1.0 });
        setup.run().totals.marks
    };
    // The second packet is marked, and the third if it is queued.
    assert_eq!(marks(Victim::Arriving), 1);
    assert_eq!(marks(Victim::Tail), 2);
}

/// Acknowledgements are never trimmed, and go with the headers where they have priority.
#[test]
fn control_is_dropped_or_goes_first() {
    // Hosts 1 and 2 keep the port to host 0 busy, which gets acknowledgements from host 4: of
    // 600 bytes, for which there is room beside at most 400 of a packet.
    let list = [(1, 0, 30 * 960), (2, 0, 30 * 960), (0, 4, 20 * 960)];
    let mut setup = rack(&list, TRIM).port_buffer(1_000);
    setup.packet.ack = 600;
    let outcome = setup.run();
    let lost: u32 = outcome.messages.iter().map(|message| message.lost).sum();
    assert!(outcome.totals.drops >= 5 && lost == 0, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.header_drops, 0);
    setup.switch.control_priority = true;
    let outcome = setup.run();
    assert_eq!(outcome.totals.drops, 0);
}

/// A trimmed packet is not trimmed again; it goes first through the next switches too.
#[test]
fn headers_go_first_everywhere() {
    let clos = Clos::leaf_spine(2, 1, 4, LINK);
    // Uplinks of the fabric's one speed: four hosts to one in the other rack, and a fifth that
    // fills the last port.
    let list = [(0, 4, 960), (1, 4, 960), (2, 4, 960), (5, 4, 8 * 960), (6, 4, 8 * 960)];
    let mut setup = Setup::new(clos, messages(8, &list)).port_buffer(2_000);
    setup.switch.trim = Some(TRIM);
    setup.transport.recovery = Trim.into();
    let outcome = setup.run();
    // The packet of host 2 is trimmed at its leaf's uplink.
    let up = outcome.ports[PortId(setup.fabric.ports_of(SwitchId(0)).first.0 + 4)];
    assert_eq!((up.trims, up.trimmed_bytes), (1, 936));
    assert_eq!((outcome.totals.drops, outcome.totals.spurious), (0, 0));
    assert_eq!(outcome.totals.retransmits, outcome.totals.trims);
}

/// Go-back-N takes no notice of headers, and hears of the gap from the packet behind it.
#[test]
fn other_recoveries_ignore_headers() {
    let list = [(1, 0, 960), (2, 0, 960), (3, 0, 2 * 960)];
    for return_to_sender in [false, true] {
        let mut setup = rack(&list, TrimConfig { return_to_sender, ..TRIM });
        setup.transport.recovery = RecoveryConfig::GO_BACK_N;
        let outcome = setup.run();
        let third = outcome.messages[MessageId(2)];
        assert!(third.received < Time::us(5), "{}", third.received);
        assert_eq!(outcome.totals.trims, 1);
    }
}

/// For a load balancer a trimmed packet is a marked one: a flow whose packets are trimmed in the
/// other rack tries other spines, and one that meets nobody does not.
#[test]
fn schemes_hear_of_what_was_trimmed() {
    let uplinks = |list: &[(u32, u32, u64)], return_to_sender| {
        let clos = Clos::leaf_spine(2, 4, 4, LINK);
        let options = [("packets", "5"), ("bad", "0.1"), ("time_outs", "false")];
        let scheme = SchemeConfig::read("host-flowlets", &options).unwrap();
        let mut setup = Setup::new(clos, messages(8, list)).port_buffer(8_000).under(scheme);
        setup.switch.trim = Some(TrimConfig { return_to_sender, queue: 100_000, ..TRIM });
        setup.transport.recovery = Trim.into();
        let setup = setup.window(20);
        let outcome = setup.run();
        let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 4;
        (first..first + 4).filter(|port| outcome.ports[PortId(*port)].packets > 0).count()
    };
    let alone = (0, 4, 200 * 960);
    for return_to_sender in [false, true] {
        assert_eq!(uplinks(&[alone], return_to_sender), 1);
        let others = [alone, (5, 4, 200 * 960), (6, 4, 200 * 960)];
        assert!(uplinks(&others, return_to_sender) > 1);
    }
}

/// The largest packet that trims to itself, and packets of one byte.
#[test]
fn extremes() {
    let mut setup = incast(11, TrimConfig { size: Some(u16::MAX), queue: 1 << 40, ..TRIM });
    setup.packet = PacketConfig { mtu: 60_000, header: 5_535, ..PACKET };
    let outcome = setup.port_buffer(70_000).run();
    assert_eq!(outcome.totals.drops, 0);
    let setup = incast(11, TrimConfig { size: Some(1), queue: 9, ..TRIM });
    let outcome = setup.run();
    assert_eq!(outcome.totals.header_drops, 0);
    assert!(outcome.totals.trims >= 9);
    assert_eq!(outcome.totals.trimmed_bytes, outcome.totals.trims * 999);
}
