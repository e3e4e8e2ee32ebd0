//! A collective as a job: what it is, who takes part, how often.

use super::fault::Fault;
use crate::error::ExperimentError;
use crate::kind::{Integer, Or, Size};
use crate::reader::Reader;
use weft_workload::collective::{Algorithm, Call, Operation, Servers};
use weft_workload::trace::{Action, Collective, Degrees, Size as Bytes, Trace};

/// A collective, some times after each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Again {
    pub(super) operation: Operation,
    pub(crate) bytes: u64,
    root: u32,
    /// Ranks of a group, all if `None`, and how far they are apart.
    group: Option<u32>,
    stride: u32,
    times: u32,
}

/// Reads the keys of a collective.
pub(super) fn read_again(
    r: &mut Reader<'_>,
    operation: Operation,
) -> Result<Again, ExperimentError> {
    let meaning = "the larger buffer of a rank, as nccl-tests count it";
    let bytes = r.get("size", Size::SOME, None, meaning)?;
    let count = Integer { min: 1, max: 1 << 20 };
    let root = Integer { min: 0, max: 1 << 20 };
    let root =
        r.get("root", root, Some(0), "the root of a broadcast or reduce, within its group")?;
    let all = Or(Integer { min: 2, max: 1 << 20 }, "all");
    let group = r.get("group", all, Some(None), "ranks of a group; all groups go at once")?;
    let stride = r.get("stride", count, Some(1), "from one rank of a group to the next")?;
    let times = r.get("times", count, Some(1), "how often, one after the other")?;
    Ok(Again { operation, bytes, root, group, stride, times })
}

impl Again {
    /// What `ranks` ranks do, by `algorithm`.
    pub(super) fn trace(&self, ranks: u32, algorithm: &Algorithm) -> Result<Trace, Fault> {
        let group = self.group.unwrap_or(ranks / self.stride);
        let side = u64::from(group) * u64::from(self.stride);
        if side == 0 || !u64::from(ranks).is_multiple_of(side) {
            let key = if side == 0 { "stride" } else { "group" };
            let what = match side {
                0 => format!("{} is more than the {ranks} ranks; use less", self.stride),
                _ => format!(
                    "{ranks} ranks cannot be cut into groups of {group}, {} apart; use a multiple \
                     of {side} ranks",
                    self.stride
                ),
            };
            return Err(Fault::at(key, what));
        }
        if self.root >= group {
            let what = format!("there is no rank {} in a group of {group}; use less", self.root);
            return Err(Fault::at("root", what));
        }
        let Again { operation, bytes, root, times, .. } = *self;
        // Groups of one rank have nothing to do.
        if group > 1 {
            let call = Call { operation, ranks: group, bytes, root, servers: Servers::EACH };
            algorithm.check(&call).map_err(Fault::keyed)?;
        }
        let one = Collective {
            action: Action::Operation(operation),
            size: Bytes::Whole(bytes),
            group: 0,
            root,
            turn: 0,
        };
        let degrees = Degrees { tensor: self.stride, expert: group, ..Degrees::NONE };
        Trace::of_collective(one, times, degrees, ranks)
            .map_err(|error| Fault::at("group", error.0))
    }
}
