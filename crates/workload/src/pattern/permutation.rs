//! Concurrent random permutations: every host sends to one other and receives from one other,
//! several times over.

use super::{PatternInfo, Scope};
use crate::{Workload, WorkloadError};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "permutation",
    summary: "every host sends `size` to one random other host and receives from one, `count` \
              times at once",
    source: "McClure et al. (2025), section 3 and figure 6",
    options: &[OptionInfo {
        key: "count",
        default: "1",
        kind: OptionKind::Whole(0, u32::MAX),
        meaning: "how many permutations run at once: messages per host",
    }],
};

/// `count * hosts` messages: permutation by permutation, in the order of the sources.
///
/// The permutations are independent, so that two may share a pair of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// How many permutations run at once.
    pub count: u32,
}

impl Permutation {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Permutation, OptionError> {
        Ok(Permutation { count: options.number("count")? })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        (u64::from(self.count) * u64::from(scope.hosts), "count")
    }

    /// The messages. Permutation `i` depends on the hosts, the seed and `i` alone: a larger
    /// `count` adds to the same ones.
    ///
    /// # Errors
    /// If `count` is zero, or the scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        if self.count == 0 {
            return Err(WorkloadError("count: 0 permutations send nothing; use at least 1".into()));
        }
        let mut workload = scope.workload(self.messages(scope))?;
        let draw = Draw::new(scope.seed, "permutation");
        for index in 0..self.count {
            let receivers = derangement(scope.hosts, &mut draw.stream(u64::from(index)));
            for (src, dst) in (0..).zip(receivers) {
                scope.send(&mut workload, src, dst);
            }
        }
        Ok(workload)
    }
}

/// A permutation of `0..n` (n at least 2) without a fixed point, all of them equally likely.
///
/// Shuffles until there is no fixed point: unbiased by construction, and a shuffle succeeds
/// with a probability near 1/e, so that three are enough on average.
fn derangement(n: u32, stream: &mut Stream) -> Vec<u32> {
    let mut receivers: Vec<u32> = (0..n).collect();
    loop {
        stream.shuffle(&mut receivers);
        if (0..).zip(&receivers).all(|(src, dst)| src != *dst) {
            return receivers;
        }
    }
}
