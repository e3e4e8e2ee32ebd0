//! The receiving half of a channel.

use super::sender::TooLarge;
use crate::memory::Span;
use crate::wire::{CALM, Header, MOST_EAGER, MOST_EAGER_BYTES, Slot, Slots, WINDOW, WireError};
use crate::{MOST_BUFFERS, Sizes};
use rustc_hash::FxHashMap;
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
    /// What there is to announce, from `known` on at least.
    runs: VecDeque<Run>,
    lanes: BTreeMap<u16, ReceiveLane>,
    /// Buffers by tag, in the order of posting: the sends with a tag fill them in theirs.
    by_tag: FxHashMap<i32, Tagged>,
    /// Eager frames that are here before their buffers, by tag and place among the sends with it.
    early: FxHashMap<(i32, u64), Vec<u8>>,
    early_bytes: u64,
    /// Eager frames so far, and how many of them there were when the sender last waited for buffers.
    eager_frames: u64,
    requested: u64,
    /// An eager frame that does not fit into its buffer.
    too_large: Option<TooLarge>,
}

/// Groups that follow each other and are announced alike.
#[derive(Debug)]
struct Run {
    first: u64,
    count: u64,
    slots: Slots,
}

/// Buffers with a tag.
#[derive(Debug, Default)]
struct Tagged {
    /// Group and slot of each, but for those of the `gone` first ones, whose groups are over.
    places: VecDeque<(u64, u8)>,
    gone: u64,
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
    /// The eager frame that has begun, if there is no buffer for it: its tag, its place among those with it, and
    /// where it is read to.
    early: Option<(i32, u64, Vec<u8>)>,
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
        RecvHalf {
            groups: VecDeque::new(),
            first: 0,
            told: 0,
            known: 0,
            runs: VecDeque::new(),
            lanes: BTreeMap::new(),
            by_tag: FxHashMap::default(),
            early: FxHashMap::default(),
            early_bytes: 0,
            eager_frames: 0,
            requested: 0,
            too_large: None,
        }
    }
}

