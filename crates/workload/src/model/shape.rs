//! Transformers by their numbers: how many parameters they have, and where.
//!
//! Invariant: parameters are counted exactly, from the shapes of all weight matrices, biases
//! and normalisations; the shipped models have the published counts.

use super::refuse;
use crate::WorkloadError;
use weft_units::OptionError;

/// Counts beyond it are mistakes; sums and products of those below it fit in 128 bits.
pub(super) const MOST: u32 = 1 << 24;

/// The most parameters of a model, so that all sizes in bytes fit in 64 bits.
const MOST_PARAMETERS: u128 = 1 << 53;

/// A decoder-only transformer.
///
/// Each layer is attention and an MLP, a normalisation before each; after the last layer come
/// one more normalisation and the projection onto the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// How many layers it has.
    pub layers: u32,
    /// Numbers that stand for a token between layers.
    pub hidden: u32,
    /// Width of the MLP.
    pub feed_forward: u32,
    /// Heads of attention; they share `hidden` equally.
    pub heads: u32,
    /// Heads of keys and values: as many as `heads`, or fewer that several heads share.
    pub kv_heads: u32,
    /// Tokens in a sample.
    pub sequence: u32,
    /// How many different tokens there are.
    pub vocabulary: u32,
    /// Positions that have a learned embedding; 0 if positions are told otherwise.
    pub positions: u32,
    /// Whether the embedding of tokens is also the projection onto the vocabulary.
    pub tied: bool,
    /// Whether the MLP has a gate: three matrices instead of two.
    pub gated: bool,
    /// Whether matrices and normalisations have biases.
    pub biases: bool,
    /// If every layer has several MLPs, of which each token takes some.
    pub experts: Option<Experts>,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many MLPs a layer has.
    pub count: u32,
    /// How many of them each token takes.
    pub top_k: u32,
}

/// A shipped model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The value of `model`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
    /// Its numbers.
    pub model: Model,
}

/// GPT-2 small: 124,439,808 parameters.
pub const GPT2_SMALL: Model = Model {
    layers: 12,
    hidden: 768,
    feed_forward: 3072,
    heads: 12,
    kv_heads: 12,
    sequence: 1024,
    vocabulary: 50_257,
    positions: 1024,
    tied: true,
    gated: false,
    biases: true,
    experts: None,
};

/// Llama 2 with 7 billion parameters: 6,738,415,616.
pub const LLAMA2_7B: Model = Model {
    layers: 32,
    hidden: 4096,
    feed_forward: 11_008,
    heads: 32,
    kv_heads: 32,
    sequence: 4096,
    vocabulary: 32_000,
    positions: 0,
    tied: false,
    gated: true,
    biases: false,
    experts: None,
};

/// GPT-3 with 13 billion parameters: 12,853,386,240. The paper's table prints a width of 5140, which
/// its 40 heads of 128 numbers do not make; 5120 is what Megatron and `SimAI` train.
pub const GPT3_13B: Model = Model {
    layers: 40,
    hidden: 5120,
    feed_forward: 20_480,
    heads: 40,
    kv_heads: 40,
    sequence: 2048,
    positions: 2048,
    ..GPT2_SMALL
};

/// Mixtral 8x7B: 46,702,792,704 parameters, of which a token uses 12.9 billion.
pub const MIXTRAL_8X7B: Model = Model {
    feed_forward: 14_336,
    kv_heads: 8,
    experts: Some(Experts { count: 8, top_k: 2 }),
    ..LLAMA2_7B
};

/// All shipped models.
pub const MODELS: &[ModelInfo] = &[
    ModelInfo {
        name: "gpt2-small",
        summary: "GPT-2 with 124 million parameters",
        source: "Radford et al. (2019)",
        model: GPT2_SMALL,
    },
    ModelInfo {
        name: "llama2-7b",
        summary: "Llama 2 with 6.7 billion parameters",
        source: "Touvron et al. (2023)",
        model: LLAMA2_7B,
    },
    ModelInfo {
        name: "gpt-13b",
        summary: "GPT-3 with 13 billion parameters",
        source: "Brown et al. (2020)",
        model: GPT3_13B,
    },
    ModelInfo {
        name: "mixtral-8x7b",
        summary: "Mixtral 8x7B, eight experts a layer, in samples of 4096 tokens",
        source: "Jiang et al. (2024)",
        model: MIXTRAL_8X7B,
    },
];

/// Parameters that go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weights {
    /// Cut among the tensor-parallel ranks.
    pub split: u128,
    /// Held by each of them.
    pub whole: u128,
}

impl Weights {
    fn all(self) -> u128 {
        self.split + self.whole
    }
}

impl Model {
    /// The shipped model called `name`.
    ///
    /// # Errors
    /// If there is none; key `model`.
    pub fn named(name: &str) -> Result<Model, OptionError> {
        let found = MODELS.iter().find(|info| info.name == name);
        found.map(|info| info.model).ok_or_else(|| {
            let known: Vec<_> = MODELS.iter().map(|info| info.name).collect();
            OptionError::unknown("model", name, &known)
        })
    }

