//! What is simulated: packets, or the rates of flows, or packets where these are needed; and what the
//! results of rates lack.

use crate::columns::{Cell, Columns, Row};

/// Where an experiment says it.
pub(crate) const KEY: &str = "run.fidelity";

/// Whether there is a fidelity of this name.
pub(crate) fn is_known(name: &str) -> bool {
    Fidelity::ALL.iter().any(|one| one.name() == name)
}

/// How closely a run is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Every packet.
    #[default]
    Packet,
    /// Rates where hosts send as if they were alone ([`weft_fluid::run_alone`]), else every packet.
    Fast,
    /// The rates of flows ([`weft_fluid`]).
    Fluid,
}

/// What a result comes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Packets,
    Rates,
}

impl Fidelity {
    /// All, the default first.
    pub const ALL: [Fidelity; 3] = [Fidelity::Packet, Fidelity::Fast, Fidelity::Fluid];

    /// The value of `run.fidelity`.
    pub fn name(self) -> &'static str {
        match self {
            Fidelity::Packet => "packet",
            Fidelity::Fast => "fast",
            Fidelity::Fluid => "fluid",
        }
    }

    /// What the user of such a run has to know.
    pub(crate) fn remark(self) -> Option<String> {
        match self {
            Fidelity::Packet | Fidelity::Fast => None,
            Fidelity::Fluid => Some(
                "run.fidelity = \"fluid\": rates of flows instead of packets; columns about queues, \
                 marks, pauses, losses and reordering are empty"
                    .into(),
            ),
        }
    }
}

impl Source {
    /// Which share of the packet-hops of a run of that fidelity was worked out instead of simulated, in
    /// percent.
    pub(crate) fn skipped(self, fidelity: Fidelity) -> Cell {
        match (fidelity, self) {
            (Fidelity::Fluid, _) => Cell::Unknown,
            (_, Source::Packets) => 0.0.into(),
            (_, Source::Rates) => 100.0.into(),
        }
    }

    /// What only rates tell: packets show what becomes of it.
    pub(crate) fn of_rates(self, cell: Cell) -> Cell {
        if self == Source::Rates { cell } else { Cell::Unknown }
    }

    /// Takes out of a row what it does not know.
    pub(crate) fn blank(self, row: &mut Row) {
        if self == Source::Rates {
            for (_, cell) in row.iter_mut().filter(|(name, _)| OF_PACKETS.contains(name)) {
                *cell = Cell::Unknown;
            }
        }
    }

    /// The columns of a table that it knows.
    pub(crate) fn known(self, columns: Columns) -> Columns {
        let knows = |name| self == Source::Packets || !OF_PACKETS.contains(&name);
        columns.into_iter().filter(|(name, _)| knows(name)).collect()
    }
}

/// Columns that only a simulation of packets can fill.
const OF_PACKETS: [&str; 30] = [
    "drops",
    "marks",
    "wire_drops",
    "trims",
    "trimmed_bytes",
    "header_drops",
    "pauses",
    "paused_s",
    "retransmits",
    "spurious_retransmits",
    "spurious_per_flow",
    "worst_flow_loss",
    "lost",
    "reordered",
    "reorder_mean",
    "reorder_max",
    "peak_queue_bytes",
    "max_goodput_gb_s",
    "leaf_flows",
    "leaf_letters",
    "reroutes",
    "reorder_queues",
    "reorder_bytes",
    "held_packets",
    "held_mean_s",
    "held_max_s",
    "flushes",
    "premature_flushes",
    "blocked_nacks",
    "late_nacks",
];
