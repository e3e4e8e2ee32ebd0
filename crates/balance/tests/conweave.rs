//! ConWeave's leaves: step by step, and over paths with any delays.

use crate::common::leaves::{Paths, control_packet, flow, leaf, plain, run, steps};
use std::collections::BTreeSet;
use weft_balance::scheme::SchemeConfig;
use weft_balance::tor::conweave::rx::Came;
use weft_balance::tor::conweave::{ControlMessage, Leaf, Options, Part, Tag};
use weft_balance::tor::{FlowId, Ways};
use weft_fabric::PathId;
use weft_trial::prelude::*;
use weft_units::Time;

/// As for a leaf-spine.
const OPTIONS: Options = Options {
    extra_reply: Time::us(4),
    path_pause: Time::us(16),
    extra_flush: Time::us(16),
    default_wait: Time::us(200),
    expiry: Time::us(300),
    samples: 2,
};
/// A round trip between the leaves: two links each way of 1 us and 80 ns, or 5.12 ns for a control packet.
const ROUND_TRIP: Time = Time(4_170_240);

#[test]
fn defaults_go_by_the_tiers() {
    let SchemeConfig::ConWeave(scheme) = SchemeConfig::read("conweave", &[]).unwrap() else {
        panic!("another scheme")
    };
    assert_eq!(scheme.options(false), OPTIONS);
    let three = scheme.options(true);
    assert_eq!(three.extra_flush, Time::us(64));
    assert_eq!((three.default_wait, three.expiry), (Time::us(600), Time::ms(1)));
    for expiry in ["0s", "1s"] {
        let error = SchemeConfig::read("conweave", &[("expiry", expiry)]).unwrap_err();
        assert!(error.to_string().contains("out of range"), "{error}");
    }
}

/// The leaf of a sender, its clock, and a flow.
struct Sender {
    leaf: Leaf<()>,
    now: Time,
}

impl Sender {
    fn new() -> Sender {
        Sender { leaf: leaf(&OPTIONS, 0), now: Time::us(100) }
    }
    fn send_by(&mut self, after: Time, paths: &impl Ways) -> Tag {
        self.now += after;
        self.leaf.send(self.now, flow(0), 1, paths).unwrap()
    }
    fn send(&mut self, after: Time) -> Tag {
        self.send_by(after, &Paths(4))
    }
    fn hear(&mut self, message: ControlMessage) {
        self.leaf.hear(self.now, 1, &control_packet(flow(0), message));
    }
}

#[test]
fn replies_in_time_keep_a_flow_on_its_path() {
    let mut sender = Sender::new();
    let first = sender.send(Time::ZERO);
    assert_eq!((first.part, first.sent, first.tail), (Part::Init, sender.now, Time::ZERO));
    for _ in 0..20 {
        let init = sender.send(Time::ZERO);
        assert_eq!(plain(init), (first.path.0, Part::Old));
        sender.now += ROUND_TRIP;
        sender.hear(ControlMessage::Reply(init.epoch));
        let next = sender.send(Time::us(2));
        assert_eq!(plain(next), (first.path.0, Part::Init));
        assert_eq!(next.epoch, init.epoch + 1);
    }
    assert_eq!(sender.leaf.counts().reroutes, 0);
    // Until the reply is late, and to the instant.
    assert_eq!(sender.send(ROUND_TRIP + OPTIONS.extra_reply).part, Part::Old);
    assert_eq!(plain(sender.send(Time(1))), (first.path.0, Part::Tail));
}

#[test]
fn a_late_reply_moves_a_flow_once_until_it_is_clear() {
    let mut sender = Sender::new();
    let init = sender.send(Time::ZERO);
    let tail = sender.send(Time::us(9));
    assert_eq!((tail.part, tail.path, tail.epoch), (Part::Tail, init.path, init.epoch));
    assert_eq!(tail.tail, sender.now);
    sender.hear(ControlMessage::Reply(init.epoch));
    let behind = sender.send(Time::us(1));
    assert_eq!((behind.part, behind.epoch, behind.tail), (Part::New, init.epoch, tail.sent));
    // One move at a time: nothing but the other leaf's word ends it.
    for _ in 0..100 {
        let next = sender.send(Time::us(1));
        assert_eq!((next.part, next.path), (Part::New, behind.path));
    }
    sender.hear(ControlMessage::Clear(init.epoch - 1));
    assert_eq!(sender.send(Time::ZERO).part, Part::New);
    sender.hear(ControlMessage::Clear(init.epoch));
    let next = sender.send(Time::us(200));
    assert_eq!((plain(next), next.epoch), ((behind.path.0, Part::Init), init.epoch + 1));
    // Silent for too long: it begins anew, as a later epoch.
    let anew = sender.send(Time::us(301));
    assert_eq!(anew.part, Part::Init);
    assert!(anew.epoch > next.epoch + 1);
}

