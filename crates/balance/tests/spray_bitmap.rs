//! Sprays that skip bad entropies, step by step.

use crate::common::flow::Flow;
use std::collections::{BTreeMap, BTreeSet};
use weft_balance::steer::{Feedback, TimeOut};
use weft_trial::prelude::*;
use weft_units::Time;

fn bitmap(entropies: u32) -> Flow {
    Flow::new("spray-bitmap", &[("entropies", &entropies.to_string())])
}
fn mark(flow: &mut Flow, entropy: u16) {
    flow.steering.on_ack(flow.feedback(entropy, true));
}
fn trim(flow: &mut Flow, entropy: u16) {
    flow.steering.on_ack(Feedback { trimmed: true, ..flow.feedback(entropy, true) });
}
fn good(flow: &mut Flow, entropy: u16) {
    flow.steering.on_ack(flow.feedback(entropy, false));
}
/// What was out for so many microseconds has timed out.
fn time_out(flow: &mut Flow, after: u64) {
    flow.steering.on_time_out(TimeOut { now: flow.now, after: Time::us(after) });
}
/// What is left out of the next round of a flow that stands at the beginning of one.
fn left_out(flow: &Flow, walk: &[u16]) -> Vec<u16> {
    let round = flow.clone().sends(walk.len() - 1);
    walk.iter().copied().filter(|entropy| !round.contains(entropy)).collect()
}

#[test]
fn without_feedback_it_is_a_counted_spray() {
    for entropies in [1u32, 2, 64] {
        let mut flow = bitmap(entropies);
        let all: BTreeSet<u16> = flow.sends(entropies as usize).into_iter().collect();
        assert_eq!(all.len(), entropies as usize);
        for _ in 0..5 {
            all.iter().for_each(|entropy| good(&mut flow, *entropy));
            assert_eq!(flow.sends(all.len()).into_iter().collect::<BTreeSet<_>>(), all);
        }
    }
}

#[test]
fn scores_by_hand() {
    let flow = bitmap(4);
    let walk = flow.clone().sends(4);
    // A mark: left out once.
    let mut marked = flow.clone();
    mark(&mut marked, walk[1]);
    assert_eq!(marked.sends(3), [walk[0], walk[2], walk[3]]);
    assert_eq!(marked.sends(4).into_iter().collect::<BTreeSet<_>>().len(), 4);
    // A NACK: four times, for packets that each pay for it.
    let mut trimmed = flow;
    trim(&mut trimmed, walk[2]);
    assert_eq!(trimmed.sends(3), [walk[0], walk[1], walk[3]]);
    let more = trimmed.sends(9);
    assert!(!more.contains(&walk[2]));
    assert!(trimmed.sends(12).contains(&walk[2]));
}

