//! Ranks at work: what a job costs, and that nothing depends on the partitioning.

use crate::common::{LINK, Setup};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failure, FailureKind, Failures, LinkChoice};
use weft_sim::{
    Buffer, DurationHistogram, Halt, JobConfig, MessageResult, Outcome, RunConfig, ScaleUp,
    Service, Simulation,
};
use weft_trial::is_drawn;
use weft_units::{HostId, Rate, Time};
use weft_workload::Workload;
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{TextOptions, read_text};

const SCALE_UP: ScaleUp =
    ScaleUp { rate: Rate::gbps(1000), latency: Time::ns(300), cycle: Time::ZERO };

/// Layers that compute for 3 us and reduce `bytes` over all of `ranks`, one after the other.
fn job(ranks: u32, layers: u32, bytes: u64, algorithm: (&str, &[(&str, &str)])) -> Job {
    let mut text = format!("HYBRID_DATA_MODEL\n{layers}\n");
    for layer in 0..layers {
        text += &format!("layer{layer} -1 3 ALLREDUCE {bytes} 0 NONE 0 0 NONE 0 0\n");
    }
    let trace = read_text("test.txt", &text, &TextOptions::default()).expect("a trace");
    let trace = trace.for_ranks(ranks).expect("ranks");
    let algorithm = Algorithm::read(algorithm.0, algorithm.1).expect("an algorithm");
    Job::new(trace, Algorithms::usual().with(Operation::AllReduce, algorithm)).expect("a job")
}

fn setup() -> Setup {
    Setup::new(Clos::leaf_spine(4, 4, 4, LINK), Workload::new(16))
}

fn run(setup: &Setup, job: &Job, hosts: &[u32], partitions: u32, threads: u32) -> Outcome {
    let config = RunConfig { job: Some(on(job, hosts, true)), ..setup.config() };
    let simulation = Simulation::in_partitions(&config, partitions, threads);
    simulation.run(&AtomicBool::new(false)).expect("a run")
}

/// Each rank in a server with the others of its host.
fn on<'a>(job: &'a Job, hosts: &[u32], each_message: bool) -> JobConfig<'a> {
    let servers = hosts.to_vec();
    let hosts = hosts.iter().map(|host| HostId(*host)).collect();
    let jobs = std::slice::from_ref(job);
    let (scale_up, pcie, at_acknowledgement) = (SCALE_UP, None, false);
    JobConfig {
        jobs,
        hosts,
        servers,
        scale_up,
        pcie,
        relays: None,
        at_acknowledgement,
        each_message,
    }
}

const EACH: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[test]
fn a_ring_of_lone_packets_meets_pencil_and_paper() {
    let setup = setup();
    // 16 subflows of a packet: 30 steps, each to the next host, every fourth under the next leaf.
    let subflow = u64::from(setup.packet.mtu);
    let job = job(16, 1, 16 * subflow, ("ring", &[]));
    let outcome = run(&setup, &job, &EACH, 1, 1);
    let slowest =
        setup.fabric.one_way(HostId(3), HostId(4), subflow + u64::from(setup.packet.header));
    // The slowest hop of the ring sets the pace; all begin after 3 us of computing.
    assert!(outcome.totals.cct <= Time::us(3) + Time(slowest.0 * 30));
    assert!(outcome.totals.cct >= Time::us(3) + Time(slowest.0 * 30 / 2));
    assert_eq!(outcome.totals.packets, 16 * 30);
}

