//! Traces of real jobs, as other tools write them, lowered to one representation.
//!
//! | module | what it holds |
//! |---|---|
//! | [`rank_graph`] | [`RankGraph`]: nodes and what they wait for; [`Work`]: what a node does |
//! | [`groups`] | [`Group`]: which ranks a collective concerns, for any number of ranks |
//! | [`chakra`] | MLCommons Chakra execution traces, one `.et` file a rank |
//! | [`text`] | text workloads of ASTRA-sim and of AICB/SimAI, one graph for all ranks |
//! | [`comm_log`] | AICB's lists of communications (CSV), one graph for all ranks |
//! | [`goal`] | GOAL schedules, text and binary: sends, receives and computations of each rank |
//! | [`pytorch`] | Kineto traces of PyTorch's profiler and execution traces, one file a rank |
//! | [`nccl`] | NCCL's log of calls, and what its profiler plugins write |
//! | [`messages`] | messages of hosts as a job |
//! | [`export`] | the formats that jobs are written in |
//! | [`format`](mod@format) | [`TraceFormat`]: what a format says of itself, its options and its reader |
//! | [`foreign`](mod@foreign) | what people take for traces, told apart and named |
//! | [`roofline`] | how long operations and bytes take that a trace only counts |
//! | [`check`](mod@check) | what keeps a trace from ever finishing, with the nodes that wait |
//! | [`summary`] | what is in a trace, counted |
//!
//! One file a format, or a folder; here its `mod` line and one line in the registry. Nothing else in
//! Weft lists formats of traces: the reader of experiment files, `weft list`, `weft trace info` and the
//! tests go by [`TRACE_FORMATS`] (`docs/extend/trace-format.md`).
//!
//! Reading and judging are apart: a reader refuses what it cannot decode, whereas what cannot
//! *run* (a dependency on a node that is not there, a cycle, a receive without a send) is kept
//! and found by [`check`](check::check), so that a broken trace can still be looked at.
//!
//! Invariant: dependencies are indices of nodes of the same graph, groups indices into
//! [`Trace::groups`]; the `turn`s of collectives and transfers say who meets whom, so that
//! nothing depends on which rank came first.
//!
//! What it does not do: open files, choose algorithms, or turn operations into time.

pub mod chakra;
pub mod check;
pub mod comm_log;
pub mod export;
pub mod foreign;
pub mod format;
pub mod goal;
pub mod groups;
pub mod messages;
pub mod nccl;
mod packed;
pub mod pytorch;
pub mod rank_graph;
mod registry;
pub mod roofline;
pub mod summary;
pub mod text;

pub use chakra::{ChakraReader, Dependencies};
pub use check::{Findings, check};
pub use comm_log::{is_comm_log, read_comm_log};
pub use export::{EXPORTS, Export, Written};
pub use foreign::{FOREIGN, Foreign, foreign};
pub use format::{SideFile, TraceFile, TraceFormat, TraceFormatInfo, TraceSource};
pub use groups::{Degrees, Group, Members, Membership};
pub use messages::of_messages;
pub use rank_graph::{
    Action, Collective, Compute, Memory, Node, Peer, RankGraph, Size, Transfer, Work,
};
pub use roofline::Roofline;
pub use summary::{CollectiveRow, Summary, summarise};
pub use text::{Dialect, is_text_workload, read_text};

// The registry names a format by the module that has it.
use crate::WorkloadError;
use crate::experts::Exchange;
use chakra as chakra_json;
use nccl as nccl_profile;
use pytorch as kineto;
use pytorch as execution_trace;
use registry::{options_of, trace_formats};
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, Time};

// The registry: one line a format.
trace_formats! {
    chakra::ChakraOptions,
    text::TextOptions,
    comm_log::CommLog,
    goal::Goal,
    chakra_json::ChakraJson,
    kineto::Kineto,
    execution_trace::ExecutionTrace,
    nccl::NcclLog,
    nccl_profile::NcclProfile,
}

/// What an all-gather's size in a file counts; all other collectives count their larger buffer
/// everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// What one rank gives: ASTRA-sim.
    Shard,
    /// What every rank has in the end: nccl-tests, AICB, SimAI.
    Whole,
}

/// Something that was read and left out or taken otherwise than written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What, in words.
    pub what: String,
    /// How often it occurs.
    pub count: u64,
}

/// Payload that was recorded as sent by one NIC, or in one plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The plane, where there are several; else the NIC's name.
    pub by: Carrier,
    /// Parts of messages.
    pub pieces: u64,
    /// Their payload that arrived, in bytes.
    pub bytes: u64,
}

/// What tells payload apart in [`Carried`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A plane, all NICs in it together.
    Plane(u64),
    /// NICs of this name, of all processes together.
    Device(String),
}

