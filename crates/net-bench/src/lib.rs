//! Drives networks as NCCL's proxy does, and measures collectives over them: NCCL network plugins
//! of versions 8 to 12, loaded from a file, and plain sockets beside them.
//!
//! | module | what it does |
//! |---|---|
//! | [`table`] | a plugin's table of functions, whatever its version |
//! | [`network`] | what a collective needs: `ncclNet`'s calls |
//! | [`plugin`], [`sockets`] | the two that there are |
//! | [`operation`] | collectives as lists of sends and receives, by algorithms of `weft_workload` |
//! | [`progress`] | runs one: posts, asks, adds |
//! | [`meet`] | how ranks find each other |
//! | [`bench`](mod@bench) | sizes, iterations, times |
//! | [`data`] | contents that can be checked |
//! | [`gpu`] | memory that stands for a GPU's |

pub mod bench;
pub mod data;
mod error;
pub mod gpu;
pub mod log;
pub mod meet;
pub mod network;
pub mod operation;
pub mod plugin;
pub mod progress;
pub mod sockets;
mod stream;
pub mod table;

pub use bench::{Benchmark, Row};
pub use error::BenchError;
pub use operation::Operation;

use meet::Meeting;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use weft_nccl_abi::Version;

/// What is measured over.
#[derive(Clone, Debug)]
pub enum Over {
    /// A network plugin.
    Plugin {
        /// Its library.
        file: PathBuf,
        /// Which of its tables.
        version: Version,
        /// The NIC that it happens at; several are made one.
        devices: Vec<i32>,
        /// The traffic class of its communicator, if it has one.
        traffic_class: Option<i32>,
    },
    /// Plain sockets.
    Sockets {
        /// Connections of a channel.
        connections: usize,
        /// Where to listen; `None`: the address from which this rank meets the others.
        address: Option<IpAddr>,
    },
}

/// A rank of a benchmark.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rank of this process.
    pub rank: usize,
    /// How many ranks there are.
    pub ranks: usize,
    /// Where rank 0 waits for the others: `HOST:PORT`.
    pub meet: String,
    /// How long it does.
    pub patience: Duration,
    /// What is measured over.
    pub over: Over,
    /// What is measured.
    pub plan: Benchmark,
}

/// Runs one rank. `begin` is told what is measured; `row` each size when it is done; `check` is asked
/// ten times a second whether to go on.
///
/// # Errors
/// Bad input, a network that fails, another rank that is gone.
pub fn run_rank(
    config: &Config,
    begin: &mut dyn FnMut(&str) -> Result<(), BenchError>,
    row: &mut dyn FnMut(Row) -> Result<(), BenchError>,
    check: &dyn Fn() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let (rank, ranks, plan) = (config.rank, config.ranks, &config.plan);
    if ranks < 2 {
        return Err(BenchError::input(format!("--ranks {ranks}: use 2 or more")));
    }
    if rank >= ranks {
        return Err(BenchError::input(format!(
            "--rank {rank}: with --ranks {ranks} use 0 to {}",
            ranks - 1
        )));
    }
    match &config.over {
        Over::Plugin { file, version, devices, traffic_class } => {
            let plugin = table::Plugin::load(file, *version)?;
            let network = plugin::PluginNetwork::open(plugin, devices, *traffic_class)?;
            let mut meeting = meet(config)?;
            begin(&network::NetworkPlugin::describe(&network))?;
            bench::measure(&network, &mut meeting, (rank, ranks), plan, row, check)?;
            network.finalize()
        }
        Over::Sockets { connections, address } => {
            let mut meeting = meet(config)?;
            let address = address.unwrap_or_else(|| meeting.address());
            let network = sockets::Sockets::new(address, *connections);
            begin(&network::NetworkPlugin::describe(&network))?;
            bench::measure(&network, &mut meeting, (rank, ranks), plan, row, check)
        }
    }
}

/// Waits for the other ranks, and sees to it that all measure the same.
fn meet(config: &Config) -> Result<Meeting, BenchError> {
    let mut meeting = Meeting::join(&config.meet, config.rank, config.ranks, config.patience)?;
    let mut shared = vec![("--ranks", config.ranks.to_string())];
    match &config.over {
        Over::Plugin { .. } => shared.push(("--over", "plugin".to_owned())),
        Over::Sockets { connections, .. } => {
            shared.push(("--over", "sockets".to_owned()));
            shared.push(("--connections", connections.to_string()));
        }
    }
    shared.extend(config.plan.shared());
    meeting.agree(&shared)?;
    Ok(meeting)
}