/// A quarter of the cuts, and all in `make soak`.
#[test]
fn however_it_is_cut_and_whatever_carries_it() {
    let algorithms: [(&str, &[(&str, &str)]); 4] = [
        ("ring", &[("channels", "2")]),
        ("recursive-doubling", &[]),
        ("direct", &[("window", "3")]),
        ("double-binary-tree", &[("chunks", "4")]),
    ];
    for (turn, scheme) in (0..).zip(SchemeConfig::all()) {
        let algorithm = algorithms[turn % 4];
        let job = job(16, 3, 100_000, algorithm);
        let service = [Service::InOrder, Service::RoundRobin][turn / 4 % 2];
        let setup = Setup { service, ..setup().under(scheme.clone()) };
        let one = run(&setup, &job, &EACH, 1, 1);
        assert_eq!(one.nodes.len(), 16 * job.trace().graph(0).nodes().len());
        for (partitions, threads) in [(2, 1), (3, 2), (4, 2)] {
            let what = format!("{} in {partitions} partitions: {algorithm:?}", scheme.name());
            if !is_drawn(&what) {
                continue;
            }
            let other = run(&setup, &job, &EACH, partitions, threads);
            assert!(one == other, "{what}");
        }
    }
}

/// A broadcast along a chain, in chunks, is a pipeline: while a rank sends a chunk the one before it
/// sends the next, if chunks leave one after the other.
#[test]
fn chunks_follow_each_other_on_a_connection() {
    let (chunks, chunk) = (16, 100_000);
    let text = "HYBRID_DATA_MODEL\n1\nlayer -1 0 ALLREDUCE 8 0 NONE 0 0 NONE 0 0\n";
    let text = text.replace("ALLREDUCE 8", &format!("ALLREDUCE {}", chunks * chunk));
    let trace = read_text("test.txt", &text, &TextOptions::default()).expect("a trace");
    let tree = Algorithm::read("double-binary-tree", &[("trees", "1"), ("chunks", "16")]);
    let algorithms = Algorithms::usual().with(Operation::AllReduce, tree.expect("an algorithm"));
    let job = Job::new(trace.for_ranks(2).expect("ranks"), algorithms).expect("a job");
    let outcome = |service, partitions| {
        let setup = Setup { service, ..setup() };
        run(&setup, &job, &[0, 4], partitions, 1)
    };
    let (in_order, at_once) = (outcome(Service::InOrder, 1), outcome(Service::RoundRobin, 1));
    // Up and down again: with a pipeline the last chunk comes back a chunk after it has left.
    let link = LINK.rate.serialize(chunks * chunk);
    assert!(in_order.totals.cct < Time(link.0 * 5 / 4), "{}", in_order.totals.cct);
    assert!(at_once.totals.cct > Time(link.0 * 7 / 4), "{}", at_once.totals.cct);
    assert_eq!((in_order.totals.max_qps, at_once.totals.max_qps), (2, 16));
    // What waits for its turn has been posted: its time counts from then.
    let first = |outcome: &Outcome| {
        let mut sent: Vec<_> =
            outcome.rank_messages.iter().filter(|one| one.src == 0).map(|one| one.result).collect();
        sent.sort_by_key(|one| one.received);
        (sent[0].posted, sent[15].posted)
    };
    assert_eq!(first(&in_order), (Time::ZERO, Time::ZERO));
    assert!(in_order == outcome(Service::InOrder, 2));
}

/// Each message is one packet, so that the next one on its connection is posted while the NIC, woken
/// by the first, sends it.
#[test]
fn lone_packets_follow_each_other_on_a_connection() {
    let setup = Setup { service: Service::InOrder, ..setup() };
    let chunks = u64::from(setup.packet.mtu) * 16;
    let job = job(2, 1, chunks, ("double-binary-tree", &[("trees", "1"), ("chunks", "16")]));
    let outcome = run(&setup, &job, &[0, 4], 1, 1);
    assert_eq!(outcome.totals.packets, 32);
    assert_eq!(outcome.rank_messages.len(), 32);
    assert!(outcome == run(&setup, &job, &[0, 4], 2, 1));
}

#[test]
fn ranks_of_one_host_use_its_own_links() {
    // Two ranks a host: half of the ring's hops stay inside.
    let packed: Vec<u32> = (0..16).map(|rank| rank / 2).collect();
    let job = job(16, 1, 160_000, ("ring", &[]));
    let (inside, outside) = (run(&setup(), &job, &packed, 1, 1), run(&setup(), &job, &EACH, 1, 1));
    assert_eq!(inside.totals.packets * 2, outside.totals.packets);
    // All of them on one host: 30 steps of 10 KB at 1 Tb/s, 300 ns each.
    let alone = run(&setup(), &job, &[0; 16], 1, 1);
    assert_eq!(alone.totals.cct, Time::us(3) + Time(30 * (80_000 + 300_000)));
    assert_eq!(alone.totals.packets, 0);
}

