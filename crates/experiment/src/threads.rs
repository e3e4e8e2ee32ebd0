//! How many threads one simulation gets. No result depends on it.

use std::num::NonZeroU32;
use std::thread::available_parallelism;
use weft_sim::{RunConfig, useful_threads};

/// Threads for one simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// So many, though fewer may be as fast. A fabric that cannot be cut into so many parts
    /// (pods, or leaves in two tiers) uses fewer.
    Exactly(NonZeroU32),
    /// As many as are worth while for the run, but no more than these.
    UpTo(NonZeroU32),
}

impl Threads {
    /// One thread for every run.
    pub const ONE: Threads = Threads::Exactly(NonZeroU32::MIN);

    /// How many `config` gets.
    pub fn of(self, config: &RunConfig) -> u32 {
        match self {
            Threads::Exactly(threads) => threads.get(),
            Threads::UpTo(most) => useful_threads(config).min(most.get()),
        }
    }
}

/// The cores that this process may use: what affinity and quotas leave of the machine's, or one
/// if the system does not say.
pub fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}
