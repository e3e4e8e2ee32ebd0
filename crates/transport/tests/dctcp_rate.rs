//! DCTCP's rate against steps worked out by hand.

use weft_transport::{AckInfo, Congestion, CongestionConfig, DctcpRateConfig, FlowPace, Loss};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

/// Gains of a quarter, so that steps are easy to follow.
const CONFIG: DctcpRateConfig = DctcpRateConfig {
    gain: 0.25,
    initial_alpha: 1.0,
    line: Rate::gbps(100),
    least: Rate::gbps(1),
    increase: Rate::gbps(10),
};

fn new(config: DctcpRateConfig) -> Congestion {
    let flow = FlowPace { mtu: 1000, rate: None, share: 1, hops: 4, header: 0, trims: false };
    Congestion::new(&CongestionConfig::DctcpRate(config), &flow)
}

/// An acknowledgement while four packets are out; returns the rate in Gb/s.
fn ack(congestion: &mut Congestion, marked: bool) -> f32 {
    let (now, in_flight) = (Time::ZERO, 4);
    congestion.on_ack(&AckInfo { now, seq: 0, packets: 1, marked, in_flight, rtt: now });
    rate(congestion)
}

fn rate(congestion: &Congestion) -> f32 {
    let Congestion::DctcpRate(dctcp) = congestion else { panic!("it is another") };
    dctcp.rate() / 1e9
}

#[test]
fn rates_by_hand() {
    let mut sender = new(CONFIG);
    assert_eq!((sender.window(), sender.pacing(1000)), (u32::MAX, None));
    assert!(sender.is_paced() && !sender.paces_absolutely() && !sender.wants_rtt());
    // The first mark: alpha is one. No second cut within a round trip of four packets.
    assert_eq!(ack(&mut sender, true), 50.0);
    assert_eq!(sender.pacing(1000), Some(Time::ps(160_000)));
    assert_eq!([true, true, true].map(|mark| ack(&mut sender, mark)), [50.0; 3]);
    // The next one ends the round, all of whose packets were marked, and may cut again.
    assert_eq!(ack(&mut sender, true), 25.0);
    assert_eq!([(); 3].map(|()| ack(&mut sender, false)), [25.0; 3]);
    // One mark in four: alpha is 1 - 1/4 * 3/4. No cut, so ten more.
    assert_eq!(ack(&mut sender, false), 35.0);
    assert_eq!([(); 4].map(|()| ack(&mut sender, false)), [35.0, 35.0, 35.0, 45.0]);
    // A gap means nothing, a time-out all of the line.
    sender.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(rate(&sender), 45.0);
    sender.on_loss(Time::ZERO, Loss::TimeOut);
    assert_eq!((rate(&sender), sender.pacing(1000)), (100.0, None));
}

trials! {
    fn a_rate_stays_between_its_ends(marks in prop::collection::vec(any::<bool>(), 1..300)) {
        let mut sender = new(CONFIG);
        for mark in marks {
            let rate = ack(&mut sender, mark);
            prop_assert!((1.0..=100.0).contains(&rate), "{}", rate);
            let gap = sender.pacing(1000).unwrap_or(Time::ps(80_000));
            prop_assert!((80_000..=8_000_000).contains(&gap.0), "{}", gap);
        }
    }
}
