//! PyTorch's own traces: what the profiler (Kineto) recorded on the devices, and what the execution trace
//! observer recorded on the host, one file of each a rank.
//!
//! | module | what it holds |
//! |---|---|
//! | `kineto` | the profiler's file: kernels, launches, communications |
//! | `host` | the execution trace: `record_param_comms` with sizes and groups |
//! | `comms` | a communication, and what a rank does in it |
//! | `programme` | streams, launches and waits as a graph |
//!
//! A profiler's file alone is enough where its events carry what collectives move (PyTorch 2.3 and later); the
//! execution trace of the same step tells it otherwise. An execution trace alone has no times: its
//! communications follow each other.
//!
//! What it does not do: files of several steps apart, or kernels of CUDA graphs that move data between ranks.

mod comms;
mod groups;
mod host;
mod kineto;
mod programme;

use super::format::SideFileInfo;
use super::packed::{head, unpacked};
use super::{
    Degrees, Group, Membership, RankGraph, Remark, Trace, TraceFile, TraceFormat, TraceFormatInfo,
    TraceSource, Work,
};
use crate::WorkloadError;
use comms::Lowering;
use std::collections::BTreeMap;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// How to read what the format leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kineto {
    /// Whether a kernel starts no sooner than its launch, which follows the one before it as recorded.
    pub launches: bool,
    /// Whether ranks without a file do what the first one does.
    pub copies: bool,
}

/// An execution trace without the profiler's file: leaves nothing open but ranks without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionTrace {
    /// As of [`Kineto`].
    pub copies: bool,
}

/// The option that says what ranks without a file do.
const ABSENT: OptionInfo = OptionInfo {
    key: "absent_ranks",
    default: "refuse",
    kind: OptionKind::Word(&["refuse", "copy"]),
    meaning: "PyTorch: what to do about ranks without a file: refuse, or copy what the first one does",
};

fn read_absent(options: &mut Options<'_>) -> Result<bool, OptionError> {
    options.choice(ABSENT.key, &[("refuse", false), ("copy", true)])
}

