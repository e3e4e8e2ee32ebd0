//! Two levels of rings: within servers, then across them.
//!
//! Ranks of a group are consecutive: those of a server, or as many as told. A reduce-scatter goes round
//! each group first, after which a rank has the sum of its group for a share of the buffer; then round
//! the ranks at the same place of all groups, each ring with its own share. An all-gather goes the other way,
//! an all-reduce both. So a NIC carries the bytes of its rank's share only, and ranks at the
//! same place are under the same rail.
//!
//! Source: `NCCLHierarchicalAllreduce` of Horovod (Sergeev and Del Balso 2018); BlueConnect (Cho et al.
//! 2019), section 3, with two levels; ASTRA-sim's collectives of two dimensions.

use super::ring::{self, Circle};
use super::{AlgorithmInfo, Around, Call, MOST_STRANDS, Operation, Payload, Phase, Schedule, Step};
use crate::WorkloadError;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// Rings within groups, and rings across them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hierarchical {
    /// Ranks of a group, at most all; `None`: those of a server.
    pub local_ranks: Option<u32>,
    /// Shares of the buffer that go through all phases side by side.
    pub channels: u32,
}

/// Who goes round in a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The ranks of a group.
    Within,
    /// The ranks at one place of all groups.
    Across,
}

/// A phase: the level, how many rounds, and how far before its own the first block is that leaves.
type Rounds = (Level, u32, u32);

impl Schedule for Hierarchical {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "hierarchical",
        summary: "rings within servers, then rings across them of the GPUs at one place",
        source: "Horovod; BlueConnect (Cho et al. 2019); ASTRA-sim",
        operations: &[Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter],
        options: &[
            OptionInfo {
                key: "local_ranks",
                default: "ranks of a server",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "ranks of a ring of the first level, which follow each other",
            },
            OptionInfo {
                key: "channels",
                default: "1",
                kind: OptionKind::Whole(1, MOST_STRANDS),
                meaning: "shares of the buffer that go through both levels side by side",
            },
        ],
    };

    fn read(options: &mut Options<'_>) -> Result<Hierarchical, OptionError> {
        let local_ranks = options.number_if_given("local_ranks")?;
        Ok(Hierarchical { local_ranks, channels: options.number("channels")? })
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        let (ranks, group) = (call.ranks, self.group(call));
        match ranks.is_multiple_of(group) {
            true => Ok(()),
            false => Err(WorkloadError(format!(
                "local_ranks: {ranks} ranks are no multiple of {group}; use a divisor of {ranks}"
            ))),
        }
    }
    fn sequences(&self, _: &Call) -> u32 {
        self.channels
    }
    #[inline]
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>> {
        let receipt = at / 2;
        let mut turn = receipt;
        for (level, rounds, lead) in self.rounds(call) {
            if turn >= rounds {
                turn -= rounds;
                continue;
            }
            let ring = self.ring(call, rank, level);
            let payload = |back: u32| {
                let block = ring.circle.behind(back);
                self.payload(call, rank, sequence, level, block)
            };
            return Some(match at % 2 {
                0 => {
                    let (to, payload) = (ring.rank(ring.circle.ahead(1)), payload(turn + lead));
                    Step::Send { to, payload, sequence, receipt }
                }
                _ => {
                    let from = ring.rank(ring.circle.behind(1));
                    Step::Receive { from, payload: payload(turn + lead + 1) }
                }
            });
        }
        None
    }
    fn phase(&self, call: &Call, rank: u32, phase: u32) -> Option<Phase> {
        // Channels go on to the next phase each at its own time.
        let (level, rounds, _) = self.rounds_of(call, phase).filter(|_| self.channels == 1)?;
        let Ring { first, stride, circle } = self.ring(call, rank, level);
        Some(Phase { first, stride, ranks: circle.ranks, rounds })
    }
    fn around(&self, call: &Call, rank: u32, sequence: u32, phase: u32) -> Option<Around> {
        let (level, rounds, lead) = self.rounds_of(call, phase)?;
        let ring = self.ring(call, rank, level);
        let size = |block: u32| self.payload(call, rank, sequence, level, block).bytes(call.bytes);
        // Blocks get shorter by a byte at most, somewhere on the way.
        let (longest, shortest) = (size(0), size(ring.circle.ranks - 1));
        let is_long = |block: u32| longest > shortest && size(block) == longest;
        let longer = match longest > shortest {
            true => partition_point(ring.circle.ranks, is_long),
            false => 0,
        };
        let count = |lead: u32| {
            let is_long = |back: u32| is_long(ring.circle.behind(back));
            ring::sizes(ring.circle.ranks, rounds, lead, (shortest, longer), is_long)
        };
        Some(Around {
            to: ring.rank(ring.circle.ahead(1)),
            sends: count(lead),
            from: ring.rank(ring.circle.behind(1)),
            receives: count(lead + 1),
        })
    }
    /// By their place in their group: what goes round a group together lies together.
    fn position(&self, call: &Call, block: u32) -> u32 {
        let group = self.group(call);
        block % group * (call.ranks / group) + block / group
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        let group = self.group(call);
        receipt < group - 1 + (call.ranks / group - 1)
    }
}

