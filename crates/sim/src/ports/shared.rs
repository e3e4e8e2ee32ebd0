//! The shared memory of a switch: dynamic thresholds, reserves, headroom (Ethereal 2025, set-up;
//! the accounting follows the usual shared-buffer switch with per-ingress PFC).
//!
//! Memory is cut into three parts: a reserve for each ingress, headroom for each ingress
//! (with PFC), and the rest, which is shared. An ingress fills its reserve, then its share of
//! what is free, then its headroom; when headroom is needed, the upstream port is paused.
//! Bytes leave in the opposite order. Headroom holds all that can still arrive after a pause,
//! so that nothing is lost.
//!
//! A fixed pause threshold is a reserve of that size beside no shared part at all.
//!
//! Without headroom in use, what has come and gone determines all counts, whatever the order.

use crate::config::{Buffer, PacketConfig, PfcConfig, SwitchConfig};
use crate::partition::OutPort;
use crate::ports::interface::Window;
use weft_fabric::{Fabric, Failures};
use weft_units::{IdVec, PortId, SwitchId, Time};

/// A PFC frame on the wire.
pub(super) const PAUSE_FRAME_BYTES: u16 = 64;

/// What arrived by one port and has not left the switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ingress {
    /// In reserve and shared memory.
    held: u64,
    /// In headroom.
    over: u64,
    /// Size of its headroom.
    headroom: u64,
    /// The upstream port should be paused.
    pub(super) pause: bool,
}

/// The ingresses of a partition, each beside or in its port.
pub(super) trait Ingresses {
    fn get(&self, port: OutPort) -> &Ingress;
    fn get_mut(&mut self, port: OutPort) -> &mut Ingress;
}

impl Ingresses for IdVec<OutPort, Ingress> {
    fn get(&self, port: OutPort) -> &Ingress {
        &self[port]
    }
    fn get_mut(&mut self, port: OutPort) -> &mut Ingress {
        &mut self[port]
    }
}

/// What several ingresses have to come.
#[derive(Debug)]
pub(super) struct Coming {
    /// Scratch: bytes by ingress.
    sums: IdVec<OutPort, u64>,
    /// Each ingress that has any, and its bytes.
    pub(super) bytes: Vec<(OutPort, u64)>,
}

impl Coming {
    /// For `ports` ports.
    pub(super) fn new(ports: usize) -> Coming {
        Coming { sums: (0..ports).map(|_| 0).collect(), bytes: Vec::new() }
    }
    /// That of packets of these sizes, beside their ingresses.
    #[inline(always)]
    pub(super) fn add_up(&mut self, arrivals: impl Iterator<Item = (OutPort, u16)>) {
        let Coming { sums, bytes } = self;
        bytes.clear();
        for (ingress, size) in arrivals {
            let sum = &mut sums[ingress];
            if *sum == 0 {
                bytes.push((ingress, 0));
            }
            *sum += u64::from(size);
        }
        for (ingress, bytes) in bytes {
            *bytes = std::mem::take(&mut sums[*ingress]);
        }
    }
}

/// What comes to a switch in a window and what leaves it, by ingress: the window is cut into slices.
#[derive(Debug, Default)]
pub(super) struct Slices {
    start: Time,
    end: Time,
    /// A slice is so long, in picoseconds: a power of two.
    shift: u32,
    /// The first port of the switch.
    first: OutPort,
    /// By port of the switch.
    traffic: Vec<Traffic>,
}

/// Slices of a window: at most so many.
const SLICES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Traffic {
    /// Bytes that come by it as an ingress, by slice.
    come: [u32; SLICES],
    /// What of such bytes leaves.
    gone: [u32; SLICES],
    /// Until when it is free to send.
    free_until: Time,
}

