//! Reduction in the network: times and bytes by hand, however a run is cut, losses and failures.

use crate::common::switched::{Doing, Placed, SCALE_UP, job};
use crate::common::{LINK, Setup};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::topology::{Dragonfly, Group, Torus};
use weft_fabric::{Clos, Fabric, FailureKind, Wiring};
use weft_sim::{Buffer, JobConfig, PfcConfig, RunConfig, Service, Simulation, SwitchConfig};
use weft_trial::prelude::*;
use weft_units::{PortId, Rate, Time};
use weft_workload::Workload;
use weft_workload::collective::Operation;

const PACKET: u64 = 960;

fn setup() -> Setup {
    on(Clos::leaf_spine(4, 4, 4, LINK))
}
fn on(clos: Clos) -> Setup {
    let hosts = clos.hosts();
    Setup::new(clos, Workload::new(hosts))
}
fn lossless(mut setup: Setup) -> Setup {
    setup.switch = SwitchConfig {
        buffer: Buffer::Shared { bytes: 3_000_000, alpha: 1.0 },
        pfc: Some(PfcConfig {
            threshold: None,
            alpha: 0.5,
            reserve: 1000,
            headroom: None,
            resume_offset: 2000,
        }),
        ..setup.switch
    };
    setup
}
fn sharp(operation: Operation, packets: u64) -> Placed {
    Placed::alone(job(Doing::once(operation, packets * PACKET), 16, "sharp", &[]), 0..16)
}

/// A packet is 1000 bytes, 80 ns; a link takes 500 ns, an adder 150 ns; up two links and down two.
mod by_hand {
    use super::*;

    /// Segments leave one behind the other; the last one crosses three links more, and two adders.
    const WAY: u64 = 3 * 80 + 4 * 500 + 2 * 150;

    #[test]
    fn an_all_reduce_takes_its_bytes_once_and_the_way_up_and_down() {
        let outcome = sharp(Operation::AllReduce, 10).run_all(&setup());
        assert_eq!(outcome.totals.cct, Time::ns(10 * 80 + WAY));
        assert_eq!(outcome.totals.packets, 16 * 10);
        assert_eq!(outcome.totals.retransmits + outcome.totals.spurious, 0);
        assert!(outcome.nodes.iter().all(|node| node.finished == outcome.totals.cct));
    }

    #[test]
    fn one_leaf_is_a_tree_of_one_switch() {
        let doing = Doing::once(Operation::AllReduce, 10 * PACKET);
        let placed = Placed::alone(job(doing, 4, "sharp", &[]), 4..8);
        assert_eq!(placed.run(&setup()).totals.cct, Time::ns(10 * 80 + 80 + 2 * 500 + 150));
    }

    #[test]
    fn three_tiers_are_two_adders_more_than_one() {
        let setup = on(Clos::fat_tree(4, LINK));
        let doing = Doing::once(Operation::AllReduce, 10 * PACKET);
        let all = Placed::alone(job(doing, 16, "sharp", &[]), 0..16).run(&setup).totals.cct;
        assert_eq!(all, Time::ns(10 * 80 + 5 * 80 + 6 * 500 + 3 * 150));
        let pod = Placed::alone(job(doing, 4, "sharp", &[]), 0..4).run(&setup).totals.cct;
        assert_eq!(pod, Time::ns(10 * 80 + WAY));
    }

    /// The same one way round or the other: all that is summed leaves a host, all blocks reach it.
    #[test]
    fn other_operations_take_what_the_busiest_link_carries() {
        for operation in [Operation::ReduceScatter, Operation::AllGather] {
            let outcome = sharp(operation, 16).run_all(&setup());
            assert_eq!(outcome.totals.cct, Time::ns(16 * 80 + WAY), "{operation:?}");
        }
        let doing = Doing { root: 3, ..Doing::once(Operation::Broadcast, 10 * PACKET) };
        let placed = Placed::alone(job(doing, 16, "sharp", &[]), 0..16);
        assert_eq!(placed.run_all(&setup()).totals.cct, Time::ns(10 * 80 + WAY));
    }

