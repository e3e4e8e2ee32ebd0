//! What both kinds of port do.

use crate::agenda::Agenda;
use crate::event::Event;
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

/// All output ports of a partition.
pub trait Ports {
    /// Queues `packet` at a switch's `port`; it came in by the link that `ingress` leads back.
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    );
    /// Whether there are times when nothing but what goes to a switch's port makes a difference to
    /// that port ([`Ports::are_independent`]).
    fn can_be_independent(&self) -> bool {
        false
    }
    /// Whether that is so for all that comes to `switch` in the window that begins at `start`: if so,
    /// the switch takes it in, by these ingresses and of these sizes.
    fn are_independent(
        &mut self,
        _start: Time,
        _switch: OwnSwitch,
        _arrivals: impl Iterator<Item = (OutPort, u16)>,
    ) -> bool {
        false
    }
    /// Queues packets at a switch's `port`, in the order in which they arrive, as [`Ports::forward`]
    /// does, if ports are independent in that window, which has come to its switch by these
    /// ingresses. Their links are at least as long as a window.
    fn relay<'e, Q: EventQueue>(
        &mut self,
        port: OutPort,
        _arrivals: impl Iterator<Item = &'e Event>,
        _ingress: impl Fn(&Event) -> OutPort,
        _agenda: &mut Agenda<Q>,
    ) {
        unreachable!("{port:?} depends on others")
    }
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
    /// Bytes in the memory of `switch`, where its ports share one: whole packets, until their
    /// last bit has left. `None`: every port has memory of its own.
    fn shared_bytes(&self, _now: Time, _switch: OwnSwitch) -> Option<u64> {
        None
    }
    /// These ports cannot go on: somebody would have to be paused, and they do not know how.
    fn overflowed(&self) -> bool {
        false
    }
    /// What went over each port.
    fn results(&self, end: Time) -> IdVec<OutPort, PortResult>;
    /// What they dropped, by queue pair.
    fn losses(&self) -> &Losses;
    /// The same, to take the tags of what is gone.
    fn losses_mut(&mut self) -> &mut Losses;
    /// PFC pause frames that were sent.
    fn pauses_sent(&self) -> u64;
}
