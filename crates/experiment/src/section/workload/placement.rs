//! Where ranks are: which GPU of which server, and which host of the fabric is its NIC.

use super::wrong;
use crate::error::ExperimentError;
use crate::kind::{OneOf, Text};
use crate::reader::Reader;
use crate::section::server::Servers;
use std::fs;
use std::path::{Path, PathBuf};
use weft_fabric::Fabric;
use weft_units::{Draw, HostId};

type Result<T> = std::result::Result<T, ExperimentError>;

/// In which order ranks fill the servers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Placement {
    /// One server after the other.
    Packed,
    /// A server of every rack, then the next one of every rack, ...
    RoundRobin,
    /// Servers in random order.
    Random,
    /// As a file says: the GPU of every rank.
    Listed { path: PathBuf, gpus: Vec<u32> },
}

/// Reads `placement`.
pub(super) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<Placement> {
    let none = Some(String::new());
    let meaning =
        "a file with the GPU of each rank, counted through all servers; instead of placement";
    let file = r.get("placement_file", Text, none, meaning)?;
    if file.is_empty() {
        r.omit("placement_file");
    } else if !r.is_rehearsal() {
        if r.has("placement") {
            return Err(r.wrong("placement", "stands beside placement_file; remove one of them"));
        }
        let path = folder.join(&file);
        let gpus = listed(&path).map_err(|what| r.wrong("placement_file", what))?;
        r.record("placement_file", path.to_string_lossy().into_owned());
        return Ok(Placement::Listed { path, gpus });
    }
    let names = ["packed", "round-robin", "random"];
    let meaning = "how ranks fill servers: one after the other, rack by rack in turn, or at random";
    let orders = [Placement::Packed, Placement::RoundRobin, Placement::Random];
    let taken = r.get("placement", OneOf(&names), Some(0), meaning)?;
    Ok(orders[taken].clone())
}

fn listed(path: &Path) -> std::result::Result<Vec<u32>, String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {shown}: {error}; correct the path"))?;
    let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
    let words = lines.flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace());
    let gpus = words.map(|word| {
        word.parse().map_err(|_| {
            format!("{shown}: {word:?} is not the number of a GPU; write one number a rank")
        })
    });
    gpus.collect()
}

impl Placement {
    /// The GPUs in the order in which ranks take them.
    pub(crate) fn order(&self, fabric: &Fabric, servers: &Servers, seed: u64) -> Result<Vec<u32>> {
        let (count, gpus) = (servers.count(fabric), servers.gpus);
        let mut order: Vec<u32> = (0..count).collect();
        match self {
            Placement::Listed { path, gpus: listed } => {
                check(path, listed, count * gpus)?;
                return Ok(listed.clone());
            }
            Placement::Packed => {}
            Placement::RoundRobin => {
                let rack = |server: u32| fabric.leaf_of(servers.nic(fabric, server, 0));
                let mut met = vec![0; fabric.leaves() as usize];
                let turn = |server: &u32| {
                    let rack = rack(*server);
                    met[rack as usize] += 1;
                    (met[rack as usize], rack)
                };
                let turns: Vec<_> = order.iter().map(turn).collect();
                order.sort_by_key(|server| turns[*server as usize]);
            }
            Placement::Random => {
                let draw = Draw::new(seed, "placement");
                order.sort_by_key(|server| (draw.at(u64::from(*server), 0), *server));
            }
        }
        Ok(order.into_iter().flat_map(|server| server * gpus..(server + 1) * gpus).collect())
    }
}

fn check(path: &Path, listed: &[u32], gpus: u32) -> Result<()> {
    let error = |what: String| Err(wrong("workload.placement_file", &what));
    let shown = path.display();
    if listed.is_empty() {
        return error(format!("{shown} lists no GPU; write the number of one for each rank"));
    }
    let mut taken = vec![false; gpus as usize];
    for gpu in listed {
        match taken.get_mut(*gpu as usize) {
            None => return error(format!("{shown}: there is no GPU {gpu}; use 0 to {}", gpus - 1)),
            Some(true) => {
                return error(format!("{shown}: GPU {gpu} has two ranks; give each its own"));
            }
            Some(free) => *free = true,
        }
    }
    Ok(())
}

/// Of each GPU in `order`: its NIC and its server.
pub(crate) fn homes(fabric: &Fabric, servers: &Servers, order: &[u32]) -> (Vec<HostId>, Vec<u32>) {
    let home = |gpu: &u32| {
        let server = gpu / servers.gpus;
        (servers.nic(fabric, server, gpu % servers.gpus), server)
    };
    order.iter().map(home).unzip()
}
