//! Multipath Reliable Connection (MRC 1.0, OCP 2026; arXiv 2605.04333, section 2.1): a set of entropy values
//! (EVs) with a state each.
//!
//! Packets walk through the active EVs. One that was marked, or whose packet was trimmed before the last hop, is
//! skipped once. One under which a packet was lost without notice is assumed bad: a backup of the same
//! plane takes its place, and it comes back as a backup after a while.
//!
//! Switches hash EVs, or with `carried = "structured"` an EV names its path: bits of it say which port each switch
//! takes (section 2.2), as do the segments of an SRv6 address, which costs 40 bytes more a packet
//! (`fabric.nic.header`). Then a flow has an EV for each path that it draws, and no two of them collide.
//!
//! What is ours: bad EVs are not probed, but come back after [`Mrc::bad_for`], which stands for a probe
//! a millisecond and three good ones in a row (numbers are not published). When all active EVs are to
//! be skipped, the first of them is taken. When there is no backup left, a bad EV stays in use.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer};
use std::collections::VecDeque;
use weft_fabric::PathId;
use weft_units::{Draw, OptionError, OptionInfo, Options, Stream, Time};

/// Entropy values with states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mrc {
    /// How many EVs a flow has, in all planes together.
    pub entropies: u32,
    /// How many of them are in use; the others are backups. No more than `entropies`.
    pub active: u32,
    /// How long an EV that lost a packet is no backup.
    pub bad_for: Time,
    /// What an EV is to switches.
    pub carried: Carried,
}

/// What an entropy value is to switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A part of what they hash.
    Ecmp,
    /// The name of a path.
    Structured,
}

impl Scheme for Mrc {
    const INFO: SchemeInfo = SchemeInfo {
        name: "mrc",
        summary: "walks through entropy values, skips marked ones once, replaces those that lose packets",
        source: "Multipath Reliable Connection 1.0 (OCP 2026); arXiv 2605.04333",
        multipath: true,
        options: &[
            OptionInfo {
                key: "entropies",
                default: "128",
                meaning: "entropy values of a flow, in all planes together, up to 65536",
            },
            OptionInfo {
                key: "active",
                default: "100",
                meaning: "how many of them are in use at once; the others are backups",
            },
            OptionInfo {
                key: "bad_for",
                default: "3ms",
                meaning: "time after which one that lost a packet is a backup again",
            },
            OptionInfo {
                key: "carried",
                default: "ecmp",
                meaning: "\"ecmp\": switches hash entropy values; \"structured\": each names its path, as SRv6 \
                          addresses do",
            },
        ],
        paths: PathUse::AllByRoom,
        congestion: "nscc",
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<MrcFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Mrc, OptionError> {
        let entropies = options.number("entropies", 1..=1 << 16)?;
        let active = options.number("active", 1..=1 << 16)?;
        if active > entropies && options.has("active") {
            let what = format!("is more than entropies, {entropies}; use less, or raise that");
            return Err(OptionError::new("active", what));
        }
        let active = active.min(entropies);
        let ways = [("ecmp", Carried::Ecmp), ("structured", Carried::Structured)];
        let carried = options.choice("carried", &ways)?;
        Ok(Mrc { entropies, active, bad_for: options.time("bad_for")?, carried })
    }
    fn needs_path_ids(&self) -> bool {
        self.carried == Carried::Structured
    }
    fn switches(&self) -> &'static str {
        match self.carried {
            Carried::Ecmp => Self::INFO.switches,
            Carried::Structured => "route by path id (structured EVs, or SRv6)",
        }
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<MrcFlow> {
        Box::new(MrcFlow::new(self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// An active entropy value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entropy {
    value: u16,
    /// It is left out at its next turn.
    skip: bool,
}

/// A flow under [`Mrc`], in one plane.
#[derive(Clone, Debug)]
pub struct MrcFlow {
    stream: Stream,
    bad_for: Time,
    carried: Carried,
    active: Vec<Entropy>,
    /// The place of the next in `active`.
    next: usize,
    backups: VecDeque<u16>,
    /// Bad ones, and when each may come back, the earliest first.
    bad: VecDeque<(Time, u16)>,
}

impl MrcFlow {
    /// Of one flow, in one plane.
    ///
    /// # Panics
    /// If it has no entropy values.
    pub fn new(scheme: &Mrc, context: &FlowContext<'_>) -> MrcFlow {
        let mut stream = Draw::new(context.seed, "mrc").stream(context.flow);
        let planes = context.fabric.nic_ports();
        let [all, active] = [scheme.entropies, scheme.active].map(|count| count.div_ceil(planes));
        // Distinct, in an order that the flow draws.
        let mut values: Vec<u16> = match scheme.carried {
            Carried::Ecmp => {
                let first = (stream.bits() >> 48) as u16;
                (0..all).map(|step| first.wrapping_add(step as u16)).collect()
            }
            Carried::Structured => {
                let (host, dst) = context.hosts;
                let paths = context.fabric.path_set(host, dst);
                (0..paths.len()).map(|index| paths.get(index).0).collect()
            }
        };
        stream.shuffle(&mut values);
        values.truncate(all as usize);
        let backups = values.split_off(values.len().min(active as usize));
        MrcFlow {
            stream,
            bad_for: scheme.bad_for,
            carried: scheme.carried,
            active: values.into_iter().map(|value| Entropy { value, skip: false }).collect(),
            next: 0,
            backups: backups.into(),
            bad: VecDeque::new(),
        }
    }

    /// The entropy value of the next packet.
    pub fn next_entropy(&mut self) -> u16 {
        let first = self.step();
        let mut at = first;
        for _ in 1..self.active.len() {
            if !std::mem::take(&mut self.active[at].skip) {
                return self.active[at].value;
            }
            at = self.step();
        }
        match std::mem::take(&mut self.active[at].skip) {
            false => self.active[at].value,
            true => self.active[first].value,
        }
    }
    /// Whose turn it is; in another order in each round.
    fn step(&mut self) -> usize {
        if self.next == self.active.len() {
            self.stream.shuffle(&mut self.active);
            self.next = 0;
        }
        self.next += 1;
        self.next - 1
    }
    fn find(&mut self, value: u16) -> Option<&mut Entropy> {
        self.active.iter_mut().find(|entropy| entropy.value == value)
    }
}

impl Steer for MrcFlow {
    const NAMES_LOSSES: bool = true;

    #[inline]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        let entropy = self.next_entropy();
        match self.carried {
            Carried::Ecmp => Route::Hashed(entropy),
            Carried::Structured => Route::Pinned(PathId(entropy)),
        }
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        if !feedback.is_good()
            && let Some(entropy) = self.find(feedback.entropy)
        {
            entropy.skip = true;
        }
    }
    fn on_lost(&mut self, now: Time, entropy: u16) {
        while let Some((until, value)) = self.bad.front().copied()
            && until <= now
        {
            self.bad.pop_front();
            self.backups.push_back(value);
        }
        if self.backups.is_empty() {
            return;
        }
        let backup = self.backups[0];
        let bad_until = now.saturating_add(self.bad_for);
        if let Some(lost) = self.find(entropy) {
            *lost = Entropy { value: backup, skip: false };
            self.backups.pop_front();
            self.bad.push_back((bad_until, entropy));
        }
    }
}
