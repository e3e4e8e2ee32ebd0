//! REPS with freezing, step by step. A flow with a single entropy value draws that one wherever it
//! draws at all, so that what it recycles shows.

use crate::common::flow::Flow;
use weft_balance::steer::{Feedback, TimeOut};
use weft_trial::prelude::*;
use weft_units::Time;

/// What a flow draws, and the flow: a ring of four, frozen for 10 us, then three to explore.
fn start() -> (u16, Flow) {
    let options = [("entropies", "1"), ("ring", "4"), ("freeze", "10us"), ("explore", "3")];
    let mut flow = Flow::new("reps-freezing", &options);
    (flow.send(), flow)
}
fn acks(flow: &mut Flow, entropies: impl IntoIterator<Item = u16>) {
    for entropy in entropies {
        flow.steering.on_ack(flow.feedback(entropy, false));
    }
}
fn time_out(flow: &mut Flow) {
    flow.steering.on_time_out(TimeOut { now: flow.now, after: Time::us(1) });
}

#[test]
fn each_good_entropy_serves_one_packet() {
    let (any, mut flow) = start();
    acks(&mut flow, [1, 2]);
    flow.steering.on_ack(flow.feedback(9, true));
    acks(&mut flow, [3]);
    assert_eq!(flow.sends(4), [1, 2, 3, any]);
    // The ring keeps the last four.
    acks(&mut flow, 1..=6);
    assert_eq!(flow.sends(5), [3, 4, 5, 6, any]);
    acks(&mut flow, [7]);
    assert_eq!(flow.sends(2), [7, any]);
}

#[test]
fn a_frozen_flow_goes_round_its_ring() {
    let (any, mut flow) = start();
    acks(&mut flow, [1, 2, 3]);
    assert_eq!(flow.send(), 1);
    time_out(&mut flow);
    // Used up or not.
    assert_eq!(flow.sends(7), [1, 2, 3, 1, 2, 3, 1]);
    // What comes back meanwhile joins the ring, and takes the place of the oldest.
    acks(&mut flow, [9, 10]);
    assert_eq!(flow.sends(5), [2, 3, 9, 10, 2]);
    flow.now += Time::us(10) - Time::ps(1);
    assert_eq!(flow.send(), 3);
    flow.now += Time::ps(1);
    assert_eq!(flow.sends(4), [any; 4], "three explore, and nothing is left in the ring");
    acks(&mut flow, [5]);
    assert_eq!(flow.sends(2), [5, any]);
}

#[test]
fn what_comes_back_while_a_flow_explores_is_for_later() {
    let (any, mut flow) = start();
    acks(&mut flow, [1]);
    time_out(&mut flow);
    flow.now += Time::us(10);
    // The first to come back after the frost ends it.
    acks(&mut flow, [7]);
    assert_eq!(flow.sends(2), [any; 2]);
    // Who explores does not freeze.
    time_out(&mut flow);
    acks(&mut flow, [8]);
    assert_eq!(flow.sends(4), [any, 7, 8, any]);
}

#[test]
fn time_outs_of_a_frozen_flow_change_nothing() {
    let (any, mut flow) = start();
    acks(&mut flow, [1]);
    time_out(&mut flow);
    flow.now += Time::us(9);
    time_out(&mut flow);
    assert_eq!(flow.sends(2), [1, 1]);
    flow.now += Time::us(1);
    assert_eq!(flow.send(), any);
}

#[test]
fn a_flow_that_has_nothing_freezes_too() {
    let (any, mut flow) = start();
    time_out(&mut flow);
    assert_eq!(flow.sends(3), [any; 3]);
    acks(&mut flow, [4]);
    assert_eq!(flow.sends(3), [4; 3]);
}

#[test]
fn defaults_are_those_published() {
    let mut flow = Flow::new("reps-freezing", &[]);
    acks(&mut flow, 1..=10);
    assert_eq!(flow.clone().sends(8), (3..=10).collect::<Vec<_>>(), "a ring of eight");
    time_out(&mut flow);
    flow.now += Time::ms(10) - Time::ps(1);
    assert_eq!(flow.send(), 9);
    flow.now += Time::ps(1);
    flow.send();
    acks(&mut flow, [1]);
    // Fifteen more explore, over 256 entropies: none is likely to be this one.
    assert!(!flow.sends(15).contains(&1));
    assert_eq!(flow.send(), 1);
}

/// The ring with a flag for each slot, as it is published.
#[derive(Default)]
struct Published {
    slots: Vec<(u16, bool)>,
    head: usize,
    kept: usize,
    fresh: usize,
    frozen_until: Option<Time>,
    turn: usize,
    explore: u32,
}

