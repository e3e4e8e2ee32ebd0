//! Packets, events, and the order in which events happen.

use crate::partition::InLink;
use weft_balance::plan::Route;
use weft_fabric::PathId;
use weft_units::{HostId, Time};

/// What kind of packet, and what has happened to it: bits beside the destination.
pub mod flag {
    /// An acknowledgement.
    pub const ACK: u32 = 1 << 24;
    /// A negative acknowledgement.
    pub const NACK: u32 = 1 << 25;
    /// A PFC frame: stop sending.
    pub const PAUSE: u32 = 1 << 26;
    /// A PFC frame: go on.
    pub const RESUME: u32 = 1 << 27;
    /// Follows a path id instead of the hash.
    pub const PINNED: u32 = 1 << 28;
    /// Under a scheme that tags packets between leaves, whose hosts pin none: has a tag.
    pub const TAGGED: u32 = PINNED;
    /// Congestion experienced.
    pub const MARKED: u32 = 1 << 29;
    /// Data: has left its host before.
    pub const AGAIN: u32 = 1 << 30;
    /// Control: the packet that it answers was marked.
    pub const ECHO: u32 = AGAIN;
    /// Data that a switch has cut down to its header.
    pub const TRIMMED: u32 = 1 << 31;
    /// Acknowledgements of both kinds.
    pub const CONTROL: u32 = ACK | NACK;
    /// Both at once: a control packet from leaf to leaf.
    pub const TOR_CONTROL: u32 = ACK | NACK;
    /// PFC frames of both kinds.
    pub const PFC: u32 = PAUSE | RESUME;
    /// The destination.
    pub const HOST: u32 = ACK - 1;

    /// What an answer to a packet with these flags says of its mark.
    #[inline(always)]
    pub fn echo(flags: u32) -> u32 {
        (flags & MARKED) << 1
    }
    const _: () = assert!(MARKED << 1 == ECHO);
}

/// A packet. Carried by value, in events and queues as [`Packed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Its queue pair: of data a [`ReceiverId`], of control the number that the destination's
    /// partition gave the sender. Identifies state, decides nothing.
    pub flow: u32,
    /// Number of the data packet; of the one answered, in an acknowledgement.
    pub seq: u32,
    /// Data: the flow's hash key. Control: all packets below this number have arrived. With a tag,
    /// which has that then: its place.
    pub aux: u32,
    /// Destination host and [`flag`]s.
    pub to: u32,
    /// Entropy value, or path id if pinned.
    pub route: u16,
    /// Bytes on the wire.
    pub size: u16,
}

/// A number for what the hosts of one partition have with those of another, given by the partition that
/// sends, so that it need not ask.
macro_rules! between {
    ($(#[$doc:meta])* $Name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $Name(pub u32);

        impl $Name {
            #[doc = concat!("The `number`-th of the ", $what, " from `partition`.")]
            ///
            /// # Panics
            /// Beyond 67 million of them at once.
            pub fn new(partition: u16, number: u32) -> $Name {
                assert!(number >> NUMBER == 0, concat!("{} ", $what, " are too many"), number);
                $Name(u32::from(partition) << NUMBER | number)
            }
            /// The partition of the sender.
            #[inline(always)]
            pub fn partition(self) -> usize {
                (self.0 >> NUMBER) as usize
            }
            /// Which of those from there.
            #[inline(always)]
            pub fn number(self) -> usize {
                (self.0 & ((1 << NUMBER) - 1)) as usize
            }
        }
    };
}

const NUMBER: u32 = 26;

/// Partitions are numbered below this.
pub const PARTITIONS: u32 = 1 << (32 - NUMBER);

between! {
    /// The receiving half of a queue pair.
    ReceiverId, "queue pairs"
}

between! {
    /// A message, at the partition that receives it.
    ReceivingId, "messages"
}

impl Packet {
    /// Where it goes.
    #[inline(always)]
    pub fn dst(&self) -> HostId {
        HostId(self.to & flag::HOST)
    }
    /// Whether any of `flags` is set.
    #[inline(always)]
    pub fn is(&self, flags: u32) -> bool {
        self.to & flags != 0
    }
    /// The route as its packet carries it, with the flag that says how to read it.
    #[inline(always)]
    pub fn encode(route: Route) -> (u16, u32) {
        match route {
            Route::Hashed(entropy) => (entropy, 0),
            Route::Pinned(path) => (path.0, flag::PINNED),
        }
    }
    /// What matters once it is lost.
    #[inline(always)]
    pub fn lost(&self) -> LostPacket {
        LostPacket { flow: self.flow, to: self.to, aux: self.aux, size: self.size }
    }
    /// Whether it is from leaf to leaf.
    pub fn is_tor_control(&self) -> bool {
        self.to & flag::TOR_CONTROL == flag::TOR_CONTROL
    }
    /// The path id of a pinned packet.
    #[inline(always)]
    pub fn path(&self) -> PathId {
        PathId(self.route)
    }
}

/// What is noted of a packet that is lost. Handed over by value: a packet that some rare case
/// borrows would be put together in memory in every case, which costs a sixth of a hop.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// As [`Packet::flow`].
    pub flow: u32,
    /// As [`Packet::to`].
    pub to: u32,
    /// As [`Packet::aux`].
    pub aux: u32,
    /// As [`Packet::size`].
    pub size: u16,
}

