//! Packets: of which kind they are, what they carry, and how they lie in memory.
//!
//! | [`Kind`] | its fields |
//! |---|---|
//! | data | [`Data`]; of an aggregation tree [`Segment`] |
//! | acknowledgement, NACK | [`Answer`] |
//! | control for a leaf | [`Control`] |
//! | PFC frame | [`Packet::pauses`] |
//!
//! All kinds have a destination, a route, a size and [`flag`]s. The rest are three words and a bit,
//! which only this file reads. A tag lies elsewhere; a tagged packet has its place instead of the
//! last word, until `untagged` puts that back.

use crate::partition::ReceiverId;
use weft_balance::plan::Route;
use weft_balance::tor::conweave::{ControlMessage, ControlPacket};
use weft_balance::tor::glb::Qualities;
use weft_balance::tor::{Control, FlowId};
use weft_fabric::PathId;
use weft_units::HostId;

/// Bits beside the destination, for [`Packet::is`]: kinds, and what has happened to a packet.
pub mod flag {
    /// Acknowledgements, NACKs and control from leaf to leaf.
    pub const CONTROL: u32 = 3 << 24;
    /// PFC frames.
    pub const PFC: u32 = 1 << 26;
    /// Has a tag, under a scheme that tags packets between leaves.
    pub const TAGGED: u32 = 1 << 27;
    /// Follows a path id instead of the hash.
    pub const PINNED: u32 = 1 << 28;
    /// Congestion experienced.
    pub const MARKED: u32 = 1 << 29;
    /// A switch has cut it down to its header.
    pub const TRIMMED: u32 = 1 << 31;
}

/// What the packet's kind makes of it.
const OWN: u32 = 1 << 30;
const KIND: u32 = flag::CONTROL | flag::PFC;
const HOST: u32 = (1 << 24) - 1;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Payload for a receiver.
    Data = 0,
    /// An acknowledgement.
    Ack = 1 << 24,
    /// A negative acknowledgement.
    Nack = 2 << 24,
    /// From a switch to a leaf.
    TorControl = 3 << 24,
    /// From the end of a link to its beginning.
    Pfc = flag::PFC,
}

/// A packet. Carried by value, in events and queues as [`Packed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    words: [u32; 3],
    /// Destination host, kind and flags.
    to: u32,
    /// Entropy value, or path id if pinned.
    route: u16,
    /// Bytes on the wire.
    pub size: u16,
}

/// What data says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its queue pair.
    pub receiver: ReceiverId,
    /// Which packet of it.
    pub seq: u32,
    /// What switches hash: stands for the addresses of the flow.
    pub key: u32,
    /// It has left its host before.
    pub is_resent: bool,
    /// It asks for an acknowledgement at once.
    pub asks: bool,
}

/// What a packet of an aggregation tree says. It is data, and goes to nobody in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of the tree.
    pub tree: u32,
    /// Which operation of its ranks ([`weft_workload::job::Joined::number`]).
    pub number: u32,
    /// Which segment of that, or [`Segment::CALL`].
    pub segment: u32,
    /// Of how many ranks it has the sum; of a call, whether it is one again.
    pub ranks: u16,
}

impl Segment {
    /// No segment: it tells that the operation is under way.
    pub const CALL: u32 = u32::MAX;
}

/// Beside the number of data: it asks for an acknowledgement. Beside that of an answer: as [`Answer::defers`].
const ASKS: u32 = 1 << 30;
/// Beside the number of data, and of what answers it: the switch of its receiver's link trimmed it.
const LAST_HOP: u32 = 1 << 31;
/// The numbers of packets are below.
pub const NUMBERS: u32 = ASKS;

/// What an acknowledgement or a NACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which of the two it is.
    pub is_nack: bool,
    /// Its queue pair, as the destination's partition numbers it.
    pub sender: u32,
    /// Number of the packet that it answers.
    pub seq: u32,
    /// All packets below this number have arrived.
    pub cumulative: u32,
    /// The packet that it answers was marked.
    pub echo: bool,
    /// The packet that it answers was trimmed by the switch of its receiver's link.
    pub last_hop: bool,
    /// All of a chunk is there, and its receiver asks that others go first.
    pub defers: bool,
}