impl Published {
    fn thaw(&mut self, now: Time) {
        if self.frozen_until.is_some_and(|until| now >= until) {
            let slots = vec![(0, false); self.slots.len()];
            *self = Published { slots, explore: 3, ..Published::default() };
        }
    }
    fn ack(&mut self, now: Time, entropy: u16) {
        self.thaw(now);
        self.fresh += usize::from(!self.slots[self.head].1);
        self.slots[self.head] = (entropy, true);
        self.head = (self.head + 1) % self.slots.len();
        self.kept = self.slots.len().min(self.kept + 1);
    }
    fn time_out(&mut self, now: Time) {
        self.thaw(now);
        if self.frozen_until.is_none() && self.explore == 0 {
            (self.frozen_until, self.turn) = (Some(now + Time::us(10)), 0);
        }
    }
    /// `None`: any.
    fn send(&mut self, now: Time) -> Option<u16> {
        self.thaw(now);
        if self.explore > 0 {
            self.explore -= 1;
            return None;
        }
        let size = self.slots.len();
        let at = match self.frozen_until {
            Some(_) if self.kept == 0 => return None,
            Some(_) => {
                let at = self.turn;
                self.turn = (at + 1) % self.kept;
                at
            }
            None if self.fresh == 0 => return None,
            None => (self.head + size - self.fresh) % size,
        };
        self.fresh -= usize::from(self.slots[at].1);
        self.slots[at].1 = false;
        Some(self.slots[at].0)
    }
}

trials! {
    fn agrees_with_a_ring_of_flags(
        steps in prop::collection::vec((0u32..10, 0u64..4_000), 1..200), ring in 1u32..10,
    ) {
        let size = ring.to_string();
        let options =
            [("entropies", "1"), ("ring", size.as_str()), ("freeze", "10us"), ("explore", "3")];
        let mut flow = Flow::new("reps-freezing", &options);
        let any = flow.send();
        let slots = vec![(0, false); ring as usize];
        let mut published = Published { slots, ..Published::default() };
        for (step, (what, wait)) in (1..).zip(steps) {
            flow.now += Time::ns(wait);
            // Entropies that are told apart, and from what is drawn.
            let entropy = any.wrapping_add(step);
            match what {
                0 => {
                    time_out(&mut flow);
                    published.time_out(flow.now);
                }
                1..5 => {
                    acks(&mut flow, [entropy]);
                    published.ack(flow.now, entropy);
                }
                _ => prop_assert_eq!(flow.send(), published.send(flow.now).unwrap_or(any)),
            }
        }
    }
}

/// As [`start`] under the scheme of 2026, with its first packet on the way.
fn start_2026(options: &[(&str, &str)]) -> (u16, Flow) {
    let usual = [("entropies", "1"), ("ring", "4"), ("freeze", "10us"), ("explore", "2")];
    let mut flow = Flow::new("reps-2026", &[&usual, options].concat());
    let any = flow.send();
    flow.in_flight = 1;
    (any, flow)
}
/// An unmarked acknowledgement of a packet that left so long ago.
fn ack_after(flow: &mut Flow, entropy: u16, rtt: Time) {
    flow.steering.on_ack(Feedback { rtt, ..flow.feedback(entropy, false) });
}

#[test]
fn a_window_of_one_packet_recycles() {
    let (any, mut flow) = start_2026(&[]);
    acks(&mut flow, [1, 2, 3]);
    assert_eq!(flow.sends(3), [any, 1, 2], "the second of two explores");
    // Nothing is out whenever a packet leaves, which is no new start.
    flow.in_flight = 0;
    assert_eq!(flow.send(), 3);
    acks(&mut flow, [4]);
    assert_eq!(flow.send(), 4);
}

#[test]
fn long_round_trips_make_a_time_out_no_failure() {
    // Four links of 500 ns each way; 1064 and 64 bytes at 100 Gb/s.
    let base = Time::ns(4_000) + Time::ps(4 * 85_120 + 4 * 5_120);
    for (tenths, freezes) in [(16, true), (17, false)] {
        let rtt = Time(base.0 * tenths / 10);
        let (any, mut flow) = start_2026(&[]);
        flow.send();
        acks(&mut flow, [1]);
        assert_eq!(flow.send(), 1);
        ack_after(&mut flow, 2, rtt);
        time_out(&mut flow);
        let next = if freezes { [1, 2, 1] } else { [2, any, any] };
        assert_eq!(flow.sends(3), next, "{rtt}");
        // What is long ago says nothing.
        flow.now += base * 40;
        time_out(&mut flow);
        let next = if freezes { any } else { 1 };
        assert_eq!(flow.send(), next, "{rtt}");
    }
}
