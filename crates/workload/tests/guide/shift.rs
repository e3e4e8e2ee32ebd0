//! A shift: every host sends to the host that is so many places after it.

use super::{PatternInfo, Scope};
use crate::{Workload, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "shift",
    summary: "every host sends `size` to the host `stride` places after it",
    source: "Weft's guide to new patterns; Dally and Towles (2004), section 3.2",
    options: &[OptionInfo {
        key: "stride",
        default: "half of the hosts",
        kind: OptionKind::Whole(1, u32::MAX),
        meaning: "how many hosts after the sender its receiver is",
    }],
};

/// One message a host. Half of the hosts as the stride makes all of them cross the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// From a host to its receiver; `None` stands for half of the hosts.
    pub stride: Option<u32>,
}

impl Shift {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Shift, OptionError> {
        Ok(Shift { stride: options.number_if_given("stride")? })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        (scope.hosts.into(), "stride")
    }

    /// The messages, source by source.
    ///
    /// # Errors
    /// If a host would send to itself, or the scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        let mut workload = scope.workload(self.messages(scope))?;
        let stride = self.stride.unwrap_or(scope.hosts / 2);
        if stride.is_multiple_of(scope.hosts) {
            let most = scope.hosts - 1;
            return Err(WorkloadError(format!(
                "stride: {stride} has every host send to itself; use 1 to {most}"
            )));
        }
        for src in 0..scope.hosts {
            scope.send(&mut workload, src, scope.ahead(src, stride));
        }
        Ok(workload)
    }
}
