//! MLCommons Chakra execution traces: one `.et` file a rank.
//!
//! A file is a sequence of messages in protobuf's wire format, each behind its length: first
//! the metadata, then the nodes, in any order; the whole may be gzipped. Source: Chakra's
//! schema (`et_def.proto`), its feeder, and ASTRA-sim's `Workload.cc`, from which these follow:
//! a collective without a group, or with group `0`, concerns all ranks; sizes are those of the
//! larger buffer, except that an all-gather's is one rank's part.
//!
//! Writers differ, so attributes are taken whatever type they have; what is not known is
//! skipped. Of the metadata nothing is needed. Start times are ignored unless asked for: in
//! recorded traces they are what the trace is replayed to find. Data that a node moves within its
//! rank (`DATA_REORDER`) takes time and no network.
//!
//! What it does not do: simulate the CPU. Its side of a communication does nothing here.

mod attribute;
mod elements;
mod file;
mod json;
mod message;
mod process_groups;
mod wire;
mod write;

pub use json::ChakraJson;
pub(in crate::trace) use write::write_chakra;

use super::format::{GATHERED, SideFileInfo, read_gathered};
use super::{
    Action, Collective, Compute, Degrees, Gathered, Group, Membership, Memory, Node, Peer,
    RankGraph, Remark, Roofline, SideFile, Size, Trace, TraceFile, TraceFormat, TraceFormatInfo,
    TraceSource, Transfer, Work,
};
use crate::WorkloadError;
use crate::collective::Operation;
use crate::trace::packed::unpacked;
use attribute::Attribute;
use elements::counts_elements;
use file::messages;
use message::{RawNode, is_of_tensor_graph};
use process_groups::Groups;
use std::collections::BTreeMap;
use weft_units::options::quoted;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What nodes wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependencies {
    /// All that the trace says.
    #[default]
    All,
    /// Data only, as Chakra's feeder has it: control dependencies of recorded traces are the
    /// order of calls on the CPU, and may form circles with data.
    Data,
}

/// How to read what the format leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChakraOptions {
    /// What one of `comm_size` and `tensor_size` counts, in bytes: 1, or more where sizes are
    /// elements.
    pub bytes_per_element: u64,
    /// What `comm_size` of an all-gather counts.
    pub gathered: Gathered,
    /// Whether nodes start no sooner than the trace says, counted from the first of all.
    pub start_times: bool,
    /// What nodes wait for.
    pub dependencies: Dependencies,
    /// What accelerators do in a second: how long computations take, in place of what was
    /// recorded, where nodes count what is stated here.
    pub roofline: Roofline,
}

impl Default for ChakraOptions {
    fn default() -> ChakraOptions {
        ChakraOptions {
            bytes_per_element: 1,
            gathered: Gathered::Shard,
            start_times: false,
            dependencies: Dependencies::All,
            roofline: Roofline::default(),
        }
    }
}

impl TraceFormat for ChakraOptions {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "Chakra trace",
        summary: "Chakra: what each rank does; PREFIX.RANK.et, or PREFIX for all of them",
        source: "MLCommons",
        ends: &[".et", ".et.gz"],
        per_rank: true,
        alike: false,
        side_file: Some(PROCESS_GROUPS),
        options: OPTIONS,
        // Empty metadata, then the computation 1 called "a".
        example: b"\x00\x07\x08\x01\x12\x01a\x18\x04",
    };

    fn read(options: &mut Options<'_>) -> Result<ChakraOptions, OptionError> {
        let gathered = read_gathered(options)?.unwrap_or(Gathered::Shard);
        let bytes_per_element = options.number("bytes_per_element")?.into();
        let start_times = options.flag("start_times")?;
        let words = [("all", Dependencies::All), ("data", Dependencies::Data)];
        let dependencies = options.choice("dependencies", &words)?;
        let mut per_second = |key, unit: f64| {
            let number = options.fraction_or_word(key)?;
            Ok(number.map(|number| (number * unit) as u64))
        };
        let (operations, bytes) =
            (per_second("peak_tflops", 1e12)?, per_second("memory_gb_s", 1e9)?);
        let roofline = Roofline { operations, bytes };
        Ok(ChakraOptions { bytes_per_element, gathered, start_times, dependencies, roofline })
    }
    fn recognises(_: &[u8]) -> bool {
        false
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let mut reader = ChakraReader::new(*self);
        reader.take_groups(files.side_file()?)?;
        while let Some(TraceFile { rank, name, bytes }) = files.next_file()? {
            reader.read_rank(rank, &name, &bytes)?;
        }
        reader.finish()
    }
    fn check_side_file(name: &str, text: &str) -> Result<(), WorkloadError> {
        process_groups::from_file(name, text).map(|_| ())
    }
    fn on_data(&self) -> Option<ChakraOptions> {
        let data = ChakraOptions { dependencies: Dependencies::Data, ..*self };
        (data != *self).then_some(data)
    }
}

