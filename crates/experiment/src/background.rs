//! Background traffic beside a workload: put into what is simulated, and taken out of what is told of it.

use crate::columns::Row;
use crate::experiment::Resolved;
use crate::memory::{self, Need};
use crate::section::background::{BackgroundSection, NAME, Where};
use crate::traffic::{Ranks, Traffic};
use std::collections::BTreeSet;
use weft_config::{ExperimentError, Origin};
use weft_sim::{MessageResult, Outcome};
use weft_units::{HostId, Time};
use weft_workload::background;

/// A workload with the background beside it.
pub(crate) struct Beside {
    /// Both.
    pub(crate) traffic: Traffic,
    /// How many of the messages are the workload's own.
    messages: usize,
    /// How many of the ranks are.
    ranks: u32,
    /// Until when the background posts.
    until: Time,
}

/// What became of the background.
pub(crate) struct Others {
    bytes: u64,
    /// From post to receipt, sorted.
    times: Vec<Time>,
    until: Time,
}

/// So many times as long as the workload takes at least.
const TIMES: u64 = 4;

/// `alone` with what `section` says beside it, which takes `bound` at least.
///
/// # Errors
/// If too few hosts are left for it, or there is no room for so many messages.
pub(crate) fn beside(
    experiment: &Resolved,
    section: &BackgroundSection,
    alone: &Traffic,
    bound: Time,
    seed: u64,
) -> Result<Beside, ExperimentError> {
    let fabric = &experiment.fabric;
    let only_ranks = match (&alone.ranks, fabric.rails()) {
        (_, Some(_)) => {
            Some("rails never meet, and what passes between them goes by GPUs of the job")
        }
        (Some(Ranks { relays: Some(_), .. }), None) => {
            Some("GPUs pass on what ranks send between rails (fabric.server.pxn)")
        }
        _ => None,
    };
    if let Some(why) = only_ranks {
        let what =
            format!("{why}; hosts that are no ranks have nobody who does that: leave it out");
        return Err(ExperimentError::new(NAME, Origin::Unknown, what));
    }
    let until = section.duration.unwrap_or(Time(bound.0.saturating_mul(TIMES)));
    let hosts = hosts(section, alone, fabric.hosts());
    let line = fabric.line_rate();
    let count = section.traffic.count(hosts.len() as u32, line, until);
    Need::of("background.load", count, "messages", memory::MESSAGE + 2 * memory::NODE).check()?;
    let wrong = |what: String| {
        let (key, what) = what.split_once(": ").map_or(("load", &*what), |(key, what)| (key, what));
        ExperimentError::new(format!("{NAME}.{key}"), Origin::Unknown, what)
    };
    let messages = section.traffic.messages(&hosts, line, until, seed);
    let messages = messages.map_err(|error| wrong(error.0))?;
    let own = alone.workload.messages().len();
    let Some(ranks) = &alone.ranks else {
        let mut workload = alone.workload.clone();
        for message in messages {
            workload.push(message, &[]);
        }
        return Ok(Beside { traffic: workload.into(), messages: own, ranks: 0, until });
    };
    let mut ranks: Ranks = ranks.clone();
    let first = ranks.hosts.len() as u32;
    if !messages.is_empty() {
        let (job, hosts) = background::as_job(&messages).map_err(|error| wrong(error.0))?;
        // Each its own server: what it sends goes over the fabric.
        let server = ranks.servers.iter().max().map_or(0, |last| last + 1);
        ranks.servers.extend((server..).take(hosts.len()));
        ranks.jobs.push(job);
        ranks.names.push(NAME.to_owned());
        ranks.hosts.extend(hosts);
    }
    let traffic = Traffic::of_ranks(ranks, fabric.hosts());
    Ok(Beside { traffic, messages: own, ranks: first, until })
}

/// The hosts that take part.
fn hosts(section: &BackgroundSection, alone: &Traffic, all: u32) -> Vec<HostId> {
    match &section.hosts {
        Where::All => (0..all).map(HostId).collect(),
        Where::Listed(listed) => listed.iter().map(|host| HostId(*host)).collect(),
        Where::Idle => {
            let mut busy: BTreeSet<HostId> =
                alone.ranks.iter().flat_map(|ranks| ranks.hosts.iter().copied()).collect();
            let messages = alone.workload.messages().iter();
            busy.extend(messages.flat_map(|message| [message.src, message.dst]));
            (0..all).map(HostId).filter(|host| !busy.contains(host)).collect()
        }
    }
}

impl Beside {
    /// Leaves in `outcome` what is the workload's own, counters of the whole network but for.
    pub(crate) fn part(&self, outcome: &mut Outcome) -> Others {
        let mut others: Vec<(u64, MessageResult)> = Vec::new();
        let sizes = self.traffic.workload.messages().iter().map(|message| message.bytes);
        others.extend(sizes.zip(outcome.messages.iter().copied()).skip(self.messages));
        if self.traffic.ranks.is_some() {
            outcome.nodes.retain(|node| node.rank < self.ranks);
            let first = self.ranks;
            let of_others = outcome.rank_messages.iter().filter(|message| message.src >= first);
            others.extend(of_others.map(|message| (message.bytes, message.result)));
            outcome.rank_messages.retain(|message| message.src < first);
        }
        let mut times: Vec<Time> =
            others.iter().map(|(_, one)| one.posted.until(one.received)).collect();
        times.sort_unstable();
        Others { bytes: others.iter().map(|(bytes, _)| bytes).sum(), times, until: self.until }
    }
}

impl Others {
    /// Its columns, which only runs with a background have.
    pub(crate) fn columns(&self, row: &mut Row) {
        let rank = |percent: usize| (self.times.len() * percent).div_ceil(100).max(1) - 1;
        let at = |percent| self.times.get(rank(percent)).copied().unwrap_or(Time::ZERO);
        let sum: u128 = self.times.iter().map(|time| u128::from(time.0)).sum();
        let mean = sum as f64 / 1e12 / self.times.len().max(1) as f64;
        row.push(("background_messages", (self.times.len() as u64).into()));
        row.push(("background_bytes", self.bytes.into()));
        row.push(("background_fct_mean_s", mean.into()));
        row.push(("background_fct_p99_s", at(99).as_secs_f64().into()));
    }
    /// What to say where the workload, which took until `end` seconds, was alone at its end.
    pub(crate) fn warning(&self, end: f64) -> Option<String> {
        let until = self.until.as_secs_f64();
        (end > until).then(|| {
            format!(
                "the background ends at {}, before the workload does; give background.duration",
                self.until
            )
        })
    }
}
