//! The file that `WEFT_CONFIG` names: a cluster, or a plan with the cluster in it.

use crate::DeployError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use weft_config::FabricLinks;
use weft_config::cluster::{Cluster, Format};

/// What it says.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its name, for messages.
    pub(crate) file: String,
    pub(crate) cluster: Cluster,
    pub(crate) links: FabricLinks,
    /// What was planned, if it is a plan.
    pub(crate) plan: Option<PlannedScheme>,
}

/// What a plan adds to its cluster.
#[derive(Debug)]
pub(crate) struct PlannedScheme {
    pub(crate) scheme: String,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) seed: u64,
}

/// The part of a plan file that hosts read (docs/plans.md).
#[derive(Deserialize)]
struct PlanFile {
    format: String,
    version: u64,
    scheme: String,
    options: BTreeMap<String, serde_json::Value>,
    seed: u64,
    cluster: Cluster,
}

/// Reads a file, or `plan.json` in a directory. `seed` draws failures that are random, where the
/// file is no plan, which has a seed of its own.
pub(crate) fn read(path: &Path, seed: u64) -> Result<Source, DeployError> {
    let path = if path.is_dir() { path.join("plan.json") } else { path.to_owned() };
    let file = path.display().to_string();
    let text = fs::read_to_string(&path).map_err(|error| {
        DeployError(format!("WEFT_CONFIG: {file}: {error}; name a CLUSTER.toml or a plan.json"))
    })?;
    let wrong = |error: weft_config::ExperimentError| DeployError(error.to_string());
    if path.extension().is_some_and(|extension| extension == "toml") {
        let read = weft_config::cluster::read(&text, Format::Toml, &file, seed);
        let (cluster, links) = read.map_err(wrong)?;
        return Ok(Source { file, cluster, links, plan: None });
    }
    let plan: PlanFile = serde_json::from_str(&text).map_err(|error| {
        DeployError(format!("{file}: {error}; name what weft plan wrote, or make the plan again"))
    })?;
    if plan.format != "weft-plan" || plan.version != 1 {
        let what = format!("{} {}", plan.format, plan.version);
        let known = "weft-plan 1 is known";
        return Err(DeployError(format!("{file}: format: {what}, {known}; make the plan again")));
    }
    let links = plan.cluster.fabric(&file, plan.seed).map_err(wrong)?;
    let options = plan.options.into_iter().map(|(key, value)| match value {
        serde_json::Value::String(text) => (key, text),
        other => (key, other.to_string()),
    });
    let found = PlannedScheme { scheme: plan.scheme, options: options.collect(), seed: plan.seed };
    Ok(Source { file, cluster: plan.cluster, links, plan: Some(found) })
}
