//! Swift against windows worked out by hand, and its bounds under anything.

use weft_transport::congestion::Swift;
use weft_transport::{AckInfo, Congestion, CongestionConfig, FlowPace, Loss, SwiftConfig};
use weft_trial::prelude::*;
use weft_units::Time;

/// Round numbers: 20 us for the path, 20 us / sqrt(cwnd) - 10 us for flow scaling, which is
/// 30 us at a quarter of a packet, 10 us at one and nothing from four packets on. MTU 1000.
const CONFIG: SwiftConfig = SwiftConfig {
    base_target: Time::us(12),
    per_hop: Time::us(2),
    scaling_range: Time::us(30),
    scaling_min: 0.25,
    scaling_max: 4.0,
    increase: 1.0,
    decrease: 0.5,
    max_cut: 0.5,
    reset_after: 3,
    min_window: 125,
    initial_window: 8_000,
    max_window: 16_000,
};

fn flow() -> FlowPace {
    FlowPace { mtu: 1000, rate: None, share: 1, hops: 4, header: 0, trims: false }
}
fn new(config: SwiftConfig) -> Congestion {
    Congestion::new(&CongestionConfig::Swift(config), &flow())
}
/// Starts with so many payload bytes.
fn starting(initial_window: u64) -> Congestion {
    new(SwiftConfig { initial_window, ..CONFIG })
}
fn swift(congestion: &Congestion) -> &Swift {
    let Congestion::Swift(swift) = congestion else { panic!("not Swift") };
    swift
}
fn cwnd(congestion: &Congestion) -> f64 {
    swift(congestion).cwnd()
}
fn ack(now: Time, packets: u32, rtt: Time) -> AckInfo {
    AckInfo { now, seq: 0, packets, marked: false, in_flight: packets, rtt }
}

#[test]
fn targets_by_hand() {
    for (window, target) in
        [(125, 50), (250, 50), (1_000, 30), (4_000, 20), (8_000, 20), (16_000, 20)]
    {
        assert_eq!(swift(&starting(window)).target(), Time::us(target), "{window} bytes");
    }
    let flat = SwiftConfig { scaling_range: Time::ZERO, initial_window: 125, ..CONFIG };
    assert_eq!(swift(&new(flat)).target(), Time::us(20));
    let late = |us| new(flat).is_late(Time::us(us));
    assert_eq!([0, 20, 21].map(late), [false, false, true], "0: nobody has measured");
}

/// 20 us and four links of 20 / 6.55 us; a window of 100 packets is beyond flow scaling, one of
/// a tenth of a packet gets all of its 100 us.
#[test]
fn default_targets() {
    let path = Time::ps(20_000_000 + 4 * 3_053_435);
    let config = SwiftConfig::with_windows(100_000, 1_000_000);
    assert_eq!(swift(&new(config)).target(), path);
    let small = new(SwiftConfig { initial_window: 99, ..config });
    assert_eq!(swift(&small).target(), path + Time::us(100));
}

