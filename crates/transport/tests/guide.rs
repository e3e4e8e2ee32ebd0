//! The recovery of `docs/add-a-scheme.md`, compiled as it stands there and put to work.

mod common;

// The file says `super::`, as it would in `crates/transport/src/recovery`. Public there, private
// to this test.
#[allow(unreachable_pub)]
#[path = "guide"]
mod recovery {
    pub(crate) use weft_transport::recovery::{
        Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent,
    };
    pub(crate) mod stop_and_wait;
}

use common::{Channel, FAIR, Parcel, Weather};
use recovery::stop_and_wait::StopAndWait;
use recovery::{ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf};
use weft_units::{Options, Time};

const GUIDE: &str = include_str!("../../../docs/add-a-scheme.md");

#[test]
fn the_guide_shows_this_file() {
    assert!(GUIDE.contains(&format!("```rust\n{}```\n", include_str!("guide/stop_and_wait.rs"))));
}

fn told(batch: &str) -> StopAndWait {
    const INFO: RecoveryInfo = StopAndWait::INFO;
    let given = [("wait_batch", batch)];
    let mut options = Options::new("the guide", INFO.options, &given).unwrap();
    StopAndWait::read(&mut options).unwrap()
}

#[test]
fn the_guides_recovery_waits() {
    let mut sender = told("3").sender(7);
    let mut seqs = || {
        let mut seqs = Vec::new();
        while sender.has_work() {
            seqs.push(sender.send(Time::ZERO).seq);
        }
        let last = *seqs.last().expect("a batch");
        sender.on_ack(Time::us(1), last, last + 1);
        (seqs, sender.is_done())
    };
    assert_eq!(seqs(), (vec![0, 1, 2], false));
    assert_eq!(seqs(), (vec![3, 4, 5], false));
    assert_eq!(seqs(), (vec![6], true));
}

/// Runs until everything is acknowledged; returns how many packets left.
fn deliver(kind: StopAndWait, packets: u32, weather: Weather, seed: u64) -> u64 {
    let (mut sender, mut receiver) = (kind.sender(packets), kind.receiver(packets));
    let mut channel = Channel::new(weather, seed);
    let (mut now, mut sends) = (Time::ZERO, 0);
    while !sender.is_done() {
        let deadline = sender.deadline(weather.rto);
        if sender.has_work() && sender.in_flight() < weather.window {
            let sent = sender.send(now);
            channel.post_data(now, sent.seq, true);
            (now, sends) = (now + Time::us(1), sends + 1);
        } else if channel.next().is_some_and(|at| deadline.is_none_or(|deadline| at < deadline)) {
            now = now.max(channel.next().unwrap());
            match channel.take() {
                Parcel::Data(seq) => {
                    let parcel = match receiver.on_data(now, seq).reply {
                        Reply::Ack { cumulative } => Parcel::Ack { seq, cumulative },
                        Reply::Nack { cumulative } => Parcel::Nack { seq, cumulative },
                        Reply::None => continue,
                    };
                    channel.post_answer(now, parcel);
                }
                Parcel::Header(seq) => {
                    receiver.on_trimmed(now, seq);
                }
                Parcel::Ack { seq, cumulative } => {
                    sender.on_ack(now, seq, cumulative);
                }
                Parcel::Nack { seq, cumulative } => {
                    sender.on_nack(now, seq, cumulative);
                }
            }
        } else {
            now = now.max(deadline.expect("nothing is under way: a timer runs"));
            assert!(sender.on_timer(now, weather.rto) > 0);
        }
    }
    assert!(receiver.is_done() && receiver.expected() == packets);
    sends
}

#[test]
fn the_guides_recovery_delivers() {
    for batch in ["1", "3", "64"] {
        assert_eq!(deliver(told(batch), 100, FAIR, 1), 100);
        let bad = Weather { loss: 0.3, twice: 0.2, trims: 0.2, jitter: Time::us(9), ..FAIR };
        for seed in 0..20 {
            assert!(deliver(told(batch), 100, bad, seed) > 100);
        }
    }
}
