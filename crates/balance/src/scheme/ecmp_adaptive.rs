//! ECMP with adaptive placement: the hash chooses, unless its queue is long.
//!
//! As in McClure et al. (2025), section 4: a switch looks once, at the first packet of a flow, and keeps to
//! what it chose ([`Per::Flow`]). Its code keeps no flows and looks at every other packet
//! ([`Per::Packet`], with `refresh = "100ns"`).
//!
//! Invariant: per flow, all packets of a flow take one hop as long as the set of hops stays as
//! it is and the flow is not silent for [`IDLE`] (see [`crate::forward::flows`]).

use super::{Scheme, SchemeInfo};
use crate::forward::flows::{FlowTable, IDLE};
use crate::forward::loads::{Gauge, Levels, Loads, least};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// The hash, but for long queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcmpAdaptive {
    /// When switches look at their queues.
    pub per: Per,
    /// How they look for the shortest.
    pub gauge: Gauge,
}

/// When a switch looks at its queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Per {
    /// At the first packet of a flow, which moves to one of the shortest queues if the hashed
    /// one is longer than this share of the buffer.
    Flow(f64),
    /// At every packet with probability one half: if no queue is longer than the hashed one,
    /// the packet moves to one of the shortest, which may well be equal.
    Packet,
}

impl EcmpAdaptive {
    pub(super) const THRESHOLD: OptionInfo = OptionInfo {
        key: "threshold",
        default: "0.2",
        kind: OptionKind::Number(0.0, 1.0),
        meaning: "share of the buffer above which a queue is too long for a new flow",
    };
}

impl Scheme for EcmpAdaptive {
    const INFO: SchemeInfo = SchemeInfo {
        name: "ecmp-adaptive",
        summary: "one path a flow: the hashed one, or past a long queue the shortest",
        switches: "queue lengths, flow table",
        source: "McClure et al. (2025), ECMP with adaptive routing",
        in_switch: true,
        options: &[
            OptionInfo {
                key: "per",
                default: "flow",
                kind: OptionKind::Word(&["flow", "packet"]),
                meaning: "\"flow\": switches place the first packet of a flow, as published; \
                          \"packet\": each packet, without any state, as in the study's code",
            },
            EcmpAdaptive::THRESHOLD,
            OptionInfo { default: "exact, or quantised per packet", ..Gauge::LEVELS },
            Gauge::REFRESH,
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<Placing>;

    fn read(options: &mut Options<'_>) -> Result<EcmpAdaptive, OptionError> {
        Ok(match options.choice("per", &[("flow", true), ("packet", false)])? {
            true => EcmpAdaptive {
                per: Per::Flow(options.fraction("threshold")?),
                gauge: Gauge::read_or(options, Levels::Exact)?,
            },
            false => EcmpAdaptive {
                per: Per::Packet,
                gauge: Gauge::read_or(options, Levels::Quantised)?,
            },
        })
    }
    fn is_multipath(&self) -> bool {
        self.per == Per::Packet
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<Placing> {
        Box::new(Placing::new(*self, context))
    }
}

/// A switch under [`EcmpAdaptive`].
#[derive(Clone, Debug)]
pub struct Placing {
    loads: Loads,
    /// Coins and ties.
    stream: Stream,
    /// Per flow, and the most bytes of a queue that is not too long; `None` per packet.
    table: Option<(FlowTable, u64)>,
}

impl Placing {
    /// For one switch.
    pub fn new(scheme: EcmpAdaptive, context: &SwitchContext) -> Placing {
        let draw = Draw::new(context.seed, "ecmp-adaptive");
        let table = match scheme.per {
            Per::Flow(threshold) => {
                Some((FlowTable::new(IDLE), (threshold * context.buffer as f64) as u64))
            }
            Per::Packet => None,
        };
        Placing {
            loads: Loads::new(scheme.gauge, context.buffer),
            stream: draw.stream(u64::from(context.switch.0)),
            table,
        }
    }
    /// Where the hash says, unless that queue holds more than `most` bytes.
    fn place<H: Hops>(&mut self, packet: &Passing, hops: &H, most: u64) -> u32 {
        if hops.queued(packet.hashed) > most {
            least(self.loads.look(packet.now, hops), &mut self.stream)
        } else {
            packet.hashed
        }
    }
    /// Where the hash says, unless a coin falls and that queue is the longest.
    fn toss<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        if self.stream.below(2) == 0 {
            return packet.hashed;
        }
        let loads = self.loads.look(packet.now, hops);
        let own = loads[packet.hashed as usize];
        if loads.iter().any(|load| *load > own) {
            return packet.hashed;
        }
        least(loads, &mut self.stream)
    }
}

impl Forward for Placing {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let count = hops.count();
        if count == 1 {
            return 0;
        }
        let Some((table, most)) = &mut self.table else {
            return self.toss(packet, hops);
        };
        if let Some(place) = table.find(packet.flow, packet.now, count) {
            place.last = packet.now;
            return place.hop;
        }
        let most = *most;
        let hop = self.place(packet, hops, most);
        if let Some((table, _)) = &mut self.table {
            table.place(packet.flow, packet.now, count, hop);
        }
        hop
    }
}
