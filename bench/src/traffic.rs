//! What the hosts of a case send: the patterns of `weft-workload`, and what it has none for.

use weft_fabric::Fabric;
use weft_units::{HostId, MessageId, Time};
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::pattern::{AllToAll, Launch, Pattern, Permutation, Scope};
use weft_workload::trace::{Action, Collective, Degrees, Size, Trace};
use weft_workload::{Dependency, Message, When, Workload};

/// Who sends to whom; all messages have the same size.
#[derive(Clone, Copy)]
pub(crate) enum Traffic {
    /// Every host sends one message, and every host receives one.
    Permutation,
    /// Every host sends one message to every other host, its successor first.
    AllToAll,
    /// The all-to-all ("direct") all-reduce, see [`direct_all_reduce`].
    DirectAllReduce,
    /// A job: every host is a rank, and all do an all-reduce by recursive doubling.
    RecursiveDoubling,
}

impl Traffic {
    /// The messages of `bytes` each on `fabric`.
    pub(crate) fn workload(self, fabric: &Fabric, bytes: u64) -> Workload {
        let pattern = match self {
            Traffic::Permutation => Pattern::Permutation(Permutation { count: 1 }),
            Traffic::AllToAll => {
                Pattern::AllToAll(AllToAll { launch: Launch::Successor, skew: None })
            }
            Traffic::DirectAllReduce => return direct_all_reduce(fabric.hosts(), bytes),
            Traffic::RecursiveDoubling => return Workload::new(fabric.hosts()),
        };
        let scope = Scope {
            hosts: fabric.hosts(),
            hosts_per_leaf: fabric.hosts_per_leaf().unwrap_or(0),
            bytes,
            start: Time::ZERO,
            seed: 1,
        };
        pattern.generate(&scope).expect("the cases are sound")
    }

    /// What ranks do, if the traffic is a job.
    pub(crate) fn jobs(self, fabric: &Fabric, bytes: u64) -> Vec<Job> {
        let Traffic::RecursiveDoubling = self else { return Vec::new() };
        let operation = Operation::AllReduce;
        let algorithm = Algorithm::read("recursive-doubling", &[]).expect("an algorithm of ours");
        let algorithms = Algorithms::usual().with(operation, algorithm);
        let one = Collective {
            action: Action::Operation(operation),
            size: Size::Whole(bytes),
            group: 0,
            root: 0,
            turn: 0,
        };
        let ranks = fabric.hosts();
        let together = Degrees { expert: ranks, ..Degrees::NONE };
        let trace = Trace::of_collective(one, 1, together, ranks);
        vec![Job::new(trace.expect("all ranks are one group"), algorithms).expect("it can run")]
    }
}

/// Reduce-scatter and all-gather, both all-to-all with a share of `bytes` a message. A host
/// posts its all-gather when it has every part of the share that it reduces; reducing takes no
/// time. So each message of the all-gather waits for `hosts - 1` others.
///
/// These dependencies could be had for a 250th of the memory: by a message of one byte to a
/// neighbour that waits for all parts, and whose acknowledgement the all-gather waits for. With
/// 256 hosts that was measured to change neither the speed nor, but for the 2 us of that
/// message, the completion time. The plain way is kept because it is exact.
fn direct_all_reduce(hosts: u32, bytes: u64) -> Workload {
    let others = hosts - 1;
    let mut workload = Workload::new(hosts);
    let send = |workload: &mut Workload, src: u32, waits_for: &[Dependency]| {
        for step in 1..hosts {
            let (src, dst) = (HostId(src), HostId((src + step) % hosts));
            workload.push(Message { src, dst, bytes, start: Time::ZERO }, waits_for);
        }
    };
    for src in 0..hosts {
        send(&mut workload, src, &[]);
    }
    for host in 0..hosts {
        // The host that is `step` before this one sends to it with its message number `step`.
        let parts = (1..hosts).map(|step| {
            let src = (host + hosts - step) % hosts;
            Dependency { on: MessageId(src * others + step - 1), when: When::Received }
        });
        send(&mut workload, host, &parts.collect::<Vec<_>>());
    }
    workload
}
