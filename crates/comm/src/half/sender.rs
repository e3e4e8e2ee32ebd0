//! The sending half of a channel.

use crate::copied::Copied;
use crate::handle::MOST_NICS;
use crate::memory::Span;
use crate::slab::Slab;
use crate::wire::{
    CALM, Header, Kind, MOST_EAGER, MOST_EAGER_BYTES, MOST_PAYLOAD, Slot, Slots, WINDOW, WireError,
    check_sum,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use weft_units::Stretches;

/// A part of a message that a lane is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The send that it is part of.
    pub send: u32,
    /// The caller's number for it.
    pub subflow: u32,
    /// Its first byte.
    pub start: u64,
    /// The byte after its last one.
    pub end: u64,
}

/// A frame that is to leave.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its header.
    pub header: Header,
    /// Its body.
    pub body: Span,
    /// Where the body belongs in the memory of the receiver, and the keys to it, by its NIC: of RDMA.
    pub remote: (u64, [u32; MOST_NICS]),
}

/// What a lane has given up.
#[derive(Debug, Default)]
pub struct GivenUp {
    /// What is not acknowledged.
    pub parts: Vec<Part>,
    /// Frames that a connection has been given and has not written to the end: it goes on with copies
    /// ([`crate::stream::outflow::Outflow::keep`]).
    pub frames: Vec<u64>,
}

/// What acknowledgements have completed.
#[derive(Debug)]
pub struct Completed<T> {
    /// Bytes of subflows, by the caller's number. A subflow of no bytes is here once.
    pub subflows: Vec<(u32, u64)>,
    /// Sends that are over, and their bytes.
    pub sends: Vec<(T, u64)>,
    /// The parts that have come, of which sends; `None`: nobody asks.
    pub parts: Option<Vec<(T, Part)>>,
}

impl<T> Default for Completed<T> {
    fn default() -> Self {
        Completed { subflows: Vec::new(), sends: Vec::new(), parts: None }
    }
}

/// A message does not fit into the buffer that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Its length, in bytes.
    pub size: u64,
    /// Those of the buffer.
    pub room: u64,
}

/// Sends of so many bytes at most are over as soon as they are written: a copy is kept until they are
/// acknowledged, which costs less than to wait.
const COPIED: u64 = 64 << 10;
/// All copies of a half, in bytes and sends.
const MOST_COPIES: Share = Share { bytes: 1 << 20, count: 256 };
/// More sends under way than that, or longer ones of more bytes, are a flood: they have buffers in time, and none is
/// eager until only a few are left.
const FLOOD: Share = Share { bytes: 1 << 20, count: MOST_EAGER };
const FEW: Share = Share { bytes: COPIED, count: 8 };
/// Eager sends whose buffers are not known.
const MOST_UNKNOWN: Share = Share { bytes: MOST_EAGER_BYTES, count: MOST_EAGER };

/// Some sends, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    bytes: u64,
    count: usize,
}

impl Share {
    /// One of so many bytes more, if they are no more than `most` then. Whether it is so.
    fn add(&mut self, bytes: u64, most: Share) -> bool {
        let fits = self.bytes + bytes <= most.bytes && self.count < most.count;
        if fits {
            (self.bytes, self.count) = (self.bytes + bytes, self.count + 1);
        }
        fits
    }
    /// One of so many bytes less.
    fn remove(&mut self, bytes: u64) {
        (self.bytes, self.count) = (self.bytes - bytes, self.count - 1);
    }
}

/// What it means that a frame has been written to the end.
#[derive(Debug)]
pub struct Written<T> {
    /// The caller's number of its subflow, and its bytes.
    pub subflow: (u32, u64),
    /// The send that is over by that, and its bytes.
    pub over: Option<(T, u64)>,
}

