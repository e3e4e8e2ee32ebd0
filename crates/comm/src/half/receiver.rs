//! The receiving half of a channel.

use crate::memory::Span;
use crate::wire::{Header, Slot, Slots, WINDOW, WireError};
use crate::{MOST_BUFFERS, Sizes};
use std::collections::{BTreeMap, VecDeque};
use weft_units::Stretches;

/// Tries of a lane between two that are heard: a day of them and more.
const LONGEST_JUMP: u32 = 1 << 20;

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
    /// What has come, by buffer, where it may come several times; else empty.
    have: Vec<Stretches>,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    span: Span,
    /// Bytes that have come, of so many; `None`: nothing has.
    come: u64,
    total: Option<u64>,
    /// Its parts may come several times.
    repeats: bool,
    /// Bytes of frames that have begun: while there are any, the memory is not given back.
    begun: u64,
    full: bool,
}

#[derive(Debug)]
struct ReceiveLane {
    /// The next frame.
    next: u64,
    /// The frame that has begun, if it is for a buffer.
    open: Option<Open>,
    /// The newest connection.
    epoch: u32,
}

/// A frame that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    group: u64,
    slot: u8,
    offset: u64,
    len: u64,
    /// The same may come over another lane.
    repeats: bool,
}

/// What a frame that is here has ended.
#[derive(Debug)]
pub struct Ended<T> {
    /// A receive that is over, and how many bytes came.
    pub over: Option<(T, Sizes)>,
    /// Lanes on which something has begun that belongs nowhere now, since it has come over this one:
    /// [`crate::stream::inflow::Inflow::divert`], before more is read of them, and before anybody is told that
    /// memory is free.
    pub late: Vec<u16>,
}

impl<T> Default for Ended<T> {
    fn default() -> Self {
        Ended { over: None, late: Vec::new() }
    }
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
        let mut all = [Buffer {
            span: Span::EMPTY,
            come: 0,
            total: None,
            repeats: false,
            begun: 0,
            full: false,
        }; MOST_BUFFERS];
        for (buffer, (span, _)) in all.iter_mut().zip(buffers) {
            buffer.span = *span;
        }
        let open = buffers.len().min(MOST_BUFFERS);
        let have = Vec::new();
        self.groups.push_back(Group { token: Some(token), slots, buffers: all, open, have });
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
    /// If there are no such groups, or nobody can have tried so often.
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
        if epoch - this.epoch > LONGEST_JUMP {
            return Err(WireError::Nonsense("a connection whose number no try can have reached"));
        }
        this.epoch = epoch;
        let (next, open) = (this.next, this.open.take());
        self.known = self.known.max(next_group);
        if let Some(Open { group, slot, len, repeats: false, .. }) = open
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

    /// Groups that were announced and are not over, those behind the oldest among them.
    pub fn unfilled(&self) -> u64 {
        self.told.max(self.known).saturating_sub(self.first)
    }
    /// Groups that were not announced, or not heard of.
    pub fn unannounced(&self) -> u64 {
        self.groups.len() as u64 - self.unfilled()
    }

    /// The next group to announce.
    pub fn poll_clear(&mut self) -> Option<(u64, Slots)> {
        self.told = self.told.max(self.known).max(self.first);
        let at = (self.told - self.first) as usize;
        let slots = self.groups.get(at)?.slots;
        self.told += 1;
        Some((self.told - 1, slots))
    }

    /// A data frame of `lane` begins. Where its body belongs; [`Span::EMPTY`]: nowhere, it has come before.
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
        let repeats = header.repeats;
        if repeats && self.has(header) {
            return Ok(Span::EMPTY);
        }
        let Some(buffer) = self.buffer(place.0, place.1) else {
            return nonsense("no such buffer");
        };
        let room = buffer.span.len() as u64;
        let total = buffer.total.unwrap_or(header.total);
        if header.total != total
            || total > room
            || buffer.repeats != repeats && buffer.total.is_some()
        {
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
        (buffer.total, buffer.repeats) = (Some(total), repeats);
        buffer.begun += if repeats { 0 } else { len };
        let span = buffer.span.part(header.offset as usize, header.len as usize);
        let lane = self.lanes.get_mut(&lane).expect("a lane begins with a hello");
        lane.open =
            Some(Open { group: place.0, slot: place.1, offset: header.offset, len, repeats });
        Ok(span)
    }

    /// All of that frame is here and good. What that ends.
    ///
    /// # Errors
    /// If a part of it has come before, and the rest has not.
    pub fn handle_body(&mut self, lane: u16, header: &Header) -> Result<Ended<T>, WireError> {
        let mut ended = Ended::default();
        let Some(this) = self.lanes.get_mut(&lane) else { return Ok(ended) };
        this.next += 1;
        // Whoever sends into a group has heard of it and of all before.
        self.known = self.known.max(header.group + 1);
        // It may have come over another lane since it began.
        if this.open.take().is_none() || header.repeats && self.has(header) {
            return Ok(ended);
        }
        let Some(buffer) = self.buffer(header.group, header.slot) else { return Ok(ended) };
        buffer.begun -= if header.repeats { 0 } else { u64::from(header.len) };
        buffer.come += u64::from(header.len);
        let full = buffer.come == header.total;
        buffer.full = full;
        let at = (header.group - self.first) as usize;
        let Some(group) = self.groups.get_mut(at) else { return Ok(ended) };
        if header.repeats {
            group.have.resize(group.slots.as_slice().len(), Stretches::default());
            if !group.have[usize::from(header.slot)].add(header.offset, header.len.into()) {
                return Err(WireError::Nonsense("a part that has come in part"));
            }
            ended.late = self.divert(header);
        }
        let Some(group) = self.groups.get_mut(at) else { return Ok(ended) };
        group.open -= usize::from(full);
        if group.open > 0 {
            return Ok(ended);
        }
        let mut sizes = Sizes { count: group.slots.as_slice().len(), ..Sizes::default() };
        for (size, buffer) in sizes.sizes.iter_mut().zip(&group.buffers).take(sizes.count) {
            *size = buffer.come as usize;
        }
        ended.over = group.token.take().map(|token| (token, sizes));
        while self.groups.front().is_some_and(|group| group.token.is_none()) {
            self.groups.pop_front();
            self.first += 1;
        }
        Ok(ended)
    }

    /// Whether what a frame brings has come before, of those that may come several times.
    fn has(&self, header: &Header) -> bool {
        let Some(at) = header.group.checked_sub(self.first) else { return true };
        let Some(group) = self.groups.get(at as usize) else { return false };
        let slot = usize::from(header.slot);
        let is_full = group.buffers.get(slot).is_some_and(|buffer| buffer.full);
        let have = group.have.get(slot);
        is_full
            || group.token.is_none()
            || have.is_some_and(|have| header.len > 0 && have.has(header.offset, header.len.into()))
    }

    /// What `header` brings is here: which lanes have begun to bring the same. Damage there must not get to it.
    fn divert(&mut self, header: &Header) -> Vec<u16> {
        let end = header.offset + u64::from(header.len);
        let is_same = |open: &Open| {
            (open.group, open.slot) == (header.group, header.slot)
                && open.offset < end
                && header.offset < open.offset + open.len
        };
        let lanes = self.lanes.iter_mut();
        lanes
            .filter_map(|(number, lane)| lane.open.take_if(|it| is_same(it)).map(|_| *number))
            .collect()
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
