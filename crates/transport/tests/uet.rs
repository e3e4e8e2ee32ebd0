//! When a UET receiver answers, and what its reports tell the sender.

use std::collections::{BTreeMap, BTreeSet};
use weft_transport::{Carried, Receiver, RecoveryConfig, Reply, Report, Sender, Window};
use weft_trial::prelude::*;
use weft_units::{Draw, Time};

const NOW: Time = Time::ZERO;
const WINDOW: Window = Window { now: 4, most: 100 };

fn halves(packets: u32, options: &[(&str, &str)]) -> (Sender, Receiver) {
    let recovery = RecoveryConfig::read("uet", options).unwrap();
    assert!(recovery.reports());
    (Sender::new(&recovery, packets), Receiver::new(&recovery, packets))
}
fn plain(bytes: u16) -> Carried {
    Carried { bytes, marked: false, asks: false }
}
/// The report that answers packet `seq`, if anything does.
fn answer(receiver: &mut Receiver, seq: u32, carried: Carried) -> Option<Report> {
    let (arrival, _) = receiver.on_packet_done(NOW, seq, carried);
    match arrival.reply {
        Reply::Ack { .. } => Some(receiver.report(seq, carried.marked || carried.asks)),
        Reply::Nack { .. } => panic!("a NACK for a packet that came"),
        Reply::None => None,
    }
}

/// 490 packets of 4150 bytes: the first, and then every fourth (UEC htsim: 124 with the last, which asks).
#[test]
fn one_for_four() {
    let (_, mut receiver) = halves(490, &[]);
    let asks = |seq| Carried { asks: seq == 489, ..plain(4150) };
    let answers = (0..490).filter(|seq| answer(&mut receiver, *seq, asks(*seq)).is_some());
    assert_eq!(answers.count(), 124);
    assert!(receiver.is_done());
}

#[test]
fn at_once() {
    let (_, mut receiver) = halves(100, &[]);
    assert!(answer(&mut receiver, 0, plain(1000)).is_some(), "the first");
    assert!(answer(&mut receiver, 1, plain(1000)).is_none());
    assert!(answer(&mut receiver, 2, Carried { marked: true, ..plain(1000) }).is_some());
    let asked = answer(&mut receiver, 5, Carried { asks: true, ..plain(1000) });
    // The bitmap of what was asked about begins there.
    let report = asked.unwrap();
    assert_eq!((report.cumulative, report.base, report.bits), (3, 5, 1));
    assert_eq!((report.received, report.out_of_order), (4, 1));
    assert!(answer(&mut receiver, 4, plain(1000)).is_none());
    assert!(answer(&mut receiver, 3, plain(1000)).is_some(), "nothing is missing any more");
    assert!(answer(&mut receiver, 7, plain(1000)).is_none());
    assert!(answer(&mut receiver, 7, plain(1000)).is_some(), "a duplicate");
    assert!(answer(&mut receiver, 8, plain(16_384)).is_some(), "enough bytes");
    // A header: a NACK, unless the packet has come.
    assert_eq!(receiver.on_trimmed(NOW, 6).reply, Reply::Nack { cumulative: 6 });
    assert_eq!(receiver.on_trimmed(NOW, 8).reply, Reply::Ack { cumulative: 6 });
}

/// A request is answered at once, and so is each packet that its sender had out then.
#[test]
fn after_a_request() {
    let (_, mut receiver) = halves(100, &[]);
    assert!(answer(&mut receiver, 0, plain(1000)).is_some(), "the first");
    receiver.on_request(2);
    assert!((1..3).all(|seq| answer(&mut receiver, seq, plain(1000)).is_some()));
    assert!(answer(&mut receiver, 3, plain(1000)).is_none());
}