/// Sends of one channel; `T` is what the caller knows each by.
#[derive(Debug)]
pub struct SendHalf<T> {
    checksum: bool,
    /// Small sends are copied.
    copies: bool,
    /// The sends that are, or are about to be.
    copied: Share,
    /// Sends of so many bytes do not wait for a buffer; `None`: all do.
    eager: Option<u64>,
    /// Eager sends whose buffers are not known.
    unknown: Share,
    /// All sends so far, by tag, where some are eager.
    by_tag: FxHashMap<i32, u64>,
    /// Eager frames so far, and how many of them there were when the receiver last was to hear that somebody waits.
    eager_frames: u64,
    requested: u64,
    /// Parts may be given to several lanes.
    repeats: bool,
    /// Sends so far.
    count: u64,
    /// All bytes of those under way.
    bytes: u64,
    /// They are many.
    floods: bool,
    /// The first group that was not heard of.
    next_group: u64,
    /// Groups that came before their turn.
    early: BTreeMap<u64, Slots>,
    /// Groups with buffers that no send has yet.
    groups: VecDeque<Group>,
    /// Sends without a buffer, in the order of posting, and how many of them are not eager.
    waiting: VecDeque<Waiting>,
    blocked: usize,
    sends: Slab<Send<T>>,
    matched: VecDeque<u32>,
    lanes: Vec<SendLane>,
}

#[derive(Debug)]
struct Group {
    number: u64,
    slots: Slots,
    /// A bit for each slot that has its send.
    taken: u32,
}

/// A send that has no buffer. An eager one may be over.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    tag: i32,
    size: u64,
    eager: bool,
}

#[derive(Debug)]
struct Send<T> {
    /// `None`: for the caller it is over.
    token: Option<T>,
    /// It is over when it is written.
    is_copied: bool,
    /// Where `body` is then.
    copy: Option<Copied>,
    /// The how manieth it is.
    number: u64,
    body: Span,
    tag: i32,
    /// Of an eager one, how many were before it with its tag.
    order: Option<u64>,
    /// Group and slot, once they are known; of an eager one never.
    place: (u64, u8),
    slot: Slot,
    acknowledged: u64,
    /// What of it is, where lanes may carry the same.
    have: Stretches,
}

#[derive(Debug, Default)]
struct SendLane {
    parts: VecDeque<Part>,
    /// Frames that are not acknowledged.
    frames: VecDeque<Frame>,
    /// The number of the first of them.
    first: u64,
    /// How many of them the connection of now has been given, and has written to the end.
    left: usize,
    gone: u64,
    /// Frames below have been written to the end, over some connection.
    written: u64,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    part: Part,
    check: u32,
    /// The how manieth send it is a part of.
    of: u64,
    /// Other lanes carry the same: its memory is not looked at any more.
    given_up: bool,
}

impl<T: Clone> SendHalf<T> {
    /// With check sums of payload, or without.
    pub fn new(checksum: bool) -> SendHalf<T> {
        SendHalf {
            checksum,
            copies: false,
            copied: Share::default(),
            eager: None,
            unknown: Share::default(),
            by_tag: FxHashMap::default(),
            eager_frames: 0,
            requested: 0,
            repeats: false,
            count: 0,
            bytes: 0,
            floods: false,
            next_group: 0,
            early: BTreeMap::new(),
            groups: VecDeque::new(),
            waiting: VecDeque::new(),
            blocked: 0,
            sends: Slab::default(),
            matched: VecDeque::new(),
            lanes: Vec::new(),
        }
    }

    /// From now on parts may be given to a lane while another one still has them ([`SendHalf::give_up`]).
    pub fn allow_repeats(&mut self) {
        self.repeats = true;
    }

    /// From now on small sends are over as soon as they are written.
    pub fn allow_copies(&mut self) {
        self.copies = true;
    }

    /// From now on sends of up to `most` bytes do not wait for a buffer, if a frame holds them. Each of them must
    /// go as one part.
    pub fn allow_eager(&mut self, most: u64) {
        debug_assert!(self.count == 0, "their order is counted");
        self.eager = Some(most.min(MOST_PAYLOAD.into()));
    }

