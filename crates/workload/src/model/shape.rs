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
    /// If layers have several MLPs, of which each token takes some.
    pub experts: Option<Experts>,
    /// If queries, keys and values are made from shorter vectors.
    pub latent: Option<Latent>,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many MLPs a layer has.
    pub count: u32,
    /// How many of them each token takes.
    pub top_k: u32,
    /// Width of one; 0: the model's `feed_forward`.
    pub width: u32,
    /// How many more, as wide, every token takes.
    pub shared: u32,
    /// So many first layers have one MLP instead, as wide as the model's `feed_forward`.
    pub dense_layers: u32,
}

impl Experts {
    /// None, of the model's width, in all layers.
    pub const PLAIN: Experts = Experts { count: 0, top_k: 0, width: 0, shared: 0, dense_layers: 0 };
}

/// Attention with latent vectors (DeepSeek-V2, 2024): numbers of a token, and of each of its heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Of the vector that queries are made from.
    pub queries: u32,
    /// Of the one that keys and values are made from.
    pub keys: u32,
    /// Of a key and a query that say where the token is; all heads have the same key.
    pub position: u32,
    /// Of a head's key and query beside these.
    pub head: u32,
    /// Of a head's value.
    pub value: u32,
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
    latent: None,
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
    latent: None,
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
    experts: Some(Experts { count: 8, top_k: 2, ..Experts::PLAIN }),
    ..LLAMA2_7B
};

