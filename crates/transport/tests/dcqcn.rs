//! DCQCN's rate against steps worked out by hand, and the laziness of its timers.

use weft_transport::{AckInfo, Congestion, CongestionConfig, DcqcnConfig, FlowPace, Loss};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

/// So many times 2^30 b/s, which single precision halves and adds exactly.
const fn gibi(n: u64) -> Rate {
    Rate::bps(n << 30)
}

/// Numbers that are easy to follow: a gain of one half.
const CONFIG: DcqcnConfig = DcqcnConfig {
    cnp_interval: Time::us(50),
    alpha_timer: Time::us(60),
    increase_timer: Time::us(40),
    byte_counter: Some(10_000),
    fast_recovery: 2,
    increase: gibi(8),
    hyper_increase: gibi(16),
    gain: 0.5,
    clamp: true,
    gaps: false,
    line: gibi(100),
    least: gibi(1),
};

#[derive(Clone)]
struct Flow(Congestion);

impl Flow {
    fn new(config: DcqcnConfig) -> Flow {
        let pace = FlowPace { mtu: 1000, rate: None, share: 1, hops: 4, header: 0, trims: false };
        Flow(Congestion::new(&CongestionConfig::Dcqcn(config), &pace))
    }
    /// Rate and target in [`gibi`], and alpha.
    fn state(&self) -> (f32, f32, f32) {
        let Congestion::Dcqcn(dcqcn) = &self.0 else { panic!("it is another") };
        let [rate, target] =
            [dcqcn.rate(), dcqcn.target()].map(|rate| rate / gibi(1).as_bps() as f32);
        (rate, target, dcqcn.alpha())
    }
    fn ack_at(&mut self, now: Time, marked: bool) -> (f32, f32, f32) {
        self.0.on_ack(&AckInfo { now, seq: 0, packets: 1, marked, in_flight: 4, rtt: Time::ZERO });
        self.state()
    }
    /// An acknowledgement at this microsecond.
    fn ack(&mut self, us: u64) -> (f32, f32, f32) {
        self.ack_at(Time::us(us), false)
    }
    fn mark(&mut self, us: u64) -> (f32, f32, f32) {
        self.ack_at(Time::us(us), true)
    }
    /// So many packets of 1000 bytes leave.
    fn send(&mut self, us: u64, packets: u32) -> (f32, f32, f32) {
        (0..packets).for_each(|_| self.0.on_send(Time::us(us), 1000));
        self.state()
    }
}

#[test]
fn rates_by_hand() {
    let mut flow = Flow::new(CONFIG);
    assert_eq!((flow.0.window(), flow.0.pacing(1000)), (u32::MAX, None));
    assert!(flow.0.is_paced() && !flow.0.paces_absolutely() && !flow.0.wants_rtt());
    // Until the first mark nothing happens, however long it takes and whatever leaves.
    assert_eq!(flow.send(90, 100), (100.0, 100.0, 1.0));
    assert_eq!(flow.ack(99), (100.0, 100.0, 1.0));
    // Alpha is one, and stays there.
    assert_eq!(flow.mark(100), (50.0, 100.0, 1.0));
    // 8000 bits at 50 * 2^30 b/s.
    assert_eq!(flow.0.pacing(1000), Some(Time::ps(149_011)));
    // The next notification comes no sooner than at 150 us; the timer at 140.
    assert_eq!(flow.mark(120), (50.0, 100.0, 1.0));
    assert_eq!(flow.mark(139), (50.0, 100.0, 1.0));
    assert_eq!(flow.ack(140), (75.0, 100.0, 1.0));
    assert_eq!(flow.ack(149), (75.0, 100.0, 1.0));
    // It came at 150: the timers start from there.
    assert_eq!(flow.ack(155), (37.5, 75.0, 1.0));
    assert_eq!(flow.ack(189), (37.5, 75.0, 1.0));
    assert_eq!(flow.ack(190), (56.25, 75.0, 1.0));
    assert_eq!(flow.ack(209), (56.25, 75.0, 1.0));
    assert_eq!(flow.ack(210), (56.25, 75.0, 0.5));
    assert_eq!(flow.ack(230), (65.625, 75.0, 0.5));
    // The third time of the timer: 8 more.
    assert_eq!(flow.ack(270), (74.3125, 83.0, 0.25));
    // The counter twice: it has not run out more than twice, so 8 more each time.
    assert_eq!(flow.send(275, 9), (74.3125, 83.0, 0.25));
    assert_eq!(flow.send(276, 1), (82.65625, 91.0, 0.25));
    assert_eq!(flow.send(277, 10), (90.828_125, 99.0, 0.25));
    // Both three times: 16 more, which is beyond the line.
    assert_eq!(flow.send(278, 10), (100.0, 115.0, 0.25));
    assert_eq!(flow.0.pacing(1000), None);
    // Nothing grows any more. Alpha halves at 330, 390, ..., 870 us.
    assert_eq!(flow.send(600, 1000), (100.0, 115.0, 0.25));
    let alpha = 0.25 / 1024.0;
    let rate = 100.0 * (1.0 - alpha / 2.0);
    assert_eq!(flow.mark(870), (rate, 100.0, alpha + 0.5 * (1.0 - alpha)));
    // Losses mean nothing.
    flow.0.on_loss(Time::us(871), Loss::Gap);
    flow.0.on_loss(Time::us(872), Loss::TimeOut);
    assert_eq!(flow.state().0, rate);
}

