//! The recovery and the congestion control of `docs/extend`, compiled as they stand there and put to
//! work.

mod common;

// The files say `super::`, as they would in `crates/transport/src/recovery` and `congestion`. Public
// there, private to this test.
#[allow(unreachable_pub)]
#[path = "guide"]
mod recovery {
    pub(crate) use weft_transport::recovery::{
        Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent,
    };
    pub(crate) mod stop_and_wait;
}

#[allow(unreachable_pub)]
#[path = "guide"]
mod congestion {
    pub(crate) use weft_transport::congestion::{
        AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
    };
    pub(crate) mod aimd;
}

use common::{Channel, FAIR, Parcel, Weather};
use congestion::aimd::{Aimd, AimdConfig};
use congestion::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use recovery::stop_and_wait::StopAndWait;
use recovery::{ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf};
use weft_units::{Options, Rate, Time};

#[test]
fn the_guides_show_these_files() {
    for (guide, file) in [
        (
            include_str!("../../../docs/extend/loss-recovery.md"),
            include_str!("guide/stop_and_wait.rs"),
        ),
        (include_str!("../../../docs/extend/congestion-control.md"), include_str!("guide/aimd.rs")),
    ] {
        assert!(guide.contains(&format!("```rust\n{file}```\n")));
    }
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

/// A window of 10 packets, of which a cut leaves `keep`.
fn aimd(keep: &str) -> Aimd {
    const INFO: CongestionInfo = AimdConfig::INFO;
    let path = PathScale {
        bdp: 10_000,
        line: Rate::gbps(100),
        round_trip: Time::us(5),
        oversubscribed: false,
    };
    let given = [("aimd_keep", keep)];
    let mut options = Options::new("the guide", INFO.options, &given).unwrap();
    let config = AimdConfig::read(&mut options, &path).unwrap();
    assert_eq!(config.initial_window(), Some(10_000));
    config.state(&FlowPace { mtu: 1_000, rate: None, share: 1, hops: 4, header: 0, trims: false })
}

fn ack(marked: bool, in_flight: u32) -> AckInfo {
    AckInfo { now: Time::ZERO, seq: 0, packets: 1, marked, in_flight, rtt: Time::ZERO }
}

#[test]
fn the_guides_control_grows_and_cuts() {
    let mut state = aimd("0.5");
    assert_eq!(state.window(), 10);
    // A window of acknowledgements is a little less than a packet more, as the window grows.
    (0..11).for_each(|_| state.on_ack(&ack(false, 11)));
    assert_eq!(state.window(), 11);
    // What is not used does not grow.
    (0..100).for_each(|_| state.on_ack(&ack(false, 3)));
    assert_eq!(state.window(), 11);
    // The marks of one round trip cut once, those of the next one again.
    (0..11).for_each(|_| state.on_ack(&ack(true, 11)));
    assert_eq!(state.window(), 5);
    state.on_ack(&ack(true, 5));
    assert_eq!(state.window(), 2);
    state.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(state.window(), 2, "the same round trip");
    state.on_loss(Time::ZERO, Loss::TimeOut);
    assert_eq!(state.window(), 1);
    state.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(state.window(), 1, "never less than a packet");
    let mut gentle = aimd("0.9");
    gentle.on_ack(&ack(true, 10));
    assert_eq!(gentle.window(), 9);
    (0..100_000).for_each(|_| gentle.on_ack(&ack(false, u32::MAX)));
    assert_eq!(gentle.window(), 80, "never more than eight times the first");
}