    /// A window of one segment: the next one leaves when the result is here.
    #[test]
    fn a_window_is_what_is_out_at_once() {
        let mut setup = setup();
        setup.switch.reduction.window = PACKET;
        let round = 80 + WAY;
        let outcome = sharp(Operation::AllReduce, 10).run(&setup);
        assert_eq!(outcome.totals.cct, Time::ns(10 * round));
        // Memory for two segments has room for two.
        setup.switch.reduction.window = 100 * PACKET;
        setup.switch.reduction.memory = Some(2 * PACKET);
        let outcome = sharp(Operation::AllReduce, 10).run(&setup);
        assert_eq!(outcome.totals.cct, Time::ns(5 * round + 80));
    }

    /// 4 contributions of 1000 bytes to a sum, at 10 Gb/s.
    #[test]
    fn adders_have_a_rate() {
        let mut setup = setup();
        setup.switch.reduction.rate = Some(Rate::gbps(10));
        let outcome = sharp(Operation::AllReduce, 10).run(&setup);
        // The spine adds up the last one when the leaves are through with it.
        assert_eq!(outcome.totals.cct, Time::ns(11 * 4 * 800 + 80 + WAY));
    }

    /// The way from a GPU to its NIC, of 40 Gb/s, takes what packets have: empty ones and short ones little.
    #[test]
    fn what_leaves_a_gpu_is_as_large_as_on_the_wire() {
        let setup = setup();
        let cct = |placed: &Placed, pcie| {
            let config = placed.config(&setup);
            let job = config.job.clone().map(|job| JobConfig { pcie, ..job });
            let config = RunConfig { job, ..config };
            Simulation::new(&config).run(&AtomicBool::new(false)).expect("a run").totals.cct
        };
        let late = |operation, bytes| {
            let doing = Doing::once(operation, bytes);
            let placed = Placed::alone(job(doing, 16, "sharp", &[]), 0..16);
            Time(cct(&placed, Some(Rate::gbps(40))).0 - cct(&placed, None).0)
        };
        // 1000 bytes take 200 ns there and 80 ns on the wire.
        assert_eq!(late(Operation::AllReduce, 10 * PACKET), Time::ns(9 * 120));
        // A block each: 15 empty packets of 50 bytes, and at the last rank its own 100 before.
        assert!(late(Operation::AllGather, 16 * 60) < Time::ns(16 * 10));
    }

    /// Nothing is lost, but hosts do not wait for results: all that they send again had arrived.
    #[test]
    fn what_is_sent_again_too_soon_is_spurious() {
        let mut setup = setup();
        setup.transport.rto = Time::us(1);
        let totals = sharp(Operation::AllReduce, 10).run_all(&setup).totals;
        assert!(totals.retransmits > 0 && totals.spurious == totals.retransmits, "{totals:?}");
        let blocks = sharp(Operation::AllGather, 16).run_all(&setup).totals;
        assert!(blocks.retransmits > 0 && blocks.spurious == blocks.retransmits, "{blocks:?}");
    }

    /// All wait for the last one to join.
    #[test]
    fn a_straggler_holds_all_up() {
        let mut setup = setup();
        setup.transport.rto = Time::us(5);
        let doing = Doing { times: 2, ..Doing::once(Operation::AllReduce, 4 * PACKET) };
        let trace = job(doing, 16, "sharp", &[]);
        let one = Placed::alone(trace, 0..16).run(&setup).totals.cct;
        assert_eq!(one, Time::ns(2 * (4 * 80 + WAY)));
    }
}

/// Bytes that a port has sent.
fn bytes(setup: &Setup, outcome: &weft_sim::Outcome, from: &str, to: &str) -> u64 {
    let name = format!("{from} -> {to}");
    let port = setup.fabric.ports().ids().find(|port| setup.fabric.port_name(*port) == name);
    outcome.ports[port.expect("a link of this name")].bytes
}

