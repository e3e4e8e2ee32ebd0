//! The file that `WEFT_CONFIG` names: a cluster, or a plan with the cluster in it.

use crate::DeployError;
use std::fs;
use std::path::Path;
use weft_config::FabricLinks;
use weft_config::cluster::{Cluster, Format};
use weft_config::paths_file::PathsFile;
use weft_config::plan_file::{PlanForHosts, PlannedCollective};

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

/// The table of discovered paths in a file.
pub(crate) fn read_paths(path: &Path) -> Result<PathsFile, DeployError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        DeployError(format!("WEFT_PATHS: {file}: {error}; name what weft discover -o has written"))
    })?;
    PathsFile::read(&text, &file).map_err(|error| DeployError(error.to_string()))
}

/// What is in the file that `WEFT_CONFIG` names, with its name.
fn text(path: &Path) -> Result<(String, String), DeployError> {
    let path = if path.is_dir() { path.join("plan.json") } else { path.to_owned() };
    let file = path.display().to_string();
    let text = fs::read_to_string(&path).map_err(|error| {
        DeployError(format!("WEFT_CONFIG: {file}: {error}; name a CLUSTER.toml or a plan.json"))
    })?;
    Ok((file, text))
}

fn is_cluster(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "toml")
}

/// The collectives that were planned; none if it is a cluster.
pub(crate) fn read_collectives(path: &Path) -> Result<Vec<PlannedCollective>, DeployError> {
    let (file, text) = text(path)?;
    if is_cluster(&file) {
        return Ok(Vec::new());
    }
    let plan = PlanForHosts::read(&text, &file).map_err(|error| DeployError(error.to_string()))?;
    Ok(plan.collectives())
}

/// Reads a file, or `plan.json` in a directory. `seed` draws failures that are random, where the
/// file is no plan, which has a seed of its own.
pub(crate) fn read(path: &Path, seed: u64) -> Result<Source, DeployError> {
    let (file, text) = text(path)?;
    let wrong = |error: weft_config::ExperimentError| DeployError(error.to_string());
    if is_cluster(&file) {
        let read = weft_config::cluster::read(&text, Format::Toml, &file, seed);
        let (cluster, links) = read.map_err(wrong)?;
        return Ok(Source { file, cluster, links, plan: None });
    }
    let plan = PlanForHosts::read(&text, &file).map_err(wrong)?;
    let links = plan.cluster.fabric(&file, plan.seed).map_err(wrong)?;
    let (hosts, meant) = (plan.cluster.hosts.len(), links.fabric.hosts());
    if hosts != meant as usize {
        let what = format!("{hosts} of a fabric that has {meant}; make the plan again");
        return Err(DeployError(format!("{file}: cluster.hosts: {what}")));
    }
    let options = plan.options();
    let found = PlannedScheme { scheme: plan.scheme, options, seed: plan.seed };
    Ok(Source { file, cluster: plan.cluster, links, plan: Some(found) })
}
