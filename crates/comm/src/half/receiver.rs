//! The receiving half of a channel.

use crate::memory::Span;
use crate::wire::{Header, Slot, Slots, WINDOW, WireError};
use crate::{MOST_BUFFERS, Sizes};
use std::collections::{BTreeMap, VecDeque};

/// Receives of one channel; `T` is what the caller knows each by.
#[derive(Debug)]
pub struct RecvHalf<T> {
    /// Groups that are not over, the first of them numbered `first`; some behind it may be over.
    groups: VecDeque<Group<T>>,
    first: u64,
    /// Groups below have been announced over a lane that is alive, and below `known` their sender
    /// is known to have heard.
    told: u64,
    known: u64,
    lanes: BTreeMap<u16, ReceiveLane>,
}

#[derive(Debug)]
struct Group<T> {
    /// `None`: it is over.
    token: Option<T>,
    slots: Slots,
    buffers: [Buffer; MOST_BUFFERS],
    /// Buffers that are not full.
    open: usize,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    span: Span,
    /// Bytes that have come, of so many; `None`: nothing has.
    come: u64,
    total: Option<u64>,
    /// Bytes of frames that have begun: while there are any, the memory is not given back.
    begun: u64,
    full: bool,
}

#[derive(Debug)]
struct ReceiveLane {
    /// The next frame.
    next: u64,
    /// Group, slot and bytes of the frame that has begun.
    open: Option<(u64, u8, u64)>,
    /// The newest connection.
    epoch: u32,
}

impl<T> Default for RecvHalf<T> {
    fn default() -> Self {
        let (groups, lanes) = (VecDeque::new(), BTreeMap::new());
        RecvHalf { groups, first: 0, told: 0, known: 0, lanes }
    }
}

impl<T> RecvHalf<T> {
    /// Takes a receive of 1 to [`MOST_BUFFERS`] buffers. Returns whether there was room for it.
    pub fn post(&mut self, buffers: &[(Span, Slot)], token: T) -> bool {
        if self.groups.len() as u64 >= WINDOW {
            return false;
        }
        let slots = Slots::new(buffers.iter().map(|(_, slot)| *slot));
        let mut all = [Buffer { span: Span::EMPTY, come: 0, total: None, begun: 0, full: false };
            MOST_BUFFERS];
        for (buffer, (span, _)) in all.iter_mut().zip(buffers) {
            buffer.span = *span;
        }
        let open = buffers.len().min(MOST_BUFFERS);
        self.groups.push_back(Group { token: Some(token), slots, buffers: all, open });
        true
    }

    /// Receives that are counted: those under way, and those behind the oldest of them.
    pub fn len(&self) -> usize {
        self.groups.len()
    }
    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A lane has a new connection, whose sender lacks the groups from `next_group` on. How many
    /// frames are here; `None`: it is an old connection that was late.
    ///
    /// # Errors
    /// If there are no such groups.
    pub fn hello(
        &mut self,
        lane: u16,
        epoch: u32,
        next_group: u64,
    ) -> Result<Option<u64>, WireError> {
        let end = self.first + self.groups.len() as u64;
        if next_group > end {
            return Err(WireError::Nonsense("groups that were not announced"));
        }
        let this = self.lanes.entry(lane).or_insert(ReceiveLane { next: 0, open: None, epoch: 0 });
        if epoch <= this.epoch {
            return Ok(None);
        }
        this.epoch = epoch;
        let (next, open) = (this.next, this.open.take());
        self.known = self.known.max(next_group);
        if let Some((group, slot, len)) = open
            && let Some(buffer) = self.buffer(group, slot)
        {
            buffer.begun -= len;
        }
        Ok(Some(next))
    }

    /// The frame that `lane` has next: all below are here.
    pub fn next_frame(&self, lane: u16) -> u64 {
        self.lanes.get(&lane).map_or(0, |lane| lane.next)
    }

    /// The lane that announcements went over is gone: they go again.
    pub fn forget_told(&mut self) {
        self.told = self.known;
    }
    /// Whether the sender may not have heard of all announcements.
    pub fn is_unsure(&self) -> bool {
        self.told > self.known
    }

    /// The next group to announce.
    pub fn poll_clear(&mut self) -> Option<(u64, Slots)> {
        self.told = self.told.max(self.known).max(self.first);
        let at = (self.told - self.first) as usize;
        let slots = self.groups.get(at)?.slots;
        self.told += 1;
        Some((self.told - 1, slots))
    }

    /// A data frame of `lane` begins. Where its body belongs.
    ///
    /// # Errors
    /// If it belongs nowhere.
    pub fn handle_data(&mut self, lane: u16, header: &Header) -> Result<Span, WireError> {
        let nonsense = |what| Err(WireError::Nonsense(what));
        if header.frame != self.next_frame(lane) {
            return nonsense("a frame out of order");
        }
        let len = u64::from(header.len);
        let place = (header.group, header.slot);
        let Some(buffer) = self.buffer(place.0, place.1) else {
            return nonsense("no such buffer");
        };
        let room = buffer.span.len() as u64;
        let total = buffer.total.unwrap_or(header.total);
        if header.total != total || total > room {
            return nonsense("a size that cannot be");
        }
        if header.offset > total
            || len > total - header.offset
            || len > total - buffer.come - buffer.begun
        {
            return nonsense("a part that is not of its message");
        }
        if len == 0 && (total > 0 || buffer.full) {
            return nonsense("an empty part");
        }
        buffer.total = Some(total);
        buffer.begun += len;
        let span = buffer.span.part(header.offset as usize, header.len as usize);
        let lane = self.lanes.get_mut(&lane).expect("a lane begins with a hello");
        lane.open = Some((place.0, place.1, len));
        Ok(span)
    }

    /// All of that frame is here and good. What is over now, and how many bytes came.
    pub fn handle_body(&mut self, lane: u16, header: &Header) -> Option<(T, Sizes)> {
        let lane = self.lanes.get_mut(&lane)?;
        lane.next += 1;
        lane.open = None;
        let buffer = self.buffer(header.group, header.slot)?;
        buffer.begun -= u64::from(header.len);
        buffer.come += u64::from(header.len);
        let full = buffer.come == header.total;
        buffer.full = full;
        // Whoever sends into a group has heard of it and of all before.
        self.known = self.known.max(header.group + 1);
        let group = self.groups.get_mut((header.group - self.first) as usize)?;
        group.open -= usize::from(full);
        if group.open > 0 {
            return None;
        }
        let mut sizes = Sizes { count: group.slots.as_slice().len(), ..Sizes::default() };
        for (size, buffer) in sizes.sizes.iter_mut().zip(&group.buffers).take(sizes.count) {
            *size = buffer.come as usize;
        }
        let over = group.token.take()?;
        while self.groups.front().is_some_and(|group| group.token.is_none()) {
            self.groups.pop_front();
            self.first += 1;
        }
        Some((over, sizes))
    }

    fn buffer(&mut self, group: u64, slot: u8) -> Option<&mut Buffer> {
        let at = group.checked_sub(self.first)?;
        let group = self.groups.get_mut(usize::try_from(at).ok()?)?;
        let slot = usize::from(slot);
        // A group that is over takes nothing.
        group.token.as_ref()?;
        if slot < group.slots.as_slice().len() { Some(&mut group.buffers[slot]) } else { None }
    }

    /// All that is under way, given up.
    pub fn take_all(&mut self) -> Vec<T> {
        self.first += self.groups.len() as u64;
        self.groups.drain(..).filter_map(|group| group.token).collect()
    }
}
