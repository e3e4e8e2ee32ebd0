//! Multipath Reliable Connection (MRC 1.0, OCP 2026; arXiv 2605.04333, section 2.1): a set of entropy values
//! (EVs) with a state each.
//!
//! Packets walk through the active EVs. One that was marked, or whose packet was trimmed before the last hop, is
//! skipped once. One under which a packet was lost without notice is assumed bad: a backup of the same
//! plane takes its place; where there is none the others go on, as long as they are not too few (the profile's
//! minimum of active EVs). It is probed, by a packet without data that asks for a report, and is back once some probes in a
//! row were answered.
//!
//! Switches hash EVs, or with `carried = "structured"` an EV names its path: bits of it say which port each switch
//! takes (section 2.2), as do the segments of an SRv6 address, which costs 40 bytes more a packet
//! (`fabric.nic.header`). Then a flow has an EV for each path that it draws, and no two of them collide.
//!
//! What is ours: how often bad EVs are probed, and how many good probes they need, is not published. Where loss
//! recovery does not report, nothing can be asked, and a bad EV is back after as long as the probes take. When
//! all active EVs are to be skipped, the first of them is taken. The minimum of active ones is half of them: a device's is not
//! published, and where every path loses some packets few EVs would be left else.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer};
use std::collections::VecDeque;
use weft_fabric::PathId;
use weft_units::{Alarm, Draw, OptionError, OptionInfo, OptionKind, Options, Ring, Stream, Time};

/// Entropy values with states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mrc {
    /// How many EVs a flow has, in all planes together.
    pub entropies: u32,
    /// How many of them are in use; the others are backups. No more than `entropies`.
    pub active: u32,
    /// Bad ones stay in use where no more than so many would be left. No more than `active`.
    pub min_active: u32,
    /// How often a bad EV is probed. Never zero.
    pub probe_every: Time,
    /// So many answers in a row make it a backup.
    pub good_probes: u32,
    /// What an EV is to switches.
    pub carried: Carried,
}

/// How many EVs are in use on ConnectX-8, about (section 2.4).
const ACTIVE: u32 = 100;

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
                kind: OptionKind::Whole(1, 1 << 16),
                meaning: "entropy values of a flow, in all planes together, up to 65536",
            },
            OptionInfo {
                key: "active",
                default: "100, or all",
                kind: OptionKind::Whole(1, 1 << 16),
                meaning: "how many of them are in use at once; the others are backups",
            },
            OptionInfo {
                key: "min_active",
                default: "active / 2",
                kind: OptionKind::Whole(1, 1 << 16),
                meaning: "so many stay in use, bad as they may be",
            },
            OptionInfo {
                key: "probe_every",
                default: "1ms",
                kind: OptionKind::Time(Time::ns(1)),
                meaning: "how often one that lost a packet is probed",
            },
            OptionInfo {
                key: "good_probes",
                default: "3",
                kind: OptionKind::Whole(1, 1000),
                meaning: "answered probes in a row after which it is a backup again, up to 1000",
            },
            OptionInfo {
                key: "carried",
                default: "ecmp",
                kind: OptionKind::Word(&["ecmp", "structured"]),
                meaning: "\"ecmp\": switches hash entropy values; \"structured\": each names its path, as SRv6 \
                          addresses do",
            },
        ],
        paths: PathUse::AllByRoom,
        congestion: "nscc",
        wants_reports: true,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<MrcFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Mrc, OptionError> {
        let entropies = options.number("entropies")?;
        let active = options.number_if_given("active")?;
        if active > Some(entropies) {
            let what = format!("is more than entropies, {entropies}; use less, or raise that");
            return Err(OptionError::new("active", what));
        }
        let active = active.unwrap_or(ACTIVE.min(entropies));
        let min_active = options.number_if_given("min_active")?;
        if min_active > Some(active) {
            let what = format!("is more than active, {active}; use less");
            return Err(OptionError::new("min_active", what));
        }
        let min_active = min_active.unwrap_or(active.div_ceil(2));
        let ways = [("ecmp", Carried::Ecmp), ("structured", Carried::Structured)];
        let carried = options.choice("carried", &ways)?;
        let probe_every = options.time("probe_every")?;
        let good_probes = options.number("good_probes")?;
        Ok(Mrc { entropies, active, min_active, probe_every, good_probes, carried })
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

impl Entropy {
    fn new(value: u16) -> Entropy {
        Entropy { value, skip: false }
    }
}

/// An entropy value that is assumed bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bad {
    value: u16,
    /// When it is probed next; where nobody can ask, when it is a backup again.
    due: Time,
    /// Probes that were answered in a row.
    good: u32,
    /// The last one has not been, yet.
    waits: bool,
}