impl Slices {
    /// Nothing yet, in `window`, of a switch's ports: the first one, and how many there are.
    pub(super) fn start(&mut self, window: &Window, (first, ports): (OutPort, u32)) {
        (self.start, self.end, self.first) = (window.start, window.end, first);
        let last = window.end.0 - window.start.0 - 1;
        self.shift = (u64::BITS - last.leading_zeros()).saturating_sub(SLICES.ilog2());
        let none = [0; SLICES];
        self.traffic.clear();
        let nothing = Traffic { come: none, gone: none, free_until: window.end };
        self.traffic.resize(ports as usize, nothing);
    }
    #[inline(always)]
    fn slice(&self, at: Time) -> usize {
        ((at - self.start).0 >> self.shift) as usize % SLICES
    }
    #[inline(always)]
    fn of(&mut self, port: OutPort) -> &mut Traffic {
        &mut self.traffic[(port.0 - self.first.0) as usize]
    }
    /// Nothing more begins to leave by `port` from then on, for sure.
    pub(super) fn hold(&mut self, from: Time, port: OutPort) {
        let traffic = self.of(port);
        traffic.free_until = from.min(traffic.free_until);
    }
    /// Until when `port` is free to send.
    #[inline(always)]
    pub(super) fn free_until(&mut self, port: OutPort) -> Time {
        self.of(port).free_until
    }
    /// So many bytes come by `ingress`.
    #[inline(always)]
    pub(super) fn come(&mut self, at: Time, ingress: OutPort, size: u16) {
        let slice = self.slice(at);
        self.of(ingress).come[slice] += u32::from(size);
    }
    /// So many bytes that came by `ingress` leave, if that is in the window.
    #[inline(always)]
    pub(super) fn go(&mut self, at: Time, ingress: OutPort, size: u16) {
        let slice = self.slice(at);
        let place = ingress.0.wrapping_sub(self.first.0) as usize;
        if at < self.end
            && let Some(traffic) = self.traffic.get_mut(place)
        {
            traffic.gone[slice] += u32::from(size);
        }
    }
    /// The most that `ingress` holds in the window, if it has `held` bytes at first: in each slice all comes before
    /// anything leaves.
    fn peak(&mut self, ingress: OutPort, mut held: u64) -> u64 {
        let Traffic { come, gone, .. } = self.of(ingress);
        let mut most = held;
        for (come, gone) in come.iter().zip(gone) {
            held += u64::from(*come);
            most = most.max(held);
            held -= u64::from(*gone);
        }
        most
    }
}

/// Memory of one switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Size of the shared part; `i64::MAX` with per-port buffers, zero with a fixed pause
    /// threshold.
    shared: u64,
    /// Bytes of it in use.
    used: u64,
    /// All bytes in the switch.
    pub(super) total: u64,
}

/// Bytes as a number to multiply. Processors turn signed integers into it with one instruction.
#[inline(always)]
fn float(bytes: u64) -> f64 {
    bytes as i64 as f64
}

/// Whether an ingress may hold `held` bytes of the shared part, of which `free` are free.
#[inline(always)]
fn is_below(pfc: &PfcConfig, held: u64, free: u64) -> bool {
    float(held) <= pfc.alpha * float(free)
}

/// What a switch does with a packet that finds no room outside the headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Admit, and pause the upstream port.
    AdmitAndPause,
    Drop,
    /// Headroom was too small: drop, and pause the upstream port.
    DropAndPause,
}

/// The rules of all switches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pfc: Option<PfcConfig>,
    /// With a fixed threshold: an ingress that holds more may not resume.
    resume_at: Option<u64>,
    /// Egress dynamic threshold factor where a full queue drops; `None`: no shared memory.
    egress_alpha: Option<f64>,
}

impl Rules {
    pub(super) fn new(config: &SwitchConfig) -> Rules {
        let egress_alpha = match config.buffer {
            Buffer::Shared { alpha, .. } => Some(alpha),
            Buffer::PerPort { .. } => None,
        };
        let pfc = config.pfc.map(|pfc| PfcConfig { reserve: pfc.own_bytes(), ..pfc });
        let resume_at = pfc.and_then(|pfc| Some(pfc.threshold?.saturating_sub(pfc.resume_offset)));
        Rules { pfc, resume_at, egress_alpha }
    }

    /// Whether ports share memory, or each has its own.
    pub(super) fn is_shared(&self) -> bool {
        self.egress_alpha.is_some()
    }

    /// Whether PFC is on.
    pub(super) fn is_lossless(&self) -> bool {
        self.pfc.is_some()
    }

    /// Whether admission depends on the length of the queue.
    pub(super) fn drops_by_queue(&self) -> bool {
        self.pfc.is_none() && self.egress_alpha.is_some()
    }