#[test]
fn what_is_out() {
    let (mut sender, mut receiver) = halves(10, &[]);
    (0..6).for_each(|_| _ = sender.send(NOW));
    assert_eq!((sender.in_flight(), sender.backlog()), (6, 4));
    answer(&mut receiver, 0, plain(1000)).unwrap();
    let report = answer(&mut receiver, 3, Carried { marked: true, ..plain(1000) }).unwrap();
    let (learnt, done) = sender.on_report_done(NOW, &report, WINDOW);
    assert_eq!((learnt.packets, learnt.in_flight, done), (2, 6, false));
    // One is trimmed, and leaves before anything new.
    assert!(sender.on_nack(NOW, 1, 0).is_some() && sender.on_nack(NOW, 1, 0).is_none());
    assert_eq!((sender.in_flight(), sender.backlog()), (3, 5));
    let sent = sender.send(NOW);
    assert_eq!((sent.seq, sent.retransmission, sender.in_flight()), (1, true, 4));
    // What is known to have come cannot be lost.
    assert!(sender.on_nack(NOW, 3, 0).is_none());
    // An older report tells nothing.
    assert_eq!(sender.on_report_done(NOW, &Report::default(), WINDOW).0.packets, 0);
}

/// Once six packets, one and a half windows of four, are beyond the hole, it leaves again, once.
#[test]
fn sleek() {
    for sleek in [false, true] {
        let text = sleek.to_string();
        let (mut sender, mut receiver) = halves(100, &[("sleek", &text)]);
        (0..30).for_each(|_| _ = sender.send(NOW));
        let mut resent = Vec::new();
        for seq in [0, 2, 3, 4, 5, 6, 7, 8, 9] {
            let report = answer(&mut receiver, seq, Carried { marked: true, ..plain(1000) });
            sender.on_report_done(NOW, &report.unwrap(), WINDOW);
            let sent = sender.send(NOW);
            resent.extend(sent.retransmission.then_some((seq, sent.seq)));
        }
        assert_eq!(resent, if sleek { vec![(7, 1)] } else { vec![] });
    }
}

/// The answer to a probe that met no queue: all that is missing within a window leaves again, whatever the window is.
#[test]
fn quick_probe() {
    let (mut sender, mut receiver) = halves(8, &[("sleek", "true")]);
    (0..8).for_each(|_| _ = sender.send(NOW));
    let report = answer(&mut receiver, 0, plain(1000)).unwrap();
    sender.on_report_done(NOW, &report, WINDOW);
    assert!(sender.has_left() && !sender.has_work_below(100));
    sender.on_quick_probe(WINDOW);
    let mut resent = Vec::new();
    while sender.has_work_below(0) {
        resent.push(sender.send(NOW).seq);
    }
    assert_eq!(resent, [1, 2, 3, 4]);
    // Those that are late do not leave twice unless another probe says so.
    assert!(!sender.has_work_below(100));
    sender.on_quick_probe(WINDOW);
    assert!(sender.has_work_below(0));
    assert!(halves(8, &[]).0.probing().is_none());
}

/// Nothing names a connection any more once as many packets came as left, and as many answers.
#[test]
fn quiet_at_the_end() {
    let (mut sender, mut receiver) = halves(2, &[]);
    (0..2).for_each(|_| _ = sender.send(NOW));
    let first = answer(&mut receiver, 0, plain(1000)).unwrap();
    let last = answer(&mut receiver, 1, Carried { asks: true, ..plain(1000) }).unwrap();
    sender.hear(Some(&last));
    assert!(sender.on_report_done(NOW, &last, WINDOW).1 && !sender.is_quiet());
    sender.hear(Some(&first));
    assert!(sender.is_quiet());
}

/// What is under way.
#[derive(Clone, Copy, Debug)]
enum Parcel {
    Data(u32, Carried),
    Header(u32),
    Answer(u32, Report, bool),
}