/// The file of groups.
const PROCESS_GROUPS: SideFileInfo = SideFileInfo {
    key: "process_groups",
    what: "JSON file of process groups",
    end: ".json",
    per_rank: false,
};

/// What an accelerator does in a second, if it is told.
const PER_SECOND: OptionKind = OptionKind::Or(&OptionKind::Number(0.001, 1e6), "none");

/// What the format leaves open.
const OPTIONS: &[OptionInfo] = &[
    GATHERED,
    OptionInfo {
        key: "process_groups",
        default: "",
        kind: OptionKind::Text,
        meaning: "Chakra: a JSON file of process groups",
    },
    OptionInfo {
        key: "bytes_per_element",
        default: "1",
        kind: OptionKind::Whole(1, 16),
        meaning: "Chakra: what 1 of comm_size and tensor_size is",
    },
    OptionInfo {
        key: "start_times",
        default: "false",
        kind: OptionKind::Flag,
        meaning: "Chakra: whether nodes start no sooner than the trace says",
    },
    OptionInfo {
        key: "dependencies",
        default: "all",
        kind: OptionKind::Word(&["all", "data"]),
        meaning: "Chakra: what nodes wait for: all, or data, not for control dependencies, as in its \
                  feeder",
    },
    OptionInfo {
        key: "peak_tflops",
        default: "none",
        kind: PER_SECOND,
        meaning: "Chakra: 10^12 operations a second; computations take num_ops over it, or longer",
    },
    OptionInfo {
        key: "memory_gb_s",
        default: "none",
        kind: PER_SECOND,
        meaning: "Chakra: 10^9 bytes a second; computations take tensor_size over it, or longer",
    },
];

/// Computations that would take time if it were known what accelerators do.
const UNTIMED: &str = "computations count operations or bytes but no time, and take none; give \
                       peak_tflops and memory_gb_s (--peak-tflops, --memory-gb-s)";

/// Sizes that would be larger if it were known what elements are.
const ELEMENTS: &str = "sizes look like numbers of elements and are taken for bytes; give \
                        bytes_per_element (--bytes-per-element): 2 for bf16, 4 for fp32";

/// Puts a trace together, file by file.
///
/// In use: the process groups first if there is a file of them, then every rank, in any order,
/// then [`finish`](ChakraReader::finish).
#[derive(Clone, Debug)]
pub struct ChakraReader {
    options: ChakraOptions,
    file_groups: Groups,
    /// Where groups come from, in words.
    groups_from: String,
    groups: Vec<Group>,
    group_ids: BTreeMap<(String, Membership), u32>,
    graphs: BTreeMap<u32, RankGraph>,
    remarks: BTreeMap<String, u64>,
}

impl ChakraReader {
    /// Nothing read yet.
    pub fn new(options: ChakraOptions) -> ChakraReader {
        ChakraReader {
            options,
            file_groups: Groups::new(),
            groups_from: "no process-group file was given".into(),
            groups: vec![Group::of(Membership::World)],
            group_ids: BTreeMap::new(),
            graphs: BTreeMap::new(),
            remarks: BTreeMap::new(),
        }
    }

