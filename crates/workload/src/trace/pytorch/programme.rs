//! A rank's recorded step as a graph: what its CPU launches, and what each stream does.
//!
//! The CPU is one chain of launches in the order of their times, the recorded time between two of them being
//! a computation on it. What is on a stream follows in its order; a kernel waits for its launch, too. A
//! communication waits for what its thread launched last on another stream, as PyTorch has NCCL's stream wait; what its
//! thread launches behind a `wait` waits for the communication of the same group and sequence number. Where the
//! profiler recorded which stream waits for which (`cuda_sync`), that counts instead. Calls that block the CPU
//! (`cudaDeviceSynchronize`, `cudaStreamSynchronize`, `cudaMemcpy`) wait for the device instead of taking time.

use super::comms::{Comm, Lowering};
use super::kineto::{Call, CommOp, DeviceEvent, Recorded, StreamWait};
use crate::WorkloadError;
use crate::trace::{Compute, Memory, Node, RankGraph, Work};
use std::collections::BTreeMap;
use weft_units::Time;

/// A rank's step, to be made a graph.
pub(super) struct Programme {
    name: String,
    rank: u32,
    /// Whether launches hold kernels up.
    launches: bool,
    recorded: Recorded,
}

/// What happens on the CPU, by its place in the lists of the recording.
#[derive(Clone, Copy)]
enum Item {
    Call(usize),
    Comm(usize),
    /// On the device, with no call that launches it.
    Device(usize),
}

impl Programme {
    pub(super) fn of(name: &str, rank: u32, recorded: Recorded, launches: bool) -> Programme {
        Programme { name: name.into(), rank, launches, recorded }
    }

    /// The graph.
    ///
    /// # Errors
    /// If a kernel of NCCL says nowhere what it moves.
    pub(super) fn graph(&self, lowering: &mut Lowering) -> Result<RankGraph, WorkloadError> {
        let Recorded { device, calls, comms, .. } = &self.recorded;
        let mut by_call: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let known: std::collections::BTreeSet<u64> =
            calls.iter().filter_map(|call| call.correlation).collect();
        let mut items: Vec<(Time, Item)> = Vec::new();
        for (place, event) in device.iter().enumerate() {
            match event.correlation.filter(|number| known.contains(number)) {
                Some(number) => by_call.entry(number).or_default().push(place),
                None => items.push((event.start, Item::Device(place))),
            }
        }
        items.extend(calls.iter().enumerate().map(|(place, call)| (call.at, Item::Call(place))));
        items.extend(comms.iter().enumerate().map(|(place, op)| (op.at, Item::Comm(place))));
        items.sort_by_key(|(at, _)| *at);
        let mut build = Build::new(self, lowering, by_call);
        for (_, item) in items {
            match item {
                Item::Call(place) => build.call(&calls[place])?,
                Item::Comm(place) => build.comm(&comms[place]),
                Item::Device(place) => build.launch(&device[place], None)?,
            }
        }
        build.graph.number_turns();
        Ok(build.graph)
    }
}

/// A thread of the CPU.
#[derive(Default)]
struct Thread {
    /// Communications that it has asked for and not launched.
    asked: Vec<Comm>,
    /// Where it launched last, communications apart.
    stream: Option<(u64, u64)>,
    /// What its stream waits for from now on.
    pending: Vec<u32>,
}

struct Build<'a, 'l> {
    from: &'a Programme,
    lowering: &'l mut Lowering,
    by_call: BTreeMap<u64, Vec<usize>>,
    graph: RankGraph,
    /// Numbers of streams, in the order in which they are met.
    numbers: BTreeMap<(u64, u64), u32>,
    /// The last node on each stream.
    last: BTreeMap<(u64, u64), u32>,
    /// What streams wait for from now on, as the profiler recorded it.
    waiting: BTreeMap<u64, Vec<u32>>,
    /// The last node of each stream when an event was recorded, by the correlation of that call.
    records: BTreeMap<u64, BTreeMap<u64, u32>>,
    threads: BTreeMap<&'a str, Thread>,
    /// The last node of the CPU, and up to when its time is accounted for.
    cpu: Option<u32>,
    clock: Option<Time>,
    /// Communications that were launched and that nobody has waited for, and their nodes.
    unawaited: Vec<(Comm, u32)>,
}