/// DeepSeek-V3, without its prediction of further tokens: 671,026,404,352 parameters, of which a token uses 37 billion.
pub const DEEPSEEK_V3: Model = Model {
    layers: 61,
    hidden: 7168,
    feed_forward: 18_432,
    heads: 128,
    kv_heads: 128,
    sequence: 4096,
    vocabulary: 129_280,
    experts: Some(Experts { count: 256, top_k: 8, width: 2048, shared: 1, dense_layers: 3 }),
    latent: Some(Latent { queries: 1536, keys: 512, position: 64, head: 128, value: 128 }),
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
    ModelInfo {
        name: "deepseek-v3",
        summary: "DeepSeek-V3, 256 experts a layer and a shared one, in samples of 4096 tokens",
        source: "DeepSeek-AI (2024)",
        model: DEEPSEEK_V3,
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
        let own = |layer| self.dense(layer).all() + self.expert(layer).all() * self.expert_count();
        let first = u128::from(self.dense_layers());
        let layers = own(0) * first + own(self.layers) * (u128::from(self.layers) - first);
        let projection = if self.tied { 0 } else { self.tokens() };
        let ends = self.tokens() + self.position_weights() + projection + self.norm();
        ends.saturating_add(layers)
    }

    /// Keys, or values, of a token: numbers in all heads.
    pub(super) fn kv_hidden(&self) -> u128 {
        let head = match self.latent {
            Some(latent) => return self.score_width(latent),
            None => self.hidden.checked_div(self.heads).unwrap_or(0),
        };
        u128::from(head) * u128::from(self.kv_heads)
    }
    /// The matrices of attention: queries, keys, values and the output.
    pub(super) fn attention_matrices(&self) -> u128 {
        let hidden = u128::from(self.hidden);
        match self.latent {
            None => 2 * hidden * hidden + 2 * hidden * self.kv_hidden(),
            Some(latent) => self.down(latent) + self.up(latent),
        }
    }
    /// Of latent attention, the matrices to the vectors, which every rank has.
    fn down(&self, latent: Latent) -> u128 {
        let Latent { queries, keys, position, .. } = latent;
        u128::from(self.hidden) * (u128::from(queries) + u128::from(keys) + u128::from(position))
    }
    /// And those from there to the heads, and of the output.
    fn up(&self, latent: Latent) -> u128 {
        let Latent { queries, keys, position, head, value } = latent;
        let [queries, keys, position, head, value] =
            [queries, keys, position, head, value].map(u128::from);
        let of_head = queries * (head + position) + keys * (head + value);
        u128::from(self.heads) * (of_head + value * u128::from(self.hidden))
    }
    /// Half of the numbers of a key and a value, in all heads.
    fn score_width(&self, latent: Latent) -> u128 {
        let Latent { position, head, value, .. } = latent;
        let both = u128::from(position) + u128::from(head) + u128::from(value);
        u128::from(self.heads) * both / 2
    }
    /// Half of the numbers that scores are made from, and values weighed with, in all heads.
    pub(super) fn scores(&self) -> u128 {
        self.latent.map_or(u128::from(self.hidden), |latent| self.score_width(latent))
    }
    /// The matrices of one MLP: in a layer without experts, or of one expert.
    pub(super) fn mlp_matrices(&self, is_dense: bool) -> u128 {
        let width = u128::from(self.width(is_dense));
        (2 + u128::from(self.gated)) * u128::from(self.hidden) * width
    }
    fn width(&self, is_dense: bool) -> u32 {
        match self.experts {
            Some(Experts { width: width @ 1.., .. }) if !is_dense => width,
            _ => self.feed_forward,
        }
    }
    /// Whether a layer has one MLP.
    pub(super) fn is_dense(&self, layer: u32) -> bool {
        layer < self.dense_layers() || self.experts.is_none()
    }
    fn dense_layers(&self) -> u32 {
        self.experts.map_or(0, |experts| experts.dense_layers.min(self.layers))
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
    pub(super) fn dense(&self, layer: u32) -> Weights {
        let hidden = u128::from(self.hidden);
        let biases = u128::from(self.biases);
        // A latent vector has a normalisation.
        let own = self.latent.map_or(0, |latent| {
            self.down(latent) + u128::from(latent.queries) + u128::from(latent.keys)
        });
        let cut = self.latent.map_or_else(|| self.attention_matrices(), |latent| self.up(latent));
        let is_dense = self.is_dense(layer);
        // How many MLPs each token goes through.
        let (mlps, router) = match self.experts {
            Some(experts) if !is_dense => (u128::from(experts.shared), self.router()),
            _ => (1, 0),
        };
        let mlp = self.mlp(is_dense);
        Weights {
            split: cut + biases * (hidden + 2 * self.kv_hidden()) + mlps * mlp.split,
            whole: own + biases * hidden + 2 * self.norm() + router + mlps * mlp.whole,
        }
    }

    /// One expert of a layer; nothing if there are none.
    pub(super) fn expert(&self, layer: u32) -> Weights {
        match self.is_dense(layer) {
            true => Weights::default(),
            false => self.mlp(false),
        }
    }

    fn mlp(&self, is_dense: bool) -> Weights {
        let biases = u128::from(self.biases);
        let width = u128::from(self.width(is_dense));
        let up = biases * (1 + u128::from(self.gated)) * width;
        Weights { split: self.mlp_matrices(is_dense) + up, whole: biases * u128::from(self.hidden) }
    }

    fn expert_count(&self) -> u128 {
        self.experts.map_or(0, |experts| experts.count.into())
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
        let one = Experts { count: 1, top_k: 1, ..Experts::PLAIN };
        let experts = self.experts.unwrap_or(one);
        let sizes = sizes.into_iter().chain([("experts", experts.count), ("top_k", experts.top_k)]);
        for (key, size) in sizes {
            if size == 0 || size > MOST {
                return refuse(key, format!("{size} is out of range; use 1 to {MOST}"));
            }
        }
        let Experts { width, shared, dense_layers, .. } = experts;
        let more =
            [("expert_width", width), ("shared_experts", shared), ("dense_layers", dense_layers)];
        for (key, size) in more {
            if size > MOST {
                return refuse(key, format!("{size} is out of range; use 0 to {MOST}"));
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
            let Experts { count, top_k, .. } = experts;
            return refuse("top_k", format!("a token cannot take {top_k} of {count}; use fewer"));
        }
        match self.count() > MOST_PARAMETERS {
            true => refuse("layers", "more than 2^53 parameters; make the model smaller"),
            false => Ok(()),
        }
    }
}
