//! Messages cut evenly over a number of connections, where nobody plans: to peers below the same
//! leaf, and without a fabric.

use crate::{CommError, EndpointConfig};

/// Shorter messages go whole, where no plan says otherwise; parts are whole multiples.
const QUANTUM: u64 = 512 << 10;

#[derive(Debug)]
pub(super) struct EvenSplit {
    connections: u32,
    quantum: u64,
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
        Ok(EvenSplit { connections: *connections, quantum })
    }

    /// Calls `part` with the first byte of each part, the byte after its last one, and its lane.
    /// `turn` says whose turn it is for a part alone.
    pub(super) fn cut(&self, bytes: u64, turn: &mut u32, mut part: impl FnMut(u64, u64, u32)) {
        let quanta = bytes.div_ceil(self.quantum).max(1);
        let parts = quanta.min(u64::from(self.connections));
        let mut start = 0;
        for number in 1..=parts {
            let end = (quanta * number / parts * self.quantum).min(bytes);
            part(start, end, *turn % self.connections);
            *turn = (*turn + 1) % self.connections;
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: u64, turn: &mut u32) -> Vec<(u64, u64, u32)> {
        let spread = EvenSplit { connections: 4, quantum: 10 };
        let mut out = Vec::new();
        spread.cut(bytes, turn, |start, end, lane| out.push((start, end, lane)));
        out
    }

    #[test]
    fn short_messages_take_turns() {
        let mut turn = 0;
        let all: Vec<_> = [0, 1, 10, 0, 5].map(|bytes| cut(bytes, &mut turn)).concat();
        assert_eq!(all, [(0, 0, 0), (0, 1, 1), (0, 10, 2), (0, 0, 3), (0, 5, 0)]);
    }

    #[test]
    fn long_messages_are_cut_evenly_in_whole_quanta() {
        assert_eq!(cut(81, &mut 0), [(0, 20, 0), (20, 40, 1), (40, 60, 2), (60, 81, 3)]);
        assert_eq!(cut(25, &mut 3), [(0, 10, 3), (10, 20, 0), (20, 25, 1)]);
    }
}
