//! Packets, events, and the order in which events happen.

use weft_balance::plan::Route;
use weft_fabric::PathId;
use weft_units::{HostId, PortId, Time};

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
    /// Congestion experienced; in an acknowledgement: the packet it answers was marked.
    pub const MARKED: u32 = 1 << 29;
    /// Has left its host before.
    pub const AGAIN: u32 = 1 << 30;
    /// Acknowledgements of both kinds.
    pub const CONTROL: u32 = ACK | NACK;
    /// PFC frames of both kinds.
    pub const PFC: u32 = PAUSE | RESUME;
    /// The destination.
    pub const HOST: u32 = ACK - 1;
}

/// A packet. Carried by value, never stored elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Index of its queue pair. Identifies state, decides nothing.
    pub flow: u32,
    /// Number of the data packet; of the one answered, in an acknowledgement.
    pub seq: u32,
    /// Data: the flow's hash key. Control: all packets below this number have arrived.
    pub aux: u32,
    /// Destination host and [`flag`]s.
    pub to: u32,
    /// Entropy value, or path id if pinned.
    pub route: u16,
    /// Bytes on the wire.
    pub size: u16,
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
    /// The path id of a pinned packet.
    #[inline(always)]
    pub fn path(&self) -> PathId {
        PathId(self.route)
    }
}

/// What an event is about. The class is part of the order: at one instant, packets arrive
/// before ports become free, and samples are taken last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Class {
    /// A packet reaches the far end of the link of a port.
    Arrive = 0,
    /// A port has put the last bit of a packet on the wire.
    Transmitted = 1,
    /// A queue pair may send from now on.
    Start = 2,
    /// A queue pair's retransmission timer.
    Timer = 3,
    /// A message's last dependency was met and its delay is over.
    Post = 4,
    /// A host's planner wants to be flushed.
    Flush = 5,
    /// A host looks for something to send, once all that was posted now is in.
    Wake = 6,
    /// Queues are sampled.
    Sample = 7,
}

/// Whom an event is for: a class and the number of a port, flow, message or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Target(u32);

impl Target {
    const SHIFT: u32 = 29;
    /// Ports, flows, messages and hosts are numbered below this.
    pub const LIMIT: u32 = 1 << Target::SHIFT;

    /// The target of `class` with number `id`.
    #[inline(always)]
    pub fn new(class: Class, id: u32) -> Target {
        debug_assert!(id < Target::LIMIT);
        Target((class as u32) << Target::SHIFT | id)
    }
    /// Its class.
    #[inline(always)]
    pub fn class(self) -> Class {
        match self.0 >> Target::SHIFT {
            0 => Class::Arrive,
            1 => Class::Transmitted,
            2 => Class::Start,
            3 => Class::Timer,
            4 => Class::Post,
            5 => Class::Flush,
            6 => Class::Wake,
            _ => Class::Sample,
        }
    }
    /// Its number.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 & (Target::LIMIT - 1)
    }
}

/// Something that happens: 32 bytes, moved and sorted by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// When.
    pub time: Time,
    /// To whom.
    pub target: Target,
    /// What arrives; empty for the other classes.
    pub packet: Packet,
}

impl Event {
    /// A place for an event.
    pub(crate) const EMPTY: Event = Event {
        time: Time::ZERO,
        target: Target(0),
        packet: Packet { flow: 0, seq: 0, aux: 0, to: 0, route: 0, size: 0 },
    };

    /// An event without a packet.
    #[inline(always)]
    pub fn new(time: Time, class: Class, id: u32) -> Event {
        Event { time, target: Target::new(class, id), packet: Packet::default() }
    }
    /// `packet` reaches the far end of the link of `port`.
    #[inline(always)]
    pub fn arrival(time: Time, port: PortId, packet: Packet) -> Event {
        Event { time, target: Target::new(Class::Arrive, port.0), packet }
    }
    /// The order of events.
    #[inline(always)]
    pub fn key(&self) -> (Time, Target) {
        (self.time, self.target)
    }
}
