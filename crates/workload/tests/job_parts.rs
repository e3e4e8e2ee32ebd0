//! Parts of jobs that nobody sees from outside.

use advance::advance;
use ahead::Ahead;
use weft_trial::prelude::*;

#[path = "../src/job/advance.rs"]
mod advance;
#[path = "../src/job/ahead.rs"]
mod ahead;

#[test]
fn numbers_are_taken_in_order_however_they_come() {
    let mut ahead = Ahead::default();
    for number in (0..300).rev() {
        assert!(!ahead.take());
        ahead.put(number);
        assert!(ahead.has(number));
    }
    assert!((0..300).all(|number| ahead.next() == number && ahead.take()));
    assert!(!ahead.take());
    assert!(ahead.has(299) && !ahead.has(300));
    let mut other = Ahead::default();
    [3, 70, 71, 200, 201].into_iter().for_each(|number| other.put(number));
    other.skip_to(70);
    assert!(other.take() && other.take() && !other.take());
    other.skip_to(200);
    assert!(other.take() && other.take() && !other.take());
    ahead.skip();
    ahead.put(300);
    assert!(!ahead.take());
}

trials! {
    /// As one after the other.
    fn many_rounds_at_once(
        (places, rounds) in (prop::collection::vec((0..1000_u64, 0..50_u64), 1..12), 0..40_usize)
    ) {
        let (at, takes): (Vec<u64>, Vec<u64>) = places.into_iter().unzip();
        let mut slow = at.clone();
        for _ in 0..rounds {
            let before = slow.clone();
            for place in 0..slow.len() {
                let came = before[(place + slow.len() - 1) % slow.len()] + takes[place];
                slow[place] = before[place].max(came);
            }
        }
        prop_assert_eq!(advance(&at, &takes, rounds), slow);
    }
}
