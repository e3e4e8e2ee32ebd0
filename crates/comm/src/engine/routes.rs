//! Which lane a piece goes over, and which source ports lead along its path.

use crate::{CommError, EndpointConfig, Hint};
use weft_balance::enforce::PortRange;
use weft_fabric::PathId;

/// What tells the lanes of a channel apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// One of so many alike, which switches hash.
    Even(u32),
}

/// How packets of a lane find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The path, if it is known.
    pub(super) path: Option<PathId>,
    /// Source ports that lead there; `None`: any that the system picks.
    pub(super) ports: Option<PortRange>,
    /// Bytes per second at most.
    pub(super) pace: Option<u64>,
}

impl Way {
    /// Whatever the system picks.
    pub(super) const ANY: Way = Way { path: None, ports: None, pace: None };

    /// The `spare`-th port, going round.
    pub(super) fn port(&self, spare: u32) -> u16 {
        let Some(ports) = self.ports else { return 0 };
        // `ip rule` takes no range that ends at the very last port.
        let count = u32::from(ports.last.min(65_534).saturating_sub(ports.first)) + 1;
        ports.first + (spare % count) as u16
    }
}

/// Shorter messages go whole, where no plan says otherwise; parts are whole multiples.
const QUANTUM: u64 = 64 << 10;

pub(super) struct Routes {
    pub(super) connections: u32,
    quantum: u64,
}

impl Routes {
    pub(super) fn new(config: &EndpointConfig) -> Result<Routes, CommError> {
        if !(1..=256).contains(&config.connections) {
            return Err(CommError::Invalid(format!(
                "{}: {} connections; write 1 to 256",
                config.name, config.connections
            )));
        }
        Ok(Routes { connections: config.connections, quantum: QUANTUM })
    }

    pub(super) fn hint(&mut self, hint: Hint) {
        let _ = hint;
    }

    /// Cuts a message evenly: where each part ends, and the lane that it goes over. `turn` says whose
    /// turn it is for a part alone.
    pub(super) fn spread(&self, bytes: u64, turn: &mut u32) -> Vec<(u64, u32)> {
        let all = u64::from(self.connections);
        let quanta = bytes.div_ceil(self.quantum).max(1);
        let parts = quanta.min(all);
        let first = *turn;
        *turn = turn.wrapping_add(parts as u32);
        (1..=parts)
            .map(|part| {
                let end = (quanta * part / parts * self.quantum).min(bytes);
                (end, (u64::from(first) + part - 1) % all)
            })
            .map(|(end, lane)| (end, lane as u32))
            .collect()
    }
}
