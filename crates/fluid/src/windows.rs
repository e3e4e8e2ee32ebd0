//! Windows of DCTCP: no flow is faster than its window allows in the time that a packet and its
//! acknowledgement take, which is longer where they wait in queues.
//!
//! After a round trip in which switches marked a share `F` of its packets, `alpha += g (F - alpha)`, and the
//! window is cut by `alpha / 2`; after one without marks it grows by a packet if it held the flow back
//! (Alizadeh et al. 2010, section 3.1; [`dctcp_after_round`], as by packets). So of two flows
//! over a full link the one whose packets, or acknowledgements, wait elsewhere too gets less.

use crate::engine::Engine;
use crate::flows::{Flow, few_entropies};
use crate::rates::MOST;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_balance::plan::Subflow;
use weft_balance::scheme::PathUse;
use weft_sim::RunConfig;
use weft_transport::{CongestionConfig, dctcp_after_round};
use weft_units::{Draw, HostId, Time, random};

/// Limits of flows are changed where they differ by this share.
const STEP: f64 = 0.02;
/// The same of flows that fit into a window.
const SHORT_STEP: f64 = 0.1;
/// A window held a flow back if this share of it was under way.
const FULL: f64 = 0.97;
/// Windows of ranks that begin together differ by this share at most. By packets some are marked and others are
/// not; if all were the same, ranks that send in step would do so for ever.
const UNEVEN: f64 = 0.005;
/// While nobody marks, a window is looked at after so many round trips.
const GROW_TRIPS: f64 = 8.0;

/// What DCTCP is told; windows and packets in bytes of the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    pub(crate) first: f64,
    pub(crate) most: f64,
    packet: f64,
    gain: f64,
    alpha: f64,
}

impl Control {
    /// `None`: windows do not follow DCTCP, queues do not delay acknowledgements, or packets choose among all
    /// paths, so that what they wait is in [`crate::capacities`].
    pub(crate) fn new(config: &RunConfig<'_>) -> Option<Control> {
        let CongestionConfig::Dctcp(dctcp) = &config.transport.congestion else { return None };
        let packet = f64::from(config.packet.mtu + config.packet.header);
        let on_wire = packet / f64::from(config.packet.mtu);
        let (paths, hosts) = (config.balance.scheme.info().paths, config.fabric.hosts());
        let ends = (HostId(0), HostId(hosts - 1));
        let is_known = paths == PathUse::One || few_entropies(config, ends, 0).is_some();
        (is_known && !config.switch.control_priority).then_some(Control {
            // A queue pair may always have one packet out.
            first: (dctcp.initial_window as f64 * on_wire).max(packet),
            most: (dctcp.max_window as f64 * on_wire).max(packet),
            packet,
            gain: dctcp.gain,
            alpha: dctcp.initial_alpha,
        })
    }
}

/// The window of a flow; of each of its subflows, if it stands for several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Bytes of the wire; infinite, if all of the flow fits in: it waits for no acknowledgement.
    pub(crate) size: f64,
    /// The moving average of marked packets.
    alpha: f64,
    /// How long a packet and its acknowledgement take without queues, in picoseconds.
    pub(crate) trip: f64,
    /// The most that it allows now, in bytes a picosecond.
    limit: f64,
    /// When the round began, and [`crate::queues::Queues::marked`] then.
    began: Time,
    marked: f64,
    /// Whether it is among those that change.
    changes: bool,
    /// Where it stands among those whose acknowledgements come by each link of its way back.
    pub(crate) places: [u32; MOST],
}

impl Window {
    /// The most that it allows now, in bytes a picosecond.
    pub(crate) fn limit(&self) -> f64 {
        self.limit
    }
    /// Whether it allows less than `line`.
    pub(crate) fn is_short(&self, line: f64) -> bool {
        self.limit < line
    }
}

/// Windows that change: when a round is over, of which flow, of which version.
pub(crate) type Changing = BinaryHeap<Reverse<(Time, u32, u32)>>;