/// A ring of one phase.
struct Ring {
    /// Its first rank, and from one to the next.
    first: u32,
    stride: u32,
    /// Where in it the rank is.
    circle: Circle,
}

impl Ring {
    fn rank(&self, place: u32) -> u32 {
        self.first + place * self.stride
    }
}

impl Hierarchical {
    fn group(&self, call: &Call) -> u32 {
        self.local_ranks.unwrap_or(call.servers.ranks).min(call.ranks)
    }
    /// All phases that have rounds.
    #[inline]
    fn rounds(&self, call: &Call) -> impl Iterator<Item = Rounds> {
        let group = self.group(call);
        let (within, across) = (group - 1, call.ranks / group - 1);
        let phases = match call.operation {
            Operation::AllReduce => [
                (Level::Within, within, 1),
                (Level::Across, 2 * across, 1),
                (Level::Within, within, 0),
            ],
            Operation::ReduceScatter => {
                [(Level::Within, within, 1), (Level::Across, across, 1), (Level::Within, 0, 0)]
            }
            _ => [(Level::Across, across, 0), (Level::Within, within, 0), (Level::Within, 0, 0)],
        };
        phases.into_iter().filter(|(_, rounds, _)| *rounds > 0)
    }
    fn rounds_of(&self, call: &Call, phase: u32) -> Option<Rounds> {
        self.rounds(call).nth(phase as usize)
    }
    #[inline]
    fn ring(&self, call: &Call, rank: u32, level: Level) -> Ring {
        let group = self.group(call);
        let (number, place) = (rank / group, rank % group);
        match level {
            Level::Within => {
                Ring { first: rank - place, stride: 1, circle: Circle { ranks: group, place } }
            }
            Level::Across => {
                let circle = Circle { ranks: call.ranks / group, place: number };
                Ring { first: place, stride: group, circle }
            }
        }
    }
    /// What goes round as block `block` of a ring that `rank` is in.
    #[inline]
    fn payload(&self, call: &Call, rank: u32, sequence: u32, level: Level, block: u32) -> Payload {
        let group = self.group(call);
        let share = Payload::share(sequence, self.channels);
        match level {
            // All that the ranks at one place of all groups will go on with.
            Level::Within => {
                let (stride, many) = (group, call.ranks / group);
                Payload { stride, many, ..share.block(block, call.ranks) }
            }
            Level::Across => share.block(block * group + rank % group, call.ranks),
        }
    }
}

/// How many of `count` numbers from 0 on `is` holds for, if it does for none behind the first for which
/// it does not.
fn partition_point(count: u32, is: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
