//! What every recovery promises, whatever it is told: over a channel that loses, delays,
//! duplicates, trims and reorders packets and answers, everything arrives and is acknowledged.

use crate::common::{Channel, FAIR, Parcel, Weather};
use std::collections::BTreeSet;
use weft_transport::{
    Acknowledged, Arrival, RECOVERIES, Receiver, RecoveryConfig, RecoveryInfo, Reply, Sender,
};
use weft_trial::prelude::*;
use weft_units::Time;

type Told = (&'static str, &'static [(&'static str, &'static str)]);

/// All recoveries under all of their options.
const SETS: [Told; 23] = [
    ("go-back-n", &[]),
    ("go-back-n", &[("nack_rewind", "message")]),
    ("go-back-n", &[("nack_repeat", "true")]),
    ("go-back-n", &[("nack_quiet", "20us")]),
    ("go-back-n", &[("nack_quiet", "20us"), ("nack_repeat", "true")]),
    ("go-back-n", &[("nack_quiet", "7us"), ("nack_repeat", "true"), ("nack_rewind", "message")]),
    ("selective-repeat", &[]),
    ("trim", &[]),
    ("selective-nack", &[]),
    ("tcp", &[]),
    ("tcp", &[("dup_acks", "1")]),
    ("tcp", &[("dup_acks", "6"), ("min_rto", "1us")]),
    ("tcp", &[("dup_acks", "32")]),
    ("tcp", &[("fast_retransmit", "false")]),
    ("tcp", &[("adaptive_rto", "false")]),
    ("tcp", &[("sack", "true")]),
    ("tcp", &[("sack", "true"), ("dup_acks", "1")]),
    ("tcp", &[("sack", "true"), ("dup_acks", "32"), ("adaptive_rto", "false")]),
    ("tcp", &[("sack", "true"), ("fast_retransmit", "false")]),
    ("tcp", &[("sack", "true"), ("min_rto", "1us")]),
    ("coding", &[]),
    ("coding", &[("coding_overhead", "0.05")]),
    ("coding", &[("coding_overhead", "0.5"), ("coding_extra", "25")]),
];

fn recovery((name, options): Told) -> RecoveryConfig {
    RecoveryConfig::read(name, options).unwrap()
}

#[test]
fn no_recovery_and_no_option_is_left_out() {
    // What reports is in `uet.rs`.
    let reports = |info: &&RecoveryInfo| RecoveryConfig::read(info.name, &[]).unwrap().reports();
    for info in RECOVERIES.iter().filter(|info| !reports(info)) {
        let sets: Vec<_> = SETS.iter().filter(|(name, _)| *name == info.name).collect();
        assert!(sets.iter().any(|(_, given)| given.is_empty()), "{} as it is", info.name);
        for option in info.options {
            let given = |set: &&&Told| set.1.iter().any(|(key, _)| *key == option.key);
            assert!(sets.iter().find(given).is_some(), "{} of {}", option.key, info.name);
        }
    }
}

/// How many numbers the sender has to hear of: packets, or symbols.
fn needed(kind: &RecoveryConfig, packets: u32) -> u32 {
    match kind {
        RecoveryConfig::Coding(code) => code.symbols(packets),
        _ => packets,
    }
}

/// Whether the sender uses all that acknowledgements say, so that nothing is sent again of which
/// it knows that it is there.
fn is_selective(kind: &RecoveryConfig) -> bool {
    use RecoveryConfig::{SelectiveNack, SelectiveRepeat, Tcp, Trim};
    matches!(kind, SelectiveRepeat(_) | Trim(_) | SelectiveNack(_))
        || matches!(kind, Tcp(tcp) if tcp.sack)
}

#[derive(Debug, Default)]
struct Seen {
    left: BTreeSet<u32>,
    /// The sender has an acknowledgement for it.
    told: BTreeSet<u32>,
    accepted: BTreeSet<u32>,
    acknowledged: u32,
    sends: u64,
    again: u64,
    /// Taken for lost by a timer.
    timed_out: u64,
}

