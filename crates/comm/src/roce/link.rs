//! A queue pair of a lane: frames posted at one end, headers of frames come at the other.

#![expect(unsafe_code, reason = "the device reads and writes memory in place")]

use super::flight::{BITS, Flight};
use super::greeting::Greeting;
use super::memory::Memory;
use crate::half::sender::Outgoing;
use crate::memory::Span;
use crate::wire::{HEADER, MOST_BODY, WireError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use weft_verbs::{
    Completion, CompletionQueue, Device, MemoryRange, Outcome, Pages, QueuePair, VerbsError, Work,
};

/// Frames that may be out at a time: so many buffers for headers the receiver has.
pub(crate) const RING: u32 = 64;
/// Posts of a sender: a body and a header each.
pub(crate) const POSTS: u32 = 2 * RING;
/// Frames that a receiver says may be out at a time.
pub(crate) const SAYS: u32 = 16;
/// Room for a frame without payload.
const SLOT: usize = 512;
const _: () = assert!(HEADER + MOST_BODY <= SLOT);
/// Marks posts of what is said, beside those of data.
const SAID: u32 = 1 << BITS;

/// One end of a queue pair. Dropping it ends it: afterwards the device touches no memory for it.
#[derive(Debug)]
pub(crate) struct Link {
    // Dropped first: memory goes after whoever writes it.
    pair: QueuePair,
    ring: Ring,
    /// What its posts are known by, beside the number of a frame or buffer.
    tag: u32,
    pub(super) own: Greeting,
    /// Which NIC of its endpoint the other end is of.
    pub(super) peer_nic: u8,
    memory: Arc<Memory>,
    flight: Flight,
    /// Buffers with frames that came, in order.
    came: VecDeque<u32>,
    /// Whether anything has come: the other end is connected then.
    heard: bool,
    /// Frames that were said, and of how many the posts have ended.
    said: u32,
    said_done: u32,
    /// When something last ended or came, or was posted after silence.
    pub(crate) alive: Instant,
    /// Why it is of no more use.
    pub(crate) broken: Option<LinkError>,
}

/// Why a link is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// Nobody answered over this path.
    NoAnswer,
    /// Anything else, in words.
    Failed(String),
}

/// Buffers: [`RING`] for frames that come, [`SAYS`] for frames that leave.
#[derive(Debug)]
struct Ring(Pages);

impl Link {
    pub(super) fn new(
        pair: QueuePair,
        tag: u32,
        own: Greeting,
        (device, memory): (&Arc<Device>, Arc<Memory>),
        now: Instant,
    ) -> Result<Link, VerbsError> {
        let ring = Ring::new(device)?;
        for slot in 0..RING {
            ring.post(&pair, tag, slot)?;
        }
        Ok(Link {
            pair,
            ring,
            tag,
            own,
            peer_nic: 0,
            memory,
            flight: Flight::default(),
            came: VecDeque::new(),
            heard: false,
            said: 0,
            said_done: 0,
            alive: now,
            broken: None,
        })
    }

    /// What the other end must know.
    pub(crate) fn greeting(&self) -> Greeting {
        self.own
    }

    pub(super) fn pair(&self) -> &QueuePair {
        &self.pair
    }

    /// The queue pair is connected, and the receiver has all frames below `next`.
    pub(crate) fn begin(&mut self, next: u64, now: Instant) {
        (self.flight, self.alive) = (Flight::begin(next), now);
    }

    /// Whether one more frame may be posted.
    pub(crate) fn has_room(&self) -> bool {
        self.flight.has_room()
    }
    /// Whether the other end's device has not taken something posted.
    pub(crate) fn is_out(&self) -> bool {
        self.flight.is_out()
    }
    /// Frames below have reached the receiver, and have left our memory for good.
    pub(crate) fn completed(&self) -> u64 {
        self.flight.completed()
    }

    /// Ends it. Calls `left` with each frame that was not counted and is free now; the receiver has all
    /// frames below what is returned.
    pub(crate) fn end(self, mut left: impl FnMut(u64)) -> u64 {
        let mut flight = self.flight;
        drop(self);
        let acknowledged = flight.end();
        while let Some(frame) = flight.count() {
            left(frame);
        }
        acknowledged
    }

    /// The receiver has all frames below `next`; frames below which are completed.
    ///
    /// # Errors
    /// If they have not been posted.
    pub(crate) fn handle_ack(&mut self, next: u64, now: Instant) -> Result<u64, WireError> {
        self.flight.handle_ack(next)?;
        self.alive = now;
        Ok(self.completed())
    }

    /// Something posted has ended.
    pub(crate) fn handle_end(&mut self, end: &Completion, queue: &CompletionQueue, now: Instant) {
        self.alive = now;
        let low = end.id as u32;
        match (end.outcome, end.work) {
            (Outcome::Done, Work::Send) if low & SAID > 0 => {
                self.said_done = self.said_done.wrapping_add(1)
            }
            (Outcome::Done, Work::Send) => self.flight.handle_done(low),
            (Outcome::Done, Work::Receive) => {
                self.heard = true;
                self.came.push_back(low);
            }
            (Outcome::Done, _) => {}
            // The first reason counts; the rest is flushed behind it.
            _ if self.broken.is_some() => {}
            (Outcome::NoAnswer, _) => self.broken = Some(LinkError::NoAnswer),
            (outcome, _) => self.broken = Some(LinkError::Failed(queue.words(outcome))),
        }
    }

