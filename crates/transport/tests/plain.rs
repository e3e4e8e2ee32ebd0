//! Selective repeat against the plainest thing that could be right: a list with the state of
//! every packet, searched from end to end in each call.

use std::collections::{BTreeSet, VecDeque};
use weft_transport::{Acknowledged, Receiver, RecoveryConfig, Reply, Sender, Sent};
use weft_trial::prelude::*;
use weft_units::{Draw, Time};

const KIND: RecoveryConfig = RecoveryConfig::SELECTIVE_REPEAT;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waiting,
    Out(Time),
    Lost,
    Acked,
}

#[derive(Debug)]
struct PlainSender {
    packets: Vec<State>,
    /// All below have left once.
    next: u32,
}

impl PlainSender {
    fn new(packets: u32) -> PlainSender {
        PlainSender { packets: vec![State::Waiting; packets as usize], next: 0 }
    }
    fn count(&self, is: impl Fn(&State) -> bool) -> u32 {
        self.packets.iter().filter(|state| is(state)).count() as u32
    }
    fn in_flight(&self) -> u32 {
        self.count(|state| matches!(state, State::Out(_)))
    }
    fn has_work(&self) -> bool {
        self.count(|state| matches!(state, State::Waiting | State::Lost)) > 0
    }
    fn is_done(&self) -> bool {
        self.packets.iter().all(|state| *state == State::Acked)
    }
    /// What is lost goes first, the lowest number first.
    fn send(&mut self, now: Time) -> Sent {
        let find = |wanted| self.packets.iter().position(|state| *state == wanted);
        let lost = find(State::Lost);
        let seq = lost.or(find(State::Waiting)).expect("has work") as u32;
        self.packets[seq as usize] = State::Out(now);
        self.next = self.next.max(seq + 1);
        Sent { seq, retransmission: lost.is_some() }
    }
    fn on_ack(&mut self, seq: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let mut packets = 0;
        for number in (0..cumulative).chain([seq]).filter(|number| *number < self.next) {
            let state = &mut self.packets[number as usize];
            packets += u32::from(*state != State::Acked);
            *state = State::Acked;
        }
        Acknowledged { packets, in_flight, lost: 0 }
    }
    /// Packet `seq` came without payload.
    fn on_nack(&mut self, seq: u32, cumulative: u32) -> Option<Acknowledged> {
        let learnt = match cumulative {
            0 => Acknowledged { packets: 0, in_flight: self.in_flight(), lost: 0 },
            _ => self.on_ack(cumulative - 1, cumulative),
        };
        let state = self.packets.get_mut(seq as usize);
        let is_out = |state: &&mut State| matches!(state, State::Out(_));
        let lost = state.filter(is_out).map(|state| *state = State::Lost);
        (lost.is_some() || learnt.packets > 0).then_some(learnt)
    }
    fn deadline(&self, rto: Time) -> Option<Time> {
        let out =
            |state: &State| if let State::Out(sent) = state { Some(*sent + rto) } else { None };
        self.packets.iter().filter_map(out).min()
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        let mut lost = 0;
        for state in &mut self.packets {
            if matches!(state, State::Out(sent) if *sent + rto <= now) {
                *state = State::Lost;
                lost += 1;
            }
        }
        lost
    }
}

/// One call, or several of a kind.
#[derive(Clone, Debug)]
enum Step {
    /// So many packets, so many picoseconds apart.
    Send(u32, u64),
    /// The receiver has a packet: so far above the first that is missing, and, if it is said,
    /// all below one.
    Ack(u32, Option<u32>),
    /// All packets from there on, so many, in this order or in reverse.
    Acks(u32, u32, bool),
    /// Packet `.0` above the first that is missing came trimmed, and all below `.1` above it.
    Nack(u32, u32),
    Wait(u64),
    Timer,
    /// Waits for the deadline.
    Deadline,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = || prop_oneof![6 => 0u32..6, 3 => 0u32..80, 1 => 0u32..700];
    let step = prop_oneof![
        8 => (prop_oneof![4 => 1u32..8, 1 => 1u32..150], 0u64..2_000).prop_map(|(n, gap)| Step::Send(n, gap)),
        8 => near().prop_map(|seq| Step::Ack(seq, None)),
        3 => (near(), near()).prop_map(|(seq, all)| Step::Ack(seq, Some(all))),
        3 => (near(), near(), any::<bool>()).prop_map(|(from, n, up)| Step::Acks(from, n, up)),
        5 => (near(), prop_oneof![3 => Just(0u32), 1 => 0u32..10]).prop_map(|(seq, all)| Step::Nack(seq, all)),
        3 => (0u64..100_000).prop_map(Step::Wait),
        2 => Just(Step::Timer),
        2 => Just(Step::Deadline),
    ];
    prop::collection::vec(step, 1..120)
}

/// Both senders, to whom the same happens.
struct Pair {
    sender: Sender,
    plain: PlainSender,
    now: Time,
    rto: Time,
}