/// A job as a trace tells it: what each rank does, and who belongs together.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What errors call it: the file, or the file of rank 0.
    pub name: String,
    /// How many ranks run it; `None` until [`Trace::for_ranks`] settles it, where the file
    /// leaves it open.
    pub ranks: Option<u32>,
    /// One graph for all ranks if [`shared`](Trace::shared), else one for each block of
    /// consecutive ranks, all blocks equally long: for every rank, or for every pipeline stage.
    pub graphs: Vec<RankGraph>,
    /// Whether all ranks, however many they are, run the only graph.
    pub shared: bool,
    /// The groups that collectives name by index.
    pub groups: Vec<Group>,
    /// How ranks are arranged, for groups that follow from it.
    pub degrees: Degrees,
    /// What goes to experts and back, which collectives name by index.
    pub exchanges: Vec<Exchange>,
    /// What NICs sent, where the trace tells: Weft's profiles.
    pub carried: Vec<Carried>,
    /// What was left out or taken otherwise.
    pub remarks: Vec<Remark>,
}

impl Trace {
    /// `times` times the same collective, one after the other, by the groups of `ranks` ranks
    /// that `degrees` make expert-parallel.
    ///
    /// # Errors
    /// If the degrees do not divide the ranks.
    pub fn of_collective(
        one: Collective,
        times: u32,
        degrees: Degrees,
        ranks: u32,
    ) -> Result<Trace, WorkloadError> {
        let name = one.action.name().to_owned();
        let mut graph = RankGraph::new(&name);
        for turn in 0..times {
            let before: &[u32] = if turn == 0 { &[] } else { &[turn - 1] };
            let work = Work::Collective(Collective { group: 0, turn, ..one });
            graph.push(Node { id: turn.into(), name: "".into(), work, start: Time::ZERO }, before);
        }
        let groups = vec![Group::of(Membership::Expert)];
        let (graphs, remarks) = (vec![graph], Vec::new());
        let trace = Trace {
            name,
            ranks: None,
            graphs,
            shared: true,
            groups,
            degrees,
            exchanges: Vec::new(),
            carried: Vec::new(),
            remarks,
        };
        trace.for_ranks(ranks)
    }

    /// The same trace, beginning at `start` instead of at zero.
    pub fn starting(mut self, start: Time) -> Trace {
        for graph in &mut self.graphs {
            for node in graph.nodes_mut() {
                node.start = node.start.saturating_add(start);
            }
        }
        self
    }

    /// The same trace, its computations and transfers of memory taking no time.
    pub fn without_computing(mut self) -> Trace {
        for node in self.graphs.iter_mut().flat_map(RankGraph::nodes_mut) {
            match &mut node.work {
                Work::Compute(one) => one.time = Time::ZERO,
                Work::Memory(one) => one.time = Time::ZERO,
                _ => {}
            }
        }
        self
    }

    /// The graph that `rank` runs.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn graph(&self, rank: u32) -> &RankGraph {
        &self.graphs[self.graph_index(rank)]
    }

    /// The place of the graph that `rank` runs among [`Trace::graphs`].
    pub fn graph_index(&self, rank: u32) -> usize {
        match self.shared {
            true => 0,
            false => rank.checked_div(self.block()).unwrap_or(0) as usize,
        }
    }

    /// How many consecutive ranks run one graph: all of them if it is shared, and 0 if
    /// their number is open.
    pub fn block(&self) -> u32 {
        let graphs = if self.shared { 1 } else { self.graphs.len() };
        let ranks = self.ranks.unwrap_or(0) as usize;
        // It is not more than the ranks.
        ranks.checked_div(graphs).unwrap_or(0) as u32
    }

    /// The same trace, run by `ranks` ranks.
    ///
    /// # Errors
    /// If it tells of another number of ranks, or the parallel degrees do not divide it.
    pub fn for_ranks(self, ranks: u32) -> Result<Trace, WorkloadError> {
        let error = |what: String| Err(WorkloadError(format!("{}: {what}", self.name)));
        if !self.shared && self.ranks != Some(ranks) {
            let own = self.ranks.unwrap_or(0);
            return error(format!("the trace has {own} ranks, not {ranks}; use as many"));
        }
        match self.degrees.check(ranks) {
            Err(what) => error(what),
            Ok(()) => Ok(Trace { ranks: Some(ranks), ..self }),
        }
    }

    /// The members of `group` among whom `rank` is, in their order; `None` if it is in none, or
    /// if the number of ranks is still open.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn members(&self, group: u32, rank: u32) -> Option<Members<'_>> {
        let ranks = self.ranks.filter(|ranks| rank < *ranks)?;
        self.groups[group as usize].members(&self.degrees, rank, ranks)
    }

    /// How many ranks an instance of `group` has; `None` while the number of ranks decides that
    /// and is open.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn group_size(&self, group: u32) -> Option<u32> {
        self.groups[group as usize].size(&self.degrees, self.ranks)
    }
}
