//! Hosts that share the links of a fabric: some under Twill; others send each message on the path
//! that its hash gives it, with a window that follows marks (DCTCP). Links are queues without end;
//! what crosses them are chunks, and packets of flows.

use super::{BDP, LINK, MTU, chunk, flow, path, planner, post};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_balance::Planner;
use weft_balance::plan::{Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Fabric, PathId};
use weft_units::{HostId, PortId, Time};

/// Longer queues mark: 100 KB.
const MARKED: Time = Time::us(8);
/// An answer takes so long.
const ANSWER: Time = Time::us(2);
/// What one host sends in all, and a message by hash.
const ENDLESS: u64 = 4_000_000_000;
const MESSAGE: u64 = 1_000_000;
/// The gain of DCTCP (Alizadeh et al. 2010).
const GAIN: f64 = 1.0 / 16.0;

/// What sends.
enum Sender {
    /// One message without end.
    Twill { planner: Box<Planner>, out: BTreeMap<u32, Subflow> },
    /// One message after the other.
    Hashed { planner: Box<Planner>, messages: u32, flow: Dctcp },
}

/// A message, packet by packet.
#[derive(Default)]
struct Dctcp {
    path: PathId,
    left: u64,
    out: u64,
    window: f64,
    /// The part of packets that came back marked, smoothed.
    marked: f64,
    /// Of this window's packets those that are back, and those that were marked.
    back: [u64; 2],
}

impl Dctcp {
    fn learn(&mut self, is_marked: bool) {
        self.back[0] += 1;
        self.back[1] += u64::from(is_marked);
        if self.back[0] as f64 * f64::from(MTU) >= self.window {
            let part = self.back[1] as f64 / self.back[0] as f64;
            self.marked += (part - self.marked) * GAIN;
            self.window = match self.back[1] {
                0 => self.window + f64::from(MTU),
                _ => (self.window * (1.0 - self.marked / 2.0)).max(f64::from(MTU)),
            };
            self.back = [0; 2];
        }
    }
}

/// A host, where it sends to, and what has arrived there.
struct Host {
    sender: Sender,
    dst: u32,
    arrived: u64,
}

/// Something on its way.
struct Parcel {
    host: usize,
    /// The chunk, by its number.
    chunk: u32,
    bytes: u64,
    ports: Vec<PortId>,
    hop: usize,
    is_marked: bool,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A parcel is at its next port.
    At(usize),
    /// Its answer is here.
    Back(usize),
    /// A planner wants to go on.
    Due(usize),
}

/// Hosts and the links that they share.
pub(crate) struct Shared {
    fabric: Fabric,
    now: Time,
    hosts: Vec<Host>,
    /// Until when each port has something to send.
    ports: Vec<Time>,
    parcels: Vec<Parcel>,
    events: BinaryHeap<Reverse<(Time, Event)>>,
    seed: u64,
}

