//! What a host is to do: messages, and what each waits for at this host.
//!
//! A dependency of a message is always something that its sender sees: one of its own messages
//! that is answered, or one that it has received.

use crate::sender::Given;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_units::{HostId, MessageId, Time};

/// One message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number, unique in the whole job.
    pub message: MessageId,
    /// The host that receives it.
    pub dst: HostId,
    /// Payload.
    pub bytes: u64,
    /// This long after the last thing that it waits for.
    pub start: Time,
    /// What it waits for.
    pub after: Vec<Need>,
    /// Its subflows, if it was planned elsewhere.
    pub given: Option<Vec<Given>>,
}

/// Something that must have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// A message of this host has been answered to the end.
    Sent(MessageId),
    /// A message to this host is complete.
    Received(MessageId),
}

/// Tasks by what they wait for.
#[derive(Debug)]
pub struct Script {
    tasks: Vec<Task>,
    unmet: Vec<usize>,
    /// Who waits. Never iterated.
    waiting: FxHashMap<Need, Vec<usize>>,
    /// What may start, when; equal times in the order of the tasks.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    unsent: usize,
    /// Bytes to come.
    missing: u64,
}

impl Script {
    /// Of a host that is to send `tasks` and to receive `expected` bytes.
    pub fn new(tasks: Vec<Task>, expected: u64) -> Script {
        let mut waiting: FxHashMap<Need, Vec<usize>> = FxHashMap::default();
        let mut due = BinaryHeap::new();
        for (number, task) in tasks.iter().enumerate() {
            for need in &task.after {
                waiting.entry(*need).or_default().push(number);
            }
            if task.after.is_empty() {
                due.push(Reverse((task.start, number)));
            }
        }
        let unmet = tasks.iter().map(|task| task.after.len()).collect();
        Script { unsent: tasks.len(), missing: expected, tasks, unmet, waiting, due }
    }

    /// The next message to post now.
    pub fn poll_task(&mut self, now: Time) -> Option<&Task> {
        let Reverse((at, number)) = *self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        Some(&self.tasks[number])
    }
    /// When [`Script::poll_task`] has something.
    pub fn poll_deadline(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }
    /// A message of this host has been answered to the end.
    pub fn handle_sent(&mut self, now: Time, message: MessageId) {
        self.unsent -= 1;
        self.met(now, Need::Sent(message));
    }
    /// A message of so many bytes has come to this host.
    pub fn handle_received(&mut self, now: Time, message: MessageId, bytes: u64) {
        self.missing = self.missing.saturating_sub(bytes);
        self.met(now, Need::Received(message));
    }
    /// Whether all is sent and all has come.
    pub fn is_done(&self) -> bool {
        self.unsent == 0 && self.missing == 0
    }
    /// Messages that are not sent, and bytes that have not come.
    pub fn remaining(&self) -> (usize, u64) {
        (self.unsent, self.missing)
    }

    fn met(&mut self, now: Time, need: Need) {
        for number in self.waiting.remove(&need).unwrap_or_default() {
            self.unmet[number] -= 1;
            if self.unmet[number] == 0 {
                self.due.push(Reverse((now + self.tasks[number].start, number)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(message: u32, after: &[Need]) -> Task {
        let (dst, bytes, start) = (HostId(1), 10, Time::ms(1));
        Task { message: MessageId(message), dst, bytes, start, after: after.to_vec(), given: None }
    }
    fn due(script: &mut Script, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| script.poll_task(now).map(|task| task.message.0)).collect()
    }

    #[test]
    fn tasks_wait_for_all_that_they_name() {
        let needs = [Need::Sent(MessageId(0)), Need::Received(MessageId(9))];
        let mut script = Script::new(vec![task(0, &[]), task(1, &needs)], 5);
        assert!(due(&mut script, Time::ZERO).is_empty());
        assert_eq!(due(&mut script, Time::ms(1)), [0]);
        script.handle_sent(Time::ms(2), MessageId(0));
        assert_eq!(script.poll_deadline(), None);
        script.handle_received(Time::ms(3), MessageId(9), 5);
        assert_eq!(script.poll_deadline(), Some(Time::ms(4)));
        assert_eq!(due(&mut script, Time::ms(4)), [1]);
        assert!(!script.is_done());
        script.handle_sent(Time::ms(5), MessageId(1));
        assert!(script.is_done());
    }
}
