//! Presets: keys that make a run look as some software runs where nobody has tuned it. Whatever the
//! experiment says itself stays.

use crate::value::{Item, Table, Value};
use weft_balance::scheme::{EnhancedEcmp, Scheme};
use weft_config::{ExperimentError, Origin};

/// The key that names one.
pub(crate) const KEY: &str = "preset";

/// Connections of several queue pairs, which switches hash.
const SCHEME: &str = EnhancedEcmp::INFO.name;

/// A line of the catalogue.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) source: &'static str,
    pub(crate) settings: &'static [Setting],
}

/// What a preset sets, unless it is set.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// As a list shows it.
    pub(crate) value: &'static str,
    pub(crate) meaning: &'static str,
}

const fn set(key: &'static str, value: &'static str, meaning: &'static str) -> Setting {
    Setting { key, value, meaning }
}

/// All there are.
pub(crate) const PRESETS: &[Preset] = &[Preset {
    name: "nccl-2.28",
    summary: "collectives as NCCL does them over InfiniBand or RoCE where nothing is configured: rings, the \
              Simple protocol",
    source: "NCCL 2.28: src/graph/connect.cc, src/include/collectives.h, src/transport/net_ib, and the user \
             guide's environment variables",
    settings: &[
        set("workload.algorithm", "ring", "of what rings can do; NCCL's choice for large buffers"),
        set(
            "workload.channels",
            "4 for each NIC of a server",
            "two channels for each that the search finds, times two slices of a chunk, each passed on as \
             it comes",
        ),
        set(
            "workload.message_limit",
            "1MiB",
            "a slice: two of the eight steps of NCCL_BUFFSIZE (4 MiB)",
        ),
        set("balance.scheme", SCHEME, "connections of their own queue pairs, each hashed once"),
        set(
            "balance.queue_pairs",
            "2",
            "NCCL_IB_QPS_PER_CONNECTION (1) for each of two channels between the same two GPUs",
        ),
        set("balance.split", "round-robin", "NCCL_IB_SPLIT_DATA_ON_QPS = 0"),
        set("balance.chunk", "128KiB, of all-to-all and send-recv", "NCCL_P2P_NET_CHUNKSIZE"),
    ],
}];

/// What the two of the point-to-point kind are called.
const POINT_TO_POINT: [&str; 2] = ["all-to-all", "send-recv"];

/// Takes the preset's name out of `table`, and puts in what it says and the table does not.
///
/// # Errors
/// If there is no such preset.
pub(crate) fn apply(table: &mut Table) -> Result<(), ExperimentError> {
    let Some(item) = table.remove(KEY) else { return Ok(()) };
    let known = || PRESETS.iter().map(|preset| preset.name);
    if item.value.as_text().is_none_or(|name| !known().any(|known| known == name)) {
        let names = known().collect::<Vec<_>>().join(", ");
        let what = format!("{} is no preset; use one of {names}", item.value.to_json());
        return Err(ExperimentError::new(KEY, item.origin, what));
    }
    nccl(table)
}

/// The table of a section, made if it is not there; `None` if it is no table, which its reader will say.
fn section<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    if table.get(name).is_none() {
        table.put(name, Table::new());
    }
    inner(table, name)
}

fn inner<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    match table.get_mut(name) {
        Some(Item { value: Value::Table(inner), .. }) => Some(inner),
        _ => None,
    }
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(|item| item.value.as_text())
}

/// Sets `key` unless it is set.
fn usually(table: &mut Table, key: &str, value: impl Into<Value>) {
    if table.get(key).is_none() {
        table.set(key, Item::new(value.into()).at(Origin::Unknown));
    }
}

fn nccl(table: &mut Table) -> Result<(), ExperimentError> {
    let nics = inner(table, "fabric")
        .and_then(|fabric| inner(fabric, "server"))
        .and_then(|server| match server.get("nics").map(|item| &item.value) {
            Some(Value::Int(nics)) => Some(*nics),
            _ => None,
        })
        .unwrap_or(1);
    let mut is_point_to_point = false;
    if let Some(workload) = section(table, "workload") {
        let names: Vec<String> = match inner(workload, "jobs") {
            Some(jobs) => jobs.iter().map(|(name, _)| name.to_owned()).collect(),
            None => Vec::new(),
        };
        for name in &names {
            if let Some(job) = inner(workload, "jobs").and_then(|jobs| inner(jobs, name)) {
                is_point_to_point |= of_job(job, nics);
            }
        }
        if names.is_empty() {
            is_point_to_point = of_job(workload, nics);
        }
    }
    if let Some(balance) = section(table, "balance") {
        usually(balance, "scheme", SCHEME);
        let scheme = text(balance, "scheme").unwrap_or("").to_owned();
        if scheme == SCHEME {
            usually(balance, "queue_pairs", Value::Int(2));
        }
        if scheme.starts_with(SCHEME) {
            usually(balance, "split", "round-robin");
            if is_point_to_point {
                usually(balance, "chunk", "128KiB");
            }
        }
    }
    Ok(())
}

/// The keys of a job; returns whether it is of the point-to-point kind.
fn of_job(job: &mut Table, nics: i64) -> bool {
    let collective = text(job, "collective").unwrap_or("").to_owned();
    let is_one = ["collective", "model", "trace"].iter().any(|key| job.get(key).is_some());
    if POINT_TO_POINT.contains(&&*collective) {
        return true;
    }
    if is_one && !collective.starts_with("moe-") {
        usually(job, "algorithm", "ring");
        if text(job, "algorithm") == Some("ring") {
            usually(job, "channels", Value::Int(4 * nics));
        }
        usually(job, "message_limit", "1MiB");
    }
    false
}