    /// Reads the process-group file (JSON); `name` is what errors call it.
    ///
    /// # Errors
    /// If it is not one, or a group is empty or names a rank twice.
    pub fn read_groups(&mut self, name: &str, text: &str) -> Result<(), WorkloadError> {
        self.file_groups.extend(process_groups::from_file(name, text)?);
        self.groups_from = format!("{name} has none of this name");
        Ok(())
    }

    /// The process-group file, or why there is none.
    fn take_groups(&mut self, file: Option<SideFile>) -> Result<(), WorkloadError> {
        match file {
            Some(SideFile::Is { name, text }) => return self.read_groups(&name, &text),
            Some(SideFile::Missing { place, is_taken: true }) => {
                self.lacks_groups(format!("{place} is no process-group file"));
            }
            Some(SideFile::Missing { place, is_taken: false }) => {
                self.lacks_groups(format!("there is no {place} beside the trace"));
            }
            None => {}
        }
        Ok(())
    }

    /// Says why there is no process-group file, for whoever misses a group.
    pub fn lacks_groups(&mut self, why: String) {
        self.groups_from = why;
    }

    /// Reads the trace of `rank`; `name` is what errors call the file.
    ///
    /// # Errors
    /// If it is cut off, no Chakra trace, names a group that is not known, or says what cannot
    /// be; or if the rank has been read before.
    pub fn read_rank(&mut self, rank: u32, name: &str, bytes: &[u8]) -> Result<(), WorkloadError> {
        self.check_rank(rank, name)?;
        let bytes = unpacked(name, bytes)?;
        let (metadata, messages) = messages(name, &bytes)?;
        if self.options.bytes_per_element == 1 && is_of_tensor_graph(metadata) {
            self.remark(ELEMENTS);
        }
        let dependencies = self.options.dependencies;
        self.lower(rank, name, messages.len(), |place| messages[place].decode(name, dependencies))
    }

    /// Reads so many nodes of `rank`, each of which `decode` gives as often as it is asked for.
    fn lower<'n>(
        &mut self,
        rank: u32,
        name: &str,
        count: usize,
        decode: impl Fn(usize) -> Result<RawNode<'n>, WorkloadError>,
    ) -> Result<(), WorkloadError> {
        let mut file = File { reader: self, name, rank, own_groups: Groups::new() };
        let graph = file.lower(count, decode)?;
        self.graphs.insert(rank, graph);
        Ok(())
    }

    /// Whether the rank has not been read before.
    fn check_rank(&self, rank: u32, name: &str) -> Result<(), WorkloadError> {
        if let Some(earlier) = self.graphs.get(&rank) {
            let earlier = &earlier.source;
            let what = format!("{name}: rank {rank} is already in {earlier}; give one file a rank");
            return Err(WorkloadError(what));
        }
        Ok(())
    }

    /// The trace of all ranks that were read.
    ///
    /// # Errors
    /// If there are none, or one between them is missing.
    pub fn finish(self) -> Result<Trace, WorkloadError> {
        let Some((last, graph)) = self.graphs.last_key_value() else {
            return Err(WorkloadError("no traces; give one file for each rank".into()));
        };
        let (last, name) = (*last, graph.source.clone());
        if let Some(gap) = (0..last).find(|rank| !self.graphs.contains_key(rank)) {
            let what = "there is a trace of rank";
            return Err(WorkloadError(format!(
                "{name}: {what} {last} but none of rank {gap}; give one file for each rank from 0"
            )));
        }
        let mut graphs: Vec<RankGraph> = self.graphs.into_values().collect();
        align(&mut graphs);
        let remarks = self.remarks.into_iter().map(|(what, count)| Remark { what, count });
        let mut trace = Trace {
            exchanges: Vec::new(),
            carried: Vec::new(),
            name: graphs[0].source.clone(),
            ranks: Some(graphs.len() as u32),
            graphs,
            shared: false,
            groups: self.groups,
            degrees: Degrees::NONE,
            remarks: remarks.collect(),
        };
        trace.remarks.extend(lonely(&trace));
        Ok(trace)
    }

    fn remark(&mut self, what: &str) {
        *self.remarks.entry(what.into()).or_default() += 1;
    }

    /// The index of a group; equal ones of several ranks are one.
    fn group(&mut self, name: &str, members: Membership) -> u32 {
        if members == Membership::World {
            return 0;
        }
        let next = self.groups.len() as u32;
        let id = *self.group_ids.entry((name.into(), members.clone())).or_insert(next);
        if id == next {
            self.groups.push(Group { name: name.into(), members });
        }
        id
    }
}

