//! What both kinds of port do.

use crate::agenda::Agenda;
use crate::counts::Delivered;
use crate::event::{Event, Target};
use crate::losses::Losses;
use crate::outcome::PortResult;
use crate::packet::Packet;
use crate::partition::{OutPort, OwnSwitch};
use crate::queue::EventQueue;
use weft_units::{IdVec, Rate, Time};

/// Whether a NIC can take a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Now.
    Now,
    /// A `Transmitted` event of the port will tell.
    Told,
}

/// A window that a switch takes in at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// When it begins.
    pub start: Time,
    /// Where it ends.
    pub end: Time,
    /// The last of its events that was handled.
    pub latest: Time,
    /// How many were.
    pub events: u64,
}

impl Window {
    /// From `start` up to, not including, `end`.
    pub(crate) fn new(start: Time, end: Time) -> Window {
        Window { start, end, latest: start, events: 0 }
    }
    /// The order of the events in it.
    #[inline(always)]
    pub fn key(&self, event: &Event) -> u64 {
        (event.time - self.start).0 << u32::BITS | u64::from(event.target().bits())
    }
    /// What [`Window::key`] is of.
    #[inline(always)]
    pub fn of_key(&self, key: u64) -> (Time, Target) {
        (self.start + Time(key >> u32::BITS), Target::of_bits(key as u32))
    }
    /// One more event of it, at `time`, is handled.
    #[inline(always)]
    pub fn count(&mut self, time: Time) {
        self.latest = self.latest.max(time);
        self.events += 1;
    }
}

/// All output ports of a partition.
pub trait Ports {
    /// Whether ports keep packets, so that switches have `Transmitted` events and can be paused.
    const KEEP: bool;
    /// Queues `packet` at a switch's `port`; it came in by the link that `ingress` leads back.
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    );
    /// Whether a switch's ports can take in all that comes to it in a window at once.
    fn take_windows(&self) -> bool;
    /// Whether nothing but what comes for a port makes a difference to it in `window`, given all that
    /// comes to its switch, by these ingresses: if so, the switch takes that in.
    fn are_independent<'e>(
        &mut self,
        window: &Window,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, &'e Event)> + Clone,
    ) -> bool;
    /// Handles what a window has for a switch's `port`, in its order, if that depends on no other:
    /// arrivals, as [`Ports::forward`] does, and its own `Transmitted` events. Links are at least as
    /// long as a window.
    fn relay<'e, Q: EventQueue>(
        &mut self,
        port: OutPort,
        events: impl Iterator<Item = &'e Event>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    );
    /// Handles what a window has for a switch, whose ports are so many from the first one on, in its
    /// order, beside the ports that packets go to or `Transmitted` events are of.
    fn relay_in_order<'e, Q: EventQueue>(
        &mut self,
        ports: (OutPort, u32),
        events: impl Iterator<Item = (&'e Event, OutPort)>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    );
    /// Queues a packet at a switch's `port` that the switch itself had: it asks for no room, and
    /// is accounted to nobody.
    fn emit<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    );
    /// Queues an acknowledgement at the NIC `port`, ahead of all data.
    fn answer<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    );
    /// The trimmed packet that goes back to its sender, taken off the ports: after a `forward`,
    /// where switches [return](crate::TrimConfig::return_to_sender) them.
    #[inline(always)]
    fn returned(&mut self) -> Option<Packet> {
        None
    }
    /// From now on `port` sends at another rate. A packet in service keeps the old one.
    fn set_rate(&mut self, now: Time, port: OutPort, rate: Rate);
    /// The link of a switch's `port` is dead until, not including, `until`: drops what waits there,
    /// and all that comes in the meantime. A packet in service stays in service.
    fn flush<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        until: Time,
        agenda: &mut Agenda<Q>,
    );
    /// Has the cache fetch what the NIC `port` needs to send.
    fn prefetch(&self, port: OutPort);
    /// Asks whether the NIC `port` can take a data packet; if not, arranges to be told.
    fn ready<Q: EventQueue>(&mut self, now: Time, port: OutPort, agenda: &mut Agenda<Q>) -> Ready;
    /// Puts a data packet on the wire of the NIC `port`, which is ready. `more`: there is
    /// something to send after it.
    fn send<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        more: bool,
        agenda: &mut Agenda<Q>,
    );
    /// A `Transmitted` event. Returns whether the port, a NIC, now asks for data.
    fn transmitted<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        agenda: &mut Agenda<Q>,
    ) -> bool;
    /// A PFC frame for `port` arrived. Returns whether the port, a NIC, now asks for data.
    fn pause<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        paused: bool,
        agenda: &mut Agenda<Q>,
    ) -> bool;
    /// Bytes in the queue of `port`.
    fn queued_bytes(&self, now: Time, port: OutPort) -> u64;
    /// Bytes that `port` has put on the wire so far: all that it ever took in and did not throw away,
    /// but for what is in its queue.
    fn sent_bytes(&self, now: Time, port: OutPort) -> u64;
    /// Bytes in the memory of `switch`, where its ports share one: whole packets, until their
    /// last bit has left. `None`: every port has memory of its own.
    fn shared_bytes(&self, _now: Time, _switch: OwnSwitch) -> Option<u64> {
        None
    }
    /// These ports cannot go on: somebody would have to be paused, or something trimmed, and they do not know how.
    fn overflowed(&self) -> bool {
        false
    }
    /// What went over each port.
    fn results(&self, end: Time) -> IdVec<OutPort, PortResult>;
    /// What they dropped, by queue pair.
    fn losses(&self) -> &Losses;
    /// The same, to take the tags of what is gone.
    fn losses_mut(&mut self) -> &mut Losses;
    /// Once no event is left: what waits for good, at ports whose pauses wait for each other.
    fn held(&self) -> Delivered {
        Delivered::default()
    }
    /// PFC pause frames that were sent.
    fn pauses_sent(&self) -> u64;
}