/// Sends `packets` over a channel that loses, trims, doubles and delays as `chance` has it, until all is
/// acknowledged; returns how many left.
fn deliver(
    packets: u32,
    options: &[(&str, &str)],
    [loss, trims, twice]: [f64; 3],
    seed: u64,
) -> u32 {
    let (mut sender, mut receiver) = halves(packets, options);
    let mut chance = Draw::new(seed, "channel").stream(0);
    let mut under_way: BTreeMap<(Time, u32), Parcel> = BTreeMap::new();
    let (mut now, mut posted, mut left) = (Time::ZERO, 0, 0);
    let rto = Time::us(40);
    let mut here = BTreeSet::new();
    for _ in 0..1_000_000 {
        let mut out = Vec::new();
        if sender.has_work_below(16) {
            let sent = sender.send(now);
            left += 1;
            let asks = sent.retransmission || !sender.has_work_below(16);
            let marked = chance.unit() < 0.1;
            out.push(match chance.unit() < trims {
                true => Parcel::Header(sent.seq),
                false => Parcel::Data(sent.seq, Carried { bytes: 4150, marked, asks }),
            });
        } else if let Some(((at, _), parcel)) = under_way.pop_first() {
            now = now.max(at);
            match parcel {
                Parcel::Data(seq, carried) => {
                    let (arrival, _) = receiver.on_packet_done(now, seq, carried);
                    assert_eq!(arrival.accepted, here.insert(seq));
                    if matches!(arrival.reply, Reply::Ack { .. }) {
                        out.push(Parcel::Answer(seq, receiver.report(seq, carried.asks), false));
                    }
                }
                Parcel::Header(seq) => {
                    let is_nack = matches!(receiver.on_trimmed(now, seq).reply, Reply::Nack { .. });
                    assert_eq!(is_nack, !here.contains(&seq));
                    out.push(Parcel::Answer(seq, receiver.report(seq, true), is_nack));
                }
                Parcel::Answer(seq, report, is_nack) => {
                    sender.hear(Some(&report));
                    if is_nack {
                        sender.on_nack(now, seq, 0);
                    } else if sender.on_report_done(now, &report, WINDOW).1 {
                        assert!(receiver.is_done() && here.len() == packets as usize);
                        return left;
                    }
                }
            }
        } else {
            now = sender.deadline(rto).expect("something is out");
        }
        if sender.deadline(rto).is_some_and(|at| at <= now) {
            assert!(sender.on_timer(now, rto) > 0);
        }
        for parcel in out {
            let copies = u32::from(chance.unit() >= loss) * (1 + u32::from(chance.unit() < twice));
            for _ in 0..copies {
                posted += 1;
                let delay = Time::us(5) + Time(u64::from(chance.below(5_000_000)));
                under_way.insert((now + delay, posted), parcel);
            }
        }
    }
    panic!("no end in sight: {sender:?}");
}

#[test]
fn nothing_leaves_twice_in_fair_weather() {
    assert_eq!(deliver(1000, &[], [0.0; 3], 1), 1000);
    // A header is all that it takes.
    let left = deliver(1000, &[], [0.0, 0.1, 0.0], 1);
    assert!((1050..1200).contains(&left), "{left}");
}

trials! {
    #![cases(128)]
    /// Everything arrives, whatever gets lost on both ways.
    fn everything_arrives(
        packets in 1u32..200,
        weather in (0.0f64..0.3, 0.0f64..0.3, 0.0f64..0.3),
        every in prop::sample::select(&["1B", "16384B", "1MB"]),
        sleek in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let options = [("ack_every", every), ("sleek", if sleek { "true" } else { "false" })];
        deliver(packets, &options, weather.into(), seed);
    }

    /// A report says of 64 packets what a set would, and the sender knows it.
    fn bitmaps(order in prop::collection::vec(0u32..300, 1..200), exact in any::<bool>()) {
        let (mut sender, mut receiver) = halves(300, &[("ack_every", "1B")]);
        (0..300).for_each(|_| _ = sender.send(NOW));
        let mut here = BTreeSet::new();
        for seq in order {
            here.insert(seq);
            receiver.on_packet_done(NOW, seq, plain(1000));
            let report = receiver.report(seq, exact);
            let first_missing = (0..).find(|seq| !here.contains(seq)).unwrap();
            prop_assert_eq!(report.cumulative, first_missing);
            for bit in 0..64 {
                let is_in = here.contains(&(report.base + bit)) && report.base + bit > first_missing;
                prop_assert_eq!(report.bits >> bit & 1 == 1, is_in, "{} from {}", bit, report.base);
            }
            prop_assert_eq!(report.received as usize, here.len());
            sender.on_report_done(NOW, &report, WINDOW);
            prop_assert_eq!(sender.in_flight() as usize, 300 - here.len());
            prop_assert!(sender.on_nack(NOW, seq, 0).is_none(), "{} is here", seq);
        }
    }
}
