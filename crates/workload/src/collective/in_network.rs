//! Collectives that switches do: what [`super::Sharp`] and [`super::Nvls`] have in common.
//!
//! Where servers have several ranks, a collective is done in stages: within servers, so that each rank has a
//! share of the buffer; across servers by switches, the ranks at one place of all servers together, each with
//! their own share and on trees of their own (a rail each); within servers again. Within servers ranks send
//! messages, or have the switches of their scale-up network work for them.
//!
//! What a stage of switches is, [`Stages::switched`] says: which ranks take part, and in what. The whole buffer
//! goes through the stages in `chunks`, one behind the other, so that the stages of different ones overlap.

use super::{Call, MOST_STRANDS, Operation, Payload, Step, Switched};
use crate::WorkloadError;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// How ranks go about their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stages {
    /// Whether switches work within servers, too.
    pub(super) in_servers: bool,
    /// Pieces of the buffer that follow each other through the stages; `None`: as suits.
    pub(super) chunks: Option<u32>,
    /// Trees across servers, each with a share of every chunk.
    pub(super) trees: u32,
}

/// [`Stages::chunks`].
pub(super) const CHUNKS: OptionInfo = OptionInfo {
    key: "chunks",
    default: "8, or 1",
    kind: OptionKind::Whole(1, MOST_STRANDS),
    meaning: "pieces of the buffer that follow each other through servers and trees; 8 where ranks of several servers \
              share them, else 1",
};
/// [`Stages::trees`].
pub(super) const TREES: OptionInfo = OptionInfo {
    key: "trees",
    default: "1",
    kind: OptionKind::Whole(1, MOST_STRANDS),
    meaning: "trees of switches for each rail, with an equal share of the buffer each",
};

/// One stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Ranks of a server, by messages.
    Messages(Messages),
    /// Ranks of a server, by its switches.
    Within(Operation),
    /// Ranks at one place of all servers, by the switches of the fabric.
    Across(Operation),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Messages {
    /// Everybody's share to everybody.
    Scatter,
    /// The own share to everybody.
    Gather,
    /// From the root, everybody's share to everybody of its server.
    FromRoot,
}

/// Chunks where there are several stages to overlap.
const USUAL_CHUNKS: u32 = 8;
/// The operations that are done.
pub(super) const OPERATIONS: &[Operation] =
    &[Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::Broadcast];

