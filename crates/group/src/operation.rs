//! What the ranks of a group do together.

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
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Operation::AllReduce | Operation::ReduceScatter | Operation::Reduce { .. })
    }
    /// Whether it is one message, beside the rest.
    pub(crate) fn is_single(self) -> bool {
        use Operation::{Receive, ReceiveAny, Send};
        matches!(self, Send { .. } | Receive { .. } | ReceiveAny { .. })
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
