//! Attention of ranks that share a sequence: who sends keys and values to whom, and what is computed meanwhile.
//!
//! Each has as many tokens, and computes its projections alone. In a ring keys and values of each part go from rank
//! to rank: in step k a rank computes with what came in step k - 1 and passes that on meanwhile. Backward the gradients
//! of keys and values go around behind them: what a rank adds to those of a part leaves when it has come and is
//! computed, and after the last step they are one rank before home. All of it is what Liu et al. (2023) have, without
//! its blocks; gradients in 16 bits as everything else. With an all-gather nothing overlaps: keys and values come
//! together, again for the backward pass, after which their gradients are reduced and scattered (Llama 3, 2024, section
//! 3.3.2, which does not say how the backward pass goes; this is what Transformer Engine does).

use super::sizes::{Part, Phase, Unit};
use super::stage::Stage;
use super::training::Attention;
use crate::collective::Operation;
use crate::trace::{Compute, Membership, Work};
use weft_units::Time;

impl Stage<'_> {
    /// Attention of a layer, in the line.
    pub(super) fn attend(&mut self, unit: Unit, phase: Phase, micro: u32) {
        let who = format!("{} attention {}", unit.name(), phase.name());
        let is_backward = phase == Phase::Backward;
        if !is_backward {
            self.part(Part::Projections, phase, &who, micro);
        }
        match self.plan.training.attention {
            Attention::Ring => self.around(phase, &who, micro),
            Attention::AllGather => {
                let all =
                    self.plan.keys_and_values() * u64::from(self.plan.training.degrees.context);
                self.together(Operation::AllGather, all, &format!("{who} keys and values"), micro);
                self.part(Part::Scores, phase, &who, micro);
                if is_backward {
                    let what = format!("{who} gradients of keys and values");
                    self.together(Operation::ReduceScatter, all, &what, micro);
                }
            }
        }
        if is_backward {
            self.part(Part::Projections, phase, &who, micro);
        }
    }

    /// A part, in the line.
    fn part(&mut self, part: Part, phase: Phase, who: &str, micro: u32) {
        let what = if part == Part::Scores { "scores" } else { "projections" };
        let work = Work::Compute(self.plan.compute(part, phase));
        self.line(format!("{who} {what}, micro-batch {micro}"), work);
    }

    /// A collective among those that share a sequence, in the line.
    fn together(&mut self, operation: Operation, bytes: u64, who: &str, micro: u32) {
        if let Some(work) = self.call(&Membership::Context, operation, bytes) {
            self.line(format!("{who} {}, micro-batch {micro}", operation.name()), work);
        }
    }

    /// Scores, step by step around the ring.
    fn around(&mut self, phase: Phase, who: &str, micro: u32) {
        let steps = self.plan.training.degrees.context;
        let all = self.plan.compute(Part::Scores, phase);
        let bytes = self.plan.keys_and_values();
        let shift = |stage: &Self| stage.call(&Membership::Context, Operation::SendReceive, bytes);
        // The one that gradients have come by.
        let mut gradients: Option<u32> = None;
        for step in 0..steps {
            let name = |what: &str| format!("{who} {what} {step}, micro-batch {micro}");
            let before = self.front.clone();
            let passing = shift(self).filter(|_| step + 1 < steps);
            let passed = passing.map(|work| self.push(name("keys and values"), work, &before));
            // The last one takes what rounding leaves.
            let part = |sum: u64| match step + 1 == steps {
                true => sum - sum / u64::from(steps) * u64::from(steps - 1),
                false => sum / u64::from(steps),
            };
            let (time, operations) = (Time(part(all.time.0)), part(all.operations));
            let work = Work::Compute(Compute { time, operations, ..all });
            let computed = self.push(name("scores"), work, &before);
            if let Some(work) = shift(self).filter(|_| phase == Phase::Backward) {
                let waits: Vec<u32> = std::iter::once(computed).chain(gradients).collect();
                gradients = Some(self.push(name("gradients of keys and values"), work, &waits));
            }
            self.front = std::iter::once(computed).chain(passed).collect();
        }
        self.front.extend(gradients);
    }
}