/// Both at once: the target grows by as many times the constant as both have run out beyond `F`.
#[test]
fn hyper_increase_grows() {
    let mut flow = Flow::new(DcqcnConfig {
        fast_recovery: 0,
        cnp_interval: Time::ZERO,
        hyper_increase: gibi(1),
        ..CONFIG
    });
    // Every mark is a notification.
    let rates = [0, 1, 2, 3].map(|us| flow.mark(us).0);
    assert_eq!((rates, flow.state().1), ([50.0, 25.0, 12.5, 6.25], 12.5));
    // Timer first: additive. Then by turns: once, once, twice, twice, three times.
    assert_eq!(flow.ack(43).1, 20.5);
    assert_eq!(flow.send(44, 10).1, 21.5);
    assert_eq!(flow.ack(83).1, 22.5);
    assert_eq!(flow.send(84, 10).1, 24.5);
    assert_eq!(flow.ack(123).1, 26.5);
    assert_eq!(flow.send(124, 10).1, 29.5);
}

/// Without a byte counter, with a short timer of alpha, and without clamping.
#[test]
fn as_in_nics_by_hand() {
    let mut flow = Flow::new(DcqcnConfig {
        cnp_interval: Time::us(4),
        alpha_timer: Time::us(1),
        increase_timer: Time::us(300),
        byte_counter: None,
        fast_recovery: 1,
        hyper_increase: gibi(2),
        clamp: false,
        gaps: true,
        ..CONFIG
    });
    assert_eq!(flow.mark(100), (50.0, 100.0, 1.0));
    // Keeps alpha up at 101 us, instead of its decay there, and cuts at 104.
    flow.ack_at(Time::ns(100_500), true);
    assert_eq!(flow.ack(101), (50.0, 100.0, 1.0));
    assert_eq!(flow.ack(103), (50.0, 100.0, 0.25));
    // By an eighth. There was no increase since the last cut: the target stays.
    assert_eq!(flow.ack(104), (43.75, 100.0, 0.125));
    // What leaves does not count. Half of the way once, 8 once, and 2 each time after.
    flow.send(105, 100_000);
    assert_eq!(flow.ack(403).0, 43.75);
    let rates = [404, 704, 1004, 1304].map(|us| {
        let (rate, target, _) = flow.ack(us);
        (rate, target)
    });
    let expected = [(71.875, 100.0), (89.9375, 108.0), (99.968_75, 110.0), (100.0, 112.0)];
    assert_eq!(rates, expected);
    // A time-out means nothing, a gap what a mark does. After an increase a cut takes the rate as
    // its target.
    flow.0.on_loss(Time::us(1399), Loss::TimeOut);
    assert_eq!(flow.state().1, 112.0);
    flow.0.on_loss(Time::us(1400), Loss::Gap);
    // Alpha had become nothing since.
    assert_eq!(flow.state(), (100.0, 100.0, 0.5));
}

#[test]
fn the_rate_does_not_fall_below_the_least() {
    let mut flow = Flow::new(DcqcnConfig { least: gibi(30), ..CONFIG });
    let rates = [0, 50, 100].map(|us| flow.mark(us).0);
    // Half, then after 40 us 75 and half of that, then 56.25 and what is not less than 30.
    assert_eq!(rates, [50.0, 37.5, 30.0]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Ack,
    Mark,
}

/// Times in hundreds of nanoseconds, with what happens after each.
fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![4 => Just(Step::Send), 2 => Just(Step::Ack), 1 => Just(Step::Mark)];
    prop::collection::vec((0u64..100, step), 1..400)
}

fn configs() -> impl Strategy<Value = DcqcnConfig> {
    let times = (0u64..60, 1u64..70, 1u64..50);
    let counter = prop_oneof![Just(None), (3_000u64..40_000).prop_map(Some)];
    (times, counter, 0u32..4, any::<bool>()).prop_map(|(times, byte_counter, first, clamp)| {
        let (cnp, alpha, increase) = times;
        let us = Time::us;
        let timers = DcqcnConfig {
            cnp_interval: us(cnp),
            alpha_timer: us(alpha),
            increase_timer: us(increase),
            ..CONFIG
        };
        DcqcnConfig { byte_counter, fast_recovery: first, clamp, ..timers }
    })
}

trials! {
    /// Rates and alpha stay between their ends, and who looks more often sees the same.
    fn timers_are_lazy_and_nobody_can_tell(
        config in configs(), steps in steps(), looks in prop::collection::vec(0u64..50, 400),
    ) {
        let (mut flow, mut watched) = (Flow::new(config), Flow::new(config));
        let mut now = Time::ZERO;
        for ((after, step), look) in steps.into_iter().zip(looks) {
            let next = now + Time::ns(100 * after);
            watched.ack_at(next.min(now + Time::ns(100 * look)), false);
            now = next;
            for flow in [&mut flow, &mut watched] {
                match step {
                    Step::Send => flow.0.on_send(now, 1000),
                    Step::Ack => { flow.ack_at(now, false); }
                    Step::Mark => { flow.ack_at(now, true); }
                }
            }
            let (rate, _, alpha) = flow.state();
            prop_assert!((1.0..=100.0).contains(&rate) && (0.0..=1.0).contains(&alpha));
            // What 8000 bits take at either end.
            let gap = flow.0.pacing(1000).unwrap_or(Time::ps(74_505));
            prop_assert!((74_505..=7_450_581).contains(&gap.0), "{}", gap);
        }
        prop_assert_eq!(flow.ack_at(now, false), watched.ack_at(now, false));
    }
}
