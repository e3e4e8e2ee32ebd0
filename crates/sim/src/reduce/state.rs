//! What a partition knows of reductions: operations at its hosts, sums and adders at its switches.

use super::accumulators::Accumulators;
use super::contribution::Contribution;
use super::segments::Segments;
use crate::config::RunConfig;
use crate::counts::Delivered;
use crate::packet::Packet;
use crate::partition::{OutPort, OwnHost, OwnSwitch, Partition};
use crate::world::World;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use weft_units::{IdVec, Rate, Time};
use weft_workload::job::Receipt;

/// All of it in one partition.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// The tree of each set, now.
    pub(super) current: Vec<u32>,
    pub(super) operations: Vec<Option<Operation>>,
    pub(super) hosts: IdVec<OwnHost, HostState>,
    /// Which operation it is: by host, set and number. Never iterated.
    pub(super) known: FxHashMap<(OwnHost, u32, u32), u32>,
    /// Those that hosts are through with, where others might need them again. Never iterated.
    pub(super) finished: FxHashSet<(OwnHost, u32, u32)>,
    /// Sums by switch, tree and number of the operation. Never iterated in any order that matters.
    pub(super) sums: FxHashMap<(OwnSwitch, u32, u32), Sums>,
    /// Operations all of whose results went down, where they might be asked for again. Never iterated.
    pub(super) passed: FxHashSet<(OwnSwitch, u32, u32)>,
    pub(super) adders: IdVec<OwnSwitch, Adder>,
    /// Packets can get lost.
    pub(super) is_lossy: bool,
    /// Packets that switches made, and that they took in.
    pub(crate) made: Delivered,
    pub(crate) taken: Delivered,
}

/// A host.
#[derive(Debug, Default)]
pub(super) struct HostState {
    /// Its operations, by place, in the order of their beginnings.
    pub(super) operations: Vec<u32>,
    pub(super) free: Vec<u32>,
    /// When its events come, the next one last.
    pub(super) alarms: Vec<Time>,
}

/// An operation at a host.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) host: OwnHost,
    pub(super) set: u32,
    pub(super) number: u32,
    /// Its place among those of the set.
    pub(super) place: u32,
    /// Whom the end is told, and as what; `None`: it is only repeated for others.
    pub(super) rank: Option<(u32, Receipt)>,
    pub(super) own: Contribution,
    /// It stands in the round of its NIC in this plane.
    pub(super) queued: Option<u32>,
    /// Queue pairs that its host had opened before.
    pub(super) age: u32,
    /// Its next packet has a slot on the way from its GPU to the NIC, and waits for it until then.
    pub(super) slot: Option<Time>,
}

/// The sums of an operation at a switch.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) segments: Segments,
    pub(super) own: Accumulators,
    /// When the switches of the tree last told each other, and their hosts, of it.
    pub(super) called_at: Option<Time>,
}

/// What adds up at a switch.
#[derive(Debug, Default)]
pub(super) struct Adder {
    /// When it is through with what has come.
    free_at: Time,
    /// Sums, and when they can leave; what can at one time, in the order in which it was complete.
    pub(super) pending: BTreeMap<(Time, u64), Sum>,
    count: u64,
    /// When its events come, the next one last.
    pub(super) alarms: Vec<Time>,
}

/// A sum that leaves its switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) tree: u32,
    pub(super) number: u32,
    pub(super) segment: u32,
    pub(super) ranks: u32,
    /// Where the last contribution came from.
    pub(super) ingress: OutPort,
}

impl Adder {
    /// Takes in `bytes`; when it is through.
    pub(super) fn take(&mut self, now: Time, bytes: u16, rate: Option<Rate>) -> Time {
        let takes = rate.map_or(Time::ZERO, |rate| rate.serialize(u64::from(bytes)));
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }
    pub(super) fn put(&mut self, at: Time, sum: Sum) {
        self.count += 1;
        self.pending.insert((at, self.count), sum);
    }
}

/// What is numbered from here on in the rounds of NICs is no queue pair, but an operation.
pub(crate) const OPERATIONS: u32 = 1 << 31;

impl Reduction {
    /// `None`: the run has none.
    pub(crate) fn new(world: &World, partition: &Partition) -> Option<Box<Reduction>> {
        let trees = world.trees.as_ref()?;
        let RunConfig { switch, failures, fabric, .. } = world.config;
        let loses = |port| failures.losses(port).is_some();
        Some(Box::new(Reduction {
            current: trees.at_start(),
            operations: Vec::new(),
            hosts: partition.hosts.iter().map(|_| HostState::default()).collect(),
            known: FxHashMap::default(),
            finished: FxHashSet::default(),
            sums: FxHashMap::default(),
            passed: FxHashSet::default(),
            adders: partition.switches.iter().map(|_| Adder::default()).collect(),
            is_lossy: switch.pfc.is_none() || fabric.ports().ids().any(loses),
            made: Delivered::default(),
            taken: Delivered::default(),
        }))
    }
    /// Puts an operation where there is room among those of its host.
    pub(super) fn begin(&mut self, operation: Operation) -> u32 {
        let Operation { host, set, number, .. } = operation;
        let place = self.hosts[host].free.pop().unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() as u32 - 1
        });
        self.operations[place as usize] = Some(operation);
        self.hosts[host].operations.push(place);
        self.known.insert((host, set, number), place);
        place
    }
    /// It is over, and its place free as soon as no round has it.
    pub(super) fn end(&mut self, place: u32) {
        let Some(one) = &mut self.operations[place as usize] else { return };
        let (host, key) = (one.host, (one.host, one.set, one.number));
        let is_queued = one.queued.is_some();
        if self.known.get(&key) == Some(&place) {
            self.known.remove(&key);
            self.hosts[host].operations.retain(|other| *other != place);
        }
        if !is_queued {
            self.operations[place as usize] = None;
            self.hosts[host].free.push(place);
        }
    }
    /// Whether it is over.
    pub(super) fn is_over(&self, place: u32) -> bool {
        let one = self.operations[place as usize].as_ref();
        one.is_none_or(|one| self.known.get(&(one.host, one.set, one.number)) != Some(&place))
    }
    pub(super) fn operation(&mut self, place: u32) -> &mut Operation {
        self.operations[place as usize].as_mut().expect("an operation under way")
    }
    pub(super) fn count_made(&mut self, packet: &Packet) {
        let one = Delivered { packets: 1, bytes: u64::from(packet.size) };
        self.made = self.made.and(one);
    }
    pub(super) fn count_taken(&mut self, packet: &Packet) {
        let one = Delivered { packets: 1, bytes: u64::from(packet.size) };
        self.taken = self.taken.and(one);
    }
}
