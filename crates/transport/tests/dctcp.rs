//! DCTCP against a sequence of windows worked out by hand.

use weft_transport::{AckInfo, Congestion, CongestionConfig, DctcpConfig, FlowPace, Loss};
use weft_trial::prelude::*;
use weft_units::Time;

/// Windows of 8 packets at first and 16 at most; a large gain makes for round numbers.
const CONFIG: DctcpConfig =
    DctcpConfig { gain: 0.5, initial_alpha: 0.0, initial_window: 8_000, max_window: 16_000 };

fn dctcp(config: DctcpConfig) -> Congestion {
    let flow = FlowPace { mtu: 1000, rate: None, share: 1, hops: 4, header: 0, trims: false };
    Congestion::new(&CongestionConfig::Dctcp(config), &flow)
}
fn ack(packets: u32, marked: bool, in_flight: u32) -> AckInfo {
    AckInfo { now: Time::ZERO, seq: 0, packets, marked, in_flight, rtt: Time::ZERO }
}
fn alpha(congestion: &Congestion) -> f32 {
    let Congestion::Dctcp(dctcp) = congestion else { panic!("not DCTCP") };
    dctcp.alpha()
}
/// `count` acknowledgements of one packet each, the first `marked` of them marked, while
/// `in_flight` packets are out before each.
fn acks(congestion: &mut Congestion, count: u32, marked: u32, in_flight: u32) {
    for index in 0..count {
        congestion.on_ack(&ack(1, index < marked, in_flight));
    }
}

#[test]
fn windows_by_hand() {
    let mut dctcp = dctcp(CONFIG);
    assert_eq!(dctcp.window(), 8);
    // First round: 8 packets, no mark, full: one more.
    acks(&mut dctcp, 7, 0, 8);
    assert_eq!(dctcp.window(), 8);
    acks(&mut dctcp, 1, 0, 8);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (9, 0.0));
    // The 7 packets then out are the next round: all marked. alpha = 1/2, 9 * 3/4 = 6.75.
    acks(&mut dctcp, 6, 6, 9);
    assert_eq!(dctcp.window(), 9, "cut once a round, at its end");
    acks(&mut dctcp, 1, 1, 7);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (6, 0.5));
    // 6 are out; half of them marked: alpha stays 1/2, 6.75 * 3/4 = 5.0625.
    acks(&mut dctcp, 5, 3, 6);
    acks(&mut dctcp, 1, 0, 5);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (5, 0.5));
    // 4 are out, no mark, full: alpha = 1/4, 6.0625.
    acks(&mut dctcp, 4, 0, 5);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (6, 0.25));
    // 4 again (5 before the last); never full: alpha = 1/8, no growth.
    acks(&mut dctcp, 4, 0, 3);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (6, 0.125));
}

#[test]
fn a_gap_halves_once_a_round() {
    let mut dctcp = dctcp(CONFIG);
    dctcp.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(dctcp.window(), 4);
    dctcp.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(dctcp.window(), 4, "the same round");
    acks(&mut dctcp, 8, 0, 3);
    dctcp.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!(dctcp.window(), 2, "the next round");
}

#[test]
fn a_time_out_returns_to_the_initial_window_and_forgets_the_round() {
    let mut dctcp = dctcp(CONFIG);
    // Eight packets without a mark, of a full window: it grows beyond where it started.
    acks(&mut dctcp, 8, 0, 8);
    assert_eq!(dctcp.window(), 9);
    acks(&mut dctcp, 3, 3, 4);
    dctcp.on_loss(Time::ZERO, Loss::TimeOut);
    assert_eq!(dctcp.window(), 8);
    acks(&mut dctcp, 8, 0, 8);
    assert_eq!((dctcp.window(), alpha(&dctcp)), (9, 0.0), "the marks of before are forgotten");
}

#[test]
fn a_time_out_never_opens_a_window_that_was_cut() {
    let mut dctcp = dctcp(CONFIG);
    dctcp.on_loss(Time::ZERO, Loss::Gap);
    dctcp.on_loss(Time::ZERO, Loss::TimeOut);
    assert_eq!(dctcp.window(), 4);
}

/// One acknowledgement may stand for many packets, as under go-back-N with lost ACKs.
#[test]
fn a_cumulative_acknowledgement_counts_all_its_packets() {
    let mut dctcp = dctcp(CONFIG);
    dctcp.on_ack(&ack(8, true, 8));
    assert_eq!((dctcp.window(), alpha(&dctcp)), (6, 0.5));
}

#[test]
fn the_window_is_a_packet_at_least() {
    let tiny = DctcpConfig { initial_window: 10, max_window: 100, ..CONFIG };
    assert_eq!(dctcp(tiny).window(), 1);
    let capped = DctcpConfig { initial_window: 99_000, ..CONFIG };
    assert_eq!(dctcp(capped).window(), 16);
}

/// Under persistent marks alpha goes to one and the window to one packet; without any, to the
/// greatest window.
#[test]
fn extremes_are_reached() {
    let mut dctcp = dctcp(CONFIG);
    for _ in 0..50 {
        let window = dctcp.window();
        acks(&mut dctcp, window, window, window);
    }
    assert_eq!(dctcp.window(), 1);
    assert!(alpha(&dctcp) > 0.999);
    for _ in 0..50 {
        let window = dctcp.window();
        acks(&mut dctcp, window, 0, window);
    }
    assert_eq!(dctcp.window(), 16);
    assert!(alpha(&dctcp) < 0.001);
}

trials! {
    fn windows_and_alpha_stay_in_bounds(
        steps in prop::collection::vec((0u8..10, 1u32..20, any::<bool>(), 0u32..40), 1..400),
        gain in 0.0f64..=1.0,
        initial in 1u64..40_000,
        max in 1u64..40_000,
    ) {
        let mut dctcp = dctcp(DctcpConfig {
            gain, initial_alpha: 1.0, initial_window: initial, max_window: max,
        });
        let most = (max / 1000).max(1) as u32;
        for (what, packets, marked, out) in steps {
            match what {
                0 => dctcp.on_loss(Time::ZERO, Loss::Gap),
                1 => dctcp.on_loss(Time::ZERO, Loss::TimeOut),
                _ => dctcp.on_ack(&ack(packets, marked, packets + out)),
            }
            prop_assert!((1..=most).contains(&dctcp.window()));
            prop_assert!((0.0..=1.0).contains(&alpha(&dctcp)));
        }
    }
}