#[test]
fn every_link_of_the_tree_carries_the_buffer_once_each_way() {
    let setup = setup();
    let outcome = sharp(Operation::AllReduce, 10).run(&setup);
    let carried = |from: &str, to: &str| bytes(&setup, &outcome, from, to);
    for leaf in 0..4 {
        let leaf = format!("leaf-{leaf}");
        for spine in 0..4 {
            let expected = if spine == 0 { 10_000 } else { 0 };
            let spine = format!("spine-{spine}");
            assert_eq!(carried(&leaf, &spine), expected);
            assert_eq!(carried(&spine, &leaf), expected);
        }
    }
    for host in 0..16 {
        let (leaf, host) = (format!("leaf-{}", host / 4), format!("host-{host}"));
        assert_eq!([carried(&host, &leaf), carried(&leaf, &host)], [10_000; 2]);
    }
}

/// Empty packets have 50 bytes: what a rank has nothing of, and gets nothing of.
#[test]
fn blocks_go_where_they_belong() {
    let setup = setup();
    let outcome = sharp(Operation::ReduceScatter, 16).run(&setup);
    let carried = |from: &str, to: &str| bytes(&setup, &outcome, from, to);
    assert_eq!(carried("host-5", "leaf-1"), 16_000);
    assert_eq!(carried("leaf-1", "host-5"), 1000 + 15 * 50);
    assert_eq!(carried("spine-0", "leaf-1"), 4 * 1000 + 12 * 50);
    let outcome = sharp(Operation::AllGather, 16).run(&setup);
    let carried = |from: &str, to: &str| bytes(&setup, &outcome, from, to);
    assert_eq!(carried("host-5", "leaf-1"), 1000 + 15 * 50);
    assert_eq!(carried("leaf-1", "spine-0"), 4 * 1000 + 12 * 50);
    assert_eq!(carried("leaf-1", "host-5"), 15 * 1000 + 50);
    assert_eq!(carried("spine-0", "leaf-1"), 16_000);
}

/// Servers of four: a tree for each NIC, on a spine of its own.
#[test]
fn rails_have_trees_on_spines_of_their_own() {
    let setup = setup();
    let doing = Doing::once(Operation::AllReduce, 16 * PACKET);
    for algorithm in ["sharp", "nvls"] {
        let placed = Placed::in_servers(job(doing, 16, algorithm, &[("chunks", "1")]), 4, 16);
        let outcome = placed.run_all(&setup);
        for spine in 0..4 {
            let up = bytes(&setup, &outcome, "leaf-2", &format!("spine-{spine}"));
            assert_eq!(up, 4_000, "{algorithm}");
        }
        assert_eq!(bytes(&setup, &outcome, "host-9", "leaf-2"), 4_000);
    }
}

/// Klenk et al. (2020), and what follows for NVLS: out and in `S (1 + 1/P)`, so that the bus bandwidth of
/// nccl-tests comes up to `2 (P - 1)/(P + 1)` times a link.
#[test]
fn switches_of_a_server_move_each_byte_once_and_the_share_again() {
    let (gpus, size) = (8, 8_000_000);
    let setup = on(Clos::leaf_spine(1, 1, gpus, LINK));
    let link = |bytes: u64| SCALE_UP.rate.serialize(bytes);
    let time = |operation| {
        let job = job(Doing::once(operation, size), gpus, "nvls", &[]);
        Placed::in_servers(job, gpus, gpus).run(&setup).totals.cct
    };
    let (all, share, latency) = (size, size / u64::from(gpus), SCALE_UP.latency);
    assert_eq!(time(Operation::AllReduce), link(all + share) + latency * 3);
    assert_eq!(time(Operation::ReduceScatter), link(all) + latency * 2);
    assert_eq!(time(Operation::AllGather), link(all) + latency);
    assert_eq!(time(Operation::Broadcast), link(all) + latency);
    let bus = 2.0 * 7.0 / 8.0 * size as f64 * 8.0 / time(Operation::AllReduce).as_secs_f64();
    let ceiling = 2.0 * 7.0 / 9.0 * SCALE_UP.rate.as_bps() as f64;
    assert!(bus < ceiling && bus > 0.97 * ceiling, "{bus} of {ceiling}");
}

