//! A host under Twill, and its network: a queue for each path.

#![allow(dead_code)]

pub(crate) mod shared;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use weft_balance::Planner;
use weft_balance::plan::{Chunk, FlowInfo, LossSignal, Post, QueuePairId, Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link, PathId};
use weft_units::{HostId, MessageId, Rate, Time};

pub(crate) const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
pub(crate) const MTU: u32 = 1_000;
/// Of 100 Gb/s and some 4 us.
pub(crate) const BDP: u64 = 50_000;
/// The payload of a chunk: 1/32 of that, in whole packets.
pub(crate) const CHUNK: u64 = 2_000;

/// Two leaves, four spines, four hosts below each leaf: hosts 4 to 7 are four paths away from host
/// 0.
pub(crate) fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(2, 4, 4, LINK)).unwrap()
}
pub(crate) fn planner(options: &[(&str, &str)], host: u32) -> Planner {
    let scheme = SchemeConfig::read("twill", options).unwrap();
    let start_jitter = Time::ZERO;
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: BDP };
    Planner::new(&config, HostId(host), 1, MTU)
}
pub(crate) fn post(message: u32, dst: u32, bytes: u64) -> Post {
    let (message, dst) = (MessageId(message), HostId(dst));
    Post { message, dst, bytes, job: 0, ranks: (0, 0), tag: message.0 }
}
pub(crate) fn path(subflow: &Subflow) -> PathId {
    let Route::Pinned(path) = subflow.route else { panic!("{subflow:?} is not pinned") };
    path
}
pub(crate) fn chunk(subflow: &Subflow) -> Chunk {
    subflow.carrier.chunk().unwrap_or_else(|| panic!("{subflow:?} is no chunk"))
}
pub(crate) fn flow(subflow: &Subflow) -> FlowInfo {
    FlowInfo::from(subflow)
}

/// A host, its NIC, and a queue for each path.
pub(crate) struct Network {
    pub(crate) fabric: Fabric,
    pub(crate) planner: Planner,
    pub(crate) now: Time,
    /// Until when the NIC has something to send.
    nic: Time,
    /// The same of each path, and how many times as long as on the NIC a byte takes there.
    pub(crate) paths: BTreeMap<PathId, (Time, f64)>,
    /// What adds to each round trip.
    pub(crate) noise: Box<dyn FnMut(PathId) -> Time>,
    /// By which nothing comes back.
    pub(crate) dead: Option<PathId>,
    /// Whether the answers of a receiver by a path come in the order in which its chunks left.
    pub(crate) in_order: bool,
    /// Whether chunks go again that time out, or that others show to be lost.
    pub(crate) repeats: bool,
    /// When which copy comes back, by its place in `left`.
    pub(crate) coming: BinaryHeap<Reverse<(Time, u64)>>,
    /// By the place in `left` of the first copy.
    pub(crate) under_way: BTreeMap<u64, Subflow>,
    /// What has left, with the time.
    pub(crate) left: Vec<(Time, Subflow)>,
    /// What went again, by its place in `left`: which chunk it is a copy of, and why it did.
    pub(crate) again: BTreeMap<u64, (u64, LossSignal)>,
    /// When the time-out of which chunk comes.
    timers: BTreeSet<(Time, u64)>,
    timer_of: BTreeMap<u64, Time>,
    /// The chunks that are out on a queue pair for the first time, in the order in which they left.
    queue_pairs: BTreeMap<QueuePairId, VecDeque<OnPair>>,
    /// When the last answer of a receiver by a path comes.
    last_back: BTreeMap<(HostId, PathId), Time>,
}

/// A chunk on a queue pair.
#[derive(Clone, Copy)]
struct OnPair {
    number: u64,
    /// When the last of it leaves the NIC.
    gone: Time,
    /// The first one that had not left the NIC when this one came there.
    after: u64,
}