impl<'a, 'l> Build<'a, 'l> {
    fn new(
        from: &'a Programme,
        lowering: &'l mut Lowering,
        by_call: BTreeMap<u64, Vec<usize>>,
    ) -> Build<'a, 'l> {
        Build {
            from,
            lowering,
            by_call,
            graph: RankGraph::new(&from.name),
            numbers: BTreeMap::new(),
            last: BTreeMap::new(),
            waiting: BTreeMap::new(),
            records: BTreeMap::new(),
            threads: BTreeMap::new(),
            cpu: None,
            clock: None,
            unawaited: Vec::new(),
        }
    }

    fn push(&mut self, name: &str, work: Work, waits: &[u32]) -> u32 {
        let id = self.graph.nodes().len() as u64;
        self.graph.push(Node { id, name: name.into(), work, start: Time::ZERO }, waits)
    }

    /// A call of the runtime: it launches something, or waits for the device, or neither.
    fn call(&mut self, call: &'a Call) -> Result<(), WorkloadError> {
        let launched = call.correlation.and_then(|number| self.by_call.remove(&number));
        if let Some(number) = call.correlation {
            if call.name.contains("EventRecord") && !self.from.recorded.waits.is_empty() {
                let last = self.last.iter().map(|((_, stream), node)| (*stream, *node)).collect();
                self.records.insert(number, last);
            }
            if let Some(StreamWait { stream, on_stream, record }) =
                self.from.recorded.waits.get(&number)
            {
                let node = self.records.get(record).and_then(|last| last.get(on_stream));
                self.waiting.entry(*stream).or_default().extend(node);
            }
        }
        let is_launch = launched.is_some();
        for place in launched.into_iter().flatten() {
            self.launch(&self.from.recorded.device[place], Some(call))?;
        }
        let stream = self.threads.get(call.thread.as_str()).and_then(|thread| thread.stream);
        let awaited: Vec<u32> = match call.name.as_str() {
            "cudaDeviceSynchronize" | "hipDeviceSynchronize" => {
                self.last.values().copied().collect()
            }
            "cudaStreamSynchronize" | "hipStreamSynchronize" => {
                stream.and_then(|stream| self.last.get(&stream)).copied().into_iter().collect()
            }
            "cudaMemcpy" | "hipMemcpy" if is_launch => self.last.values().copied().collect(),
            _ => return Ok(()),
        };
        if self.from.launches {
            self.advance(call.at);
            let waits: Vec<u32> = awaited.into_iter().chain(self.cpu).collect();
            self.cpu = Some(self.push(&call.name, Work::Nothing, &waits));
            self.clock = Some(call.at.saturating_add(call.duration));
        }
        Ok(())
    }

    /// The CPU computes until `at`.
    fn advance(&mut self, at: Time) {
        let clock = self.clock.unwrap_or(at);
        if at > clock {
            let compute = Compute { time: clock.until(at), on_host: true, ..Compute::default() };
            let before = self.cpu;
            self.cpu = Some(self.push("launches", Work::Compute(compute), before.as_slice()));
        }
        self.clock = Some(clock.max(at));
    }

    /// A communication is asked for, or waited for.
    fn comm(&mut self, op: &'a CommOp) {
        let thread = self.threads.entry(op.thread.as_str()).or_default();
        if !op.comm.is_wait() {
            thread.asked.push(op.comm.clone());
            return;
        }
        // If there is none, it was launched before the first event.
        let Some(place) = self.unawaited.iter().position(|(one, _)| op.comm.awaits(one)) else {
            return;
        };
        if op.comm.sequence.is_none() {
            self.lowering.guess();
        }
        let (_, node) = self.unawaited.remove(place);
        thread.pending.push(node);
    }