impl LostPacket {
    /// As [`Packet::is`].
    pub fn is(self, flags: u32) -> bool {
        self.to & flags != 0
    }
}

/// What an event is about. The class is part of the order: at one instant, packets arrive
/// before ports become free, and samples are taken last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Class {
    /// A packet reaches the end of a link.
    Arrive = 0,
    /// A leaf lets go what it has held for long enough: as if it had just come.
    Leaf = 1,
    /// A port has put the last bit of a packet on the wire.
    Transmitted = 2,
    /// A queue pair may send from now on.
    Start = 3,
    /// A queue pair's retransmission timer.
    Timer = 4,
    /// A host hears that a dependency of one of its messages was met.
    DependencyMet = 5,
    /// Something happens to a rank of a job.
    Rank = 6,
    /// A message's last dependency was met and its delay is over.
    Post = 7,
    /// A host's planner wants to be flushed.
    Flush = 8,
    /// A host looks for something to send, once all that was posted now is in.
    Wake = 9,
    /// Queues are sampled.
    Sample = 10,
    /// Something fails, recovers, or is found to have done so.
    Fault = 11,
}

/// Whom an event is for: a class and the number of a link, port, switch, queue pair, dependency,
/// message or host. Ports, links, switches, queue pairs and hosts are numbered by partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Target(u32);

impl Target {
    const SHIFT: u32 = 28;
    /// All of these are numbered below this.
    pub const LIMIT: u32 = 1 << Target::SHIFT;

    /// The target of `class` with number `id`.
    #[inline(always)]
    pub fn new(class: Class, id: u32) -> Target {
        debug_assert!(id < Target::LIMIT);
        Target((class as u32) << Target::SHIFT | id)
    }
    /// Whether it is of `class`.
    #[inline(always)]
    pub fn is(self, class: Class) -> bool {
        self.0 >> Target::SHIFT == class as u32
    }
    /// Its class.
    #[inline(always)]
    pub fn class(self) -> Class {
        match self.0 >> Target::SHIFT {
            0 => Class::Arrive,
            1 => Class::Leaf,
            2 => Class::Transmitted,
            3 => Class::Start,
            4 => Class::Timer,
            5 => Class::DependencyMet,
            6 => Class::Rank,
            7 => Class::Post,
            8 => Class::Flush,
            9 => Class::Wake,
            10 => Class::Sample,
            _ => Class::Fault,
        }
    }
    /// Both in one number, which has their order.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }
    /// Its number.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 & (Target::LIMIT - 1)
    }
}

/// A packet in memory, with a number beside it. Whole words, so that it goes from registers to
/// memory and back without ever being put together from smaller subflows on the way, which costs
/// processors more than the packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packed {
    /// `seq` above `flow`.
    which: u64,
    /// `to` above `aux`.
    destination: u64,
    /// The number above `size` above `route`.
    rest: u64,
}

impl Packed {
    /// `packet`, with `beside`.
    #[inline(always)]
    pub fn new(packet: Packet, beside: u32) -> Packed {
        let Packet { flow, seq, aux, to, route, size } = packet;
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let rest = pair(u32::from(size) << 16 | u32::from(route), beside);
        Packed { which: pair(flow, seq), destination: pair(aux, to), rest }
    }
    /// The packet.
    #[inline(always)]
    pub fn packet(self) -> Packet {
        Packet {
            flow: self.which as u32,
            seq: (self.which >> 32) as u32,
            aux: self.destination as u32,
            to: (self.destination >> 32) as u32,
            route: self.rest as u16,
            size: (self.rest >> 16) as u16,
        }
    }
    /// The number beside it.
    #[inline(always)]
    pub fn beside(self) -> u32 {
        (self.rest >> 32) as u32
    }
}

/// Something that happens: 32 bytes, moved by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// The time at which it happens.
    pub time: Time,
    /// What arrives (empty for other classes), beside its target.
    packed: Packed,
}

impl Event {
    /// A place for an event.
    pub(crate) const EMPTY: Event =
        Event { time: Time::ZERO, packed: Packed { which: 0, destination: 0, rest: 0 } };

    /// An event without a packet.
    #[inline(always)]
    pub fn new(time: Time, class: Class, id: u32) -> Event {
        let target = Target::new(class, id);
        Event { time, packed: Packed::new(Packet::default(), target.bits()) }
    }
    /// `packet` reaches the end of `link`.
    #[inline(always)]
    pub fn arrival(time: Time, link: InLink, packet: Packet) -> Event {
        let target = Target::new(Class::Arrive, link.0);
        Event { time, packed: Packed::new(packet, target.bits()) }
    }
    /// Becomes `other`, word by word: a copy of the whole would have to wait until all words of
    /// `other` have been put together in memory.
    #[inline(always)]
    pub(crate) fn set(&mut self, other: Event) {
        self.time = other.time;
        self.packed.which = other.packed.which;
        self.packed.destination = other.packed.destination;
        self.packed.rest = other.packed.rest;
    }
    /// The host, port, link or other entity that it is for.
    #[inline(always)]
    pub fn target(&self) -> Target {
        Target(self.packed.beside())
    }
    /// What arrives.
    #[inline(always)]
    pub fn packet(&self) -> Packet {
        self.packed.packet()
    }
    /// The order of events.
    #[inline(always)]
    pub fn key(&self) -> (Time, Target) {
        (self.time, self.target())
    }
}
