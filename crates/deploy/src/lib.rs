//! What a process on a host is to do: from `CLUSTER.toml` or `plan.json` and `WEFT_*` variables to
//! an [`EndpointConfig`] for each NIC. Needs no Python.
//!
//! | module | what it does |
//! |---|---|
//! | [`variables`] | the variables: name, default, meaning |
//! | `source` | the file: cluster, fabric, scheme and its options |
//! | `interfaces` | the interfaces of this machine, and which are meant |
//! | `scheme` | the scheme on a host, with the defaults that differ from a simulator's |
//! | `rdma` | the RDMA device of an interface |
//! | `keeper` | a table of discovered paths, kept true while a job runs |
//! | `endpoint` | all of it put together |
//! | `outputs` | whether what is to be written and served can be |

mod catalogue;
mod endpoint;
mod interfaces;
mod keeper;
mod outputs;
mod rdma;
mod scheme;
mod source;
pub mod variables;

pub use catalogue::catalogue;
pub use interfaces::Interface;
pub use keeper::{KeptPaths, PathKeeper};
pub use outputs::try_directory;
pub use scheme::DIFFERENT;
pub use variables::{Log, VARIABLES, Variable, profile_directory};
pub use weft_comm::EndpointConfig;
pub use weft_config::plan_file::PlannedCollective;

use std::net::SocketAddr;
use std::path::PathBuf;
use weft_balance::enforce::Enforce;

/// Why there is no deployment: one line with what is wrong and the mend.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct DeployError(pub String);

/// Where Prometheus finds the statistics of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prometheus {
    /// They are served here, or at one of the next ports if another process has this one.
    Served(SocketAddr),
    /// They are written into this directory, for node_exporter.
    Directory(PathBuf),
}

/// What a process on this host is to do.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// The NICs, in the order of the fabric; at least one.
    pub devices: Vec<Device>,
    /// The name of the scheme; of several, with commas.
    pub scheme: String,
    /// Where statistics go when the process ends.
    pub stats: Option<PathBuf>,
    /// Where Prometheus finds statistics.
    pub prometheus: Option<Prometheus>,
    /// How much to say.
    pub log: Log,
    /// What keeps discovered paths true, for each plane whose ports are taken from a table of them.
    pub paths: Vec<PathKeeper>,
    /// What the user should know, a line each.
    pub warnings: Vec<String>,
}

/// A NIC.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name here: that of its host of the fabric, or of its interface.
    pub name: String,
    /// The interface.
    pub interface: String,
    /// What to open.
    pub endpoint: EndpointConfig,
    /// Its speed in Mbps: as the file says; without one, as the system does, else 10,000.
    pub speed_mbps: u32,
    /// Which NIC of its server it is, by the file: those of one number share a rail.
    pub rail: Option<u32>,
    /// Which plane it is in, by the files: planes are networks without a link between them.
    pub plane: Option<u32>,
    /// Its PCI device under `/sys/devices`, if it has one.
    pub pci_path: Option<String>,
    /// A number of its own, from its MAC.
    pub guid: u64,
}

impl Deployment {
    /// The NICs of the process number `index` of this machine, counted round: one; with several planes, those
    /// of a rail, which are used as one ([`Endpoint::open_merged`](weft_comm::Endpoint::open_merged)).
    pub fn of_process(&self, index: usize) -> Vec<Device> {
        let planes = self.devices.iter().filter_map(|device| device.endpoint.plane);
        let mut rails: Vec<_> = self.devices.iter().map(|device| device.rail).collect();
        rails.sort_unstable();
        rails.dedup();
        if planes.count() == 0 {
            return vec![self.devices[index % self.devices.len()].clone()];
        }
        let rail = rails[index % rails.len()];
        self.devices.iter().filter(|device| device.rail == rail).cloned().collect()
    }
}

impl Device {
    /// The DSCP by which switches know what they steer, where they steer what leaves here.
    pub fn steered_dscp(&self) -> Option<u8> {
        let plan = self.endpoint.plan.as_ref().filter(|plan| plan.ports.is_none())?;
        let info = plan.balance.scheme.info();
        let steered = plan.balance.scheme.enforce() == Some(Enforce::Segments) || info.port_policy;
        steered.then_some(self.endpoint.dscp)
    }
}

/// The deployment that the environment of this process asks for, on this machine. Variables that are
/// misspelt are among its warnings.
///
/// # Errors
/// As [`from_environment`].
pub fn of_this_process() -> Result<Deployment, DeployError> {
    let mut deployment = from_environment(&|name| std::env::var(name).ok())?;
    let names: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    deployment.warnings.extend(variables::unknown(names.iter().map(String::as_str)));
    Ok(deployment)
}

/// The deployment that the environment asks for, on this machine. `get` gives the value of a variable.
///
/// # Errors
/// If a variable or the file that it names is wrong, or nothing on this machine fits: one line.
pub fn from_environment(get: &dyn Fn(&str) -> Option<String>) -> Result<Deployment, DeployError> {
    on_machine(get, &interfaces::of_this_machine()?)
}

/// The collectives of the plans that the environment of this process names, one of each plane; none where it
/// names no plan.
///
/// # Errors
/// If a file cannot be read, or is no plan: one line.
pub fn planned_collectives() -> Result<Vec<PlannedCollective>, DeployError> {
    let mut all = Vec::new();
    for path in variables::config_files() {
        all.extend(source::read_collectives(&path)?);
    }
    Ok(all)
}

/// As [`from_environment`], on a machine with these interfaces.
///
/// # Errors
/// As [`from_environment`].
pub fn on_machine(
    get: &dyn Fn(&str) -> Option<String>,
    interfaces: &[Interface],
) -> Result<Deployment, DeployError> {
    endpoint::deployment(&variables::read(get)?, interfaces)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder for one test, which goes with it.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A folder with these files.
    pub(crate) fn sysfs(files: &[(&str, &str)]) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-deploy-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("files are in folders")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        Folder(folder)
    }
}
