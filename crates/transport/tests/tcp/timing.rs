//! Round trips and the time-outs that follow from them.

use super::{RTO, acks, again, new, out, tcp};
use weft_transport::Sender;
use weft_units::Time;

/// A time-out that runs for 600 us: packet 0 took 200 us, and of 20 packets 1 up to `out` have left
/// at 200 us.
fn after_a_round_trip(out: u32) -> Sender {
    let mut sender = Sender::new(&tcp(&[]), 20);
    sender.send(Time::ZERO);
    sender.on_ack(Time::us(200), 0, 1);
    (1..out).for_each(|seq| assert_eq!(sender.send(Time::us(200)), new(seq)));
    assert_eq!(sender.deadline(RTO), Some(Time::us(200 + 200 + 4 * 100)));
    sender
}

/// Packets one by one, each acknowledged after such a round trip in microseconds; returns the
/// time-out of each, and of one more, as they leave.
fn time_outs(options: &[(&str, &str)], trips: &[u64]) -> Vec<Time> {
    let mut sender = Sender::new(&tcp(options), trips.len() as u32 + 1);
    let mut now = Time::ZERO;
    let mut time_outs = Vec::new();
    for seq in 0..=trips.len() {
        assert_eq!(sender.send(now), new(seq as u32));
        time_outs.push(sender.deadline(RTO).unwrap() - now);
        if let Some(trip) = trips.get(seq) {
            now += Time::us(*trip);
            sender.on_ack(now, seq as u32, seq as u32 + 1);
        }
    }
    time_outs
}

/// RFC 6298: the first sample R gives R + 4 R/2; then deviation = 3/4 deviation + 1/4 |mean - R|
/// and mean = 7/8 mean + 1/8 R.
#[test]
fn time_outs_follow_round_trips() {
    let trips = [40, 80, 45, 37, 44, 44];
    // Mean and deviation after each, in picoseconds.
    let expected = [
        (40_000_000, 20_000_000),
        (45_000_000, 25_000_000),
        (45_000_000, 18_750_000),
        (44_000_000, 16_062_500),
        (44_000_000, 12_046_875),
        (44_000_000, 9_035_156),
    ];
    let expected = expected.map(|(mean, deviation)| Time(mean + 4 * deviation));
    let found = time_outs(&[("min_rto", "50us")], &trips);
    assert_eq!((found[0], &found[1..]), (RTO, &expected[..]));
    // 120, 145, 120, 108.25, 92.1875, 80.140624 us: the last two are below the usual least.
    let usual = expected.map(|time| time.max(Time::us(100)));
    assert_eq!(time_outs(&[], &trips)[1..], usual);
    assert_eq!(usual[4..], [Time::us(100); 2]);
    let fixed = time_outs(&[("adaptive_rto", "false")], &trips);
    assert_eq!(fixed, [RTO; 7]);
    assert_eq!(time_outs(&[("min_rto", "2ms")], &[40]), [Time::ms(2); 2]);
}

#[test]
fn a_fixed_time_out_does_not_double() {
    let mut sender = out(&[("adaptive_rto", "false")], 4, 4);
    for ms in 1..10 {
        assert_eq!(sender.deadline(RTO), Some(Time::ms(ms)));
        sender.on_timer(Time::ms(ms), RTO);
        assert_eq!(sender.send(Time::ms(ms)), again(0));
    }
    assert_eq!(sender.longest_sleep(RTO), RTO);
    assert_eq!(out(&[], 1, 1).longest_sleep(RTO), Time::us(100));
    assert_eq!(out(&[], 1, 1).longest_sleep(Time::us(7)), Time::us(7));
}

/// As with timestamps (RFC 7323): those behind a gap, those that come several at a time, and what
/// has been overtaken, unless it was acknowledged by then.
#[test]
fn every_answer_is_a_round_trip() {
    let mut sender = Sender::new(&tcp(&[]), 20);
    for us in [0, 10, 20, 30, 40] {
        sender.send(Time::us(us));
    }
    // 200 us: mean 200, deviation 100.
    acks(&mut sender, Time::us(210), [1], 0);
    // 280 us: 210 and (3 * 100 + 80) / 4 = 95.
    sender.on_ack(Time::us(280), 0, 2);
    assert_eq!(sender.deadline(RTO), Some(Time::us(280 + 210 + 4 * 95)));
    // The answer to 1 once more, and that to 4, which the one to 0 has overtaken: 250 us.
    // (7 * 210 + 250) / 8 = 215, (3 * 95 + 40) / 4 = 81.25.
    assert_eq!(acks(&mut sender, Time::us(290), [1, 4], 0), [0, 0]);
    // 295 us: (7 * 215 + 295) / 8 = 225, (3 * 81.25 + 80) / 4 = 80.9375.
    sender.on_ack(Time::us(315), 2, 3);
    let deviation = Time(80_937_500);
    assert_eq!(sender.deadline(RTO), Some(Time::us(315 + 225) + deviation * 4));
}