#[test]
fn paths_that_met_congestion_are_left_alone() {
    let begin = |paused: &[u16], after: Time| {
        let mut sender = Sender::new();
        paused.iter().for_each(|path| sender.hear(ControlMessage::Notify(PathId(*path))));
        let taken = |key| {
            let mut first = sender.leaf.clone();
            first.send(sender.now + after, flow(key), 1, &Paths(4)).unwrap();
            // Another draw for every flow.
            sender.leaf = first;
            sender.leaf.send(sender.now + after, flow(1000 + key), 1, &Paths(4)).unwrap().path.0
        };
        (0..400).map(taken).collect::<Vec<u16>>()
    };
    let is_one = |one: u16| move |path: &&u16| **path == one;
    // With two draws of four, both are paused in a sixteenth of all cases where one path is.
    let taken = begin(&[2], Time::us(15));
    let paused = taken.iter().filter(is_one(2)).count();
    assert!((5..60).contains(&paused), "{paused} of 400");
    let taken = begin(&[2], Time::us(16));
    assert!(taken.iter().filter(is_one(2)).count() > 60);
    // Where there is none else, anything goes.
    assert_eq!(begin(&[0, 1, 2, 3], Time::ZERO).into_iter().collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn without_a_good_path_a_flow_stays() {
    let mut sender = Sender::new();
    let init = sender.send(Time::ZERO);
    sender.now += Time::us(9);
    (0..4).for_each(|path| sender.hear(ControlMessage::Notify(PathId(path))));
    assert_eq!(sender.send(Time::ZERO).part, Part::Tail);
    assert_eq!(plain(sender.send(Time::ZERO)), (init.path.0, Part::New));
    assert_eq!(sender.leaf.counts().reroutes, 0);
}

/// All but one path.
struct Without(u16);

impl Ways for Without {
    fn count(&self) -> u32 {
        3
    }
    fn get(&self, index: u32) -> PathId {
        PathId(index as u16 + u16::from(index as u16 >= self.0))
    }
    fn has(&self, path: PathId) -> bool {
        path.0 != self.0
    }
}

#[test]
fn a_dead_path_is_left_at_once() {
    let mut sender = Sender::new();
    let init = sender.send(Time::ZERO);
    let next = sender.send_by(Time::ZERO, &Without(init.path.0));
    assert_eq!(next.part, Part::Init);
    assert!(next.path != init.path && next.epoch > init.epoch);
    assert_eq!(sender.leaf.counts().reroutes, 1);
    assert_eq!(sender.leaf.send(sender.now, flow(0), 1, &Paths(0)), None);
}

/// The leaf of a receiver.
struct Receiver {
    leaf: Leaf<u32>,
    next: u32,
}

impl Receiver {
    fn new() -> Receiver {
        Receiver { leaf: leaf(&OPTIONS, 1), next: 0 }
    }
    /// A packet, numbered as they come: what leaves, and what is written.
    fn get(&mut self, us: u64, epoch: u32, part: Part, sent: u64, tail: u64) -> (Vec<u32>, usize) {
        let (sent, tail) = (Time::us(sent), Time::us(tail));
        let tag = Tag { path: PathId(0), epoch, part, sent, tail };
        let came = Came { flow: flow(0), tag, marked: false, bytes: 100, item: self.next };
        self.next += 1;
        let mut out = Vec::new();
        let message = self.leaf.receive(Time::us(us), came, &mut out);
        (out, message.iter().flatten().count())
    }
    fn wait(&mut self) -> (Time, Vec<u32>) {
        let (at, mut out) = (self.leaf.deadline().expect("something is held"), Vec::new());
        self.leaf.time(at, &mut out);
        (at, out)
    }
}

#[test]
fn packets_behind_a_tail_wait_for_it() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.get(10, 5, Part::Init, 1, 0), (vec![0], 1));
    assert_eq!(receiver.get(11, 5, Part::New, 9, 8), (vec![], 0));
    assert_eq!(receiver.get(12, 5, Part::New, 9, 8), (vec![], 0));
    assert_eq!((receiver.leaf.holding(), receiver.leaf.counts().queues), (2, 1));
    // The tail left 7 us after the last of the old path that came: at 17 us, and 16 us more.
    assert_eq!(receiver.leaf.deadline(), Some(Time::us(33)));
    // Another one of the old path, which was slower: 30 + 6 + 16.
    assert_eq!(receiver.get(30, 5, Part::Old, 2, 0), (vec![3], 0));
    assert_eq!(receiver.leaf.deadline(), Some(Time::us(52)));
    assert_eq!(receiver.get(40, 5, Part::Tail, 8, 8), (vec![4, 1, 2], 1));
    assert_eq!(receiver.get(41, 5, Part::New, 10, 8), (vec![5], 0));
    let counts = receiver.leaf.counts();
    assert_eq!((counts.held, counts.held_bytes, counts.flushes), (2, 200, 0));
    assert_eq!((counts.held_for, counts.longest), (Time::us(57), Time::us(29)));
    assert_eq!((receiver.leaf.deadline(), receiver.leaf.holding()), (None, 0));
    // What is of an older epoch goes by.
    assert_eq!(receiver.get(50, 6, Part::Init, 20, 0), (vec![6], 1));
    assert_eq!(receiver.get(51, 5, Part::New, 11, 8), (vec![7], 0));
}

