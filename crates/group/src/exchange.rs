//! Sends and receives of single messages: each as soon as it is asked for, whatever else is under
//! way, those of one peer, tag and direction in order.
//!
//! Messages of tag 0, which is what most programs use, have a channel of their own, where they go
//! without any agreement. All other tags share two ([`crate::tagged`]). Receives from anybody wait
//! until somebody is known to send ([`crate::anyone`]), and then are like all others.

use crate::anyone::{Anyone, Told};
use crate::call::{Call, Operation};
use crate::error::GroupError;
use crate::item::{Item, Timer};
use crate::links::Links;
use crate::tagged::{Incoming, Outgoing};
use std::collections::{BTreeMap, VecDeque};

/// The stream of messages of tag 0.
const PLAIN: u64 = 1;

/// Messages of tag 0, to a peer or from one.
#[derive(Debug)]
struct Queue<R, T> {
    waiting: VecDeque<Item<T>>,
    posted: VecDeque<(Item<T>, R)>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Exchange<R, T> {
    /// By peer and whether it sends to us.
    plain: BTreeMap<(u32, bool), Queue<R, T>>,
    incoming: BTreeMap<u32, Incoming<R, T>>,
    outgoing: BTreeMap<u32, Outgoing<R, T>>,
    anyone: Anyone<R, T>,
    told: Told<R>,
}

fn operation(peer: u32, comes: bool, tag: u32) -> Operation {
    match comes {
        true => Operation::Receive { from: peer, tag },
        false => Operation::Send { to: peer, tag },
    }
}

impl<R, T> Queue<R, T> {
    fn new() -> Queue<R, T> {
        Queue { waiting: VecDeque::new(), posted: VecDeque::new() }
    }

    fn advance(
        &mut self,
        (peer, comes): (u32, bool),
        links: &mut impl Links<Request = R>,
        done: &mut impl FnMut(T),
    ) -> Result<bool, String> {
        let mut moved = false;
        // In order: messages of one channel are over in the order in which they were posted.
        while let Some((item, request)) = self.posted.front() {
            let Some(bytes) = links.test(request)? else { break };
            item.expects(bytes)?;
            if let Some((item, _)) = self.posted.pop_front() {
                done(item.ticket);
            }
            moved = true;
        }
        while let Some(Item { segment, .. }) = self.waiting.front() {
            let (start, len) = (segment.start, segment.len);
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: whoever submitted the call keeps the memory until its ticket is done,
            // which is when the request is over or the links are closed.
            let request = unsafe {
                match comes {
                    true => links.receive(peer, PLAIN, start, len),
                    false => links.send(peer, PLAIN, start, len),
                }
            };
            let Some(request) = request? else { break };
            if let Some(item) = self.waiting.pop_front() {
                self.posted.push_back((item, request));
            }
            moved = true;
        }
        Ok(moved)
    }

    fn items(&self) -> impl Iterator<Item = &Item<T>> {
        self.posted.iter().map(|(item, _)| item).chain(&self.waiting)
    }
    fn into_items(self) -> impl Iterator<Item = Item<T>> {
        self.posted.into_iter().map(|(item, _)| item).chain(self.waiting)
    }
}

impl<R, T> Exchange<R, T> {
    /// Of `rank` of `ranks`.
    pub(crate) fn new(rank: u32, ranks: u32) -> Exchange<R, T> {
        let (plain, incoming, outgoing) = Default::default();
        let (anyone, told) = (Anyone::new(rank, ranks), Told::default());
        Exchange { plain, incoming, outgoing, anyone, told }
    }

    /// Takes a call, if it is one of these.
    pub(crate) fn take(&mut self, call: &Call, ticket: T, timer: Timer) -> Result<(), T> {
        match call.operation {
            Operation::Send { to, tag } => {
                self.told.count(to, tag);
                self.put(to, false, tag, Item { segment: call.inputs[0], timer, ticket });
            }
            Operation::Receive { from, tag } => {
                let item = Item { segment: call.outputs[0], timer, ticket };
                self.receive(from, tag, item);
            }
            Operation::ReceiveAny { tag } => {
                self.anyone.take(tag, Item { segment: call.outputs[0], timer, ticket });
            }
            _ => return Err(ticket),
        }
        Ok(())
    }

    fn receive(&mut self, from: u32, tag: u32, item: Item<T>) {
        self.anyone.count(from, tag);
        self.put(from, true, tag, item);
    }

