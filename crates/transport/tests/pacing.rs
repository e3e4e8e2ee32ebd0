//! Fixed rates: whose rate counts, and the gaps that it makes.

use weft_transport::{
    AckInfo, Congestion, CongestionConfig, DctcpConfig, FixedRateConfig, FlowPace, Loss,
    SwiftConfig,
};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

fn fixed(common: Option<Rate>, own: Option<Rate>) -> Congestion {
    let flow = FlowPace { mtu: 4096, rate: own, share: 1, hops: 4, header: 0, trims: false };
    Congestion::new(&CongestionConfig::FixedRate(FixedRateConfig { rate: common }), &flow)
}

#[test]
fn a_flow_s_own_rate_stands_over_the_common_one() {
    let (slow, fast) = (Some(Rate::gbps(1)), Some(Rate::gbps(10)));
    // 1250 bytes are 10,000 bits: 1 us at 10 Gb/s.
    for (common, own, gap) in [
        (None, None, None),
        (fast, None, Some(Time::us(1))),
        (None, fast, Some(Time::us(1))),
        (fast, slow, Some(Time::us(10))),
        (slow, fast, Some(Time::us(1))),
    ] {
        let congestion = fixed(common, own);
        assert_eq!(congestion.pacing(1250), gap);
        assert_eq!(congestion.is_paced(), gap.is_some());
        assert_eq!(congestion.window(), u32::MAX);
        assert!(!congestion.wants_rtt());
    }
}

#[test]
fn nothing_changes_a_fixed_rate() {
    let mut congestion = fixed(None, Some(Rate::gbps(10)));
    let before = congestion.clone();
    let now = Time::us(3);
    congestion.on_loss(now, Loss::Gap);
    congestion.on_loss(now, Loss::TimeOut);
    congestion.on_ack(&AckInfo { now, seq: 0, packets: 1, marked: true, in_flight: 9, rtt: now });
    assert_eq!(congestion, before);
}

#[test]
fn windows_have_no_fixed_rate() {
    let flow = FlowPace {
        mtu: 1000,
        rate: Some(Rate::gbps(1)),
        share: 1,
        hops: 4,
        header: 0,
        trims: false,
    };
    let dctcp =
        DctcpConfig { gain: 0.5, initial_alpha: 0.0, initial_window: 8_000, max_window: 8_000 };
    let dctcp = Congestion::new(&CongestionConfig::Dctcp(dctcp), &flow);
    assert_eq!((dctcp.is_paced(), dctcp.pacing(1000), dctcp.wants_rtt()), (false, None, false));
    let swift = CongestionConfig::Swift(SwiftConfig::with_windows(8_000, 8_000));
    let swift = Congestion::new(&swift, &flow);
    assert_eq!((swift.is_paced(), swift.pacing(1000), swift.wants_rtt()), (true, None, true));
}

/// The share of one of 127 flows out of a host of 100 Gb/s: 787,401,574 b/s. A full packet of
/// 4160 bytes takes 33,280 bits / 787,401,574 b/s = 42,265,600.03.. ps.
#[test]
fn a_127th_of_100_gbps_is_exact() {
    let rate = Rate::bps(100_000_000_000 / 127);
    assert_eq!(rate.as_bps(), 787_401_574);
    let congestion = fixed(None, Some(rate));
    assert_eq!(congestion.pacing(4160), Some(Time::ps(42_265_601)));
    for bytes in 1..=9216 {
        assert_eq!(congestion.pacing(bytes), Some(rate.serialize(u64::from(bytes))));
    }
}

/// Over 8191 flows: 12,208,521 b/s, 2.7 ms a packet.
#[test]
fn a_8191st_of_100_gbps_is_not_cut_short() {
    let congestion = fixed(None, Some(Rate::bps(100_000_000_000 / 8191)));
    assert_eq!(congestion.pacing(4160), Some(Time::ps(2_725_964_923)));
}

trials! {
    /// Never faster than the rate, and at most a picosecond a packet slower.
    fn shares_are_right_to_a_picosecond(
        link in prop::sample::select(vec![25u64, 100, 400, 800]),
        flows in 1u64..=8191,
        bytes in 1u32..=u32::from(u16::MAX),
    ) {
        let rate = Rate::bps(link * 1_000_000_000 / flows);
        let gap = fixed(Some(rate), None).pacing(bytes).expect("paced");
        let exact = rate.serialize(u64::from(bytes));
        prop_assert!(exact <= gap && gap <= exact + Time::ps(1), "{gap} for {exact}");
    }
}
