//! htsim's connection matrices (`.cm`).
//!
//! ```text
//! Nodes 4
//! Connections 2
//! Triggers 1
//! 0->1 id 1 start 0 size 2000000 send_done_trigger 1
//! 0->2 id 2 trigger 1 size 2000000
//! trigger id 1 oneshot
//! ```
//!
//! Header lines come first. A connection says `src->dst`, then in any order `size` (bytes) and
//! either `start` (picoseconds) or `trigger` (the trigger that starts it), and optionally
//! `id`, `send_done_trigger`, `recv_done_trigger` (the trigger that its last acknowledgement or
//! its last byte activates) and `prio`. A trigger says `id` and one of `oneshot`, `multishot`,
//! `barrier count N`. Empty lines and lines with `#` in front are skipped.
//!
//! Source: the loader and the triggers of htsim (`connection_matrix.cpp`, `trigger.cpp`), from
//! which these follow: `start` is in picoseconds, although the function that saves a matrix
//! writes microseconds; a oneshot starts all its connections and may be activated only once; a
//! multishot starts one more connection at every activation; a barrier starts all its
//! connections at its N-th activation.
//!
//! Invariant: what is accepted means here what it means there. Refused is what a DAG cannot say
//! (who finishes first decides) or what changes the run without being in a DAG: differing
//! priorities, failures, several messages on one connection (`msg`), endless flows (size 0).
//! Also refused is what htsim lets pass or aborts on: counts that do not match, hosts that do
//! not exist, triggers that nothing activates or that start nothing.
//!
//! A file cut within the last number of its last line cannot be told from a whole one.

mod lines;
mod write;

pub(crate) use write::write_cm;

use crate::dag::{check_ends, cycle_text};
use crate::{Dependency, Message, When, Workload, WorkloadError};
use lines::{Begin, Connection, Kind, Matrix, Trigger};
use std::collections::BTreeMap;
use weft_units::id::Id;
use weft_units::{HostId, MessageId, Time};

/// Reads a connection matrix; `name` is what errors call the file. Message ids follow the order
/// of the connections in the file.
///
/// # Errors
/// The first thing wrong or not expressible, as one line with file and line number.
pub fn read_cm(name: &str, text: &str) -> Result<Workload, WorkloadError> {
    let matrix = Matrix::parse(name, text)?;
    check_connections(name, &matrix)?;
    let triggers = Triggers::collect(name, &matrix)?;
    let mut workload = Workload::new(matrix.nodes);
    for connection in &matrix.connections {
        let (start, dependencies) = match connection.begin {
            Begin::At(start) => (start, &[][..]),
            Begin::On(id) => (Time::ZERO, &triggers.by_id[&id].activators[..]),
        };
        let Connection { src, dst, bytes, .. } = *connection;
        let message = Message { src: HostId(src), dst: HostId(dst), bytes, start };
        workload.push(message, dependencies);
    }
    match workload.cycle() {
        None => Ok(workload),
        Some(cycle) => {
            let line = |id: MessageId| matrix.connections[id.index()].line;
            let chain = cycle_text(&cycle, |id| format!("line {}", line(id)));
            let what = format!("this connection can never start, since {chain}");
            Err(WorkloadError::at(name, line(cycle[0]), what))
        }
    }
}

/// Hosts, sizes, ids and priorities.
fn check_connections(name: &str, matrix: &Matrix) -> Result<(), WorkloadError> {
    let mut lines_of_ids = BTreeMap::new();
    let mut total = 0u64;
    for connection in &matrix.connections {
        let error = |what: String| Err(WorkloadError::at(name, connection.line, what));
        let (src, dst) = (HostId(connection.src), HostId(connection.dst));
        if let Err(what) = check_ends(src, dst, matrix.nodes) {
            let known = src.0.max(dst.0) < matrix.nodes;
            let nodes = format!(" (or correct 'Nodes {}')", matrix.nodes);
            return error(format!("{what}{}", if known { "" } else { &nodes }));
        }
        if let Some(id) = connection.id
            && let Some(earlier) = lines_of_ids.insert(id, connection.line)
        {
            return error(format!("id {id} is already used on line {earlier}; give it another"));
        }
        let first = &matrix.connections[0];
        if connection.priority != first.priority {
            return error(format!(
                "its priority differs from that on line {}, and priorities between messages are \
                 not simulated; give all connections the same 'prio' or none",
                first.line
            ));
        }
        total = match total.checked_add(connection.bytes) {
            Some(sum) => sum,
            None => return error("all sizes together exceed 2^64 bytes; make them smaller".into()),
        };
    }
    Ok(())
}

