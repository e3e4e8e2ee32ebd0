//! Rateless coding in the engine, by pencil and paper: a full symbol takes 80 ns, 2320 ns to the
//! other rack, and its acknowledgement 2016 ns back.

use crate::common::{LINK, Setup, messages};
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Halt, MessageResult, Outcome};
use weft_transport::Coding;
use weft_units::{MessageId, Time};

const THERE: Time = Time::ns(2320);
const BACK: Time = Time::ns(2016);
const SYMBOL: Time = Time::ns(80);

fn coded(bytes: u64, overhead: f64, extra: u32) -> Setup {
    let clos = Clos::leaf_spine(2, 1, 1, LINK);
    let mut setup = Setup::new(clos, messages(2, &[(0, 1, bytes)]));
    setup.transport.recovery = Coding { overhead, extra }.into();
    setup
}
/// The first link is dead from `start` to `end`.
fn dead(mut setup: Setup, start: Time, end: Time) -> Setup {
    setup.failures = vec![Failure {
        links: LinkChoice::Named(vec!["host-0 -> leaf-0".into()]),
        kind: FailureKind::down(None),
        start,
        end,
    }];
    setup
}
fn run(setup: &Setup) -> (Outcome, MessageResult) {
    let outcome = setup.run();
    assert_eq!(outcome.messages, setup.run_queued().unwrap().messages);
    assert_eq!((outcome.totals.retransmits, outcome.totals.spurious), (0, 0));
    let message = outcome.messages[MessageId(0)];
    (outcome, message)
}

/// 10 packets and a quarter more are 12.5, so 13 symbols. Their acknowledgement finds the
/// sender at it: a symbol has left every 80 ns.
#[test]
fn symbols_until_enough_have_arrived() {
    let (outcome, message) = run(&coded(9600, 0.25, 0));
    assert_eq!(message.received, SYMBOL * 12 + THERE);
    assert_eq!(message.sent, message.received + BACK);
    // 5296 ns: the 67th left at 5280.
    assert_eq!((outcome.totals.packets, outcome.totals.control_packets), (67, 67));
}

/// With a window of four, three more are out when the 13th is acknowledged.
#[test]
fn a_window_limits_what_is_too_much() {
    let (outcome, message) = run(&coded(9600, 0.25, 0).window(4));
    assert_eq!(message.received, (THERE + BACK) * 3 + THERE);
    assert_eq!(message.sent, (THERE + BACK) * 4);
    assert_eq!(outcome.totals.packets, 16);
}

#[test]
fn so_many_more_whatever_the_message() {
    for (packets, overhead, extra, symbols) in
        [(1, 0.0, 0, 1), (1, 0.0, 25, 26), (1, 0.05, 0, 2), (20, 0.05, 0, 21), (20, 0.05, 2, 23)]
    {
        let (_, message) = run(&coded(packets * 960, overhead, extra));
        assert_eq!(message.received, SYMBOL * (symbols - 1) + THERE, "{symbols}");
    }
}

/// No symbol is shorter than another, and a message of less than a packet has small ones.
#[test]
fn symbols_are_of_one_size() {
    let setup = coded(9 * 960 + 10, 0.0, 0);
    let (outcome, message) = run(&setup);
    assert_eq!(message.received, SYMBOL * 9 + THERE);
    let nic = &outcome.ports[weft_units::PortId(0)];
    assert_eq!(nic.bytes, 1000 * nic.packets);
    // 50 bytes: 4 ns a link.
    let (_, message) = run(&coded(10, 1.0, 0));
    assert_eq!(message.received, Time::ns(4 + 4 * 504));
}

/// What is lost is not sent again; the next symbols stand for it.
#[test]
fn losses_cost_their_own_time() {
    let setup = dead(coded(9600, 0.25, 0), SYMBOL, SYMBOL * 4);
    let (outcome, message) = run(&setup);
    assert_eq!(message.received, SYMBOL * (12 + 3) + THERE);
    assert_eq!((message.lost, outcome.totals.wire_drops), (3, 3));
}

/// A window that is lost as a whole is forgotten after a time-out.
#[test]
fn a_lost_window_is_forgotten() {
    let setup = dead(coded(9600, 0.25, 0).window(4), Time::ZERO, SYMBOL * 4);
    let (outcome, message) = run(&setup);
    // The time-out counts from the first of the four.
    let again = Time::ms(1);
    assert_eq!(message.received, again + (THERE + BACK) * 3 + THERE);
    assert_eq!((message.lost, outcome.totals.packets), (4, 20));
}

/// All packets of payload are there, and more symbols are needed: a run that stalls then says so.
#[test]
fn a_stall_short_of_symbols() {
    // Twelve of 13 get through, with ten packets of payload.
    let mut setup = dead(coded(9_500, 0.25, 0).window(1), (THERE + BACK) * 12, Time::MAX);
    setup.stall_after = Time::ms(20);
    let Err(Halt::Stalled(stall)) = setup.try_run() else { panic!("it must stall") };
    let text = stall.text;
    assert!(text.contains("misses 0 of 9500 bytes on 1 queue pair, "), "{text}");
}
