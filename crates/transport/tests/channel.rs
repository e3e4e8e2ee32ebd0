//! Go-back-N and selective repeat over a bad channel, with a model beside the sender that counts
//! what is out; after every step the two must agree. What all recoveries have in common is in
//! `delivery.rs`.

use crate::common::{Channel, FAIR, Parcel, Weather};
use std::collections::{BTreeMap, BTreeSet};
use weft_transport::{Receiver, RecoveryConfig, Reply, Sender, Trim};
use weft_trial::prelude::*;
use weft_units::Time;

/// What an observer who sees every call knows.
#[derive(Debug, Default)]
struct Model {
    /// Packets that are out, and since when.
    out: BTreeMap<u32, Time>,
    /// Taken for lost and not sent again.
    lost: BTreeSet<u32>,
    left_before: BTreeSet<u32>,
    acknowledged: BTreeSet<u32>,
    accepted: BTreeSet<u32>,
    /// The last send or acknowledgement.
    active: Time,
    reported: bool,
    duplicates: u64,
    sends: u64,
}

struct World {
    kind: RecoveryConfig,
    weather: Weather,
    packets: u32,
    now: Time,
    sender: Sender,
    receiver: Receiver,
    model: Model,
    channel: Channel,
}

impl World {
    fn new(kind: RecoveryConfig, packets: u32, weather: Weather, seed: u64) -> World {
        World {
            kind,
            weather,
            packets,
            now: Time::ZERO,
            sender: Sender::new(&kind, packets),
            receiver: Receiver::new(&kind, packets),
            model: Model::default(),
            channel: Channel::new(weather, seed),
        }
    }
    fn is_go_back_n(&self) -> bool {
        self.kind == RecoveryConfig::GO_BACK_N
    }

    /// Runs until everything is acknowledged; returns the model.
    fn run(mut self) -> Model {
        for _ in 0..4_000_000u64 {
            if self.sender.is_done() {
                self.check_end();
                return self.model;
            }
            self.step();
            assert_eq!(self.sender.in_flight() as usize, self.model.out.len(), "{:?}", self.model);
            assert_eq!(self.sender.deadline(self.weather.rto), self.deadline());
        }
        panic!("no end in sight: {:?}", self.sender);
    }

    fn check_end(&self) {
        assert!(self.receiver.is_done() && !self.sender.has_work());
        assert_eq!(self.sender.in_flight(), 0);
        assert_eq!(self.model.accepted.len(), self.packets as usize);
        assert_eq!(self.model.acknowledged.len(), self.packets as usize);
    }

    fn deadline(&self) -> Option<Time> {
        let oldest = match self.is_go_back_n() {
            true => (!self.model.out.is_empty()).then_some(self.model.active),
            false => self.model.out.values().min().copied(),
        };
        oldest.map(|time| time + self.weather.rto)
    }

    /// Sends if the window is open; else waits for an arrival or the timer.
    fn step(&mut self) {
        let arrival = self.channel.next();
        if arrival.is_some_and(|at| at <= self.now) {
            return self.arrive();
        }
        let deadline = self.sender.deadline(self.weather.rto);
        if deadline.is_some_and(|at| at <= self.now) {
            return self.timer();
        }
        if self.sender.has_work() && self.sender.in_flight() < self.weather.window {
            self.send();
            self.now += Time::us(1);
            return;
        }
        let next = [arrival, deadline].into_iter().flatten().min();
        self.now = self.now.max(next.expect("something is under way or a timer runs"));
        if arrival.is_some_and(|at| at <= self.now) {
            self.arrive();
        } else {
            self.timer();
        }
    }

    fn send(&mut self) {
        let next = self.sender.peek();
        let sent = self.sender.send(self.now);
        assert_eq!(sent.seq, next, "{:?}", self.sender);
        let again = !self.model.left_before.insert(sent.seq);
        assert_eq!(sent.retransmission, again, "packet {}", sent.seq);
        if again && !self.is_go_back_n() {
            assert!(self.model.lost.remove(&sent.seq), "{} had not timed out", sent.seq);
        }
        assert_eq!(self.model.out.insert(sent.seq, self.now), None, "{} is out", sent.seq);
        self.model.active = self.now;
        self.model.sends += 1;
        self.channel.post_data(self.now, sent.seq, true);
    }

