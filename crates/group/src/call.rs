//! What a group is asked to do.

use crate::element::{Element, Reduction};
use crate::error::GroupError;
use crate::memory::Segment;
pub use crate::operation::Operation;

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