    /// Something is launched on a stream, by a call unless none was recorded.
    fn launch(
        &mut self,
        event: &'a DeviceEvent,
        call: Option<&'a Call>,
    ) -> Result<(), WorkloadError> {
        let mut waits: Vec<u32> = self.last.get(&event.stream).copied().into_iter().collect();
        if let Some(call) = call.filter(|_| self.from.launches) {
            self.advance(call.at);
            waits.extend(self.cpu);
        }
        waits.extend(self.waiting.remove(&event.stream.1).into_iter().flatten());
        let own = call.map_or("", |call| call.thread.as_str());
        let is_recorded = !self.from.recorded.waits.is_empty();
        let thread = self.threads.entry(own).or_default();
        if event.is_comm {
            let asked = std::mem::take(&mut thread.asked);
            if !is_recorded {
                waits.extend(&thread.pending);
                waits.extend(thread.stream.and_then(|stream| self.last.get(&stream)));
            }
            return self.communicate(event, asked, &waits);
        }
        if !is_recorded {
            waits.append(&mut thread.pending);
        }
        thread.stream = Some(event.stream);
        let next = self.numbers.len() as u32;
        let stream = *self.numbers.entry(event.stream).or_insert(next);
        let time = event.duration;
        let work = match event.name.starts_with("Mem") {
            true => Work::Memory(Memory { bytes: 0, time, store: false }),
            false => Work::Compute(Compute { time, stream, ..Compute::default() }),
        };
        let node = self.push(short(&event.name), work, &waits);
        self.last.insert(event.stream, node);
        Ok(())
    }

    /// A kernel of NCCL: all that was asked for since the one before it.
    fn communicate(
        &mut self,
        event: &'a DeviceEvent,
        asked: Vec<Comm>,
        waits: &[u32],
    ) -> Result<(), WorkloadError> {
        let is_known = |comm: &Comm| !comm.name.is_empty();
        let mut all: Vec<Comm> = asked.into_iter().filter(is_known).collect();
        // What the kernel says of itself counts, if nothing that was asked for is alike.
        if let Some(own) = &event.comm
            && !all.iter().any(|one| one.name == own.name)
        {
            all = vec![own.clone()];
        }
        let error = |what: &str| {
            WorkloadError(format!("{}: kernel {:?}: {what}", self.from.name, short(&event.name)))
        };
        if all.is_empty() {
            let what = "does not say what it moves; give the execution trace of the same step: \
                        execution_trace = \"FILE\" (--set workload.execution_trace=FILE)";
            return Err(error(what));
        }
        let mut works = Vec::new();
        for comm in &all {
            let own = self.lowering.works(self.from.rank, comm).map_err(|what| error(&what))?;
            works.push((comm.name.clone(), own));
        }
        let mut parts = Vec::new();
        for (name, works) in works {
            for work in works {
                parts.push(self.push(&name, work, waits));
            }
        }
        let end = match parts[..] {
            [one] => one,
            [] => self.push(&all[0].name, Work::Nothing, waits),
            _ => self.push(&all[0].name, Work::Nothing, &parts),
        };
        self.last.insert(event.stream, end);
        self.unawaited.extend(all.into_iter().map(|comm| (comm, end)));
        Ok(())
    }
}

/// The name of a kernel without its types.
fn short(name: &str) -> &str {
    const LONGEST: usize = 60;
    let end = name.find(['(', '<']).filter(|end| *end > 0).unwrap_or(name.len());
    let end = (0..=end.min(LONGEST)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// The communications of an execution trace, one after the other; waits say nothing then.
pub(super) fn in_order(
    name: &str,
    rank: u32,
    comms: &[(u64, Comm)],
    lowering: &mut Lowering,
) -> Result<RankGraph, WorkloadError> {
    let mut graph = RankGraph::new(name);
    let mut before: Vec<u32> = Vec::new();
    for (_, comm) in comms.iter().filter(|(_, comm)| !comm.is_wait() && comm.name != "init") {
        let works =
            lowering.works(rank, comm).map_err(|what| WorkloadError(format!("{name}: {what}")))?;
        let mut parts = Vec::new();
        for work in works {
            let id = graph.nodes().len() as u64;
            let node = Node { id, name: comm.name.as_str().into(), work, start: Time::ZERO };
            parts.push(graph.push(node, &before));
        }
        if !parts.is_empty() {
            before = parts;
        }
    }
    graph.number_turns();
    Ok(graph)
}
