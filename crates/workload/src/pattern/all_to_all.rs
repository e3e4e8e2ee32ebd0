//! Every host sends one message to every other host.

use super::options::{OptionInfo, Options, unknown};
use super::{PatternInfo, Scope};
use crate::{Workload, WorkloadError};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "all-to-all",
    summary: "every host sends one message of `size` to every other host",
    source: "Ethereal (2024), sections 2.1 and 5",
    options: &[
        OptionInfo {
            key: "launch",
            default: "successor",
            meaning: "in which order a host posts: \"successor\" starts at the next host, \
                      \"same-rank\" at the same host everywhere, which makes repeated incasts",
        },
        OptionInfo {
            key: "start_rank",
            default: "0",
            meaning: "where everybody starts with launch = \"same-rank\"",
        },
    ],
};

/// In which order a host posts its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// Host `i` sends to `i + 1`, `i + 2`, ...: no receiver is anybody else's at any step.
    Successor,
    /// Every host sends to `start`, `start + 1`, ..., itself left out: step by step all hosts
    /// send to the same receiver, as NCCL does (paper 001, section 2.1).
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
}

impl AllToAll {
    pub(super) fn read(options: &Options) -> Result<AllToAll, WorkloadError> {
        let start = options.number("start_rank")?;
        let launch = match (options.text("launch"), start) {
            (Some("same-rank"), start) => Launch::SameRank { start: start.unwrap_or(0) },
            (None | Some("successor"), None) => Launch::Successor,
            (None | Some("successor"), Some(_)) => {
                let text = "start_rank: needs launch = \"same-rank\"; set that or remove it";
                return Err(WorkloadError(text.into()));
            }
            (Some(other), _) => return Err(unknown("launch", other, &["successor", "same-rank"])),
        };
        Ok(AllToAll { launch })
    }

    /// The messages, source by source, each source's in the order in which it posts them.
    ///
    /// # Errors
    /// If the first receiver is not a host, or the scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        let hosts = scope.hosts;
        let mut workload = scope.workload(u64::from(hosts) * u64::from(hosts.saturating_sub(1)))?;
        if let Launch::SameRank { start } = self.launch
            && start >= hosts
        {
            let last = hosts - 1;
            let text = format!("start_rank: host {start} does not exist; hosts are 0 to {last}");
            return Err(WorkloadError(text));
        }
        for src in 0..hosts {
            let first = match self.launch {
                Launch::Successor => scope.ahead(src, 1),
                Launch::SameRank { start } => start,
            };
            for dst in (0..hosts).map(|step| scope.ahead(first, step)).filter(|dst| *dst != src) {
                scope.send(&mut workload, src, dst);
            }
        }
        Ok(workload)
    }
}
