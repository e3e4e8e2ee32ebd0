//! SHARP: switches of the fabric add up what comes from below and copy what comes from above.
//!
//! Every rank sends its buffer up a tree of switches once and gets the result down once, however many ranks
//! there are. Ranks that share a server add up their buffers over its own links first, each for a share, as
//! NCCL's CollNetDirect does; then each has a tree of its own with the ranks at its place in other servers.
//!
//! Source: Graham et al. (COMHPC 2016), "Scalable Hierarchical Aggregation Protocol"; NCCL 2.30.7
//! (`src/graph/tuning.cc`, CollNetDirect).

use super::in_network::{OPERATIONS, Stages};
use super::{AlgorithmInfo, Call, MOST_STRANDS, Operation, Payload, Schedule, Step, Switched};
use crate::WorkloadError;
use weft_units::{OptionError, OptionInfo, Options};

/// Trees of the fabric's switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharp {
    /// Pieces of the buffer that follow each other through all stages; `None`: as suits.
    pub chunks: Option<u32>,
    /// Trees of each set of ranks, with a share of the buffer each.
    pub trees: u32,
}

/// [`Sharp::chunks`].
pub(super) const CHUNKS: OptionInfo = OptionInfo {
    key: "chunks",
    default: "8 where ranks of several servers share them, else 1",
    meaning: "pieces of the buffer that follow each other through servers and trees",
};
/// [`Sharp::trees`].
pub(super) const TREES: OptionInfo = OptionInfo {
    key: "trees",
    default: "1",
    meaning: "trees of switches for each rail, with an equal share of the buffer each",
};

impl Sharp {
    fn stages(&self) -> Stages {
        Stages { in_servers: false, chunks: self.chunks, trees: self.trees }
    }
}

impl Schedule for Sharp {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "sharp",
        summary: "switches of the fabric add up and copy, on trees; within servers direct exchange",
        source: "SHARP (Graham et al. 2016); CollNetDirect of NCCL",
        operations: OPERATIONS,
        options: &[CHUNKS, TREES],
    };

    fn read(options: &mut Options<'_>) -> Result<Sharp, OptionError> {
        Ok(Sharp {
            chunks: options.number_if_given("chunks", 1..=MOST_STRANDS)?,
            trees: options.number("trees", 1..=MOST_STRANDS)?,
        })
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        self.stages().check(call)
    }
    fn sequences(&self, call: &Call) -> u32 {
        self.stages().sequences(call)
    }
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>> {
        self.stages().step(call, rank, sequence, at)
    }
    fn switched(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Switched {
        self.stages().switched(call, rank, sequence, at)
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        call.operation == Operation::AllReduce && self.stages().adds(call, receipt)
    }
}
