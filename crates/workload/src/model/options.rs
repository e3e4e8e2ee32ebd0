//! Trainings as an experiment file tells them.

use super::shape::{Experts, MODELS, Model, ModelInfo};
use super::training::{Attention, Gradients, Pace, Recompute, Routing, Schedule, Training, Zero};
use crate::experts::{MOST_CHUNKS, MOST_SKEW, NUMBERS, Way};
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

const fn option(
    key: &'static str,
    default: &'static str,
    kind: OptionKind,
    meaning: &'static str,
) -> OptionInfo {
    OptionInfo { key, default, kind, meaning }
}

const COUNT: OptionKind = OptionKind::Whole(0, u32::MAX);

/// What a number of the model is without an option of its own.
const MODELS_OWN: &str = "the model's";
const FROM_OPERATIONS: &str = "from operations";

const NAMES: [&str; MODELS.len()] = {
    let mut names = [""; MODELS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = MODELS[at].name;
        at += 1;
    }
    names
};

/// All options of a training, for the catalogue.
pub const TRAINING_OPTIONS: &[OptionInfo] = &[
    option(
        "model",
        "gpt2-small",
        OptionKind::Word(&NAMES),
        "what is trained; the next ones change it",
    ),
    option("layers", MODELS_OWN, COUNT, "how many layers"),
    option("hidden", MODELS_OWN, COUNT, "numbers that stand for a token"),
    option("feed_forward", MODELS_OWN, COUNT, "width of the MLP"),
    option("heads", MODELS_OWN, COUNT, "heads of attention"),
    option("kv_heads", MODELS_OWN, COUNT, "heads of keys and values"),
    option("sequence", MODELS_OWN, COUNT, "tokens in a sample"),
    option("vocabulary", MODELS_OWN, COUNT, "different tokens"),
    option("positions", MODELS_OWN, COUNT, "learned embeddings of positions; 0: none"),
    option("tied", MODELS_OWN, OptionKind::Flag, "whether embedding and projection are one"),
    option("gated", MODELS_OWN, OptionKind::Flag, "whether the MLP has a gate"),
    option(
        "biases",
        MODELS_OWN,
        OptionKind::Flag,
        "whether matrices and normalisations have biases",
    ),
    option(
        "experts",
        MODELS_OWN,
        COUNT,
        "MLPs of a layer, of which a token takes top_k; 0: just one",
    ),
    option("top_k", "2", COUNT, "with experts: how many a token takes"),
    option("expert_width", MODELS_OWN, COUNT, "with experts: width of one; 0: feed_forward"),
    option("shared_experts", MODELS_OWN, COUNT, "with experts: how many more every token takes"),
    option(
        "dense_layers",
        MODELS_OWN,
        COUNT,
        "with experts: first layers that have one MLP instead",
    ),
    option("global_batch", "64", COUNT, "samples in an iteration"),
    option("micro_batch", "1", COUNT, "samples that a pipeline takes at once"),
    option("tensor", "1", COUNT, "ranks that share a layer's tensors"),
    option("expert", "1", COUNT, "data-parallel ranks that share the experts"),
    option(
        "expert_mode",
        "even",
        OptionKind::Word(&["even", "normal", "low-latency"]),
        "how tokens get to experts: even, an all-to-all with as many for each; normal, once to each \
         node and forwarded there; low-latency, straight to each",
    ),
    option(
        "expert_skew",
        "0",
        OptionKind::Number(0.0, MOST_SKEW),
        "unless even: the j-th most popular expert gets 1 / j^this (Zipf)",
    ),
    option(
        "node_limit",
        "all",
        OptionKind::Or(&OptionKind::Whole(1, u32::MAX), "all"),
        "unless even: nodes at most on which a token takes experts",
    ),
    option(
        "expert_chunks",
        "8",
        OptionKind::Whole(1, MOST_CHUNKS),
        "if normal: messages from a GPU to a node",
    ),
    option(
        "dispatch",
        "fp8",
        OptionKind::Word(&["fp8", "bf16"]),
        "unless even: what tokens travel in to experts: fp8 or bf16",
    ),
    option("combine", "bf16", OptionKind::Word(&["fp8", "bf16"]), "and back"),
    option("context", "1", COUNT, "data-parallel ranks that share a sequence"),
    option(
        "attention",
        "ring",
        OptionKind::Word(&["ring", "all-gather"]),
        "with context, how they attend to all of it: ring, keys and values go around while what has come is \
         computed with; all-gather, they come together first",
    ),
    option("pipeline", "1", COUNT, "pipeline stages"),
    option(
        "zero",
        "0",
        OptionKind::Word(&["0", "1", "2", "3"]),
        "what data-parallel ranks share: 0 nothing, 1 optimizer, 2 and gradients, 3 and parameters",
    ),
    option(
        "sequence_parallel",
        "false",
        OptionKind::Flag,
        "whether activations are cut along the sequence",
    ),
    option(
        "recompute",
        "none",
        OptionKind::Word(&["none", "selective", "full"]),
        "computed again backward: none, selective or full",
    ),
    option(
        "gradients",
        "fp32",
        OptionKind::Word(&["bf16", "fp32"]),
        "what gradients are reduced in: bf16 or fp32",
    ),
    option(
        "overlap",
        "true",
        OptionKind::Flag,
        "whether gradients are reduced during the backward pass",
    ),
    option(
        "bucket",
        "25MiB",
        OptionKind::Size(0, u64::MAX),
        "with overlap: gradients that are reduced together, at least",
    ),
    option(
        "schedule",
        "1f1b",
        OptionKind::Word(&["gpipe", "1f1b"]),
        "order of micro-batches: gpipe or 1f1b",
    ),
    option(
        "peak",
        "312e12",
        OptionKind::Number(f64::NEG_INFINITY, f64::INFINITY),
        "floating-point operations that a rank could do in a second",
    ),
    option(
        "efficiency",
        "0.5",
        OptionKind::Number(f64::NEG_INFINITY, f64::INFINITY),
        "the share of them that it does",
    ),
    option(
        "forward",
        FROM_OPERATIONS,
        OptionKind::Time(Time::ZERO),
        "time of a layer forward, for a micro-batch",
    ),
    option("backward", FROM_OPERATIONS, OptionKind::Time(Time::ZERO), "time of a layer backward"),
    option(
        "head_forward",
        "0ns",
        OptionKind::Time(Time::ZERO),
        "with forward: time of projection and loss forward",
    ),
    option("head_backward", "0ns", OptionKind::Time(Time::ZERO), "with forward: the same backward"),
    option("update", "0ns", OptionKind::Time(Time::ZERO), "time of the optimizer's step"),
];

