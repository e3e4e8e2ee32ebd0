//! What a run sends: messages that are known from the start, or ranks that make them as they go.

use crate::completion::Completion;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use weft_fabric::{Fabric, Relays};
use weft_sim::{JobConfig, ScaleUp};
use weft_units::{HostId, Rate};
use weft_workload::Workload;
use weft_workload::collective::Switched;
use weft_workload::job::{Job, SwitchedSet};

/// What a run sends: one of two.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Messages; none where there are ranks.
    pub workload: Workload,
    /// Ranks at work.
    pub ranks: Option<Ranks>,
    /// What the user should know of its size.
    pub warnings: Vec<String>,
    volume: OnceLock<Volume>,
}

/// Jobs and where their ranks are, numbered through all jobs.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// What they do.
    pub jobs: Vec<Job>,
    /// What each is called; empty for a job alone.
    pub names: Vec<String>,
    /// The NIC of each rank.
    pub hosts: Vec<HostId>,
    /// The server of each rank.
    pub servers: Vec<u32>,
    /// Between ranks of a server.
    pub scale_up: ScaleUp,
    /// From a GPU to its NIC.
    pub pcie: Option<Rate>,
    /// GPUs that pass on messages between rails, if any do.
    pub relays: Option<Relays>,
}

impl Ranks {
    /// The hosts between which a message from rank `src` to rank `dst`, of different servers, crosses the network.
    pub fn ends(&self, src: u32, dst: u32) -> (HostId, HostId) {
        Relays::ends(self.relays.as_ref(), &self.hosts, src, dst)
    }
}

/// A rank's part in what switches of the fabric do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Across {
    /// The first rank of its job.
    pub(crate) first: u32,
    /// The rank, by its number in its job.
    pub(crate) rank: u32,
    pub(crate) host: HostId,
    pub(crate) set: SwitchedSet,
    /// Its place among those of the set.
    pub(crate) place: u32,
    pub(crate) part: Switched,
    /// How often.
    pub(crate) times: u64,
}

/// Messages from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Of which job; zero where there are none.
    pub job: u32,
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload of a message.
    pub bytes: u64,
    /// How many there are.
    pub times: u64,
}

/// How much is sent over the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Messages.
    pub messages: u64,
    /// Payload, in bytes.
    pub bytes: u64,
    /// That of the largest.
    pub largest: u64,
}

/// Of more messages than these there is no result for each: some hundred megabytes.
const MOST_RECORDED: u64 = 1 << 21;

impl Ranks {
    /// Whether all ranks of a set of `job`, whose first rank is `first`, are in one server, whose own
    /// switches then do what is asked.
    pub(crate) fn share_server(&self, job: &Job, first: u32, set: &SwitchedSet) -> bool {
        let server = |rank: u32| self.servers[(first + rank) as usize];
        job.switched_ranks_while(set, |rank| server(rank) == server(set.lead))
    }
}

impl From<Workload> for Traffic {
    fn from(workload: Workload) -> Traffic {
        Traffic::new(workload, None)
    }
}

impl Traffic {
    /// Of ranks on a fabric with so many hosts.
    pub(crate) fn of_ranks(ranks: Ranks, hosts: u32) -> Traffic {
        Traffic::new(Workload::new(hosts), Some(ranks))
    }
    fn new(workload: Workload, ranks: Option<Ranks>) -> Traffic {
        Traffic { workload, ranks, warnings: Vec::new(), volume: OnceLock::new() }
    }

    /// The same with something to know of its size.
    pub(crate) fn warning_of(self, warnings: impl IntoIterator<Item = String>) -> Traffic {
        Traffic { warnings: warnings.into_iter().collect(), ..self }
    }

    /// How much it is in all.
    pub fn volume(&self) -> Volume {
        *self.volume.get_or_init(|| {
            let mut volume = Volume::default();
            self.streams(|Stream { bytes, times, .. }| {
                volume.messages += times;
                volume.bytes = volume.bytes.saturating_add(bytes.saturating_mul(times));
                volume.largest = volume.largest.max(bytes);
            });
            volume
        })
    }

    /// A number of bytes that no message exceeds, without going through all that ranks send.
    pub(crate) fn largest_buffer(&self) -> u64 {
        let messages = self.workload.messages().iter().map(|message| message.bytes);
        let jobs = self.ranks.iter().flat_map(|ranks| &ranks.jobs).map(Job::largest_buffer);
        messages.chain(jobs).max().unwrap_or(0)
    }

