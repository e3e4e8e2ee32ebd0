//! GOAL schedules: what each rank sends, receives and computes, and what waits for what.
//!
//! LogGOPSim's `txt2bin` makes the binary form of the text; its simulator, the htsim port and ATLAHS run
//! it. Both forms become the same list of tasks for each rank (`tasks`), and that becomes a graph here.
//!
//! How it is read, where a simulator of packets differs from LogGOPS: messages take what the network takes
//! (L, g and G are not used), and `overhead` is the CPU's o. A send of up to `eager` bytes is over, for who
//! waits for it, when its CPU is done with it; a larger one when it has been acknowledged. `A irequires B`: A
//! waits for all that B waits for; a computation that is ready counts as started, though another one may be
//! before it on its CPU. Messages of one pair of ranks with one tag meet in the order of the file. A receive
//! from anybody, or of any tag, gets the next message that no other receive of its rank names, by sender and
//! place: which comes first in a run is not known before it.
//!
//! Source: LogGOPSim (`txt2bin.re`, `Parser.hpp`, `LogGOPSim.cpp`), htsim's `compute_event.cpp`.
//!
//! What it does not do: sends and receives of several NICs side by side (`nic`), or make them wait for the
//! CPU that another task keeps busy.

mod binary;
mod tasks;
mod text;
mod wildcards;
mod write;

pub(in crate::trace) use write::{write_binary, write_text};

use super::packed::head;
use super::{
    Compute, Degrees, Group, Membership, Node, Peer, RankGraph, Remark, Trace, TraceFormat,
    TraceFormatInfo, TraceSource, Transfer, Work,
};
use crate::WorkloadError;
use tasks::{Op, Task};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// How to read what the format leaves to the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Sends of up to so many bytes are over as soon as they are posted.
    pub eager: u64,
    /// How long each send and receive keeps its CPU busy.
    pub overhead: Time,
}