    fn put(&mut self, peer: u32, comes: bool, tag: u32, item: Item<T>) {
        match (tag, comes) {
            (0, _) => {
                let queue = self.plain.entry((peer, comes)).or_insert_with(Queue::new);
                queue.waiting.push_back(item);
            }
            (_, true) => self.incoming.entry(peer).or_default().take(tag, item),
            (_, false) => self.outgoing.entry(peer).or_default().take(tag, item),
        }
    }

    /// Posts and notes; tickets of messages that are over go to `done`, with their peers. Whether
    /// there was anything.
    ///
    /// # Errors
    /// If a channel has failed, or a message has another length than was to come.
    pub(crate) fn advance(
        &mut self,
        links: &mut impl Links<Request = R>,
        mut done: impl FnMut(T, u32),
    ) -> Result<bool, GroupError> {
        let failed = |peer: u32, comes| {
            let operation = operation(peer, comes, 0).name();
            move |why| GroupError::Peer { operation, peer, why }
        };
        let mut moved = false;
        for peer in self.told.peers() {
            match self.told.advance(peer, links) {
                Ok(told) => moved |= told,
                Err(why) if self.sends_to(peer) => return Err(failed(peer, false)(why)),
                // All that it was sent has been taken, and it has ended: no failure of this rank.
                Err(_) => self.told.give_up(peer),
            }
        }
        moved |= self.anyone.advance(links).map_err(|(peer, why)| failed(peer, true)(why))?;
        while let Some((peer, tag, item)) = self.anyone.next() {
            self.receive(peer, tag, item);
            moved = true;
        }
        for (key, queue) in &mut self.plain {
            let (peer, comes) = *key;
            let done = &mut |ticket| done(ticket, peer);
            moved |= queue.advance(*key, links, done).map_err(failed(peer, comes))?;
        }
        for (peer, all) in &mut self.incoming {
            let done = &mut |ticket| done(ticket, *peer);
            moved |= all.advance(*peer, links, done).map_err(failed(*peer, true))?;
        }
        for (peer, all) in &mut self.outgoing {
            let done = &mut |ticket| done(ticket, *peer);
            moved |= all.advance(*peer, links, done).map_err(failed(*peer, false))?;
        }
        self.plain.retain(|_, queue| queue.items().next().is_some());
        self.incoming.retain(|_, all| !all.is_over());
        self.outgoing.retain(|_, all| !all.is_over());
        Ok(moved)
    }

    /// Whether messages are under way to a peer.
    fn sends_to(&self, peer: u32) -> bool {
        self.plain.contains_key(&(peer, false)) || self.outgoing.contains_key(&peer)
    }

    /// All that is under way.
    fn items(&self) -> impl Iterator<Item = (Operation, &Item<T>)> {
        let plain = self.plain.iter().flat_map(|((peer, comes), queue)| {
            queue.items().map(|item| (operation(*peer, *comes, 0), item))
        });
        let incoming = self.incoming.iter().flat_map(|(peer, all)| {
            all.items().map(|(tag, item)| (operation(*peer, true, tag), item))
        });
        let outgoing = self.outgoing.iter().flat_map(|(peer, all)| {
            all.items().map(|(tag, item)| (operation(*peer, false, tag), item))
        });
        let anyone = self.anyone.items().map(|(tag, item)| (Operation::ReceiveAny { tag }, item));
        plain.chain(incoming).chain(outgoing).chain(anyone)
    }

    /// All that is under way, with its time.
    pub(crate) fn timers(&self) -> impl Iterator<Item = (Operation, Timer)> {
        self.items().map(|(operation, item)| (operation, item.timer))
    }

    /// Everybody who waits.
    pub(crate) fn into_tickets(self) -> impl Iterator<Item = (Operation, T)> {
        let plain = self.plain.into_iter().flat_map(|((peer, comes), queue)| {
            queue.into_items().map(move |item| (operation(peer, comes, 0), item.ticket))
        });
        let incoming = self.incoming.into_iter().flat_map(|(peer, all)| {
            all.into_items().map(move |(tag, item)| (operation(peer, true, tag), item.ticket))
        });
        let outgoing = self.outgoing.into_iter().flat_map(|(peer, all)| {
            all.into_items().map(move |(tag, item)| (operation(peer, false, tag), item.ticket))
        });
        let anyone = self.anyone.into_items();
        let anyone = anyone.map(|(tag, item)| (Operation::ReceiveAny { tag }, item.ticket));
        plain.chain(incoming).chain(outgoing).chain(anyone)
    }

    /// Whether nothing is under way, and nobody waits to be told of anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.items().next().is_none() && !self.told.is_behind()
    }
}
