//! DNLB: hosts choose the UDP source port of each queue pair, and leaves send each segment of the
//! port range over an uplink of its own (CTCCL 2025, section 3).
//!
//! RoCE's source ports, 0xC000 to 0xFFFF, are cut into as many equal segments as a leaf has
//! uplinks (equations 1 and 2). Queue pair q of a connection on the n-th NIC below a leaf takes
//! the segment (n * queue pairs + q) mod uplinks, so that the queue pairs of a leaf's NICs go
//! round its uplinks. Whatever DNLB has not marked with its DSCP is hashed among the uplinks; here
//! its source ports are below the range, which says the same.
//!
//! Balance asks for NICs * queue pairs >= uplinks (equation 4), which is necessary;
//! [`Condition`] tells what is sufficient. A queue pair on which something timed out is left
//! alone, and its data goes to the live ones of its connection, ports unchanged (section 3.3).
//! A leaf that knows an uplink of its own to be dead hashes its segment among the others. Of links beyond
//! the next switch a rule knows nothing: hosts that are told of dead ones, as those of plans and of real networks
//! are ([`crate::known::Known::beside_rules`]), give a queue pair of such an uplink a port of another one.
//!
//! As printed (equation 3), ports step through the range by whole segments: queue pairs q and
//! q + uplinks share a port, and where the uplinks do not divide the range, late ports fall into
//! other segments than meant, or behind all of them. By default a port stays in its segment, and
//! has a place of its own in there ([`Formula`]).
//!
//! What this does not do: steer above the leaves, which hash as ever in three tiers, and down over bundles.
//! (Configurations of real switches send down by the member that a packet came up by, and plans know that.)

use super::connections::{Connections, Sharing, connection_draw};
use super::{Scheme, SchemeInfo};
use crate::enforce::{PortRange, PortRules};
use crate::forward::SwitchContext;
use crate::known::AlivePaths;
use crate::plan::{FlowInfo, HostContext, LossSignal, Plan, Post, QueuePairId, Route, Subflow};
use crate::steer::{Fixed, FlowContext};
use std::sync::Arc;
use weft_fabric::{Fabric, PathView};
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Time};

/// The first source port of RoCE, and how many there are.
pub const FIRST_PORT: u32 = PortRange::ROCE.first as u32;
/// How many source ports there are.
pub const PORTS: u32 = PortRange::ROCE.len();

/// Source ports by queue pair, and uplinks by source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnlb {
    /// How messages use the queue pairs of a connection.
    pub sharing: Sharing,
    /// Which source port a queue pair has.
    pub formula: Formula,
    /// How long a queue pair is left alone after a time-out.
    pub dead_for: Time,
    /// The DSCP marks so many jobs, from the first on; `None`: all.
    pub jobs: Option<u32>,
}

/// Which source port a queue pair has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Equation 3, with its step rounded down.
    Printed,
    /// The same segment, and a place of its own inside it.
    Repaired,
}

impl Formula {
    /// The source port of the queue pair numbered `number` among those below a leaf with
    /// `uplinks` uplinks, of which there is at least one: n * queue pairs + q.
    pub fn port(self, number: u32, uplinks: u32) -> u16 {
        let step = PORTS / uplinks;
        let offset = match self {
            Formula::Printed => (u64::from(number) * u64::from(step) % u64::from(PORTS)) as u32,
            Formula::Repaired => number % uplinks * step + number / uplinks % step,
        };
        (FIRST_PORT + offset) as u16
    }

    /// The same over another uplink than its own, for the `index`-th of those that are moved there. Repaired
    /// ports keep out of each other's way: those of the uplink's own queue pairs are at the front of its segment.
    fn moved(self, uplink: u32, index: u32, uplinks: u32) -> u16 {
        let step = PORTS / uplinks;
        let place = match self {
            Formula::Printed => 0,
            Formula::Repaired => step - 1 - index % step,
        };
        (FIRST_PORT + uplink * step + place) as u16
    }

    /// The same where only some of the `uplinks` lead on to the receiver, ascending: the queue pairs of the others
    /// go round these.
    fn leading(self, number: u32, uplinks: u32, leading: &[u32]) -> u16 {
        let port = self.port(number, uplinks);
        let Some(own) = segment(port, uplinks) else { return port };
        let Err(below) = leading.binary_search(&own) else { return port };
        let lost = uplinks - leading.len() as u32;
        let before = own - below as u32;
        let index = number / uplinks * lost + before;
        self.moved(leading[index as usize % leading.len()], index, uplinks)
    }
}

/// Which uplink the segments of the port range belong to: that of `port` among `uplinks`. `None`:
/// it is below the range, or behind the last segment (equation 2).
pub fn segment(port: u16, uplinks: u32) -> Option<u32> {
    PortRange::ROCE.part_of(port, uplinks)
}

/// Whether DNLB can balance the uplinks of a leaf, and why not (equation 4 and beyond).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Every uplink has the same number of queue pairs of each distance.
    Balanced,
    /// Fewer queue pairs than uplinks: some uplinks carry nothing.
    TooFew,
    /// The uplinks do not divide the queue pairs, so that some have one more than others.
    Uneven,
}

impl Condition {
    /// For `nics` busy NICs below a leaf with `uplinks` uplinks, and connections of `queue_pairs`
    /// queue pairs that carry the same.
    pub fn of(nics: u32, queue_pairs: u32, uplinks: u32) -> Condition {
        match nics * queue_pairs {
            all if all < uplinks => Condition::TooFew,
            all if !all.is_multiple_of(uplinks) => Condition::Uneven,
            _ => Condition::Balanced,
        }
    }
}