#[test]
fn grows_by_a_packet_a_round_trip_below_the_target() {
    let mut congestion = starting(8_000);
    assert_eq!((congestion.window(), cwnd(&congestion)), (8, 8.0));
    congestion.on_ack(&ack(Time::us(20), 4, Time::us(19)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (8, 8.5));
    congestion.on_ack(&ack(Time::us(21), 17, Time::us(19)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (10, 10.5));
    // At the target itself nothing changes.
    congestion.on_ack(&ack(Time::us(22), 4, Time::us(20)));
    assert_eq!(cwnd(&congestion), 10.5);
    // An acknowledgement of nothing new adds nothing; 16 packets are the most.
    congestion.on_ack(&ack(Time::us(23), 0, Time::us(1)));
    assert_eq!(cwnd(&congestion), 10.5);
    congestion.on_ack(&ack(Time::us(24), 84, Time::us(1)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (16, 16.0));
}

/// One packet aims at 30 us, of which 10 are flow scaling: 25 us let it grow, and do not count
/// as a cut.
#[test]
fn grows_up_to_the_scaled_target() {
    let mut congestion = starting(1_000);
    congestion.on_ack(&ack(Time::us(100), 1, Time::us(25)));
    assert_eq!(cwnd(&congestion), 2.0);
    let mut congestion = starting(8_000);
    congestion.on_ack(&ack(Time::us(100), 1, Time::us(20)));
    assert_eq!(cwnd(&congestion), 8.0, "at the target");
    congestion.on_loss(Time::us(100), Loss::Gap);
    assert_eq!(cwnd(&congestion), 4.0, "being at the target was no cut");
}

#[test]
fn cuts_in_proportion_once_a_round_trip() {
    let mut congestion = starting(16_000);
    // 40 us against 20: half of it is excess, beta 1/2: a quarter goes.
    congestion.on_ack(&ack(Time::us(100), 1, Time::us(40)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (12, 12.0));
    // 39 us later, still 40 us: that packet left before the cut.
    congestion.on_ack(&ack(Time::us(139), 1, Time::us(40)));
    assert_eq!(cwnd(&congestion), 12.0);
    congestion.on_ack(&ack(Time::us(140), 1, Time::us(40)));
    assert_eq!(cwnd(&congestion), 9.0);
    // A packet that is faster grows the window at any time.
    congestion.on_ack(&ack(Time::us(141), 9, Time::us(10)));
    assert_eq!(cwnd(&congestion), 10.0);
}

#[test]
fn a_cut_has_a_limit() {
    // All of the excess would be 90 %; half is the most.
    let mut congestion = new(SwiftConfig { decrease: 1.0, ..CONFIG });
    congestion.on_ack(&ack(Time::ms(1), 1, Time::us(200)));
    assert_eq!(cwnd(&congestion), 4.0);
}

/// At one packet the target is 30 us: 40 us cut an eighth. Below, the target is higher.
#[test]
fn a_fraction_of_a_packet_becomes_a_gap() {
    let mut congestion = starting(1_000);
    assert_eq!((congestion.window(), congestion.pacing(1000)), (1, None));
    congestion.on_ack(&ack(Time::us(100), 1, Time::us(40)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (1, 0.875));
    // 40 us / (7/8), rounded down to a picosecond.
    assert_eq!(congestion.pacing(1000), Some(Time::ps(45_714_285)));
    // Half of it by a loss: 0.4375 packets, 91.43 us.
    congestion.on_loss(Time::us(140), Loss::Gap);
    assert_eq!((congestion.window(), cwnd(&congestion)), (1, 0.4375));
    assert_eq!(congestion.pacing(64), Some(Time::ps(91_428_571)), "whatever the packet's size");
    // Below one packet an acknowledgement adds a whole one: no gap any more.
    congestion.on_ack(&ack(Time::us(150), 1, Time::us(10)));
    assert_eq!((congestion.window(), cwnd(&congestion)), (1, 1.4375));
    assert_eq!(congestion.pacing(1000), None);
}

/// The gap follows the smoothed round trip: 32 us, then 7/8 * 32 + 1/8 * 48 = 34 us.
#[test]
fn gaps_follow_the_smoothed_round_trip() {
    let mut congestion = starting(500);
    // Before the first measurement: 20 us of path, half a packet.
    assert_eq!(congestion.pacing(1000), Some(Time::us(40)));
    // Measured, below the target of 20 + 20 / sqrt(1/2) - 10 = 38.28 us; nothing new to grow by.
    congestion.on_ack(&ack(Time::us(100), 0, Time::us(32)));
    assert_eq!(congestion.pacing(1000), Some(Time::us(64)));
    congestion.on_loss(Time::us(100), Loss::Gap);
    assert_eq!((cwnd(&congestion), congestion.pacing(1000)), (0.25, Some(Time::us(128))));
    congestion.on_ack(&ack(Time::us(110), 0, Time::us(48)));
    assert_eq!((cwnd(&congestion), congestion.pacing(1000)), (0.25, Some(Time::us(136))));
}

#[test]
fn a_gap_halves_once_a_round_trip() {
    let mut congestion = starting(8_000);
    congestion.on_ack(&ack(Time::us(10), 0, Time::us(10)));
    congestion.on_loss(Time::us(20), Loss::Gap);
    assert_eq!(congestion.window(), 4);
    congestion.on_loss(Time::us(29), Loss::Gap);
    assert_eq!(congestion.window(), 4, "within 10 us");
    congestion.on_loss(Time::us(30), Loss::Gap);
    assert_eq!(congestion.window(), 2);
    // A delay that is too long shares the limit with losses.
    congestion.on_ack(&ack(Time::us(59), 1, Time::us(30)));
    assert_eq!(cwnd(&congestion), 2.0);
}

/// The third incident closes the window to 1/8 of a packet, 125 bytes; many packets lost within
/// a round trip (20 us, nothing being measured) are one incident.
#[test]
fn time_outs_in_a_row_close_the_window() {
    let mut congestion = starting(8_000);
    for (at, expected) in [(100, 4.0), (101, 4.0), (119, 4.0), (120, 2.0), (121, 2.0), (140, 0.125)]
    {
        congestion.on_loss(Time::us(at), Loss::TimeOut);
        assert_eq!(cwnd(&congestion), expected, "at {at} us");
    }
    assert_eq!((congestion.window(), congestion.pacing(1000)), (1, Some(Time::us(160))));
}

#[test]
fn an_acknowledgement_ends_a_row_of_time_outs() {
    let mut congestion = starting(8_000);
    congestion.on_loss(Time::us(100), Loss::TimeOut);
    congestion.on_loss(Time::us(200), Loss::TimeOut);
    assert_eq!(cwnd(&congestion), 2.0);
    // Its round trip is not known: the window stays.
    congestion.on_ack(&ack(Time::us(250), 1, Time::ZERO));
    assert_eq!(cwnd(&congestion), 2.0);
    congestion.on_loss(Time::us(300), Loss::TimeOut);
    congestion.on_loss(Time::us(400), Loss::TimeOut);
    assert_eq!(cwnd(&congestion), 0.5);
}

#[test]
fn gaps_do_not_count_towards_a_row_of_time_outs() {
    let mut congestion = starting(8_000);
    congestion.on_loss(Time::us(100), Loss::Gap);
    congestion.on_loss(Time::us(200), Loss::Gap);
    congestion.on_loss(Time::us(300), Loss::TimeOut);
    assert_eq!(cwnd(&congestion), 1.0);
}

#[test]
fn windows_are_mended_at_the_start() {
    let capped = new(SwiftConfig { initial_window: 99_000, ..CONFIG });
    assert_eq!(capped.window(), 16);
    let tiny = new(SwiftConfig { initial_window: 0, max_window: 1, min_window: 0, ..CONFIG });
    assert_eq!((tiny.window(), cwnd(&tiny)), (1, 0.001));
}

#[test]
#[should_panic(expected = "flow scaling from 4 up to 4 packets")]
fn flow_scaling_needs_two_ends() {
    new(SwiftConfig { scaling_min: 4.0, ..CONFIG });
}

fn configs() -> impl Strategy<Value = SwiftConfig> {
    let shares = (0.0f64..=1.0, 0.0f64..=1.0, 0.1f64..4.0, 0u64..200);
    let windows = (1u64..2_000, 0u64..40_000, 1u64..40_000, 1u32..6);
    (shares, windows).prop_map(|((decrease, max_cut, increase, range), windows)| {
        let (min_window, initial_window, max_window, reset_after) = windows;
        SwiftConfig {
            scaling_range: Time::us(range),
            increase,
            decrease,
            max_cut,
            reset_after,
            min_window,
            initial_window,
            max_window,
            ..CONFIG
        }
    })
}

trials! {
    fn windows_stay_in_bounds_and_move_the_right_way(
        config in configs(),
        steps in prop::collection::vec((0u8..10, 0u64..60, 0u32..20, 1u64..200), 1..300),
    ) {
        let mut congestion = new(config);
        let most = (config.max_window as f64 / 1000.0).max(1.0);
        let least = (config.min_window as f64 / 1000.0).min(most);
        let (mut now, mut last_cut) = (Time::ms(1), None::<Time>);
        for (what, later, packets, rtt) in steps {
            now += Time::us(later);
            let (before, target) = (cwnd(&congestion), swift(&congestion).target());
            let rtt = Time::us(rtt);
            match what {
                0 => congestion.on_loss(now, Loss::Gap),
                1 => congestion.on_loss(now, Loss::TimeOut),
                _ => congestion.on_ack(&ack(now, packets, rtt)),
            }
            let after = cwnd(&congestion);
            prop_assert!((least..=most).contains(&after), "{after} of {least} to {most}");
            prop_assert_eq!(congestion.window(), (after as u32).max(1));
            match congestion.pacing(1000) {
                Some(gap) => prop_assert!(after < 1.0 && gap > Time::ZERO),
                None => prop_assert!(after >= 1.0),
            }
            let is_ack = what >= 2;
            if is_ack && rtt < target {
                prop_assert!(after > before || after == most || packets == 0);
                prop_assert!(after >= before);
            } else {
                prop_assert!(after <= before);
            }
            if is_ack && after < before {
                prop_assert!(after >= before * (1.0 - config.max_cut) * 0.999_999);
                let since = last_cut.map(|cut| cut.until(now));
                prop_assert!(since.is_none_or(|since| since >= rtt), "two cuts a round trip");
            }
            if after < before {
                last_cut = Some(now);
            }
        }
    }

    /// Several flows of any windows that see one delay, short of the target or beyond it, come
    /// to the bounds that they must come to.
    fn extremes_are_reached(initial in 125u64..16_000) {
        let mut congestion = starting(initial);
        for round in 1..200 {
            congestion.on_ack(&ack(Time::us(100 * round), congestion.window(), Time::us(5)));
        }
        prop_assert_eq!(cwnd(&congestion), 16.0);
        for round in 200..400 {
            congestion.on_ack(&ack(Time::us(100 * round), 1, Time::us(100)));
        }
        prop_assert_eq!(cwnd(&congestion), 0.125);
    }
}
