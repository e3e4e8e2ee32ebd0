//! Which task touched which bytes last.

use std::collections::BTreeMap;
use std::ops::Range;

/// A stretch of bytes that the same tasks touched.
#[derive(Clone, Debug)]
struct Stretch {
    end: usize,
    writer: Option<u32>,
    /// Those that read it since.
    readers: Vec<u32>,
}

/// Stretches by where they begin. Bytes in none of them were not touched.
#[derive(Debug, Default)]
pub(super) struct Overlap(BTreeMap<usize, Stretch>);

impl Overlap {
    /// Notes that `task` reads; adds to `needs` who must be through before.
    pub(super) fn read(&mut self, bytes: Range<usize>, task: u32, needs: &mut Vec<u32>) {
        self.cover(&bytes);
        for stretch in self.0.range_mut(bytes).map(|(_, stretch)| stretch) {
            needs.extend(stretch.writer);
            if stretch.readers.last() != Some(&task) {
                stretch.readers.push(task);
            }
        }
    }

    /// The same of a task that writes.
    pub(super) fn write(&mut self, bytes: Range<usize>, task: u32, needs: &mut Vec<u32>) {
        self.cover(&bytes);
        for stretch in self.0.range(bytes.clone()).map(|(_, stretch)| stretch) {
            // Who reads what was written came after the writer.
            if stretch.readers.is_empty() {
                needs.extend(stretch.writer);
            }
            needs.extend(&stretch.readers);
        }
        let inside: Vec<usize> = self.0.range(bytes.clone()).map(|(start, _)| *start).collect();
        for start in inside {
            self.0.remove(&start);
        }
        let stretch = Stretch { end: bytes.end, writer: Some(task), readers: Vec::new() };
        self.0.insert(bytes.start, stretch);
    }

    /// Makes stretches begin and end where `bytes` do, and leaves no gap within.
    fn cover(&mut self, bytes: &Range<usize>) {
        for at in [bytes.start, bytes.end] {
            let cut = self.0.range_mut(..at).next_back().filter(|(_, stretch)| stretch.end > at);
            if let Some((_, stretch)) = cut {
                let rest = stretch.clone();
                stretch.end = at;
                self.0.insert(at, rest);
            }
        }
        let mut at = bytes.start;
        let mut gaps = Vec::new();
        for (start, stretch) in self.0.range(bytes.clone()) {
            if *start > at {
                gaps.push((at, *start));
            }
            at = stretch.end;
        }
        if at < bytes.end {
            gaps.push((at, bytes.end));
        }
        for (start, end) in gaps {
            self.0.insert(start, Stretch { end, writer: None, readers: Vec::new() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(tasks: &[(bool, Range<usize>)]) -> Vec<Vec<u32>> {
        let mut overlap = Overlap::default();
        let each = tasks.iter().enumerate().map(|(task, (writes, bytes))| {
            let mut needs = Vec::new();
            if *writes {
                overlap.write(bytes.clone(), task as u32, &mut needs);
            } else {
                overlap.read(bytes.clone(), task as u32, &mut needs);
            }
            needs.sort_unstable();
            needs.dedup();
            needs
        });
        each.collect()
    }

    #[test]
    fn readers_wait_for_writers_and_writers_for_readers() {
        let found = needs(&[
            (false, 0..10),
            (false, 5..15),
            (true, 8..12),
            (false, 0..8),
            (false, 11..20),
            (true, 0..20),
        ]);
        let none = Vec::new();
        assert_eq!(found[..5], [none.clone(), none.clone(), vec![0, 1], none, vec![2]]);
        // Task 2 wrote bytes that nobody has read since.
        assert_eq!(found[5], [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_is_apart_waits_for_nothing() {
        let found = needs(&[(true, 0..4), (true, 4..8), (false, 8..9)]);
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
    }

    /// Against the definition, on all sequences of a pseudo-random kind.
    #[test]
    fn conflicts_are_ordered() {
        let mut state = 1u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let tasks: Vec<(bool, Range<usize>)> = (0..12)
                .map(|_| {
                    let start = draw(20) as usize;
                    (draw(2) == 0, start..start + 1 + draw(8) as usize)
                })
                .collect();
            let found = needs(&tasks);
            // All that must come before a task, directly or not.
            let mut before: Vec<Vec<bool>> = Vec::new();
            for needs in &found {
                let mut all = vec![false; tasks.len()];
                for need in needs {
                    all[*need as usize] = true;
                    for (of, is) in before[*need as usize].iter().enumerate() {
                        all[of] |= is;
                    }
                }
                before.push(all);
            }
            for (later, (writes, bytes)) in tasks.iter().enumerate() {
                for (earlier, (wrote, touched)) in tasks[..later].iter().enumerate() {
                    let overlap = bytes.start < touched.end && touched.start < bytes.end;
                    if overlap && (*writes || *wrote) {
                        assert!(before[later][earlier], "{tasks:?}: {earlier} before {later}");
                    }
                }
            }
        }
    }
}
