//! Training iterations from the numbers of a model: what every pipeline stage computes, and
//! what it exchanges with whom.
//!
//! | module | what it holds |
//! |---|---|
//! | [`shape`] | [`Model`]: layers and widths; how many parameters; the shipped models |
//! | [`training`] | [`Training`]: how a model is trained, by how many ranks; what is refused |
//! | [`TRAINING_OPTIONS`] | the same as an experiment file tells it |
//! | `sizes` | bytes of every collective and operations of every step |
//! | `stage` | the graph of a stage: forward and backward, micro-batch by micro-batch |
//! | `context` | attention where ranks share a sequence |
//! | `generate` | what is refused, then a graph for each stage |
//! | `gradients` | gradients, gathered weights, the optimizer's step |
//!
//! B samples are trained in an iteration, b in a micro-batch, each of s tokens of h numbers, in
//! L layers, by t tensor-parallel times d data-parallel times p pipeline ranks; m = B / (b d)
//! micro-batches pass through each pipeline. A = 2 b s h bytes are what a layer hands to the next
//! (16-bit numbers), W are the parameters of a rank, G the bytes of a gradient (4 or 2), V the
//! vocabulary. Where c ranks share a sequence, they count as data-parallel ones for gradients and weights; s is their
//! part of it, and K = 4 b s h_kv / t are the keys and values of that part. What is exchanged, in terms of the
//! larger buffer of a rank:
//!
//! | what | how much, per micro-batch unless said otherwise |
//! |---|---|
//! | tensor, a layer | all-reduce(A) after attention and after the MLP, in each direction |
//! | ... with full recomputation | 2 all-reduce(A) more |
//! | ... with sequence parallelism | 6 all-gather(A), 4 reduce-scatter(A); full: 2 and 2 more |
//! | tensor, embedding | all-reduce(A) forward |
//! | ... with sequence parallelism | reduce-scatter(A) forward, all-gather(A) backward |
//! | tensor, projection | all-reduce(A) backward |
//! | ... with sequence parallelism | 2 all-gather(A), 1 reduce-scatter(A) |
//! | loss over a cut vocabulary | 3 all-reduce(4 b s) |
//! | pipeline | A from each rank to the next stage and back; A / t with sequence parallelism |
//! | context, a layer, c ranks a sequence | forward c - 1 send-recv(K), backward c - 1 of K and c of its gradients |
//! | ... with `attention` all-gather | all-gather(c K) in each direction, reduce-scatter(c K) backward |
//! | experts, a layer | 2 all-to-all(A k / t) in each direction, k experts a token |
//! | ... with `expert_mode` | what tokens take, drawn for each of up to eight layers ([`crate::experts`]) |
//! | data | all-reduce(G W) an iteration |
//! | data, ZeRO 1 | reduce-scatter(G W) and all-gather(2 W) an iteration |
//! | data, ZeRO 2 | reduce-scatter(G W), and all-gather(2 W) an iteration |
//! | data, ZeRO 3 | 2 all-gather(2 W) and reduce-scatter(G W), layer by layer |
//! | tied embeddings | all-reduce(G V h / t) between first and last stage, an iteration |
//!
//! W is exact: stages differ by embedding and projection, every tensor-parallel rank holds the
//! normalisations, and a tied embedding has two copies if there are several stages; up to these,
//! its mean is the well-known P / (t p). Weights of experts are exchanged among the ranks that
//! hold the same ones, all others among all data-parallel ranks. V / t is rounded up.
//!
//! Operations of a layer: forward 2 for each weight of a matrix and token, and 4 s h a token for
//! attention scores and their use; backward twice as many (Narayanan et al. 2021). Recomputation
//! adds the scores (selective) or all of the layer (full; Korthikanti et al. 2022). The
//! projection counts as a matrix of V h weights; embeddings, normalisations and the loss do
//! not count. Sources of the volumes: Shoeybi et al. (2019), Korthikanti et al. (2022),
//! Rajbhandari et al. (2020).
//!
//! Invariant: all ranks of a stage run the same graph, and a trace that is generated has
//! nothing that keeps it from finishing.
//!
//! What it does not do: interleave stages, overlap tensor-parallel exchanges with computation,
//! pad the vocabulary, drop tokens, compute longer where popular experts are; exchange
//! gradients of normalisations between tensor-parallel ranks, the gradient's norm or the loss's
//! mean.

mod context;
mod generate;
mod gradients;
mod options;
pub mod shape;
mod sizes;
mod stage;
pub mod training;

pub use options::TRAINING_OPTIONS;
pub use shape::{
    DEEPSEEK_V3, Experts, GPT2_SMALL, GPT3_13B, LLAMA2_7B, Latent, MIXTRAL_8X7B, MODELS, Model,
    ModelInfo,
};
pub use training::{
    Attention, Gradients, Ground, Pace, Recompute, Routing, Schedule, Training, Zero,
};

use crate::WorkloadError;

/// Something is wrong with the key.
fn refuse<T>(key: &str, what: impl std::fmt::Display) -> Result<T, WorkloadError> {
    Err(WorkloadError(format!("{key}: {what}")))
}