    /// The next frame that has left our memory and was not counted.
    pub(crate) fn count(&mut self) -> Option<u64> {
        self.flight.count()
    }

    /// Posts a frame: its body into the peer's memory, its header behind it.
    ///
    /// # Safety
    /// The body is lent to a request under way ([`Memory::lend`]), and stays as it is until the frame is
    /// completed or the link is dropped.
    ///
    /// # Errors
    /// If the device refuses. The link is of no more use then.
    pub(crate) unsafe fn post(&mut self, frame: &Outgoing, now: Instant) -> Result<(), VerbsError> {
        let Outgoing { header, body, remote } = frame;
        if !self.is_out() {
            self.alive = now;
        }
        let id = (u64::from(self.tag) << 32) | (header.frame % u64::from(SAID));
        if !body.is_empty() {
            let Some(key) = self.memory.local_key(self.own.nic, *body) else {
                return Err(VerbsError::Device("memory of a send is not registered".into()));
            };
            let subflow = MemoryRange { start: body.start() as u64, len: body.len() as u32, key };
            // SAFETY: as the caller says; the header's completion comes later than the body's.
            unsafe {
                let key = remote.1[usize::from(self.peer_nic)];
                self.pair.write(id, subflow, remote.0, key, None, false)
            }?;
        }
        self.pair.send(id, &header.encode(), true)?;
        self.flight.handle_posted(header.frame);
        Ok(())
    }

    /// Whether the other end is known to listen.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    /// Sends a frame without payload, header and body. Whether there was room for it.
    ///
    /// # Errors
    /// If the device refuses. The link is of no more use then.
    pub(crate) fn say(&mut self, frame: &[u8]) -> Result<bool, VerbsError> {
        if self.said.wrapping_sub(self.said_done) >= SAYS {
            return Ok(false);
        }
        self.ring.say(&self.pair, self.tag, RING + self.said % SAYS, frame)?;
        self.said = self.said.wrapping_add(1);
        Ok(true)
    }

    /// Whether anything has come that was not taken.
    pub(crate) fn has_come(&self) -> bool {
        !self.came.is_empty()
    }

    /// Which NIC of the endpoint it is of.
    pub(crate) fn nic(&self) -> u8 {
        self.own.nic
    }

    /// Whether the processor may read what came: not memory of a GPU.
    pub(crate) fn may_read(&self, body: Span) -> bool {
        !self.memory.is_gpu(body)
    }

    /// The next frame that came, a header and perhaps a body. If it is data, its payload is in place.
    ///
    /// # Errors
    /// If the device refuses to take the buffer back. The link is of no more use then.
    pub(crate) fn take(&mut self) -> Result<Option<[u8; SLOT]>, VerbsError> {
        let Some(slot) = self.came.pop_front() else { return Ok(None) };
        let frame = self.ring.read(slot);
        self.ring.post(&self.pair, self.tag, slot)?;
        Ok(Some(frame))
    }
}

impl Ring {
    fn new(device: &Arc<Device>) -> Result<Ring, VerbsError> {
        Pages::new(device, (RING + SAYS) as usize * SLOT).map(Ring)
    }

    fn slot(&self, number: u32) -> *mut [u8; SLOT] {
        assert!(number < RING + SAYS, "slot {number}");
        self.0.start().cast::<[u8; SLOT]>().wrapping_add(number as usize)
    }

    fn range(&self, slot: u32, len: usize) -> MemoryRange {
        MemoryRange { start: self.slot(slot) as u64, len: len as u32, key: self.0.local_key() }
    }

    fn post(&self, pair: &QueuePair, tag: u32, slot: u32) -> Result<(), VerbsError> {
        // SAFETY: the slot is read only after its completion and before it is posted again; the queue
        // pair is dropped before the ring.
        unsafe { pair.receive(u64::from(tag) << 32 | u64::from(slot), self.range(slot, SLOT)) }
    }

    fn read(&self, slot: u32) -> [u8; SLOT] {
        // SAFETY: it is one of ours; its completion has come, so the device has no more business with it.
        unsafe { *self.slot(slot) }
    }

    fn say(&self, pair: &QueuePair, tag: u32, slot: u32, frame: &[u8]) -> Result<(), VerbsError> {
        // SAFETY: it is one of ours; what was said from it before has left (`Link::say` counts), and only the
        // engine's thread is here.
        let room = unsafe { &mut *self.slot(slot) };
        room[..frame.len()].copy_from_slice(frame);
        let id = u64::from(tag) << 32 | u64::from(SAID | slot);
        // SAFETY: the slot is not touched before its completion; the queue pair is dropped before the ring.
        unsafe { pair.send_range(id, self.range(slot, frame.len())) }
    }
}
