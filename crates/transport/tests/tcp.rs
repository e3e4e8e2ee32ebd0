//! TCP's recovery step by step: duplicates, holes, time-outs and what follows from round trips,
//! each number worked out by hand.

use proptest::prelude::*;
use weft_transport::{Acknowledged, Receiver, RecoveryConfig, Reply, Sender, Sent};
use weft_units::{Draw, Time};

/// The configured time-out: where an adaptive one starts.
const RTO: Time = Time::ms(1);

fn tcp(options: &[(&str, &str)]) -> RecoveryConfig {
    RecoveryConfig::read("tcp", options).unwrap()
}
/// A sender of `packets` packets of which all up to `out` have left, at time zero.
fn out(options: &[(&str, &str)], packets: u32, out: u32) -> Sender {
    let mut sender = Sender::new(&tcp(options), packets);
    let sent: Vec<_> = (0..out).map(|_| sender.send(Time::ZERO)).collect();
    assert!(sent.iter().map(|sent| sent.seq).eq(0..out));
    assert!(sent.iter().all(|sent| !sent.retransmission));
    sender
}
fn again(seq: u32) -> Sent {
    Sent { seq, retransmission: true }
}
fn new(seq: u32) -> Sent {
    Sent { seq, retransmission: false }
}
/// Acknowledgements of `seqs`, all of which say `cumulative`; returns what each took for lost.
fn acks(sender: &mut Sender, seqs: impl IntoIterator<Item = u32>, cumulative: u32) -> Vec<u32> {
    let seqs = seqs.into_iter();
    seqs.map(|seq| sender.on_ack(Time::us(9), seq, cumulative).lost).collect()
}
/// Everything that the sender wants to send again; `sent` is what has left.
fn resends(sender: &mut Sender, now: Time, sent: u32) -> Vec<u32> {
    let mut seqs = Vec::new();
    while sender.has_work() && seqs.len() < 1000 {
        let next = sender.send(now);
        if !next.retransmission {
            assert_eq!(next.seq, sent, "the first that is new");
            break;
        }
        seqs.push(next.seq);
    }
    seqs
}

#[test]
fn so_many_duplicates_are_one_loss() {
    for (threshold, text) in [(1, "1"), (3, "3"), (6, "6"), (32, "32")] {
        let mut sender = out(&[("dup_acks", text)], 100, 100);
        let mut expected = vec![0; 60];
        expected[threshold - 1] = 1;
        // Packet 0 is missing.
        assert_eq!(acks(&mut sender, 1..61, 0), expected, "threshold {threshold}");
        assert_eq!(resends(&mut sender, Time::us(10), 100), [0]);
        assert_eq!(acks(&mut sender, 61..100, 0), [0; 39], "not a second time");
        assert!(!sender.has_work());
        let learnt = sender.on_ack(Time::us(20), 0, 100);
        assert_eq!(learnt, Acknowledged { packets: 100, in_flight: 1, lost: 0 });
        assert!(sender.is_done());
    }
}

#[test]
fn duplicates_make_room_in_the_window() {
    let mut sender = out(&[], 20, 8);
    assert_eq!(sender.in_flight(), 8);
    acks(&mut sender, [1, 2], 0);
    assert_eq!(sender.in_flight(), 6);
    assert_eq!(sender.send(Time::us(9)), new(8), "nothing is lost yet");
    assert_eq!(sender.in_flight(), 7);
    acks(&mut sender, [3], 0);
    assert_eq!([sender.send(Time::us(9)), sender.send(Time::us(9))], [again(0), new(9)]);
    assert_eq!(sender.in_flight(), 7, "0 and 4 to 9");
}

#[test]
fn duplicates_are_counted_in_a_row() {
    let mut sender = out(&[], 20, 12);
    assert_eq!(acks(&mut sender, [1, 2], 0), [0, 0]);
    assert_eq!(acks(&mut sender, [0], 3), [0]);
    assert_eq!(acks(&mut sender, [4, 5], 3), [0, 0]);
    // One that has been overtaken is not in the row, and does not end it.
    assert_eq!(acks(&mut sender, [2], 0), [0]);
    assert_eq!(acks(&mut sender, [6], 3), [1]);
    assert_eq!(resends(&mut sender, Time::us(10), 12), [3]);
}

