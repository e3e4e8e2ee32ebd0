//! Messages that wait for each other, and runs that do not come to their end.

use crate::common::{LINK, Setup, incast, message, messages, permutation, received, sent};
use std::sync::atomic::AtomicBool;
use weft_fabric::Clos;
use weft_sim::{Halt, MessageResult, Simulation};
use weft_units::{MessageId, Time};
use weft_workload::{Message, Workload};

fn clos() -> Clos {
    Clos::leaf_spine(2, 2, 4, LINK)
}
fn run(workload: Workload) -> Vec<MessageResult> {
    Setup::new(clos(), workload).run().messages.as_slice().to_vec()
}
fn later(message: Message, start: Time) -> Message {
    Message { start, ..message }
}

#[test]
fn a_chain_goes_on_where_it_arrived() {
    let mut workload = Workload::new(8);
    workload.push(later(message(0, 5, 9600), Time::us(3)), &[]);
    workload.push(message(5, 2, 9600), &[received(0)]);
    workload.push(later(message(2, 3, 9600), Time::us(7)), &[received(1)]);
    let done = run(workload);
    assert_eq!(done[0].posted, Time::us(3));
    assert_eq!(done[1].posted, done[0].received);
    assert_eq!(done[2].posted, done[1].received + Time::us(7));
}

#[test]
fn a_sender_waits_for_its_own_acknowledgement() {
    let mut workload = Workload::new(8);
    workload.push(message(0, 5, 9600), &[]);
    workload.push(message(0, 5, 9600), &[sent(0)]);
    let done = run(workload);
    assert_eq!(done[1].posted, done[0].sent);
    assert!(done[0].sent > done[0].received);
}

/// What a third host has seen takes a link delay to become known, the least there is.
#[test]
fn news_from_another_host_takes_a_link_delay() {
    let mut workload = Workload::new(8);
    workload.push(message(0, 5, 9600), &[]);
    workload.push(message(1, 2, 960), &[received(0)]);
    workload.push(message(1, 2, 960), &[sent(0)]);
    let done = run(workload);
    assert_eq!(done[1].posted, done[0].received + LINK.delay);
    assert_eq!(done[2].posted, done[0].sent + LINK.delay);
}

#[test]
fn a_join_waits_for_the_last() {
    let mut workload = Workload::new(8);
    workload.push(message(0, 5, 96_000), &[]);
    workload.push(message(1, 6, 960), &[]);
    workload.push(message(5, 7, 960), &[received(0), received(1), sent(1)]);
    // The other way round: the far end is last, and its news travels.
    workload.push(message(6, 7, 960), &[received(0), received(1)]);
    let done = run(workload);
    assert!(done[0].received > done[1].sent + LINK.delay);
    assert_eq!(done[2].posted, done[0].received);
    assert_eq!(done[3].posted, done[0].received + LINK.delay);
}

/// Dependencies may name messages that stand later in the workload.
#[test]
fn order_in_the_workload_does_not_matter() {
    let mut workload = Workload::new(8);
    workload.push(message(5, 2, 960), &[received(1)]);
    workload.push(message(0, 5, 960), &[]);
    let done = run(workload);
    assert_eq!(done[0].posted, done[1].received);
}

/// As a connection matrix with triggers has them: each host's flows one after the other.
#[test]
fn long_chains_add_up() {
    let mut workload = Workload::new(8);
    for step in 0..50u32 {
        let earlier = step.checked_sub(1).map(received);
        workload.push(message(step % 8, (step + 1) % 8, 960), earlier.as_slice());
    }
    let done = run(workload);
    // Three of eight hops stay in the rack (2 links), the fourth crosses over (4 links).
    let links: u64 = (0..50).map(|step| if step % 4 == 3 { 4 } else { 2 }).sum();
    // Each host first acknowledges (4 ns) what it goes on from.
    assert_eq!(done[49].received, Time::ns(links * 580 + 49 * 4));
}

#[test]
fn messages_of_one_instant_take_turns_in_their_order() {
    // Posted in the order of their ids, one packet each in turn.
    let done = run(messages(8, &[(0, 1, 960), (0, 1, 960), (0, 1, 960)]));
    let received: Vec<_> = done.iter().map(|message| message.received).collect();
    assert_eq!(received, [1160, 1240, 1320].map(Time::ns));
}

#[test]
fn a_lost_tail_without_a_timer_is_diagnosed() {
    let clos = clos();
    // 6 packets at once from each of 7 hosts; 6 find room. No acknowledgement is lost.
    let mut setup = Setup::new(clos, incast(&clos, 6 * 960)).port_buffer(6_000);
    setup.transport.rto = Time::MAX;
    setup.transport.recovery = weft_transport::RecoveryConfig::SELECTIVE_REPEAT;
    let Err(Halt::Stalled(stall)) = setup.try_run() else { panic!("it must stall") };
    let text = stall.text.clone();
    let first = "message 1 (host-2 -> host-0) misses 2880 of 5760 bytes on 1 queue pair;";
    assert!(text.contains(first) && text.ends_with("; and 1 more"), "{text}");
    assert!(Halt::Stalled(stall).to_string().starts_with("the run stalled: "));
}

#[test]
fn who_waits_for_a_stuck_message_is_named_too() {
    let clos = clos();
    let mut workload = Workload::new(8);
    for src in 1..4 {
        workload.push(message(src, 0, 20 * 960), &[]);
    }
    workload.push(message(0, 5, 960), &[received(0), received(1), received(2)]);
    let mut setup = Setup::new(clos, workload).port_buffer(5_000);
    setup.transport.rto = Time::MAX;
    let Err(Halt::Stalled(stall)) = setup.try_run() else { panic!("it must stall") };
    let text = stall.text.clone();
    let waits = (1..=3).any(|count| {
        text.contains(&format!("message 3 (host-0 -> host-5) waits for {count} dependencies"))
    });
    assert!(waits, "{text}");
}

/// Nothing was delivered for long because nothing was posted: that is no stall.
#[test]
fn a_pause_in_the_workload_is_no_stall() {
    let mut workload = Workload::new(8);
    workload.push(message(0, 5, 9600), &[]);
    workload.push(later(message(5, 2, 9600), Time::secs(3)), &[received(0)]);
    let mut setup = Setup::new(clos(), workload);
    // The first packet is still under way when the timer runs out.
    setup.transport.rto = Time::us(1);
    setup.stall_after = Time::secs(1);
    let done = setup.run().messages;
    assert!(done[MessageId(1)].received > Time::secs(3));
}

#[test]
fn a_cancelled_run_stops() {
    let clos = clos();
    let setup = Setup::new(clos, permutation(&clos, 2_000_000));
    let cancelled = Simulation::new(&setup.config()).run(&AtomicBool::new(true));
    assert_eq!(cancelled, Err(Halt::Cancelled));
    assert_eq!(Halt::Cancelled.to_string(), "cancelled");
}