#[test]
fn what_is_held_for_too_long_is_let_go() {
    let mut receiver = Receiver::new();
    // Nothing of the old path has come.
    assert_eq!(receiver.get(10, 5, Part::New, 9, 8).0, []);
    assert_eq!(receiver.wait(), (Time::us(226), vec![0]));
    assert_eq!(receiver.get(230, 5, Part::New, 9, 8).0, [1]);
    assert_eq!(receiver.leaf.counts().premature, 0);
    // The tail was only late: one guess too early, whatever else comes.
    assert_eq!(receiver.get(231, 5, Part::Old, 7, 0).0, [2]);
    assert_eq!(receiver.get(232, 5, Part::Tail, 8, 8).0, [3]);
    let counts = receiver.leaf.counts();
    assert_eq!((counts.flushes, counts.premature), (1, 1));
    // A new epoch lets go what is held, too.
    assert_eq!(receiver.get(240, 6, Part::New, 20, 19).0, []);
    assert_eq!(receiver.get(241, 7, Part::Init, 30, 0).0, [4, 5]);
    assert_eq!(receiver.leaf.deadline(), None);
}

trials! {
    #![cases(512)]

    /// The guarantee: nothing is on its way for longer than a flow is known and than a tail may be
    /// late. Control packets come when they like, or never.
    fn packets_leave_in_order(steps in steps(400, 80_000, false)) {
        let options = Options { extra_flush: Time::us(100), ..OPTIONS };
        let outcome = run(&options, &steps);
        prop_assert!(outcome.longest <= options.extra_flush);
        prop_assert!(outcome.is_in_order(), "{:?}", outcome.delivered);
        prop_assert_eq!(outcome.rx.premature, 0);
        prop_assert_eq!(outcome.holding, 0);
    }

    /// With any timers: in order, or a queue was let go too early.
    fn disorder_means_that_a_timer_was_too_short(
        steps in steps(400, 80_000, false), flush in 0u64..60, wait in 0u64..60
    ) {
        let (extra_flush, default_wait) = (Time::us(flush), Time::us(wait));
        let outcome = run(&Options { extra_flush, default_wait, ..OPTIONS }, &steps);
        prop_assert!(outcome.is_in_order() || outcome.rx.premature > 0);
        prop_assert!(outcome.rx.premature <= outcome.rx.flushes);
        prop_assert_eq!(&sorted(&outcome.delivered), &sorted(&outcome.arrived));
        prop_assert_eq!(outcome.holding, 0);
    }

    /// Whatever is lost: what came leaves, once, and in time.
    fn losses_hold_nothing_up(steps in steps(400, 80_000, true)) {
        let outcome = run(&OPTIONS, &steps);
        prop_assert_eq!(&sorted(&outcome.delivered), &sorted(&outcome.arrived));
        prop_assert_eq!(outcome.holding, 0);
        // No packet is expected later than after the silence that ends a flow, and it waits for a
        // tail as long as that takes at most.
        let most = OPTIONS.default_wait.max(OPTIONS.expiry) + OPTIONS.extra_flush;
        prop_assert!(outcome.rx.longest <= most + Time::us(80), "{:?}", outcome.rx.longest);
    }
}

fn sorted(
    packets: &std::collections::BTreeMap<u32, Vec<u32>>,
) -> std::collections::BTreeMap<u32, Vec<u32>> {
    let mut packets = packets.clone();
    packets.values_mut().for_each(|list| list.sort_unstable());
    packets
}

/// That the properties above are about something.
#[test]
fn random_runs_move_hold_and_guess() {
    use weft_trial::proptest::strategy::ValueTree;
    use weft_trial::proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut rx, mut tx, mut disorders) = (None, None, 0);
    for _ in 0..50 {
        let steps = steps(400, 80_000, false).new_tree(&mut runner).unwrap().current();
        let outcome = run(&OPTIONS, &steps);
        disorders += u32::from(!outcome.is_in_order());
        let add = |all: &mut Option<weft_balance::tor::TorCounts>, one| match all {
            None => *all = Some(one),
            Some(all) => all.add(&one),
        };
        add(&mut rx, outcome.rx);
        add(&mut tx, outcome.tx);
    }
    let (rx, tx) = (rx.unwrap(), tx.unwrap());
    assert!(tx.reroutes > 200 && rx.control_packets > 500, "{tx:?} {rx:?}");
    assert!(rx.held > 200 && rx.queues == 3 && rx.premature > 10, "{rx:?}");
    assert!(disorders > 5, "{disorders}");
}

#[test]
fn flows_are_told_apart() {
    let (one, other) = (flow(0), FlowId { src: weft_units::HostId(9), ..flow(0) });
    let mut leaf: Leaf<()> = leaf(&OPTIONS, 0);
    let first = leaf.send(Time::us(1), one, 1, &Paths(4)).unwrap();
    assert_eq!(first.part, Part::Init);
    assert_eq!(leaf.send(Time::us(2), other, 1, &Paths(4)).unwrap().part, Part::Init);
    assert_eq!(leaf.send(Time::us(2), one, 1, &Paths(4)).unwrap().part, Part::Old);
    assert_eq!(leaf.counts().flows, 2);
}
