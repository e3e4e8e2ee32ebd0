//! What hosts need of a plan: queue pairs with their source ports and flow labels, and NCCL's variables.

use std::collections::{BTreeMap, BTreeSet};
use weft_balance::enforce::PortRange;
use weft_config::cluster::{Cluster, MOST_QUEUE_PAIRS, PathAddresses, QUEUE_PAIRS};
use weft_config::in_order::InOrder;
use weft_config::plan_file::{HostTable, NONE, QueuePairRow, Subflows};
use weft_fabric::PathId;

/// Where a queue pair goes: other host, source port, path.
type Way = (u32, u32, u32);

/// The tables of all hosts, from the subflows of every step that has kept them. Where one has not, the
/// number of queue pairs for NCCL is left out.
pub(super) fn tables<'a>(
    cluster: &Cluster,
    steps: impl Iterator<Item = Option<&'a Subflows>>,
) -> Vec<HostTable> {
    let mut by_host: Vec<BTreeMap<Way, BTreeSet<usize>>> = Vec::new();
    by_host.resize_with(cluster.hosts.len(), BTreeMap::new);
    let mut is_whole = true;
    for (number, subflows) in steps.enumerate() {
        let Some(subflows) = subflows else {
            is_whole = false;
            continue;
        };
        for one in 0..subflows.src.len() {
            let way = (subflows.dst[one], subflows.source_port[one], subflows.path[one]);
            by_host[subflows.src[one] as usize].entry(way).or_default().insert(number);
        }
    }
    // A cluster was checked when it was read.
    let addresses = cluster.path_addresses().ok().flatten();
    let environment = environment(cluster, is_whole.then(|| most(&by_host)));
    let table = |(host, ways): (usize, BTreeMap<Way, BTreeSet<usize>>)| {
        let row = |(way, steps)| queue_pair(cluster, addresses.as_ref(), way, steps);
        let queue_pairs = ways.into_iter().map(row).collect();
        let environment = environment.clone();
        HostTable { host: cluster.hosts[host].name.clone(), queue_pairs, environment }
    };
    by_host.into_iter().enumerate().map(table).collect()
}

/// The most ways from one host to another.
fn most(by_host: &[BTreeMap<Way, BTreeSet<usize>>]) -> usize {
    // Those to one host stand together.
    let longest = |ways: &BTreeMap<Way, BTreeSet<usize>>| {
        let to: Vec<u32> = ways.keys().map(|(dst, ..)| *dst).collect();
        to.chunk_by(|a, b| a == b).map(<[u32]>::len).max()
    };
    by_host.iter().filter_map(longest).max().unwrap_or(1)
}

fn queue_pair(
    cluster: &Cluster,
    addresses: Option<&PathAddresses>,
    (dst, port, path): Way,
    steps: BTreeSet<usize>,
) -> QueuePairRow {
    let path_id = u16::try_from(path).ok().map(PathId);
    let to_address = addresses.zip(path_id).and_then(|(known, path)| {
        known.hosts[dst as usize].get(usize::from(path.first())).copied()
    });
    let roce = u16::try_from(port).ok().filter(|port| PortRange::ROCE.has(*port));
    QueuePairRow {
        to: cluster.hosts[dst as usize].name.clone(),
        path,
        to_address,
        source_port: (port != NONE).then_some(port),
        flow_label: roce.map(flow_label),
        steps: steps.into_iter().collect(),
    }
}

/// The flow label of which an RDMA driver makes the source port `port` of RoCEv2: drivers fold it to 14
/// bits and set the two highest (`ibv_flow_label_to_udp_sport`). Zero would mean none, so the first port
/// has another of its labels.
fn flow_label(port: u16) -> u32 {
    match u32::from(port - PortRange::ROCE.first) {
        0 => 0x4001,
        label => label,
    }
}

/// NCCL's variables, the same for all hosts, since both ends of a connection have to have as many queue
/// pairs: as many as some two hosts need (NCCL takes 1 to 128), every message split over all of them, and
/// the traffic class of the DSCP. NCCL has no variable for source ports. Without `most` these are not known.
pub(super) fn environment(cluster: &Cluster, most: Option<usize>) -> InOrder<String> {
    let mut found = vec![("NCCL_IB_TC".to_owned(), (u32::from(cluster.dscp) << 2).to_string())];
    if let Some(most) = most {
        let most = most.min(MOST_QUEUE_PAIRS);
        found.push((QUEUE_PAIRS.to_owned(), most.to_string()));
        if most > 1 {
            found.push(("NCCL_IB_SPLIT_DATA_ON_QPS".to_owned(), "1".to_owned()));
        }
    }
    for (key, value) in &cluster.nccl.0 {
        match found.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => old.clone_from(value),
            None => found.push((key.clone(), value.clone())),
        }
    }
    InOrder(found)
}