/// A flow under [`Mrc`], in one plane.
#[derive(Clone, Debug)]
pub struct MrcFlow {
    stream: Stream,
    probe_every: Time,
    good_probes: u32,
    /// Its host can send probes.
    probes: bool,
    carried: Carried,
    active: Vec<Entropy>,
    /// How many there are while enough are good, and at least.
    most: usize,
    least: usize,
    /// The place of the next in `active`.
    next: usize,
    backups: VecDeque<u16>,
    bad: Vec<Bad>,
    alarm: Alarm,
}

impl MrcFlow {
    /// Of one flow, in one plane.
    ///
    /// # Panics
    /// If it has no entropy values.
    pub fn new(scheme: &Mrc, context: &FlowContext<'_>) -> MrcFlow {
        let mut stream = Draw::new(context.seed, "mrc").stream(context.flow);
        let planes = context.fabric.nic_ports();
        let counts = [scheme.entropies, scheme.active, scheme.min_active];
        let [all, active, least] = counts.map(|count| count.div_ceil(planes) as usize);
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
        values.truncate(all);
        let most = values.len().min(active);
        let backups = values.split_off(most);
        MrcFlow {
            stream,
            probe_every: scheme.probe_every,
            good_probes: scheme.good_probes,
            probes: context.probes,
            carried: scheme.carried,
            active: values.into_iter().map(Entropy::new).collect(),
            most,
            // As great a part of those that there are.
            least: (most * least).div_ceil(active),
            next: 0,
            backups: backups.into(),
            bad: Vec::new(),
            alarm: Alarm::OFF,
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
    fn way(&self, value: u16) -> Route {
        match self.carried {
            Carried::Ecmp => Route::Hashed(value),
            Carried::Structured => Route::Pinned(PathId(value)),
        }
    }
    fn first_due(&self) -> Option<Time> {
        self.bad.iter().map(|bad| bad.due).min()
    }
    /// Bad ones that `is_over` are backups again, or in use where some are missing.
    fn bring_back(&mut self, is_over: impl Fn(&Bad) -> bool) {
        let MrcFlow { backups, active, most, .. } = self;
        self.bad.retain(|bad| {
            let stays = !is_over(bad);
            match active.len() < *most {
                _ if stays => {}
                true => active.push(Entropy::new(bad.value)),
                false => backups.push_back(bad.value),
            }
            stays
        });
    }
}

impl Steer for MrcFlow {
    const NAMES_LOSSES: bool = true;

    #[inline]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        let entropy = self.next_entropy();
        self.way(entropy)
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
        if !self.probes {
            self.bring_back(|bad| bad.due <= now);
        }
        let Some(at) = self.active.iter().position(|active| active.value == entropy) else {
            return;
        };
        match self.backups.pop_front() {
            Some(backup) => self.active[at] = Entropy::new(backup),
            None if self.active.len() <= self.least => return,
            None => {
                self.active.remove(at);
                self.next -= usize::from(at < self.next);
            }
        }
        let wait = if self.probes { 1 } else { u64::from(self.good_probes) };
        let due = now.saturating_add(self.probe_every * wait);
        self.bad.push(Bad { value: entropy, due, good: 0, waits: false });
    }
    fn probe_at(&mut self) -> Option<Time> {
        let due = self.first_due().filter(|_| self.probes)?;
        self.alarm.set(due)
    }
    fn probe(&mut self, now: Time, out: &mut Vec<Route>) -> Option<Time> {
        match self.alarm.ring(now) {
            Ring::No => return None,
            Ring::At(later) => return Some(later),
            Ring::Now => {}
        }
        for at in 0..self.bad.len() {
            if self.bad[at].due <= now {
                out.push(self.way(self.bad[at].value));
                let bad = &mut self.bad[at];
                if bad.waits {
                    bad.good = 0;
                }
                (bad.waits, bad.due) = (true, now + self.probe_every);
            }
        }
        self.probe_at()
    }
    fn on_probe(&mut self, entropy: u16) {
        let asked = self.bad.iter_mut().find(|bad| bad.value == entropy && bad.waits);
        if let Some(bad) = asked {
            (bad.good, bad.waits) = (bad.good + 1, false);
        }
        let enough = self.good_probes;
        self.bring_back(|bad| bad.good >= enough);
    }
}
