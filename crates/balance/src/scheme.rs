//! The registry of schemes: what they are called, what they can be told, where they come from.

use weft_units::Time;

/// A load balancer and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemeConfig {
    /// One path a flow, by hash.
    Ecmp,
    /// A random entropy value for every packet.
    Spray,
    /// Entropy values counted through, under a mask redrawn at each wrap.
    SprayCounter {
        /// How many entropy values, a power of two.
        entropies: u32,
    },
    /// Recycled entropies, as published in 2024.
    Reps {
        /// How many entropy values the first window walks through.
        entropies: u32,
    },
    /// REPS as the code behind paper 000 has it: the front of the cache stays in use until a
    /// congestion signal.
    RepsSticky {
        /// How many entropy values the first window walks through.
        entropies: u32,
    },
    /// Minimal splitting and pinned paths.
    Ethereal(EtherealConfig),
}

/// What Ethereal is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherealConfig {
    /// How long the interceptor collects messages into one batch, from the first one on.
    pub batch: Time,
    /// How long a path stays marked bad after a NACK or a time-out.
    pub bad_for: Time,
}

/// Everything about balancing in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct BalanceConfig {
    /// The scheme.
    pub scheme: SchemeConfig,
    /// Every flow starts after a random delay below this.
    pub start_jitter: Time,
    /// Every flow enters its NIC's list of queue pairs at a random position.
    pub random_position: bool,
    /// Bytes that a flow may have sent before feedback can be expected: the first window of
    /// the REPS variants.
    pub first_window: u64,
}

impl SchemeConfig {
    /// Its name, as experiment files and tables have it.
    pub fn name(&self) -> &'static str {
        match self {
            SchemeConfig::Ecmp => "ecmp",
            SchemeConfig::Spray => "spray",
            SchemeConfig::SprayCounter { .. } => "spray-counter",
            SchemeConfig::Reps { .. } => "reps",
            SchemeConfig::RepsSticky { .. } => "reps-sticky",
            SchemeConfig::Ethereal(_) => "ethereal",
        }
    }
    /// Whether packets of one flow may take different paths, so that they arrive out of order
    /// and want selective repeat.
    pub fn is_multipath(&self) -> bool {
        match self {
            SchemeConfig::Ecmp | SchemeConfig::Ethereal(_) => false,
            SchemeConfig::Spray
            | SchemeConfig::SprayCounter { .. }
            | SchemeConfig::Reps { .. }
            | SchemeConfig::RepsSticky { .. } => true,
        }
    }
    /// Whether it needs a fabric whose paths have ids
    /// ([`weft_fabric::Fabric::check_path_ids`]).
    pub fn needs_path_ids(&self) -> bool {
        matches!(self, SchemeConfig::Ethereal(_))
    }
    /// Checks every number.
    ///
    /// # Errors
    /// With the option that is wrong and what it may be.
    pub fn validate(&self) -> Result<(), String> {
        match *self {
            SchemeConfig::SprayCounter { entropies }
                if !entropies.is_power_of_two() || entropies > MAX_ENTROPIES =>
            {
                Err(format!(
                    "entropies = {entropies}: spray-counter needs a power of two up to \
                     {MAX_ENTROPIES}"
                ))
            }
            SchemeConfig::Reps { entropies } | SchemeConfig::RepsSticky { entropies }
                if entropies == 0 || entropies > MAX_ENTROPIES =>
            {
                Err(format!("entropies = {entropies}: {} needs 1 to {MAX_ENTROPIES}", self.name()))
            }
            _ => Ok(()),
        }
    }
}

/// An entropy value has 16 bits.
const MAX_ENTROPIES: u32 = 1 << 16;

/// A scheme, as lists and help texts show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeInfo {
    /// As in [`SchemeConfig::name`].
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// As in [`SchemeConfig::is_multipath`].
    pub multipath: bool,
    /// What it can be told: key, default, meaning.
    pub options: &'static [(&'static str, &'static str, &'static str)],
}

/// All schemes.
pub const SCHEMES: &[SchemeInfo] = &[
    SchemeInfo {
        name: "ecmp",
        summary: "one path a flow, chosen by the switches' hash",
        source: "RFC 2992; the baseline of every paper",
        multipath: false,
        options: &[],
    },
    SchemeInfo {
        name: "spray",
        summary: "a random path for every packet",
        source: "Ethereal (2025); McClure et al. (2025)",
        multipath: true,
        options: &[],
    },
    SchemeInfo {
        name: "spray-counter",
        summary: "every packet the next of some entropy values, in an order redrawn each round",
        source: "UEC htsim, oblivious",
        multipath: true,
        options: &[("entropies", "64", "entropy values of a flow, a power of two up to 65536")],
    },
    SchemeInfo {
        name: "reps",
        summary: "recycles the entropy values of unmarked acknowledgements, one packet each",
        source: "REPS (Bonato et al. 2024); UEC htsim, legacy form",
        multipath: true,
        options: &[("entropies", "256", "entropy values of a flow, up to 65536")],
    },
    SchemeInfo {
        name: "reps-sticky",
        summary: "keeps to one recycled entropy value until a mark or a time-out",
        source: "REPS as the code behind Ethereal (2025) has it",
        multipath: true,
        options: &[("entropies", "256", "entropy values of a flow, up to 65536")],
    },
    SchemeInfo {
        name: "ethereal",
        summary: "splits as few messages as balance needs and pins every part to a path",
        source: "Ethereal (Addanki et al. 2024; 2025, algorithm 1)",
        multipath: false,
        options: &[
            ("batch", "100ns", "time that messages are collected for, from the first one on"),
            ("bad_for", "100ms", "time that a path stays out of use after a NACK or time-out"),
        ],
    },
];