    /// Takes a message.
    ///
    /// # Safety
    /// The memory of `body` is there, and nobody writes it, until its token is given back
    /// ([`Completed::sends`], [`Written::over`], [`SendHalf::take_all`]) or the half is dropped: check sums are made of it.
    ///
    /// # Errors
    /// If it does not fit into the buffer that is next. The channel is of no use then.
    #[expect(unsafe_code, reason = "what is sent is read later")]
    pub unsafe fn post(&mut self, body: Span, tag: i32, token: T) -> Result<(), TooLarge> {
        let (place, slot) = ((0, 0), Slot::default());
        let number = self.count;
        self.count += 1;
        let have = Stretches::default();
        let (is_copied, copy) = (false, None);
        let (token, order, size) = (Some(token), None, body.len() as u64);
        let send = Send {
            token,
            is_copied,
            copy,
            number,
            body,
            tag,
            order,
            place,
            slot,
            acknowledged: 0,
            have,
        };
        if self.sends.len() <= FEW.count && self.bytes <= FEW.bytes {
            self.floods = false;
        }
        let id = self.sends.insert(send);
        self.bytes += size;
        self.floods |= self.sends.len() > FLOOD.count || size > COPIED && self.bytes > FLOOD.bytes;
        self.waiting.push_back(Waiting { id, tag, size, eager: false });
        self.blocked += 1;
        self.match_sends()?;
        let Some(most) = self.eager else { return Ok(()) };
        let before = self.by_tag.entry(tag).or_default();
        let order = std::mem::replace(before, *before + 1);
        // Whoever waits is told of all buffers. So nobody who comes later is eager.
        if self.blocked == 1
            && !self.floods
            && let Some(last) = self.waiting.back_mut().filter(|last| last.id == id && !last.eager)
            && size <= most
            && self.unknown.add(size, MOST_UNKNOWN)
            && let Some(send) = self.sends.get_mut(id)
        {
            (last.eager, send.order) = (true, Some(order));
            self.blocked = 0;
            self.matched.push_back(id);
        }
        Ok(())
    }

    /// Whether the receiver is to hear that somebody waits for buffers ([`SendHalf::request`]): it may think that
    /// nobody does.
    pub fn has_request(&self) -> bool {
        self.blocked > 0 && self.eager_frames > self.requested + CALM
    }
    /// What it is to hear then. Any lane may say it.
    pub fn request(&mut self) -> Header {
        self.requested = self.eager_frames;
        Header { total: self.eager_frames, ..Header::new(Kind::Request) }
    }
    /// What it was to hear may be lost.
    pub fn forget_request(&mut self) {
        self.requested = 0;
    }

    /// A group of buffers was announced, and `more` behind it that are alike, perhaps not for the first time.
    ///
    /// # Errors
    /// With what does not fit, as [`SendHalf::post`], or if the peer is too far ahead.
    pub fn handle_clear(
        &mut self,
        group: u64,
        more: u64,
        slots: Slots,
    ) -> Result<Result<(), TooLarge>, WireError> {
        let end = group.saturating_add(more);
        if end < self.next_group {
            return Ok(Ok(()));
        }
        let most = if self.eager.is_some() { WINDOW + MOST_EAGER as u64 } else { WINDOW };
        if end - self.next_group >= most {
            return Err(WireError::Nonsense("too many buffers"));
        }
        self.early.extend((group.max(self.next_group)..=end).map(|group| (group, slots)));
        while let Some(slots) = self.early.remove(&self.next_group) {
            self.groups.push_back(Group { number: self.next_group, slots, taken: 0 });
            self.next_group += 1;
        }
        let matched = self.match_sends();
        // So many receives are under way at most, and those without a send are among them.
        if matched.is_ok() && self.groups.len() as u64 > WINDOW {
            return Err(WireError::Nonsense("too many buffers"));
        }
        Ok(matched)
    }

    /// The first group that was not heard of.
    pub fn next_group(&self) -> u64 {
        self.next_group
    }

    /// Gives buffers of the oldest group to sends with their tags, in the order of posting.
    fn match_sends(&mut self) -> Result<(), TooLarge> {
        while let Some(group) = self.groups.front_mut() {
            let slots = group.slots.as_slice();
            let mut at = 0;
            while at < self.waiting.len() && group.taken.count_ones() < slots.len() as u32 {
                let Waiting { id, tag, size, eager } = self.waiting[at];
                let fits =
                    |number: &usize| slots[*number].tag == tag && group.taken & 1 << number == 0;
                let Some(number) = (0..slots.len()).find(fits) else {
                    at += 1;
                    continue;
                };
                let room = slots[number].size;
                if size > room {
                    return Err(TooLarge { size, room });
                }
                group.taken |= 1 << number;
                self.waiting.remove(at);
                if eager {
                    self.unknown.remove(size);
                    continue;
                }
                self.blocked -= 1;
                let send = self.sends.get_mut(id).expect("it waits");
                send.place = (group.number, number as u8);
                send.slot = slots[number];
                self.matched.push_back(id);
            }
            if group.taken.count_ones() < slots.len() as u32 {
                return Ok(());
            }
            self.groups.pop_front();
        }
        Ok(())
    }

