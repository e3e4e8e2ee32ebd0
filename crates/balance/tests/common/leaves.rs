//! Two leaves under ConWeave, and between them paths with delays of their own.

pub(crate) use super::paths::Paths;
use std::collections::BTreeMap;
use weft_balance::tor::conweave::rx::Came;
use weft_balance::tor::conweave::{ControlMessage, ControlPacket, Leaf, Options, Part, Tag};
use weft_balance::tor::{FlowId, TorContext, TorCounts};
use weft_fabric::{Clos, Fabric, Link};
use weft_trial::prelude::*;
use weft_units::{HostId, Rate, SwitchId, Time};

pub(crate) fn leaf<T>(options: &Options, switch: u32) -> Leaf<T> {
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    let fabric = Fabric::build(&Clos::leaf_spine(2, 4, 64, link)).unwrap();
    let context = TorContext { switch: SwitchId(switch), fabric: &fabric, seed: 1, packet: 1000 };
    Leaf::new(options, &context)
}
pub(crate) fn flow(key: u32) -> FlowId {
    FlowId { key, control: false, src: HostId(key), dst: HostId(64 + key % 2) }
}

/// A packet that leaves its host, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Since the packet before, whoever sent that.
    gap: u64,
    flow: u32,
    /// On its way; packets of one path wait for each other.
    delay: u64,
    marked: bool,
    lost: bool,
    /// What its control packets take; those that take longest are lost.
    control: u64,
}

/// `most` packets at most of few flows, which are on their way for up to `delay` nanoseconds.
pub(crate) fn steps(most: usize, delay: u64, losses: bool) -> impl Strategy<Value = Vec<Step>> {
    // Now and then a flow is silent for longer than leaves know it.
    let gap = prop_oneof![8 => 0u64..2_000, 2 => 2_000u64..30_000, 1 => 0u64..300_000];
    let control = prop_oneof![4 => 500u64..9_000, 1 => 0u64..100_000];
    let marked = prop::bool::weighted(0.2);
    let lost = prop::bool::weighted(if losses { 0.05 } else { 0.0 });
    let delay = prop_oneof![3 => 0..delay / 8 + 1, 2 => 0..delay + 1];
    let step = (gap, 0u32..3, delay, marked, lost, control).prop_map(
        |(gap, flow, delay, marked, lost, control)| Step {
            gap,
            flow,
            delay,
            marked,
            lost,
            control,
        },
    );
    prop::collection::vec(step, 1..most)
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// By flow, in order: which of its packets left the second leaf.
    pub(crate) delivered: BTreeMap<u32, Vec<u32>>,
    /// By flow: which of them reached it.
    pub(crate) arrived: BTreeMap<u32, Vec<u32>>,
    pub(crate) tx: TorCounts,
    pub(crate) rx: TorCounts,
    pub(crate) holding: u64,
    /// Of the packets that were not lost, the longest that one was on its way.
    pub(crate) longest: Time,
}

impl Outcome {
    pub(crate) fn is_in_order(&self) -> bool {
        self.delivered.values().all(|packets| packets.is_sorted())
    }
}

enum Happens {
    Comes(FlowId, Tag, bool, u32, Time),
    Hears(ControlPacket),
}

type Item = (u32, u32);

struct Both {
    tx: Leaf<Item>,
    rx: Leaf<Item>,
    /// By time, then by the order in which they were caused.
    events: BTreeMap<(Time, u64), Happens>,
    outcome: Outcome,
}

impl Both {
    fn happen(&mut self, at: Time, what: Happens) {
        let number = self.events.range((at, 0)..=(at, u64::MAX)).count() as u64;
        self.events.insert((at, number), what);
    }
    /// Everything before `end`.
    fn run(&mut self, end: Time) {
        loop {
            let next = self.events.keys().next().map(|(at, _)| *at);
            let timer = self.rx.deadline();
            let at = [next, timer].into_iter().flatten().min();
            let Some(at) = at.filter(|at| *at < end) else { return };
            let mut out = Vec::new();
            if next == Some(at) {
                let (_, what) = self.events.pop_first().unwrap();
                self.handle(at, what, &mut out);
            } else {
                self.rx.time(at, &mut out);
            }
            for (flow, seq) in out {
                self.outcome.delivered.entry(flow).or_default().push(seq);
            }
        }
    }
    fn handle(&mut self, now: Time, what: Happens, out: &mut Vec<Item>) {
        match what {
            Happens::Hears(packet) => self.tx.hear(now, 1, &packet),
            Happens::Comes(flow, tag, marked, seq, control) => {
                let item = (flow.key, seq);
                self.outcome.arrived.entry(flow.key).or_default().push(seq);
                let came = Came { flow, tag, marked, bytes: 1000, item };
                for message in self.rx.receive(now, came, out).into_iter().flatten() {
                    if control < Time::us(90) {
                        self.happen(now + control, Happens::Hears(ControlPacket { flow, message }));
                    }
                }
            }
        }
    }
}

/// All of `steps` over four paths.
pub(crate) fn run(options: &Options, steps: &[Step]) -> Outcome {
    let (tx, rx) = (leaf(options, 0), leaf(options, 1));
    let mut both = Both { tx, rx, events: BTreeMap::new(), outcome: Outcome::default() };
    let mut now = Time::us(1);
    let mut seqs = [0u32; 3];
    let mut free = [Time::ZERO; 4];
    for step in steps {
        now += Time::ns(step.gap);
        both.run(now);
        let id = flow(step.flow);
        let tag = both.tx.send(now, id, 1, &Paths(4)).expect("there are paths");
        let seq = &mut seqs[step.flow as usize];
        *seq += 1;
        if step.lost {
            continue;
        }
        let free = &mut free[usize::from(tag.path.0)];
        *free = (*free).max(now + Time::ns(step.delay));
        both.outcome.longest = both.outcome.longest.max(*free - now);
        let control = Time::ns(step.control);
        both.happen(*free, Happens::Comes(id, tag, step.marked, *seq, control));
    }
    both.run(Time::MAX);
    (both.outcome.tx, both.outcome.rx) = (both.tx.counts(), both.rx.counts());
    both.outcome.holding = both.rx.holding();
    both.outcome
}

/// What a tag says, without its times.
pub(crate) fn plain(tag: Tag) -> (u16, Part) {
    (tag.path.0, tag.part)
}
/// A control packet about `flow`.
pub(crate) fn control_packet(flow: FlowId, message: ControlMessage) -> ControlPacket {
    ControlPacket { flow, message }
}
