//! The message DAG that every workload is lowered to.
//!
//! Invariant: dependencies of message `m` stand at `starts[m] .. starts[m + 1]`. Whether they
//! make sense (no cycle, hosts that exist) is [`Workload::validate`]'s question, not
//! [`Workload::push`]'s, since a message may wait for one that is added later.
//!
//! What it does not do: hold compute steps, or know what a collective is.

use crate::WorkloadError;
use weft_units::id::Id;
use weft_units::{HostId, IdVec, MessageId, Time};

/// One transfer. Its dependencies are held by the [`Workload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending host.
    pub src: HostId,
    /// Who receives; never `src`.
    pub dst: HostId,
    /// Payload, at least one byte.
    pub bytes: u64,
    /// Posted this long after the last dependency was met; after the start of the run if
    /// there is none.
    pub start: Time,
}

/// Which end of a message somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// The sender has seen the last byte acknowledged.
    Sent,
    /// The receiver has the last byte.
    Received,
}

/// Something that must have happened before a message is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The earlier message.
    pub on: MessageId,
    /// Its end that counts.
    pub when: When,
}

/// Messages and their dependencies.
#[derive(Clone, Debug)]
pub struct Workload {
    hosts: u32,
    messages: IdVec<MessageId, Message>,
    /// Dependencies of message `m`: `dependencies[starts[m] .. starts[m + 1]]`.
    dependencies: Vec<Dependency>,
    starts: Vec<u32>,
}

impl Workload {
    /// An empty workload over hosts `0..hosts`.
    pub fn new(hosts: u32) -> Workload {
        Workload { hosts, messages: IdVec::new(), dependencies: Vec::new(), starts: vec![0] }
    }
    /// Appends a message that waits for `dependencies` (of messages added before or later).
    ///
    /// # Panics
    /// Beyond 2^32 messages or dependencies.
    pub fn push(&mut self, message: Message, dependencies: &[Dependency]) -> MessageId {
        self.dependencies.extend_from_slice(dependencies);
        let end = u32::try_from(self.dependencies.len()).expect("dependencies fit in 32 bits");
        self.starts.push(end);
        self.messages.push(message)
    }
    /// How many hosts take part (some may be silent).
    pub fn hosts(&self) -> u32 {
        self.hosts
    }
    /// All messages, by id.
    pub fn messages(&self) -> &IdVec<MessageId, Message> {
        &self.messages
    }
    /// What `message` waits for.
    pub fn dependencies(&self, message: MessageId) -> &[Dependency] {
        let at = message.0 as usize;
        &self.dependencies[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
    /// How many dependencies there are in all; without any, no message waits for another.
    pub fn dependency_count(&self) -> usize {
        self.dependencies.len()
    }
    /// All payload bytes. [`Workload::validate`] refuses workloads where they overflow.
    pub fn total_bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.bytes).sum()
    }
    /// The same where messages that wait for no other leave their host so much later.
    pub fn delayed(mut self, by: impl Fn(HostId) -> Time) -> Workload {
        let Workload { messages, starts, .. } = &mut self;
        let ids: Vec<MessageId> = messages.ids().collect();
        for id in ids.into_iter().filter(|id| starts[id.0 as usize] == starts[id.0 as usize + 1]) {
            let message = &mut messages[id];
            message.start = message.start.saturating_add(by(message.src));
        }
        self
    }
    /// The same traffic on a fabric of `hosts` hosts, the added ones being silent.
    ///
    /// # Errors
    /// If the workload uses more hosts than that.
    pub fn on_fabric_of(self, hosts: u32) -> Result<Workload, WorkloadError> {
        if self.hosts > hosts {
            return Err(WorkloadError(format!(
                "the workload has {} hosts but the fabric only {hosts}; enlarge the fabric or use \
                 a smaller workload",
                self.hosts
            )));
        }
        Ok(Workload { hosts, ..self })
    }