#[test]
fn places_are_used_again() {
    // Long rings of short messages: what is under way is what takes room.
    let setup = setup();
    let job = job(16, 20, 16 * u64::from(setup.packet.mtu), ("ring", &[]));
    let outcome = run(&setup, &job, &EACH, 1, 1);
    assert_eq!(outcome.totals.packets, 20 * 16 * 30);
    assert!(outcome.totals.places < 16 * 30, "{} places", outcome.totals.places);
}

#[test]
fn a_rank_may_have_to_wait_for_the_acknowledgement() {
    let setup = setup();
    let job = job(16, 1, 16 * u64::from(setup.packet.mtu), ("ring", &[]));
    let run_within = |least_in_window, at_acknowledgement, partitions| {
        let job = JobConfig { at_acknowledgement, ..on(&job, &EACH, true) };
        let config = RunConfig { job: Some(job), least_in_window, ..setup.config() };
        let simulation = Simulation::in_partitions(&config, partitions, 1);
        simulation.run(&AtomicBool::new(false)).expect("a run")
    };
    let run = |at_acknowledgement, partitions| run_within(0, at_acknowledgement, partitions);
    let (early, late) = (run(false, 1), run(true, 1));
    // Every one of 30 steps waits for the way back as well; that of the last hop counts once.
    let back = |src: u32, dst: u32| setup.fabric.one_way(HostId(dst), HostId(src), 50);
    let waited = early.totals.cct.until(late.totals.cct);
    assert!(Time(back(0, 1).0 * 30) <= waited && waited <= Time(back(3, 4).0 * 30), "{waited}");
    assert!(late == run(true, 4) && late == run_within(u32::MAX, true, 1));
}

#[test]
fn messages_tell_what_the_totals_sum_up() {
    for scheme in SchemeConfig::all() {
        let mut setup = setup().under(scheme.clone());
        setup.switch.buffer = Buffer::PerPort { bytes: 30_000 };
        setup.switch.pfc = None;
        let job = job(16, 3, 400_000, ("direct", &[]));
        let outcome = run(&setup, &job, &EACH, 3, 1);
        let results = || outcome.rank_messages.iter().map(|message| &message.result);
        let sum = |of: fn(&MessageResult) -> u32| results().map(|one| u64::from(of(one))).sum();
        let totals = &outcome.totals;
        assert_eq!(outcome.rank_messages.len(), 3 * 16 * 30, "{}", scheme.name());
        let sums: [u64; 3] = [sum(|m| m.retransmits), sum(|m| m.spurious), sum(|m| m.reordered)];
        assert_eq!(sums, [totals.retransmits, totals.spurious, totals.reordered]);
        assert!(sum(|m| m.lost) <= totals.drops && (totals.drops == 0 || sum(|m| m.lost) > 0));
        assert!(results().all(|one| one.posted < one.received && one.received < one.sent));
        let bytes: u64 = outcome.rank_messages.iter().map(|message| message.bytes).sum();
        assert_eq!(bytes, 3 * 16 * 15 * 2 * 25_000);
    }
}

#[test]
fn without_a_result_for_each_message_durations_are_counted() {
    let (setup, job) = (setup(), job(16, 3, 400_000, ("direct", &[])));
    let each = run(&setup, &job, &EACH, 3, 1);
    let config = RunConfig { job: Some(on(&job, &EACH, false)), ..setup.config() };
    let lean =
        Simulation::in_partitions(&config, 2, 1).run(&AtomicBool::new(false)).expect("a run");
    let mut durations = DurationHistogram::default();
    for message in &each.rank_messages {
        durations.add(message.result.posted.until(message.result.received));
    }
    assert_eq!(lean.durations, durations);
    assert_eq!((lean.rank_messages.len(), each.durations.count()), (0, 0));
    assert_eq!(Outcome { durations: DurationHistogram::default(), ..lean }.nodes, each.nodes);
}