    /// The next send that has a buffer now, and its bytes. It waits for [`SendHalf::assign`].
    pub fn poll_matched(&mut self) -> Option<(u32, u64)> {
        let id = self.matched.pop_front()?;
        Some((id, self.sends.get(id)?.body.len() as u64))
    }

    /// What the caller knows a send by that is under way.
    pub fn token(&self, send: u32) -> Option<&T> {
        self.sends.get(send)?.token.as_ref()
    }

    /// Those that `lane` has a part of. Some are there twice.
    pub fn tokens_on(&self, lane: u16) -> impl Iterator<Item = &T> {
        let lane = &self.lanes[usize::from(lane)];
        let frames = lane.frames.iter().filter(|frame| !frame.given_up);
        let parts =
            frames.map(|frame| frame.part.send).chain(lane.parts.iter().map(|one| one.send));
        parts.filter_map(|send| self.token(send))
    }

    /// Which send `subflow` is a part of, that `lane` has.
    pub fn send_of(&self, lane: u16, subflow: u32) -> Option<&T> {
        let lane = &self.lanes[usize::from(lane)];
        let frames = lane.frames.iter().map(|frame| &frame.part).chain(&lane.parts);
        self.token(frames.into_iter().find(|part| part.subflow == subflow)?.send)
    }