impl Shared {
    pub(crate) fn new(fabric: Fabric, seed: u64) -> Shared {
        let ports = vec![Time::ZERO; fabric.ports().len()];
        let (hosts, parcels, events) = (Vec::new(), Vec::new(), BinaryHeap::new());
        Shared { fabric, now: Time::ZERO, hosts, ports, parcels, events, seed }
    }
    /// The next host sends to `dst` without end: under Twill, or messages of a megabyte by hash.
    pub(crate) fn send(&mut self, is_twill: bool, dst: u32) {
        let at = self.hosts.len();
        let sender = match is_twill {
            true => {
                let planner = Box::new(planner(&[], at as u32));
                Sender::Twill { planner, out: BTreeMap::new() }
            }
            false => {
                let scheme = SchemeConfig::read("ecmp", &[]).unwrap();
                let start_jitter = Time::ZERO;
                let config =
                    BalanceConfig { scheme, start_jitter, random_position: false, bdp: BDP };
                let planner = Box::new(Planner::new(&config, HostId(at as u32), self.seed, MTU));
                Sender::Hashed { planner, messages: 0, flow: Dctcp::default() }
            }
        };
        self.hosts.push(Host { sender, dst, arrived: 0 });
        self.post(at);
    }
    /// What each host has delivered so far.
    pub(crate) fn arrived(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.arrived).collect()
    }
    /// Goes on until `end`.
    pub(crate) fn run(&mut self, end: Time) {
        while let Some(Reverse((at, event))) = self.events.peek().copied()
            && at <= end
        {
            self.events.pop();
            self.now = at;
            match event {
                Event::At(parcel) => self.cross(parcel),
                Event::Back(parcel) => self.back(parcel),
                Event::Due(host) => self.due(host),
            }
        }
    }
    /// A host has something to send.
    fn post(&mut self, at: usize) {
        let (now, fabric, host) = (self.now, &self.fabric, &mut self.hosts[at]);
        let mut out = Vec::new();
        match &mut host.sender {
            Sender::Twill { planner, .. } => {
                planner.post(now, post(0, host.dst, ENDLESS), fabric, &mut out);
                self.leave(at, out);
            }
            Sender::Hashed { planner, messages, flow } => {
                // No two messages have the same number, and so the same hash.
                let number = at as u32 + *messages * fabric.hosts();
                *messages += 1;
                planner.post(now, post(number, host.dst, MESSAGE), fabric, &mut out);
                let Route::Hashed(entropy) = out[0].route else { panic!("{out:?} is pinned") };
                let paths = fabric.path_set(HostId(at as u32), HostId(host.dst));
                let path = paths.get((u32::from(entropy) * paths.len()) >> 16);
                *flow = Dctcp { path, left: MESSAGE, window: BDP as f64, ..Dctcp::default() };
                self.fill(at);
            }
        }
    }
    /// Chunks leave.
    fn leave(&mut self, at: usize, chunks: Vec<Subflow>) {
        let Sender::Twill { planner, out } = &mut self.hosts[at].sender else { unreachable!() };
        if let Some(due) = planner.deadline() {
            self.events.push(Reverse((due.max(self.now), Event::Due(at))));
        }
        out.extend(chunks.iter().map(|subflow| (chunk(subflow).number, *subflow)));
        for subflow in chunks {
            self.depart(at, chunk(&subflow).number, subflow.bytes, path(&subflow));
        }
    }
    /// Packets of a flow leave, as many as its window has room for.
    fn fill(&mut self, at: usize) {
        loop {
            let Sender::Hashed { flow, .. } = &mut self.hosts[at].sender else { unreachable!() };
            let bytes = u64::from(MTU).min(flow.left);
            if bytes == 0 || (flow.out + bytes) as f64 > flow.window {
                break;
            }
            (flow.left, flow.out) = (flow.left - bytes, flow.out + bytes);
            let path = flow.path;
            self.depart(at, 0, bytes, path);
        }
    }
    fn depart(&mut self, at: usize, chunk: u32, bytes: u64, path: PathId) {
        let (src, dst) = (HostId(at as u32), HostId(self.hosts[at].dst));
        let ports = self.fabric.trace(src, dst, path);
        self.parcels.push(Parcel { host: at, chunk, bytes, ports, hop: 0, is_marked: false });
        self.cross(self.parcels.len() - 1);
    }
    /// A parcel takes its next port, if there is one.
    fn cross(&mut self, number: usize) {
        let parcel = &mut self.parcels[number];
        let Some(port) = parcel.ports.get(parcel.hop) else {
            self.hosts[parcel.host].arrived += parcel.bytes;
            self.events.push(Reverse((self.now + ANSWER, Event::Back(number))));
            return;
        };
        let free = &mut self.ports[port.0 as usize];
        // NICs mark nothing.
        parcel.is_marked |= parcel.hop > 0 && self.now.until(*free) > MARKED;
        parcel.hop += 1;
        *free = self.now.max(*free) + LINK.rate.serialize(parcel.bytes + parcel.bytes / 1_000 * 64);
        self.events.push(Reverse((*free + LINK.delay, Event::At(number))));
    }
    /// The answer to a parcel is here.
    fn back(&mut self, number: usize) {
        let Parcel { host: at, chunk, bytes, is_marked, .. } = self.parcels[number];
        match &mut self.hosts[at].sender {
            Sender::Twill { planner, out: all } => {
                let (subflow, mut out) = (all.remove(&chunk).expect("it is out"), Vec::new());
                planner.sent(self.now, &flow(&subflow), &self.fabric, &mut out);
                self.leave(at, out);
            }
            Sender::Hashed { flow, .. } => {
                flow.out -= bytes;
                flow.learn(is_marked);
                match flow.left + flow.out {
                    0 => self.post(at),
                    _ => self.fill(at),
                }
            }
        }
    }
    fn due(&mut self, at: usize) {
        let Sender::Twill { planner, .. } = &mut self.hosts[at].sender else { unreachable!() };
        if planner.deadline().is_some_and(|due| due <= self.now) {
            let mut out = Vec::new();
            planner.flush(self.now, &self.fabric, &mut out);
            self.leave(at, out);
        }
    }
}