#[test]
fn who_has_nothing_out_counts_nothing() {
    let mut sender = out(&[], 20, 4);
    sender.on_ack(Time::us(9), 3, 4);
    assert_eq!(acks(&mut sender, [1, 2, 3, 0, 1], 4), [0; 5]);
    assert_eq!(sender.send(Time::us(10)), new(4));
    assert_eq!(sender.in_flight(), 1);
}

#[test]
fn a_partial_acknowledgement_names_the_next_hole() {
    // 0, 4 and 7 of 0 to 8 are lost.
    let mut sender = out(&[], 20, 9);
    assert_eq!(acks(&mut sender, [1, 2, 3, 5, 6, 8], 0), [0, 0, 1, 0, 0, 0]);
    assert_eq!(sender.send(Time::us(10)), again(0));
    assert_eq!(sender.send(Time::us(10)), new(9));
    // 0 arrives: everything to 4. What was out when the repair began ends at 9.
    sender.on_ack(Time::us(20), 0, 4);
    assert_eq!(sender.send(Time::us(20)), again(4), "at the first acknowledgement");
    sender.on_ack(Time::us(21), 9, 4);
    assert_eq!(sender.send(Time::us(21)), new(10));
    sender.on_ack(Time::us(30), 4, 7);
    assert_eq!(sender.send(Time::us(30)), again(7));
    // The repair is over: what is missing now, needs three duplicates of its own.
    sender.on_ack(Time::us(40), 7, 10);
    assert_eq!(sender.send(Time::us(40)), new(11));
    assert_eq!(acks(&mut sender, [11, 12, 13], 10), [0, 0, 1]);
    assert_eq!(sender.send(Time::us(50)), again(10));
}

#[test]
fn without_fast_retransmit_only_time_outs_resend() {
    for sack in ["false", "true"] {
        let mut sender = out(&[("fast_retransmit", "false"), ("sack", sack)], 50, 50);
        assert_eq!(acks(&mut sender, 1..50, 0), [0; 49]);
        assert!(!sender.has_work());
        assert_eq!(sender.deadline(RTO), Some(RTO));
        assert_eq!(sender.on_timer(RTO, RTO), 1);
        assert_eq!(sender.send(RTO), again(0));
        let all = if sack == "true" { Vec::new() } else { (1..50).collect() };
        assert_eq!(resends(&mut sender, RTO, 50), all);
    }
}

