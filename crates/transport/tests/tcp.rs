//! TCP's recovery step by step: duplicates, holes, time-outs and what follows from round trips,
//! each number worked out by hand.

use weft_transport::{Acknowledged, Receiver, RecoveryConfig, Reply, Sender, Sent};
use weft_trial::prelude::*;
use weft_units::{Draw, Time};

mod timing;

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
/// Acknowledgements of `seqs` at `now`, all of which say `cumulative`; returns what each took for
/// lost.
fn acks(
    sender: &mut Sender,
    now: Time,
    seqs: impl IntoIterator<Item = u32>,
    cumulative: u32,
) -> Vec<u32> {
    let seqs = seqs.into_iter();
    seqs.map(|seq| sender.on_ack(now, seq, cumulative).lost).collect()
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
        assert_eq!(acks(&mut sender, Time::us(9), 1..61, 0), expected, "threshold {threshold}");
        assert_eq!(resends(&mut sender, Time::us(10), 100), [0]);
        assert_eq!(acks(&mut sender, Time::us(11), 61..100, 0), [0; 39], "not a second time");
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
    acks(&mut sender, Time::us(9), [1, 2], 0);
    assert_eq!(sender.in_flight(), 6);
    assert_eq!(sender.send(Time::us(9)), new(8), "nothing is lost yet");
    assert_eq!(sender.in_flight(), 7);
    acks(&mut sender, Time::us(9), [3], 0);
    assert_eq!([sender.send(Time::us(9)), sender.send(Time::us(9))], [again(0), new(9)]);
    assert_eq!(sender.in_flight(), 7, "0 and 4 to 9");
}

#[test]
fn duplicates_are_counted_in_a_row() {
    let mut sender = out(&[], 20, 12);
    assert_eq!(acks(&mut sender, Time::us(9), [1, 2], 0), [0, 0]);
    assert_eq!(acks(&mut sender, Time::us(9), [0], 3), [0]);
    assert_eq!(acks(&mut sender, Time::us(9), [4, 5], 3), [0, 0]);
    // One that has been overtaken is not in the row, and does not end it.
    assert_eq!(acks(&mut sender, Time::us(9), [2], 0), [0]);
    assert_eq!(acks(&mut sender, Time::us(9), [6], 3), [1]);
    assert_eq!(resends(&mut sender, Time::us(10), 12), [3]);
}

#[test]
fn who_has_nothing_out_counts_nothing() {
    let mut sender = out(&[], 20, 4);
    sender.on_ack(Time::us(8), 3, 4);
    assert_eq!(acks(&mut sender, Time::us(9), [1, 2, 3, 0, 1], 4), [0; 5]);
    assert_eq!(sender.send(Time::us(10)), new(4));
    assert_eq!(sender.in_flight(), 1);
}

#[test]
fn a_partial_acknowledgement_names_the_next_hole() {
    // 0, 4 and 7 of 0 to 8 are lost.
    let mut sender = out(&[], 20, 9);
    assert_eq!(acks(&mut sender, Time::us(9), [1, 2, 3, 5, 6, 8], 0), [0, 0, 1, 0, 0, 0]);
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
    for seq in 11..14 {
        assert_eq!(sender.send(Time::us(40)), new(seq));
    }
    assert_eq!(acks(&mut sender, Time::us(50), [11, 12, 13], 10), [0, 0, 1]);
    assert_eq!(sender.send(Time::us(50)), again(10));
}

