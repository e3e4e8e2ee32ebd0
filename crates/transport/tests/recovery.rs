//! The rules of go-back-N, selective repeat, trimming and coding, one by one.

use weft_transport::{
    Acknowledged, Arrival, Coding, Receiver, RecoveryConfig, Reply, Sender, Sent,
};
use weft_units::Time;

const RTO: Time = Time::us(100);

fn sender(kind: RecoveryConfig, packets: u32) -> Sender {
    Sender::new(&kind, packets)
}
/// Sends `count` packets, a microsecond apart from `now` on.
fn send(sender: &mut Sender, now: Time, count: u64) -> Vec<Sent> {
    (0..count).map(|step| sender.send(now + Time::us(step))).collect()
}
fn seqs(sent: &[Sent]) -> Vec<u32> {
    sent.iter().map(|sent| sent.seq).collect()
}

mod go_back_n {
    use super::*;
    const KIND: RecoveryConfig = RecoveryConfig::GO_BACK_N;

    fn ack(cumulative: u32) -> Arrival {
        Arrival { reply: Reply::Ack { cumulative }, accepted: true, duplicate: false }
    }
    fn thrown(reply: Reply) -> Arrival {
        Arrival { reply, accepted: false, duplicate: false }
    }

    #[test]
    fn one_nack_a_gap() {
        let mut receiver = Receiver::new(&KIND, 10);
        assert_eq!(receiver.on_data(Time::ZERO, 0), ack(1));
        assert_eq!(receiver.on_data(Time::ZERO, 2), thrown(Reply::Nack { cumulative: 1 }));
        assert_eq!(receiver.on_data(Time::ZERO, 3), thrown(Reply::None));
        assert_eq!(receiver.on_data(Time::ZERO, 4), thrown(Reply::None));
        // A duplicate is acknowledged and does not end the gap.
        let duplicate =
            Arrival { reply: Reply::Ack { cumulative: 1 }, accepted: false, duplicate: true };
        assert_eq!(receiver.on_data(Time::ZERO, 0), duplicate);
        assert_eq!(receiver.on_data(Time::ZERO, 5), thrown(Reply::None));
        // The missing packet ends it; the next gap is reported anew.
        assert_eq!(receiver.on_data(Time::ZERO, 1), ack(2));
        assert_eq!(receiver.on_data(Time::ZERO, 3), thrown(Reply::Nack { cumulative: 2 }));
    }

    #[test]
    fn a_nack_rewinds() {
        let mut sender = sender(KIND, 10);
        send(&mut sender, Time::ZERO, 6);
        let learnt = sender.on_nack(Time::us(9), 4, 2).unwrap();
        assert_eq!((learnt.packets, learnt.in_flight), (2, 6));
        assert_eq!(sender.in_flight(), 0);
        let again = send(&mut sender, Time::us(10), 5);
        assert_eq!(seqs(&again), [2, 3, 4, 5, 6]);
        let flags: Vec<_> = again.iter().map(|sent| sent.retransmission).collect();
        assert_eq!(flags, [true, true, true, true, false]);
    }

    #[test]
    fn a_stale_nack_changes_nothing() {
        let mut sender = sender(KIND, 10);
        send(&mut sender, Time::ZERO, 6);
        sender.on_ack(Time::us(9), 3, 4);
        let deadline = sender.deadline(RTO);
        assert_eq!(sender.on_nack(Time::us(10), 4, 3), None);
        assert_eq!((sender.in_flight(), sender.deadline(RTO)), (2, deadline));
        assert_eq!(sender.send(Time::us(11)).seq, 6);
    }

    #[test]
    fn a_lost_nack_is_recovered_by_the_time_out() {
        let mut sender = sender(KIND, 6);
        send(&mut sender, Time::ZERO, 6);
        sender.on_ack(Time::us(9), 0, 1);
        assert!(!sender.has_work());
        assert_eq!(sender.deadline(RTO), Some(Time::us(9) + RTO));
        assert_eq!(sender.on_timer(Time::us(8) + RTO, RTO), 0);
        assert_eq!(sender.on_timer(Time::us(9) + RTO, RTO), 5);
        assert_eq!((sender.in_flight(), sender.deadline(RTO)), (0, None));
        assert_eq!(sender.send(Time::us(9) + RTO), Sent { seq: 1, retransmission: true });
    }

