//! Jobs of one collective that switches do.

use super::Setup;
use std::sync::atomic::AtomicBool;
use weft_sim::{Halt, JobConfig, Outcome, RunConfig, ScaleUp, Simulation};
use weft_units::{HostId, Rate, Time};
use weft_workload::collective::{Algorithm, Operation, Servers};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{Action, Collective, Degrees, Size, Trace};

pub const SCALE_UP: ScaleUp =
    ScaleUp { rate: Rate::gbps(800), latency: Time::ns(300), cycle: Time::ZERO };

/// What a job does.
#[derive(Clone, Copy, Debug)]
pub struct Doing {
    pub operation: Operation,
    pub bytes: u64,
    pub root: u32,
    /// One after the other.
    pub times: u32,
}

impl Doing {
    pub fn once(operation: Operation, bytes: u64) -> Doing {
        Doing { operation, bytes, root: 0, times: 1 }
    }
}

/// A job of `ranks` ranks.
pub fn job(doing: Doing, ranks: u32, algorithm: &str, options: &[(&str, &str)]) -> Job {
    let Doing { operation, bytes, root, times } = doing;
    let (action, size) = (Action::Operation(operation), Size::Whole(bytes));
    let one = Collective { action, size, group: 0, root, turn: 0 };
    let degrees = Degrees { tensor: 1, context: 1, expert: ranks, pipeline: 1 };
    let trace = Trace::of_collective(one, times, degrees, ranks).expect("a trace");
    let algorithm = Algorithm::read(algorithm, options).expect("an algorithm");
    Job::new(trace, Algorithms::usual().with(operation, algorithm)).expect("a job")
}

/// Jobs whose ranks are at these hosts, so many of which are a server's.
pub struct Placed {
    pub jobs: Vec<Job>,
    pub hosts: Vec<u32>,
    pub gpus: u32,
}

impl Placed {
    /// A rank a server.
    pub fn alone(job: Job, hosts: impl IntoIterator<Item = u32>) -> Placed {
        Placed { jobs: vec![job], hosts: hosts.into_iter().collect(), gpus: 1 }
    }
    /// A server for each `gpus` hosts, on all of which its ranks are.
    pub fn in_servers(job: Job, gpus: u32, hosts: u32) -> Placed {
        let servers = Servers { ranks: gpus, nics: gpus };
        Placed { jobs: vec![job.on_servers(servers)], hosts: (0..hosts).collect(), gpus }
    }
    pub fn config<'a>(&'a self, setup: &'a Setup) -> RunConfig<'a> {
        let job = JobConfig {
            jobs: &self.jobs,
            hosts: self.hosts.iter().map(|host| HostId(*host)).collect(),
            servers: self.hosts.iter().map(|host| host / self.gpus).collect(),
            scale_up: SCALE_UP,
            pcie: None,
            relays: None,
            at_acknowledgement: false,
            each_message: true,
        };
        RunConfig { job: Some(job), ..setup.config() }
    }
    pub fn try_run(&self, setup: &Setup) -> Result<Outcome, Halt> {
        Simulation::new(&self.config(setup)).run(&AtomicBool::new(false))
    }
    pub fn run(&self, setup: &Setup) -> Outcome {
        self.try_run(setup).expect("a run")
    }
    /// However it is cut, and whatever ports and queue carry it, it is the same.
    pub fn run_all(&self, setup: &Setup) -> Outcome {
        let config = self.config(setup);
        let one = Simulation::new(&config).run(&AtomicBool::new(false)).expect("a run");
        for (partitions, threads) in [(2, 1), (3, 2), (8, 2)] {
            let cut = Simulation::in_partitions(&config, partitions, threads);
            let other = cut.run(&AtomicBool::new(false)).expect("a run");
            assert!(one == other, "in {partitions} partitions");
        }
        let by_time = RunConfig { least_in_window: u32::MAX, ..config.clone() };
        let queued = RunConfig { force_queues: true, ..config.clone() };
        let others = [
            ("in the order of time", Simulation::new(&by_time)),
            ("on queues", Simulation::new(&queued)),
            ("on a heap", Simulation::oracle(&config)),
        ];
        for (how, other) in others {
            let other = other.run(&AtomicBool::new(false)).expect("a run");
            let is_same = (&one.nodes, &one.ports) == (&other.nodes, &other.ports);
            assert!(is_same, "{how}: {:?} {:?}", one.totals, other.totals);
        }
        one
    }
}