impl Training {
    /// The training that options tell, as an experiment file writes them, and all options as
    /// they were understood. Whether it is possible, [`Training::generate`] says.
    ///
    /// # Errors
    /// If an option is unknown, or a value is not what it takes.
    pub fn resolve(given: &[(&str, &str)]) -> Result<(Training, ResolvedOptions), OptionError> {
        let mut options = Options::new("training", TRAINING_OPTIONS, given)?;
        let names: Vec<_> = MODELS.iter().map(|info| (info.name, info)).collect();
        let info = options.choice("model", &names)?;
        let mut training = Training::of(info.name, changed(info.model, &mut options)?);
        training.global_batch = options.number("global_batch")?.into();
        training.micro_batch = options.number("micro_batch")?;
        training.degrees.tensor = options.number("tensor")?;
        training.degrees.expert = options.number("expert")?;
        training.routing = routing(&mut options)?;
        training.degrees.context = options.number("context")?;
        if training.degrees.context > 1 {
            let ways = [("ring", Attention::Ring), ("all-gather", Attention::AllGather)];
            training.attention = options.choice("attention", &ways)?;
        }
        training.degrees.pipeline = options.number("pipeline")?;
        training.sequence_parallel = options.flag("sequence_parallel")?;
        training.read_choices(&mut options)?;
        training.overlap = options.flag("overlap")?;
        if training.overlap {
            training.bucket = options.size("bucket")?;
        }
        training.pace = pace(&mut options)?;
        training.update = options.time("update")?;
        Ok((training, options.resolve()?))
    }

    fn read_choices(&mut self, options: &mut Options<'_>) -> Result<(), OptionError> {
        let zeros = [
            ("0", Zero::Nothing),
            ("1", Zero::Optimizer),
            ("2", Zero::Gradients),
            ("3", Zero::Parameters),
        ];
        let recompute = [
            ("none", Recompute::Nothing),
            ("selective", Recompute::Selective),
            ("full", Recompute::Full),
        ];
        let schedules = [("gpipe", Schedule::GPipe), ("1f1b", Schedule::OneForwardOneBackward)];
        self.zero = options.choice("zero", &zeros)?;
        self.recompute = options.choice("recompute", &recompute)?;
        let gradients = [("bf16", Gradients::Bf16), ("fp32", Gradients::Fp32)];
        self.gradients = options.choice("gradients", &gradients)?;
        self.schedule = options.choice("schedule", &schedules)?;
        Ok(())
    }
}