impl TraceFormat for Kineto {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "Kineto trace",
        summary: "a Kineto trace of PyTorch's profiler: kernels by stream, collectives; a file a rank",
        source: "PyTorch",
        ends: &[".json", ".json.gz"],
        per_rank: false,
        alike: true,
        side_file: Some(SideFileInfo {
            key: "execution_trace",
            what: "PyTorch execution trace",
            end: "",
            per_rank: true,
        }),
        options: &[
            OptionInfo {
                key: "execution_trace",
                default: "", kind: OptionKind::Text,
                meaning: "Kineto: the execution trace of the same step, of any rank",
            },
            OptionInfo {
                key: "launches",
                default: "recorded", kind: OptionKind::Word(&["recorded", "none"]),
                meaning: "Kineto: recorded: kernels start no sooner than the CPU launches them, as \
                          recorded; none: only streams and waits hold them up",
            },
            ABSENT,
        ],
        example: br#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","ts":5.250,"dur":80,"args":{"stream":7}}]}"#,
    };

    fn read(options: &mut Options<'_>) -> Result<Kineto, OptionError> {
        let launches = options.choice("launches", &[("recorded", true), ("none", false)])?;
        Ok(Kineto { launches, copies: read_absent(options)? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        let head = head(bytes);
        let text = String::from_utf8_lossy(&head);
        text.trim_start().starts_with('{')
            && (text.contains("\"traceEvents\"") || text.contains("\"schemaVersion\""))
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let mut hosts = BTreeMap::new();
        for file in files.side_files()? {
            let host = host::read(&file.name, &unpacked(&file.name, &file.bytes)?)?;
            hosts.insert(file.rank, (file.name, host));
        }
        let mut job = Job::new(self.copies);
        while let Some(TraceFile { rank, name, bytes }) = files.next_file()? {
            let mut one = kineto::read(&name, &unpacked(&name, &bytes)?)?;
            let place = rank;
            let rank = one.rank.unwrap_or(rank);
            if let Some((host_name, host)) = hosts.remove(&rank).or_else(|| hosts.remove(&place)) {
                one.tell(&name, &host_name, &host)?;
            }
            job.world = job.world.max(one.world);
            let programme = programme::Programme::of(&name, rank, one, self.launches);
            let graph = programme.graph(&mut job.lowering)?;
            job.add(rank, name, graph)?;
        }
        job.finish()
    }
}

impl TraceFormat for ExecutionTrace {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "PyTorch execution trace",
        summary: "an execution trace of PyTorch alone: its collectives one after the other, without times; \
                  a file a rank",
        source: "PyTorch",
        ends: &[".json", ".json.gz"],
        per_rank: false,
        alike: true,
        side_file: None,
        options: &[ABSENT],
        example: br#"{"schema":"1.1.0-chakra.0.0.4","nodes":[{"id":2,"name":"record_param_comms","ctrl_deps":1,"inputs":{"values":[5,["0",""],0,"barrier",[],[],0,1,1]},"attrs":[{"name":"rf_id","value":0},{"name":"collective_name","value":"barrier"},{"name":"pg_size","value":1}]}]}"#,
    };

    fn read(options: &mut Options<'_>) -> Result<ExecutionTrace, OptionError> {
        Ok(ExecutionTrace { copies: read_absent(options)? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        let head = head(bytes);
        let text = String::from_utf8_lossy(&head);
        text.trim_start().starts_with('{')
            && text.contains("\"nodes\"")
            && text.contains("\"rf_id\"")
            && text.contains("\"schema\"")
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let mut job = Job::new(self.copies);
        while let Some(TraceFile { rank, name, bytes }) = files.next_file()? {
            let host = host::read(&name, &unpacked(&name, &bytes)?)?;
            let graph = programme::in_order(&name, rank, &host.comms, &mut job.lowering)?;
            job.add(rank, name, graph)?;
        }
        job.finish()
    }
}

/// Ranks as they are read.
struct Job {
    copies: bool,
    /// How many ranks there are, as far as a file says so.
    world: Option<u32>,
    lowering: Lowering,
    graphs: BTreeMap<u32, (String, RankGraph)>,
}

impl Job {
    fn new(copies: bool) -> Job {
        Job { copies, world: None, lowering: Lowering::default(), graphs: BTreeMap::new() }
    }

    fn add(&mut self, rank: u32, name: String, graph: RankGraph) -> Result<(), WorkloadError> {
        if let Some((earlier, _)) = self.graphs.get(&rank) {
            let what = format!("{name}: rank {rank} is already in {earlier}; give one file a rank");
            return Err(WorkloadError(what));
        }
        self.graphs.insert(rank, (name, graph));
        Ok(())
    }

    fn finish(mut self) -> Result<Trace, WorkloadError> {
        let none = || WorkloadError("no traces; give one file for each rank".into());
        let (last, _) = self.graphs.last_key_value().ok_or_else(none)?;
        let (_, (name, _)) = self.graphs.first_key_value().ok_or_else(none)?;
        let (last, name) = (*last, name.clone());
        let world = self.world.unwrap_or(0).max(last + 1).max(self.lowering.largest());
        let groups = self.lowering.groups(&name, world)?;
        let mut remarks: Vec<Remark> = self.lowering.remarks();
        if let Some(gap) = (0..world).find(|rank| !self.graphs.contains_key(rank)) {
            if !self.copies {
                return Err(WorkloadError(format!(
                    "{name}: the job has {world} ranks, but there is no file of rank {gap}; give one for \
                     each, or absent_ranks = \"copy\" to have it do what the first one does"
                )));
            }
            remarks.push(self.copy(world, &groups)?);
        }
        let graphs: Vec<RankGraph> = self.graphs.into_values().map(|(_, graph)| graph).collect();
        Ok(Trace {
            name,
            ranks: Some(world),
            graphs,
            shared: false,
            groups,
            degrees: Degrees::NONE,
            exchanges: Vec::new(),
            carried: Vec::new(),
            remarks,
        })
    }

    /// Has ranks without a file do what the first one does, which is possible where that is what all do.
    fn copy(&mut self, world: u32, groups: &[Group]) -> Result<Remark, WorkloadError> {
        let (_, (name, first)) = self.graphs.first_key_value().expect("there is one");
        let is_of_all = |work: &Work| match work {
            Work::Collective(one) => groups[one.group as usize].members == Membership::World,
            Work::Send(_) | Work::Receive(_) => false,
            _ => true,
        };
        if let Some(at) = first.nodes().iter().position(|node| !is_of_all(&node.work)) {
            let label = first.label(at as u32);
            return Err(WorkloadError(format!(
                "{name}: {label} does not concern all ranks alike, so that other ranks cannot copy it; \
                 give a file for each rank"
            )));
        }
        let (name, first) = (name.clone(), first.clone());
        let mut count = 0;
        for rank in 0..world {
            self.graphs.entry(rank).or_insert_with(|| {
                count += 1;
                (name.clone(), first.clone())
            });
        }
        let what = "ranks without a file do what the first one with a file does".into();
        Ok(Remark { what, count })
    }
}
