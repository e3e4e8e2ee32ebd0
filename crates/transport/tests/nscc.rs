//! NSCC's four branches and its quick adapt against steps worked out by hand; RCCC's credit at both ends.

use weft_transport::credit::{Granter, QUANTUM};
use weft_transport::{
    AckInfo, Congestion, CongestionConfig, FlowPace, Loss, PathScale, RcccConfig, unfit,
};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

/// 100 Gb/s and 12 us: the path that the constants are for, so that all scales are 1.
const PATH: PathScale = PathScale {
    bdp: 150_000,
    line: Rate::gbps(100),
    round_trip: Time::us(12),
    oversubscribed: false,
};
/// 1000 bytes of payload, 1000 on the wire.
const FLOW: FlowPace =
    FlowPace { mtu: 1000, rate: None, share: 1, hops: 6, header: 0, trims: true };

fn control(name: &str, options: &[(&str, &str)]) -> Congestion {
    Congestion::new(&CongestionConfig::read(name, options, &PATH).unwrap(), &FLOW)
}
fn nscc(options: &[(&str, &str)]) -> Congestion {
    control("nscc", options)
}
/// `packets` are acknowledged at `us`, the last of them `delay` us above 12.
fn ack(us: u64, packets: u32, marked: bool, delay: u64) -> AckInfo {
    let rtt = Time::us(12 + delay);
    AckInfo { now: Time::us(us), seq: 0, packets, marked, in_flight: packets, rtt }
}
fn bytes(congestion: &Congestion) -> f64 {
    let Congestion::Nscc(nscc) = congestion else { panic!("no NSCC") };
    nscc.bytes()
}
fn near(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-6 * other, "{one} is not {other}");
}

#[test]
fn starts_at_one_and_a_half_bdp_and_stays_below() {
    let mut window = nscc(&[]);
    assert_eq!((window.window(), window.largest_window()), (225, 225));
    (1..100).for_each(|turn| window.on_ack(&ack(12 * turn, 8, false, 0)));
    assert_eq!(window.window(), 225);
    // Whoever measures a shorter path has a smaller window.
    window.on_ack(&AckInfo { rtt: Time::us(6), ..ack(2000, 8, false, 0) });
    assert_eq!((window.window(), window.largest_window()), (112, 112));
}

#[test]
fn increases_by_hand() {
    // Proportional: alpha is 4 * 1000 / 12 us a byte; 5 us below the target of 9 us. Applied after more
    // than 8 packets.
    let mut window = nscc(&[("nscc_initial_window", "50000B")]);
    window.on_ack(&ack(1, 4, false, 4));
    assert_eq!(bytes(&window), 50_000.0);
    window.on_ack(&ack(2, 5, false, 4));
    near(bytes(&window), 50_000.0 + 4000.0 / 12.0 * 5.0 * 9000.0 / 50_000.0);
    // Fair: five packets a round trip, since the delay is at the target.
    let mut window = nscc(&[("nscc_initial_window", "50000B")]);
    window.on_ack(&ack(2, 9, false, 9));
    near(bytes(&window), 50_000.0 + 5.0 * 1000.0 * 9000.0 / 50_000.0);
    // Fast, at once: when more than a window has come without delay, a quarter of what comes then.
    let mut window = nscc(&[("nscc_initial_window", "4000B"), ("nscc_fi", "0.0")]);
    window.on_ack(&ack(2, 4, false, 0));
    window.on_ack(&ack(3, 4, false, 0));
    near(bytes(&window), 4000.0 + 1000.0);
    // Once a round trip 150 bytes, whatever comes.
    let mut window = nscc(&[("nscc_initial_window", "50000B")]);
    window.on_ack(&ack(12, 1, true, 4));
    assert_eq!(bytes(&window), 50_000.0);
    window.on_ack(&ack(13, 1, true, 4));
    near(bytes(&window), 50_150.0);
}

#[test]
fn decreases_by_hand() {
    // The average follows at once: (18 - 9) / 18 of 0.8 off, and no more within a round trip.
    let mut window = nscc(&[("nscc_delay_gain", "1.0"), ("nscc_initial_window", "100000B")]);
    window.on_ack(&ack(13, 1, true, 18));
    near(bytes(&window), 60_000.0 + 150.0);
    window.on_ack(&ack(14, 1, true, 18));
    near(bytes(&window), 60_150.0);
    // At most half.
    let mut window = nscc(&[("nscc_delay_gain", "1.0"), ("nscc_initial_window", "100000B")]);
    window.on_ack(&ack(13, 1, true, 1000));
    near(bytes(&window), 50_150.0);
    // With the usual gain the average is below the target.
    let mut window = nscc(&[("nscc_initial_window", "100000B")]);
    window.on_ack(&ack(11, 1, true, 18));
    assert_eq!(bytes(&window), 100_000.0);
}