#[test]
fn a_time_out_resends_all_and_doubles_until_there_is_progress() {
    let mut sender = out(&[], 8, 8);
    assert_eq!(sender.on_timer(Time::us(999), RTO), 0);
    assert_eq!(sender.on_timer(Time::ms(1), RTO), 8);
    assert_eq!((sender.in_flight(), sender.deadline(RTO)), (0, Some(Time::ms(3))));
    assert_eq!(sender.send(Time::ms(2)), again(0));
    assert_eq!(sender.deadline(RTO), Some(Time::ms(4)), "from the first send on");
    assert_eq!(sender.send(Time::ms(3)), again(1));
    assert_eq!(sender.deadline(RTO), Some(Time::ms(4)));
    // Twice more: 4 ms, then 8.
    assert_eq!(sender.on_timer(Time::ms(4), RTO), 2);
    sender.send(Time::ms(4));
    assert_eq!(sender.deadline(RTO), Some(Time::ms(8)));
    assert_eq!(sender.on_timer(Time::ms(8), RTO), 1);
    sender.send(Time::ms(8));
    assert_eq!(sender.deadline(RTO), Some(Time::ms(16)));
    // Progress resets it. Packet 0 had left several times: its round trip says nothing.
    sender.on_ack(Time::ms(9), 0, 1);
    assert_eq!(sender.deadline(RTO), Some(Time::ms(10)));
    assert_eq!(resends(&mut sender, Time::ms(9), 8), [1, 2, 3, 4, 5, 6, 7]);
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
fn what_arrives_after_all_is_not_sent_again() {
    let mut sender = out(&[], 8, 8);
    sender.on_timer(Time::ms(1), RTO);
    assert_eq!(sender.send(Time::ms(1)), again(0));
    // Five of the first round had arrived, their acknowledgements late.
    sender.on_ack(Time::us(1001), 4, 5);
    assert_eq!(sender.in_flight(), 0);
    assert_eq!(resends(&mut sender, Time::ms(2), 8), [5, 6, 7]);
}

#[test]
fn duplicates_mean_nothing_after_a_time_out() {
    let mut sender = out(&[], 20, 8);
    sender.on_timer(Time::ms(1), RTO);
    sender.send(Time::ms(1));
    // Until all of the first eight are acknowledged: of packet 0 the receiver says so, twice.
    assert_eq!(acks(&mut sender, 1..8, 0), [0; 7]);
    assert_eq!(sender.send(Time::ms(1)), again(1));
    sender.on_ack(Time::ms(2), 0, 7);
    assert_eq!(acks(&mut sender, [1, 2, 3, 4], 7), [0; 4]);
    assert_eq!(sender.send(Time::ms(2)), again(7));
    for seq in 8..12 {
        assert_eq!(sender.send(Time::ms(2)), new(seq));
    }
    sender.on_ack(Time::ms(2), 7, 8);
    assert_eq!(acks(&mut sender, [9, 10, 11], 8), [0, 0, 1], "over: duplicates count again");
}

#[test]
fn a_second_time_out_repairs_as_much_as_the_first() {
    let mut sender = out(&[], 20, 8);
    for ms in [1, 3] {
        assert_eq!(sender.on_timer(Time::ms(ms), RTO), if ms == 1 { 8 } else { 2 });
        assert_eq!([sender.send(Time::ms(ms)), sender.send(Time::ms(ms))], [again(0), again(1)]);
    }
    // 8 packets were out at first, whatever has left since then.
    sender.on_ack(Time::ms(4), 1, 2);
    assert_eq!(acks(&mut sender, [4, 5, 6], 2), [0, 0, 0]);
}

#[test]
fn a_time_out_ends_fast_recovery() {
    // 0 and 5 of 0 to 7 are lost, and 0 once more.
    let mut sender = out(&[], 20, 8);
    assert_eq!(acks(&mut sender, [1, 2, 3], 0), [0, 0, 1]);
    sender.on_timer(Time::ms(1), RTO);
    assert_eq!(resends(&mut sender, Time::ms(1), 8), (0..8).collect::<Vec<_>>());
    sender.on_ack(Time::ms(2), 0, 5);
    // 5 is on its way already: no second copy.
    assert_eq!(sender.send(Time::ms(2)), new(9));
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

/// One packet at a time is timed, and one that has left twice is not (Karn's algorithm).
#[test]
fn round_trips_are_those_of_packets_that_left_once() {
    let mut sender = Sender::new(&tcp(&[]), 20);
    for us in 0..6 {
        sender.send(Time::us(us));
    }
    // 0 is timed; the answer to 3 says nothing of it, that to 0 comes after 200 us.
    acks(&mut sender, [3], 0);
    sender.on_ack(Time::us(200), 0, 1);
    assert_eq!(sender.deadline(RTO), Some(Time::us(200 + 200 + 4 * 100)));
    // 1 to 5 are not timed: nothing changes.
    sender.on_ack(Time::us(210), 4, 5);
    assert_eq!(sender.deadline(RTO), Some(Time::us(210 + 600)));
    // 6 is, but it is resent before it is acknowledged.
    for _ in 0..4 {
        sender.send(Time::us(220));
    }
    sender.on_ack(Time::us(230), 5, 6);
    assert_eq!(acks(&mut sender, [7, 8, 9], 6), [0, 0, 1]);
    assert_eq!(sender.send(Time::us(240)), again(6));
    sender.on_ack(Time::us(250), 6, 10);
    assert_eq!(sender.send(Time::us(300)), new(10));
    assert_eq!(sender.deadline(RTO), Some(Time::us(300 + 600)));
    // 10 is timed again: |200 - 400| / 4 + 3/4 of 100 is 125, 7/8 of 200 + 1/8 of 400 is 225.
    sender.send(Time::us(300));
    sender.on_ack(Time::us(700), 10, 11);
    assert_eq!(sender.deadline(RTO), Some(Time::us(700 + 225 + 4 * 125)));
}

#[test]
fn a_time_out_ends_timing() {
    let mut sender = out(&[], 20, 3);
    sender.on_ack(Time::us(200), 0, 1);
    // 3 is timed, and 1 times out: what comes after that may be an answer to anything.
    assert_eq!(sender.send(Time::us(200)), new(3));
    assert_eq!(sender.on_timer(Time::us(200 + 600), RTO), 3);
    assert_eq!(sender.send(Time::us(800)), again(1));
    sender.on_ack(Time::us(900), 1, 4);
    assert_eq!(sender.send(Time::us(900)), new(4));
    assert_eq!(sender.deadline(RTO), Some(Time::us(900 + 600)));
}

#[test]
fn the_time_out_counts_from_progress_or_the_first_send() {
    let mut sender = Sender::new(&tcp(&[]), 20);
    assert_eq!(sender.deadline(RTO), None);
    sender.send(Time::us(10));
    sender.send(Time::us(20));
    sender.send(Time::us(30));
    assert_eq!(sender.deadline(RTO), Some(Time::us(1010)), "from the first");
    acks(&mut sender, [1, 2], 0);
    assert_eq!(sender.deadline(RTO), Some(Time::us(1010)), "a duplicate is no progress");
    sender.on_ack(Time::us(50), 0, 3);
    assert_eq!(sender.deadline(RTO), None, "nothing is out");
}

#[test]
fn a_trimmed_packet_is_an_acknowledgement_of_what_is_there() {
    let mut sender = out(&[], 20, 8);
    assert_eq!(sender.on_nack(Time::us(9), 3, 0), None);
    assert_eq!(sender.in_flight(), 8, "nor is it a duplicate");
    let learnt = sender.on_nack(Time::us(9), 3, 2);
    assert_eq!(learnt, Some(Acknowledged { packets: 2, in_flight: 8, lost: 0 }));
    assert_eq!(sender.in_flight(), 6);
}

mod selective_acknowledgements {
    use super::*;
    const SACK: &[(&str, &str)] = &[("sack", "true")];

    #[test]
    fn holes_are_resent_each_once_and_nothing_else() {
        // 0, 2, 3 and 9 of 0 to 11 are lost. Three above each make a loss.
        let mut sender = out(SACK, 40, 12);
        assert_eq!(acks(&mut sender, [1, 4, 5], 0), [0, 0, 1]);
        assert_eq!(sender.send(Time::us(10)), again(0));
        // 4, 5 and 6 are above 2 and 3.
        assert_eq!(acks(&mut sender, [6, 7, 8], 0), [2, 0, 0]);
        assert_eq!(acks(&mut sender, [10, 11], 0), [0, 0], "two above 9");
        assert_eq!([sender.send(Time::us(10)), sender.send(Time::us(10))], [again(2), again(3)]);
        assert_eq!(sender.send(Time::us(10)), new(12));
        assert_eq!(acks(&mut sender, [12], 0), [1]);
        assert_eq!(sender.send(Time::us(11)), again(9));
        assert_eq!(sender.send(Time::us(11)), new(13));
        // 3 arrives, then 0 and 2.
        assert_eq!(acks(&mut sender, [3], 0), [0]);
        let learnt = sender.on_ack(Time::us(20), 0, 2);
        assert_eq!((learnt.packets, learnt.lost), (2, 0));
        assert_eq!(sender.on_ack(Time::us(20), 2, 9).packets, 7);
        assert_eq!(sender.send(Time::us(21)), new(14), "9 is on its way");
        assert_eq!(sender.on_ack(Time::us(30), 9, 15).packets, 6);
        assert_eq!(sender.in_flight(), 0);
    }

    #[test]
    fn a_time_out_resends_the_holes_alone() {
        // 0, 3, 4 and 11 of 0 to 11 are lost, and the threshold is out of reach.
        let mut sender = out(&[("sack", "true"), ("dup_acks", "32")], 40, 12);
        acks(&mut sender, [1, 2, 5, 6, 7, 8, 9, 10], 0);
        sender.on_timer(RTO, RTO);
        assert_eq!(resends(&mut sender, RTO, 12), [0, 3, 4, 11]);
    }

    #[test]
    fn what_left_before_a_time_out_is_judged_no_more() {
        let mut sender = out(SACK, 40, 8);
        acks(&mut sender, [1, 2], 0);
        sender.on_timer(RTO, RTO);
        assert_eq!(acks(&mut sender, [3, 4, 5], 0), [0, 0, 0]);
        assert_eq!(resends(&mut sender, RTO, 8), [0, 6, 7]);
        // What is new is: 8 left, then 9 to 11, of which three are there.
        for seq in 9..12 {
            assert_eq!(sender.send(RTO), new(seq));
        }
        assert_eq!(acks(&mut sender, [9, 10, 11], 0), [0, 0, 1]);
        assert_eq!(sender.send(RTO), again(8));
    }

    #[test]
    fn what_is_still_missing_after_progress_is_resent() {
        let mut sender = out(SACK, 40, 12);
        // 0, 2 and 3 are taken for lost, then 0 turns up.
        assert_eq!(acks(&mut sender, [1, 4, 5, 6], 0), [0, 0, 1, 2]);
        sender.on_ack(Time::us(9), 0, 2);
        assert_eq!(resends(&mut sender, Time::us(10), 12), [2, 3]);
    }

    /// Lost and reordered acknowledgements: each counts for what it says.
    #[test]
    fn every_acknowledgement_says_what_is_there() {
        // 0 is late; the acknowledgement of 6 overtakes those of 1 to 5, and says more than they.
        let mut sender = out(SACK, 40, 10);
        assert_eq!(sender.on_ack(Time::us(9), 6, 3).packets, 3);
        // Then one of before, of 8.
        assert_eq!(sender.on_ack(Time::us(9), 8, 2).packets, 0);
        sender.on_timer(RTO, RTO);
        assert_eq!(resends(&mut sender, RTO, 10), [3, 4, 5, 7, 9]);
    }

    #[test]
    fn what_turns_up_before_it_is_resent_is_not() {
        let mut sender = out(SACK, 40, 12);
        // 0, 2 and 3 are taken for lost, then 2 turns up.
        assert_eq!(acks(&mut sender, [1, 4, 5, 6, 2], 0), [0, 0, 1, 2, 0]);
        assert_eq!(resends(&mut sender, Time::us(10), 12), [0, 3]);
        // The same after a time-out, of the packet that would be next.
        let mut sender = out(SACK, 40, 4);
        sender.on_timer(RTO, RTO);
        assert_eq!(sender.send(RTO), again(0));
        acks(&mut sender, [1, 2], 0);
        assert_eq!(resends(&mut sender, RTO, 4), [3]);
    }
}

/// All of `count` packets leave, and arrive in the order of `late`: each after so many of its
/// followers at most. Returns how many are sent again.
fn reordered(kind: &RecoveryConfig, late: &[u64]) -> usize {
    let count = late.len() as u32;
    let (mut sender, mut receiver) = (Sender::new(kind, count), Receiver::new(kind, count));
    let mut order: Vec<u32> = (0..count).collect();
    order.iter().for_each(|_| assert!(!sender.send(Time::ZERO).retransmission));
    order.sort_by_key(|seq| u64::from(*seq) * 1000 + late[*seq as usize]);
    let mut again = 0;
    for seq in order {
        let Reply::Ack { cumulative } = receiver.on_data(Time::us(1), seq).reply else {
            panic!("TCP answers everything")
        };
        sender.on_ack(Time::us(1), seq, cumulative);
        while sender.has_work() {
            assert!(sender.send(Time::us(1)).retransmission);
            again += 1;
        }
    }
    assert!(sender.is_done() && receiver.is_done());
    again
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A packet that fewer others overtake than the threshold says is never sent again: what
    /// cutting flows into units of accounting rests on.
    #[test]
    fn small_displacements_look_like_no_loss(
        threshold in 1u32..40,
        sack: bool,
        count in 1usize..400,
        seed: u64,
    ) {
        let kind = tcp(&[("dup_acks", &threshold.to_string()), ("sack", &sack.to_string())]);
        let mut stream = Draw::new(seed, "late").stream(0);
        let late: Vec<_> = (0..count).map(|_| u64::from(stream.below(threshold * 1000))).collect();
        prop_assert_eq!(reordered(&kind, &late), 0);
    }

    /// One that as many overtake is, once; and without selective acknowledgements so is all that
    /// was behind these: every arrival then looks like a partial acknowledgement.
    #[test]
    fn a_displacement_as_far_as_the_threshold_is_a_loss(
        threshold in 1u32..40,
        sack: bool,
        at in 0usize..100,
        more in 0usize..20,
    ) {
        let kind = tcp(&[("dup_acks", &threshold.to_string()), ("sack", &sack.to_string())]);
        let mut late = vec![0; at + threshold as usize + 1 + more];
        late[at] = u64::from(threshold) * 1000 + 1;
        prop_assert_eq!(reordered(&kind, &late), if sack { 1 } else { 1 + more });
        late[at] = u64::from(threshold) * 1000 - 1;
        prop_assert_eq!(reordered(&kind, &late), 0);
    }
}
