//! Every host sends one message to every other host.

use super::{PatternInfo, Scope};
use crate::{Skew, Workload, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "all-to-all",
    summary: "every host sends one message of `size` to every other host",
    source: "Ethereal (2024), sections 2.1 and 5",
    options: &[
        OptionInfo {
            key: "launch",
            default: "successor",
            kind: OptionKind::Word(&["successor", "same-rank"]),
            meaning: "in which order a host posts: \"successor\" starts at the next host, \
                      \"same-rank\" at the same host everywhere, which makes repeated incasts",
        },
        OptionInfo {
            key: "start_rank",
            default: "0",
            kind: OptionKind::Whole(0, u32::MAX),
            meaning: "where everybody starts with launch = \"same-rank\"",
        },
        Skew::OPTION,
    ],
};

/// In which order a host posts its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// Host `i` sends to `i + 1`, `i + 2`, ...: no receiver is anybody else's at any step.
    Successor,
    /// Every host sends to `start`, `start + 1`, ..., itself left out: step by step all hosts
    /// send to the same receiver, as NCCL does (Ethereal 2024, section 2.1).
    SameRank {
        /// The first receiver.
        start: u32,
    },
}

/// All-to-all: `hosts * (hosts - 1)` messages, those of host 0 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// In which order a host posts.
    pub launch: Launch,
    /// Who gets more than others; `size` is then the mean. `None`: nobody.
    pub skew: Option<Skew>,
}

impl AllToAll {
    pub(super) fn read(options: &mut Options<'_>) -> Result<AllToAll, OptionError> {
        let same_rank = options.choice("launch", &[("successor", false), ("same-rank", true)])?;
        let launch = match same_rank {
            true => Launch::SameRank { start: options.number("start_rank")? },
            false if options.has("start_rank") => {
                let what = "needs launch = \"same-rank\"; set that or remove it";
                return Err(OptionError::new("start_rank", what));
            }
            false => Launch::Successor,
        };
        Ok(AllToAll { launch, skew: Skew::read(options)? })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        let hosts = u64::from(scope.hosts);
        (hosts * hosts.saturating_sub(1), "pattern")
    }

    /// The messages, source by source, each source's in the order in which it posts them.
    ///
    /// # Errors
    /// If the first receiver is not a host, or the scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        let hosts = scope.hosts;
        let mut workload = scope.workload(self.messages(scope))?;
        if let Launch::SameRank { start } = self.launch
            && start >= hosts
        {
            let last = hosts - 1;
            let text = format!("start_rank: host {start} does not exist; hosts are 0 to {last}");
            return Err(WorkloadError(text));
        }
        let skew = self.skew.map(|skew| skew.under(scope.seed));
        // What a host sends and what it keeps; the product of all hosts has been checked.
        let all = scope.bytes * u64::from(hosts);
        let sizes: Option<Vec<u64>> =
            skew.map(|skew| (0..hosts).map(|dst| skew.block(all, hosts, dst)).collect());
        for src in 0..hosts {
            let first = match self.launch {
                Launch::Successor => scope.ahead(src, 1),
                Launch::SameRank { start } => start,
            };
            for dst in (0..hosts).map(|step| scope.ahead(first, step)).filter(|dst| *dst != src) {
                match sizes.as_ref().map(|sizes| sizes[dst as usize]) {
                    None => scope.send(&mut workload, src, dst),
                    Some(0) => {}
                    Some(bytes) => Scope { bytes, ..*scope }.send(&mut workload, src, dst),
                }
            }
        }
        Ok(workload)
    }
}
