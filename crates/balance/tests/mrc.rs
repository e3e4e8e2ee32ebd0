//! MRC's entropy values and their states.

use crate::common::flow::Flow;
use std::collections::BTreeSet;
use weft_balance::plan::Route;
use weft_balance::scheme::SchemeConfig;
use weft_balance::steer::{Departure, Feedback};
use weft_units::Time;

const FEW: [(&str, &str); 2] = [("entropies", "6"), ("active", "4")];

fn set(values: Vec<u16>) -> BTreeSet<u16> {
    values.into_iter().collect()
}

#[test]
fn walks_through_all_that_are_active() {
    let mut flow = Flow::new("mrc", &FEW);
    let first = set(flow.sends(4));
    assert_eq!(first.len(), 4);
    // In other orders, but all of them in each round.
    assert!((0..10).all(|_| set(flow.sends(4)) == first));
    assert_eq!(set(Flow::new("mrc", &[]).sends(100)).len(), 100);
}

#[test]
fn marks_and_trims_skip_once() {
    let mut flow = Flow::new("mrc", &FEW);
    let all = flow.sends(4);
    let count = |flow: &mut Flow, value: u16, of: usize| {
        flow.sends(of).into_iter().filter(|one| *one == value).count()
    };
    let trimmed = |last_hop| Feedback { trimmed: true, last_hop, ..flow.feedback(all[0], true) };
    for (feedback, turns) in [
        (flow.feedback(all[0], true), 3),
        (trimmed(false), 3),
        (trimmed(true), 4),
        (flow.feedback(all[0], false), 4),
    ] {
        let mut flow = flow.clone();
        flow.steering.on_ack(feedback);
        // Four turns of four, one of which may be left out; the packets that take its turn begin the next.
        let of = if turns == 3 { 15 } else { 16 };
        assert_eq!(count(&mut flow, all[0], of), turns, "{feedback:?}");
    }
    // If all are to be skipped, somebody must go.
    all.iter().for_each(|value| {
        let feedback = flow.feedback(*value, true);
        flow.steering.on_ack(feedback);
    });
    assert_eq!(set(flow.sends(5)).len(), 4);
}

#[test]
fn losses_call_backups() {
    let mut flow = Flow::new("mrc", &FEW);
    let all = flow.sends(4);
    let lose = |flow: &mut Flow, value: u16, us: u64| flow.steering.on_lost(Time::us(us), value);
    lose(&mut flow, all[0], 1);
    let now = set(flow.sends(4));
    assert!(!now.contains(&all[0]) && now.len() == 4);
    // The second loss of the same one is no news.
    lose(&mut flow, all[0], 1);
    assert_eq!(set(flow.sends(4)), now);
    lose(&mut flow, all[1], 2);
    // No backup is left: two of the other three go on, and the third stays, bad as it is.
    lose(&mut flow, all[2], 3);
    let three = set(flow.sends(6));
    assert!(three.len() == 3 && !three.contains(&all[2]));
    lose(&mut flow, all[3], 4);
    let two = set(flow.sends(6));
    assert!(two.len() == 2 && !two.contains(&all[3]));
    let kept = *two.first().unwrap();
    lose(&mut flow, kept, 5);
    assert_eq!(set(flow.sends(4)), two);
    // Bad ones come back after 3 ms, into use as long as some are missing there.
    lose(&mut flow, kept, 3_004);
    let now = set(flow.sends(8));
    assert!(now.len() == 4 && !now.contains(&kept) && now.contains(&all[2]));
}

#[test]
fn so_many_stay_in_use() {
    let mut flow = Flow::new("mrc", &[("entropies", "4"), ("active", "4"), ("min_active", "4")]);
    let all = set(flow.sends(4));
    flow.steering.on_lost(Time::us(1), *all.first().unwrap());
    assert_eq!(set(flow.sends(4)), all);
    let error = SchemeConfig::read("mrc", &[("min_active", "101")]).unwrap_err();
    assert!(error.to_string().contains("is more than active, 100; use less"), "{error}");
    // Fewer entropies are all active.
    assert_eq!(set(Flow::new("mrc", &[("entropies", "64")]).sends(64)).len(), 64);
}

/// Who can ask probes bad ones every millisecond: three answers in a row make a backup.
#[test]
fn bad_ones_are_probed() {
    let mut flow = Flow::able_to_probe("mrc", &FEW);
    let all = flow.sends(4);
    let ms = Time::ms;
    assert_eq!(flow.steering.probe_at(), None);
    flow.steering.on_lost(ms(1), all[0]);
    assert_eq!(flow.steering.probe_at(), Some(ms(2)));
    let probe = |flow: &mut Flow, now: u64| {
        let mut out = Vec::new();
        let again = flow.steering.probe(ms(now), &mut out);
        (out, again)
    };
    let asked = (vec![Route::Hashed(all[0])], Some(ms(3)));
    assert_eq!(probe(&mut flow, 2), asked);
    flow.steering.on_probe(all[0]);
    // The second gets no answer, so that three more are needed.
    for now in 3..=6 {
        assert_eq!(probe(&mut flow, now).0, [Route::Hashed(all[0])], "{now}");
        if now > 3 {
            flow.steering.on_probe(all[0]);
        }
    }
    // It is a backup: nobody asks any more, and the next loss but one finds it.
    assert_eq!(probe(&mut flow, 7), (vec![], None));
    flow.steering.on_lost(ms(8), all[1]);
    assert!(!set(flow.sends(4)).contains(&all[0]));
    flow.steering.on_lost(ms(8), all[2]);
    assert!(set(flow.sends(4)).contains(&all[0]));
}

#[test]
fn more_active_than_there_are() {
    let error = SchemeConfig::read("mrc", &[("entropies", "6"), ("active", "7")]).unwrap_err();
    assert!(
        error.to_string().contains("is more than entropies, 6; use less, or raise that"),
        "{error}"
    );
}

#[test]
fn structured_values_are_the_paths() {
    let mut flow = Flow::new("mrc", &[("carried", "structured"), ("active", "3")]);
    let sends = |flow: &mut Flow, count| -> BTreeSet<u16> {
        let at = Departure { now: flow.now, in_flight: 1 };
        let mut send = || match flow.steering.route(Route::Hashed(7), at) {
            Route::Pinned(path) => path.0,
            Route::Hashed(entropy) => panic!("{entropy}"),
        };
        (0..count).map(|_| send()).collect()
    };
    // Three of four paths, the fourth for one that loses a packet.
    let first = sends(&mut flow, 3);
    assert_eq!(first.len(), 3);
    let lost = *first.first().unwrap();
    flow.steering.on_lost(flow.now, lost);
    let then = sends(&mut flow, 3);
    assert!(then.len() == 3 && !then.contains(&lost), "{first:?}, then {then:?}");
    let scheme = |carried| SchemeConfig::read("mrc", &[("carried", carried)]).unwrap();
    assert!(scheme("structured").needs_path_ids() && !scheme("ecmp").needs_path_ids());
}
