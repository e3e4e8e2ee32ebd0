//! Which bytes of something are there.

use std::collections::BTreeMap;

/// Stretches of bytes: from, to, without touching neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    stretches: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Stretches {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of the `len` bytes from `from` on are there.
    pub fn has(&self, from: u64, len: u64) -> bool {
        let before = self.stretches.range(..=from).next_back();
        len == 0 || before.is_some_and(|(_, end)| *end >= from + len)
    }

    /// Notes `len` bytes from `from` on; returns whether all of them are new. If not, nothing is noted.
    pub fn add(&mut self, from: u64, len: u64) -> bool {
        if len == 0 {
            return true;
        }
        let to = from + len;
        let before = self.stretches.range(..=from).next_back().map(|(from, to)| (*from, *to));
        let after = self.stretches.range(from..).next().map(|(from, to)| (*from, *to));
        if before.is_some_and(|(_, end)| end > from) || after.is_some_and(|(start, _)| start < to) {
            return false;
        }
        let (mut start, mut end) = (from, to);
        if let Some((first, _)) = before.filter(|(_, end)| *end == from) {
            start = first;
        }
        if let Some((next, last)) = after.filter(|(next, _)| *next == to) {
            self.stretches.remove(&next);
            end = last;
        }
        self.stretches.insert(start, end);
        self.bytes += len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_trial::prelude::*;

    trials! {
        fn stretches_count_each_byte_once(parts in prop::collection::vec((0u64..60, 1u64..9), 1..40)) {
            let mut stretches = Stretches::default();
            let mut have = [false; 80];
            for (from, len) in parts {
                let part = &mut have[from as usize..(from + len) as usize];
                let is_new = part.iter().all(|byte| !byte);
                prop_assert_eq!(stretches.has(from, len), part.iter().all(|byte| *byte));
                prop_assert_eq!(stretches.add(from, len), is_new);
                if is_new {
                    part.fill(true);
                }
            }
            prop_assert_eq!(stretches.bytes(), have.iter().filter(|byte| **byte).count() as u64);
        }
    }
}