impl Pair {
    fn first_missing(&self) -> u32 {
        self.plain.packets.iter().take_while(|state| **state == State::Acked).count() as u32
    }
    fn check(&self) {
        assert_eq!(self.sender.in_flight(), self.plain.in_flight());
        assert_eq!(self.sender.has_work(), self.plain.has_work());
        assert_eq!(self.sender.is_done(), self.plain.is_done());
        assert_eq!(self.sender.deadline(self.rto), self.plain.deadline(self.rto));
    }
    fn send(&mut self) {
        if self.plain.has_work() {
            assert_eq!(self.sender.send(self.now), self.plain.send(self.now));
        }
    }
    fn ack(&mut self, seq: u32, cumulative: u32) {
        let learnt = self.sender.on_ack(self.now, seq, cumulative);
        assert_eq!(learnt, self.plain.on_ack(seq, cumulative), "{seq}, {cumulative}");
        self.check();
    }
    fn nack(&mut self, seq: u32, cumulative: u32) {
        let learnt = self.sender.on_nack(self.now, seq, cumulative);
        assert_eq!(learnt, self.plain.on_nack(seq, cumulative), "{seq}, {cumulative}");
    }
    fn timer(&mut self) {
        let lost = self.sender.on_timer(self.now, self.rto);
        assert_eq!(lost, self.plain.on_timer(self.now, self.rto));
    }
    fn step(&mut self, step: Step) {
        let missing = self.first_missing();
        match step {
            Step::Send(count, gap) => (0..count).for_each(|_| {
                self.send();
                self.now += Time(gap);
            }),
            Step::Ack(seq, all) => self.ack(missing + seq, all.map_or(0, |above| missing + above)),
            Step::Acks(from, count, true) => {
                (from..from + count).for_each(|seq| self.ack(missing + seq, 0));
            }
            Step::Acks(from, count, false) => {
                (from..from + count).rev().for_each(|seq| self.ack(missing + seq, 0));
            }
            Step::Nack(seq, all) => self.nack(missing + seq, missing + all),
            Step::Wait(span) => self.now += Time(span),
            Step::Timer => self.timer(),
            Step::Deadline => {
                self.now = self.now.max(self.plain.deadline(self.rto).unwrap_or(self.now));
                self.timer();
            }
        }
        self.check();
    }
}

trials! {
    /// Whatever is called, in whatever order, with whatever numbers.
    fn the_sender_is_the_plain_one(
        packets in prop_oneof![1u32..40, 1u32..2000],
        rto in prop_oneof![1u64..50, 1u64..100_000],
        steps in steps(),
    ) {
        let (sender, plain) = (Sender::new(&KIND, packets), PlainSender::new(packets));
        let mut pair = Pair { sender, plain, now: Time::ZERO, rto: Time(rto) };
        steps.into_iter().for_each(|step| pair.step(step));
    }

    /// Packets that come again, late, and from far ahead.
    fn the_receiver_keeps_a_set(
        packets in 1u32..1500,
        jumps in prop::collection::vec(prop_oneof![8 => 0u32..4, 2 => 0u32..90, 1 => 0u32..900], 1..600),
        back in 0u32..40,
    ) {
        let (mut receiver, mut here) = (Receiver::new(&KIND, packets), BTreeSet::new());
        for jump in jumps {
            let seq = (receiver.expected().saturating_sub(back) + jump).min(packets - 1);
            let arrival = receiver.on_data(Time::ZERO, seq);
            prop_assert_eq!(arrival.accepted, here.insert(seq));
            prop_assert_eq!(arrival.duplicate, !arrival.accepted);
            let missing = (0..).find(|seq| !here.contains(seq)).unwrap();
            prop_assert_eq!(arrival.reply, Reply::Ack { cumulative: missing });
            prop_assert_eq!(receiver.is_done(), missing == packets);
        }
    }
}

/// A window of 100,000 packets of which every tenth is lost, each with a time-out of its own:
/// no call may search the window. Done in a fraction of a second; a search takes minutes.
#[test]
#[allow(clippy::disallowed_types, reason = "a test may look at the clock")]
fn wide_windows_under_loss_are_not_searched() {
    const PACKETS: u32 = 400_000;
    const WINDOW: u32 = 100_000;
    let (gap, rto) = (Time::us(1), Time::us(150_000));
    let start = std::time::Instant::now();
    let (mut sender, mut receiver) = (Sender::new(&KIND, PACKETS), Receiver::new(&KIND, PACKETS));
    let mut chance = Draw::new(1, "loss").stream(0);
    let mut answers = VecDeque::new();
    let (mut now, mut timers, mut lost) = (Time::ZERO, 0, 0);
    while !sender.is_done() {
        if sender.has_work() && sender.in_flight() < WINDOW {
            let seq = sender.send(now).seq;
            if chance.below(10) > 0 {
                let Reply::Ack { cumulative } = receiver.on_data(Time::ZERO, seq).reply else {
                    panic!()
                };
                answers.push_back((now + Time::us(99_000), seq, cumulative));
            }
        }
        now += gap;
        while answers.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, seq, cumulative) = answers.pop_front().expect("just seen");
            sender.on_ack(now, seq, cumulative);
        }
        if sender.deadline(rto).is_some_and(|at| at <= now) {
            timers += 1;
            lost += sender.on_timer(now, rto);
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{timers} time-outs so far");
    }
    assert!(timers > 30_000 && lost > 40_000, "{timers} time-outs, {lost} losses");
}

/// Done, neither half needs more than its own few bytes.
#[test]
fn who_is_done_holds_no_memory() {
    let mut receiver = Receiver::new(&KIND, 500);
    (0..500).rev().for_each(|seq| assert!(receiver.on_data(Time::ZERO, seq).accepted));
    assert!(receiver.is_done() && receiver.on_data(Time::ZERO, 3).duplicate);
    let shown = format!("{receiver:?}");
    assert!(shown.contains("word: 0, rest: None"), "{shown}");
    assert!(matches!(Sender::done(), Sender::GoBackN(_)), "which never allocates");
}