impl Stages {
    pub(super) fn read(options: &mut Options<'_>, in_servers: bool) -> Result<Stages, OptionError> {
        Ok(Stages {
            in_servers,
            chunks: options.number_if_given("chunks")?,
            trees: options.number("trees")?,
        })
    }
    pub(super) fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        let many = self.sequences(call);
        match many <= super::MOST_STRANDS {
            true => Ok(()),
            false => Err(WorkloadError(format!(
                "chunks: {many} chunks and trees together are too many; use up to {}",
                super::MOST_STRANDS
            ))),
        }
    }
    pub(super) fn sequences(&self, call: &Call) -> u32 {
        let servers = call.ranks / call.servers.ranks;
        let usual = if call.servers.ranks > 1 && servers > 1 { USUAL_CHUNKS } else { 1 };
        self.chunks.unwrap_or(usual) * self.trees
    }

    /// Step `at` of a sequence.
    pub(super) fn step(
        &self,
        call: &Call,
        rank: u32,
        sequence: u32,
        at: u32,
    ) -> Option<Step<Payload>> {
        let (number, stage, at) = self.locate(call, rank, at)?;
        Some(match stage {
            Stage::Messages(what) => self.message(call, rank, sequence, (number, what, at)),
            Stage::Within(_) => Step::Switched { payload: self.whole(call, sequence) },
            Stage::Across(_) => {
                let place = rank % call.servers.ranks;
                Step::Switched { payload: self.share(call, sequence, place) }
            }
        })
    }

    /// What switches do at step `at` of a sequence, which is one of theirs.
    pub(super) fn switched(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Switched {
        let local = call.servers.ranks;
        let (_, stage, _) = self.locate(call, rank, at).expect("a step of switches");
        let bytes = 0;
        match stage {
            Stage::Within(operation) => {
                let (first, root) = (rank - rank % local, call.root % local);
                Switched { operation, first, stride: 1, ranks: local, root, tree: 0, bytes }
            }
            Stage::Across(operation) => {
                let (first, ranks) = (rank % local, call.ranks / local);
                let (root, tree) = (call.root / local, sequence % self.trees);
                Switched { operation, first, stride: local, ranks, root, tree, bytes }
            }
            Stage::Messages(_) => unreachable!("no step of switches"),
        }
    }

    /// Whether receipt `receipt` of an all-reduce is added.
    pub(super) fn adds(&self, call: &Call, receipt: u32) -> bool {
        let scatters = self.stages(call).first() == Some(&Stage::Messages(Messages::Scatter));
        scatters && receipt + 1 < call.servers.ranks
    }

    fn stages(&self, call: &Call) -> Vec<Stage> {
        let is_alone = call.servers.ranks == 1;
        let is_one_server = call.servers.ranks == call.ranks;
        let within = |messages, operation| match self.in_servers {
            true => Stage::Within(operation),
            false => Stage::Messages(messages),
        };
        let scatter = || within(Messages::Scatter, Operation::ReduceScatter);
        let gather = || within(Messages::Gather, Operation::AllGather);
        match call.operation {
            operation if is_alone => vec![Stage::Across(operation)],
            operation if is_one_server && self.in_servers => vec![Stage::Within(operation)],
            Operation::AllReduce if is_one_server => vec![scatter(), gather()],
            Operation::ReduceScatter if is_one_server => vec![scatter()],
            Operation::AllGather if is_one_server => vec![gather()],
            _ if is_one_server => vec![Stage::Messages(Messages::FromRoot), gather()],
            Operation::AllReduce => vec![scatter(), Stage::Across(call.operation), gather()],
            Operation::ReduceScatter => vec![scatter(), Stage::Across(call.operation)],
            Operation::AllGather => vec![Stage::Across(call.operation), gather()],
            // The root's switches could only copy what one of its neighbours needs.
            _ => {
                let first = Stage::Messages(Messages::FromRoot);
                vec![first, Stage::Across(call.operation), gather()]
            }
        }
    }

    /// The stage that step `at` is of, by its number, and which step of it.
    fn locate(&self, call: &Call, rank: u32, mut at: u32) -> Option<(usize, Stage, u32)> {
        for (number, stage) in self.stages(call).into_iter().enumerate() {
            let (sends, receipts) = extent(call, rank, stage);
            let steps = match stage {
                Stage::Messages(_) => sends + receipts,
                _ => 1,
            };
            match at < steps {
                true => return Some((number, stage, at)),
                false => at -= steps,
            }
        }
        None
    }

    /// Step `at` of stage `number`, in which ranks of a server send messages.
    fn message(
        &self,
        call: &Call,
        rank: u32,
        sequence: u32,
        (number, what, at): (usize, Messages, u32),
    ) -> Step<Payload> {
        let local = call.servers.ranks;
        let (first, place) = (rank - rank % local, rank % local);
        let (sends, _) = extent(call, rank, Stage::Messages(what));
        // Those before this stage, at another rank.
        let before = |rank: u32| {
            let stages = self.stages(call);
            stages[..number].iter().map(|stage| extent(call, rank, *stage).1).sum::<u32>()
        };
        let share = |place: u32| self.share(call, sequence, place);
        if at < sends {
            let other = (place + at + 1) % local;
            let payload = share(if what == Messages::Gather { place } else { other });
            let receipt = if what == Messages::FromRoot { 0 } else { at };
            let to = first + other;
            return Step::Send { to, payload, sequence, receipt: before(to) + receipt };
        }
        let at = at - sends;
        let other = match what {
            Messages::FromRoot => call.root % local,
            _ => (place + local - at - 1) % local,
        };
        let payload = share(if what == Messages::Gather { other } else { place });
        Step::Receive { from: first + other, payload }
    }

    /// All of a chunk.
    fn whole(&self, call: &Call, sequence: u32) -> Payload {
        let share = Payload::share(sequence, self.sequences(call));
        Payload { many: call.ranks, ..share.block(0, call.ranks) }
    }
    /// What the ranks at one place of their servers have to do with.
    fn share(&self, call: &Call, sequence: u32, place: u32) -> Payload {
        let share = Payload::share(sequence, self.sequences(call));
        let (stride, many) = (call.servers.ranks, call.ranks / call.servers.ranks);
        Payload { stride, many, ..share.block(place, call.ranks) }
    }
}

/// How many messages a rank sends in a stage, and how many receipts it has there.
fn extent(call: &Call, rank: u32, stage: Stage) -> (u32, u32) {
    let local = call.servers.ranks;
    match stage {
        Stage::Messages(Messages::FromRoot) => match rank {
            rank if rank == call.root => (local - 1, 0),
            rank if rank / local == call.root / local => (0, 1),
            _ => (0, 0),
        },
        Stage::Messages(_) => (local - 1, local - 1),
        Stage::Within(_) | Stage::Across(_) => (0, 1),
    }
}