    /// Checks all that the engine relies on: hosts exist, nobody sends to itself or sends
    /// nothing, dependencies exist and are acyclic, and the bytes can be counted.
    ///
    /// # Errors
    /// The first thing wrong, with the message that it concerns.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let mut total = 0u64;
        for (id, message) in self.messages.enumerate() {
            self.check(id, message)
                .map_err(|what| WorkloadError(format!("{}: {what}", self.name(id))))?;
            total = total.checked_add(message.bytes).ok_or_else(|| {
                WorkloadError("all messages together exceed 2^64 bytes; make them smaller".into())
            })?;
        }
        match self.cycle() {
            None => Ok(()),
            Some(cycle) => {
                let chain = cycle_text(&cycle, |id| format!("message {}", id.0));
                let first = self.name(cycle[0]);
                Err(WorkloadError(format!("{first}: can never start, since {chain}")))
            }
        }
    }

    fn name(&self, id: MessageId) -> String {
        let Message { src, dst, .. } = self.messages[id];
        format!("message {} (host {} to host {})", id.0, src.0, dst.0)
    }

    /// What is wrong with one message, cycles apart.
    fn check(&self, id: MessageId, message: &Message) -> Result<(), String> {
        check_ends(message.src, message.dst, self.hosts)?;
        if message.bytes == 0 {
            return Err("sends nothing; give it at least one byte".into());
        }
        let count = self.messages.len();
        match self.dependencies(id).iter().find(|dependency| dependency.on.index() >= count) {
            None => Ok(()),
            Some(missing) => Err(format!(
                "waits for message {}, but there are only {count}; add it or remove the dependency",
                missing.on.0
            )),
        }
    }

    /// Messages that wait for each other in a circle, so that none can ever start: each waits
    /// for the one after it, and the last for the first. `None` if the workload is a DAG.
    ///
    /// # Panics
    /// If a dependency names a message that does not exist.
    pub fn cycle(&self) -> Option<Vec<MessageId>> {
        let started = self.startable();
        let stuck = self.messages.ids().find(|id| !started[id.index()])?;
        // A stuck message waits for a stuck one, so this walk must come back to itself.
        let mut position = vec![usize::MAX; self.messages.len()];
        let mut walk = Vec::new();
        let mut at = stuck;
        while position[at.index()] == usize::MAX {
            position[at.index()] = walk.len();
            walk.push(at);
            let waits_for = self.dependencies(at).iter().map(|dependency| dependency.on);
            at = waits_for.into_iter().find(|on| !started[on.index()]).expect("stuck on another");
        }
        Some(walk.split_off(position[at.index()]))
    }

    /// Which messages start at all, if every message that starts also finishes.
    fn startable(&self) -> Vec<bool> {
        let mut started = vec![false; self.messages.len()];
        for id in self.dependents().in_order() {
            started[id.index()] = true;
        }
        started
    }
}

impl Default for Workload {
    fn default() -> Workload {
        Workload::new(0)
    }
}

/// Whether a transfer from `src` to `dst` is possible among `hosts` hosts, and if not, why.
pub(crate) fn check_ends(src: HostId, dst: HostId, hosts: u32) -> Result<(), String> {
    if let Some(outside) = [src, dst].into_iter().find(|host| host.0 >= hosts) {
        return Err(match hosts {
            0 => format!("host {} does not exist: there are no hosts", outside.0),
            _ => format!("host {} does not exist; hosts are 0 to {}", outside.0, hosts - 1),
        });
    }
    if src == dst {
        return Err(format!("host {} sends to itself; remove it", src.0));
    }
    Ok(())
}

/// A cycle in words: `a waits for b, b for c, c for a; remove one of these dependencies`.
pub(crate) fn cycle_text(cycle: &[MessageId], name: impl Fn(MessageId) -> String) -> String {
    const SHOWN: usize = 6;
    let around = cycle.iter().chain(&cycle[..1]).take(SHOWN + 1);
    let names: Vec<String> = around.map(|id| name(*id)).collect();
    let mut text = format!("{} waits for {}", names[0], names[1]);
    for pair in names[1..].windows(2) {
        text += &format!(", {} for {}", pair[0], pair[1]);
    }
    if cycle.len() > SHOWN {
        text += &format!(", ... ({} in all) and back to {}", cycle.len(), names[0]);
    }
    text + "; remove one of these dependencies"
}