#[test]
fn a_server_may_have_hosts_under_several_leaves() {
    // Rank r and r + 8 are in one server, under different leaves: half of a ring of such pairs.
    let (setup, job) = (setup(), job(16, 1, 160_000, ("ring", &[])));
    let hosts: Vec<u32> = (0..16).map(|rank| rank % 2 * 8 + rank / 2).collect();
    let mut placed = on(&job, &hosts, true);
    placed.servers = (0..16).map(|rank| rank / 2).collect();
    let run_within = |least_in_window, partitions, threads| {
        let config = RunConfig { job: Some(placed.clone()), least_in_window, ..setup.config() };
        let simulation = Simulation::in_partitions(&config, partitions, threads);
        simulation.run(&AtomicBool::new(false)).expect("a run")
    };
    let run = |partitions, threads| run_within(0, partitions, threads);
    let one = run(1, 1);
    assert!(one == run_within(u32::MAX, 1, 1));
    assert_eq!(one.rank_messages.len(), 8 * 30);
    assert!(one.rank_messages.iter().all(|message| message.src % 2 == 1));
    assert!(one == run(4, 2));
}

#[test]
fn jobs_side_by_side_share_nothing_but_the_fabric() {
    // Two jobs on two racks each: nothing of one is in the way of the other.
    let setup = setup();
    let (one, two) = (job(8, 2, 80_000, ("ring", &[])), job(8, 3, 160_000, ("direct", &[])));
    let alone = [run(&setup, &one, &EACH[..8], 2, 1), run(&setup, &two, &EACH[8..], 2, 1)];
    let jobs = [one, two];
    let both = JobConfig { jobs: &jobs, ..on(&jobs[0], &EACH, true) };
    let run = |partitions, threads| {
        let config = RunConfig { job: Some(both.clone()), ..setup.config() };
        let simulation = Simulation::in_partitions(&config, partitions, threads);
        simulation.run(&AtomicBool::new(false)).expect("a run")
    };
    let outcome = run(2, 1);
    let ends = |outcome: &Outcome, ranks: std::ops::Range<u32>| -> Vec<_> {
        let nodes = outcome.nodes.iter().filter(|node| ranks.contains(&node.rank));
        nodes.map(|node| (node.rank - ranks.start, node.node, node.finished)).collect()
    };
    // Their queue pairs hash alike only where hosts are the same.
    assert_eq!(ends(&outcome, 0..8), ends(&alone[0], 0..8));
    assert_eq!(ends(&outcome, 8..16), ends(&alone[1], 0..8));
    assert!(outcome == run(4, 2));
}

/// The way from a GPU to its NIC carries 40 Gb/s, the NIC 100: one rank alone takes as long as the
/// former does, three on a NIC as long as the latter, however many queue pairs there are.
#[test]
fn packets_leave_a_gpu_at_its_own_rate() {
    let bytes = 960 * 1_000;
    // A ring of two: each sends half of the buffer twice, one step after the other.
    let jobs: Vec<Job> = (0..3).map(|_| job(2, 1, bytes, ("ring", &[]))).collect();
    let hosts = [0, 4, 0, 4, 0, 4];
    for scheme in ["ecmp", "e-ecmp-8", "dnlb-8"] {
        let setup = setup().under(SchemeConfig::read(scheme, &[]).expect("a scheme"));
        let cct = |pcie: Option<Rate>, jobs: &[Job]| {
            let own = JobConfig { pcie, ..on(&jobs[0], &hosts[..2 * jobs.len()], true) };
            let config = RunConfig { job: Some(JobConfig { jobs, ..own }), ..setup.config() };
            let end = |partitions| {
                let simulation = Simulation::in_partitions(&config, partitions, 1);
                simulation.run(&AtomicBool::new(false)).expect("a run").totals.cct
            };
            assert_eq!(end(1), end(2));
            end(1)
        };
        let slow = Some(Rate::gbps(40));
        // 1,000 packets of 1000 bytes, after 3 us of computing and with some us on the way.
        let near = |cct: Time, wire: Time| wire <= cct && cct < wire + Time::us(12);
        let alone = cct(slow, &jobs[..1]);
        assert!(near(alone, Time::us(200)), "{scheme}: {alone}");
        let free = cct(None, &jobs[..1]);
        assert!(near(free, Time::us(80)), "{scheme}: {free}");
    }
    let setup = setup().under(SchemeConfig::read("dnlb-8", &[]).expect("a scheme"));
    let own = JobConfig { pcie: Some(Rate::gbps(40)), ..on(&jobs[0], &hosts, true) };
    let config = RunConfig { job: Some(JobConfig { jobs: &jobs, ..own }), ..setup.config() };
    let simulation = Simulation::in_partitions(&config, 1, 1);
    let all = simulation.run(&AtomicBool::new(false)).expect("a run").totals.cct;
    assert!(Time::us(240) <= all && all < Time::us(260), "{all}");
}

