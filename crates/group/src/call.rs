//! What a group is asked to do.

use crate::element::{Element, Reduction};
use crate::error::GroupError;
use crate::memory::Segment;
use weft_workload::collective;

/// An operation, without its buffers. Every rank of the group calls the same, but for sends and
/// receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `outputs[0]` becomes the reduction of all ranks' `outputs[0]`.
    AllReduce,
    /// `outputs[r]` becomes rank r's `inputs[0]`.
    AllGather,
    /// `outputs[0]` becomes the reduction of all ranks' `inputs[own rank]`. Inputs stay.
    ReduceScatter,
    /// `outputs[r]` becomes rank r's `inputs[own rank]`.
    AllToAll,
    /// `outputs[0]` becomes that of the root.
    Broadcast {
        /// The root: the rank that has the buffer.
        root: u32,
    },
    /// The root's `outputs[0]` becomes the reduction of all. Others' stay.
    Reduce {
        /// The root: the rank that has the buffer.
        root: u32,
    },
    /// The root's `outputs[r]` becomes rank r's `inputs[0]`.
    Gather {
        /// Who gathers; the others have no outputs.
        root: u32,
    },
    /// `outputs[0]` becomes the root's `inputs[own rank]`.
    Scatter {
        /// Who scatters; the others have no inputs.
        root: u32,
    },
    /// Nobody goes on before all have come.
    Barrier,
    /// `inputs[0]` goes to one rank.
    Send {
        /// The receiving rank.
        to: u32,
        /// Sends and receives of equal tags meet, in their order.
        tag: u32,
    },
    /// `outputs[0]` comes from one rank.
    Receive {
        /// The sending rank.
        from: u32,
        /// As above.
        tag: u32,
    },
    /// `outputs[0]` comes from whoever sends first.
    ReceiveAny {
        /// As above.
        tag: u32,
    },
}

/// An operation with its buffers.
#[derive(Clone, Debug)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The type of its elements.
    pub element: Element,
    /// How; means something to three operations.
    pub reduction: Reduction,
    /// What is read.
    pub inputs: Vec<Segment>,
    /// What is written.
    pub outputs: Vec<Segment>,
}

impl Operation {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
            Operation::Broadcast { .. } => "broadcast",
            Operation::Reduce { .. } => "reduce",
            Operation::Gather { .. } => "gather",
            Operation::Scatter { .. } => "scatter",
            Operation::Barrier => "barrier",
            Operation::Send { .. } => "send",
            Operation::Receive { .. } | Operation::ReceiveAny { .. } => "receive",
        }
    }
    fn reduces(self) -> bool {
        matches!(self, Operation::AllReduce | Operation::ReduceScatter | Operation::Reduce { .. })
    }
    /// What it is called in `weft_workload`, with its root, where algorithms for it are.
    pub(crate) fn collective(self) -> Option<(collective::Operation, u32)> {
        Some(match self {
            Operation::AllReduce => (collective::Operation::AllReduce, 0),
            Operation::AllGather => (collective::Operation::AllGather, 0),
            Operation::ReduceScatter => (collective::Operation::ReduceScatter, 0),
            Operation::AllToAll => (collective::Operation::AllToAll, 0),
            Operation::Broadcast { root } => (collective::Operation::Broadcast, root),
            Operation::Reduce { root } => (collective::Operation::Reduce, root),
            _ => return None,
        })
    }
    /// The rank that it names, if it names one.
    pub(crate) fn names(self) -> Option<u32> {
        match self {
            Operation::Broadcast { root }
            | Operation::Reduce { root }
            | Operation::Gather { root }
            | Operation::Scatter { root } => Some(root),
            Operation::Send { to, .. } => Some(to),
            Operation::Receive { from, .. } => Some(from),
            _ => None,
        }
    }
}

impl Call {
    /// Refuses what `rank` of `ranks` cannot do.
    pub(crate) fn check(&self, rank: u32, ranks: u32) -> Result<(), GroupError> {
        let name = self.operation.name();
        let wrong = |text: String| Err(GroupError::Invalid(format!("{name}: {text}")));
        if let Some(named) = self.operation.names()
            && named >= ranks
        {
            return wrong(format!("there is no rank {named}; use 0 to {}", ranks - 1));
        }
        if let Operation::Send { to: peer, .. } | Operation::Receive { from: peer, .. } =
            self.operation
            && peer == rank
        {
            return wrong(format!("rank {rank} cannot talk to itself; use another rank"));
        }
        if self.operation.reduces() && !self.element.has(self.reduction) {
            let (element, reduction) = (self.element.name(), self.reduction.name());
            return wrong(format!("{element} has no {reduction}; use another reduction or type"));
        }
        let all = ranks as usize;
        let (inputs, outputs) = match self.operation {
            Operation::AllReduce | Operation::Broadcast { .. } | Operation::Reduce { .. } => (0, 1),
            Operation::AllGather => (1, all),
            Operation::ReduceScatter => (all, 1),
            Operation::AllToAll => (all, all),
            Operation::Gather { root } => (1, if root == rank { all } else { 0 }),
            Operation::Scatter { root } => (if root == rank { all } else { 0 }, 1),
            Operation::Barrier => (0, 0),
            Operation::Send { .. } => (1, 0),
            Operation::Receive { .. } | Operation::ReceiveAny { .. } => (0, 1),
        };
        for (what, given, wanted) in
            [("inputs", self.inputs.len(), inputs), ("outputs", self.outputs.len(), outputs)]
        {
            if given != wanted {
                return wrong(format!("{given} {what} were given; give {wanted}"));
            }
        }
        let size = self.element.bytes();
        if let Some(odd) = self.inputs.iter().chain(&self.outputs).find(|s| s.len % size != 0) {
            let element = self.element.name();
            return wrong(format!("{} bytes are no whole number of {element}", odd.len));
        }
        self.check_own(rank as usize).or_else(wrong)
    }

    /// What a rank gives itself must fit.
    fn check_own(&self, rank: usize) -> Result<(), String> {
        let len = |of: &[Segment], index: usize| of[index].len;
        let (given, taken) = match self.operation {
            Operation::AllGather => (len(&self.inputs, 0), len(&self.outputs, rank)),
            Operation::ReduceScatter => (len(&self.inputs, rank), len(&self.outputs, 0)),
            Operation::AllToAll => (len(&self.inputs, rank), len(&self.outputs, rank)),
            Operation::Gather { root } if root as usize == rank => {
                (len(&self.inputs, 0), len(&self.outputs, rank))
            }
            Operation::Scatter { root } if root as usize == rank => {
                (len(&self.inputs, rank), len(&self.outputs, 0))
            }
            _ => return Ok(()),
        };
        if given != taken {
            return Err(format!(
                "rank {rank} gives itself {given} bytes and takes {taken}; make them equal"
            ));
        }
        Ok(())
    }
}