/// Karn's algorithm.
#[test]
fn what_left_twice_is_no_round_trip() {
    let mut sender = out(&[], 20, 4);
    // Three of 200 us: deviation 100, 75, 56.25.
    assert_eq!(acks(&mut sender, Time::us(200), [1, 2, 3], 0), [0, 0, 1]);
    assert_eq!(sender.send(Time::us(200)), again(0));
    assert_eq!(sender.send(Time::us(200)), new(4));
    // 210 us or 10 us.
    sender.on_ack(Time::us(210), 0, 4);
    assert_eq!(sender.deadline(RTO), Some(Time::us(210 + 200 + 225)));
    // 4 left once: (7 * 200 + 280) / 8 = 210, (3 * 56.25 + 80) / 4 = 62.1875.
    sender.on_ack(Time::us(480), 4, 5);
    sender.send(Time::us(500));
    assert_eq!(sender.deadline(RTO), Some(Time::us(500 + 210) + Time(62_187_500) * 4));
}

#[test]
fn after_a_time_out_only_what_has_not_left_again_is_a_round_trip() {
    let mut sender = out(&[], 20, 4);
    sender.on_timer(RTO, RTO);
    for seq in 0..3 {
        assert_eq!(sender.send(RTO), again(seq));
    }
    acks(&mut sender, Time::us(1100), [1], 0);
    sender.on_ack(Time::us(1100), 0, 2);
    assert_eq!(sender.deadline(RTO), Some(Time::us(1100) + RTO), "none so far");
    // 3 is late: 1200 us and half of that.
    acks(&mut sender, Time::us(1200), [3], 2);
    sender.on_ack(Time::us(1300), 2, 4);
    assert_eq!(sender.send(Time::us(1400)), new(4));
    assert_eq!(sender.deadline(RTO), Some(Time::us(1400 + 1200 + 4 * 600)));
}

/// What a switch has trimmed was answered out of turn, and the packet that is missing not at all.
#[test]
fn a_trimmed_packet_is_no_round_trip() {
    let mut sender = out(&[], 20, 4);
    assert!(sender.on_nack(Time::us(200), 3, 2).is_some());
    assert_eq!(sender.deadline(RTO), Some(Time::us(200) + RTO), "progress");
    sender.on_ack(Time::us(300), 2, 3);
    assert_eq!(sender.deadline(RTO), Some(Time::us(300 + 300 + 4 * 150)), "the first");
}

#[test]
fn a_time_out_that_runs_keeps_its_length() {
    let mut sender = after_a_round_trip(6);
    // 200 us more: deviation 75. The next will be shorter.
    acks(&mut sender, Time::us(400), [2], 1);
    assert_eq!(sender.deadline(RTO), Some(Time::us(800)));
    // Nor does a send change it, so long as something is out.
    assert_eq!(sender.send(Time::us(410)), new(6));
    assert_eq!(sender.deadline(RTO), Some(Time::us(800)));
    // 560 us: (7 * 200 + 560) / 8 = 245, (3 * 75 + 360) / 4 = 146.25. Longer.
    acks(&mut sender, Time::us(760), [3], 1);
    assert_eq!(sender.on_timer(Time(Time::us(800).0 - 1), RTO), 0);
    assert_eq!(sender.on_timer(Time::us(800), RTO), 4);
    assert_eq!(sender.deadline(RTO), Some(Time::us(800 + 2 * (245 + 585))), "of the new length");
}

#[test]
fn fast_retransmit_starts_the_time_out_anew() {
    let mut sender = after_a_round_trip(7);
    // Deviation 75, 56.25, 42.1875.
    assert_eq!(acks(&mut sender, Time::us(400), [2, 3, 4], 1), [0, 0, 1]);
    let due = Time::us(400 + 200) + Time(42_187_500) * 4;
    assert_eq!(sender.deadline(RTO), Some(due));
    // The retransmission itself does not, nor do further duplicates.
    assert_eq!(sender.send(Time::us(450)), again(1));
    assert_eq!(acks(&mut sender, Time::us(500), [5, 6], 1), [0, 0]);
    assert_eq!(sender.deadline(RTO), Some(due));
    assert_eq!(sender.on_timer(due, RTO), 1);
}