    /// Takes in `size` bytes that came by `ingress` for a queue of `queued` bytes, if there is
    /// room outside the headroom; else does nothing and returns false. If it finds room while
    /// bytes that have left are still accounted, there is room.
    #[inline(always)]
    pub(super) fn take_in(
        &self,
        memory: &mut Memory,
        ingress: &mut Ingress,
        queued: u64,
        size: u64,
    ) -> bool {
        let Some(pfc) = &self.pfc else {
            return self.take_in_lossy(memory, queued, size);
        };
        let shared_after = (ingress.held + size).saturating_sub(pfc.reserve);
        let shared_now = ingress.held.saturating_sub(pfc.reserve);
        let extra = shared_after - shared_now;
        // What has left and is not noted may be more than there is.
        let free = memory.shared.saturating_sub(memory.used);
        let fits = extra <= free && is_below(pfc, shared_after, free);
        let room = ingress.over == 0 && (extra == 0 || fits);
        if room {
            ingress.held += size;
            memory.used += extra;
            memory.total += size;
        }
        room
    }

    /// Takes in what several ingresses have to come, with their bytes, if each finds room outside the
    /// headroom whatever the order in which they come and whether or not anything leaves meanwhile;
    /// else does nothing and returns false, as always where a full queue drops.
    pub(super) fn take_in_all(
        &self,
        memory: &mut Memory,
        ingresses: &mut impl Ingresses,
        coming: &[(OutPort, u64)],
    ) -> bool {
        self.take_in_at_most(memory, ingresses, coming, |_, held, bytes| held + bytes)
    }

    /// The same, where what leaves meanwhile makes room for what comes by the same ingress.
    pub(super) fn take_in_meanwhile(
        &self,
        memory: &mut Memory,
        ingresses: &mut impl Ingresses,
        coming: &[(OutPort, u64)],
        slices: &mut Slices,
    ) -> bool {
        self.take_in_at_most(memory, ingresses, coming, |port, held, _| slices.peak(port, held))
    }

