//! Jobs as GOAL.
//!
//! Nodes that do nothing, and join others, are computations of no time on a CPU of their own, so that they
//! never wait for one that computes.

use super::tasks::{Message, Op, Task};
use super::{Goal, binary};
use crate::WorkloadError;
use crate::trace::export::Written;
use crate::trace::{Compute, Node, Trace, TraceFormat, Transfer, Work};
use std::fmt::Write as _;
use weft_units::options::quoted;
use weft_units::{Options, Time};

/// Writes an unfolded trace as text.
pub(in crate::trace) fn write_text(trace: &Trace) -> Result<Written, WorkloadError> {
    let mut writer = Writer::default();
    let ranks = writer.ranks(trace)?;
    writer.done(".goal", text_of(&ranks).into_bytes())
}

/// Writes an unfolded trace in binary.
pub(in crate::trace) fn write_binary(trace: &Trace) -> Result<Written, WorkloadError> {
    let mut writer = Writer::default();
    let ranks = writer.ranks(trace)?;
    writer.done(".bin", binary::bytes_of(&ranks))
}

/// What is told about in remarks.
#[derive(Default)]
struct Writer {
    /// Times that are no whole nanoseconds.
    rounded: u64,
    /// Computations on CPUs and transfers of memory.
    beside: u64,
    /// Sends that a reader takes for done at once, though others wait for them.
    eager: u64,
}

impl Writer {
    fn done(self, end: &str, bytes: Vec<u8>) -> Result<Written, WorkloadError> {
        let mut written = Written { files: vec![(end.into(), bytes)], ..Written::default() };
        written.remark(self.rounded, "times were rounded to nanoseconds");
        let what = "computations on CPUs and transfers of memory follow each other on one cpu, where \
                    they ran side by side";
        written.remark(self.beside, what);
        let what = "sends that others wait for are small: a reader takes them for done when posted, not \
                    when acknowledged; in Weft, workload.eager = \"0B\" reads them as they were";
        written.remark(self.eager, what);
        Ok(written)
    }

    fn ranks(&mut self, trace: &Trace) -> Result<Vec<Vec<Task>>, WorkloadError> {
        let streams =
            trace.graphs.iter().flat_map(|graph| graph.nodes()).map(|node| match &node.work {
                Work::Compute(one) if !one.on_host => one.stream + 1,
                _ => 0,
            });
        // Behind the streams: memory and CPUs, and what takes no time.
        let beside = streams.max().unwrap_or(0);
        let beside = u8::try_from(beside).ok().filter(|cpu| *cpu < u8::MAX).ok_or_else(|| {
            let what =
                format!("{beside} streams are more than the 254 that GOAL has cpus for; use fewer");
            WorkloadError(format!("{}: {what}", trace.name))
        })?;
        let ranks = (0..trace.ranks.unwrap_or(0)).map(|rank| self.rank(trace, rank, beside));
        ranks.collect()
    }

    fn rank(&mut self, trace: &Trace, rank: u32, beside: u8) -> Result<Vec<Task>, WorkloadError> {
        let graph = trace.graph(rank);
        let followers = graph.followers();
        let mut tasks = Vec::with_capacity(graph.nodes().len());
        for (index, node) in (0u32..).zip(graph.nodes()) {
            let error = |what: String| {
                WorkloadError(format!("{}: {}: {what}", graph.source, graph.label(index)))
            };
            if node.start > Time::ZERO {
                let what =
                    "starts at a time of its own, which GOAL cannot say; leave start times out";
                return Err(error(what.into()));
            }
            let (op, cpu) = self.op(rank, node, beside).map_err(error)?;
            if let Op::Send(Message { bytes, .. }) = &op {
                let small = *bytes <= usual().eager && !followers.of(index).is_empty();
                self.eager += u64::from(small);
            }
            tasks.push(Task {
                place: index.into(),
                label: "".into(),
                op,
                cpu,
                nic: 0,
                requires: graph.waits(index).to_vec(),
                irequires: Vec::new(),
            });
        }
        Ok(tasks)
    }

    fn op(&mut self, rank: u32, node: &Node, beside: u8) -> Result<(Op, u8), String> {
        let mut calc = |time: Time| {
            self.rounded += u64::from(!time.0.is_multiple_of(1_000));
            Op::Calc(Time::ps(time.0.saturating_add(500) / 1_000 * 1_000))
        };
        Ok(match &node.work {
            Work::Nothing => (calc(Time::ZERO), beside + 1),
            Work::Compute(Compute { time, on_host: false, stream, .. }) => {
                (calc(*time), *stream as u8)
            }
            Work::Compute(Compute { time, .. }) => {
                let op = calc(*time);
                self.beside += 1;
                (op, beside)
            }
            Work::Memory(memory) => {
                let op = calc(memory.time);
                self.beside += 1;
                (op, beside)
            }
            Work::Send(one) => (Op::Send(message(rank, one)?), 0),
            Work::Receive(one) => (Op::Receive(message(rank, one)?), 0),
            Work::Collective(one) => {
                return Err(format!("{} is not unfolded", one.action.name()));
            }
            Work::Unsupported(what) => {
                return Err(format!("{} is not supported; remove it", quoted(what)));
            }
        })
    }
}

/// How a file is read unless told otherwise.
fn usual() -> Goal {
    let mut options = Options::new(Goal::INFO.name, Goal::INFO.options, &[]);
    let read = options.as_mut().ok().and_then(|options| Goal::read(options).ok());
    read.expect("defaults can be read")
}

fn message(rank: u32, one: &Transfer) -> Result<Message, String> {
    // 2^32 - 1 stands for any tag.
    let tag = u32::try_from(one.tag).ok().filter(|tag| *tag < u32::MAX);
    let tag =
        tag.ok_or_else(|| format!("the tag {} is larger than those of GOAL; use less", one.tag))?;
    Ok(Message { peer: one.peer.of(rank), bytes: one.bytes, tag })
}

fn text_of(ranks: &[Vec<Task>]) -> String {
    let mut out = format!("num_ranks {}\n", ranks.len());
    // Writing to a text cannot fail.
    let mut put = |line: std::fmt::Arguments<'_>| {
        let _ = out.write_fmt(line);
    };
    for (rank, tasks) in ranks.iter().enumerate() {
        put(format_args!("\nrank {rank} {{\n"));
        for (number, task) in (1..).zip(tasks) {
            let cpu = if task.cpu > 0 { format!(" cpu {}", task.cpu) } else { String::new() };
            match &task.op {
                Op::Send(Message { peer, bytes, tag }) => {
                    put(format_args!("l{number}: send {bytes}b to {peer} tag {tag}{cpu}\n"));
                }
                Op::Receive(Message { peer, bytes, tag }) => {
                    put(format_args!("l{number}: recv {bytes}b from {peer} tag {tag}{cpu}\n"));
                }
                Op::Mark => put(format_args!("l{number}: calc 0{cpu}\n")),
                Op::Calc(time) => {
                    put(format_args!("l{number}: calc {}{cpu}\n", time.0 / 1_000));
                }
            }
        }
        // A label has to stand above those who name it.
        for (number, task) in (1..).zip(tasks) {
            for other in &task.requires {
                put(format_args!("l{number} requires l{}\n", other + 1));
            }
        }
        put(format_args!("}}\n"));
    }
    out
}
