//! What two leaves tell each other about the ways between them (section 3.3).

use weft_units::Time;

/// What the other leaf said about the ways to it: the paper's congestion-to-leaf table, one row.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// By uplink: the load, and when it was said; nothing was about those beyond.
    loads: Vec<(u8, Time)>,
}

impl Heard {
    pub(super) fn note(&mut self, uplink: u32, load: u8, now: Time) {
        if self.loads.len() <= uplink as usize {
            self.loads.resize(uplink as usize + 1, (0, Time::ZERO));
        }
        self.loads[uplink as usize] = (load, now);
    }
    /// The load by `uplink`; zero if nothing was said for longer than `aging`.
    #[inline]
    pub(super) fn level(&self, uplink: u32, now: Time, aging: Time) -> u8 {
        let said = self.loads.get(uplink as usize);
        said.filter(|(_, at)| at.until(now) <= aging).map_or(0, |(load, _)| *load)
    }
}

/// What packets from the other leaf met: the paper's congestion-from-leaf table, one row.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// By uplink of the other leaf; those beyond have sent nothing yet.
    loads: Vec<Option<(u8, Change)>>,
    /// Whose turn it is to be told.
    turn: usize,
    /// How many are [`Change::Yes`].
    changed: usize,
}

/// Whether a load is another one than was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    No,
    Yes,
}

impl Seen {
    pub(super) fn note(&mut self, uplink: u32, load: u8) {
        let uplink = uplink as usize;
        if self.loads.len() <= uplink {
            self.loads.resize(uplink + 1, None);
        }
        let entry = &mut self.loads[uplink];
        match entry {
            Some((known, _)) if *known == load => {}
            Some((_, Change::Yes)) => *entry = Some((load, Change::Yes)),
            _ => {
                *entry = Some((load, Change::Yes));
                self.changed += 1;
            }
        }
    }
    /// What to tell next: in turn, and first what has changed.
    pub(super) fn next(&mut self) -> Option<(u32, u8)> {
        let count = self.loads.len();
        let turns = (0..count).map(|step| (self.turn + step) % count);
        let mut tellable =
            turns.filter_map(|at| self.loads[at].map(|(load, change)| (at, load, change)));
        let (at, load, change) = match self.changed {
            0 => tellable.next(),
            _ => tellable.find(|(.., change)| *change == Change::Yes),
        }?;
        self.changed -= usize::from(change == Change::Yes);
        self.loads[at] = Some((load, Change::No));
        self.turn = at + 1;
        Some((at as u32, load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_goes_round_and_news_first() {
        let mut seen = Seen::default();
        assert_eq!(seen.next(), None);
        for (uplink, load) in [(3, 5), (1, 2), (0, 7)] {
            seen.note(uplink, load);
        }
        let mut told =
            |steps: usize| -> Vec<_> { (0..steps).map(|_| seen.next().unwrap()).collect() };
        assert_eq!(told(5), [(0, 7), (1, 2), (3, 5), (0, 7), (1, 2)]);
        // What changed goes first; what did not, comes in turn.
        seen.note(3, 5);
        seen.note(1, 4);
        let mut told =
            |steps: usize| -> Vec<_> { (0..steps).map(|_| seen.next().unwrap()).collect() };
        assert_eq!(told(4), [(1, 4), (3, 5), (0, 7), (1, 4)]);
    }

    #[test]
    fn what_was_heard_is_forgotten() {
        let mut heard = Heard::default();
        heard.note(1, 6, Time::us(5));
        let level = |uplink, now| heard.level(uplink, Time::us(now), Time::us(10));
        assert_eq!([level(0, 6), level(1, 6), level(1, 15), level(1, 16)], [0, 6, 6, 0]);
    }
}