    /// How many parameters it has, exactly; beyond 2^64, 2^64 - 1.
    pub fn parameters(&self) -> u64 {
        u64::try_from(self.count()).unwrap_or(u64::MAX)
    }

    fn count(&self) -> u128 {
        let layer = self.dense().all() + self.expert().all() * u128::from(self.expert_count());
        let projection = if self.tied { 0 } else { self.tokens() };
        let ends = self.tokens() + self.position_weights() + projection + self.norm();
        ends.saturating_add(layer.saturating_mul(u128::from(self.layers)))
    }

    /// Keys, or values, of a token: numbers in all heads.
    pub(super) fn kv_hidden(&self) -> u128 {
        let head = self.hidden.checked_div(self.heads).unwrap_or(0);
        u128::from(head) * u128::from(self.kv_heads)
    }
    /// The matrices of attention: queries, keys, values and the output.
    pub(super) fn attention_matrices(&self) -> u128 {
        let hidden = u128::from(self.hidden);
        2 * hidden * hidden + 2 * hidden * self.kv_hidden()
    }
    /// The matrices of one MLP.
    pub(super) fn mlp_matrices(&self) -> u128 {
        (2 + u128::from(self.gated)) * u128::from(self.hidden) * u128::from(self.feed_forward)
    }
    /// The matrix that says which experts a token takes.
    pub(super) fn router(&self) -> u128 {
        let count = self.experts.map_or(0, |experts| experts.count);
        u128::from(self.hidden) * u128::from(count)
    }
    /// The embedding of tokens, or the projection onto the vocabulary.
    pub(super) fn tokens(&self) -> u128 {
        u128::from(self.vocabulary) * u128::from(self.hidden)
    }
    /// The embedding of positions.
    pub(super) fn position_weights(&self) -> u128 {
        u128::from(self.positions) * u128::from(self.hidden)
    }
    /// One normalisation: scales, and biases if there are any.
    pub(super) fn norm(&self) -> u128 {
        u128::from(self.hidden) * (1 + u128::from(self.biases))
    }

    /// What of a layer every token goes through: all, or all but the experts.
    ///
    /// Matrices are cut by columns, then by rows (Shoeybi et al. 2019): biases of the first kind
    /// are cut, too, biases of the second and normalisations are not.
    pub(super) fn dense(&self) -> Weights {
        let hidden = u128::from(self.hidden);
        let biases = u128::from(self.biases);
        let attention = Weights {
            split: self.attention_matrices() + biases * (hidden + 2 * self.kv_hidden()),
            whole: biases * hidden + 2 * self.norm() + self.router(),
        };
        match self.experts {
            Some(_) => attention,
            None => Weights {
                split: attention.split + self.mlp().split,
                whole: attention.whole + self.mlp().whole,
            },
        }
    }

    /// One expert of a layer; nothing if there are none.
    pub(super) fn expert(&self) -> Weights {
        self.experts.map_or(Weights::default(), |_| self.mlp())
    }

    fn mlp(&self) -> Weights {
        let biases = u128::from(self.biases);
        let up = biases * (1 + u128::from(self.gated)) * u128::from(self.feed_forward);
        Weights { split: self.mlp_matrices() + up, whole: biases * u128::from(self.hidden) }
    }

    fn expert_count(&self) -> u32 {
        self.experts.map_or(0, |experts| experts.count)
    }

    /// Whether there can be such a model.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let sizes = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("feed_forward", self.feed_forward),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("sequence", self.sequence),
            ("vocabulary", self.vocabulary),
        ];
        let experts = self.experts.unwrap_or(Experts { count: 1, top_k: 1 });
        let sizes = sizes.into_iter().chain([("experts", experts.count), ("top_k", experts.top_k)]);
        for (key, size) in sizes {
            if size == 0 || size > MOST {
                return refuse(key, format!("{size} is out of range; use 1 to {MOST}"));
            }
        }
        self.check_relations(experts)
    }

    fn check_relations(&self, experts: Experts) -> Result<(), WorkloadError> {
        let Model { hidden, heads, kv_heads, sequence, positions, .. } = *self;
        if !hidden.is_multiple_of(heads) {
            let what = format!("{heads} heads cannot share {hidden} numbers; use a divisor");
            return refuse("heads", what);
        }
        if !heads.is_multiple_of(kv_heads) {
            let what = format!("{kv_heads} cannot be shared by {heads} heads; use a divisor");
            return refuse("kv_heads", what);
        }
        if positions > 0 && positions < sequence {
            let what = format!("{positions} are too few for {sequence} tokens");
            return refuse("positions", what + &format!("; use 0, or {sequence} or more"));
        }
        if positions > MOST {
            return refuse("positions", format!("{positions} is out of range; use 0 to {MOST}"));
        }
        if experts.top_k > experts.count {
            let Experts { count, top_k } = experts;
            return refuse("top_k", format!("a token cannot take {top_k} of {count}; use fewer"));
        }
        match self.count() > MOST_PARAMETERS {
            true => refuse("layers", "more than 2^53 parameters; make the model smaller"),
            false => Ok(()),
        }
    }
}
