//! A run that stalled, in words: since when, which links are down, and who waits for what.
//!
//! Invariant: what is told depends on the run alone, and not on how it is cut.

use crate::config::JobConfig;
use crate::engine::Engine;
use crate::jobs;
use crate::world::World;
use weft_units::{Time, about_bytes, about_time};
use weft_workload::job::{Awaited, Wait};

/// Which messages or ranks of a run that stalled at `now` are not done, and what they wait for;
/// the first few.
pub(crate) fn diagnose<Q, P>(world: &World, domains: &[Engine<Q, P>], now: Time) -> String {
    let progress = domains.iter().map(|domain| domain.life.last_until(now)).max();
    let (progress, at) = (about_time(progress.unwrap_or(Time::ZERO)), about_time(now));
    let mut lines = jobs::open_messages(world, domains);
    if let Some(job) = &world.config.job {
        lines.extend(waiting_ranks(job, domains));
    }
    let down = down_links(world, now).map(|links| format!("; {links}")).unwrap_or_default();
    format!("nothing delivered since {progress} (now {at}){down}: {}", lines.join("; "))
}

/// The links that are down at `now`; the first few.
fn down_links(world: &World, now: Time) -> Option<String> {
    const SHOWN: usize = 4;
    let links = world.config.failures.down_links(world.config.fabric, now);
    let shown = links[..links.len().min(SHOWN)].join(", ");
    match links.len() {
        0 => None,
        1 => Some(format!("link {shown} is down")),
        many if many <= SHOWN => Some(format!("links {shown} are down")),
        many => Some(format!("links {shown} and {} more are down", many - SHOWN)),
    }
}

/// What keeps ranks waiting; the first few of them.
fn waiting_ranks<Q, P>(job: &JobConfig, domains: &[Engine<Q, P>]) -> Vec<String> {
    const SHOWN: usize = 4;
    let ranks = domains.iter().filter_map(|domain| domain.ranks.as_ref());
    let mut stuck: Vec<(u32, Vec<Wait>)> = ranks.flat_map(|ranks| ranks.waits()).collect();
    stuck.sort_unstable();
    let told = stuck.iter().take(SHOWN).map(|(rank, waits)| waiting(job, *rank, waits));
    let mut lines: Vec<String> = told.collect();
    let rest = stuck.len().saturating_sub(SHOWN);
    lines.extend((rest > 0).then(|| format!("and {rest} more ranks")));
    lines
}

/// One rank and what it waits for; the first few things.
fn waiting(job: &JobConfig, rank: u32, waits: &[Wait]) -> String {
    const SHOWN: usize = 2;
    let name = |rank: u32| format!("rank {rank} (host-{})", job.hosts[rank as usize].0);
    let one = |Wait { within, peer, what }: &Wait| {
        let peer = name(*peer);
        match what {
            Awaited::Message(bytes) => {
                format!("{} of {within} from {peer}", about_bytes(*bytes))
            }
            Awaited::Acknowledgement(bytes) => {
                format!("{peer} to acknowledge {} of {within}", about_bytes(*bytes))
            }
        }
    };
    let shown: Vec<String> = waits.iter().take(SHOWN).map(one).collect();
    let more = match waits.len().saturating_sub(SHOWN) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{} waits for {}{more}", name(rank), shown.join(" and "))
}
