//! Layers to a graph: what each policy issues when.
//!
//! A rank has one line of work, in which each step waits for the one before it. A collective is
//! either part of the line, or issued beside it and waited for later, or never.

use super::rows::{Comm, Header, Layer, Policy};
use super::{Dialect, Settled, converted};
use crate::WorkloadError;
use crate::collective::Operation;
use crate::trace::{
    Action, Collective, Compute, Gathered, Group, Membership, Node, RankGraph, Size, Work,
};
use weft_units::Time;
use weft_units::options::quoted;

/// Enough for years of training; every step costs memory.
const MOST_STEPS: u64 = 1 << 26;

/// A column of a row.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Forward,
    Input,
    Weight,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Input => "input gradient",
            Phase::Weight => "weight gradient",
        }
    }
}

pub(super) struct Lowering<'a> {
    name: &'a str,
    header: &'a Header,
    layers: &'a [Layer],
    settled: &'a Settled,
    graph: RankGraph,
    groups: Vec<Group>,
    /// What the next step of the line waits for.
    front: Vec<u32>,
    /// The last thing that a layer's next forward pass waits for: its weight gradient's
    /// collective, or the update after it.
    pending: Vec<Option<u32>>,
}

type Done = Result<(), WorkloadError>;

impl<'a> Lowering<'a> {
    pub(super) fn run(
        name: &'a str,
        header: &'a Header,
        layers: &'a [Layer],
        settled: &'a Settled,
    ) -> Result<(RankGraph, Vec<Group>), WorkloadError> {
        // At most forward, again forward, two gradients and an update, with a collective each.
        let most = (layers.len() as u64).saturating_mul(9 * u64::from(settled.passes));
        if settled.passes == 0 || most > MOST_STEPS {
            let what = format!("{name}: {} passes; use 1 or a few", settled.passes);
            return Err(WorkloadError(what));
        }
        let mut lowering = Lowering {
            name,
            header,
            layers,
            settled,
            graph: RankGraph::new(name),
            groups: vec![Group::of(Membership::World)],
            front: Vec::new(),
            pending: vec![None; layers.len()],
        };
        for _ in 0..settled.passes {
            lowering.pass()?;
        }
        lowering.graph.number_turns();
        Ok((lowering.graph, lowering.groups))
    }

    fn pass(&mut self) -> Done {
        match self.header.policy {
            Policy::Micro => self.micro(),
            Policy::Data => self.data(),
            Policy::Dlrm | Policy::DlrmEnhanced => self.dlrm(),
            Policy::Inference => self.forward(0..self.layers.len()),
            _ => {
                self.forward(0..self.layers.len())?;
                self.backward()
            }
        }
    }

    /// Collectives alone, those of the weight gradients.
    fn micro(&mut self) -> Done {
        for at in 0..self.layers.len() {
            match self.settled.dialect {
                Dialect::AstraSim => self.beside(at, Phase::Weight).map(|_| ())?,
                Dialect::Aicb => self.inline(at, Phase::Weight)?,
            }
        }
        Ok(())
    }

    /// Layer by layer, each waiting for its collective.
    fn forward(&mut self, layers: std::ops::Range<usize>) -> Done {
        for at in layers {
            self.compute(at, Phase::Forward)?;
            self.inline(at, Phase::Forward)?;
        }
        Ok(())
    }

    /// From the last layer to the first: input gradient, weight gradient. The collective of the
    /// input gradient is waited for at once by transformers and after the weight gradient by
    /// others, which leave it out for the first layer.
    fn backward(&mut self) -> Done {
        let policy = self.header.policy;
        let transformer = matches!(policy, Policy::Transformer | Policy::ForwardInBackward);
        for at in (0..self.layers.len()).rev() {
            self.again(at)?;
            self.compute(at, Phase::Input)?;
            let mut awaited = None;
            match transformer {
                true => self.inline(at, Phase::Input)?,
                false if at > 0 => awaited = self.beside(at, Phase::Input)?,
                false => {}
            }
            self.compute(at, Phase::Weight)?;
            // Model parallelism has no copies whose gradients would have to agree.
            if policy != Policy::Model {
                self.weights(at)?;
            }
            self.front.extend(awaited);
        }
        Ok(())
    }