    /// The receiver has reported the gap and stays silent, though the resent packet is lost.
    #[test]
    fn a_lost_retransmission_is_recovered_by_the_time_out() {
        let (mut sender, mut receiver) = (sender(KIND, 3), Receiver::new(&KIND, 3));
        send(&mut sender, Time::ZERO, 3);
        receiver.on_data(Time::ZERO, 0);
        assert_eq!(receiver.on_data(Time::ZERO, 2).reply, Reply::Nack { cumulative: 1 });
        sender.on_nack(Time::us(5), 2, 1);
        let again = send(&mut sender, Time::us(6), 2);
        assert_eq!(seqs(&again), [1, 2]);
        assert_eq!(receiver.on_data(Time::ZERO, 2).reply, Reply::None, "1 was lost again");
        let deadline = sender.deadline(RTO).unwrap();
        assert_eq!(deadline, Time::us(7) + RTO);
        assert_eq!(sender.on_timer(deadline, RTO), 2);
        assert_eq!(seqs(&send(&mut sender, deadline, 2)), [1, 2]);
    }

    #[test]
    fn an_old_acknowledgement_may_overtake_the_rewind() {
        let mut sender = sender(KIND, 8);
        send(&mut sender, Time::ZERO, 6);
        sender.on_timer(RTO + Time::us(5), RTO);
        // Packets of before the time-out had arrived after all.
        let learnt = sender.on_ack(RTO + Time::us(6), 3, 4);
        assert_eq!((learnt.packets, learnt.in_flight, sender.in_flight()), (4, 0, 0));
        assert_eq!(sender.send(RTO + Time::us(7)), Sent { seq: 4, retransmission: true });
    }
}

mod selective_repeat {
    use super::*;
    const KIND: RecoveryConfig = RecoveryConfig::SELECTIVE_REPEAT;

    #[test]
    fn only_what_timed_out_is_resent() {
        let mut sender = sender(KIND, 8);
        send(&mut sender, Time::ZERO, 6);
        sender.on_ack(Time::us(9), 1, 0);
        sender.on_ack(Time::us(9), 3, 0);
        assert_eq!(sender.deadline(RTO), Some(RTO));
        // At 102 us packets 0 and 2 have been out for 100 us or more, 4 and 5 have not.
        assert_eq!(sender.on_timer(RTO + Time::us(2), RTO), 2);
        assert_eq!(sender.in_flight(), 2);
        assert_eq!(sender.deadline(RTO), Some(RTO + Time::us(4)));
        let sent = send(&mut sender, RTO + Time::us(3), 3);
        assert_eq!(seqs(&sent), [0, 2, 6]);
        assert!(sent[0].retransmission && sent[1].retransmission && !sent[2].retransmission);
    }

    #[test]
    fn a_late_acknowledgement_saves_the_retransmission() {
        let mut sender = sender(KIND, 4);
        send(&mut sender, Time::ZERO, 3);
        assert_eq!(sender.on_timer(RTO + Time::us(5), RTO), 3);
        let learnt = sender.on_ack(RTO + Time::us(6), 1, 0);
        assert_eq!((learnt.packets, learnt.in_flight), (1, 0));
        assert_eq!(seqs(&send(&mut sender, RTO + Time::us(7), 3)), [0, 2, 3]);
        assert!(!sender.has_work());
    }

    #[test]
    fn a_cumulative_acknowledgement_makes_up_for_lost_ones() {
        let mut sender = sender(KIND, 40);
        send(&mut sender, Time::ZERO, 30);
        let learnt = sender.on_ack(Time::us(50), 29, 20);
        assert_eq!((learnt.packets, learnt.in_flight, sender.in_flight()), (21, 30, 9));
        assert_eq!(sender.on_ack(Time::us(51), 29, 20).packets, 0, "nothing new");
    }