    /// The same; `peak`: the most that an ingress will hold at once, of what it holds and the bytes to come.
    #[inline(always)]
    fn take_in_at_most(
        &self,
        memory: &mut Memory,
        ingresses: &mut impl Ingresses,
        coming: &[(OutPort, u64)],
        mut peak: impl FnMut(OutPort, u64, u64) -> u64,
    ) -> bool {
        let Some(pfc) = &self.pfc else { return false };
        let shared = |held: u64| held.saturating_sub(pfc.reserve);
        // Of the shared part: with all that comes, at once, and of one ingress.
        let (mut used, mut at_once, mut most) = (memory.used, memory.used, 0);
        for (port, bytes) in coming {
            let Ingress { held, over, .. } = *ingresses.get(*port);
            let (before, with_all) = (shared(held), shared(held + bytes));
            let peak = if with_all == 0 { 0 } else { shared(peak(*port, held, *bytes)) };
            used += with_all - before;
            at_once += peak - before;
            most = peak.max(most);
            if over > 0 {
                return false;
            }
        }
        let free = memory.shared.checked_sub(at_once);
        let room = free.is_some_and(|free| is_below(pfc, most, free));
        if room {
            coming.iter().for_each(|(port, bytes)| ingresses.get_mut(*port).held += bytes);
            memory.used = used;
            memory.total += coming.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        room
    }

    /// Takes in bytes for which there is no other room into the headroom of `ingress`, or drops
    /// them. Nothing must be accounted that has left.
    pub(super) fn overflow(
        &self,
        memory: &mut Memory,
        ingress: &mut Ingress,
        size: u64,
    ) -> Admission {
        if self.pfc.is_none() {
            return Admission::Drop;
        }
        let fits = ingress.over + size <= ingress.headroom;
        // Only something that is here can end the pause by leaving.
        ingress.pause |= fits || ingress.held + ingress.over > 0;
        if !fits {
            return Admission::DropAndPause;
        }
        ingress.over += size;
        memory.total += size;
        Admission::AdmitAndPause
    }

    /// Without PFC: refuses what exceeds the queue's dynamic threshold.
    #[inline(always)]
    fn take_in_lossy(&self, memory: &mut Memory, queued: u64, size: u64) -> bool {
        if let Some(alpha) = self.egress_alpha {
            let free = memory.shared - memory.used;
            if size > free || float(queued + size) > alpha * float(free) {
                return false;
            }
            memory.used += size;
        }
        memory.total += size;
        true
    }

    /// Gives back `size` bytes that came by `ingress`. Returns whether the upstream port may
    /// now resume.
    pub(super) fn release(&self, memory: &mut Memory, ingress: &mut Ingress, size: u64) -> bool {
        memory.total -= size;
        let Some(pfc) = &self.pfc else {
            if self.egress_alpha.is_some() {
                memory.used -= size;
            }
            return false;
        };
        let from_headroom = size.min(ingress.over);
        ingress.over -= from_headroom;
        let before = ingress.held.saturating_sub(pfc.reserve);
        ingress.held -= size - from_headroom;
        let after = ingress.held.saturating_sub(pfc.reserve);
        memory.used -= before - after;
        if !ingress.pause || ingress.over > 0 {
            return false;
        }
        let free = float(memory.shared - memory.used);
        let below = match self.resume_at {
            Some(most) => ingress.held <= most,
            None => after == 0 || float(after + pfc.resume_offset) <= pfc.alpha * free,
        };
        ingress.pause = !below;
        below
    }
}

/// The headroom that `port`'s switch needs for what arrives by `port`: all that the upstream
/// port can still send until a pause reaches it. The pause frame waits for a packet in service
/// on the way back; the upstream port finishes the packet that it is sending; and the packet
/// that caused the pause needs room too. Where links degrade, the way back is as slow as it ever
/// gets, and the way forth as fast.
fn lossless_headroom(
    fabric: &Fabric,
    failures: &Failures,
    port: PortId,
    packet: &PacketConfig,
) -> u64 {
    let back = &fabric.ports()[port];
    let forth = &fabric.ports()[back.reverse];
    let largest = packet.largest().max(u64::from(PAUSE_FRAME_BYTES));
    let slowest = failures.lowest_rate(fabric, port);
    let reaction = slowest.serialize(largest + u64::from(PAUSE_FRAME_BYTES));
    forth.rate.bytes_in(reaction + back.delay + forth.delay) + 2 * largest
}

/// Headroom for what comes in by `port` of a switch.
pub(super) fn headroom(
    fabric: &Fabric,
    failures: &Failures,
    port: PortId,
    packet: &PacketConfig,
    pfc: &PfcConfig,
) -> u64 {
    pfc.headroom.unwrap_or_else(|| lossless_headroom(fabric, failures, port, packet))
}

/// Reserves and headroom of all ports of `switch`, in bytes.
pub(super) fn set_aside(
    fabric: &Fabric,
    failures: &Failures,
    switch: SwitchId,
    packet: &PacketConfig,
    pfc: &PfcConfig,
) -> u64 {
    let ports = fabric.ports_of(switch).ids();
    let each = ports
        .map(|port| headroom(fabric, failures, port, packet, pfc).saturating_add(pfc.own_bytes()));
    each.fold(0, u64::saturating_add)
}

/// Bytes of a buffer that reserves and headroom take, in the switch where they take most.
///
/// A configuration is sound if this is less than the whole buffer.
pub fn pfc_set_aside(
    fabric: &Fabric,
    failures: &Failures,
    packet: &PacketConfig,
    pfc: &PfcConfig,
) -> u64 {
    let switches = (0..fabric.switches()).map(SwitchId);
    switches.map(|switch| set_aside(fabric, failures, switch, packet, pfc)).max().unwrap_or(0)
}

impl Memory {
    /// A switch with `config`'s memory, of which `set_aside` bytes are reserves and headroom.
    pub(super) fn new(config: &SwitchConfig, set_aside: u64) -> Memory {
        let is_fixed = config.pfc.is_some_and(|pfc| pfc.threshold.is_some());
        let shared = match config.buffer {
            _ if is_fixed => 0,
            Buffer::Shared { bytes, .. } => bytes.saturating_sub(set_aside).min(i64::MAX as u64),
            Buffer::PerPort { .. } => i64::MAX as u64,
        };
        Memory { shared, used: 0, total: 0 }
    }
}

impl Ingress {
    pub(super) fn new(headroom: u64) -> Ingress {
        Ingress { headroom, ..Ingress::default() }
    }
}