#[test]
fn loss_takes_a_packet_or_all_but_what_came() {
    let trimmed = |last_hop, in_flight| Loss::Trimmed { last_hop, in_flight };
    let mut window = nscc(&[]);
    window.on_loss(Time::us(1), trimmed(false, 225));
    window.on_loss(Time::us(1), Loss::TimeOut);
    assert_eq!(window.window(), 223);
    // The first look is at 1 us, the next 21 us later: by then 7 packets have come, fewer than an eighth
    // of the largest window, and there was a loss.
    window.on_ack(&ack(2, 7, false, 12));
    window.on_loss(Time::us(23), trimmed(false, 100));
    assert_eq!(window.window(), 7);
    // Of the 99 that were out then, nothing more is held against it.
    (0..98).for_each(|_| window.on_loss(Time::us(24), trimmed(false, 50)));
    assert_eq!(window.window(), 7);
    window.on_loss(Time::us(24), trimmed(false, 50));
    assert_eq!(window.window(), 6);
    // With receiver credit the last hop is the receiver's.
    let mut both = control("nscc+rccc", &[]);
    both.on_loss(Time::us(1), trimmed(true, 225));
    both.on_credit(1 << 12);
    assert_eq!(both.window(), 225);
    both.on_loss(Time::us(1), trimmed(false, 225));
    assert_eq!(both.window(), 224);
}

#[test]
fn credit_by_hand() {
    let mut flow = control("rccc", &[("rccc_max_window", "4000B")]);
    assert!(
        unfit(
            &RcccConfig { max_window: 1, minds_uplinks: false }.into(),
            &weft_transport::RecoveryConfig::GO_BACK_N
        )
        .is_some()
    );
    // On speculation: four packets, and one more is asked for.
    assert_eq!((flow.window() > 0, flow.pull_target(100, 1)), (true, Some(4)));
    (0..3).for_each(|_| flow.on_send(Time::ZERO, 1000));
    assert_eq!(flow.pull_target(100, 1), Some(12));
    // An answer ends that, with what is left of it.
    flow.on_ack(&ack(1, 1, false, 0));
    assert_eq!((flow.window(), flow.pull_target(100, 1)), (0, Some(16)));
    // The backlog, divided among those that share the NIC.
    assert_eq!((flow.pull_target(2, 1), flow.pull_target(100, 4)), (Some(8), Some(4)));
    // 8 quanta let out two packets and a half: the last may overdraw.
    flow.on_credit(8);
    for left in [1, 1, 0] {
        flow.on_send(Time::ZERO, 1000);
        assert_eq!(flow.window().min(1), left);
    }
    // What was overtaken says nothing, and no more than the window is kept.
    flow.on_credit(4);
    assert_eq!(flow.window(), 0);
    flow.on_credit(1000);
    // It holds 4000 bytes of credit and could use 1000: a dozen quanta less than it was granted.
    assert_eq!(flow.pull_target(1, 1), Some(1000 - 11));
    (0..4).for_each(|_| flow.on_send(Time::ZERO, 1000));
    assert_eq!(flow.window(), 0);
}

#[test]
fn grants_take_turns() {
    // 4 payloads of 1024 bytes: 16 quanta, 4096 bytes at 100 Gb/s and 99 %.
    let mut granter = Granter::new(Rate::gbps(100), 1024, 8192);
    assert_eq!(granter.pull(Time::ZERO), None);
    granter.want('a', 40);
    granter.want('b', 10);
    let pulls: Vec<_> = (0..4).map(|_| granter.pull(Time::ZERO).unwrap()).collect();
    let granted: Vec<_> = pulls.iter().map(|pull| (pull.connection, pull.granted)).collect();
    assert_eq!(granted, [('a', 16), ('b', 10), ('a', 32), ('a', 40)]);
    let gap = |quanta: f64| (quanta * 256.0 * 80.0 / 0.99) as u64;
    assert_eq!(pulls[0].gap.0, gap(16.0));
    assert_eq!(pulls[1].gap.0, gap(10.0));
    // Nobody wants more: they take turns ahead of demand, up to a window of 32 quanta.
    let ahead: Vec<_> = std::iter::from_fn(|| granter.pull(Time::ZERO)).collect();
    let ahead: Vec<_> = ahead.iter().map(|pull| (pull.connection, pull.granted)).collect();
    assert_eq!(ahead, [('b', 26), ('a', 56), ('b', 42), ('a', 72)]);
    assert_eq!(granter.granted('a'), Some(72));
    granter.want('a', 60);
    assert_eq!(granter.pull(Time::ZERO).unwrap().granted, 88);
    granter.forget('a');
    assert_eq!((granter.granted('a'), granter.pull(Time::ZERO)), (None, None));
}

trials! {
    #![cases(128)]

    /// Credit is never granted faster than the link carries it, and whoever wants some gets all.
    fn the_link_is_shared_out(targets in prop::collection::vec(1u32..3000, 1..20)) {
        let mut granter = Granter::new(Rate::gbps(100), 4096, 0);
        for (connection, target) in targets.iter().enumerate() {
            granter.want(connection, *target);
        }
        let pulls: Vec<_> = std::iter::from_fn(|| granter.pull(Time::ZERO)).collect();
        let time: u64 = pulls.iter().map(|pull| pull.gap.0).sum();
        let bytes = u64::from(targets.iter().sum::<u32>() * QUANTUM);
        prop_assert!(time + pulls.len() as u64 >= Rate::gbps(100).serialize(bytes).0);
        for (connection, target) in targets.iter().enumerate() {
            prop_assert_eq!(granter.granted(connection), Some(*target));
        }
    }
}