#[test]
fn without_fast_retransmit_only_time_outs_resend() {
    for sack in ["false", "true"] {
        let mut sender = out(&[("fast_retransmit", "false"), ("sack", sack)], 50, 50);
        assert_eq!(acks(&mut sender, Time::us(9), 1..50, 0), [0; 49]);
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
    // Until all of the first eight are acknowledged: what answers the first round says nothing.
    assert_eq!(acks(&mut sender, Time::us(1001), 1..7, 0), [0; 6]);
    for seq in 1..5 {
        assert_eq!(sender.send(Time::us(1001)), again(seq));
    }
    sender.on_ack(Time::us(1999), 0, 7);
    assert_eq!(acks(&mut sender, Time::ms(2), [1, 2, 3, 4], 7), [0; 4]);
    assert_eq!(sender.send(Time::ms(2)), again(7));
    for seq in 8..12 {
        assert_eq!(sender.send(Time::ms(2)), new(seq));
    }
    sender.on_ack(Time::ms(3), 7, 8);
    assert_eq!(
        acks(&mut sender, Time::ms(3), [9, 10, 11], 8),
        [0, 0, 1],
        "over: duplicates count again"
    );
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
    assert_eq!(acks(&mut sender, Time::ms(4), [4, 5, 6], 2), [0, 0, 0]);
}

#[test]
fn a_time_out_ends_fast_recovery() {
    // 0 and 5 of 0 to 7 are lost, and 0 once more.
    let mut sender = out(&[], 20, 8);
    assert_eq!(acks(&mut sender, Time::us(9), [1, 2, 3], 0), [0, 0, 1]);
    // Round trips of 9 us are far below the least time-out.
    let due = Time::us(9 + 100);
    assert_eq!(sender.on_timer(due, RTO), 5);
    assert_eq!(resends(&mut sender, due, 8), (0..8).collect::<Vec<_>>());
    sender.on_ack(Time::us(118), 0, 5);
    // 5 is on its way already: no second copy.
    assert_eq!(sender.send(Time::us(118)), new(9));
}

#[test]
fn a_trimmed_packet_is_an_acknowledgement_of_what_is_there() {
    let mut sender = out(&[], 20, 8);
    assert_eq!(sender.on_nack(Time::us(9), 3, 0), None);
    assert_eq!(sender.in_flight(), 8, "nor is it a duplicate");
    assert_eq!(sender.deadline(RTO), Some(RTO));
    let learnt = sender.on_nack(Time::us(9), 3, 2);
    assert_eq!(learnt, Some(Acknowledged { packets: 2, in_flight: 8, lost: 0 }));
    assert_eq!(sender.in_flight(), 6);
    assert_eq!(sender.on_nack(Time::us(10), 4, 2), None, "nothing new");
    assert_eq!(sender.on_nack(Time::us(10), 1, 1), None, "overtaken");
}

mod selective_acknowledgements {
    use super::*;
    const SACK: &[(&str, &str)] = &[("sack", "true")];

    #[test]
    fn holes_are_resent_each_once_and_nothing_else() {
        // 0, 2, 3 and 9 of 0 to 11 are lost. Three above each make a loss.
        let mut sender = out(SACK, 40, 12);
        assert_eq!(acks(&mut sender, Time::us(9), [1, 4, 5], 0), [0, 0, 1]);
        assert_eq!(sender.send(Time::us(10)), again(0));
        // 4, 5 and 6 are above 2 and 3.
        assert_eq!(acks(&mut sender, Time::us(9), [6, 7, 8], 0), [2, 0, 0]);
        assert_eq!(acks(&mut sender, Time::us(9), [10, 11], 0), [0, 0], "two above 9");
        assert_eq!([sender.send(Time::us(10)), sender.send(Time::us(10))], [again(2), again(3)]);
        assert_eq!(sender.send(Time::us(10)), new(12));
        assert_eq!(acks(&mut sender, Time::us(19), [12], 0), [1]);
        assert_eq!([sender.send(Time::us(19)), sender.send(Time::us(19))], [again(9), new(13)]);
        // 3 arrives, then 0 and 2.
        assert_eq!(acks(&mut sender, Time::us(20), [3], 0), [0]);
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
        acks(&mut sender, Time::us(9), [1, 2, 5, 6, 7, 8, 9, 10], 0);
        sender.on_timer(RTO, RTO);
        assert_eq!(resends(&mut sender, RTO, 12), [0, 3, 4, 11]);
    }

    #[test]
    fn what_left_before_a_time_out_is_judged_no_more() {
        let mut sender = out(SACK, 40, 8);
        acks(&mut sender, Time::us(9), [1, 2], 0);
        sender.on_timer(RTO, RTO);
        assert_eq!(acks(&mut sender, RTO, [3, 4, 5], 0), [0, 0, 0]);
        assert_eq!(resends(&mut sender, RTO, 8), [0, 6, 7]);
        // What is new is: 8 left, then 9 to 11, of which three are there.
        for seq in 9..12 {
            assert_eq!(sender.send(RTO), new(seq));
        }
        let now = RTO + Time::us(9);
        assert_eq!(acks(&mut sender, now, [9, 10, 11], 0), [0, 0, 1]);
        assert_eq!(sender.send(now), again(8));
    }

    #[test]
    fn what_is_still_missing_after_progress_is_resent() {
        let mut sender = out(SACK, 40, 12);
        // 0, 2 and 3 are taken for lost, then 0 turns up.
        assert_eq!(acks(&mut sender, Time::us(9), [1, 4, 5, 6], 0), [0, 0, 1, 2]);
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
        assert_eq!(acks(&mut sender, Time::us(9), [1, 4, 5, 6, 2], 0), [0, 0, 1, 2, 0]);
        assert_eq!(resends(&mut sender, Time::us(10), 12), [0, 3]);
        // The same after a time-out, of the packet that would be next.
        let mut sender = out(SACK, 40, 4);
        sender.on_timer(RTO, RTO);
        assert_eq!(sender.send(RTO), again(0));
        acks(&mut sender, RTO, [1, 2], 0);
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

trials! {
    /// A packet that fewer others overtake than the threshold says is never sent again: what
    /// cutting flows into units of accounting rests on.
    fn small_displacements_look_like_no_loss(
        threshold in 1u32..40,
        sack in any::<bool>(),
        count in 1usize..400,
        seed in any::<u64>(),
    ) {
        let kind = tcp(&[("dup_acks", &threshold.to_string()), ("sack", &sack.to_string())]);
        let mut stream = Draw::new(seed, "late").stream(0);
        let late: Vec<_> = (0..count).map(|_| u64::from(stream.below(threshold * 1000))).collect();
        prop_assert_eq!(reordered(&kind, &late), 0);
    }

    /// One that as many overtake is, once; and without selective acknowledgements so is all that
    /// was behind these: every arrival then looks like a partial acknowledgement.
    fn a_displacement_as_far_as_the_threshold_is_a_loss(
        threshold in 1u32..40,
        sack in any::<bool>(),
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