/// Chunks overlap: reading for one, the tree for another, writing for a third.
#[test]
fn chunks_go_through_servers_and_trees_side_by_side() {
    let setup = Setup { service: Service::InOrder, ..lossless(setup()) };
    let doing = Doing::once(Operation::AllReduce, 4_000_000);
    let time = |chunks: &str| {
        let job = job(doing, 16, "nvls", &[("chunks", chunks)]);
        Placed::in_servers(job, 4, 16).run(&setup).totals.cct
    };
    // A NIC has a fourth of the bytes and an eighth of the rate: twice as long as a link in the server.
    let tree = LINK.rate.serialize(1_000_000 * 1000 / 960);
    let within = SCALE_UP.rate.serialize(4_000_000);
    assert!(time("1") > tree + within * 2);
    assert!(time("16") < tree + Time(within.0 / 4), "{} of {tree} and {within}", time("16"));
}

/// Two jobs, one on trees and one in rings, on the same leaves: they share ports packet by packet.
#[test]
fn trees_share_links_with_other_traffic() {
    for setup in [setup(), lossless(setup())] {
        let reduces = job(Doing::once(Operation::AllReduce, 200 * PACKET), 8, "sharp", &[]);
        let rings = job(Doing::once(Operation::AllReduce, 200_000), 8, "ring", &[]);
        let even_then_odd = (0..8).map(|rank| 2 * rank).chain((0..8).map(|rank| 2 * rank + 1));
        let hosts = even_then_odd.collect();
        let placed = Placed { jobs: vec![reduces, rings], hosts, gpus: 1 };
        for scheme in ["ecmp", "spray", "conga", "conweave", "reps", "drill", "ugal"] {
            let Ok(scheme) = SchemeConfig::read(scheme, &[]) else { continue };
            let setup = Setup { switch: setup.switch, ..self::setup() }.under(scheme);
            let outcome = placed.run_all(&setup);
            assert_eq!(outcome.nodes.len(), 16);
        }
    }
}

/// A rank whose packets take two NICs' worth of others': all on one host port.
#[test]
fn operations_side_by_side_share_a_nic() {
    let setup = lossless(setup());
    let doing = Doing::once(Operation::AllReduce, 160 * PACKET);
    let time = |trees: &str| {
        let placed = Placed::alone(job(doing, 16, "sharp", &[("trees", trees)]), 0..16);
        placed.run_all(&setup).totals.cct
    };
    // The NIC is the bottleneck: four trees take as long as one.
    assert!(time("4") >= time("1") && time("4") < time("1") + Time::us(1));
}

mod failures {
    use super::*;

    fn long() -> Placed {
        let doing = Doing { times: 3, ..Doing::once(Operation::AllReduce, 2000 * PACKET) };
        Placed::alone(job(doing, 16, "sharp", &[]), 0..16)
    }
    fn down(detect: Time) -> FailureKind {
        FailureKind::down(Some(detect))
    }
    fn switch_dies(mut setup: Setup, spine: u32, detect: Time) -> Setup {
        for leaf in 0..4 {
            for link in
                [format!("leaf-{leaf} -> spine-{spine}"), format!("spine-{spine} -> leaf-{leaf}")]
            {
                setup = setup.failing(&link, down(detect), Time::us(100), Time::MAX);
            }
        }
        setup
    }