    /// The forward pass once more, from the last checkpoint to this layer.
    fn again(&mut self, at: usize) -> Done {
        let again =
            self.header.policy == Policy::ForwardInBackward && self.header.initiates.contains(&at);
        if !again {
            return Ok(());
        }
        let kept = self.header.checkpoints.iter().filter(|kept| **kept <= at).max();
        let full = self.graph.nodes().len() as u64 > MOST_STEPS;
        match kept {
            Some(_) if full => {
                let what = "the forward pass is done again too often; initiate it less often";
                Err(WorkloadError::at(self.name, 1, what))
            }
            Some(kept) => self.forward(*kept..at),
            None => {
                let what = format!(
                    "checkpoint_initiates names layer {at}, but no layer up to it is in \
                     'checkpoints'; list one"
                );
                Err(WorkloadError::at(self.name, 1, what))
            }
        }
    }

    /// Data parallelism: no collective but those of weight gradients, which nothing waits for.
    fn data(&mut self) -> Done {
        for at in 0..self.layers.len() {
            self.compute(at, Phase::Forward)?;
        }
        for at in (0..self.layers.len()).rev() {
            self.compute(at, Phase::Weight)?;
            self.weights(at)?;
            if at > 0 {
                self.compute(at, Phase::Input)?;
            }
        }
        Ok(())
    }

    /// Recommendation models: the embeddings (layer 0) are exchanged while the bottom layers
    /// are computed, forward and backward.
    fn dlrm(&mut self) -> Done {
        let last_bottom = self.header.last_bottom_layer;
        let mut embeddings = None;
        for at in 0..self.layers.len() {
            self.compute(at, Phase::Forward)?;
            if self.layers[at].comms[Phase::Forward as usize].name == "ALLTOALL" {
                let beside = self.beside(at, Phase::Forward)?;
                embeddings = embeddings.or(beside);
            }
            if at == last_bottom {
                self.front.extend(embeddings);
            }
        }
        let mut gradients = None;
        for at in (0..self.layers.len()).rev() {
            if at == 0 && self.header.policy == Policy::Dlrm {
                self.front.extend(gradients);
            }
            self.compute(at, Phase::Weight)?;
            self.weights(at)?;
            if at > 0 {
                self.compute(at, Phase::Input)?;
            }
            if at == last_bottom.saturating_add(1) {
                gradients = self.beside(0, Phase::Input)?;
            }
        }
        Ok(())
    }

    /// A computation in the line.
    fn compute(&mut self, at: usize, phase: Phase) -> Done {
        if phase == Phase::Forward {
            self.front.extend(self.pending[at].take());
        }
        let layer = &self.layers[at];
        let time = self.time(layer, layer.times[phase as usize])?;
        let work = Work::Compute(Compute { time, ..Compute::default() });
        let node = self.push(format!("{} {}", layer.name, phase.name()), work);
        self.front = vec![node];
        Ok(())
    }

    /// A collective in the line.
    fn inline(&mut self, at: usize, phase: Phase) -> Done {
        if let Some(node) = self.collective(at, phase)? {
            self.front = vec![node];
        }
        Ok(())
    }

    /// A collective beside the line.
    fn beside(&mut self, at: usize, phase: Phase) -> Result<Option<u32>, WorkloadError> {
        let node = self.collective(at, phase)?;
        if let (Some(node), true) = (node, self.settled.serial) {
            self.front = vec![node];
        }
        Ok(node)
    }

    /// The collective of a weight gradient, and the update after it.
    fn weights(&mut self, at: usize) -> Done {
        let collective = self.beside(at, Phase::Weight)?;
        let layer = &self.layers[at];
        self.pending[at] = collective;
        if let (Some(collective), true) = (collective, self.settled.updates) {
            let time = self.time(layer, layer.update)?;
            let work = Work::Compute(Compute { time, ..Compute::default() });
            let front = std::mem::replace(&mut self.front, vec![collective]);
            let update = self.push(format!("{} update", layer.name), work);
            self.front = if self.settled.serial { vec![update] } else { front };
            self.pending[at] = Some(update);
        }
        Ok(())
    }