impl ModelInfo {
    /// The model's own numbers: options of which it has other defaults than
    /// [`TRAINING_OPTIONS`] say, and these as an experiment file writes them.
    pub fn defaults(&self) -> Vec<(&'static str, String)> {
        let mut model = self.model;
        let experts = ("experts", model.experts.map_or(0, |experts| experts.count).to_string());
        let of_experts = model.experts.map(|experts| {
            [
                ("top_k", experts.top_k),
                ("expert_width", experts.width),
                ("shared_experts", experts.shared),
                ("dense_layers", experts.dense_layers),
            ]
            .map(|(key, number)| (key, number.to_string()))
        });
        let numbers = numbers(&mut model).map(|(key, number)| (key, number.to_string()));
        let flags = flags(&mut model).map(|(key, flag)| (key, flag.to_string()));
        numbers
            .into_iter()
            .chain(flags)
            .chain([experts])
            .chain(of_experts.into_iter().flatten())
            .collect()
    }
}

/// The numbers of a model that are options.
fn numbers(model: &mut Model) -> [(&'static str, &mut u32); 8] {
    [
        ("layers", &mut model.layers),
        ("hidden", &mut model.hidden),
        ("feed_forward", &mut model.feed_forward),
        ("heads", &mut model.heads),
        ("kv_heads", &mut model.kv_heads),
        ("sequence", &mut model.sequence),
        ("vocabulary", &mut model.vocabulary),
        ("positions", &mut model.positions),
    ]
}

/// The choices of a model that are options.
fn flags(model: &mut Model) -> [(&'static str, &mut bool); 3] {
    [("tied", &mut model.tied), ("gated", &mut model.gated), ("biases", &mut model.biases)]
}

/// The model with the numbers that were given.
fn changed(mut model: Model, options: &mut Options<'_>) -> Result<Model, OptionError> {
    for (key, number) in numbers(&mut model) {
        *number = options.number_if_given(key)?.unwrap_or(*number);
    }
    for (key, flag) in flags(&mut model) {
        if options.has(key) {
            *flag = options.flag(key)?;
        }
    }
    let own = model.experts.unwrap_or(Experts::PLAIN);
    model.experts = match options.number_if_given("experts")?.unwrap_or(own.count) {
        0 => None,
        count => {
            let top_k = match (options.has("top_k"), own.top_k) {
                (false, top_k @ 1..) => top_k,
                _ => options.number("top_k")?,
            };
            let mut given = |key, own| Ok(options.number_if_given(key)?.unwrap_or(own));
            Some(Experts {
                count,
                top_k,
                width: given("expert_width", own.width)?,
                shared: given("shared_experts", own.shared)?,
                dense_layers: given("dense_layers", own.dense_layers)?,
            })
        }
    };
    Ok(model)
}

fn routing(options: &mut Options<'_>) -> Result<Option<Routing>, OptionError> {
    let modes =
        [("even", None), ("normal", Some(Way::Normal)), ("low-latency", Some(Way::LowLatency))];
    let Some(way) = options.choice("expert_mode", &modes)? else { return Ok(None) };
    Ok(Some(Routing {
        way,
        skew: options.fraction("expert_skew")?,
        node_limit: options.number_or_word("node_limit")?,
        chunks: match way {
            Way::Normal => options.number("expert_chunks")?,
            Way::LowLatency => 1,
        },
        dispatch: options.choice("dispatch", &NUMBERS)?,
        combine: options.choice("combine", &NUMBERS)?,
    }))
}

fn pace(options: &mut Options<'_>) -> Result<Pace, OptionError> {
    let given = ["forward", "backward"].map(|key| options.has(key));
    let mut time = |key: &str| -> Result<Time, OptionError> {
        match options.has(key) || key.starts_with("head") {
            true => options.time(key),
            false => Err(OptionError::new(key, "missing beside the other direction; give both")),
        }
    };
    if given.contains(&true) {
        return Ok(Pace::Given {
            forward: time("forward")?,
            backward: time("backward")?,
            head_forward: time("head_forward")?,
            head_backward: time("head_backward")?,
        });
    }
    Ok(Pace::Operations {
        peak: options.fraction("peak")?,
        efficiency: options.fraction("efficiency")?,
    })
}
