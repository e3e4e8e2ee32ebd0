//! One step of a ring: every host sends to one other host, over several channels.

use super::{PatternInfo, Scope};
use crate::{Workload, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "ring",
    summary: "every host sends `channels` messages of `size` to one other host",
    source: "Ethereal (2024), section 5",
    options: &[
        OptionInfo {
            key: "channels",
            default: "1",
            kind: OptionKind::Whole(0, u32::MAX),
            meaning: "how many messages to the neighbour at once, each a flow of its own",
        },
        OptionInfo {
            key: "cross_rack",
            default: "true",
            kind: OptionKind::Flag,
            meaning: "whether the neighbour is the host at the same place under the next leaf, \
                      so that all traffic crosses the fabric, or just the next host",
        },
    ],
};

/// `hosts * channels` messages, those of host 0 first. One iteration: nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// How many messages every host sends.
    pub channels: u32,
    /// Whether the neighbour stands under the next leaf; else it is the next host.
    pub cross_rack: bool,
}

impl Ring {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Ring, OptionError> {
        let channels = options.number("channels")?;
        Ok(Ring { channels, cross_rack: options.flag("cross_rack")? })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        (u64::from(self.channels) * u64::from(scope.hosts), "channels")
    }

    /// The messages, source by source.
    ///
    /// # Errors
    /// If there are no channels, the hosts do not fill at least two leaves (across racks), or the
    /// scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        if self.channels == 0 {
            return Err(WorkloadError("channels: 0 channels send nothing; use at least 1".into()));
        }
        let mut workload = scope.workload(self.messages(scope))?;
        let distance = if self.cross_rack { scope.full_leaf()? } else { 1 };
        for src in 0..scope.hosts {
            for _ in 0..self.channels {
                scope.send(&mut workload, src, scope.ahead(src, distance));
            }
        }
        Ok(workload)
    }
}