    fn timer(&mut self) {
        let deadline = self.deadline().expect("the timer runs");
        let early = self.sender.on_timer(Time(deadline.0 - 1), self.weather.rto);
        assert_eq!(early, 0, "a picosecond before the deadline");
        let due: Vec<u32> = match self.is_go_back_n() {
            true => self.model.out.keys().copied().collect(),
            false => {
                let is_due = |sent: &Time| *sent + self.weather.rto <= self.now;
                self.model.out.iter().filter(|(_, at)| is_due(at)).map(|(seq, _)| *seq).collect()
            }
        };
        let lost = self.sender.on_timer(self.now, self.weather.rto);
        assert_eq!(lost as usize, due.len());
        self.model.active = self.now;
        for seq in due {
            self.model.out.remove(&seq);
            self.model.lost.insert(seq);
        }
    }

    fn arrive(&mut self) {
        match self.channel.take() {
            Parcel::Data(seq) => self.data(seq),
            Parcel::Header(seq) => self.header(seq),
            Parcel::Ack { seq, cumulative } => self.ack(seq, cumulative),
            Parcel::Nack { seq, cumulative } => self.nack(seq, cumulative),
        }
    }

    /// Go-back-N ignores headers; the others report each.
    fn header(&mut self, seq: u32) {
        let arrival = self.receiver.on_trimmed(self.now, seq);
        let cumulative = self.receiver.expected();
        let reply = match self.is_go_back_n() {
            true => Reply::None,
            false => Reply::Nack { cumulative },
        };
        assert_eq!((arrival.reply, arrival.accepted, arrival.duplicate), (reply, false, false));
        if reply != Reply::None {
            self.channel.post_answer(self.now, Parcel::Nack { seq, cumulative });
        }
    }

    fn data(&mut self, seq: u32) {
        let before = self.receiver.expected();
        let arrival = self.receiver.on_data(self.now, seq);
        let known = self.model.accepted.contains(&seq);
        assert_eq!(arrival.duplicate, known);
        self.model.duplicates += u64::from(known);
        if self.is_go_back_n() {
            assert_eq!(arrival.accepted, seq == before, "in order only");
            let gap = seq > before;
            let reply = match (gap, self.model.reported) {
                (true, false) => Reply::Nack { cumulative: before },
                (true, true) => Reply::None,
                (false, _) => Reply::Ack { cumulative: self.receiver.expected() },
            };
            assert_eq!(arrival.reply, reply);
            self.model.reported = gap || self.model.reported && !arrival.accepted;
        } else {
            assert_eq!(arrival.accepted, !known);
            assert_eq!(arrival.reply, Reply::Ack { cumulative: self.receiver.expected() });
        }
        if arrival.accepted {
            self.model.accepted.insert(seq);
        }
        let missing = (0..).find(|seq| !self.model.accepted.contains(seq));
        assert_eq!(Some(self.receiver.expected()), missing);
        match arrival.reply {
            Reply::Ack { cumulative } => {
                self.channel.post_answer(self.now, Parcel::Ack { seq, cumulative });
            }
            Reply::Nack { cumulative } => {
                self.channel.post_answer(self.now, Parcel::Nack { seq, cumulative });
            }
            Reply::None => {}
        }
    }

    /// Notes that `seqs` are acknowledged; returns how many are news.
    fn acknowledge(&mut self, seqs: impl Iterator<Item = u32>) -> u32 {
        let mut news = 0;
        for seq in seqs {
            self.model.out.remove(&seq);
            self.model.lost.remove(&seq);
            news += u32::from(self.model.acknowledged.insert(seq));
        }
        news
    }