/// What control for a leaf says, beside the receiver of the flow or the group of ports.
const REPLY: u32 = 1 << 24;
const CLEAR: u32 = 2 << 24;
const NOTIFY: u32 = 3 << 24;
const QUALITIES: u32 = 4 << 24;

impl Packet {
    #[inline(always)]
    fn new(kind: Kind, own: bool, dst: HostId, route: Route, size: u16, words: [u32; 3]) -> Packet {
        let (route, pinned) = match route {
            Route::Hashed(entropy) => (entropy, 0),
            Route::Pinned(path) => (path.0, flag::PINNED),
        };
        let to = dst.0 | kind as u32 | pinned | if own { OWN } else { 0 };
        Packet { words, to, route, size }
    }
    /// Data of `size` bytes, headers included, for `dst`.
    #[inline(always)]
    pub fn data(dst: HostId, route: Route, size: u16, data: Data) -> Packet {
        let Data { receiver, seq, key, is_resent, asks } = data;
        let number = seq | if asks { ASKS } else { 0 };
        Packet::new(Kind::Data, is_resent, dst, route, size, [receiver.0, number, key])
    }
    /// An answer to data from `dst`.
    #[inline(always)]
    pub fn answer(dst: HostId, route: Route, size: u16, answer: Answer) -> Packet {
        let Answer { is_nack, sender, seq, cumulative, echo, last_hop, defers } = answer;
        let kind = if is_nack { Kind::Nack } else { Kind::Ack };
        let number = seq | if last_hop { LAST_HOP } else { 0 } | if defers { ASKS } else { 0 };
        Packet::new(kind, echo, dst, route, size, [sender, number, cumulative])
    }
    /// A packet of `size` bytes, headers included, of an aggregation tree.
    pub fn segment(size: u16, segment: Segment) -> Packet {
        let Segment { tree, number, segment, ranks } = segment;
        let (nobody, route) = (HostId(HOST), Route::Hashed(ranks));
        Packet::new(Kind::Data, false, nobody, route, size, [tree, number, segment])
    }
    /// Whether it is of an aggregation tree.
    pub fn is_segment(&self) -> bool {
        self.to & (HOST | KIND) == HOST
    }
    /// What a packet of an aggregation tree says.
    pub fn as_segment(&self) -> Segment {
        debug_assert!(self.is_segment(), "{self:?}");
        let [tree, number, segment] = self.words;
        Segment { tree, number, segment, ranks: self.route }
    }
    /// Control for the leaf above the sender of the flow, or above a host.
    pub fn tor_control(entropy: u16, size: u16, control: Control) -> Packet {
        let (host, words) = match control {
            Control::ConWeave(ControlPacket { flow: FlowId { key, src, dst, .. }, message }) => {
                let (kind, number) = match message {
                    ControlMessage::Reply(epoch) => (REPLY, epoch),
                    ControlMessage::Clear(epoch) => (CLEAR, epoch),
                    ControlMessage::Notify(path) => (NOTIFY, u32::from(path.0)),
                };
                (src, [key, dst.0 | kind, number])
            }
            Control::Glb(host, Qualities { group, bands }) => {
                let bands = u64::from_le_bytes(bands);
                (host, [bands as u32, group | QUALITIES, (bands >> u32::BITS) as u32])
            }
        };
        Packet::new(Kind::TorControl, false, host, Route::Hashed(entropy), size, words)
    }
    /// A PFC frame for the port at the beginning of a link.
    pub fn pfc(pauses: bool, size: u16) -> Packet {
        Packet::new(Kind::Pfc, pauses, HostId(0), Route::Hashed(0), size, [0; 3])
    }