/// How many queue pairs of a connection of each of the NICs at these places below a leaf have each
/// of its `uplinks`. Ports behind the last segment have none.
pub fn queue_pairs_by_uplink<'a>(
    scheme: &Dnlb,
    places: impl IntoIterator<Item = &'a u32>,
    uplinks: u32,
) -> Vec<u32> {
    let mut counts = vec![0; uplinks as usize];
    let queue_pairs = scheme.sharing.queue_pairs;
    let numbers =
        places.into_iter().flat_map(|place| place * queue_pairs..(place + 1) * queue_pairs);
    for uplink in
        numbers.filter_map(|number| segment(scheme.formula.port(number, uplinks), uplinks))
    {
        counts[uplink as usize] += 1;
    }
    counts
}

impl Scheme for Dnlb {
    const INFO: SchemeInfo = SchemeInfo {
        name: "dnlb",
        summary: "source ports by queue pair, and leaves map segments of them to uplinks",
        switches: "policy of source ports",
        source: "CTCCL/DNLB (Li et al., ICS 2025)",
        in_switch: true,
        port_policy: true,
        numbered: Some("queue_pairs"),
        persistent: true,
        options: &[
            Sharing::QUEUE_PAIRS,
            Sharing::SPLIT,
            Sharing::CHUNK,
            OptionInfo {
                key: "formula",
                default: "repaired",
                kind: OptionKind::Word(&["repaired", "printed"]),
                meaning: "source ports: \"printed\" as equation 3 has them, where queue pairs \
                          share ports; \"repaired\": the same segments, a port each",
            },
            OptionInfo {
                key: "dead_for",
                default: "1s",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "time that a queue pair is left alone after a time-out on it",
            },
            OptionInfo {
                key: "jobs",
                default: "all",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "how many jobs, from the first on, the DSCP marks; queue pairs of the \
                          others are hashed",
            },
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<PortedConnections>;
    type Steering = Fixed;
    type Switching = PortRules;

    fn read(options: &mut Options<'_>) -> Result<Dnlb, OptionError> {
        let words = [("repaired", Formula::Repaired), ("printed", Formula::Printed)];
        Ok(Dnlb {
            sharing: Sharing::read(options)?,
            formula: options.choice("formula", &words)?,
            dead_for: options.time("dead_for")?,
            jobs: options.number_if_given("jobs")?,
        })
    }
    fn number(&self) -> Option<u32> {
        Some(self.sharing.queue_pairs)
    }
    fn planner(&self, context: &HostContext) -> Box<PortedConnections> {
        Box::new(PortedConnections::new(*self, context))
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> PortRules {
        PortRules::of_leaf(context)
    }
}

/// The connections of one host: those that DNLB marks, and the others.
#[derive(Clone, Debug)]
pub struct PortedConnections {
    scheme: Dnlb,
    host: HostId,
    ports: Draw,
    alive: AlivePaths,
    marked: Connections,
    others: Connections,
    /// Something has been moved and can leave.
    moved_at: Option<Time>,
}

/// Queue pairs of marked connections have even numbers, the others odd ones.
const KINDS: u32 = 2;

impl PortedConnections {
    fn new(scheme: Dnlb, context: &HostContext) -> PortedConnections {
        let HostContext { host, seed, .. } = *context;
        let (ports, alive) = (Draw::new(seed, "connection-port"), AlivePaths::default());
        let connections = |kind| Connections::new(scheme.sharing, context).numbered(KINDS, kind);
        let (marked, others) = (connections(0), connections(1));
        PortedConnections { scheme, host, ports, alive, marked, others, moved_at: None }
    }
    fn of(&mut self, id: QueuePairId) -> &mut Connections {
        if id.0.is_multiple_of(KINDS) { &mut self.marked } else { &mut self.others }
    }
}

impl Plan for PortedConnections {
    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let Dnlb { sharing, formula, jobs, .. } = self.scheme;
        if jobs.is_some_and(|jobs| post.job >= jobs) {
            let pair = connection_draw(self.ports, self.host, &post);
            // Below RoCE's range, which stands for another DSCP.
            let port = |number: u32| ((pair >> 32) as u32).wrapping_add(number) % FIRST_PORT;
            return self.others.post(now, post, |number| port(number) as u16, out);
        }
        let first = fabric.place_below_leaf(self.host) * sharing.queue_pairs;
        // A leaf may be a network of its own: then all ports are alike.
        let uplinks = fabric.uplinks_of(self.host).max(1);
        match self.alive.to(fabric, self.host, post.dst) {
            Some(alive) if alive.len() < fabric.path_set(self.host, post.dst).len() as usize => {
                let mut leading: Vec<u32> = alive.iter().map(|path| path.first().into()).collect();
                leading.dedup();
                let port = |number| formula.leading(first + number, uplinks, &leading);
                self.marked.post(now, post, port, out);
            }
            _ => self.marked.post(now, post, |number| formula.port(first + number, uplinks), out),
        }
    }
    fn next(&mut self, _: Time, queue_pair: QueuePairId, _: &Fabric) -> Option<Subflow> {
        self.of(queue_pair).next(queue_pair)
    }
    fn deadline(&self) -> Option<Time> {
        self.moved_at
    }
    fn flush(&mut self, _: Time, _: &Fabric, out: &mut Vec<Subflow>) {
        self.moved_at = None;
        out.append(self.marked.moved());
    }
    fn learn(&mut self, _: Time, view: &Arc<PathView>, _: &Fabric) {
        self.alive.learn(view);
    }
    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        _: &Fabric,
    ) -> Option<Route> {
        if signal == LossSignal::Nack || !flow.queue_pair?.0.is_multiple_of(KINDS) {
            return None;
        }
        let until = now.saturating_add(self.scheme.dead_for);
        let route = self.marked.leave(now, flow, until);
        if !self.marked.moved().is_empty() {
            self.moved_at = Some(now);
        }
        route
    }
}