impl TraceFormat for Goal {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "GOAL schedule",
        summary: "GOAL: sends, receives and computations of each rank; text or binary",
        source: "LogGOPSim, ATLAHS",
        ends: &[".goal", ".bin"],
        per_rank: false,
        alike: false,
        side_file: None,
        options: &[
            OptionInfo {
                key: "eager",
                default: "65535B",
                kind: OptionKind::Size(0, u64::MAX),
                meaning: "GOAL: sends of up to so many bytes are over as they are posted, larger ones \
                          when they are acknowledged",
            },
            OptionInfo {
                key: "overhead",
                default: "0ns",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "GOAL: how long each send and receive keeps its CPU busy",
            },
        ],
        example: b"num_ranks 2\nrank 0 {\na: calc 1000 cpu 1\nb: send 4096b to 1 tag 7\n\
            b requires a\n}\nrank 1 {\nr: recv 4096b from 0 tag 7\n}\n",
    };

    fn read(options: &mut Options<'_>) -> Result<Goal, OptionError> {
        Ok(Goal { eager: options.size("eager")?, overhead: options.time("overhead")? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        binary::is_binary(bytes) || text::is_text(&String::from_utf8_lossy(&head(bytes)))
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let no_file = || WorkloadError("no traces; give a file".into());
        let file = files.next_file()?.ok_or_else(no_file)?;
        let mut ranks = match binary::is_binary(&file.bytes) {
            true => binary::parse(&file.name, &file.bytes)?,
            false => match String::from_utf8(file.bytes) {
                Ok(text) => text::parse(&file.name, &text)?,
                Err(_) => {
                    let what = "is not text; copy or write it again";
                    return Err(WorkloadError(format!("{}: {what}", file.name)));
                }
            },
        };
        let mut remarks = wildcards::resolve(&file.name, &mut ranks)?;
        let marks = ranks.iter().flatten().filter(|task| task.op == Op::Mark).count() as u64;
        if marks > 0 {
            let what =
                "sends of no bytes to a rank that is not there mark an end, and do nothing".into();
            remarks.push(Remark { what, count: marks });
        }
        Ok(self.lower(file.name, &ranks, remarks))
    }
}

impl Goal {
    fn lower(&self, name: String, ranks: &[Vec<Task>], remarks: Vec<Remark>) -> Trace {
        let graph = |(rank, tasks): (usize, &Vec<Task>)| {
            let source = format!("{name}: rank {rank}");
            self.graph(&source, tasks)
        };
        let graphs: Vec<RankGraph> = ranks.iter().enumerate().map(graph).collect();
        Trace {
            ranks: Some(graphs.len() as u32),
            graphs,
            shared: false,
            groups: vec![Group::of(Membership::World)],
            degrees: Degrees::NONE,
            exchanges: Vec::new(),
            carried: Vec::new(),
            remarks,
            name,
        }
    }

    /// The nodes of a rank: of a task up to three, in this order: where it begins, its time on the CPU
    /// and what it does; a receive has the CPU last.
    fn graph(&self, source: &str, tasks: &[Task]) -> RankGraph {
        let mut begins = vec![false; tasks.len()];
        for task in tasks {
            task.irequires.iter().for_each(|other| begins[*other as usize] = true);
            for other in
                task.requires.iter().filter(|other| self.is_eager(&tasks[**other as usize]))
            {
                // With a time on the CPU the end of that is what counts.
                begins[*other as usize] |= self.overhead == Time::ZERO;
            }
        }
        let mut places = Vec::with_capacity(tasks.len());
        let mut next = 0;
        for (task, has_begin) in tasks.iter().zip(&begins) {
            let begin = has_begin.then_some(next);
            next += u32::from(*has_begin) + 1;
            let has_cpu =
                self.overhead > Time::ZERO && matches!(task.op, Op::Send(_) | Op::Receive(_));
            next += u32::from(has_cpu);
            let (first, last) = (next - 1 - u32::from(has_cpu), next - 1);
            let end = match self.is_eager(task) {
                true if has_cpu => first,
                true => begin.unwrap_or(last),
                false => last,
            };
            places.push(Place { begin, first, last, end });
        }
        let mut graph = RankGraph::new(source);
        for (task, place) in tasks.iter().zip(&places) {
            self.push(&mut graph, task, place, &places);
        }
        graph.number_turns();
        graph
    }

    fn push(&self, graph: &mut RankGraph, task: &Task, place: &Place, places: &[Place]) {
        let ends = task.requires.iter().map(|other| places[*other as usize].end);
        let starts = task.irequires.iter().filter_map(|other| places[*other as usize].begin);
        let mut waits: Vec<u32> = ends.chain(starts).collect();
        let mut add = |work: Work, waits: &mut Vec<u32>| {
            let name = task.label.clone();
            let own = graph.push(Node { id: task.place, name, work, start: Time::ZERO }, waits);
            *waits = vec![own];
        };
        if place.begin.is_some() {
            add(Work::Nothing, &mut waits);
        }
        let stream = u32::from(task.cpu);
        let compute = |time| Work::Compute(Compute { time, stream, ..Compute::default() });
        let works = match (&task.op, compute(self.overhead)) {
            (Op::Calc(time), _) => [compute(*time), Work::Nothing],
            (Op::Mark, _) => [Work::Nothing, Work::Nothing],
            (Op::Send(one), cpu) => [cpu, Work::Send(transfer(one))],
            (Op::Receive(one), cpu) => [Work::Receive(transfer(one)), cpu],
        };
        match (place.last - place.first, works) {
            (0, [_, work @ Work::Send(_)]) | (0, [work, _]) => add(work, &mut waits),
            (_, works) => works.into_iter().for_each(|work| add(work, &mut waits)),
        }
    }

    fn is_eager(&self, task: &Task) -> bool {
        matches!(&task.op, Op::Send(one) if one.bytes <= self.eager)
    }
}

/// The nodes of a task.
struct Place {
    /// Where it begins, if somebody waits for that.
    begin: Option<u32>,
    /// Its first and its last node, the one of its beginning apart.
    first: u32,
    last: u32,
    /// What those wait for that wait for its end.
    end: u32,
}

fn transfer(one: &tasks::Message) -> Transfer {
    Transfer { peer: Peer::Rank(one.peer), bytes: one.bytes, tag: one.tag.into(), turn: 0 }
}