    /// What it is.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        match self.to & KIND {
            0 => Kind::Data,
            bits if bits == Kind::Ack as u32 => Kind::Ack,
            bits if bits == Kind::Nack as u32 => Kind::Nack,
            bits if bits == Kind::TorControl as u32 => Kind::TorControl,
            _ => Kind::Pfc,
        }
    }
    /// Whether any of `flags` is set.
    #[inline(always)]
    pub fn is(&self, flags: u32) -> bool {
        self.to & flags != 0
    }
    /// Where it goes.
    #[inline(always)]
    pub fn dst(&self) -> HostId {
        HostId(self.to & HOST)
    }
    /// What data without a tag says.
    #[inline(always)]
    pub fn as_data(&self) -> Data {
        debug_assert!(self.kind() == Kind::Data && !self.is(flag::TAGGED), "{self:?}");
        let [_, number, key] = self.words;
        let (seq, asks) = (number & (NUMBERS - 1), number & ASKS != 0);
        Data { receiver: self.receiver(), seq, key, is_resent: self.is(OWN), asks }
    }
    /// What an answer without a tag says.
    #[inline(always)]
    pub fn as_answer(&self) -> Answer {
        debug_assert!(!self.is(flag::TAGGED), "{self:?}");
        let [_, number, cumulative] = self.words;
        let (is_nack, sender) = (self.is(Kind::Nack as u32), self.sender());
        let (seq, last_hop) = (number & (NUMBERS - 1), self.was_cut_at_last_hop());
        let defers = number & ASKS != 0;
        Answer { is_nack, sender, seq, cumulative, echo: self.is(OWN), last_hop, defers }
    }
    /// What control for a leaf says.
    pub fn as_tor_control(&self) -> Control {
        debug_assert!(self.kind() == Kind::TorControl, "{self:?}");
        let [key, receiver, number] = self.words;
        if receiver & !HOST == QUALITIES {
            let bands = (u64::from(number) << u32::BITS | u64::from(key)).to_le_bytes();
            return Control::Glb(self.dst(), Qualities { group: receiver & HOST, bands });
        }
        let message = match receiver & !HOST {
            REPLY => ControlMessage::Reply(number),
            CLEAR => ControlMessage::Clear(number),
            _ => ControlMessage::Notify(PathId(number as u16)),
        };
        let dst = HostId(receiver & HOST);
        let flow = FlowId { key, control: false, src: self.dst(), dst };
        Control::ConWeave(ControlPacket { flow, message })
    }
    /// Whether a PFC frame says to stop; else to go on.
    pub fn pauses(&self) -> bool {
        debug_assert!(self.kind() == Kind::Pfc, "{self:?}");
        self.is(OWN)
    }
    /// Of data: as [`Data::receiver`].
    #[inline(always)]
    pub fn receiver(&self) -> ReceiverId {
        debug_assert!(self.kind() == Kind::Data, "{self:?}");
        ReceiverId(self.words[0])
    }
    /// Of an answer: as [`Answer::sender`].
    #[inline(always)]
    pub fn sender(&self) -> u32 {
        debug_assert!(matches!(self.kind(), Kind::Ack | Kind::Nack), "{self:?}");
        self.words[0]
    }

    /// How switches choose its way.
    #[inline(always)]
    pub fn route(&self) -> Route {
        match self.is(flag::PINNED) {
            true => Route::Pinned(self.path()),
            false => Route::Hashed(self.route),
        }
    }
    /// The entropy value; of a pinned packet the number of its path id.
    #[inline(always)]
    pub fn entropy(&self) -> u16 {
        self.route
    }
    /// The path id of a pinned packet.
    #[inline(always)]
    pub fn path(&self) -> PathId {
        PathId(self.route)
    }
    /// Its next switch reads this path id.
    pub(crate) fn set_path(&mut self, path: PathId) {
        self.route = path.0;
    }
    /// The path id of a pinned packet, as its next switch reads it, for the one that reads it now.
    #[inline(always)]
    pub(crate) fn swap_path(&mut self) -> PathId {
        let path = self.path();
        self.route = path.swapped().0;
        path
    }
    /// It has met congestion.
    #[inline(always)]
    pub fn mark(&mut self) {
        self.to |= flag::MARKED;
    }
    /// What is left of it, in `size` bytes; `last_hop`: at the switch of its receiver's link.
    pub fn trimmed(self, size: u16, last_hop: bool) -> Packet {
        let [first, number, last] = self.words;
        let number = number | if last_hop { LAST_HOP } else { 0 };
        Packet { to: self.to | flag::TRIMMED, size, words: [first, number, last], ..self }
    }
    /// Of trimmed data, and of its answer: the switch of the receiver's link did it.
    pub(crate) fn was_cut_at_last_hop(&self) -> bool {
        self.words[1] & LAST_HOP != 0
    }
    /// An answer, as a NACK or an acknowledgement.
    pub(crate) fn as_nack(self, is_nack: bool) -> Packet {
        let kind = if is_nack { Kind::Nack } else { Kind::Ack };
        Packet { to: self.to & !KIND | kind as u32, ..self }
    }
    /// The place of its extended header, of one that has one.
    pub(crate) fn header(&self) -> u32 {
        self.words[1] & (NUMBERS - 1)
    }
    /// The same packet, with its extended header at `place`.
    pub(crate) fn with_header(self, place: u32) -> Packet {
        let [first, number, last] = self.words;
        let number = number & !(NUMBERS - 1) | place;
        Packet { words: [first, number, last], ..self }
    }

    /// The place of its tag.
    #[inline(always)]
    pub fn tag(&self) -> Option<u32> {
        self.is(flag::TAGGED).then_some(self.words[2])
    }
    /// It with the tag at `place`, in the stead of another one if it has one.
    #[inline(always)]
    pub fn tagged(self, place: u32) -> Packet {
        let [first, second, _] = self.words;
        Packet { words: [first, second, place], to: self.to | flag::TAGGED, ..self }
    }
    /// What a tag makes it lose.
    pub(crate) fn beneath_tag(&self) -> BeneathTag {
        BeneathTag { word: self.words[2], route: self.route }
    }
    /// It follows `path` from its next switch on.
    pub(crate) fn pinned(self, path: PathId) -> Packet {
        Packet { to: self.to | flag::PINNED, route: path.0, ..self }
    }
    /// It as its host, which pins none, sent it.
    pub(crate) fn untagged(self, beneath: BeneathTag) -> Packet {
        let ([first, second, _], BeneathTag { word, route }) = (self.words, beneath);
        let to = self.to & !(flag::TAGGED | flag::PINNED);
        Packet { words: [first, second, word], to, route, ..self }
    }

    /// What matters once it is lost.
    #[inline(always)]
    pub fn lost(&self) -> LostPacket {
        let [first, second, last] = self.words;
        LostPacket { first, second, last, to: self.to, size: self.size }
    }
    /// What switches hash of it.
    #[inline(always)]
    pub(crate) fn hash_fields(&self) -> HashFields {
        HashFields { to: self.to, word: self.words[2], entropy: self.route, size: self.size }
    }
}

