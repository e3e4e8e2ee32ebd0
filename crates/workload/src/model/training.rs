//! How a model is trained, and on how many ranks that is possible.

use super::refuse;
use super::shape::{MOST, Model};
use crate::WorkloadError;
use crate::experts::{Numbers, Way};
use crate::trace::Degrees;
use weft_units::Time;

/// What the data-parallel ranks share instead of holding copies (Rajbhandari et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zero {
    /// Nothing: gradients are all-reduced.
    Nothing,
    /// The optimizer's state.
    Optimizer,
    /// That and gradients: they are reduced after every micro-batch.
    Gradients,
    /// That and parameters: they are gathered whenever a layer needs them.
    Parameters,
}

/// What is computed again in the backward pass instead of being kept (Korthikanti et al. 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// Nothing is computed again.
    Nothing,
    /// The scores of attention.
    Selective,
    /// Every layer, with its tensor- and expert-parallel exchanges.
    Full,
}

/// What gradients are reduced in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradients {
    /// 16 bits.
    Bf16,
    /// 32 bits.
    Fp32,
}

/// In which order a stage takes its micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// All forward, then all backward (Huang et al. 2019).
    GPipe,
    /// As soon as the pipeline is full, one forward and one backward by turns (Narayanan et al.
    /// 2019, 2021).
    OneForwardOneBackward,
}

/// How long computations take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As long as their operations take.
    Operations {
        /// Floating-point operations that a rank could do in a second.
        peak: f64,
        /// The share of them that it does, above 0 and up to 1.
        efficiency: f64,
    },
    /// What was measured, of one micro-batch at one rank.
    Given {
        /// A layer forward, also where it is done again.
        forward: Time,
        /// A layer backward, with selective recomputation if there is any.
        backward: Time,
        /// The projection onto the vocabulary and the loss, forward.
        head_forward: Time,
        /// The same backward.
        head_backward: Time,
    },
}

/// How ranks that share a sequence attend to all of it. Each has as much of it, cut so that all have as
/// much to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Keys and values go around the ring of them, while what has come is computed with (Liu et al. 2023).
    Ring,
    /// All keys and values come together first (Llama 3, 2024).
    AllGather,
}

/// How tokens get to their experts, and which these are; as in [`Experts`](crate::Experts).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// How they get there.
    pub way: Way,
    /// How unequally popular experts are (Zipf).
    pub skew: f64,
    /// Nodes at most that a token goes to; `None`: all.
    pub node_limit: Option<u32>,
    /// Messages from a GPU to a node.
    pub chunks: u32,
    /// What is dispatched.
    pub dispatch: Numbers,
    /// What is combined.
    pub combine: Numbers,
}

/// Where a training runs, and what is drawn for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Ranks that follow each other in a node.
    pub gpus: u32,
    /// The seed of the tokens' choices.
    pub seed: u64,
}

impl Ground {
    /// A node for each rank.
    pub const EACH: Ground = Ground { gpus: 1, seed: 0 };
}

/// The training of a model. [`Training::generate`] makes the trace of one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// What traces and errors call it.
    pub name: String,
    /// What is trained.
    pub model: Model,
    /// Samples in an iteration.
    pub global_batch: u64,
    /// Samples that a pipeline takes at once.
    pub micro_batch: u32,
    /// Tensor- and expert-parallel ranks and pipeline stages; the other ranks are data-parallel,
    /// among whom the expert-parallel ones are.
    pub degrees: Degrees,
    /// How ranks that share a sequence attend to all of it.
    pub attention: Attention,
    /// How tokens get to their experts; `None`: as many to each, by an all-to-all.
    pub routing: Option<Routing>,
    /// What data-parallel ranks share.
    pub zero: Zero,
    /// Whether what is between tensor-parallel regions is cut along the sequence (Korthikanti
    /// et al. 2022).
    pub sequence_parallel: bool,
    /// What is computed again.
    pub recompute: Recompute,
    /// What gradients are reduced in.
    pub gradients: Gradients,
    /// Whether gradients are reduced during the backward pass, and parameters gathered ahead
    /// (ZeRO 3), rather than while the rank waits.
    pub overlap: bool,
    /// With overlap: gradients are reduced as soon as whole layers have so many bytes of them.
    /// ZeRO 3 does not wait for more than one layer.
    pub bucket: u64,
    /// In which order micro-batches are taken.
    pub schedule: Schedule,
    /// How long computations take.
    pub pace: Pace,
    /// How long the optimizer's step takes at a rank.
    pub update: Time,
}

/// Enough for any real iteration; every node of a graph costs memory.
const MOST_NODES: u64 = 1 << 22;
/// No more is needed for one step of a layer, and sums stay far from an overflow.
pub(super) const LONGEST: Time = Time::secs(1_000);

