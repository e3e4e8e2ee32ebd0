//! The sums of one operation at one switch.
//!
//! Segment `s` has the place `s` modulo [`Accumulators::room`]. A host sends segment `s` when it has all results
//! a window before, and after a failure again from a window before the first that it lacks; so when a
//! segment comes that is four windows ahead of another one, nobody can need that any more.
//!
//! Invariant: a child counts once for a segment.

/// What comes of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Others have still to contribute.
    First,
    /// It was the last: the sum, of so many ranks, is complete.
    Complete(u32),
    /// It had come before, and so has the sum, which may have got lost on its way up.
    Again(u32),
    /// It had come before, and the result went down since: the child needs it.
    Answer(u32),
    /// It had come before; others have still to contribute.
    Duplicate,
    /// Nobody needs it any more.
    Late,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The segment, counted from 1; 0: none yet.
    segment: u32,
    /// Ranks that the sum is of.
    ranks: u32,
    /// Children that have not contributed.
    missing: u32,
    /// The result went down, and is of so many ranks.
    result: Option<u32>,
}

/// The sums of an operation.
#[derive(Debug)]
pub(super) struct Accumulators {
    slots: Vec<Slot>,
    /// By slot: who has contributed, a bit for each child.
    seen: Vec<u64>,
    children: u32,
    /// Words of `seen` for a slot.
    words: usize,
    /// Results that went down.
    pub(super) results: u32,
}

impl Accumulators {
    /// For a switch with so many `children`, of an operation of so many segments.
    pub(super) fn new(children: u32, segments: u32, window: u32) -> Accumulators {
        let room = window.saturating_mul(4).min(segments) as usize;
        let words = children.div_ceil(u64::BITS) as usize;
        let (slots, seen) = (vec![Slot::default(); room], vec![0; room * words]);
        Accumulators { slots, seen, children, words, results: 0 }
    }

    /// The slot of a segment; `None`: it is of a later one.
    fn slot(&mut self, segment: u32) -> Option<usize> {
        let at = segment as usize % self.slots.len();
        if self.slots[at].segment > segment + 1 {
            return None;
        }
        if self.slots[at].segment < segment + 1 {
            let (ranks, missing, result) = (0, self.children, None);
            self.slots[at] = Slot { segment: segment + 1, ranks, missing, result };
            self.seen[at * self.words..(at + 1) * self.words].fill(0);
        }
        Some(at)
    }

    /// Child `child` contributes the sum of `ranks` ranks.
    pub(super) fn contribute(&mut self, segment: u32, child: u32, ranks: u32) -> Came {
        let Some(at) = self.slot(segment) else { return Came::Late };
        let (word, bit) = (child / u64::BITS, 1 << (child % u64::BITS));
        let (slot, seen) = (&mut self.slots[at], &mut self.seen[at * self.words + word as usize]);
        let is_known = *seen & bit != 0;
        *seen |= bit;
        if let Some(ranks) = slot.result {
            return Came::Answer(ranks);
        }
        match (is_known, slot.missing) {
            (true, 0) => Came::Again(slot.ranks),
            (true, _) => Came::Duplicate,
            (false, missing) => {
                (slot.missing, slot.ranks) = (missing - 1, slot.ranks + ranks);
                if slot.missing == 0 { Came::Complete(slot.ranks) } else { Came::First }
            }
        }
    }

    /// The result, of so many ranks, goes down. Returns whether it had not yet.
    pub(super) fn give(&mut self, segment: u32, ranks: u32) -> bool {
        let Some(at) = self.slot(segment) else { return false };
        let is_new = self.slots[at].result.is_none();
        self.slots[at].result = Some(ranks);
        self.results += u32::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::{Accumulators, Came};

    #[test]
    fn a_child_counts_once_and_a_sum_is_kept_for_whoever_lost_it() {
        let mut sums = Accumulators::new(3, 100, 2);
        assert_eq!(sums.contribute(0, 0, 4), Came::First);
        assert_eq!(sums.contribute(0, 0, 4), Came::Duplicate);
        assert_eq!(sums.contribute(0, 2, 1), Came::First);
        assert_eq!(sums.contribute(0, 1, 2), Came::Complete(7));
        assert_eq!(sums.contribute(0, 1, 2), Came::Again(7));
        assert!(sums.give(0, 7) && !sums.give(0, 7));
        assert_eq!(sums.contribute(0, 1, 2), Came::Answer(7));
        // Four windows later its place is another's.
        assert_eq!(sums.contribute(8, 0, 1), Came::First);
        assert_eq!(sums.contribute(0, 1, 2), Came::Late);
        assert!(!sums.give(0, 7));
        assert_eq!(sums.contribute(8, 0, 1), Came::Duplicate);
    }

    #[test]
    fn more_children_than_bits_of_a_word() {
        let mut sums = Accumulators::new(130, 1, 1);
        for child in 0..129 {
            assert_eq!(sums.contribute(0, child, 1), Came::First);
        }
        assert_eq!(sums.contribute(0, 128, 1), Came::Duplicate);
        assert_eq!(sums.contribute(0, 129, 1), Came::Complete(130));
    }
}
