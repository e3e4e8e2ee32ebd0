//! What it costs a host to discover its paths over simulated switches, and what comes out wrong: the survey
//! that hosts carry out ([`weft_discover::Survey`]), over a fabric whose switches hash as they are told.

use crate::ExperimentError;
use std::net::Ipv4Addr;
use weft_balance::enforce::{Ends, FiveTuple, HashFunction, Hashing, links_from, uplink_of};
use weft_config::Origin;
use weft_discover::simulated::{Answers, Switches};
use weft_discover::{Count, Need, Rules, Survey};
use weft_fabric::{Fabric, PathId};
use weft_units::{Draw, HostId, SwitchId, Time};

/// The name of a hash that is not linear: every flow takes a hop at random, always the same.
pub const MIXED: &str = "mixed";

/// No survey takes longer: a month.
const LONGEST: Time = Time::secs(30 * 86_400);
/// The last source port is one that no host uses.
const PORTS: std::ops::RangeInclusive<u16> = 0xC000..=65_534;

/// A survey to try.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The network.
    pub fabric: &'a Fabric,
    /// [`MIXED`], or a function of [`HashFunction::NAMED`].
    pub hash: &'a str,
    /// Draws hashes, the order of ports and what is lost.
    pub seed: u64,
    /// The host that looks.
    pub source: HostId,
    /// For whom it looks.
    pub targets: &'a [HostId],
    /// Of each target the ids of paths that are needed (`None`: any) and how many ports; empty: all.
    pub needs: Vec<Vec<(Option<u16>, u32)>>,
    /// How switches answer.
    pub answers: Answers,
    /// Uplinks of the source's leaf whose switches never answer.
    pub silent: u32,
    /// How it looks.
    pub rules: Rules,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// How long it took, in simulated time; `None`: longer than a month.
    pub time: Option<Time>,
    /// What was sent.
    pub count: Count,
    /// By target.
    pub targets: Vec<TriedTarget>,
}

/// What came of it for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedTarget {
    /// The target.
    pub dst: HostId,
    /// Paths that were found.
    pub paths: u32,
    /// Ports that were asked.
    pub ports: u32,
    /// Ports that a linear hash puts on a path, not asked.
    pub predicted: u32,
    /// Ports, asked or predicted, that take another path than the one that they are listed under.
    pub wrong: u32,
    /// Whether the hash was found to be linear.
    pub linear: bool,
    /// Whether all is there that is needed, or all paths.
    pub complete: bool,
}

impl Trial<'_> {
    /// Carries it out.
    ///
    /// # Errors
    /// If the hash has no such name.
    pub fn run(&self) -> Result<Tried, ExperimentError> {
        let function = self.function()?;
        let mixed = Draw::new(self.seed, "mixed hash");
        let choose = |switch: SwitchId, tuple: &FiveTuple, hops: u32| match function {
            Some(function) => {
                let hashing = Hashing { function, seed: self.seed, same_salt: false };
                uplink_of(&hashing.at(self.fabric, switch), tuple, hops)
            }
            None => {
                let ends = u64::from(u32::from(tuple.src)) << 32 | u64::from(u32::from(tuple.dst));
                let of_flow = mixed.at(ends, u64::from(tuple.src_port));
                (Draw::new(of_flow, "switch").at(u64::from(switch.0), 0) % u64::from(hops)) as u32
            }
        };
        let route = |target: u32, port: u16| -> Vec<Ipv4Addr> {
            let ends = Ends::of(self.source, self.targets[target as usize]);
            let links = links_from(self.fabric, &ends, port, choose);
            links.into_iter().map(|link| Ipv4Addr::from(link.0)).collect()
        };
        let mut answers = self.answers.clone();
        let leaf = SwitchId(self.fabric.leaf_of(self.source));
        if let Some(dst) = self.targets.first() {
            let ups = self.fabric.next_hops(leaf, *dst);
            let silent = (0..self.silent.min(ups.count)).map(|hop| ups.first.0 + hop);
            answers.silent.extend(silent.map(Ipv4Addr::from));
        }
        let ports: Vec<u16> = PORTS.collect();
        let mut survey = Survey::new(self.rules, &ports, self.seed, self.targets.len());
        for (number, dst) in (0..).zip(self.targets) {
            survey.expect(number, (self.fabric.hops(self.source, *dst) - 1) as u8);
            let needs = self.needs.get(number as usize).into_iter().flatten();
            survey.need(number, needs.map(|need| self.need(*dst, *need)).collect());
        }
        let time = Switches::new(&route, answers, self.seed).drive(&mut survey, LONGEST);
        let targets = (0..).zip(self.targets);
        let targets = targets.map(|(number, dst)| self.tried(&survey, (number, *dst), &route));
        Ok(Tried { time, count: survey.count(), targets: targets.collect() })
    }

    /// A switch is called by the link over which it is asked.
    fn need(&self, dst: HostId, (path, ports): (Option<u16>, u32)) -> Need {
        let links =
            path.map(|id| self.fabric.trace(self.source, dst, PathId(id))).unwrap_or_default();
        let up = (links.len().saturating_sub(2)) / 2;
        let through = links.iter().skip(1).take(up).map(|link| Ipv4Addr::from(link.0));
        Need { through: through.collect(), ports }
    }

    fn function(&self) -> Result<Option<HashFunction>, ExperimentError> {
        let named = HashFunction::NAMED.iter().find(|(name, _)| *name == self.hash);
        if let Some((_, function)) = named {
            return Ok(Some(*function));
        }
        if self.hash == MIXED {
            return Ok(None);
        }
        let known = HashFunction::NAMED.map(|(name, _)| name).join(", ");
        let what = format!("{:?} is not known; use {MIXED}, {known}", self.hash);
        Err(ExperimentError::new("hash", Origin::Unknown, what))
    }

    fn tried(
        &self,
        survey: &Survey,
        (number, dst): (u32, HostId),
        route: &dyn Fn(u32, u16) -> Vec<Ipv4Addr>,
    ) -> TriedTarget {
        let state = survey.state(number);
        let (mut predicted, mut wrong) = (0, 0);
        for path in &state.paths {
            predicted += path.predicted.len() as u32;
            let is_other = |port: &&u16| {
                let real = route(number, **port);
                let differs = |(named, real): (&Option<Ipv4Addr>, &Ipv4Addr)| {
                    named.is_some_and(|named| named != *real)
                };
                path.hops.iter().zip(&real).any(differs)
            };
            wrong += path.ports.iter().chain(&path.predicted).filter(is_other).count() as u32;
        }
        let needs = self.needs.get(number as usize).into_iter().flatten();
        let mut needs = needs.map(|need| self.need(dst, *need)).peekable();
        let complete = match needs.peek() {
            Some(_) => needs.all(|need| state.meets(&need)),
            None => state.paths.len() == self.fabric.path_set(self.source, dst).len() as usize,
        };
        TriedTarget {
            dst,
            paths: state.paths.len() as u32,
            ports: state.traces.len() as u32,
            predicted,
            wrong,
            linear: state.linear,
            complete,
        }
    }
}