#[test]
fn a_packet_pays_for_one_entropy_only() {
    let mut flow = bitmap(4);
    let walk = flow.clone().sends(4);
    mark(&mut flow, walk[1]);
    mark(&mut flow, walk[2]);
    // The second packet pays for the first of them and passes the other.
    assert_eq!(flow.sends(2), [walk[0], walk[3]]);
    let next: BTreeSet<u16> = flow.sends(3).into_iter().collect();
    assert_eq!(next, BTreeSet::from([walk[0], walk[1], walk[3]]));
    assert_eq!(flow.sends(4).into_iter().collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn where_all_are_bad_each_is_as_good_as_any() {
    let mut flow = bitmap(4);
    let walk = flow.clone().sends(4);
    walk.iter().for_each(|entropy| mark(&mut flow, *entropy));
    assert_eq!(flow.send(), walk[0], "which has paid");
    // The three others pay one after the other, while the first carries all.
    for _ in 0..3 {
        flow.send();
    }
    let round: BTreeSet<u16> = flow.clone().sends(8).into_iter().collect();
    assert_eq!(round.len(), 4, "{round:?}");
    let mut single = bitmap(1);
    let only = single.send();
    mark(&mut single, only);
    assert_eq!(single.sends(3), [only; 3]);
}

#[test]
fn a_time_out_is_paid_by_who_was_silent_that_long() {
    let mut flow = bitmap(8);
    let mut walk = Vec::new();
    for _ in 0..8 {
        walk.push(flow.send());
        flow.now += Time::us(1);
    }
    // The first has answered; the second left seven microseconds ago, and pays alone.
    good(&mut flow, walk[0]);
    let mut second = flow.clone();
    time_out(&mut second, 8);
    assert_eq!(second.clone().sends(8).into_iter().collect::<BTreeSet<_>>().len(), 8);
    time_out(&mut second, 7);
    assert_eq!(left_out(&second, &walk), [walk[1]]);
    // It has paid: what else was lost under it costs nothing more, and fifteen packets later
    // all are used again.
    time_out(&mut second, 7);
    assert!(!second.sends(14).contains(&walk[1]));
    assert_eq!(second.sends(200).into_iter().collect::<BTreeSet<_>>().len(), 8);
    // A mark is an answer too, and makes it one of three.
    mark(&mut flow, walk[1]);
    time_out(&mut flow, 5);
    let used: BTreeSet<u16> = flow.clone().sends(5 * 8).into_iter().collect();
    assert_eq!(used.len(), 6);
    assert!([walk[2], walk[3]].iter().all(|entropy| !used.contains(entropy)));
}

#[test]
fn the_mixed_form_recycles_first() {
    let mut flow = Flow::new("spray-mixed", &[("entropies", "4")]);
    let walk = flow.clone().sends(4);
    assert_eq!(flow.send(), walk[0]);
    good(&mut flow, walk[3]);
    good(&mut flow, walk[0]);
    mark(&mut flow, walk[1]);
    // The walk stands still while there is something to recycle, and leaves out what was marked.
    assert_eq!(flow.sends(4), [walk[3], walk[0], walk[2], walk[3]]);
    good(&mut flow, walk[2]);
    good(&mut flow, walk[0]);
    assert_eq!(flow.sends(2), [walk[2], walk[0]]);
}

#[test]
fn recycled_entropies_may_time_out() {
    let mut flow = Flow::new("spray-mixed", &[("entropies", "4")]);
    let walk = flow.clone().sends(4);
    // One packet is out, and it was sent under an entropy that came back.
    good(&mut flow, walk[2]);
    assert_eq!(flow.send(), walk[2]);
    flow.now += Time::us(1);
    time_out(&mut flow, 1);
    assert_eq!(flow.sends(3), [walk[0], walk[1], walk[3]]);
}

trials! {
    /// Against scores kept by hand, along the walk that the flow would have without feedback.
    fn packets_pay_and_pass(
        steps in prop::collection::vec((0u32..12, any::<u16>()), 1..300), bits in 0u32..6,
        cap in 1u8..20, raise in (0u8..5, 0u8..9),
    ) {
        let entropies = 1usize << bits;
        let texts =
            [entropies.to_string(), raise.0.to_string(), raise.1.to_string(), cap.to_string()];
        let keys = ["entropies", "mark_score", "nack_score", "score_cap"];
        let options: Vec<_> = keys.into_iter().zip(texts.iter().map(String::as_str)).collect();
        let mut flow = Flow::new("spray-bitmap", &options);
        let mut walk = flow.clone();
        let known = walk.clone().sends(entropies);
        let mut scores: BTreeMap<u16, u8> = known.iter().map(|entropy| (*entropy, 0)).collect();
        for (what, which) in steps {
            let entropy = known[usize::from(which) % entropies];
            let by = match what {
                0 => raise.0,
                1 => raise.1,
                2 => 0,
                _ => {
                    let all_bad = scores.values().all(|score| *score > 0);
                    let mut next = walk.send();
                    if scores[&next] > 0 {
                        *scores.get_mut(&next).unwrap() -= 1;
                        // Even if that was the last of its score, its turn is over.
                        let mut passes = !all_bad;
                        while passes {
                            next = walk.send();
                            passes = scores[&next] > 0;
                        }
                    }
                    prop_assert_eq!(flow.send(), next);
                    continue;
                }
            };
            match what {
                0 => mark(&mut flow, entropy),
                1 => trim(&mut flow, entropy),
                _ => good(&mut flow, entropy),
            }
            let score = scores.get_mut(&entropy).unwrap();
            *score = cap.min(*score + by);
        }
    }

    /// Marks on some of the entropies: as long as others are free of them, those alone are used.
    fn good_entropies_carry_all(bits in 1u32..7, bad in 1usize..64, seed in any::<u16>()) {
        let entropies = 1usize << bits;
        let bad = bad.min(entropies - 1);
        let mut flow = bitmap(entropies as u32);
        let walk = flow.clone().sends(entropies);
        let from = usize::from(seed) % entropies;
        let marked: BTreeSet<u16> =
            walk.iter().cycle().skip(from).take(bad).copied().collect();
        // Fifteen each, of which a packet takes one: none is through before fifteen packets.
        marked.iter().for_each(|entropy| (0..4).for_each(|_| trim(&mut flow, *entropy)));
        prop_assert!(flow.sends(14).iter().all(|entropy| !marked.contains(entropy)));
    }
}

#[test]
fn strack_skips_a_marked_entropy_once() {
    let mut flow = Flow::new("strack", &[("entropies", "4")]);
    let all: std::collections::BTreeSet<u16> = flow.sends(4).into_iter().collect();
    assert_eq!(all.len(), 4);
    let bad = *all.first().unwrap();
    // Several marks are one.
    for _ in 0..3 {
        flow.steering.on_ack(flow.feedback(bad, true));
    }
    // Seven packets make two rounds of four but for the one that is left out.
    let next = flow.sends(7);
    assert_eq!(next.iter().filter(|entropy| **entropy == bad).count(), 1, "{next:?}");
}