/// What a packet had where it has a tag now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeneathTag {
    word: u32,
    route: u16,
}

/// What is noted of a packet that is lost. Handed over by value: a packet that some rare case
/// borrows would be put together in memory in every case, which costs a sixth of a hop.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    first: u32,
    second: u32,
    last: u32,
    to: u32,
    /// As [`Packet::size`].
    pub size: u16,
}

impl LostPacket {
    /// As [`Packet::is`].
    pub fn is(self, flags: u32) -> bool {
        self.to & flags != 0
    }
    /// As [`Packet::tag`].
    pub fn tag(self) -> Option<u32> {
        self.is(flag::TAGGED).then_some(self.last)
    }
    /// The place of its extended header, if answers have one, and data where `on_data`.
    pub(crate) fn header(self, on_data: bool) -> Option<u32> {
        let kind = self.to & KIND;
        let is_data = kind == 0 && self.to & HOST != HOST;
        let has = kind == Kind::Ack as u32 || kind == Kind::Nack as u32 || on_data && is_data;
        has.then_some(self.second & (NUMBERS - 1))
    }
    /// Of data: its destination and queue pair.
    pub fn receiver(self) -> Option<(HostId, ReceiverId)> {
        let is_data = self.to & KIND == 0 && self.to & HOST != HOST;
        is_data.then_some((HostId(self.to & HOST), ReceiverId(self.first)))
    }
}

