//! The graph of a stage: forward and backward, micro-batch by micro-batch.
//!
//! A rank has one line of work, in which each step waits for the one before it. What it sends
//! leaves beside the line, what it receives is expected from the start; so are reductions and
//! gathers that overlap.

use super::sizes::{Held, Part, Phase, TrainingSizes, Unit};
use super::training::{Recompute, Schedule};
use crate::collective::Operation;
use crate::trace::{
    Action, Collective, Group, Membership, Node, Peer, RankGraph, Size, Transfer, Work,
};
use weft_units::Time;

/// The groups of a trace, in its order.
const GROUPS: [Membership; 6] = [
    Membership::Tensor,
    Membership::Data,
    Membership::Expert,
    Membership::ExpertData,
    Membership::Ends,
    Membership::Context,
];

/// Tags of what stages send each other.
const ACTIVATIONS: u64 = 0;
const GRADIENTS: u64 = 1;

/// The groups that graphs name by index.
pub(super) fn groups() -> Vec<Group> {
    GROUPS.map(Group::of).into()
}

/// The index of a group.
fn group(members: &Membership) -> u32 {
    GROUPS.iter().position(|group| group == members).expect("it is listed") as u32
}

/// What all ranks of `stage` do in an iteration.
pub(super) fn graph(plan: &TrainingSizes<'_>, stage: u32) -> RankGraph {
    let source = format!("{}, stage {stage}", plan.training.name);
    let mut stage = Stage {
        plan,
        stage,
        graph: RankGraph::new(&source),
        front: Vec::new(),
        pending: Pending::default(),
    };
    for pass in passes(plan, stage.stage) {
        match pass {
            Pass::Forward(micro) => stage.forward(micro),
            Pass::Backward(micro) => stage.backward(micro),
        }
    }
    stage.step();
    stage.graph.number_turns();
    stage.graph
}

/// A micro-batch on its way through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward(u32),
    Backward(u32),
}

/// The passes through a stage, in its order.
fn passes(plan: &TrainingSizes<'_>, stage: u32) -> impl Iterator<Item = Pass> {
    let count = plan.micro_batches;
    // So many are ahead before the first comes back.
    let ahead = match plan.training.schedule {
        Schedule::GPipe => count,
        Schedule::OneForwardOneBackward => (plan.training.degrees.pipeline - stage).min(count),
    };
    let first = (0..ahead).map(Pass::Forward);
    let turns = (0..count).flat_map(move |micro| {
        let next = Some(micro + ahead).filter(|next| *next < count);
        [Some(Pass::Backward(micro)), next.map(Pass::Forward)].into_iter().flatten()
    });
    first.chain(turns)
}

/// A graph in the making.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a TrainingSizes<'a>,
    pub(super) stage: u32,
    graph: RankGraph,
    /// What the next step of the line waits for.
    pub(super) front: Vec<u32>,
    pub(super) pending: Pending,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Attention => " attention",
            Part::Projections => " projections",
            Part::Scores => " scores",
            Part::Mlp | Part::DenseMlp => " MLP",
            Part::Layer | Part::DenseLayer | Part::Head => "",
        }
    }
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Again => "forward again",
            Phase::Backward => "backward",
        }
    }
}

impl Unit {
    pub(super) fn name(self) -> String {
        match self {
            Unit::Embedding => "embedding".into(),
            Unit::Layer(layer) => format!("layer {layer}"),
            Unit::Head => "projection".into(),
        }
    }
}