/// The 15 messages of a rank are a full packet each, or that and one of a byte.
#[test]
fn the_last_packet_of_a_message_leaves_a_gpu_as_short_as_it_is() {
    let setup = Setup::new(Clos::leaf_spine(1, 1, 16, LINK), Workload::new(16));
    let end = |bytes: u64| {
        let job = job(16, 1, 16 * bytes, ("direct", &[]));
        let own = JobConfig { pcie: Some(Rate::gbps(40)), ..on(&job, &EACH, true) };
        let config = RunConfig { job: Some(own), ..setup.config() };
        let simulation = Simulation::new(&config);
        simulation.run(&AtomicBool::new(false)).expect("a run").totals.cct
    };
    // Twice, what is scattered and what is gathered; a full packet takes 200 ns, a short one 8.
    let (full, more) = (end(960), end(961));
    let short = Time::ns(2 * (200 + 15 * 9));
    assert!(more > full && more <= full + short, "{more} after {full}");
}

/// The link of a host is down for ever.
#[test]
fn a_stall_tells_which_ranks_wait_and_which_link_is_down() {
    let setup = Setup { stall_after: Time::ms(20), ..setup() };
    let down = Failure {
        links: LinkChoice::Named(vec!["host-5 <-> leaf-1".to_owned()]),
        kind: FailureKind::down(None),
        start: Time::us(5),
        end: Time::MAX,
    };
    let stalled = |job: &Job, hosts: &[u32], partitions| {
        let failures = Failures::new(&setup.fabric, std::slice::from_ref(&down), 1).expect("it");
        let config = RunConfig { job: Some(on(job, hosts, true)), failures, ..setup.config() };
        let ended = Simulation::in_partitions(&config, partitions, 1).run(&AtomicBool::new(false));
        let Err(Halt::Stalled(stall)) = ended else { panic!("{ended:?}") };
        let text = stall.text;
        assert!(text.starts_with("nothing delivered since "), "{text}");
        assert!(text.contains("ms); link host-5 <-> leaf-1 is down: rank "), "{text}");
        text
    };
    // Rank r sits on host r + 1.
    let hosts: Vec<u32> = (0..16).map(|rank| (rank + 1) % 16).collect();
    let ring = job(16, 2, 160_000, ("ring", &[]));
    let text = stalled(&ring, &hosts, 1);
    let first = "rank 0 (host-1) waits for 10KB of all-reduce";
    assert!(text.contains(first) && text.contains(" from rank 15 (host-0); rank 1 "), "{text}");
    assert!(text.contains("; and 12 more ranks; message rank "), "{text}");
    assert!(text.contains(" times its bytes in all)"), "{text}");
    assert_eq!(text, stalled(&ring, &hosts, 4));
    // What is lost is waited for, and so is its acknowledgement.
    let windows = job(16, 1, 1_600_000, ("direct", &[("window", "2")]));
    let text = stalled(&windows, &EACH, 1);
    let waits = "rank 0 (host-0) waits for rank 5 (host-5) to acknowledge 100KB of all-reduce";
    assert!(text.contains(waits), "{text}");
}