/// A declared trigger, with those who activate it and the first whom it starts.
struct Use<'a> {
    trigger: &'a Trigger,
    activators: Vec<Dependency>,
    /// How many connections it starts, and the line of the first.
    started: usize,
    first_started: u64,
}

struct Triggers<'a> {
    by_id: BTreeMap<u32, Use<'a>>,
}

impl<'a> Triggers<'a> {
    /// Who activates and who waits for each trigger, checked to be what a DAG can say.
    fn collect(name: &str, matrix: &'a Matrix) -> Result<Triggers<'a>, WorkloadError> {
        let mut triggers = Triggers { by_id: BTreeMap::new() };
        for trigger in &matrix.triggers {
            let new = Use { trigger, activators: Vec::new(), started: 0, first_started: 0 };
            if let Some(earlier) = triggers.by_id.insert(trigger.id, new) {
                let (id, line) = (trigger.id, earlier.trigger.line);
                let what = format!("trigger {id} is already declared on line {line}; remove one");
                return Err(WorkloadError::at(name, trigger.line, what));
            }
        }
        for (index, connection) in matrix.connections.iter().enumerate() {
            triggers.add(MessageId::from_index(index), connection).map_err(|missing| {
                let what = format!(
                    "trigger {missing} is not declared; add a line 'trigger id {missing} oneshot'"
                );
                WorkloadError::at(name, connection.line, what)
            })?;
        }
        for used in triggers.by_id.values() {
            used.check().map_err(|what| WorkloadError::at(name, used.trigger.line, what))?;
        }
        Ok(triggers)
    }

    /// Notes what one connection activates and waits for; fails with the id of a trigger that
    /// is not declared.
    fn add(&mut self, on: MessageId, connection: &Connection) -> Result<(), u32> {
        let ends = [(connection.sent, When::Sent), (connection.received, When::Received)];
        for (id, when) in ends {
            if let Some(id) = id {
                let used = self.by_id.get_mut(&id).ok_or(id)?;
                used.activators.push(Dependency { on, when });
            }
        }
        if let Begin::On(id) = connection.begin {
            let used = self.by_id.get_mut(&id).ok_or(id)?;
            if used.started == 0 {
                used.first_started = connection.line;
            }
            used.started += 1;
        }
        Ok(())
    }
}

impl Use<'_> {
    /// What is wrong with this trigger, with the mend.
    fn check(&self) -> Result<(), String> {
        let (id, activators) = (self.trigger.id, self.activators.len());
        if self.started == 0 {
            return Err(format!(
                "trigger {id} starts nothing; add 'trigger {id}' to the connection that it should \
                 start, or remove it"
            ));
        }
        if activators == 0 {
            return Err(format!(
                "nothing activates trigger {id}, so the connection on line {} would never start; \
                 add 'send_done_trigger {id}' to the connection that it follows",
                self.first_started
            ));
        }
        match self.trigger.kind {
            Kind::Oneshot => self.check_oneshot(),
            Kind::Multishot => self.check_multishot(),
            Kind::Barrier(count) => self.check_barrier(count),
        }
    }

    fn check_oneshot(&self) -> Result<(), String> {
        match self.activators.len() {
            1 => Ok(()),
            n => Err(format!(
                "{n} connections activate oneshot trigger {id}, which fires once; write 'trigger \
                 id {id} barrier count {n}' if all of them must finish",
                id = self.trigger.id
            )),
        }
    }

    fn check_multishot(&self) -> Result<(), String> {
        match (self.activators.len(), self.started) {
            (1, 1) => Ok(()),
            (activators, started) => Err(format!(
                "multishot trigger {} has {activators} activations for {started} connections, so \
                 that who finishes first decides what starts; only one for one is supported: use \
                 oneshot triggers",
                self.trigger.id
            )),
        }
    }

    fn check_barrier(&self, count: u32) -> Result<(), String> {
        let (id, n) = (self.trigger.id, self.activators.len());
        match n.cmp(&(count as usize)) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(format!(
                "barrier {id} waits for {count} activations but only {n} can come, so the \
                 connection on line {} would never start; write 'count {n}'",
                self.first_started
            )),
            std::cmp::Ordering::Greater => Err(format!(
                "barrier {id} opens at {count} of {n} activations, so that who finishes first \
                 decides when; only all of them are supported: write 'count {n}'"
            )),
        }
    }
}
