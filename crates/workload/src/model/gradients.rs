//! What data-parallel ranks exchange: gradients, parameters where they are shared, and the
//! optimizer's step.
//!
//! Invariant: over an iteration (ZeRO 2 and 3: over a micro-batch) gradients are reduced once,
//! to the byte. Reductions that overlap follow each other, and so do gathers.

use super::sizes::{Held, Phase, Unit};
use super::stage::Stage;
use super::training::Zero;
use crate::collective::Operation;
use crate::trace::{Compute, Membership, Work};

impl Held {
    /// With the group that exchanges each, and what it is called.
    fn parts(self) -> [(Membership, u64, &'static str); 2] {
        [(Membership::Data, self.dense, ""), (Membership::ExpertData, self.expert, "expert ")]
    }
}

impl Stage<'_> {
    fn zero(&self) -> Zero {
        self.plan.training.zero
    }

    /// ZeRO 3: the parameters of a unit come together. With overlap that begins while the unit
    /// before is computed.
    pub(super) fn gather(&mut self, unit: Unit, phase: Phase, micro: u32) {
        if self.zero() != Zero::Parameters {
            return;
        }
        let now = self.front.clone();
        let before = std::mem::replace(&mut self.pending.before, now);
        let after = if self.plan.training.overlap { before } else { self.front.clone() };
        for (group, parameters, kind) in self.plan.held(unit).parts() {
            let Some(work) = self.call(&group, Operation::AllGather, 2 * parameters) else {
                continue;
            };
            let name = format!(
                "{} {} {kind}parameters all-gather, micro-batch {micro}",
                unit.name(),
                phase.name()
            );
            let mut waits = after.clone();
            waits.append(&mut self.pending.gathers);
            let gather = self.push(name, work, &waits);
            self.pending.gathers.push(gather);
            self.front.push(gather);
        }
    }

    /// The gradients of a unit are there; they leave when enough are.
    pub(super) fn reduce(&mut self, unit: Unit, micro: u32) {
        let is_last = micro + 1 == self.plan.micro_batches;
        if !is_last && self.zero() < Zero::Gradients {
            return;
        }
        let held = self.plan.held(unit);
        self.pending.held.dense += held.dense;
        self.pending.held.expert += held.expert;
        self.pending.unit = unit.name();
        let enough = match (self.zero(), self.plan.training.overlap) {
            (Zero::Parameters, _) => 0,
            (_, true) => self.plan.training.bucket,
            (_, false) => u64::MAX,
        };
        let Held { dense, expert } = self.pending.held;
        if (dense + expert) * self.plan.gradient_bytes() >= enough {
            self.reduce_rest(micro);
        }
    }

    /// The gradients that wait are reduced.
    pub(super) fn reduce_rest(&mut self, micro: u32) {
        let held = std::mem::take(&mut self.pending.held);
        let operation = match self.zero() {
            Zero::Nothing => Operation::AllReduce,
            _ => Operation::ReduceScatter,
        };
        for (group, parameters, kind) in held.parts() {
            let bytes = parameters * self.plan.gradient_bytes();
            let Some(work) = self.call(&group, operation, bytes) else { continue };
            let (unit, what) = (&self.pending.unit, operation.name());
            let name = format!("{kind}gradients to {unit} {what}, micro-batch {micro}");
            if self.plan.training.overlap {
                let mut waits = self.front.clone();
                waits.append(&mut self.pending.reductions);
                let reduction = self.push(name, work, &waits);
                self.pending.reductions.push(reduction);
            } else {
                self.line(name, work);
            }
        }
    }

    /// All gradients are there: the optimizer's step, and what belongs to it.
    pub(super) fn step(&mut self) {
        self.front.append(&mut self.pending.reductions);
        if self.plan.has_copies() && (self.is_first() || self.is_last()) {
            let bytes = self.plan.gradient_bytes() * self.plan.token_weights();
            if let Some(work) = self.call(&Membership::Ends, Operation::AllReduce, bytes) {
                self.line("embedding gradients all-reduce".into(), work);
            }
        }
        let update = Compute { time: self.plan.training.update, ..Compute::default() };
        self.line("optimizer step".into(), Work::Compute(update));
        if !matches!(self.zero(), Zero::Optimizer | Zero::Gradients) {
            return;
        }
        let mut held = Held::default();
        for unit in self.units() {
            let Held { dense, expert } = self.plan.held(unit);
            held = Held { dense: held.dense + dense, expert: held.expert + expert };
        }
        for (group, parameters, kind) in held.parts() {
            if let Some(work) = self.call(&group, Operation::AllGather, 2 * parameters) {
                self.line(format!("{kind}parameters all-gather"), work);
            }
        }
    }
}
