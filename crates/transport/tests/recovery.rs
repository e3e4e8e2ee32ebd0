//! The rules of go-back-N and selective repeat, one by one.

use weft_transport::{Arrival, Receiver, RecoveryConfig, Reply, Sender, Sent};
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