impl Engine<'_> {
    /// A flow begins that sends at `limit` at most. Returns what its window allows.
    pub(crate) fn open_window(&mut self, id: u32, limit: f64) -> f64 {
        if !self.queues.are_used() {
            return limit;
        }
        let (fabric, packet) = (self.config.fabric, &self.config.packet);
        let flow = &self.flows[id as usize];
        let (src, dst) = (flow.src, flow.subflow.dst);
        let there = fabric.one_way(src, dst, u64::from(packet.mtu + packet.header));
        let trip = (there + fabric.one_way(dst, src, u64::from(packet.ack))).0 as f64;
        let (size, alpha) = self.known_window(flow);
        let size = if flow.left <= size * f64::from(flow.subflows) { f64::INFINITY } else { size };
        let Subflow { message, part, tag, .. } = flow.subflow;
        let size = match self.messages[tag as usize].owner {
            Some(_) if size.is_finite() => {
                let draw = Draw::new(self.config.seed, "window");
                let draw = random::unit(draw.at(u64::from(message.0), u64::from(part)));
                size * (1.0 + UNEVEN * (draw - 0.5))
            }
            _ => size,
        };
        let limit = limit.min(size / (trip + self.queues.wait(flow)));
        let marked = self.queues.marked(flow, self.now);
        let flow = &mut self.flows[id as usize];
        let began = self.now;
        flow.window = Window { size, alpha, trip, limit, began, marked, ..Window::default() };
        self.queues.enter(id, flow);
        limit
    }

    /// The window that a flow begins with, and the share of marked packets.
    pub(crate) fn known_window(&self, flow: &Flow) -> (f64, f64) {
        let pair = flow.subflow.carrier.persistent();
        let known = pair.and_then(|pair| self.hosts[flow.src.0 as usize].windows.get(&pair));
        *known.unwrap_or(&(self.control.first, self.control.alpha))
    }

    /// A flow has left its links.
    pub(crate) fn close_window(&mut self, id: u32) {
        if !self.queues.are_used() {
            return;
        }
        self.queues.leave(id, &mut self.flows);
        let Flow { src, subflow, window, .. } = &self.flows[id as usize];
        if let Some(pair) = subflow.carrier.persistent()
            && window.size.is_finite()
        {
            self.hosts[src.0 as usize].windows.insert(pair, (window.size, window.alpha));
        }
    }

    /// When the first round of those that change is over.
    pub(crate) fn windows_due(&self) -> Time {
        self.changing.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Adds the flows whose rounds are over.
    pub(crate) fn windows_at_end(&mut self, flows: &mut Vec<u32>) {
        while self.windows_due() <= self.now {
            let Some(Reverse((_, id, version))) = self.changing.pop() else { return };
            let flow = &mut self.flows[id as usize];
            if flow.version == version {
                flow.window.changes = false;
                flows.push(id);
            }
        }
    }

    /// If rounds of a flow are over, marks have cut its window, or it has grown.
    pub(crate) fn move_window(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        if !flow.is_running || flow.window.size.is_infinite() {
            return;
        }
        let Window { mut size, mut alpha, began, .. } = flow.window;
        let control = &self.control;
        let trip = flow.window.trip + self.queues.wait(flow);
        let passed = began.until(self.now).0 as f64;
        let rounds = (passed / trip) as u64;
        let mut marked = flow.window.marked;
        if rounds > 0 {
            let before = std::mem::replace(&mut marked, self.queues.marked(flow, self.now));
            let share = ((marked - before) / passed).min(1.0);
            let held_back = flow.rate_of_each() * trip >= size * FULL;
            for _ in 0..rounds {
                let (packet, state) = (control.packet, (size, alpha));
                (size, alpha) = dctcp_after_round(state, control.gain, share, held_back, packet);
                size = size.clamp(packet, control.most);
            }
        }
        if flow.window.changes && rounds == 0 {
            return;
        }
        let (is_marked, line) = (self.queues.marks(flow), self.limit(id));
        let trips = if is_marked { 1.0 } else { GROW_TRIPS };
        let at = self.now.saturating_add(Time((trips * trip) as u64));
        let flow = &mut self.flows[id as usize];
        if (is_marked || size / trip < line) && !flow.window.changes {
            flow.window.changes = true;
            self.changing.push(Reverse((at, id, flow.version)));
        }
        if rounds > 0 {
            (flow.window.began, flow.window.marked, flow.window.alpha) = (self.now, marked, alpha);
            if size != std::mem::replace(&mut flow.window.size, size) {
                self.queues.touch_all(&self.flows[id as usize], &self.rates);
            }
        }
    }

    /// Lets a flow go as fast as its window allows. Returns whether rates may follow.
    pub(crate) fn allow(&mut self, id: u32) -> bool {
        let flow = &self.flows[id as usize];
        if !flow.is_running {
            return false;
        }
        let mut allowed = flow.window.size / (flow.window.trip + self.queues.wait(flow));
        let overload = self.queues.overload(flow);
        if overload > 1.0 && (!self.spreads || flow.shares.is_empty()) {
            // What has left its NIC is in the queue: an infinite window says no more.
            allowed = allowed.min(self.pace(flow).unwrap_or(f64::INFINITY)) / overload;
        }
        let limit = allowed.min(self.limit(id));
        let flow = &mut self.flows[id as usize];
        let step = if flow.window.size.is_finite() { STEP } else { SHORT_STEP };
        if (limit - flow.window.limit).abs() <= step * limit {
            return false;
        }
        flow.window.limit = limit;
        self.rates.set_limit(flow.rates, limit)
    }
}