struct World {
    weather: Weather,
    selective: bool,
    needed: u32,
    packets: u32,
    now: Time,
    sender: Sender,
    receiver: Receiver,
    channel: Channel,
    seen: Seen,
    deadline: Option<Time>,
}

impl World {
    fn new(kind: RecoveryConfig, packets: u32, weather: Weather, seed: u64) -> World {
        World {
            weather,
            selective: is_selective(&kind),
            needed: needed(&kind, packets),
            packets,
            now: Time::ZERO,
            sender: Sender::new(&kind, packets),
            receiver: Receiver::new(&kind, packets),
            channel: Channel::new(weather, seed),
            seen: Seen::default(),
            deadline: None,
        }
    }

    fn run(mut self) -> Seen {
        for _ in 0..4_000_000u64 {
            if self.sender.is_done() {
                self.check_end();
                return self.seen;
            }
            let pause = self.step();
            self.check();
            self.now += pause;
        }
        panic!("no end in sight: {:?}", self.sender);
    }

    fn check_end(&self) {
        assert!(self.receiver.is_done() && !self.sender.has_work());
        assert_eq!(self.receiver.expected(), self.packets);
        assert_eq!(self.seen.acknowledged, self.needed);
        assert_eq!(self.seen.accepted.len() as u32, self.needed);
        // Symbols may be out that nobody needs any more.
        if !self.sender.is_rateless() {
            let deadline = self.sender.deadline(self.weather.rto);
            assert_eq!((self.sender.in_flight(), deadline), (0, None));
            assert!(self.seen.accepted.iter().copied().eq(0..self.packets));
        }
    }

    fn check(&mut self) {
        let Seen { left, acknowledged, .. } = &self.seen;
        assert!(self.sender.in_flight() + acknowledged <= left.len() as u32, "{:?}", self.sender);
        let deadline = self.sender.deadline(self.weather.rto);
        if let Some(at) = deadline
            && self.deadline.is_none_or(|before| at < before)
        {
            let sleep = self.sender.longest_sleep(self.weather.rto);
            assert!(at >= self.now + sleep, "who sleeps {sleep} from {} misses {at}", self.now);
        }
        self.deadline = deadline;
    }

    /// Sends if the window is open; else waits for an arrival or the timer. Returns how long that
    /// takes.
    fn step(&mut self) -> Time {
        let arrival = self.channel.next();
        let deadline = self.sender.deadline(self.weather.rto);
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        if is_due(arrival) {
            self.arrive();
        } else if is_due(deadline) {
            self.timer();
        } else if self.sender.has_work() && self.sender.in_flight() < self.weather.window {
            self.send();
            return Time::us(1);
        } else {
            let next = [arrival, deadline].into_iter().flatten().min();
            self.now = next.expect("something is under way or a timer runs");
        }
        Time::ZERO
    }

    fn send(&mut self) {
        let next = self.sender.peek();
        let sent = self.sender.send(self.now);
        assert_eq!(sent.seq, next, "{:?}", self.sender);
        let again = !self.seen.left.insert(sent.seq);
        assert_eq!(sent.retransmission, again, "packet {}", sent.seq);
        assert!(!again || !self.sender.is_rateless(), "symbol {} again", sent.seq);
        assert!(self.sender.is_rateless() || sent.seq < self.packets);
        let told = self.seen.told.contains(&sent.seq);
        assert!(!self.selective || !told, "{} is there: {:?}", sent.seq, self.sender);
        self.seen.sends += 1;
        self.seen.again += u64::from(again);
        // No network makes two symbols of one.
        self.channel.post_data(self.now, sent.seq, !self.sender.is_rateless());
    }

    fn timer(&mut self) {
        let deadline = self.sender.deadline(self.weather.rto).expect("the timer runs");
        let early = self.sender.on_timer(Time(deadline.0 - 1), self.weather.rto);
        assert_eq!(early, 0, "a picosecond before the deadline");
        assert_eq!(self.sender.deadline(self.weather.rto), Some(deadline));
        self.seen.timed_out += u64::from(self.sender.on_timer(self.now, self.weather.rto));
        let next = self.sender.deadline(self.weather.rto);
        assert!(next.is_none_or(|next| next > self.now), "time stands still");
    }

