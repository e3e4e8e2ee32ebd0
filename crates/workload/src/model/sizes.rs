//! Bytes of every collective and operations of every step, at a rank of a job.
//!
//! Invariant: nothing overflows for a training that was not refused.

use super::training::{Gradients, Pace, Recompute, Training};
use crate::experts::Exchange;
use crate::trace::{Compute, Membership};
use weft_units::Time;

/// A training on so many ranks.
#[derive(Debug)]
pub(super) struct TrainingSizes<'a> {
    pub training: &'a Training,
    /// Data-parallel ranks.
    pub data: u32,
    /// Micro-batches that pass through a pipeline.
    pub micro_batches: u32,
    /// What goes to experts, layer by layer; none where that is an all-to-all of equal sizes.
    pub exchanges: Vec<Exchange>,
}

/// What is computed, and gathered or reduced, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Embedding,
    /// Counted from 0 over all stages.
    Layer(u32),
    /// The last normalisation and the projection onto the vocabulary.
    Head,
}

/// What of a unit is computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Attention,
    /// Attention without its scores, and these: the two where a sequence is shared.
    Projections,
    Scores,
    Mlp,
    /// Attention and MLP.
    Layer,
    /// The MLP, and all of a layer, where others have experts.
    DenseMlp,
    DenseLayer,
    Head,
}

/// A pass through a layer: forward, forward again to recompute, or backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Forward,
    Again,
    Backward,
}

/// Parameters of a unit at a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// That all data-parallel ranks have.
    pub dense: u64,
    /// That only the ranks with the same experts have.
    pub expert: u64,
}

fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl<'a> TrainingSizes<'a> {
    pub(super) fn new(training: &'a Training, ranks: u32, micro_batches: u32) -> TrainingSizes<'a> {
        let data = training.degrees.data(ranks);
        TrainingSizes { training, data, micro_batches, exchanges: Vec::new() }
    }

    fn tensor(&self) -> u128 {
        u128::from(self.training.degrees.tensor)
    }
    /// Of a micro-batch, at a rank.
    fn tokens(&self) -> u128 {
        let sequence = self.training.model.sequence / self.training.degrees.context.max(1);
        u128::from(self.training.micro_batch) * u128::from(sequence)
    }
    fn activation_exact(&self) -> u128 {
        2 * self.tokens() * u128::from(self.training.model.hidden)
    }
    fn exchange_exact(&self) -> u128 {
        let top_k = self.training.model.experts.map_or(0, |experts| experts.top_k);
        (self.activation_exact() * u128::from(top_k)).div_ceil(self.tensor())
    }

    /// A: what a layer hands to the next.
    pub(super) fn activation(&self) -> u64 {
        narrow(self.activation_exact())
    }
    /// What a rank hands to the next stage.
    pub(super) fn boundary(&self) -> u64 {
        let parts = if self.training.sequence_parallel { self.tensor() } else { 1 };
        narrow(self.activation_exact() / parts)
    }
    /// What a rank sends to experts, and gets back.
    pub(super) fn exchange(&self) -> u64 {
        narrow(self.exchange_exact())
    }
    /// Tokens of a micro-batch that a rank sends to experts: those are cut among tensor-parallel ranks.
    pub(super) fn tokens_of_rank(&self) -> u64 {
        narrow(self.tokens().div_ceil(self.tensor()))
    }
    /// Keys and values of a rank's own tokens.
    pub(super) fn keys_and_values(&self) -> u64 {
        let own = 2 * 2 * self.tokens() * self.training.model.kv_hidden();
        narrow(own.div_ceil(self.tensor()))
    }
    /// A 32-bit number for each token.
    pub(super) fn loss(&self) -> u64 {
        narrow(4 * self.tokens())
    }
    /// The largest of all these.
    pub(super) fn largest(&self) -> u128 {
        self.activation_exact().max(self.exchange_exact())
    }

    /// Bytes of a gradient.
    pub(super) fn gradient_bytes(&self) -> u64 {
        match self.training.gradients {
            Gradients::Bf16 => 2,
            Gradients::Fp32 => 4,
        }
    }

    /// Ranks that exchange something in a group.
    pub(super) fn group_size(&self, members: &Membership) -> u32 {
        let degrees = self.training.degrees;
        match members {
            Membership::Tensor => degrees.tensor,
            Membership::Data => self.data,
            Membership::Expert => degrees.expert,
            Membership::Context => degrees.context,
            Membership::ExpertData => self.data.checked_div(degrees.expert).unwrap_or(0),
            _ => degrees.pipeline.min(2),
        }
    }

    /// Parameters of the embedding of tokens at a rank.
    pub(super) fn token_weights(&self) -> u64 {
        let model = &self.training.model;
        let tokens = u128::from(model.vocabulary).div_ceil(self.tensor());
        narrow(tokens * u128::from(model.hidden))
    }

    /// Whether first and last stage have copies of the same embedding.
    pub(super) fn has_copies(&self) -> bool {
        self.training.model.tied && self.training.degrees.pipeline > 1
    }

    /// Parameters of `unit` at a rank.
    pub(super) fn held(&self, unit: Unit) -> Held {
        let model = &self.training.model;
        match unit {
            Unit::Embedding => {
                let dense = self.token_weights() + narrow(model.position_weights());
                Held { dense, expert: 0 }
            }
            Unit::Layer(layer) => {
                let (dense, expert) = (model.dense(layer), model.expert(layer));
                let experts = model.experts.map_or(0, |experts| experts.count);
                let experts = u128::from(experts / self.training.degrees.expert.max(1));
                Held {
                    dense: narrow(dense.split / self.tensor() + dense.whole),
                    expert: narrow((expert.split / self.tensor() + expert.whole) * experts),
                }
            }
            Unit::Head => {
                let own = !model.tied || self.has_copies();
                let projection = if own { self.token_weights() } else { 0 };
                Held { dense: projection + narrow(model.norm()), expert: 0 }
            }
        }
    }

    /// Operations of attention's scores and of their use, forward, at a rank.
    fn scores(&self) -> u128 {
        let model = &self.training.model;
        let width = u128::from(model.sequence) * model.scores();
        4 * self.tokens() * width / self.tensor()
    }

    /// Operations of a part, forward, at a rank.
    fn forward(&self, part: Part) -> u128 {
        let model = &self.training.model;
        let matrices = |weights: u128| 2 * self.tokens() * weights / self.tensor();
        match part {
            Part::Attention => self.forward(Part::Projections) + self.forward(Part::Scores),
            Part::Projections => matrices(model.attention_matrices()),
            Part::Scores => self.scores(),
            Part::Mlp => {
                let taken = model.experts.map_or(1, |experts| experts.top_k + experts.shared);
                matrices(model.mlp_matrices(false) * u128::from(taken) + model.router())
            }
            Part::DenseMlp => matrices(model.mlp_matrices(true)),
            Part::Layer => self.forward(Part::Attention) + self.forward(Part::Mlp),
            Part::DenseLayer => self.forward(Part::Attention) + self.forward(Part::DenseMlp),
            Part::Head => 2 * self.tokens() * u128::from(self.token_weights()),
        }
    }

    fn operations(&self, part: Part, phase: Phase) -> u128 {
        let forward = self.forward(part);
        let selective = self.training.recompute == Recompute::Selective;
        let again = match part {
            Part::Attention | Part::Scores | Part::Layer | Part::DenseLayer if selective => {
                self.scores()
            }
            _ => 0,
        };
        match phase {
            Phase::Forward | Phase::Again => forward,
            Phase::Backward => 2 * forward + again,
        }
    }

    /// The computation of a part.
    pub(super) fn compute(&self, part: Part, phase: Phase) -> Compute {
        let operations = self.operations(part, phase);
        let time = match self.training.pace {
            Pace::Operations { peak, efficiency } => {
                Time((operations as f64 / (peak * efficiency) * 1e12 + 0.5) as u64)
            }
            Pace::Given { .. } => self.given(part, phase),
        };
        Compute { time, operations: narrow(operations), ..Compute::default() }
    }

    /// What was measured; of a half of a layer, its share by operations.
    fn given(&self, part: Part, phase: Phase) -> Time {
        let Pace::Given { forward, backward, head_forward, head_backward } = self.training.pace
        else {
            return Time::ZERO;
        };
        let (layer, head) = match phase {
            Phase::Forward | Phase::Again => (forward, head_forward),
            Phase::Backward => (backward, head_backward),
        };
        let operations = |part: Part| self.operations(part, phase) as f64;
        let share = operations(Part::Attention) / operations(Part::Layer);
        let attention = Time((layer.0 as f64 * share) as u64).min(layer);
        let share = operations(Part::Scores) / operations(Part::Attention);
        let scores = Time((attention.0 as f64 * share) as u64).min(attention);
        match part {
            Part::Projections => attention - scores,
            Part::Scores => scores,
            Part::Attention => attention,
            Part::Mlp | Part::DenseMlp => layer - attention,
            Part::Layer | Part::DenseLayer => layer,
            Part::Head => head,
        }
    }

    /// The longest of all steps.
    pub(super) fn longest(&self) -> Time {
        let steps = [Part::Layer, Part::DenseLayer, Part::Head].into_iter().flat_map(|part| {
            [Phase::Forward, Phase::Backward].map(|phase| self.compute(part, phase).time)
        });
        steps.max().unwrap_or(Time::ZERO)
    }
}