    /// All of a large window before any answer, then everything in reverse.
    #[test]
    fn rings_grow_with_the_window() {
        const COUNT: u32 = 5000;
        let (mut sender, mut receiver) = (sender(KIND, COUNT), Receiver::new(&KIND, COUNT));
        send(&mut sender, Time::ZERO, u64::from(COUNT));
        for seq in (0..COUNT).rev() {
            let arrival = receiver.on_data(Time::ZERO, seq);
            assert!(arrival.accepted && !arrival.duplicate, "{seq}");
            assert!(receiver.on_data(Time::ZERO, seq).duplicate, "{seq} again");
            let Reply::Ack { cumulative } = arrival.reply else { panic!("{arrival:?}") };
            assert_eq!(cumulative, if seq == 0 { COUNT } else { 0 });
            assert_eq!(sender.on_ack(Time::ms(9), seq, cumulative).packets, 1);
        }
        assert!(sender.is_done() && receiver.is_done());
        assert_eq!(sender.deadline(RTO), None);
    }
}

mod go_back_n_options {
    use super::*;

    fn told(options: &[(&str, &str)]) -> RecoveryConfig {
        RecoveryConfig::read("go-back-n", options).unwrap()
    }
    fn replies(receiver: &mut Receiver, arrivals: &[(u64, u32)]) -> Vec<Reply> {
        let reply = |(us, seq): &(u64, u32)| receiver.on_data(Time::us(*us), *seq).reply;
        arrivals.iter().map(reply).collect()
    }
    const NACK: Reply = Reply::Nack { cumulative: 1 };

    #[test]
    fn a_rewind_may_go_to_the_start_of_the_message() {
        let mut sender = sender(told(&[("nack_rewind", "message")]), 6);
        send(&mut sender, Time::ZERO, 5);
        let learnt = sender.on_nack(Time::us(9), 4, 3).unwrap();
        assert_eq!(learnt, Acknowledged { packets: 3, in_flight: 5, lost: 0 });
        // What is acknowledged is sent again, but is not out.
        let again = send(&mut sender, Time::us(10), 4);
        assert_eq!(seqs(&again), [0, 1, 2, 3]);
        assert_eq!(sender.in_flight(), 1);
        // It is acknowledged again, which says nothing new and moves nothing.
        let learnt = sender.on_ack(Time::us(15), 0, 3);
        assert_eq!(learnt, Acknowledged { packets: 0, in_flight: 1, lost: 0 });
        let rest = send(&mut sender, Time::us(16), 2);
        assert_eq!(
            rest,
            [Sent { seq: 4, retransmission: true }, Sent { seq: 5, retransmission: false }]
        );
    }

    #[test]
    fn a_time_out_rewinds_to_the_gap_all_the_same() {
        let mut sender = sender(told(&[("nack_rewind", "message")]), 6);
        send(&mut sender, Time::ZERO, 6);
        sender.on_ack(Time::us(9), 1, 2);
        assert_eq!(sender.on_timer(Time::us(9) + RTO, RTO), 4);
        assert_eq!(seqs(&send(&mut sender, Time::ms(1), 4)), [2, 3, 4, 5]);
    }

    #[test]
    fn during_the_way_back_to_the_gap_nothing_is_out() {
        let mut sender = sender(told(&[("nack_rewind", "message")]), 6);
        send(&mut sender, Time::ZERO, 6);
        sender.on_nack(Time::us(9), 5, 4);
        send(&mut sender, Time::us(10), 3);
        assert_eq!((sender.in_flight(), sender.deadline(RTO)), (0, None));
        assert_eq!(sender.on_timer(Time::ms(9), RTO), 0);
        // All of it was on its way after all: there is nothing left to send.
        let learnt = sender.on_ack(Time::us(14), 5, 6);
        assert_eq!(learnt.packets, 2);
        assert!(sender.is_done() && !sender.has_work());
    }

