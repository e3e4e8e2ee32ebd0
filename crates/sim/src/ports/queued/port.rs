//! One port with queues, and what the ports of a switch share.

use super::leaving::Leaving;
use super::list::{Entry, Fifo};
use super::window::Outlet;
use crate::config::RunConfig;
use crate::event::{Class, Event};
use crate::partition::{Exit, OutPort, OwnSwitch, Partitioning};
use crate::ports::limits::{Limits, Line};
use crate::ports::shared::{Ingress, Memory, headroom};
use weft_fabric::Node;
use weft_units::{PortId, Time};

/// What the ports of a switch share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: Memory,
    /// Its first port, and how many there are.
    pub(super) ports: (OutPort, u32),
    /// What is on the wire, and what has left without being noted.
    pub(super) leaving: Vec<Leaving>,
    /// How many of them are noted at last, whoever asks.
    pub(super) most_leaving: usize,
    /// How many ingresses want their upstream port to be paused.
    pub(super) pausing: u32,
}

/// Two cache lines: the first for what every packet touches.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Queued {
    pub(super) line: Line,
    pub(super) exit: Exit,
    /// When the packet in service, if there is one, will have left.
    pub(super) busy_until: Time,
    /// Serialisation time of all that waits.
    pub(super) waiting: Time,
    pub(super) data: Fifo,
    pub(super) control: Fifo,
    /// The switch that owns the port; [`NIC`] for a NIC.
    pub(super) switch: u32,
    pub(super) limits: u16,
    /// A `Transmitted` event is under way. A busy port without one has nothing to do next.
    pub(super) told: bool,
    pub(super) paused: bool,

    pub(super) bytes: u64,
    /// That were ever admitted.
    pub(super) packets: u64,
    pub(super) peak: Time,
    /// What came in by the reverse link.
    pub(super) ingress: Ingress,
    /// What the upstream port of the reverse link was last told.
    pub(super) told_pause: bool,
    /// The size of the packet in service if its memory is freed when it has left (see
    /// [`Leaving`] for when it is not), else zero.
    pub(super) service_size: u16,
    /// What to account it to.
    pub(super) service_ingress: OutPort,
}

pub(super) fn narrow(limits: u32) -> u16 {
    u16::try_from(limits).expect("ports are of few kinds")
}

pub(super) const NIC: u32 = u32::MAX;
/// Instead of an ingress: control that PFC does not account for, trimmed headers, and what a switch
/// itself had.
pub(super) const SPARED: OutPort = OutPort(u32::MAX);

impl Queued {
    pub(super) fn new(
        config: &RunConfig,
        partitioning: &Partitioning,
        id: PortId,
        exit: Exit,
        limits: &mut Vec<Limits>,
    ) -> Self {
        let port = &config.port_at_start(id);
        let switch = match port.owner {
            Node::Host(_) => NIC,
            Node::Switch(switch) => partitioning.switches[switch].own.0,
        };
        let RunConfig { fabric, failures, packet, .. } = config;
        let headroom = |pfc| headroom(fabric, failures, id, packet, &pfc);
        let limits = Limits::index_of(port, &config.switch, &config.packet, limits);
        Queued {
            line: Line::new(port),
            exit,
            busy_until: Time::ZERO,
            waiting: Time::ZERO,
            data: Fifo::EMPTY,
            control: Fifo::EMPTY,
            switch,
            limits: narrow(limits),
            told: false,
            paused: false,
            bytes: 0,
            packets: 0,
            peak: Time::ZERO,
            ingress: Ingress::new(config.switch.pfc.map_or(0, headroom)),
            told_pause: false,
            service_size: 0,
            service_ingress: SPARED,
        }
    }
    #[inline(always)]
    pub(super) fn backlog(&self, now: Time) -> Time {
        now.until(self.busy_until) + self.waiting
    }
    /// One more packet, of `size` bytes, is queued, with which the queue takes so long.
    #[inline(always)]
    pub(super) fn count(&mut self, size: u16, backlog: Time) {
        self.bytes += u64::from(size);
        self.packets += 1;
        self.peak = self.peak.max(backlog);
    }
    #[inline(always)]
    pub(super) fn is_idle(&self, now: Time) -> bool {
        !self.told && self.busy_until <= now
    }
    /// Whether packets leave in the order in which they have come, and nothing holds them back.
    #[inline(always)]
    pub(super) fn is_in_order(&self) -> bool {
        !self.paused && self.ingress.pause == self.told_pause && self.control.is_empty()
    }
    /// Puts a packet, which takes some time, on the wire; `shared`: of its switch, if that accounts for it.
    #[inline(always)]
    pub(super) fn serve<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        (entry, time): (Entry, Time),
        shared: Option<&mut Shared>,
        out: &mut O,
    ) {
        let (packet, ingress) = (entry.packet(), entry.ingress());
        let at = now + time;
        self.busy_until = at;
        out.arrive(at + self.line.delay, self.exit, packet);
        let goes_on = self.switch == NIC || !self.data.is_empty() || !self.control.is_empty();
        if let Some(shared) = shared {
            if shared.pausing == 0 && !goes_on {
                return shared.leaving.push(Leaving { at, port, ingress, size: packet.size });
            }
            (self.service_size, self.service_ingress) = (packet.size, ingress);
            self.tell_end(port, out);
        } else if goes_on {
            self.tell_end(port, out);
        }
    }
    /// Sees to it that a `Transmitted` event of this `port` comes when it has finished.
    #[inline(always)]
    pub(super) fn tell_end<O: Outlet>(&mut self, port: OutPort, out: &mut O) {
        if !self.told {
            self.told = true;
            let end = Event::new(self.busy_until, Class::Transmitted, port.0);
            match self.switch {
                // NICs are numbered like their hosts.
                NIC => out.push_at_nic(end, port),
                switch => out.push_at_switch(end, OwnSwitch(switch)),
            }
        }
    }
}

const _: () = assert!(size_of::<Queued>() == 128, "a port with a queue is two cache lines");