    /// The ranks as the simulator takes them.
    pub(crate) fn job_config(&self, completion: Completion) -> Option<JobConfig<'_>> {
        let Ranks { jobs, hosts, servers, scale_up, pcie, relays, .. } = self.ranks.as_ref()?;
        Some(JobConfig {
            jobs,
            hosts: hosts.clone(),
            servers: servers.clone(),
            scale_up: *scale_up,
            pcie: *pcie,
            relays: relays.clone(),
            at_acknowledgement: completion == Completion::Acknowledged,
            each_message: self.volume().messages <= MOST_RECORDED,
        })
    }

    /// Payload that hosts send up trees of switches.
    pub(crate) fn up_trees(&self) -> u64 {
        let mut sum = 0_u64;
        self.across(|one| {
            let bytes = one.part.volume(one.place).0;
            sum = sum.saturating_add(bytes.saturating_mul(one.times));
        });
        sum
    }

    /// What switches of the fabric do for ranks, rank by rank.
    pub(crate) fn across(&self, mut each: impl FnMut(Across)) {
        let Some(ranks) = &self.ranks else { return };
        let mut first = 0;
        for job in &ranks.jobs {
            for rank in 0..job.ranks() {
                let host = ranks.hosts[(first + rank) as usize];
                job.switched(rank, |set, place, part, times| {
                    if !ranks.share_server(job, first, &set) {
                        each(Across { first, rank, host, set, place, part, times });
                    }
                });
            }
            first += job.ranks();
        }
    }

    /// Payload that each host sends and receives.
    pub(crate) fn by_host(&self, hosts: u32) -> (Vec<u64>, Vec<u64>) {
        let (mut out, mut into) = (vec![0; hosts as usize], vec![0; hosts as usize]);
        self.across(|Across { host, place, part, times, .. }| {
            let (gives, gets) = part.volume(place);
            out[host.0 as usize] += gives * times;
            into[host.0 as usize] += gets * times;
        });
        self.streams(|Stream { src, dst, bytes, times, .. }| {
            out[src.0 as usize] += bytes * times;
            into[dst.0 as usize] += bytes * times;
        });
        (out, into)
    }

    /// All messages over the fabric, equal ones together where that is easy.
    pub fn streams(&self, mut each: impl FnMut(Stream)) {
        let _ = self.streams_while(|stream| {
            each(stream);
            ControlFlow::Continue(())
        });
    }

    /// The same until `each` has seen enough.
    fn streams_while(&self, mut each: impl FnMut(Stream) -> ControlFlow<()>) -> ControlFlow<()> {
        for message in self.workload.messages().iter() {
            let (src, dst, bytes) = (message.src, message.dst, message.bytes);
            each(Stream { job: 0, src, dst, bytes, times: 1 })?;
        }
        let Some(ranks) = &self.ranks else { return ControlFlow::Continue(()) };
        let mut first = 0;
        for (number, job) in (0..).zip(&ranks.jobs) {
            job.traffic(|one| {
                let (src, dst) = (first + one.src, first + one.dst);
                if ranks.servers[src as usize] == ranks.servers[dst as usize] {
                    return ControlFlow::Continue(());
                }
                let (src, dst) = ranks.ends(src, dst);
                let (bytes, times) = (one.bytes, one.times);
                each(Stream { job: number, src, dst, bytes, times })
            })?;
            first += job.ranks();
        }
        ControlFlow::Continue(())
    }

    /// What to say where all traffic takes the only path that there is: every scheme then comes out
    /// alike.
    pub(crate) fn stays(&self, fabric: &Fabric) -> Option<String> {
        let (mut is_sent, mut in_network) = (false, false);
        self.across(|_| in_network = true);
        let has_choice = fabric.planes() > 1 || fabric.homes() > 1 || in_network;
        let crosses = self.streams_while(|stream| {
            is_sent = true;
            match has_choice || fabric.least_links(stream.src, stream.dst) > 2 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if crosses.is_break() || in_network {
            return None;
        }
        const ALIKE: &str = "every scheme comes out alike";
        let Some(ranks) = &self.ranks else {
            return is_sent.then(|| {
                format!(
                    "workload: every message stays under one leaf, where there is one path: {ALIKE}; \
                     send some to hosts of other leaves"
                )
            });
        };
        let count = ranks.hosts.len();
        Some(match is_sent {
            true => format!(
                "workload: all that {count} ranks send stays under one leaf, where there is one path: \
                 {ALIKE}; use more ranks, or workload.placement = \"round-robin\""
            ),
            false => format!(
                "workload: nothing that {count} ranks send crosses the fabric: {ALIKE}; use more ranks, \
                 or fewer fabric.server.gpus"
            ),
        })
    }
}