    #[test]
    fn a_gap_may_be_reported_again_and_again() {
        let mut receiver = Receiver::new(&told(&[("nack_repeat", "true")]), 9);
        let arrivals = [(0, 0), (1, 2), (2, 3), (3, 4), (4, 0), (5, 5), (6, 1), (7, 4)];
        let (ack, later) = (|cumulative| Reply::Ack { cumulative }, Reply::Nack { cumulative: 2 });
        let expected = [ack(1), NACK, NACK, NACK, ack(1), NACK, ack(2), later];
        assert_eq!(replies(&mut receiver, &arrivals), expected);
    }

    #[test]
    fn after_a_report_a_receiver_may_be_quiet() {
        let quiet = told(&[("nack_quiet", "10us")]);
        let mut receiver = Receiver::new(&quiet, 9);
        let (ack, none) = (|cumulative| Reply::Ack { cumulative }, Reply::None);
        // 1 comes, and with it a new gap: not reported before 10 us have gone by since 5 us.
        let arrivals = [(4, 0), (5, 2), (6, 1), (7, 3), (14, 4), (15, 5), (16, 6)];
        let expected = [ack(1), NACK, ack(2), none, none, Reply::Nack { cumulative: 2 }, none];
        assert_eq!(replies(&mut receiver, &arrivals), expected);
        // Together with repetitions: one report in 10 us.
        let both = told(&[("nack_quiet", "10us"), ("nack_repeat", "true")]);
        let mut receiver = Receiver::new(&both, 9);
        let arrivals = [(4, 0), (5, 2), (14, 3), (15, 4), (24, 5), (25, 6)];
        let expected = [ack(1), NACK, none, NACK, none, NACK];
        assert_eq!(replies(&mut receiver, &arrivals), expected);
    }

    #[test]
    fn headers_are_as_good_as_nothing() {
        let mut receiver = Receiver::new(&RecoveryConfig::GO_BACK_N, 9);
        let nothing = Arrival { reply: Reply::None, accepted: false, duplicate: false };
        assert_eq!(receiver.on_trimmed(Time::ZERO, 0), nothing);
        assert_eq!(receiver.expected(), 0);
    }
}

mod trimming {
    use super::*;

    fn kind() -> RecoveryConfig {
        RecoveryConfig::read("trim", &[]).unwrap()
    }

    #[test]
    fn a_header_asks_for_its_packet() {
        let mut receiver = Receiver::new(&kind(), 9);
        receiver.on_data(Time::ZERO, 0);
        receiver.on_data(Time::ZERO, 2);
        let nack = |cumulative| Arrival {
            reply: Reply::Nack { cumulative },
            accepted: false,
            duplicate: false,
        };
        assert_eq!(receiver.on_trimmed(Time::ZERO, 5), nack(1));
        assert_eq!(receiver.on_trimmed(Time::ZERO, 2), nack(1), "though it is there");
        receiver.on_data(Time::ZERO, 1);
        assert_eq!(receiver.on_trimmed(Time::ZERO, 5), nack(3));
    }

    #[test]
    fn exactly_the_trimmed_packet_is_sent_again_once() {
        let mut sender = sender(kind(), 10);
        send(&mut sender, Time::ZERO, 8);
        // 5 came as a header, and 0 to 2 in full, of which the sender has not heard.
        let learnt = sender.on_nack(Time::us(9), 5, 3).unwrap();
        assert_eq!(learnt, Acknowledged { packets: 3, in_flight: 8, lost: 0 });
        assert_eq!(sender.in_flight(), 4);
        assert_eq!(sender.on_nack(Time::us(9), 5, 3), None, "known");
        let sent = send(&mut sender, Time::us(10), 3);
        assert_eq!(seqs(&sent), [5, 8, 9]);
        assert!(sent[0].retransmission && !sender.has_work());
        // Trimmed again, it goes again; acknowledged, it does not.
        assert!(sender.on_nack(Time::us(20), 5, 3).is_some());
        assert_eq!(seqs(&send(&mut sender, Time::us(21), 1)), [5]);
        sender.on_ack(Time::us(30), 5, 3);
        assert_eq!(sender.on_nack(Time::us(31), 5, 3), None);
        // What has not left, or not yet, cannot have been trimmed.
        assert_eq!(sender.on_nack(Time::us(32), 10, 3), None);
        assert!(!sender.has_work());
    }

