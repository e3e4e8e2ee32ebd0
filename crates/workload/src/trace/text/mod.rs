//! Text workloads of ASTRA-sim and of AICB/SimAI: one graph for all ranks.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 64
//! 2
//! attention -1 752000 ALLREDUCE 20971520 752000 ALLREDUCE 20971520 752000 NONE 0 100
//! mlp       -1 750000 ALLREDUCE 20971520 750000 ALLREDUCE 20971520 750000 NONE 0 100
//! ```
//!
//! The first line names the policy and, for some, degrees of parallelism; the second says how
//! many layers follow. A row has a name, a number that is not used, then time, communication
//! and bytes of the forward pass, of the input gradient and of the weight gradient, and the
//! time of the update. What the columns mean depends on who wrote the file ([`Dialect`]):
//!
//! | | ASTRA-sim | AICB/SimAI |
//! |---|---|---|
//! | told by | other headers | `HYBRID_TRANSFORMER_FWD_IN_BCKWD`; `MICRO`, rows `micro_test` |
//! | unit of time | us for policies that Chakra's converter reads, ns for the others | ns |
//! | bytes of an all-gather | one rank's part | all of it |
//! | rows of `MICRO` | all at once | one after the other |
//! | update | only where the unit is ns | yes |
//!
//! A communication may end in `_EP` (among the expert-parallel ranks) or `_DP_EP` (among those
//! that hold the same experts). Without a suffix, forward and input gradient concern the
//! tensor-parallel ranks and the weight gradient the data-parallel ones, where the policy and
//! the degrees say so, and else all ranks. Source: `Workload.cc` of ASTRA-sim 1 and of SimAI,
//! Chakra's text converter, AICB's generator.
//!
//! Invariant: the order of a graph is that of its policy in those sources. What it does not
//! do: pipelines; the rows are those of one stage, and what stages send each other is not in
//! them (a remark says so).

mod lower;
mod rows;

use super::format::{GATHERED, read_gathered};
use super::{Degrees, Gathered, Remark, Trace, TraceFormat, TraceFormatInfo, TraceSource};
use crate::WorkloadError;
use lower::Lowering;
use rows::{Header, Layer, Policy, parse};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// Who wrote a text workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// ASTRA-sim, versions 1 and later.
    AstraSim,
    /// AICB, for SimAI.
    Aicb,
}

/// How to read what the format leaves open; `None` takes what the file suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Who wrote it.
    pub dialect: Option<Dialect>,
    /// What 1 in the columns of times means.
    pub unit: Option<Time>,
    /// What an all-gather's bytes count.
    pub gathered: Option<Gathered>,
    /// Degrees of parallelism; those of the header otherwise, and without any, collectives
    /// concern all ranks.
    pub degrees: Option<Degrees>,
    /// How often the job runs through all layers, from 1.
    pub passes: u32,
    /// Whether each step waits for the one before it, communications included.
    pub serial: bool,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            dialect: None,
            unit: None,
            gathered: None,
            degrees: None,
            passes: 1,
            serial: false,
        }
    }
}

impl TraceFormat for TextOptions {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "text workload",
        summary: "a text workload: layer by layer, the same for all ranks",
        source: "ASTRA-sim; AICB and SimAI",
        ends: &[".txt"],
        per_rank: false,
        alike: false,
        side_file: None,
        options: OPTIONS,
        example: b"DATA\n1\na -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 4096 5\n",
    };

    fn read(options: &mut Options<'_>) -> Result<TextOptions, OptionError> {
        let gathered = read_gathered(options)?;
        let unit = options.time_or_word("time_unit")?;
        let passes = options.number("passes")?;
        let serial = options.flag("serial")?;
        let mut degree = |key| options.number_or_word(key);
        let [tensor, expert, pipeline] =
            [degree("tensor")?, degree("expert")?, degree("pipeline")?];
        let one = |degree: Option<u32>| degree.unwrap_or(1);
        let degrees = tensor.or(expert).or(pipeline).map(|_| Degrees {
            context: 1,
            tensor: one(tensor),
            expert: one(expert),
            pipeline: one(pipeline),
        });
        Ok(TextOptions { dialect: None, unit, gathered, degrees, passes, serial })
    }
    fn recognises(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(is_text_workload)
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let (name, text) = files.text()?;
        read_text(&name, &text, self)
    }
}

/// Ranks that share something, unless the header tells.
const DEGREE: OptionKind = OptionKind::Or(&OptionKind::Whole(1, 65_536), "header");

