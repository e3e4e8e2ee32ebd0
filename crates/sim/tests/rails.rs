//! Rails that never meet, and GPUs that pass on what goes from one to another.

use crate::common::{LINK, Setup};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Fabric, Pxn, RelayAt, Relays, Tiers};
use weft_sim::{JobConfig, Outcome, RunConfig, ScaleUp, Service, Simulation};
use weft_units::{HostId, Rate, Time};
use weft_workload::Workload;
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{TextOptions, read_text};

const SCALE_UP: ScaleUp =
    ScaleUp { rate: Rate::gbps(1000), latency: Time::ns(300), cycle: Time::ZERO };
const ENDS: [RelayAt; 2] = [RelayAt::Source, RelayAt::Destination];

/// Four servers of four GPUs and two NICs; each rail has two leaves of two hosts.
fn setup() -> Setup {
    let tiers = Tiers::Rails { rails: 2, leaves: 2, spines: 2 };
    Setup::new(Clos::uniform(tiers, 2, LINK), Workload::new(8))
}

fn relays(pxn: Pxn, gpus: &[u32]) -> Relays {
    let nic = |gpu: u32| HostId(gpu % 4 / 2 * 4 + gpu / 4);
    let nics = (0..16).map(nic).collect();
    Relays { pxn, per_server: 4, per_nic: 2, nics, gpus: gpus.to_vec() }
}

/// Ranks on these GPUs, all of whose messages are recorded.
fn on<'a>(job: &'a Job, gpus: &[u32], pxn: Pxn) -> JobConfig<'a> {
    let relays = relays(pxn, gpus);
    JobConfig {
        jobs: std::slice::from_ref(job),
        hosts: gpus.iter().map(|gpu| relays.nics[*gpu as usize]).collect(),
        servers: gpus.iter().map(|gpu| gpu / 4).collect(),
        scale_up: SCALE_UP,
        relays: Some(relays),
        pcie: None,
        at_acknowledgement: false,
        each_message: true,
    }
}

/// An operation over all of `ranks`, after 3 us of computing.
fn job(ranks: u32, operation: &str, bytes: u64, algorithm: &str) -> Job {
    let text =
        format!("HYBRID_DATA_MODEL\n1\nlayer -1 3 {operation} {bytes} 0 NONE 0 0 NONE 0 0\n");
    let trace = read_text("test.txt", &text, &TextOptions::default()).expect("a trace");
    let algorithm = Algorithm::read(algorithm, &[]).expect("an algorithm");
    let operations = Operation::ALL.into_iter().filter(|one| algorithm.does(*one));
    let algorithms = operations.fold(Algorithms::usual(), |all, one| all.with(one, algorithm));
    Job::new(trace.for_ranks(ranks).expect("ranks"), algorithms).expect("a job")
}

fn run(setup: &Setup, job: JobConfig<'_>, partitions: u32) -> Outcome {
    let config = RunConfig { job: Some(job), ..setup.config() };
    let simulation = Simulation::in_partitions(&config, partitions, 1);
    simulation.run(&AtomicBool::new(false)).expect("a run")
}

/// Two ranks of different servers and rails send each other 10 packets twice. The network takes 10 packets of
/// 80 ns, another 80 ns in the leaf and 500 ns on each of two links; the scale-up link 8 ps a byte and 300 ns.
#[test]
fn a_message_between_rails_meets_pencil_and_paper() {
    let job = job(2, "ALLREDUCE", 2 * 9_600, "ring");
    let network = 10 * 80_000 + 80_000 + 2 * 500_000;
    let cct = |at, chunk, gbps| {
        let mut placed = on(&job, &[0, 7], Pxn { at, chunk });
        placed.scale_up.rate = Rate::gbps(gbps);
        let outcome = run(&setup(), placed, 1);
        let expected = match at {
            RelayAt::Source => [(HostId(4), HostId(5)), (HostId(1), HostId(0))],
            RelayAt::Destination => [(HostId(0), HostId(1)), (HostId(5), HostId(4))],
        };
        for message in &outcome.rank_messages {
            assert_eq!(message.hosts, expected[message.src as usize], "{at:?}");
        }
        (outcome.totals.cct.0 - Time::us(3).0) / 2
    };
    for at in ENDS {
        // All but the first piece, of 960 bytes, is passed on while it is sent; or nothing is.
        assert_eq!(cct(at, 960, 1000), network + 7_680 + 300_000, "{at:?}");
        assert_eq!(cct(at, 1 << 20, 1000), network + 76_800 + 300_000, "{at:?}");
        // Over a link at half the rate of the NIC: 768 ns of 1536 are hidden.
        assert_eq!(cct(at, 960, 50), network + 768_000 + 300_000, "{at:?}");
    }
}

#[test]
fn every_scheme_and_algorithm_stays_in_its_rail() {
    let setup = setup();
    let works = [
        ("ALLREDUCE", "ring"),
        ("ALLTOALL", "direct"),
        ("ALLREDUCE", "hierarchical"),
        ("ALLREDUCE", "double-binary-tree"),
    ];
    let gpus: Vec<u32> = (0..16).collect();
    for (turn, scheme) in (0..).zip(SchemeConfig::all()) {
        for (work, (operation, algorithm)) in works.into_iter().enumerate() {
            let job = job(16, operation, 320_000, algorithm);
            let at = ENDS[(turn + work) % 2];
            let service = [Service::InOrder, Service::RoundRobin][turn / 2 % 2];
            let setup = Setup { service, ..setup.clone() }.under(scheme.clone());
            if scheme.fits(&setup.fabric).is_err() {
                continue;
            }
            let what = format!("{} {operation} by {algorithm}, {at:?}", scheme.name());
            let outcome = run(&setup, on(&job, &gpus, Pxn { at, chunk: 4_000 }), 1);
            assert_eq!(outcome.nodes.len(), 16 * job.trace().graph(0).nodes().len(), "{what}");
            let fabric = &setup.fabric;
            let stays = |hosts: (HostId, HostId)| fabric.pod_of(hosts.0) == fabric.pod_of(hosts.1);
            assert!(outcome.rank_messages.iter().all(|one| stays(one.hosts)), "{what}");
        }
    }
}

/// Where the NICs of a server are under one leaf, a relay and its network are in one partition, and the receiver
/// may be in another.
#[test]
fn relays_do_not_mind_the_partitioning() {
    let clos = Clos::leaf_spine(4, 2, 2, LINK);
    let setup = Setup { fabric: Fabric::build(&clos).unwrap(), ..setup() };
    let job = job(16, "ALLTOALL", 320_000, "direct");
    let gpus: Vec<u32> = (0..16).collect();
    for at in ENDS {
        let mut placed = on(&job, &gpus, Pxn { at, chunk: 4_000 });
        let nic = |gpu: u32| HostId(gpu / 4 * 2 + gpu % 4 / 2);
        placed.relays.as_mut().expect("relays").nics = (0..16).map(nic).collect();
        placed.hosts = (0..16).map(nic).collect();
        let one = run(&setup, placed.clone(), 1);
        let same = one.rank_messages.iter().all(|one| one.hosts.0.0 % 2 == one.hosts.1.0 % 2);
        assert!(same, "messages go between NICs of one place");
        assert!(one == run(&setup, placed.clone(), 4), "{at:?}");
        placed.at_acknowledgement = true;
        assert!(run(&setup, placed, 1).totals.cct > one.totals.cct, "{at:?}");
    }
}