    fn push(&mut self, name: String, work: Work) -> u32 {
        let id = self.graph.nodes().len() as u64;
        let node = Node { id, name: name.into(), work, start: Time::ZERO };
        self.graph.push(node, &self.front)
    }

    fn time(&self, layer: &Layer, count: u64) -> Result<Time, WorkloadError> {
        count.checked_mul(self.settled.unit.0).map(Time::ps).ok_or_else(|| {
            let what = format!("a time of {count} is longer than 213 days; correct it");
            WorkloadError::at(self.name, layer.line, what)
        })
    }

    /// The node of a collective; `None` where the file says NONE, unless the converter would
    /// write one without bytes.
    fn collective(&mut self, at: usize, phase: Phase) -> Result<Option<u32>, WorkloadError> {
        let layer = &self.layers[at];
        let comm = &layer.comms[phase as usize];
        let converter = self.settled.dialect == Dialect::AstraSim
            && converted(self.header.policy)
            && !matches!(self.header.policy, Policy::Dlrm | Policy::DlrmEnhanced);
        if comm.name == "NONE" && !converter {
            return Ok(None);
        }
        let name = format!("{} {} {}", layer.name, phase.name(), comm.name);
        let work = match operation(comm) {
            Ok((operation, suffix)) => {
                let members = self.membership(layer, phase, suffix);
                let group = self.group(members);
                let action = Action::Operation(operation);
                let size = self.size(operation, comm);
                Work::Collective(Collective { action, size, group, root: 0, turn: 0 })
            }
            Err(what) => Work::Unsupported(what.into()),
        };
        Ok(Some(self.push(name, work)))
    }

    fn size(&self, operation: Operation, comm: &Comm) -> Size {
        match (comm.name.as_str(), operation, self.settled.gathered) {
            ("NONE", ..) => Size::Whole(0),
            (_, Operation::AllGather, Gathered::Shard) => Size::Shard(comm.bytes),
            _ => Size::Whole(comm.bytes),
        }
    }

    /// Whom a collective concerns.
    fn membership(&self, layer: &Layer, phase: Phase, suffix: &str) -> Membership {
        let policy = layer.policy.unwrap_or(self.header.policy);
        let hybrid = matches!(
            policy,
            Policy::DataModel
                | Policy::ModelData
                | Policy::Transformer
                | Policy::ForwardInBackward
                | Policy::Customized
        );
        match (self.settled.degrees, suffix, phase) {
            (None, ..) => Membership::World,
            (_, "_EP", _) => Membership::Expert,
            (_, "_DP_EP", _) => Membership::ExpertData,
            _ if !hybrid => Membership::World,
            // Of ASTRA-sim's dimensions the first, that of consecutive ranks, goes to the one named last.
            (_, _, Phase::Weight) if policy == Policy::ModelData => Membership::DataWithin,
            _ if policy == Policy::ModelData => Membership::TensorAcross,
            (_, _, Phase::Weight) => Membership::Data,
            _ => Membership::Tensor,
        }
    }

    fn group(&mut self, members: Membership) -> u32 {
        let known = self.groups.iter().position(|group| group.members == members);
        let index = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push(Group::of(members));
        }
        index as u32
    }
}

/// What a communication does, and its suffix; or what is not understood, in words.
fn operation(comm: &Comm) -> Result<(Operation, &str), String> {
    const NAMES: [(&str, Operation); 6] = [
        ("ALLREDUCE", Operation::AllReduce),
        ("ALLGATHER", Operation::AllGather),
        ("REDUCESCATTER", Operation::ReduceScatter),
        ("ALLTOALL", Operation::AllToAll),
        ("BROADCAST", Operation::Broadcast),
        ("REDUCE", Operation::Reduce),
    ];
    if comm.name == "NONE" {
        return Ok((Operation::AllReduce, ""));
    }
    NAMES
        .iter()
        .filter_map(|(name, operation)| Some((*operation, comm.name.strip_prefix(name)?)))
        .find(|(_, suffix)| matches!(*suffix, "" | "_EP" | "_DP_EP"))
        .ok_or_else(|| format!("communication {}", quoted(&comm.name)))
}
