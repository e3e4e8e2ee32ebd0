//! Sends and receives of single messages: each as soon as it is asked for, whatever else is under
//! way, those of one peer, tag and direction in order.

use crate::call::{Call, Operation};
use crate::error::GroupError;
use crate::links::Links;
use crate::memory::Segment;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// By peer, tag and whether it sends to us.
type Key = (u32, u32, bool);

/// A message that somebody waits for.
#[derive(Debug)]
struct Item<T> {
    segment: Segment,
    since: Instant,
    ticket: T,
}

#[derive(Debug)]
struct Queue<R, T> {
    waiting: VecDeque<Item<T>>,
    posted: VecDeque<(Item<T>, R)>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Exchange<R, T>(BTreeMap<Key, Queue<R, T>>);

/// The stream of a tag: all but that of collectives.
fn stream(tag: u32) -> u64 {
    1 + u64::from(tag)
}

fn operation((peer, tag, comes): Key) -> Operation {
    match comes {
        true => Operation::Receive { from: peer, tag },
        false => Operation::Send { to: peer, tag },
    }
}

impl<R, T> Exchange<R, T> {
    pub(crate) fn new() -> Exchange<R, T> {
        Exchange(BTreeMap::new())
    }

    /// Takes a call, if it is one of these.
    pub(crate) fn take(&mut self, call: &Call, ticket: T, since: Instant) -> Result<(), T> {
        let (key, segment) = match call.operation {
            Operation::Send { to, tag } => ((to, tag, false), call.inputs[0]),
            Operation::Receive { from, tag } => ((from, tag, true), call.outputs[0]),
            _ => return Err(ticket),
        };
        let empty = || Queue { waiting: VecDeque::new(), posted: VecDeque::new() };
        let queue = self.0.entry(key).or_insert_with(empty);
        queue.waiting.push_back(Item { segment, since, ticket });
        Ok(())
    }

    /// Posts and notes; tickets of messages that are over go to `done`. Whether there was anything.
    ///
    /// # Errors
    /// If a channel has failed, or a message has another length than was to come.
    pub(crate) fn advance(
        &mut self,
        links: &mut impl Links<Request = R>,
        mut done: impl FnMut(T),
    ) -> Result<bool, GroupError> {
        let mut moved = false;
        for (key, queue) in &mut self.0 {
            let name = operation(*key).name();
            let failed = |why| GroupError::Peer { operation: name, peer: key.0, why };
            // In order: messages of one channel are over in the order in which they were posted.
            while let Some((item, request)) = queue.posted.front() {
                let Some(bytes) = links.test(request).map_err(failed)? else { break };
                if bytes != item.segment.len {
                    let due = item.segment.len;
                    return Err(failed(format!("a message of {bytes} bytes where {due} were due")));
                }
                if let Some((item, _)) = queue.posted.pop_front() {
                    done(item.ticket);
                }
                moved = true;
            }
            while let Some(Item { segment, .. }) = queue.waiting.front() {
                let (peer, tag, comes) = *key;
                let (start, len) = (segment.start, segment.len);
                #[expect(unsafe_code, reason = "the memory is the caller's")]
                // SAFETY: whoever submitted the call keeps the memory until its ticket is done,
                // which is when the request is over or the links are closed.
                let request = unsafe {
                    match comes {
                        true => links.receive(peer, stream(tag), start, len),
                        false => links.send(peer, stream(tag), start, len),
                    }
                };
                let Some(request) = request.map_err(failed)? else { break };
                if let Some(item) = queue.waiting.pop_front() {
                    queue.posted.push_back((item, request));
                }
                moved = true;
            }
        }
        self.0.retain(|_, queue| !queue.waiting.is_empty() || !queue.posted.is_empty());
        Ok(moved)
    }

    /// The oldest of all that is under way.
    pub(crate) fn oldest(&self) -> Option<(Instant, Operation)> {
        let firsts = self.0.iter().filter_map(|(key, queue)| {
            let first = queue.posted.front().map(|(item, _)| item).or(queue.waiting.front())?;
            Some((first.since, operation(*key)))
        });
        firsts.min_by_key(|(since, _)| *since)
    }

    /// Everybody who waits.
    pub(crate) fn into_tickets(self) -> impl Iterator<Item = (Operation, T)> {
        self.0.into_iter().flat_map(|(key, queue)| {
            let posted = queue.posted.into_iter().map(|(item, _)| item);
            posted.chain(queue.waiting).map(move |item| (operation(key), item.ticket))
        })
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