impl<T> RecvHalf<T> {
    /// Takes a receive of 1 to [`MOST_BUFFERS`] buffers. Returns whether there was room for it. Some of it may be
    /// here already ([`RecvHalf::fill_early`]).
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
        let number = self.first + self.groups.len() as u64;
        for (slot, place) in slots.as_slice().iter().zip(0..) {
            let Tagged { places, gone } = self.by_tag.entry(slot.tag).or_default();
            while places.front().is_some_and(|(group, _)| *group < self.first) {
                places.pop_front();
                *gone += 1;
            }
            places.push_back((number, place));
        }
        match self.runs.back_mut().filter(|run| run.slots.as_slice() == slots.as_slice()) {
            Some(run) => run.count += 1,
            None => self.runs.push_back(Run { first: number, count: 1, slots }),
        }
        self.groups.push_back(Group { token: Some(token), slots, buffers: all, open, have });
        true
    }

    /// Fills the buffers of the last receive with what is here of it, and says whether that ends it.
    ///
    /// # Safety
    /// The memory of its buffers is there, and nobody else reads or writes it.
    #[expect(unsafe_code, reason = "payload is put where it belongs")]
    pub unsafe fn fill_early(&mut self) -> Option<(T, Sizes)> {
        if self.early.is_empty() {
            return None;
        }
        let slots = self.groups.back()?.slots;
        let group = self.first + self.groups.len() as u64 - 1;
        let mut over = None;
        for (slot, place) in slots.as_slice().iter().zip(0..) {
            let Tagged { places, gone } = &self.by_tag[&slot.tag];
            let at = places.iter().rposition(|it| *it == (group, place)).expect("it was posted");
            let order = gone + at as u64;
            // SAFETY: as the caller says.
            let ended = unsafe { self.fill_from_early(slot.tag, order) };
            over = over.or(ended.expect("nothing else goes into a new buffer"));
        }
        over
    }

    /// Puts an eager frame that is here into its buffer, if that was posted. The receive that this ends.
    ///
    /// # Errors
    /// If something else goes into it.
    ///
    /// # Safety
    /// The memory of the buffer is there, and nobody else reads or writes it.
    #[expect(unsafe_code, reason = "payload is put where it belongs")]
    unsafe fn fill_from_early(
        &mut self,
        tag: i32,
        order: u64,
    ) -> Result<Option<(T, Sizes)>, WireError> {
        let Some((group, slot)) = self.place_of(tag, order) else { return Ok(None) };
        let Some(body) = self.early.get(&(tag, order)) else { return Ok(None) };
        let size = body.len() as u64;
        let fresh = self.buffer(group, slot).filter(|buffer| buffer.total.is_none());
        let Some(buffer) = fresh else {
            return Err(WireError::Nonsense("an eager frame for a buffer that has another"));
        };
        let room = buffer.span.len() as u64;
        if size > room {
            self.too_large = Some(TooLarge { size, room });
            return Ok(None);
        }
        (buffer.total, buffer.come, buffer.full) = (Some(size), size, true);
        let span = buffer.span;
        if let Some(body) = self.early.remove(&(tag, order)) {
            self.early_bytes -= size;
            // SAFETY: as the caller says, and it has room.
            unsafe { span.fill(&body) };
        }
        Ok(self.end_buffer(group))
    }

    /// Group and slot of the buffer that the send with `tag` after `order` others belongs to, if it was posted.
    fn place_of(&self, tag: i32, order: u64) -> Option<(u64, u8)> {
        let Tagged { places, gone } = self.by_tag.get(&tag)?;
        places.get(usize::try_from(order.checked_sub(*gone)?).ok()?).copied()
    }

    /// Whether eager frames are here before their buffers.
    pub fn has_early(&self) -> bool {
        !self.early.is_empty()
    }
    /// What did not fit into its buffer. The channel is of no use then.
    pub fn too_large(&self) -> Option<TooLarge> {
        self.too_large
    }
    /// The sender waits for buffers, and had begun so many eager frames before.
    pub fn handle_request(&mut self, eager_frames: u64) {
        self.requested = self.requested.max(eager_frames);
    }
    /// Whether the sender sends eager frames and does not wait for announcements.
    pub fn is_unhurried(&self) -> bool {
        self.eager_frames > self.requested + CALM
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
        let new = ReceiveLane { next: 0, open: None, early: None, epoch: 0 };
        let this = self.lanes.entry(lane).or_insert(new);
        if epoch <= this.epoch {
            return Ok(None);
        }
        if epoch - this.epoch > LONGEST_JUMP {
            return Err(WireError::Nonsense("a connection whose number no try can have reached"));
        }
        this.epoch = epoch;
        let (next, open) = (this.next, this.open.take());
        this.early = None;
        self.know(next_group);
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
    /// Groups that were not announced, or not heard of. Eager frames may have ended them.
    pub fn unannounced(&self) -> u64 {
        self.first + self.groups.len() as u64 - self.told.max(self.known)
    }

    /// The next group to announce, and how many behind it are alike.
    pub fn poll_clear(&mut self) -> Option<(u64, u64, Slots)> {
        let from = self.told.max(self.known);
        let run = self.runs.iter().find(|run| from < run.first + run.count)?;
        self.told = run.first + run.count;
        Some((from, self.told - 1 - from, run.slots))
    }

    /// The sender has heard of all groups below `group`.
    fn know(&mut self, group: u64) {
        self.known = self.known.max(group);
        while self.runs.front().is_some_and(|run| run.first + run.count <= self.known) {
            self.runs.pop_front();
        }
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
        let repeats = header.repeats;
        if repeats && self.has(header) {
            return Ok(Span::EMPTY);
        }
        let (tag, order) = key_of(header);
        let is_early = |half: &Self| half.early.contains_key(&(tag, order));
        let (place, offset, total) = match header.eager {
            false => ((header.group, header.slot), header.offset, header.total),
            true if header.group > self.first + self.groups.len() as u64 || is_early(self) => {
                return nonsense("an eager frame that cannot be");
            }
            true => match self.place_of(tag, order) {
                Some(place) => (place, 0, len),
                None => return self.begin_early(lane, header),
            },
        };
        let Some(buffer) = self.buffer(place.0, place.1) else {
            return nonsense("no such buffer");
        };
        let room = buffer.span.len() as u64;
        if header.eager && total > room && buffer.total.is_none() {
            return self.begin_early(lane, header);
        }
        if total != buffer.total.unwrap_or(total)
            || total > room
            || buffer.repeats != repeats && buffer.total.is_some()
        {
            return nonsense("a size that cannot be");
        }
        if offset > total || len > total - offset || len > total - buffer.come - buffer.begun {
            return nonsense("a part that is not of its message");
        }
        if len == 0 && (total > 0 || buffer.full) {
            return nonsense("an empty part");
        }
        (buffer.total, buffer.repeats) = (Some(total), repeats);
        buffer.begun += if repeats { 0 } else { len };
        let span = buffer.span.part(offset as usize, header.len as usize);
        let lane = self.lanes.get_mut(&lane).expect("a lane begins with a hello");
        lane.open = Some(Open { group: place.0, slot: place.1, offset, len, repeats });
        Ok(span)
    }

    /// An eager frame of `lane` begins, and no buffer takes it. Where its body is kept.
    ///
    /// # Errors
    /// If the sender had to wait.
    fn begin_early(&mut self, lane: u16, header: &Header) -> Result<Span, WireError> {
        let (tag, order) = key_of(header);
        let begun = self.lanes.values().filter_map(|lane| lane.early.as_ref());
        let (mut count, mut bytes) = (self.early.len(), self.early_bytes + u64::from(header.len));
        for (other, place, body) in begun {
            if (*other, *place) == (tag, order) {
                return Err(WireError::Nonsense("the same eager frame twice"));
            }
            // Who has heard of its buffer by now may have sent others.
            if self.place_of(*other, *place).is_none() {
                (count, bytes) = (count + 1, bytes + body.len() as u64);
            }
        }
        if count >= MOST_EAGER || bytes > MOST_EAGER_BYTES {
            return Err(WireError::Nonsense("too many eager frames"));
        }
        let mut body = vec![0; header.len as usize];
        let span = Span::new(body.as_mut_ptr(), body.len());
        let lane = self.lanes.get_mut(&lane).expect("a lane begins with a hello");
        lane.early = Some((tag, order, body));
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
        let (open, early) = (this.open.take(), this.early.take());
        self.eager_frames += u64::from(header.eager);
        // Whoever sends into a group has heard of it and of all before.
        self.know(header.group + u64::from(!header.eager));
        if let Some((tag, order, body)) = early {
            self.early_bytes += body.len() as u64;
            self.early.insert((tag, order), body);
            #[expect(unsafe_code, reason = "payload is put where it belongs")]
            // SAFETY: buffers are of receives under way, and no frame has begun for this one.
            unsafe {
                ended.over = self.fill_from_early(tag, order)?;
            }
            return Ok(ended);
        }
        // It may have come over another lane since it began.
        let Some(open) = open.filter(|_| !(header.repeats && self.has(header))) else {
            return Ok(ended);
        };
        let Some(buffer) = self.buffer(open.group, open.slot) else { return Ok(ended) };
        buffer.begun -= if header.repeats { 0 } else { open.len };
        buffer.come += open.len;
        let full = buffer.total == Some(buffer.come);
        buffer.full = full;
        if header.repeats {
            let at = (open.group - self.first) as usize;
            let Some(group) = self.groups.get_mut(at) else { return Ok(ended) };
            group.have.resize(group.slots.as_slice().len(), Stretches::default());
            if !group.have[usize::from(header.slot)].add(header.offset, header.len.into()) {
                return Err(WireError::Nonsense("a part that has come in part"));
            }
            ended.late = self.divert(header);
        }
        ended.over = if full { self.end_buffer(open.group) } else { None };
        Ok(ended)
    }

    /// A buffer of `group` is full. The receive, if it is over.
    fn end_buffer(&mut self, group: u64) -> Option<(T, Sizes)> {
        let group = self.groups.get_mut((group - self.first) as usize)?;
        group.open -= 1;
        if group.open > 0 {
            return None;
        }
        let mut sizes = Sizes { count: group.slots.as_slice().len(), ..Sizes::default() };
        for (size, buffer) in sizes.sizes.iter_mut().zip(&group.buffers).take(sizes.count) {
            *size = buffer.come as usize;
        }
        let over = group.token.take().map(|token| (token, sizes));
        while self.groups.front().is_some_and(|group| group.token.is_none()) {
            self.groups.pop_front();
            self.first += 1;
        }
        over
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
        self.early.clear();
        self.early_bytes = 0;
        self.groups.drain(..).filter_map(|group| group.token).collect()
    }
}

/// Tag of an eager frame, and its place among those with it.
fn key_of(header: &Header) -> (i32, u64) {
    (header.offset as i32, header.total)
}