/// The same where the time-out is fixed, and where only time-outs resend.
#[test]
fn losses_start_time_outs_anew() {
    let due = |options: &[(&str, &str)]| {
        let mut sender = out(options, 40, 12);
        let mut after = |us: u64, seqs: &[u32]| {
            acks(&mut sender, Time::us(us), seqs.iter().copied(), 0);
            (sender.deadline(RTO).unwrap() - RTO).0 / Time::us(1).0
        };
        [after(100, &[1, 2]), after(200, &[3]), after(300, &[5, 6]), after(400, &[7])]
    };
    let fixed = ("adaptive_rto", "false");
    assert_eq!(due(&[fixed]), [0, 200, 200, 200]);
    assert_eq!(due(&[fixed, ("sack", "true")]), [0, 200, 200, 400], "4 is lost as well");
    assert_eq!(due(&[fixed, ("fast_retransmit", "false")]), [0; 4]);
    assert_eq!(due(&[("fast_retransmit", "false")]), [0; 4]);
    assert_eq!(due(&[fixed, ("fast_retransmit", "false"), ("sack", "true")]), [0; 4]);
}

#[test]
fn what_follows_from_round_trips_doubles_until_there_is_progress() {
    let mut sender = after_a_round_trip(4);
    assert_eq!(sender.on_timer(Time::us(800), RTO), 3);
    assert_eq!(sender.deadline(RTO), Some(Time::us(800 + 2 * 600)));
    assert_eq!(sender.send(Time::us(900)), again(1));
    assert_eq!(sender.deadline(RTO), Some(Time::us(900 + 2 * 600)));
    // 2 took 800 us: (7 * 200 + 800) / 8 = 275, (3 * 100 + 600) / 4 = 225, 1175 altogether.
    acks(&mut sender, Time::us(1000), [2], 1);
    assert_eq!(sender.deadline(RTO), Some(Time::us(900 + 2 * 600)), "it runs already");
    assert_eq!(sender.on_timer(Time::us(2100), RTO), 0);
    assert_eq!(sender.deadline(RTO), Some(Time::us(2100 + 4 * 1175)));
    assert_eq!(sender.send(Time::us(2100)), again(1));
    sender.on_ack(Time::us(2200), 1, 3);
    assert_eq!(sender.deadline(RTO), Some(Time::us(2200 + 1175)));
}

/// The least time-out is what doubles, not what it replaces.
#[test]
fn the_least_time_out_doubles() {
    let mut sender = out(&[], 4, 4);
    sender.on_ack(Time::us(9), 0, 1);
    assert_eq!(sender.deadline(RTO), Some(Time::us(9 + 100)), "27 us are too few");
    assert_eq!(sender.on_timer(Time::us(109), RTO), 3);
    assert_eq!(sender.deadline(RTO), Some(Time::us(109 + 200)));
}

#[test]
fn a_time_out_doubles_six_times_at_most() {
    let mut sender = out(&[], 1, 1);
    let mut expected = Time::ms(1);
    let mut now = Time::ZERO;
    for doubled in 0..10u64 {
        let span = sender.deadline(RTO).unwrap() - now;
        assert_eq!(span, expected, "after {doubled} time-outs");
        now += span;
        assert_eq!(sender.on_timer(now, RTO), 1);
        assert_eq!(sender.send(now), again(0));
        expected = Time::ms(64).min(expected * 2);
    }
}

#[test]
fn the_time_out_counts_from_progress_or_the_first_send() {
    let mut sender = Sender::new(&tcp(&[]), 20);
    assert_eq!(sender.deadline(RTO), None);
    sender.send(Time::us(10));
    sender.send(Time::us(20));
    sender.send(Time::us(30));
    assert_eq!(sender.deadline(RTO), Some(Time::us(1010)), "from the first");
    acks(&mut sender, Time::us(40), [1, 2], 0);
    assert_eq!(sender.deadline(RTO), Some(Time::us(1010)), "a duplicate is no progress");
    sender.on_ack(Time::us(50), 0, 3);
    assert_eq!(sender.deadline(RTO), None, "nothing is out");
}
