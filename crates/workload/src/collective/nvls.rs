//! NVLS: the switches of a server's scale-up network add up what they read from all its GPUs, and copy what
//! one of them writes to all; between servers SHARP.
//!
//! A GPU owns a share of the buffer: it reads the sum of that (`multimem.ld_reduce`) and writes it to all
//! (`multimem.st`). Groups of several servers need trees in the fabric, as NCCL's NVLS needs CollNet: each
//! GPU's share goes up and down the tree of its rail in between.
//!
//! Source: NCCL 2.30.7 (`src/graph/tuning.cc`, NVLS); PTX ISA, `multimem`; Klenk et al. (ISCA 2020).

use super::in_network::{CHUNKS, OPERATIONS, Stages, TREES};
use super::{AlgorithmInfo, Call, Payload, Schedule, Step, Switched};
use crate::WorkloadError;
use weft_units::{OptionError, Options};

/// Switches of servers, and trees of the fabric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nvls(Stages);

impl Schedule for Nvls {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "nvls",
        summary: "scale-up switches of servers add up and copy; between servers trees as in sharp",
        source: "NVLS of NCCL; Klenk et al. (2020)",
        operations: OPERATIONS,
        options: &[CHUNKS, TREES],
    };

    fn read(options: &mut Options<'_>) -> Result<Nvls, OptionError> {
        Stages::read(options, true).map(Nvls)
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
}