    fn arrive(&mut self) {
        match self.channel.take() {
            Parcel::Data(seq) => {
                let arrival = self.receiver.on_data(self.now, seq);
                self.data(seq, arrival);
            }
            Parcel::Header(seq) => {
                let arrival = self.receiver.on_trimmed(self.now, seq);
                assert!(!arrival.accepted && !arrival.duplicate, "there is no payload");
                self.answer(seq, arrival.reply);
            }
            Parcel::Ack { seq, cumulative } => {
                let learnt = self.sender.on_ack(self.now, seq, cumulative);
                self.seen.told.insert(seq);
                self.seen.told.extend(0..cumulative);
                self.learn(Some(learnt));
            }
            Parcel::Nack { seq, cumulative } => {
                let learnt = self.sender.on_nack(self.now, seq, cumulative);
                self.learn(learnt);
            }
        }
    }

    fn data(&mut self, seq: u32, arrival: Arrival) {
        assert!(!(arrival.accepted && arrival.duplicate));
        if arrival.accepted {
            assert!(self.seen.accepted.insert(seq), "{seq} is accepted twice");
        }
        if arrival.duplicate {
            assert!(self.seen.accepted.contains(&seq), "{seq} is new");
        }
        if !self.sender.is_rateless() {
            let missing = (0..).find(|seq| !self.seen.accepted.contains(seq));
            assert_eq!(Some(self.receiver.expected()), missing);
        }
        self.answer(seq, arrival.reply);
    }

    fn answer(&mut self, seq: u32, reply: Reply) {
        match reply {
            Reply::Ack { cumulative } => {
                self.channel.post_answer(self.now, Parcel::Ack { seq, cumulative });
            }
            Reply::Nack { cumulative } => {
                self.channel.post_answer(self.now, Parcel::Nack { seq, cumulative });
            }
            Reply::None => {}
        }
    }

    fn learn(&mut self, learnt: Option<Acknowledged>) {
        self.seen.acknowledged += learnt.map_or(0, |learnt| learnt.packets);
        assert!(self.seen.acknowledged <= self.needed);
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    let often = || prop_oneof![Just(0.0), 0.0f64..0.3];
    let times = (1u64..10, prop_oneof![Just(0), 0u64..20], 3u64..100);
    (often(), often(), often(), times, prop_oneof![1u32..4, 1u32..200]).prop_map(
        |(loss, twice, trims, (delay, jitter, rto), window)| {
            let (delay, jitter, rto) = (Time::us(delay), Time::us(jitter), Time::us(rto));
            Weather { loss, twice, trims, delay, jitter, rto, window }
        },
    )
}

trials! {
    #![cases(1500)]

    fn everything_arrives_through_any_weather(
        told in prop::sample::select(&SETS),
        packets in 1u32..150,
        weather in weather(),
        seed in any::<u64>(),
    ) {
        World::new(recovery(told), packets, weather, seed).run();
    }
}

#[test]
fn the_worst_weather_for_each() {
    let weather =
        Weather { loss: 0.3, twice: 0.2, trims: 0.3, jitter: Time::us(15), window: 64, ..FAIR };
    for told in SETS {
        for seed in 0..5 {
            let seen = World::new(recovery(told), 300, weather, seed).run();
            assert!(seen.sends > 400, "{told:?}: {} sends", seen.sends);
        }
    }
}

#[test]
fn fair_weather_needs_no_retransmission() {
    for told in SETS {
        let kind = recovery(told);
        let seen = World::new(kind, 1000, FAIR, 1).run();
        assert_eq!((seen.again, seen.timed_out), (0, 0), "{told:?}");
        // Symbols leave until the last acknowledgement is back: a round trip more than needed.
        let more = if Sender::new(&kind, 1).is_rateless() { 0..=20 } else { 0..=0 };
        let sends = seen.sends - u64::from(needed(&kind, 1000));
        assert!(more.contains(&sends), "{told:?}: {sends} more than needed");
    }
}
