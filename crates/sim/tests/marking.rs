//! When packets are marked, by pencil and paper: on arrival or when they leave. A full packet takes
//! 80 ns, or 800 ns at a port that lost nine tenths; 500 ns a link.

use crate::common::{LINK, Setup, message, messages};
use weft_fabric::{Clos, FailureKind};
use weft_sim::{Buffer, EcnConfig, MarkAt, PfcConfig, TrimConfig, Victim};
use weft_transport::Trim;
use weft_units::{PortId, SwitchId, Time};
use weft_workload::Message;

/// Messages of so many packets from hosts to hosts of racks of `hosts`; the link `slow` lost nine
/// tenths.
fn slow(racks: u32, hosts: u32, list: &[(u32, u32, u64)], slow: &str) -> Setup {
    let clos = Clos::leaf_spine(racks, 1, hosts, LINK);
    let list: Vec<_> = list.iter().map(|(src, dst, packets)| (*src, *dst, packets * 960)).collect();
    let kind = FailureKind::Degraded { lost: 0.9 };
    let setup = Setup::new(clos, messages(racks * hosts, &list));
    setup.failing(slow, kind, Time::ZERO, Time::MAX)
}
/// The same, marked above `kmin` bytes.
fn marked(mut setup: Setup, kmin: u64, mark: MarkAt) -> Setup {
    setup.switch.ecn = Some(EcnConfig { kmin, kmax: kmin, pmax: 1.0 });
    setup.switch.mark = mark;
    setup
}
fn marks(setup: &Setup) -> u64 {
    setup.run_both().totals.marks
}
fn port(setup: &Setup, switch: u32, number: u32) -> PortId {
    PortId(setup.fabric.ports_of(SwitchId(switch)).first.0 + number)
}
const UP: &str = "leaf-0 -> spine-0";
const DOWN: &str = "leaf-0 -> host-0";

/// Five packets come at 580 ns + 80 k and begin at 580 ns + 800 k. The k-th finds 900 k bytes. Of
/// those that waited, the first leaves three packets behind, then two, one, none.
#[test]
fn by_what_is_found_or_left_behind() {
    let line = slow(2, 1, &[(0, 1, 5)], UP);
    let at = |kmin, mark| marks(&marked(line.clone(), kmin, mark));
    let arriving = [0, 899, 900, 2_000, 3_600].map(|kmin| at(kmin, MarkAt::Enqueue));
    assert_eq!(arriving, [4, 4, 3, 2, 0]);
    let leaving = [0, 999, 1_000, 2_000, 3_000].map(|kmin| at(kmin, MarkAt::Dequeue));
    assert_eq!(leaving, [3, 3, 2, 1, 0]);
    // Nothing is in service, so that its rest, or all of it, plays no part.
    let mut whole = line;
    whole.switch.whole_packets = true;
    assert_eq!(marks(&marked(whole, 1_000, MarkAt::Dequeue)), 2);
}

/// A third packet comes at 1380 ns, when the first has left and the second begins.
#[test]
fn what_comes_at_the_very_instant_has_come_before() {
    for (start, expected) in [(800, 1), (801, 0)] {
        let mut setup = slow(1, 3, &[(1, 0, 2)], DOWN);
        setup.workload.push(Message { start: Time::ns(start), ..message(2, 0, 960) }, &[]);
        assert_eq!(marks(&marked(setup, 999, MarkAt::Dequeue)), expected);
    }
}

/// Between the thresholds a share of them. The k-th of a thousand packets leaves 9 k behind up to
/// the hundredth, then 999 - k: 449 in the mean, which four in ten thousand of are 0.18.
#[test]
fn a_share_of_them() {
    let mut setup = slow(2, 1, &[(0, 1, 1_000)], UP);
    setup.switch.ecn = Some(EcnConfig { kmin: 0, kmax: 2_000_000, pmax: 0.8 });
    setup.switch.mark = MarkAt::Dequeue;
    setup.transport.rto = Time::ms(10);
    let marks = marks(&setup);
    assert!((140..220).contains(&marks), "{marks}");
}

/// The spine's slow port holds what comes of 17 packets until the pause is at the leaf, at 1905.12
/// ns; seven more wait there until 13,665.12 ns and leave 6, 5, ... behind. At the spine the first
/// leaves nothing behind, the second nine, the third fourteen, and from there on one less each; the
/// last seven, which have come by 14,760 ns, 6, 5, ... again.
#[test]
fn what_a_pause_held() {
    let mut setup = slow(2, 1, &[(0, 1, 24)], "spine-0 -> leaf-1");
    setup.switch.buffer = Buffer::PerPort { bytes: 3_000 };
    setup.switch.pfc = Some(PfcConfig {
        threshold: Some(3_000),
        alpha: 1.0,
        reserve: 0,
        headroom: None,
        resume_offset: 1_000,
    });
    let setup = marked(setup, 4_500, MarkAt::Dequeue);
    let outcome = setup.run_both();
    let [leaf, spine] = [port(&setup, 0, 1), port(&setup, 2, 1)].map(|port| outcome.ports[port]);
    assert_eq!((leaf.pauses, leaf.marks, spine.marks), (2, 2, 11 + 2));
    assert_eq!((outcome.totals.marks, outcome.totals.drops), (15, 0));
}

/// Host 0 gets three packets over a slow port, from 580, 1380 and 2180 ns on, and at 1664 and 1744 ns
/// acknowledgements of two that it sent.
#[test]
fn control_ahead_of_data_and_among_it() {
    let base = slow(1, 3, &[(1, 0, 3), (0, 2, 2)], DOWN);
    let at = |kmin, control_priority, mark_control| {
        let mut setup = marked(base.clone(), kmin, MarkAt::Dequeue);
        setup.switch.control_priority = control_priority;
        setup.switch.mark_control = mark_control;
        marks(&setup)
    };
    // In order: data before 1000 and 100 bytes, control before 50 and none.
    assert_eq!([40, 99, 100].map(|kmin| at(kmin, false, true)), [3, 2, 1]);
    assert_eq!([40, 999, 1_000].map(|kmin| at(kmin, false, false)), [2, 1, 0]);
    // Control first: data before 1000, control before 1050 and 1000, data before none.
    assert_eq!([40, 1_000, 1_050].map(|kmin| at(kmin, true, true)), [3, 1, 0]);
    assert_eq!([40, 1_000].map(|kmin| at(kmin, true, false)), [1, 0]);
}

/// Six packets of which three have room. Three headers go ahead of the second packet, which leaves
/// one behind; of the three that come again one does.
#[test]
fn headers_are_not() {
    let mut setup = slow(2, 1, &[(0, 1, 6)], UP).port_buffer(3_000);
    setup.switch.trim = Some(TrimConfig {
        size: Some(64),
        queue: 10_000,
        return_to_sender: false,
        victim: Victim::Arriving,
    });
    setup.transport.recovery = Trim.into();
    let totals = marked(setup, 999, MarkAt::Dequeue).run_both().totals;
    assert_eq!((totals.trims, totals.marks), (3, 2));
}
