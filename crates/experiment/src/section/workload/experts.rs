//! Tokens on their way to experts, or back, as a job: the keys of `moe-dispatch` and `moe-combine`.

use super::fault::Fault;
use crate::error::ExperimentError;
use crate::kind::{Integer, Or};
use crate::reader::Reader;
use crate::section::options;
use weft_workload::Experts;
use weft_workload::experts::EXPERT_OPTIONS;
use weft_workload::trace::{Action, Collective, Degrees, Size, Trace};

/// What they are called beside the collectives, and what they do.
pub(super) const NAMES: [(&str, &str); 2] = [
    ("moe-dispatch", "every token to the ranks of its experts, of a mixture of experts"),
    ("moe-combine", "every token back from the ranks of its experts"),
];

/// Where they come from.
pub(super) const SOURCE: &str = "DeepSeek-V3 (2024), section 3.2; DeepEP (2025)";

/// One of the two, some times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moe {
    is_combine: bool,
    experts: Experts,
    /// Ranks that follow each other in a node; `None`: those of a server.
    per_node: Option<u32>,
    times: u32,
}

/// Reads the keys of the one or the other.
pub(super) fn read(r: &mut Reader<'_>, is_combine: bool) -> Result<Moe, ExperimentError> {
    let experts = options::read(r, EXPERT_OPTIONS, Experts::resolve)?;
    let count = Integer { min: 1, max: 1 << 20 };
    let meaning =
        "ranks that are a node, within which tokens are forwarded; server: the GPUs of one";
    let per_node = r.get("gpus_per_node", Or(count, "server"), Some(None), meaning)?;
    let times = r.get("times", count, Some(1), "how often, one after the other")?;
    Ok(Moe { is_combine, experts, per_node, times })
}

impl Moe {
    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        NAMES[usize::from(self.is_combine)].0
    }
    /// The mode.
    pub(super) fn mode(&self) -> &'static str {
        self.experts.way.name()
    }
    /// What `ranks` ranks do on servers of `gpus`, with choices drawn from `seed`.
    pub(super) fn trace(&self, ranks: u32, gpus: u32, seed: u64) -> Result<Trace, Fault> {
        let per_node = self.per_node.unwrap_or_else(|| gpus.min(ranks));
        let exchange = self.experts.exchange(ranks, per_node, (seed, 0)).map_err(Fault::keyed)?;
        let action = if self.is_combine { Action::Combine(0) } else { Action::Dispatch(0) };
        let size = Size::Whole(exchange.buffer(self.is_combine));
        let one = Collective { action, size, group: 0, root: 0, turn: 0 };
        let degrees = Degrees { expert: ranks, ..Degrees::NONE };
        let trace = Trace::of_collective(one, self.times, degrees, ranks);
        let trace = trace.map_err(|error| Fault::at("ranks", error.0))?;
        Ok(Trace { exchanges: vec![exchange], ..trace })
    }
}