    /// The root dies: nothing comes back until routing knows, then another spine takes over.
    #[test]
    fn a_dead_root_is_replaced_when_routing_knows() {
        for setup in [setup(), lossless(setup())] {
            let whole = long().run(&setup).totals.cct;
            let detect = Time::us(400);
            let setup = switch_dies(setup, 0, detect);
            let outcome = long().run_all(&setup);
            let late = outcome.totals.cct;
            assert!(late > whole + detect && late < whole + detect + Time::us(100), "{late}");
            let spine =
                (1..4).map(|spine| bytes(&setup, &outcome, "leaf-2", &format!("spine-{spine}")));
            assert!(spine.max() > Some(1_000_000));
        }
    }

    /// Only one leaf lost its link to the root.
    #[test]
    fn a_dead_link_of_the_tree_moves_it() {
        let up = "leaf-3 -> spine-0";
        let setup = setup().failing(up, down(Time::us(300)), Time::us(100), Time::MAX);
        let outcome = long().run_all(&setup);
        assert!(outcome.totals.wire_drops > 0 && outcome.totals.cct > Time::us(400));
    }

    /// When an all-reduce of four hosts ends, without and with a link that dies.
    fn ends(fabric: Fabric, link: &str) -> [Time; 2] {
        let doing = Doing::once(Operation::AllReduce, 1000 * PACKET);
        let placed = Placed::alone(job(doing, 4, "sharp", &[]), 0..4);
        let whole = Setup { fabric, ..on(Clos::leaf_spine(2, 2, 2, LINK)) };
        let lame = whole.clone().failing(link, down(Time::us(1)), Time::us(10), Time::MAX);
        [whole, lame].map(|setup| placed.run_all(&setup).totals.cct)
    }

    /// Nothing waits for a time-out: hosts send again, by their other port, what they had out.
    #[test]
    fn a_dead_link_of_a_nic_moves_trees_to_its_other_port() {
        let planes = Fabric::build(&Clos::leaf_spine(2, 2, 2, LINK)).unwrap();
        let planes = planes.in_planes(2).unwrap();
        let homes = homed(&Clos::leaf_spine(4, 2, 2, LINK));
        for (fabric, link) in [(planes, "host-0 -> plane-0-leaf-0"), (homes, "host-0 -> leaf-0")] {
            let [whole, lame] = ends(fabric, link);
            assert!(lame > whole && lame < whole + Time::us(25), "{link}: {lame} after {whole}");
        }
    }

    /// The links come back, and others die: trees stay where they are while they can.
    #[test]
    fn one_failure_after_the_other() {
        let detect = Time::us(20);
        let mut setup = lossless(setup());
        for (spine, start, end) in [(0, 50, 150), (1, 120, 250), (0, 260, 300), (2, 265, 320)] {
            let link = format!("spine-{spine} -> leaf-1");
            setup = setup.failing(&link, down(detect), Time::us(start), Time::us(end));
        }
        long().run_all(&setup);
    }

    /// A host that is cut off holds all up, and the run says who waits.
    #[test]
    fn a_host_that_is_cut_off_stalls_the_run() {
        let link = "host-3 -> leaf-0";
        let setup = setup().failing(link, down(Time::us(10)), Time::us(100), Time::MAX);
        let halt = long().try_run(&setup).expect_err("nobody can go on").to_string();
        assert!(halt.contains("waits for switches"), "{halt}");
        assert!(halt.contains("host-3 -> leaf-0"), "{halt}");
    }
}

fn homed(clos: &Clos) -> Fabric {
    Fabric::of_wiring(Wiring::homed(clos, 2).unwrap()).unwrap()
}