    /// Whether sends wait for buffers.
    pub fn waits(&self) -> bool {
        self.blocked > 0
    }
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.sends.len() == 0
    }
    /// Whether all that is under way is over for the caller.
    pub fn is_over(&self) -> bool {
        self.sends.iter().all(|(_, send)| send.token.is_none())
    }

    /// One more lane; its number.
    pub fn open_lane(&mut self) -> u16 {
        self.lanes.push(SendLane::default());
        (self.lanes.len() - 1) as u16
    }

    /// Gives a part of a matched send to a lane. The parts of a send cover it once; one of no bytes
    /// has one part.
    pub fn assign(&mut self, lane: u16, part: Part) {
        self.lanes[usize::from(lane)].parts.push_back(part);
    }

    /// What `lane` has not begun to send, for other lanes to do.
    pub fn take_rest(&mut self, lane: u16) -> Vec<Part> {
        self.lanes[usize::from(lane)].parts.drain(..).collect()
    }
    /// `lane` is no longer alone with `subflow`: other lanes are to carry it, or have. What it has written may
    /// still arrive, and what it has begun to write goes on, from copies that the caller makes at once.
    pub fn give_up(&mut self, lane: u16, subflow: u32, out: &mut GivenUp) {
        debug_assert!(self.repeats, "lanes may not have the same");
        let lane = &mut self.lanes[usize::from(lane)];
        for (place, frame) in lane.frames.iter_mut().enumerate() {
            if frame.part.subflow != subflow || std::mem::replace(&mut frame.given_up, true) {
                continue;
            }
            let Part { send, start, end, .. } = frame.part;
            let send = self.sends.get(send).filter(|send| send.number == frame.of);
            if send.is_some_and(|send| start == end || !send.have.has(start, end - start)) {
                out.parts.push(frame.part);
            }
            if (lane.gone as usize..lane.left).contains(&place) {
                out.frames.push(lane.first + place as u64);
            }
        }
        lane.parts.retain(|part| {
            let stays = part.subflow != subflow;
            if !stays {
                out.parts.push(*part);
            }
            stays
        });
    }
    /// The lane that has `subflow`, and has not given it up.
    pub fn lane_of(&self, subflow: u32) -> Option<u16> {
        let lanes = 0..self.lanes.len() as u16;
        lanes.into_iter().find(|lane| self.subflows_on(*lane).any(|it| it == subflow))
    }
    /// Whether `lane` has given up `subflow`, and has written of it what is not acknowledged.
    pub fn has_given_up(&self, lane: u16, subflow: u32) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        let sent = lane.frames.iter().take(lane.left);
        sent.into_iter().any(|frame| frame.given_up && frame.part.subflow == subflow)
    }
    /// Whether `lane` has anything that is not acknowledged, and that no other lane is to carry.
    pub fn is_busy(&self, lane: u16) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        !lane.parts.is_empty() || lane.frames.iter().any(|frame| !frame.given_up)
    }
    /// Whether `lane` waits for acknowledgements, be it of what others carry as well.
    pub fn is_waiting(&self, lane: u16) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        !lane.parts.is_empty() || !lane.frames.is_empty()
    }
    /// Whether [`SendHalf::poll_frame`] has one for `lane`.
    pub fn has_frame(&self, lane: u16) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        lane.left < lane.frames.len() || !lane.parts.is_empty()
    }
    /// Whether `lane` has sent anything over the connection of now that is not acknowledged.
    pub fn is_out(&self, lane: u16) -> bool {
        self.lanes[usize::from(lane)].left > 0
    }
    /// The parts that are on `lane`, in frames or not, by the caller's numbers. Some are there twice.
    pub fn subflows_on(&self, lane: u16) -> impl Iterator<Item = u32> {
        let lane = &self.lanes[usize::from(lane)];
        let frames = lane.frames.iter().filter(|frame| !frame.given_up);
        let frames = frames.map(|frame| frame.part.subflow);
        frames.chain(lane.parts.iter().map(|part| part.subflow))
    }

    /// Cuts the next frame of `lane`, or takes the next of those that are to go again.
    pub fn poll_frame(&mut self, lane: u16) -> Option<Outgoing> {
        let checksum = self.checksum;
        let (copied, copies) = (&mut self.copied, self.copies && !self.repeats);
        let lane = &mut self.lanes[usize::from(lane)];
        // No connection that lives has them.
        while lane.frames.get(lane.left).is_some_and(|frame| frame.given_up) {
            lane.remove(lane.left);
        }
        if lane.left == lane.frames.len() {
            let part = lane.parts.front_mut()?;
            let send = self.sends.get_mut(part.send)?;
            let end = part.end.min(part.start + u64::from(MOST_PAYLOAD));
            let cut = Part { end, ..*part };
            part.start = end;
            if part.start == part.end {
                lane.parts.pop_front();
            }
            let size = send.body.len() as u64;
            let whole = (cut.start, cut.end) == (0, size);
            send.is_copied = copies && size <= COPIED && whole && copied.add(size, MOST_COPIES);
            if send.order.is_some() {
                debug_assert!(whole, "an eager send is one part");
                self.eager_frames += 1;
            }
            let check = if checksum { check_sum_of(body(send, &cut)) } else { 0 };
            lane.frames.push_back(Frame { part: cut, check, of: send.number, given_up: false });
        }
        let Frame { part, check, .. } = lane.frames[lane.left];
        let send = self.sends.get(part.send)?;
        let body = body(send, &part);
        let (group, slot) = send.place;
        let header = Header {
            checked: checksum,
            repeats: self.repeats,
            copied: send.is_copied,
            slot,
            len: body.len() as u32,
            frame: lane.first + lane.left as u64,
            group,
            offset: part.start,
            total: send.body.len() as u64,
            check,
            ..Header::new(Kind::Data)
        };
        let header = match send.order {
            None => header,
            Some(total) => {
                let (group, offset) = (self.next_group, u64::from(send.tag as u32));
                Header { eager: true, group, offset, total, ..header }
            }
        };
        lane.left += 1;
        let remote = (send.slot.address.wrapping_add(part.start), send.slot.keys);
        Some(Outgoing { header, body, remote })
    }

    /// Frame `number` of `lane` has been written to the end. What that means, if it is so for the first time.
    pub fn handle_written(&mut self, lane: u16, number: u64) -> Option<Written<T>> {
        let lane = &mut self.lanes[usize::from(lane)];
        let place = number.checked_sub(lane.first)?;
        lane.gone = lane.gone.max(place + 1).min(lane.left as u64);
        if number < lane.written {
            return None;
        }
        lane.written = number + 1;
        let frame = lane.frames.get(place as usize).filter(|frame| !frame.given_up)?;
        let Part { send, subflow, start, end } = frame.part;
        let send = self.sends.get_mut(send).filter(|send| send.is_copied);
        let over = send.and_then(|send| {
            // It is its send's only frame: no connection reads the memory after this.
            send.body = send.copy.insert(copy_of(send.body)).span();
            send.token.take().map(|token| (token, end - start))
        });
        Some(Written { subflow: (subflow, end - start), over })
    }

    /// A new connection of `lane` is there, and the receiver has all frames below `next`.
    ///
    /// # Errors
    /// If it cannot have them.
    pub fn resume(
        &mut self,
        lane: u16,
        next: u64,
        out: &mut Completed<T>,
    ) -> Result<(), WireError> {
        self.forget_request();
        let this = &mut self.lanes[usize::from(lane)];
        // What old connections have written may have come.
        this.gone = this.written.saturating_sub(this.first);
        this.left = this.frames.len();
        self.handle_ack(lane, next, out)?;
        let this = &mut self.lanes[usize::from(lane)];
        (this.left, this.gone) = (0, 0);
        for place in (0..this.frames.len()).rev() {
            if this.frames[place].given_up {
                this.remove(place);
            }
        }
        Ok(())
    }

    /// The receiver has all frames of `lane` below `next`.
    ///
    /// # Errors
    /// If they have not been written to the end.
    pub fn handle_ack(
        &mut self,
        lane: u16,
        next: u64,
        out: &mut Completed<T>,
    ) -> Result<(), WireError> {
        let lane = &mut self.lanes[usize::from(lane)];
        let more = next.saturating_sub(lane.first);
        // The connection may still be reading what it has not written: that must not be given back.
        if more > lane.gone {
            return Err(WireError::Nonsense("an acknowledgement of what was not sent"));
        }
        for Frame { part, of, .. } in lane.frames.drain(..more as usize) {
            let bytes = part.end - part.start;
            let send = self.sends.get_mut(part.send).filter(|send| send.number == of);
            let Some(send) = send else {
                debug_assert!(self.repeats, "its frames are out");
                continue;
            };
            if self.repeats && bytes > 0 && !send.have.add(part.start, bytes) {
                continue;
            }
            out.subflows.push((part.subflow, bytes));
            if let Some((parts, token)) = out.parts.as_mut().zip(send.token.as_ref()) {
                parts.push((token.clone(), part));
            }
            send.acknowledged += bytes;
            let size = send.body.len() as u64;
            if send.acknowledged == size
                && let Some(send) = self.sends.remove(part.send)
            {
                self.bytes -= size;
                if send.is_copied {
                    self.copied.remove(size);
                }
                out.sends.extend(send.token.map(|token| (token, size)));
            }
        }
        lane.left -= more as usize;
        lane.gone -= more;
        lane.first += more;
        Ok(())
    }

    /// All that is under way, given up.
    pub fn take_all(&mut self) -> Vec<T> {
        self.waiting.clear();
        self.matched.clear();
        (self.blocked, self.bytes, self.copied, self.unknown) = Default::default();
        for lane in &mut self.lanes {
            *lane = SendLane::default();
        }
        let numbers = self.sends.numbers();
        numbers.into_iter().filter_map(|id| self.sends.remove(id)?.token).collect()
    }
}

impl SendLane {
    /// Takes out a frame that the connection of now has not been given.
    fn remove(&mut self, place: usize) {
        debug_assert!(place >= self.left, "its number is taken");
        if self.first + (place as u64) < self.written {
            self.written -= 1;
        }
        self.frames.remove(place);
    }
}

fn body<T>(send: &Send<T>, part: &Part) -> Span {
    send.body.part(part.start as usize, (part.end - part.start) as usize)
}

#[expect(unsafe_code, reason = "reads what is sent")]
fn copy_of(body: Span) -> Copied {
    // SAFETY: as in `check_sum_of`: its token has not been given back.
    Copied::of(unsafe { body.bytes() })
}

#[expect(unsafe_code, reason = "reads what is sent")]
fn check_sum_of(body: Span) -> u32 {
    // SAFETY: the send is under way, so its memory is there and nobody writes it (`SendHalf::post`).
    check_sum(unsafe { body.bytes() })
}