/// What the format leaves open.
const OPTIONS: &[OptionInfo] = &[
    GATHERED,
    OptionInfo {
        key: "time_unit",
        default: "format",
        kind: OptionKind::Or(&OptionKind::Time(Time::ps(1)), "format"),
        meaning: "text: what 1 in a column of times is",
    },
    OptionInfo {
        key: "passes",
        default: "1",
        kind: OptionKind::Whole(1, 1_000),
        meaning: "text: how often the job runs through",
    },
    OptionInfo {
        key: "serial",
        default: "false",
        kind: OptionKind::Flag,
        meaning: "text: whether each step waits for the one before it",
    },
    OptionInfo {
        key: "tensor",
        default: "header",
        kind: DEGREE,
        meaning: "text: ranks that share tensors",
    },
    OptionInfo {
        key: "expert",
        default: "header",
        kind: DEGREE,
        meaning: "text: ranks that share experts",
    },
    OptionInfo {
        key: "pipeline",
        default: "header",
        kind: DEGREE,
        meaning: "text: pipeline stages",
    },
];

/// Whether a text begins as a text workload does.
pub fn is_text_workload(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split_ascii_whitespace().next().is_some_and(|word| Policy::named(word).is_some())
}

/// Reads a text workload; `name` is what errors call the file. The number of ranks is open
/// unless the header says `all_gpus`; [`Trace::for_ranks`] settles or changes it.
///
/// # Errors
/// The first thing that is not understood, with its line; a number of passes of 0; or more than
/// 2^32 steps.
pub fn read_text(name: &str, text: &str, options: &TextOptions) -> Result<Trace, WorkloadError> {
    let (header, mut layers) = parse(name, text)?;
    let remarks = remarks(&header, &mut layers);
    let settled = settle(options, &header, &layers);
    let (graph, groups) = Lowering::run(name, &header, &layers, &settled)?;
    let trace = Trace {
        exchanges: Vec::new(),
        carried: Vec::new(),
        name: name.into(),
        ranks: None,
        graphs: vec![graph],
        shared: true,
        groups,
        degrees: settled.degrees.unwrap_or(Degrees::NONE),
        remarks,
    };
    match header.ranks {
        0 => Ok(trace),
        ranks => trace.for_ranks(ranks),
    }
}

/// The options, decided.
struct Settled {
    dialect: Dialect,
    unit: Time,
    gathered: Gathered,
    /// `None`: all collectives concern all ranks.
    degrees: Option<Degrees>,
    passes: u32,
    serial: bool,
    updates: bool,
}

fn settle(options: &TextOptions, header: &Header, layers: &[Layer]) -> Settled {
    let dialect = options.dialect.unwrap_or_else(|| dialect(header, layers));
    Settled {
        dialect,
        unit: options.unit.unwrap_or_else(|| unit(dialect, header.policy)),
        gathered: options.gathered.unwrap_or(match dialect {
            Dialect::AstraSim => Gathered::Shard,
            Dialect::Aicb => Gathered::Whole,
        }),
        degrees: options.degrees.or_else(|| degrees(header)),
        passes: options.passes,
        serial: options.serial,
        updates: dialect == Dialect::Aicb || !converted(header.policy),
    }
}

/// Whether Chakra's text converter reads files of this policy; it drops updates and takes times
/// for microseconds.
fn converted(policy: Policy) -> bool {
    matches!(
        policy,
        Policy::Micro
            | Policy::Data
            | Policy::Model
            | Policy::DataModel
            | Policy::ModelData
            | Policy::Dlrm
            | Policy::DlrmEnhanced
    )
}

fn dialect(header: &Header, layers: &[Layer]) -> Dialect {
    match header.policy {
        Policy::ForwardInBackward => Dialect::Aicb,
        Policy::Micro if layers.iter().all(|layer| layer.name == "micro_test") => Dialect::Aicb,
        _ => Dialect::AstraSim,
    }
}

fn unit(dialect: Dialect, policy: Policy) -> Time {
    match dialect == Dialect::AstraSim && converted(policy) {
        true => Time::us(1),
        false => Time::ns(1),
    }
}

/// The degrees that the header gives.
fn degrees(header: &Header) -> Option<Degrees> {
    let transformer = matches!(header.policy, Policy::Transformer | Policy::ForwardInBackward);
    let Header { tensor, expert, pipeline, .. } = header;
    transformer.then_some(Degrees {
        context: 1,
        tensor: (*tensor).max(1),
        expert: (*expert).max(1),
        pipeline: (*pipeline).max(1),
    })
}

/// What is left out or differs from what the header says; layers beyond the declared ones go.
fn remarks(header: &Header, layers: &mut Vec<Layer>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |what: String, count: u64| remarks.push(Remark { what, count });
    let (declared, found) = (header.layers, layers.len() as u64);
    if found < declared {
        let what = format!("layers missing: {declared} are declared, {found} are there");
        remark(what, declared - found);
    }
    if found > declared {
        let what = format!("layers left out: {declared} are declared, {found} are there");
        remark(what, found - declared);
        layers.truncate(usize::try_from(declared).unwrap_or(usize::MAX));
    }
    if header.pipeline > 1 {
        let (stages, bytes) = (header.pipeline, header.pipeline_bytes);
        remark(format!("a pipeline of {stages} stages, which send {bytes} B: not in the rows"), 1);
    }
    remarks
}