    fn ack(&mut self, seq: u32, cumulative: u32) {
        let before = self.model.out.len() as u32;
        let learnt = self.sender.on_ack(self.now, seq, cumulative);
        let alone = (!self.is_go_back_n()).then_some(seq);
        let news = self.acknowledge((0..cumulative).chain(alone));
        self.model.active = self.now;
        assert_eq!((learnt.packets, learnt.in_flight), (news, before));
    }

    fn nack(&mut self, seq: u32, cumulative: u32) {
        let before = self.model.out.len() as u32;
        let learnt = self.sender.on_nack(self.now, seq, cumulative);
        if self.is_go_back_n() {
            let stale = self.model.acknowledged.contains(&cumulative);
            assert_eq!(learnt.is_none(), stale, "NACK for {cumulative}");
            let Some(learnt) = learnt else { return };
            assert_eq!(learnt.packets, self.acknowledge(0..cumulative));
            self.model.active = self.now;
            self.model.out.clear();
        } else {
            let news = self.acknowledge(0..cumulative);
            let lost = self.model.out.remove(&seq).is_some();
            if lost {
                self.model.lost.insert(seq);
            }
            let learnt = learnt.map(|learnt| (learnt.packets, learnt.in_flight));
            assert_eq!(learnt, (lost || news > 0).then_some((news, before)));
        }
    }
}

const KINDS: [RecoveryConfig; 3] =
    [RecoveryConfig::GO_BACK_N, RecoveryConfig::SELECTIVE_REPEAT, RecoveryConfig::Trim(Trim)];

trials! {
    fn everything_arrives_once_through_any_weather(
        kind in prop::sample::select(&KINDS),
        packets in 1u32..150,
        window in prop_oneof![1u32..4, 1u32..200],
        loss in 0.0f64..0.3,
        twice in prop_oneof![Just(0.0), 0.0f64..0.3],
        trims in prop_oneof![Just(0.0), 0.0f64..0.3],
        delay in 1u64..10,
        jitter in prop_oneof![Just(0), 0u64..20],
        rto in 3u64..100,
        seed in any::<u64>(),
    ) {
        let (delay, jitter, rto) = (Time::us(delay), Time::us(jitter), Time::us(rto));
        let weather = Weather { loss, twice, trims, delay, jitter, rto, window };
        World::new(kind, packets, weather, seed).run();
    }
}

#[test]
fn fair_weather_needs_no_retransmission() {
    for kind in KINDS {
        let model = World::new(kind, 1000, FAIR, 1).run();
        assert_eq!((model.sends, model.duplicates), (1000, 0), "{kind:?}");
    }
}

/// Reordering alone: selective repeat does not care, go-back-N resends.
#[test]
fn reordering_hurts_only_go_back_n() {
    let weather = Weather { jitter: Time::us(10), window: 64, ..FAIR };
    let go_back_n = World::new(RecoveryConfig::GO_BACK_N, 500, weather, 1).run();
    let selective = World::new(RecoveryConfig::SELECTIVE_REPEAT, 500, weather, 1).run();
    assert_eq!((selective.sends, selective.duplicates), (500, 0));
    assert!(go_back_n.sends > 1000, "{} sends", go_back_n.sends);
}

/// With a time-out below the round trip every packet is resent, and known already.
#[test]
fn an_early_timer_makes_duplicates_only() {
    let weather = Weather { rto: Time::us(4), ..FAIR };
    let model = World::new(RecoveryConfig::SELECTIVE_REPEAT, 200, weather, 1).run();
    assert!(model.duplicates > 100, "{} duplicates", model.duplicates);
}

#[test]
fn windows_far_beyond_the_first_rings() {
    let weather = Weather { window: 50_000, jitter: Time::us(400), rto: Time::secs(1), ..FAIR };
    let model = World::new(RecoveryConfig::SELECTIVE_REPEAT, 3000, weather, 1).run();
    assert_eq!((model.sends, model.duplicates), (3000, 0));
}