    #[test]
    fn what_was_trimmed_and_sent_again_has_a_timer_of_its_own() {
        let mut sender = sender(kind(), 4);
        send(&mut sender, Time::ZERO, 4);
        sender.on_nack(Time::us(50), 1, 1);
        send(&mut sender, Time::us(60), 1);
        assert_eq!(sender.deadline(RTO), Some(Time::us(2) + RTO), "2 is out longest");
        sender.on_ack(Time::us(70), 3, 1);
        sender.on_ack(Time::us(70), 2, 1);
        assert_eq!(sender.deadline(RTO), Some(Time::us(60) + RTO));
        assert_eq!(sender.on_timer(Time::us(60) + RTO, RTO), 1);
        assert_eq!(seqs(&send(&mut sender, Time::ms(1), 1)), [1]);
    }
}

mod coding {
    use super::*;

    fn code(overhead: f64, extra: u32) -> RecoveryConfig {
        Coding { overhead, extra }.into()
    }

    #[test]
    fn how_many_symbols_make_a_message() {
        let symbols = |packets, overhead, extra| Coding { overhead, extra }.symbols(packets);
        assert_eq!(symbols(500, 0.0, 0), 500);
        assert_eq!(symbols(500, 0.05, 0), 525);
        assert_eq!(symbols(501, 0.05, 0), 527, "25.05 are 26");
        assert_eq!(symbols(500, 0.05, 1), 526);
        // 500 packets and (1 + k) more, as in the study's code.
        assert_eq!(symbols(500, 0.0, 26), 526);
        assert_eq!(symbols(1, 0.05, 0), 2);
        assert_eq!([symbols(3, 0.1, 0), symbols(30, 0.1, 0), symbols(31, 0.1, 0)], [4, 33, 35]);
        assert_eq!(symbols(u32::MAX, 0.05, 7), u32::MAX);
    }

    #[test]
    fn any_so_many_symbols_are_the_message() {
        let kind = code(0.05, 0);
        let (mut sender, mut receiver) = (sender(kind, 500), Receiver::new(&kind, 500));
        // Every third is lost.
        let sent = send(&mut sender, Time::ZERO, 789);
        assert!(sent.iter().all(|sent| !sent.retransmission));
        assert!(seqs(&sent).into_iter().eq(0..789));
        let mut here = 0;
        for seq in (0..789).filter(|seq| seq % 3 != 1) {
            let arrival = receiver.on_data(Time::us(1), seq);
            here += u32::from(here < 525);
            assert_eq!(arrival.reply, Reply::Ack { cumulative: here });
            assert!(!arrival.duplicate);
            assert_eq!(receiver.is_done(), here == 525);
            assert_eq!(receiver.expected(), here.min(500), "the message has no more");
            let learnt = sender.on_ack(Time::us(2), seq, here);
            assert_eq!(learnt.packets, u32::from(arrival.accepted));
            assert_eq!(sender.is_done(), here == 525);
        }
        assert!(sender.is_done() && !sender.has_work());
    }

    #[test]
    fn a_sender_goes_on_until_it_hears_that_enough_are_there() {
        let mut sender = sender(code(0.0, 0), 4);
        send(&mut sender, Time::ZERO, 4);
        assert!(sender.has_work());
        assert_eq!(sender.send(Time::us(9)), Sent { seq: 4, retransmission: false });
        assert_eq!(sender.in_flight(), 5);
        let learnt = sender.on_ack(Time::us(10), 2, 3);
        assert_eq!(learnt, Acknowledged { packets: 3, in_flight: 5, lost: 0 });
        assert_eq!(sender.on_ack(Time::us(11), 1, 2).packets, 0, "overtaken");
        assert_eq!(sender.in_flight(), 2);
        assert_eq!(sender.on_nack(Time::us(12), 1, 4), None);
        assert!(!sender.is_done());
        sender.on_ack(Time::us(13), 4, 4);
        assert!(sender.is_done() && !sender.has_work());
    }