/// What switches hash of a packet without a tag. By value, as [`LostPacket`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashFields {
    to: u32,
    word: u32,
    pub(crate) entropy: u16,
    /// As [`Packet::size`].
    pub(crate) size: u16,
}

impl HashFields {
    /// The hash key of data from `host` where switches hash addresses, with some of `drawn` to tell
    /// its flows apart.
    pub(crate) fn key_of(host: HostId, drawn: u32) -> u32 {
        drawn & !HOST | host.0
    }
    /// The sender of data with such a key.
    pub(crate) fn src(self) -> HostId {
        HostId(self.word & HOST)
    }
    #[inline(always)]
    pub(crate) fn dst(self) -> HostId {
        HostId(self.to & HOST)
    }
    #[inline(always)]
    pub(crate) fn is_control(self) -> bool {
        self.to & flag::CONTROL != 0
    }
    /// What stands for the addresses. Control hashes by where it goes, and the entropy that it echoes.
    #[inline(always)]
    pub(crate) fn key(self) -> u32 {
        if self.is_control() { self.to & HOST } else { self.word }
    }
}

/// A packet in memory, with a number beside it. Whole words, so that it goes from registers to
/// memory and back without ever being put together from smaller parts on the way, which costs
/// processors more than the packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packed {
    /// The second word of the packet above the first.
    which: u64,
    /// `to` above the third.
    destination: u64,
    /// The number above `size` above `route`.
    rest: u64,
}

impl Packed {
    /// A place for a packet.
    pub(crate) const EMPTY: Packed = Packed { which: 0, destination: 0, rest: 0 };

    /// `packet`, with `beside`.
    #[inline(always)]
    pub fn new(packet: Packet, beside: u32) -> Packed {
        let Packet { words: [first, second, third], to, route, size } = packet;
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let rest = pair(u32::from(size) << 16 | u32::from(route), beside);
        Packed { which: pair(first, second), destination: pair(third, to), rest }
    }
    /// The packet.
    #[inline(always)]
    pub fn packet(self) -> Packet {
        let Packed { which, destination, rest } = self;
        Packet {
            words: [which as u32, (which >> 32) as u32, destination as u32],
            to: (destination >> 32) as u32,
            route: rest as u16,
            size: (rest >> 16) as u16,
        }
    }
    /// The same packet, `marked` or as it was, beside another number.
    #[inline(always)]
    pub(crate) fn forwarded(self, marked: bool, beside: u32) -> Packed {
        let mark = if marked { flag::MARKED } else { 0 };
        let destination = self.destination | u64::from(mark) << 32;
        let rest = self.rest & u64::from(u32::MAX) | u64::from(beside) << 32;
        Packed { destination, rest, ..self }
    }
    /// The number beside it.
    #[inline(always)]
    pub fn beside(self) -> u32 {
        (self.rest >> 32) as u32
    }
    /// It as words.
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 3] {
        [self.which, self.destination, self.rest]
    }
    /// What has these words.
    pub(crate) fn of_words([which, destination, rest]: [u64; 3]) -> Packed {
        Packed { which, destination, rest }
    }
    /// Becomes `other`, word by word: a copy of the whole would have to wait until all words of
    /// `other` have been put together in memory.
    #[inline(always)]
    pub(crate) fn set(&mut self, other: Packed) {
        self.which = other.which;
        self.destination = other.destination;
        self.rest = other.rest;
    }
}

const _: () = assert!(size_of::<Packet>() == 20 && size_of::<Packed>() == 24);
/// A path id travels in the same 16 bits as an entropy value.
const _: () = assert!(size_of::<PathId>() == 2);