impl Stage<'_> {
    pub(super) fn is_first(&self) -> bool {
        self.stage == 0
    }
    pub(super) fn is_last(&self) -> bool {
        self.stage + 1 == self.plan.training.degrees.pipeline
    }
    fn layers(&self) -> std::ops::Range<u32> {
        let training = self.plan.training;
        let count = training.model.layers / training.degrees.pipeline;
        count * self.stage..count * (self.stage + 1)
    }
    /// What this stage has, in forward order.
    pub(super) fn units(&self) -> Vec<Unit> {
        let first = self.is_first().then_some(Unit::Embedding);
        let last = self.is_last().then_some(Unit::Head);
        first.into_iter().chain(self.layers().map(Unit::Layer)).chain(last).collect()
    }

    /// A node that waits for these.
    pub(super) fn push(&mut self, name: String, work: Work, waits: &[u32]) -> u32 {
        let id = self.graph.nodes().len() as u64;
        let node = Node { id, name: name.into(), work, start: Time::ZERO };
        self.graph.push(node, waits)
    }
    /// The next step of the line.
    pub(super) fn line(&mut self, name: String, work: Work) {
        let front = std::mem::take(&mut self.front);
        self.front = vec![self.push(name, work, &front)];
    }
    /// A collective; `None` if there is nobody to exchange with, or nothing.
    pub(super) fn call(
        &self,
        members: &Membership,
        operation: Operation,
        bytes: u64,
    ) -> Option<Work> {
        let group = group(members);
        let (action, size) = (Action::Operation(operation), Size::Whole(bytes));
        let work = Work::Collective(Collective { action, size, group, root: 0, turn: 0 });
        (self.plan.group_size(members) > 1 && bytes > 0).then_some(work)
    }
    /// A collective in the line: of `who`, for a micro-batch.
    fn exchange(&mut self, members: &Membership, what: Operation, bytes: u64, who: &str) {
        if let Some(work) = self.call(members, what, bytes) {
            self.line(who.into(), work);
        }
    }
    /// A tensor-parallel collective over an activation, in the line.
    fn tensor(&mut self, what: Operation, who: &str, micro: u32) {
        let name = format!("{who} {}, micro-batch {micro}", what.name());
        self.exchange(&Membership::Tensor, what, self.plan.activation(), &name);
    }

    /// What `part` of `unit` computes, with the tensor-parallel exchanges around it: what comes
    /// is gathered if it is cut, and what leaves is a sum over ranks.
    fn compute(&mut self, unit: Unit, part: Part, phase: Phase, micro: u32) {
        let who = format!("{}{} {}", unit.name(), part.name(), phase.name());
        let is_cut = self.plan.training.sequence_parallel;
        // Backward, the gradient is gathered and, for the weights' gradient, the input again.
        let gathers = match phase {
            Phase::Backward if part == Part::Head => 1,
            Phase::Backward => 2,
            _ => 1,
        };
        for _ in 0..if is_cut { gathers } else { 0 } {
            self.tensor(Operation::AllGather, &who, micro);
        }
        self.experts((unit, part), &who, false, micro);
        match part {
            Part::Attention if self.plan.training.degrees.context > 1 => {
                self.attend(unit, phase, micro);
            }
            _ => {
                let work = Work::Compute(self.plan.compute(part, phase));
                self.line(format!("{who}, micro-batch {micro}"), work);
            }
        }
        self.experts((unit, part), &who, true, micro);
        match (part, phase) {
            // The loss is computed where the vocabulary is cut.
            (Part::Head, Phase::Forward) => {}
            _ if is_cut => self.tensor(Operation::ReduceScatter, &who, micro),
            _ => self.tensor(Operation::AllReduce, &who, micro),
        }
    }

    /// Tokens to the ranks of their experts, or back.
    fn experts(&mut self, (unit, part): (Unit, Part), who: &str, is_combine: bool, micro: u32) {
        if part == Part::Mlp && self.plan.training.model.experts.is_some() {
            let what = if is_combine { "combine" } else { "dispatch" };
            let name = format!("{who} {what}, micro-batch {micro}");
            let count = self.plan.exchanges.len() as u32;
            if let (Unit::Layer(layer), 1..) = (unit, count) {
                let index = layer % count;
                let action =
                    if is_combine { Action::Combine(index) } else { Action::Dispatch(index) };
                let size = Size::Whole(self.plan.exchanges[index as usize].buffer(is_combine));
                let group = group(&Membership::Expert);
                return self.line(
                    name,
                    Work::Collective(Collective { action, size, group, root: 0, turn: 0 }),
                );
            }
            let bytes = self.plan.exchange();
            self.exchange(&Membership::Expert, Operation::AllToAll, bytes, &name);
        }
    }

    fn layer(&mut self, layer: u32, phase: Phase, micro: u32) {
        let degrees = self.plan.training.degrees;
        let apart = degrees.tensor.max(degrees.expert).max(degrees.context);
        let model = self.plan.training.model;
        let (whole, mlp) = match model.experts.is_some() && model.is_dense(layer) {
            true => (Part::DenseLayer, Part::DenseMlp),
            false => (Part::Layer, Part::Mlp),
        };
        let parts: &[Part] = match (apart, phase) {
            (1, _) => &[whole],
            (_, Phase::Backward) => &[mlp, Part::Attention],
            _ => &[Part::Attention, mlp],
        };
        for part in parts {
            self.compute(Unit::Layer(layer), *part, phase, micro);
        }
    }

    fn forward(&mut self, micro: u32) {
        self.receive(!self.is_first(), -1, ACTIVATIONS, "activations", micro);
        for unit in self.units() {
            self.gather(unit, Phase::Forward, micro);
            match unit {
                Unit::Embedding => self.embed(micro),
                Unit::Layer(layer) => self.layer(layer, Phase::Forward, micro),
                Unit::Head => {
                    self.compute(unit, Part::Head, Phase::Forward, micro);
                    self.loss(micro);
                }
            }
        }
        self.send(!self.is_last(), 1, ACTIVATIONS, "activations", micro);
    }

    fn backward(&mut self, micro: u32) {
        self.receive(!self.is_last(), 1, GRADIENTS, "gradients", micro);
        let units = self.units();
        for unit in units.iter().rev() {
            self.gather(*unit, Phase::Backward, micro);
            match unit {
                Unit::Embedding if self.plan.training.sequence_parallel => {
                    self.tensor(Operation::AllGather, "embedding backward", micro);
                }
                Unit::Embedding => {}
                Unit::Layer(layer) => {
                    if self.plan.training.recompute == Recompute::Full {
                        self.layer(*layer, Phase::Again, micro);
                    }
                    self.layer(*layer, Phase::Backward, micro);
                }
                Unit::Head => self.compute(*unit, Part::Head, Phase::Backward, micro),
            }
            // The stage before need not wait for what data-parallel ranks exchange.
            let is_through = !self.is_first() && Some(unit) == units.first();
            self.send(is_through, -1, GRADIENTS, "gradients", micro);
            self.reduce(*unit, micro);
        }
        self.reduce_rest(micro);
    }

    /// Each rank has the embeddings of some tokens.
    fn embed(&mut self, micro: u32) {
        let what = match self.plan.training.sequence_parallel {
            true => Operation::ReduceScatter,
            false => Operation::AllReduce,
        };
        self.tensor(what, "embedding forward", micro);
    }

    /// Each rank has the scores of some tokens: their largest, the right one, their sum.
    fn loss(&mut self, micro: u32) {
        let bytes = self.plan.loss();
        for what in ["maximum", "target", "sum"] {
            let name = format!("loss {what} all-reduce, micro-batch {micro}");
            self.exchange(&Membership::Tensor, Operation::AllReduce, bytes, &name);
        }
    }

    fn transfer(&self, stages: i64, tag: u64) -> Transfer {
        let degrees = self.plan.training.degrees;
        let stage = i64::from(degrees.tensor) * i64::from(self.plan.data);
        let peer = Peer::Away(stages * stage);
        Transfer { peer, bytes: self.plan.boundary(), tag, turn: 0 }
    }
    /// To the rank of the same place so many stages on, beside the line, if there is one.
    fn send(&mut self, is_there: bool, stages: i64, tag: u64, what: &str, micro: u32) {
        if is_there {
            let front = self.front.clone();
            let name = format!("send {what}, micro-batch {micro}");
            self.push(name, Work::Send(self.transfer(stages, tag)), &front);
        }
    }
    /// From there; the line waits for it.
    fn receive(&mut self, is_there: bool, stages: i64, tag: u64, what: &str, micro: u32) {
        if is_there {
            let name = format!("receive {what}, micro-batch {micro}");
            let receive = self.push(name, Work::Receive(self.transfer(stages, tag)), &[]);
            self.front.push(receive);
        }
    }
}

/// What is under way beside the line of a stage.
#[derive(Default)]
pub(super) struct Pending {
    /// Gradients that wait for their reduction: parameters.
    pub(super) held: Held,
    /// The last unit of them.
    pub(super) unit: String,
    /// Reductions; the line waits for them at the end.
    pub(super) reductions: Vec<u32>,
    /// The last gathers.
    pub(super) gathers: Vec<u32>,
    /// What the unit before began after.
    pub(super) before: Vec<u32>,
}
