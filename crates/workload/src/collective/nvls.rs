//! NVLS: the switches of a server's scale-up network add up what they read from all its GPUs, and copy what
//! one of them writes to all; between servers SHARP.
//!
//! A GPU owns a share of the buffer: it reads the sum of that (`multimem.ld_reduce`) and writes it to all
//! (`multimem.st`). Groups of several servers need trees in the fabric, as NCCL's NVLS needs CollNet: each
//! GPU's share goes up and down the tree of its rail in between.
//!
//! Source: NCCL 2.30.7 (`src/graph/tuning.cc`, NVLS); PTX ISA, `multimem`; Klenk et al. (ISCA 2020).

use super::in_network::{OPERATIONS, Stages};
use super::sharp::{CHUNKS, TREES};
use super::{AlgorithmInfo, Call, MOST_STRANDS, Payload, Schedule, Step, Switched};
use crate::WorkloadError;
use weft_units::{OptionError, Options};

/// Switches of servers, and trees of the fabric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nvls {
    /// Pieces of the buffer that follow each other through all stages; `None`: as suits.
    pub chunks: Option<u32>,
    /// Trees of each rail, with a share of the buffer each.
    pub trees: u32,
}

impl Nvls {
    fn stages(&self) -> Stages {
        Stages { in_servers: true, chunks: self.chunks, trees: self.trees }
    }
}

impl Schedule for Nvls {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "nvls",
        summary: "scale-up switches of servers add up and copy; between servers trees as in sharp",
        source: "NVLS of NCCL; Klenk et al. (2020)",
        operations: OPERATIONS,
        options: &[CHUNKS, TREES],
    };

    fn read(options: &mut Options<'_>) -> Result<Nvls, OptionError> {
        Ok(Nvls {
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
}