    #[test]
    fn forgotten_symbols_open_the_window_again() {
        let mut sender = sender(code(0.0, 0), 20);
        send(&mut sender, Time::ZERO, 10);
        sender.on_ack(Time::us(12), 0, 1);
        assert_eq!(sender.deadline(RTO), Some(Time::us(12) + RTO));
        assert_eq!(sender.on_timer(Time::us(11) + RTO, RTO), 0);
        assert_eq!(sender.on_timer(Time::us(12) + RTO, RTO), 9);
        assert_eq!((sender.in_flight(), sender.deadline(RTO)), (0, None));
        assert_eq!(seqs(&send(&mut sender, Time::us(200), 3)), [10, 11, 12], "new ones");
        assert_eq!(sender.in_flight(), 3);
        assert_eq!(sender.deadline(RTO), Some(Time::us(200) + RTO), "since the first of them");
        // Symbols that were forgotten count all the same, and are not new ones: those are out.
        assert_eq!(sender.on_ack(Time::us(210), 7, 6).packets, 5);
        assert_eq!(sender.in_flight(), 3);
        sender.on_ack(Time::us(211), 10, 7);
        assert_eq!(sender.in_flight(), 2);
        assert_eq!(sender.on_timer(Time::us(211) + RTO, RTO), 2);
        assert_eq!(sender.in_flight(), 0);
    }

    #[test]
    fn headers_are_no_symbols() {
        let mut receiver = Receiver::new(&code(0.0, 0), 2);
        let nothing = Arrival { reply: Reply::None, accepted: false, duplicate: false };
        assert_eq!(receiver.on_trimmed(Time::ZERO, 0), nothing);
        assert_eq!(receiver.expected(), 0);
    }
}

mod selective_nack {
    use super::*;

    fn kind() -> RecoveryConfig {
        RecoveryConfig::read("selective-nack", &[]).unwrap()
    }
    fn came(reply: Reply) -> Arrival {
        Arrival { reply, accepted: true, duplicate: false }
    }

    #[test]
    fn the_first_missing_packet_is_reported_once() {
        let mut receiver = Receiver::new(&kind(), 10);
        let mut at = |seq| receiver.on_data(Time::ZERO, seq);
        assert_eq!(at(0), came(Reply::Ack { cumulative: 1 }));
        assert_eq!(at(3), came(Reply::Nack { cumulative: 1 }));
        assert_eq!(at(4), came(Reply::Ack { cumulative: 1 }));
        // It comes; the next that is missing is not reported before something comes after it.
        assert_eq!(at(1), came(Reply::Ack { cumulative: 2 }));
        assert_eq!(at(6), came(Reply::Nack { cumulative: 2 }));
        assert_eq!(at(2), came(Reply::Ack { cumulative: 5 }));
        assert!(at(2).duplicate);
        assert_eq!(at(7), came(Reply::Nack { cumulative: 5 }));
    }

    #[test]
    fn only_that_packet_is_sent_again() {
        let mut sender = sender(kind(), 10);
        send(&mut sender, Time::ZERO, 6);
        // 0 and 1 have come, 2 is missing; of 4, which made the NACK leave, nothing is said.
        let learnt = sender.on_nack(Time::us(9), 4, 2).unwrap();
        assert_eq!((learnt.packets, learnt.in_flight), (2, 6));
        assert_eq!(sender.in_flight(), 3, "3, 4 and 5");
        let again = send(&mut sender, Time::us(10), 2);
        assert_eq!(seqs(&again), [2, 6]);
        assert!(again[0].retransmission && !again[1].retransmission);
        // A second report of it, late, is no second loss.
        assert_eq!(sender.on_nack(Time::us(11), 4, 2), None);
        // A report of what has come says nothing.
        sender.on_ack(Time::us(12), 5, 6);
        assert_eq!(sender.on_nack(Time::us(12), 4, 2), None);
        // What is resent and lost again times out.
        send(&mut sender, Time::us(13), 3);
        sender.on_nack(Time::us(14), 8, 7).unwrap();
        assert_eq!(seqs(&send(&mut sender, Time::us(15), 1)), [7]);
        assert_eq!(sender.on_timer(Time::us(115), RTO), 3, "7, 8 and 9");
    }
}
