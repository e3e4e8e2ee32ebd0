//! Messages cut evenly over a number of connections, where nobody plans: to peers below the same
//! leaf, and without a fabric.

use crate::{CommError, EndpointConfig};

/// Shorter messages go whole, where no plan says otherwise; parts are whole multiples.
const QUANTUM: u64 = 512 << 10;
/// So many bytes go over a connection before it is the next one's turn: messages that follow each other
/// share acknowledgements and announcements there.
const BURST: u64 = 512 << 10;

#[derive(Debug)]
pub(super) struct EvenSplit {
    connections: u32,
    quantum: u64,
    burst: u64,
}

/// Whose turn it is, and how many bytes it has had.
#[derive(Debug, Default)]
pub(super) struct Turn {
    lane: u32,
    carried: u64,
}

impl EvenSplit {
    /// # Errors
    /// If there are no connections, or too many.
    pub(super) fn new(config: &EndpointConfig) -> Result<EvenSplit, CommError> {
        let EndpointConfig { name, connections, plan, .. } = config;
        if !(1..=256).contains(connections) {
            let what = format!("{name}: {connections} connections; write 1 to 256");
            return Err(CommError::Invalid(what));
        }
        let quantum = plan.as_ref().map_or(QUANTUM, |plan| u64::from(plan.quantum));
        Ok(EvenSplit { connections: *connections, quantum, burst: BURST })
    }

    /// Messages of so many bytes go whole.
    pub(super) fn quantum(&self) -> u64 {
        self.quantum
    }

    /// Calls `part` with the first byte of each part, the byte after its last one, and its lane.
    pub(super) fn cut(&self, bytes: u64, turn: &mut Turn, mut part: impl FnMut(u64, u64, u32)) {
        let quanta = bytes.div_ceil(self.quantum).max(1);
        let parts = quanta.min(u64::from(self.connections));
        let mut start = 0;
        for number in 1..=parts {
            let end = (quanta * number / parts * self.quantum).min(bytes);
            let (last, len) = (turn.carried, end - start);
            if number > 1 || last > 0 && last + len > self.burst {
                *turn = Turn { lane: turn.lane + 1, carried: 0 };
            }
            turn.lane %= self.connections;
            turn.carried += len;
            part(start, end, turn.lane);
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: u64, turn: &mut Turn) -> Vec<(u64, u64, u32)> {
        let spread = EvenSplit { connections: 4, quantum: 10, burst: 20 };
        let mut out = Vec::new();
        spread.cut(bytes, turn, |start, end, lane| out.push((start, end, lane)));
        out
    }

    #[test]
    fn short_messages_take_turns_in_bursts() {
        let mut turn = Turn::default();
        let all: Vec<_> = [0, 1, 10, 9, 5, 10, 0, 10].map(|bytes| cut(bytes, &mut turn)).concat();
        let lanes: Vec<_> = all.iter().map(|(_, _, lane)| *lane).collect();
        assert_eq!(lanes, [0, 0, 0, 0, 1, 1, 1, 2]);
        assert!(all.iter().all(|(start, _, _)| *start == 0));
    }

    #[test]
    fn long_messages_are_cut_evenly_in_whole_quanta() {
        let mut turn = Turn::default();
        assert_eq!(cut(81, &mut turn), [(0, 20, 0), (20, 40, 1), (40, 60, 2), (60, 81, 3)]);
        assert_eq!(cut(40, &mut turn), [(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 40, 3)]);
    }
}
