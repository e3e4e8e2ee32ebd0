//! What a plan is made of, before anything is planned: links as they are now, and messages. Plans
//! are held against it.

use super::{Links, Result, Step, enforced, job, links, network};
use crate::{Column, Columns, Resolved};
use weft_units::Time;

/// What a plan is made of.
#[derive(Clone, Debug)]
pub struct Given {
    /// As [`super::Planned::links`].
    pub links: Links,
    /// What makes packets take their paths.
    pub enforce: &'static str,
    /// The steps of the job, equal ones once.
    pub steps: Vec<GivenStep>,
    /// As [`super::Planned::bound`].
    pub bound: Time,
}

/// What a step sends.
#[derive(Clone, Debug)]
pub struct GivenStep {
    /// What it is a part of.
    pub name: String,
    /// How many steps of the job are this one.
    pub times: u64,
    /// How many messages it has.
    pub messages: u64,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Each message by its number: `src`, `dst` and `bytes`; nothing where there are too many.
    pub each: Option<Columns>,
}

/// What a plan of `experiment` under `seed` is made of; each message of steps that have at most
/// `most` of them.
///
/// # Errors
/// As [`super::plan`], where a fabric, a scheme or a job cannot be planned.
pub fn given(experiment: &Resolved, seed: u64, most: u64) -> Result<Given> {
    let links = links(&network(experiment, seed)?);
    let (steps, bound) = job(experiment, seed)?;
    let steps = steps.into_iter().map(|step| of_step(step, most)).collect();
    Ok(Given { links, enforce: enforced(experiment), steps, bound })
}

fn of_step(step: Step, most: u64) -> GivenStep {
    let all = &step.messages;
    let messages = all.len() as u64;
    let each = (messages <= most).then(|| {
        vec![
            ("src", Column::U32(all.iter().map(|one| one.src.0).collect())),
            ("dst", Column::U32(all.iter().map(|one| one.dst.0).collect())),
            ("bytes", Column::U64(all.iter().map(|one| one.bytes).collect())),
        ]
    });
    let bytes = all.iter().map(|one| one.bytes).sum();
    GivenStep { name: step.name, times: step.times, messages, bytes, each }
}
