//! SHARP: switches of the fabric add up what comes from below and copy what comes from above.
//!
//! Every rank sends its buffer up a tree of switches once and gets the result down once, however many ranks
//! there are. Ranks that share a server add up their buffers over its own links first, each for a share, as
//! NCCL's CollNetDirect does; then each has a tree of its own with the ranks at its place in other servers.
//!
//! Source: Graham et al. (COMHPC 2016), "Scalable Hierarchical Aggregation Protocol"; NCCL 2.30.7
//! (`src/graph/tuning.cc`, CollNetDirect).

use super::in_network::{CHUNKS, OPERATIONS, Stages, TREES};
use super::{AlgorithmInfo, Call, Operation, Payload, Schedule, Step, Switched};
use crate::WorkloadError;
use weft_units::{OptionError, Options};

/// Trees of the fabric's switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharp(Stages);

impl Schedule for Sharp {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "sharp",
        summary: "switches of the fabric add up and copy, on trees; within servers direct exchange",
        source: "SHARP (Graham et al. 2016); CollNetDirect of NCCL",
        operations: OPERATIONS,
        options: &[CHUNKS, TREES],
    };

    fn read(options: &mut Options<'_>) -> Result<Sharp, OptionError> {
        Stages::read(options, false).map(Sharp)
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        self.0.check(call)
    }
    fn sequences(&self, call: &Call) -> u32 {
        self.0.sequences(call)
    }
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>> {
        self.0.step(call, rank, sequence, at)
    }
    fn switched(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Switched {
        self.0.switched(call, rank, sequence, at)
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        call.operation == Operation::AllReduce && self.0.adds(call, receipt)
    }
}