impl Network {
    pub(crate) fn new(options: &[(&str, &str)], host: u32) -> Network {
        Network {
            fabric: fabric(),
            planner: planner(options, host),
            now: Time::ZERO,
            nic: Time::ZERO,
            paths: BTreeMap::new(),
            noise: Box::new(|_| Time::ZERO),
            dead: None,
            in_order: false,
            repeats: false,
            coming: BinaryHeap::new(),
            under_way: BTreeMap::new(),
            left: Vec::new(),
            again: BTreeMap::new(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            queue_pairs: BTreeMap::new(),
            last_back: BTreeMap::new(),
        }
    }
    pub(crate) fn post(&mut self, post: Post) {
        let mut out = Vec::new();
        self.planner.post(self.now, post, &self.fabric, &mut out);
        self.leave(out);
    }
    fn leave(&mut self, out: Vec<Subflow>) {
        for subflow in out {
            let number = self.cross(subflow);
            self.under_way.insert(number, subflow);
            if self.repeats {
                let on_pair = self.queue_pairs.entry(chunk(&subflow).queue_pair).or_default();
                let here = on_pair.iter().find(|one| one.gone > self.now);
                let after = here.map_or(number, |one| one.number);
                on_pair.push_back(OnPair { number, gone: self.nic, after });
                self.wake(number, self.now.saturating_add(chunk(&subflow).time_out));
            }
        }
    }
    /// A copy of a chunk takes its path. Its number.
    fn cross(&mut self, subflow: Subflow) -> u64 {
        let wire = LINK.rate.serialize(subflow.bytes + subflow.bytes / 1_000 * 64);
        self.nic = self.nic.max(self.now) + wire;
        let (free, slow) = self.paths.entry(path(&subflow)).or_insert((Time::ZERO, 0.0));
        *free = self.nic.max(*free) + Time((wire.0 as f64 * *slow) as u64);
        let mut back = *free + Time::us(4) + (self.noise)(path(&subflow));
        if self.in_order {
            let last = self.last_back.entry((subflow.dst, path(&subflow))).or_default();
            back = back.max(*last);
            *last = back;
        }
        let number = self.left.len() as u64;
        if self.dead != Some(path(&subflow)) {
            self.coming.push(Reverse((back, number)));
        }
        self.left.push((self.now, subflow));
        number
    }
    /// The time-out of a chunk comes at `at`.
    fn wake(&mut self, number: u64, at: Time) {
        self.sleep(number);
        self.timers.insert((at, number));
        self.timer_of.insert(number, at);
    }
    fn sleep(&mut self, number: u64) {
        if let Some(at) = self.timer_of.remove(&number) {
            self.timers.remove(&(at, number));
        }
    }
    /// Goes on until `end`, or until nothing is left to do.
    pub(crate) fn run(&mut self, end: Time) {
        loop {
            let next = self.coming.peek().map(|Reverse((at, _))| *at);
            let due = self.planner.deadline();
            let timer = self.timers.first().map(|(at, _)| *at);
            let first = next.into_iter().chain(due).chain(timer).min();
            let Some(at) = first.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            let mut out = Vec::new();
            if next == Some(at) {
                let Some(Reverse((_, copy))) = self.coming.pop() else { unreachable!() };
                self.come_back(copy, &mut out);
            } else if due == Some(at) {
                self.planner.flush(self.now, &self.fabric, &mut out);
            } else if let Some((_, number)) = self.timers.first().copied() {
                self.time_out(number);
            }
            self.leave(out);
        }
    }
    /// The answer to a copy of a chunk is here.
    fn come_back(&mut self, copy: u64, out: &mut Vec<Subflow>) {
        let number = self.again.get(&copy).map_or(copy, |(first, _)| *first);
        let Some(subflow) = self.under_way.remove(&number) else { return };
        self.sleep(number);
        if self.repeats {
            let queue_pair = chunk(&subflow).queue_pair;
            let on_pair = self.queue_pairs.get_mut(&queue_pair).expect("it is known");
            if let Some(at) = on_pair.iter().position(|one| one.number == number) {
                let after = on_pair[at].after;
                let is_before = |one: &&OnPair| one.number < after;
                let lost: Vec<OnPair> =
                    on_pair.iter().take(at).take_while(is_before).copied().collect();
                on_pair.remove(at);
                for one in lost {
                    self.repeat(one.number, LossSignal::Nack);
                }
            }
        }
        let answered = FlowInfo { route: self.left[copy as usize].1.route, ..flow(&subflow) };
        self.planner.sent(self.now, &answered, &self.fabric, out);
    }
    fn time_out(&mut self, number: u64) {
        let subflow = self.under_way[&number];
        match self.planner.patience(self.now, &flow(&subflow), &self.fabric) {
            Some(more) => self.wake(number, self.now + more.max(Time(1))),
            None => self.repeat(number, LossSignal::TimeOut),
        }
    }
    /// A chunk is taken for lost, and goes again.
    fn repeat(&mut self, number: u64, signal: LossSignal) {
        let subflow = self.under_way.get_mut(&number).expect("it is out");
        let on_pair = self.queue_pairs.get_mut(&chunk(subflow).queue_pair).expect("it is known");
        on_pair.retain(|one| one.number != number);
        let route = self.planner.on_loss(self.now, &flow(subflow), signal, &self.fabric);
        subflow.route = route.unwrap_or(subflow.route);
        let subflow = *subflow;
        let copy = self.cross(subflow);
        self.again.insert(copy, (number, signal));
        self.wake(number, self.now.saturating_add(chunk(&subflow).time_out));
    }
    /// The part of all copies that went again because of `signal`.
    pub(crate) fn part_again(&self, signal: LossSignal) -> f64 {
        let again = self.again.values().filter(|(_, why)| *why == signal).count();
        again as f64 / self.left.len() as f64
    }
    /// Payload by path of what has left since `from`.
    pub(crate) fn loads(&self, from: Time) -> BTreeMap<PathId, u64> {
        self.loads_between(from, Time::MAX)
    }
    pub(crate) fn loads_between(&self, from: Time, end: Time) -> BTreeMap<PathId, u64> {
        let mut loads = BTreeMap::new();
        for (_, subflow) in self.left.iter().filter(|(at, _)| (from..end).contains(at)) {
            *loads.entry(path(subflow)).or_default() += subflow.bytes;
        }
        loads
    }
    pub(crate) fn path(&self, index: u32) -> PathId {
        self.fabric.path_set(HostId(0), HostId(4)).get(index)
    }
}
