//! Spraying by switches that take turns: every packet the next of the equal hops, whatever the
//! queues say.
//!
//! [`SwitchSpray`] is the round robin of the study (McClure et al. 2025, section 4, as its code has it):
//! one turn for all destinations, in an order that changes every few rounds.
//! [`SwitchRotation`] is that of its later version: a turn for each destination, so that the
//! packets for one host are spread evenly and not just those of the switch.
//!
//! Invariant: within a round every hop is taken once.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Stream};

/// Switches take turns among the hops, in a random order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSpray {
    /// After how many rounds the order is drawn anew. Zero: never.
    pub rounds: u32,
}

impl Scheme for SwitchSpray {
    const INFO: SchemeInfo = SchemeInfo {
        name: "switch-spray",
        summary: "every packet the next hop in turn, one turn a switch",
        switches: "turns, per packet",
        source: "McClure et al. (2025), round robin in switches",
        multipath: true,
        in_switch: true,
        options: &[OptionInfo {
            key: "rounds",
            default: "5",
            kind: OptionKind::Whole(0, u32::MAX),
            meaning: "rounds after which a switch draws the order of its hops anew; 0: never",
        }],
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = RoundRobin;

    fn read(options: &mut Options<'_>) -> Result<SwitchSpray, OptionError> {
        Ok(SwitchSpray { rounds: options.number("rounds")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> RoundRobin {
        RoundRobin::new(self.rounds, context)
    }
}

/// A switch under [`SwitchSpray`]: one turn for all sets of as many hops.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// Orders of the hops.
    draw: Draw,
    rounds: u32,
    /// One a number of hops, of which a switch meets few.
    turns: Vec<Turn>,
}

/// Whose turn it is among so many hops.
#[derive(Clone, Debug)]
struct Turn {
    stream: Stream,
    order: Vec<u32>,
    /// Where in the order.
    next: usize,
    /// Rounds in this order so far.
    round: u32,
}

impl RoundRobin {
    /// For one switch; `rounds` as in [`SwitchSpray`].
    pub fn new(rounds: u32, context: &SwitchContext) -> RoundRobin {
        let purpose = Draw::new(context.seed, "switch-spray");
        // The entities of the draws below are the numbers of hops.
        let draw = Draw::new(purpose.at(u64::from(context.switch.0), 0), "turn");
        RoundRobin { draw, rounds, turns: Vec::new() }
    }

    #[inline]
    fn turn(&mut self, count: u32) -> &mut Turn {
        let found = self.turns.iter().position(|turn| turn.order.len() == count as usize);
        let index = found.unwrap_or_else(|| {
            let mut stream = self.draw.stream(u64::from(count));
            let mut order: Vec<u32> = (0..count).collect();
            stream.shuffle(&mut order);
            self.turns.push(Turn { stream, order, next: 0, round: 0 });
            self.turns.len() - 1
        });
        &mut self.turns[index]
    }
}

impl Forward for RoundRobin {
    #[inline]
    fn choose<H: Hops>(&mut self, _: &Passing, hops: &H) -> u32 {
        let (count, rounds) = (hops.count(), self.rounds);
        if count == 1 {
            return 0;
        }
        let turn = self.turn(count);
        let hop = turn.order[turn.next];
        turn.next += 1;
        if turn.next == turn.order.len() {
            turn.next = 0;
            turn.round += 1;
            if turn.round >= rounds {
                turn.round = 0;
                if rounds > 0 {
                    turn.stream.shuffle(&mut turn.order);
                }
            }
        }
        hop
    }
}

/// Switches take turns among the hops, for each destination apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchRotation;

impl Scheme for SwitchRotation {
    const INFO: SchemeInfo = SchemeInfo {
        name: "switch-rotation",
        summary: "every packet the next hop in turn, one turn a switch and destination",
        switches: "turns per receiver, per packet",
        source: "McClure et al. (2025, version 2), Ofan",
        multipath: true,
        in_switch: true,
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Rotation;

    fn read(_: &mut Options<'_>) -> Result<SwitchRotation, OptionError> {
        Ok(SwitchRotation)
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Rotation {
        Rotation::new(context)
    }
}

/// A switch under [`SwitchRotation`].
#[derive(Clone, Debug)]
pub struct Rotation {
    /// First hops, by destination.
    starts: Draw,
    /// The next hop for each destination, or [`Rotation::NEW`]. As long as the destinations
    /// that were seen are many.
    next: Vec<u32>,
}

impl Rotation {
    /// Beyond all hops.
    const NEW: u32 = u32::MAX;

    /// For one switch.
    pub fn new(context: &SwitchContext) -> Rotation {
        let purpose = Draw::new(context.seed, "switch-rotation");
        let starts = Draw::new(purpose.at(u64::from(context.switch.0), 0), "start");
        Rotation { starts, next: Vec::new() }
    }
    /// Where `dst` begins among `count` hops.
    #[cold]
    fn start(&self, dst: HostId, count: u32) -> u32 {
        self.starts.stream(u64::from(dst.0)).below(count)
    }
}

impl Forward for Rotation {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let (count, dst) = (hops.count(), packet.dst.0 as usize);
        if count == 1 {
            return 0;
        }
        if dst >= self.next.len() {
            self.next.resize(dst + 1, Rotation::NEW);
        }
        let mut hop = self.next[dst];
        // New, or fewer hops than before.
        if hop >= count {
            hop = self.start(packet.dst, count);
        }
        self.next[dst] = if hop + 1 == count { 0 } else { hop + 1 };
        hop
    }
}
