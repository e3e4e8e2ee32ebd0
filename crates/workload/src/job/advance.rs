//! A ring of ranks that pass on what they have received, for many rounds at once.

use std::collections::VecDeque;

/// `at` after `rounds` rounds in which a message takes `takes` into each place.
pub(super) fn advance(at: &[u64], takes: &[u64], rounds: usize) -> Vec<u64> {
    let ranks = at.len();
    // What lies before each place, from place 0 on; places go on over the end, and before the start.
    let mut sums = vec![0; ranks + 1];
    for place in 0..ranks {
        sums[place + 1] = sums[place] + i128::from(takes[place]);
    }
    let start = |from: i64| {
        let (laps, place) = (from.div_euclid(ranks as i64), from.rem_euclid(ranks as i64) as usize);
        i128::from(at[place]) - (i128::from(laps) * sums[ranks] + sums[place + 1])
    };
    // The farther it began, the longer it takes: of each place, the last time round that it could begin.
    let (farthest, nearest) = (rounds as i64, (rounds as i64 + 1 - ranks as i64).max(0));
    let mut next = -farthest;
    // The latest of a window that moves on by a place: those that can still be it, in their order.
    let mut latest: VecDeque<(i64, i128)> = VecDeque::new();
    let mut ends = Vec::with_capacity(ranks);
    for place in 0..ranks as i64 {
        while next <= place - nearest {
            let own = start(next);
            while latest.back().is_some_and(|(_, other)| *other <= own) {
                latest.pop_back();
            }
            latest.push_back((next, own));
            next += 1;
        }
        while latest.front().is_some_and(|(from, _)| *from < place - farthest) {
            latest.pop_front();
        }
        let (_, most) = latest.front().expect("a window has at least one place");
        ends.push((most + sums[place as usize + 1]) as u64);
    }
    ends
}
