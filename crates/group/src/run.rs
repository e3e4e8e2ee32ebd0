//! An operation under way at one rank: does of its schedule what can be done.

use crate::call::{Call, Operation};
use crate::element::{Element, Reduction};
use crate::error::GroupError;
use crate::links::Links;
use crate::memory::Memory;
use crate::schedule::{Action, Schedule};
use std::collections::{BTreeMap, VecDeque};

/// Messages of one direction to or from one peer.
#[derive(Debug)]
struct Queue<R> {
    /// Not posted yet, in order.
    waiting: VecDeque<u32>,
    posted: Vec<(u32, R)>,
}

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Run<R> {
    operation: Operation,
    kind: (Element, Reduction),
    ranks: u32,
    schedule: Schedule,
    memory: Memory,
    /// For each action, how many others it waits for, and who waits for it.
    pending: Vec<u32>,
    dependents: Vec<Vec<u32>>,
    /// By peer and whether it sends to us.
    queues: BTreeMap<(u32, bool), Queue<R>>,
    left: usize,
}

impl<R> Run<R> {
    /// Begins a call that has been checked, with what this rank does in it.
    ///
    /// # Safety
    /// As [`Memory::new`], for the call's inputs and outputs.
    #[expect(unsafe_code, reason = "the memory is the caller's")]
    pub(crate) unsafe fn new(call: &Call, ranks: u32, schedule: Schedule) -> Run<R> {
        let segments = call.inputs.iter().chain(&call.outputs).copied().collect();
        // SAFETY: passed on.
        let mut memory = unsafe { Memory::new(segments, schedule.room) };
        for (from, to) in &schedule.copies {
            memory.copy(*from, *to);
        }
        let mut dependents = vec![Vec::new(); schedule.actions.len()];
        let mut queues = BTreeMap::new();
        for (task, action) in schedule.actions.iter().enumerate() {
            for need in &schedule.needs[task] {
                dependents[*need as usize].push(task as u32);
            }
            let key = match *action {
                Action::Send { to, .. } => (to, false),
                Action::Receive { from, .. } => (from, true),
            };
            let queue = || Queue { waiting: VecDeque::new(), posted: Vec::new() };
            queues.entry(key).or_insert_with(queue).waiting.push_back(task as u32);
        }
        Run {
            operation: call.operation,
            kind: (call.element, call.reduction),
            ranks,
            pending: schedule.needs.iter().map(|needs| needs.len() as u32).collect(),
            dependents,
            queues,
            left: schedule.actions.len(),
            schedule,
            memory,
        }
    }

    /// Whether all is done.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Peers that have something left to do for us, or to take from us.
    pub(crate) fn owing(&self) -> Vec<u32> {
        let owes = |queue: &Queue<R>| !queue.waiting.is_empty() || !queue.posted.is_empty();
        // Those who have not sent; if all have, those who have not taken.
        let of = |sends: bool| -> Vec<u32> {
            let all = self.queues.iter().filter(|((_, is), queue)| *is == sends && owes(queue));
            all.map(|((peer, _), _)| *peer).collect()
        };
        let first = of(true);
        if first.is_empty() { of(false) } else { first }
    }

    /// Posts what can be posted and takes note of what is over; whether there was anything.
    ///
    /// # Errors
    /// If a channel has failed, or a message has another length than was to come. Then `links` must
    /// be closed before this is dropped.
    pub(crate) fn advance(
        &mut self,
        links: &mut impl Links<Request = R>,
    ) -> Result<bool, GroupError> {
        let operation = self.operation.name();
        let mut moved = false;
        for ((peer, _), queue) in &mut self.queues {
            let failed = |why| GroupError::Peer { operation, peer: *peer, why };
            let mut at = 0;
            while at < queue.posted.len() {
                let Some(bytes) = links.test(&queue.posted[at].1).map_err(failed)? else {
                    at += 1;
                    continue;
                };
                let (task, _) = queue.posted.remove(at);
                let action = self.schedule.actions[task as usize];
                let (Action::Send { from: span, .. } | Action::Receive { into: span, .. }) = action;
                if bytes != span.len {
                    let why = format!(
                        "a message of {bytes} bytes where {} were due; do all ranks call the same \
                         with the same sizes?",
                        span.len
                    );
                    return Err(failed(why));
                }
                if let Action::Receive { then: Some(then), .. } = action {
                    let divides = then.is_last && self.kind.1 == Reduction::Avg;
                    let ranks = divides.then_some(self.ranks);
                    self.memory.combine(self.kind, then.from, then.into, ranks);
                }
                for dependent in std::mem::take(&mut self.dependents[task as usize]) {
                    self.pending[dependent as usize] -= 1;
                }
                self.left -= 1;
                moved = true;
            }
            while let Some(task) = queue.waiting.front().copied()
                && self.pending[task as usize] == 0
            {
                let request = post(links, &self.memory, self.schedule.actions[task as usize]);
                let Some(request) = request.map_err(failed)? else { break };
                queue.waiting.pop_front();
                queue.posted.push((task, request));
                moved = true;
            }
        }
        Ok(moved)
    }
}

/// Posts one message of a collective.
fn post<L: Links>(
    links: &mut L,
    memory: &Memory,
    action: Action,
) -> Result<Option<L::Request>, String> {
    #[expect(unsafe_code, reason = "the memory is the caller's")]
    // SAFETY: `Memory` lives until the request is over or the links are closed, as `advance` says,
    // and what reads and writes it waits for each other (`schedule::overlap`).
    unsafe {
        match action {
            Action::Send { to, from } => links.send(to, 0, memory.pointer(from), from.len),
            Action::Receive { from, into, .. } => {
                links.receive(from, 0, memory.pointer(into), into.len)
            }
        }
    }
}