/// Whether no collective has two ranks, though some have something to move: a sign that only some
/// of the files are there.
fn lonely(trace: &Trace) -> Option<Remark> {
    let mut count = 0;
    for (rank, graph) in (0..).zip(&trace.graphs) {
        for node in graph.nodes() {
            let Work::Collective(one) = &node.work else { continue };
            if trace.members(one.group, rank).is_none_or(|members| members.len() > 1) {
                return None;
            }
            count += u64::from(!one.size.is_zero());
        }
    }
    let what = "every collective has one rank and moves nothing; are files of other ranks missing?";
    (count > 0).then(|| Remark { what: what.into(), count })
}

/// Counts start times from the earliest of all ranks.
fn align(graphs: &mut [RankGraph]) {
    let starts = graphs.iter().flat_map(|one| one.nodes().iter().map(|node| node.start));
    let Some(first) = starts.min().filter(|first| *first > Time::ZERO) else { return };
    for graph in graphs {
        for node in graph.nodes_mut() {
            node.start -= first;
        }
    }
}

/// The file that is being lowered.
struct File<'a> {
    reader: &'a mut ChakraReader,
    name: &'a str,
    rank: u32,
    own_groups: Groups,
}

impl File<'_> {
    fn error(&self, node: &RawNode<'_>, what: &str) -> WorkloadError {
        let name = match node.name.is_empty() {
            true => String::new(),
            false => format!(" ({})", quoted(&node.name)),
        };
        WorkloadError(format!("{}: node {}{name}: {what}", self.name, node.id))
    }

    /// Twice through the nodes, so that a long trace need not be held decoded: for ids and
    /// groups, which may be used before they come, and for everything else.
    fn lower<'n>(
        &mut self,
        count: usize,
        decode: impl Fn(usize) -> Result<RawNode<'n>, WorkloadError>,
    ) -> Result<RankGraph, WorkloadError> {
        let mut indices = BTreeMap::new();
        for (index, place) in (0u32..).zip(0..count) {
            let node = decode(place)?;
            if indices.insert(node.id, index).is_some() {
                return Err(self.error(&node, "another node has this id; give each its own"));
            }
            self.take_groups(&node);
        }
        let mut graph = RankGraph::new(self.name);
        let mut waits = Vec::new();
        for (index, place) in (0u32..).zip(0..count) {
            let node = decode(place)?;
            waits.clear();
            for id in &node.waits {
                match indices.get(id) {
                    Some(wait) => waits.push(*wait),
                    None => graph.note_missing(index, *id),
                }
            }
            let work = self.work(&node)?;
            let start = match self.reader.options.start_times {
                true => self.micros(&node, node.start_micros)?,
                false => Time::ZERO,
            };
            graph.push(Node { id: node.id, name: node.name.into(), work, start }, &waits);
        }
        graph.number_turns();
        Ok(graph)
    }

    /// Process groups that a metadata node tells of.
    fn take_groups(&mut self, node: &RawNode<'_>) {
        const METADATA: u64 = 1;
        if node.kind != METADATA {
            return;
        }
        match process_groups::from_inputs(&node.input_values()) {
            Some(Ok(groups)) => self.own_groups.extend(groups),
            Some(Err(what)) => self.reader.remark(what),
            None => {}
        }
    }

    fn work(&mut self, node: &RawNode<'_>) -> Result<Work, WorkloadError> {
        Ok(match node.kind {
            0 | 7.. if node.reorders() => self.reordering(node)?,
            0 | 1 => Work::Nothing,
            2 | 3 => Work::Memory(Memory {
                bytes: self.tensor(node)?,
                time: self.micros(node, node.duration_micros)?,
                store: node.kind == 3,
            }),
            4 => self.computation(node)?,
            5 | 6 => self.transfer(node)?,
            7 => self.collective(node)?,
            8 => Work::Unsupported("storage node (type 8)".into()),
            9 => Work::Unsupported("batch node (type 9)".into()),
            10 => Work::Unsupported("checkpoint node (type 10)".into()),
            other => Work::Unsupported(format!("node of type {other}").into()),
        })
    }

    fn computation(&mut self, node: &RawNode<'_>) -> Result<Work, WorkloadError> {
        let on_host = on_host(node);
        let recorded = self.micros(node, node.duration_micros)?;
        let operations = self.count(node, &node.attributes.num_ops, "num_ops")?.unwrap_or(0);
        let bytes = self.tensor(node)?;
        let modelled = match on_host {
            true => None,
            false => self.reader.options.roofline.time(operations, bytes),
        };
        let counts = operations > 0 || bytes > 0;
        if counts && !on_host && modelled.is_none() && recorded == Time::ZERO {
            self.reader.remark(UNTIMED);
        }
        let time = modelled.unwrap_or(recorded);
        Ok(Work::Compute(Compute { time, operations, bytes, on_host, stream: 0 }))
    }

    /// Data that moves within the rank's memory.
    fn reordering(&mut self, node: &RawNode<'_>) -> Result<Work, WorkloadError> {
        let bytes = match self.tensor(node)? {
            0 => self.bytes(node)?.unwrap_or(0),
            bytes => bytes,
        };
        let recorded = self.micros(node, node.duration_micros)?;
        let modelled = self.reader.options.roofline.time(0, bytes);
        if bytes > 0 && modelled.is_none() && recorded == Time::ZERO {
            self.reader.remark(UNTIMED);
        }
        Ok(Work::Memory(Memory { bytes, time: modelled.unwrap_or(recorded), store: false }))
    }

    fn transfer(&mut self, node: &RawNode<'_>) -> Result<Work, WorkloadError> {
        let sends = node.kind == 5;
        let attributes = &node.attributes;
        let (own, own_key, other, other_key) = match sends {
            true => (&attributes.comm_src, "comm_src", &attributes.comm_dst, "comm_dst"),
            false => (&attributes.comm_dst, "comm_dst", &attributes.comm_src, "comm_src"),
        };
        let bytes = self.bytes(node)?;
        let Some(peer) = self.count(node, other, other_key)? else {
            return Ok(match on_host(node) {
                true => Work::Nothing,
                false => Work::Unsupported(format!("{} without {other_key}", kind(sends)).into()),
            });
        };
        if let Some(own) =
            self.count(node, own, own_key)?.filter(|own| *own != u64::from(self.rank))
        {
            let what = format!("{own_key} is {own}, but this is the trace of rank {}", self.rank);
            return Err(self.error(node, &format!("{what}; correct one of them")));
        }
        let Some(bytes) = bytes else {
            let what = format!("{} without comm_size", kind(sends));
            return Ok(Work::Unsupported(what.into()));
        };
        let peer = u32::try_from(peer).map_err(|_| self.no_rank(node, other_key, peer))?;
        let tag = self.count(node, &attributes.comm_tag, "comm_tag")?.unwrap_or(0);
        let transfer = Transfer { peer: Peer::Rank(peer), bytes, tag, turn: 0 };
        Ok(if sends { Work::Send(transfer) } else { Work::Receive(transfer) })
    }

    fn no_rank(&self, node: &RawNode<'_>, key: &str, rank: u64) -> WorkloadError {
        self.error(node, &format!("{key}: there is no rank {rank}; correct it"))
    }

    fn collective(&mut self, node: &RawNode<'_>) -> Result<Work, WorkloadError> {
        let bytes = self.bytes(node)?;
        if bytes.is_none() && on_host(node) {
            return Ok(Work::Nothing);
        }
        let kind = self.count(node, &node.attributes.comm_type, "comm_type")?.unwrap_or(0);
        let action = match action(kind) {
            Ok(action) => action,
            Err(what) => return Ok(Work::Unsupported(what.into())),
        };
        let bytes = match (bytes, action) {
            (_, Action::Barrier) => 0,
            (Some(bytes), _) => bytes,
            (None, _) => return Ok(Work::Unsupported("collective without comm_size".into())),
        };
        let confined = node.attributes.involved_dim.as_ref().and_then(Attribute::items);
        if confined.is_some_and(|dimensions| dimensions.contains(&0)) {
            self.reader.remark("collectives of some dimensions only, taken over the whole group");
        }
        let size = match (action, self.reader.options.gathered) {
            (Action::Operation(Operation::AllGather), Gathered::Shard) => Size::Shard(bytes),
            _ => Size::Whole(bytes),
        };
        if self.reader.options.bytes_per_element == 1 && counts_elements(node, bytes) {
            self.reader.remark(ELEMENTS);
        }
        let group = self.group(node)?;
        Ok(Work::Collective(Collective { action, size, group, root: 0, turn: 0 }))
    }

    /// The group that a collective names.
    fn group(&mut self, node: &RawNode<'_>) -> Result<u32, WorkloadError> {
        let name = node.attributes.pg_name.as_ref().and_then(Attribute::text).unwrap_or_default();
        if name.is_empty() || name == "0" {
            return Ok(0);
        }
        let known = self.own_groups.get(&name).or_else(|| self.reader.file_groups.get(&name));
        match known.cloned() {
            Some(members) => Ok(self.reader.group(&name, members)),
            None => {
                let name = quoted(&name);
                let from = &self.reader.groups_from;
                let what = format!(
                    "process group {name} is not known ({from}); give the JSON file of process \
                     groups that belongs to the trace: --process-groups, or process_groups in an \
                     experiment"
                );
                Err(self.error(node, &what))
            }
        }
    }

    /// `comm_size` in bytes.
    fn bytes(&self, node: &RawNode<'_>) -> Result<Option<u64>, WorkloadError> {
        self.size(node, &node.attributes.comm_size, "comm_size")
    }

    /// `tensor_size` in bytes; 0 if there is none.
    fn tensor(&self, node: &RawNode<'_>) -> Result<u64, WorkloadError> {
        Ok(self.size(node, &node.attributes.tensor_size, "tensor_size")?.unwrap_or(0))
    }

    /// An attribute that counts bytes or elements, in bytes.
    fn size(
        &self,
        node: &RawNode<'_>,
        value: &Option<Attribute>,
        key: &str,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some(count) = self.count(node, value, key)? else { return Ok(None) };
        match count.checked_mul(self.reader.options.bytes_per_element) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(self.error(node, &format!("{key} exceeds 2^64 bytes; make it smaller"))),
        }
    }

    /// An attribute that counts something.
    fn count(
        &self,
        node: &RawNode<'_>,
        value: &Option<Attribute>,
        key: &str,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = value else { return Ok(None) };
        match value.number().map(u64::try_from) {
            Some(Ok(number)) => Ok(Some(number)),
            _ => {
                let what = format!("{key} is not a whole number from 0 on; correct it");
                Err(self.error(node, &what))
            }
        }
    }

    fn micros(&self, node: &RawNode<'_>, micros: u64) -> Result<Time, WorkloadError> {
        micros.checked_mul(1_000_000).map(Time::ps).ok_or_else(|| {
            self.error(node, &format!("{micros} us are longer than 213 days; correct it"))
        })
    }
}

fn on_host(node: &RawNode<'_>) -> bool {
    node.attributes.is_cpu_op.as_ref().and_then(Attribute::number).is_some_and(|flag| flag != 0)
}

fn kind(sends: bool) -> &'static str {
    if sends { "send" } else { "receive" }
}

/// What a `comm_type` does, or what is not understood, in words.
fn action(kind: u64) -> Result<Action, String> {
    Ok(Action::Operation(match kind {
        0 => Operation::AllReduce,
        1 => Operation::Reduce,
        2 => Operation::AllGather,
        5 => Operation::Broadcast,
        6 => Operation::AllToAll,
        7 | 8 => Operation::ReduceScatter,
        9 => return Ok(Action::Barrier),
        3 => return Err("gather (comm_type 3)".into()),
        4 => return Err("scatter (comm_type 4)".into()),
        other => return Err(format!("collective of comm_type {other}")),
    }))
}
