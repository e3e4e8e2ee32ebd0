//! Events, and the order in which they happen.

use crate::packet::{Packed, Packet};
use crate::partition::InLink;
use weft_units::Time;

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
    /// A host may send again what a tree of switches lost.
    Resend = 10,
    /// The adder of a switch is through with a sum.
    Sum = 11,
    /// Queues are sampled.
    Sample = 12,
    /// Something fails, recovers, or is found to have done so.
    Fault = 13,
    /// A NIC may grant credit again.
    Credit = 14,
    /// A queue pair looks whether it is to ask what has arrived.
    Probe = 15,
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
            10 => Class::Resend,
            11 => Class::Sum,
            12 => Class::Sample,
            13 => Class::Fault,
            14 => Class::Credit,
            _ => Class::Probe,
        }
    }
    /// Both in one number, which has their order.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }
    /// What has these [`Target::bits`].
    #[inline(always)]
    pub(crate) fn of_bits(bits: u32) -> Target {
        Target(bits)
    }
    /// Its number.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 & (Target::LIMIT - 1)
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
    pub(crate) const EMPTY: Event = Event { time: Time::ZERO, packed: Packed::EMPTY };

    /// An event without a packet.
    #[inline(always)]
    pub fn new(time: Time, class: Class, id: u32) -> Event {
        let target = Target::new(class, id);
        Event { time, packed: Packed::new(Packet::default(), target.bits()) }
    }
    /// The same, of logical process `process`: for one without a packet, in which it has its place.
    #[inline]
    pub(crate) fn of_process(self, process: u16) -> Event {
        debug_assert!(!self.target().is(Class::Arrive));
        let packet = Packet::default().tagged(u32::from(process));
        Event { packed: Packed::new(packet, self.target().bits()), ..self }
    }
    /// What [`Event::of_process`] said.
    #[inline]
    pub(crate) fn process(&self) -> u16 {
        self.packet().tag().map_or(0, |process| process as u16)
    }
    /// `packet` reaches the end of `link`.
    #[inline(always)]
    pub fn arrival(time: Time, link: InLink, packet: Packet) -> Event {
        let target = Target::new(Class::Arrive, link.0);
        Event { time, packed: Packed::new(packet, target.bits()) }
    }
    /// As [`Packed::words`].
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 3] {
        self.packed.words()
    }
    /// What happens at `time`, of such words.
    pub(crate) fn of_words(time: Time, words: [u64; 3]) -> Event {
        Event { time, packed: Packed::of_words(words) }
    }
    /// As [`Packed::set`].
    #[inline(always)]
    pub(crate) fn set(&mut self, other: Event) {
        self.time = other.time;
        self.packed.set(other.packed);
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
    /// The same packet, `marked` or as it was, reaches the end of `link`, the next one.
    #[inline(always)]
    pub(crate) fn forwarded(self, time: Time, link: InLink, marked: bool) -> Event {
        let target = Target::new(Class::Arrive, link.0);
        Event { time, packed: self.packed.forwarded(marked, target.bits()) }
    }
    /// Another packet arrives in its stead.
    #[inline(always)]
    pub(crate) fn put(&mut self, packet: Packet) {
        self.packed.set(Packed::new(packet, self.packed.beside()));
    }
    /// The order of events.
    #[inline(always)]
    pub fn key(&self) -> (Time, Target) {
        (self.time, self.target())
    }
}