impl Training {
    /// The training of `model`, every rank for itself with a micro-batch of one sample, on an
    /// A100 at half its 312 TFLOP/s: what to start from.
    pub fn of(name: impl Into<String>, model: Model) -> Training {
        Training {
            name: name.into(),
            model,
            global_batch: 1,
            micro_batch: 1,
            degrees: Degrees::NONE,
            attention: Attention::Ring,
            routing: None,
            zero: Zero::Nothing,
            sequence_parallel: false,
            recompute: Recompute::Nothing,
            gradients: Gradients::Fp32,
            overlap: true,
            // PyTorch's DistributedDataParallel.
            bucket: 25 << 20,
            schedule: Schedule::OneForwardOneBackward,
            pace: Pace::Operations { peak: 312e12, efficiency: 0.5 },
            update: Time::ZERO,
        }
    }

    /// Whether layers and their matrices can be cut.
    pub(super) fn check_split(&self) -> Result<(), WorkloadError> {
        let (Model { layers, heads, kv_heads, feed_forward, sequence, .. }, tensor) =
            (self.model, self.degrees.tensor);
        let context = self.degrees.context;
        if !sequence.is_multiple_of(context) {
            let what = format!("a sequence of {sequence} cannot be cut among {context} ranks");
            return refuse("context", format!("{what}; use a divisor"));
        }
        let stages = self.degrees.pipeline;
        if !layers.is_multiple_of(stages) {
            let what = format!("{layers} layers cannot be cut into {stages} stages; use a divisor");
            return refuse("pipeline", what);
        }
        let cut = [("heads", heads), ("kv_heads", kv_heads), ("feed_forward", feed_forward)];
        let sequence = self.sequence_parallel.then_some(("sequence", sequence / context));
        for (key, count) in cut.into_iter().chain(sequence) {
            if !count.is_multiple_of(tensor) {
                let what = format!("{key} = {count} cannot be cut among {tensor} ranks");
                return refuse("tensor", format!("{what}; use a divisor"));
            }
        }
        Ok(())
    }

    pub(super) fn check_experts(&self) -> Result<(), WorkloadError> {
        let degree = self.degrees.expert;
        match self.model.experts {
            None if degree > 1 => {
                refuse("expert", "the model has no experts; use 1, or give it some")
            }
            Some(experts) if !experts.count.is_multiple_of(degree) => {
                let count = experts.count;
                let what = format!("{count} experts cannot be cut among {degree} ranks");
                refuse("expert", format!("{what}; use a divisor"))
            }
            _ => Ok(()),
        }
    }

    /// How many micro-batches pass through each of `data` pipelines.
    pub(super) fn micro_batches(&self, data: u32) -> Result<u32, WorkloadError> {
        let (batch, micro) = (self.global_batch, self.micro_batch);
        if micro == 0 || micro > MOST {
            return refuse("micro_batch", format!("{micro} is out of range; use 1 to {MOST}"));
        }
        let together = u64::from(micro) * u64::from(data);
        if batch == 0 || !batch.is_multiple_of(together) {
            return refuse(
                "global_batch",
                format!(
                    "{batch} samples cannot be cut into micro-batches of {micro} for {data} \
                     data-parallel ranks; use a multiple of {together}"
                ),
            );
        }
        let count = batch / together;
        // A layer has up to 35 nodes a micro-batch, embedding and projection fewer; and up to seven for each
        // part of a sequence.
        let of_layer = 35 + 7 * u64::from(self.degrees.context);
        let nodes =
            (u64::from(self.model.layers) + 2 * u64::from(self.degrees.pipeline)) * of_layer;
        match u32::try_from(count).ok().filter(|_| count.saturating_mul(nodes) <= MOST_NODES) {
            Some(count) => Ok(count),
            None => refuse(
                "global_batch",
                format!("{count} micro-batches are too many; use fewer samples or larger ones"),
            ),
        }
    }

    pub(super) fn check_pace(&self) -> Result<(), WorkloadError> {
        if let Pace::Operations { peak, efficiency } = self.pace {
            if !(peak.is_finite() && peak > 0.0) {
                let what = format!("{peak} operations a second are not possible; use 312e12 or so");
                return refuse("peak", what);
            }
            if !(efficiency > 0.0 && efficiency <= 1.0) {
                let what =
                    format!("{efficiency} is no share of the peak; use one above 0, up to 1");
                return refuse("efficiency", what);
            }
        }
        match self.update > LONGEST {
            true => refuse("update", format!("{} is too long; use up to {LONGEST}", self.update)),
            false => Ok(()),
        }
    }
}