/// Where what is drawn runs.
fn fabric(which: usize) -> Fabric {
    let [host_link, local, global, link] = [LINK; 4];
    let group = Group::Routers(2);
    match which {
        0 => Fabric::build(&Clos::leaf_spine(3, 2, 4, LINK)).unwrap(),
        1 => Fabric::build(&Clos::fat_tree(4, LINK)).unwrap(),
        2 => {
            let dragonfly =
                Dragonfly { groups: 3, group, hosts: 2, global_ports: 1, host_link, local, global };
            Fabric::of_wiring(dragonfly.wiring().unwrap()).unwrap()
        }
        3 => {
            let torus = Torus { sizes: vec![3, 2], wraps: true, hosts: 2, host_link, link };
            Fabric::of_wiring(torus.wiring().unwrap()).unwrap()
        }
        4 => Fabric::build(&Clos::leaf_spine(3, 2, 4, LINK)).unwrap().in_planes(2).unwrap(),
        _ => homed(&Clos::leaf_spine(4, 2, 6, LINK)),
    }
}

const OPERATIONS: [Operation; 4] =
    [Operation::AllReduce, Operation::ReduceScatter, Operation::AllGather, Operation::Broadcast];

trials! {
    #![cases(240)]

    /// Whatever is lost and dies: all sums are of all ranks (the receivers look), and nobody hangs.
    fn it_ends_however_packets_get_lost(
        (which, operation, algorithm, gpus) in
            (0..6_usize, 0..4_usize, prop::sample::select(vec!["sharp", "nvls"]), 1..4_u32),
        (bytes, times, root, window, chunks) in
            (1..60_000_u64, 1..4_u32, 0..12_u32, 1..40_u64, 1..4_u32),
        (pfc, adder, rate, seed, service) in
            (any::<bool>(), 0..400_u64, prop::option::of(5..200_u64), 1..1000_u64, 0..3_usize),
        flaky in prop::option::of((any::<prop::sample::Index>(), 5..30_u64, 1..4_u64)),
        dies in prop::collection::vec((any::<prop::sample::Index>(), 0..60_u64, 1..80_u64), 0..3),
    ) {
        let fabric = fabric(which);
        let ranks = 12 / gpus * gpus;
        let mut setup = on(Clos::leaf_spine(2, 1, 8, LINK));
        setup.workload = Workload::new(fabric.hosts());
        let mut setup = if pfc && fabric.clos().is_some() { lossless(setup) } else { setup };
        setup.seed = seed;
        setup.service = [Service::InOrder, Service::RoundRobin, Service::OldestFirst][service];
        setup.transport.rto = Time::us(30);
        setup.switch.reduction.window = window * PACKET;
        setup.switch.reduction.latency = Time::ns(adder);
        setup.switch.reduction.rate = rate.map(Rate::gbps);
        if let Some((link, every, length)) = flaky {
            let ports: Vec<PortId> = fabric.ports().ids().collect();
            let name = fabric.port_name(ports[link.index(ports.len())]);
            let (every, length) = (Time::us(every), Time::us(length));
            let kind = FailureKind::Flaky { every, length, regular: false };
            setup = setup.failing(&name, kind, Time::ZERO, Time::MAX);
        }
        // Links that come back, so that nobody is cut off for good.
        for (link, start, lasts) in dies {
            let ports: Vec<PortId> = fabric.ports().ids().collect();
            let name = fabric.port_name(ports[link.index(ports.len())]);
            let kind = FailureKind::down(Some(Time::us(20)));
            setup = setup.failing(&name, kind, Time::us(start), Time::us(start + lasts));
        }
        setup.fabric = fabric;
        let doing = Doing { operation: OPERATIONS[operation], bytes, root: root % ranks, times };
        let chunks = chunks.to_string();
        let job = job(doing, ranks, algorithm, &[("chunks", &chunks)]);
        let placed = match gpus {
            1 => Placed::alone(job, 0..ranks),
            _ => Placed::in_servers(job, gpus, ranks),
        };
        let outcome = placed.run_all(&setup);
        prop_assert_eq!(outcome.nodes.len() as u32, ranks * times);
        prop_assert!(outcome.totals.spurious <= outcome.totals.retransmits);
    }
}
