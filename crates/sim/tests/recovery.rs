//! Links and switches that die while a collective runs, as in Ethereal (2025), section 4: switches go
//! on sending into them for 100 ms, so that those wait so long who rely on routing; and links that
//! come back. 16 hosts, a full packet 80 ns, 500 ns a link, time-outs after 1 ms.

use crate::common::compare::confirmed;
use crate::common::{LINK, Setup, all_to_all, dctcp, ethereal, message, messages};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Halt, JobConfig, Outcome, RunConfig, ScaleUp, Simulation};
use weft_transport::RecoveryConfig;
use weft_units::{HostId, MessageId, PortId, Rate, SwitchId, Time};
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{TextOptions, read_text};
use weft_workload::{Message, Workload};

/// After so long routing knows.
const DETECT: Time = Time::ms(100);
/// When things die: what is under way then has not been acknowledged.
const DEATH: Time = Time::us(1);

fn leaf_spine() -> Clos {
    Clos::leaf_spine(4, 4, 4, LINK)
}
fn ecmp() -> SchemeConfig {
    SchemeConfig::read("ecmp", &[]).unwrap()
}
fn link(name: &str) -> LinkChoice {
    LinkChoice::Named(vec![name.into()])
}
fn switch(name: &str) -> LinkChoice {
    LinkChoice::Switches(vec![name.into()])
}

/// Everybody sends 50 packets to everybody, with go-back-N and DCTCP; `links` are down from
/// [`DEATH`] to `end`.
fn all_to_all_over(clos: Clos, scheme: SchemeConfig, links: LinkChoice, end: Time) -> Setup {
    let mut setup = Setup::new(clos, all_to_all(&clos, 48_000)).under(scheme);
    setup.transport.congestion = dctcp(100_000, 1 << 30);
    let kind = FailureKind::down(Some(DETECT));
    setup.failures.push(Failure { links, kind, start: DEATH, end });
    setup
}
fn for_ever(clos: Clos, scheme: SchemeConfig, links: LinkChoice) -> Setup {
    all_to_all_over(clos, scheme, links, Time::MAX)
}

/// Some have to time out, nobody waits for routing: not even if it never learns.
fn finds_its_own_way(links: LinkChoice, clos: Clos) -> Outcome {
    let mut setup = for_ever(clos, ethereal(), links.clone());
    let outcome = setup.run();
    let cct = outcome.totals.cct;
    assert!(outcome.totals.wire_drops > 0, "{links:?}");
    assert!((Time::ms(1)..Time::ms(4)).contains(&cct), "{links:?}: {cct}");
    setup.failures[0].kind = FailureKind::down(None);
    assert!(setup.run().messages == outcome.messages, "{links:?}: routing had a part in it");
    outcome
}
/// Those whose hash leads there wait until routing knows, and for their next time-out.
fn waits_for_routing(links: LinkChoice, clos: Clos) {
    let cct = for_ever(clos, ecmp(), links.clone()).run().totals.cct;
    let known = DEATH + DETECT;
    assert!((known..known + Time::ms(2)).contains(&cct), "{links:?}: {cct}");
}

mod leaf_spine_links {
    use super::*;

    fn each(mut then: impl FnMut(&str, &str)) {
        for leaf in 0..4 {
            for spine in 0..4 {
                then(&format!("leaf-{leaf}"), &format!("spine-{spine}"));
            }
        }
    }

    #[test]
    fn ethereal_finds_a_way_around_each() {
        each(|leaf, spine| {
            finds_its_own_way(link(&format!("{leaf} <-> {spine}")), leaf_spine());
        });
    }

    /// One direction loses data of one half of the flows, and acknowledgements of the other: those
    /// come the way their data went, and their flows have to move as well.
    #[test]
    fn ethereal_finds_a_way_around_each_direction() {
        each(|leaf, spine| {
            for name in [format!("{leaf} -> {spine}"), format!("{spine} -> {leaf}")] {
                let outcome = finds_its_own_way(link(&name), leaf_spine());
                let totals = outcome.totals;
                assert!(totals.spurious > 0, "{name}: no acknowledgement was lost");
                assert!(totals.retransmits > totals.spurious, "{name}: no data was lost");
            }
        });
    }

    #[test]
    fn ecmp_waits_for_routing() {
        each(|leaf, spine| waits_for_routing(link(&format!("{leaf} <-> {spine}")), leaf_spine()));
    }

    /// The same in a job, step after step: an all-reduce by recursive doubling, whose two steps
    /// between racks halve and double. A step that meets the dead link for the first time waits
    /// for a time-out; those who wait for it wait with it.
    #[test]
    fn a_job_goes_on() {
        let text = "HYBRID_DATA_MODEL\n1\nlayer -1 0 ALLREDUCE 640000 0 NONE 0 0 NONE 0 0\n";
        let trace = read_text("test.txt", text, &TextOptions::default()).expect("a trace");
        let doubling = Algorithm::read("recursive-doubling", &[]).expect("an algorithm");
        let algorithms = Algorithms::usual().with(Operation::AllReduce, doubling);
        let job = Job::new(trace.for_ranks(16).expect("ranks"), algorithms).expect("a job");
        let run = |scheme, links| {
            let mut setup = for_ever(leaf_spine(), scheme, links);
            setup.workload = Workload::new(16);
            let hosts: Vec<_> = (0..16).map(HostId).collect();
            let scale_up =
                ScaleUp { rate: Rate::gbps(1000), latency: Time::ZERO, cycle: Time::ZERO };
            let job = Some(JobConfig {
                relays: None,
                jobs: std::slice::from_ref(&job),
                servers: (0..hosts.len() as u32).collect(),
                hosts,
                scale_up,
                pcie: None,
                at_acknowledgement: false,
                each_message: true,
            });
            let config = RunConfig { job, ..setup.config() };
            Simulation::new(&config).run(&AtomicBool::new(false)).expect("a run").totals
        };
        each(|leaf, spine| {
            let link = link(&format!("{leaf} <-> {spine}"));
            let totals = run(ethereal(), link.clone());
            assert!(totals.wire_drops > 0);
            assert!((Time::ms(1)..Time::ms(6)).contains(&totals.cct), "{link:?}: {}", totals.cct);
        });
        let waits = (0..4).any(|spine| {
            let links = link(&format!("leaf-0 <-> spine-{spine}"));
            run(ecmp(), links).cct > DETECT
        });
        assert!(waits, "ECMP with go-back-N");
    }
}

mod switches {
    use super::*;

    #[test]
    fn a_whole_spine() {
        for spine in 0..4 {
            let spine = switch(&format!("spine-{spine}"));
            finds_its_own_way(spine.clone(), leaf_spine());
            waits_for_routing(spine, leaf_spine());
        }
    }

    /// An aggregation switch takes two of the four paths between pods with it: who moves from one
    /// may come to the other.
    #[test]
    fn a_whole_core_or_aggregation_switch() {
        let clos = Clos::fat_tree(4, LINK);
        for name in ["core-0", "core-3", "pod-0-agg-1", "pod-3-agg-0"] {
            finds_its_own_way(switch(name), clos);
            waits_for_routing(switch(name), clos);
        }
    }

    /// A leaf cannot be gone around: everybody waits until it is back, and no longer than for
    /// their next time-out.
    #[test]
    fn a_leaf_that_comes_back() {
        for scheme in [ecmp(), ethereal()] {
            let back = DEATH + Time::ms(5);
            let setup = all_to_all_over(leaf_spine(), scheme, switch("leaf-2"), back);
            let outcome = confirmed(&setup).unwrap();
            let cct = outcome.totals.cct;
            assert!((back..back + Time::ms(2)).contains(&cct), "{cct}");
            // Others are not concerned: from host 0 to host 4, the first of the second rack.
            let received = outcome.messages[MessageId(3)].received;
            assert!(received < Time::ms(1), "{received}");
        }
    }
}

/// Without any spine nobody leaves their rack: a run that waits for that says so.
#[test]
fn nothing_is_left() {
    let spines = (0..4).map(|spine| format!("spine-{spine}")).collect();
    let setup = for_ever(leaf_spine(), ethereal(), LinkChoice::Switches(spines));
    let Err(Halt::Stalled(stall)) = setup.try_run() else { panic!("it ended") };
    let why = stall.text;
    assert!(why.contains("host-0"), "{why}");
}

/// Links between aggregation switches and cores: Ethereal's (2025) spine-core links.
#[test]
fn spine_core_links() {
    let clos = Clos::fat_tree(4, LINK);
    for pod in 0..4 {
        for core in 0..4 {
            let name = format!("pod-{pod}-agg-{} <-> core-{core}", core / 2);
            finds_its_own_way(link(&name), clos);
            waits_for_routing(link(&name), clos);
        }
    }
}

mod coming_back {
    use super::*;

    const BACK: Time = Time::us(5_001);

    /// Sooner than routing knows of anything: ECMP tries again and again, and gets through at the
    /// next time-out; Ethereal has gone another way before.
    #[test]
    fn before_routing_knows() {
        let over = |scheme| all_to_all_over(leaf_spine(), scheme, link("leaf-1 <-> spine-2"), BACK);
        let cct = confirmed(&over(ecmp())).unwrap().totals.cct;
        assert!((BACK..BACK + Time::ms(2)).contains(&cct), "{cct}");
        let cct = confirmed(&over(ethereal())).unwrap().totals.cct;
        assert!((Time::ms(1)..Time::ms(4)).contains(&cct), "{cct}");
    }

    /// Known after 2 ms: around it from then on, and straight on again 2 ms after it is back.
    #[test]
    fn after_routing_knows() {
        let at = |start| {
            let mut setup = all_to_all_over(leaf_spine(), ecmp(), link("leaf-1 <-> spine-2"), BACK);
            setup.failures[0].kind = FailureKind::down(Some(Time::ms(2)));
            let all = setup.workload.messages().iter();
            let later: Vec<Message> = all.map(|one| Message { start, ..*one }).collect();
            setup.workload = Workload::new(16);
            for message in later {
                setup.workload.push(message, &[]);
            }
            let usual = Setup { failures: Vec::new(), ..setup.clone() }.run();
            (setup.run(), usual, PortId(setup.fabric.ports_of(SwitchId(1)).first.0 + 4 + 2))
        };
        let (outcome, ..) = at(Time::ZERO);
        let cct = outcome.totals.cct;
        assert!((Time::ms(2)..Time::ms(4)).contains(&cct), "{cct}");
        // Alive, but nobody knows.
        let (outcome, usual, port) = at(Time::ms(6));
        assert_eq!((outcome.totals.wire_drops, outcome.ports[port].packets), (0, 0));
        assert!(usual.ports[port].packets > 0);
        let (outcome, usual, _) = at(Time::ms(8));
        assert!(outcome.messages == usual.messages && outcome.ports == usual.ports);
    }

    /// Ethereal leaves a path alone for 100 ms after a time-out, whether the link is back or not.
    #[test]
    fn a_bad_path_is_tried_again() {
        // From host 0 to each host of two racks, one message of 4 packets for each path.
        let far = || (4..12).map(|dst| message(0, dst, 3_840));
        let over = |later: Option<Time>| {
            let link = link("leaf-0 <-> spine-1");
            let mut setup = all_to_all_over(leaf_spine(), ethereal(), link, BACK);
            setup.failures[0].start = Time::ZERO;
            setup.workload = Workload::new(16);
            far().for_each(|message| {
                setup.workload.push(message, &[]);
            });
            for message in later.into_iter().flat_map(|_| far()) {
                let start = later.unwrap_or(Time::ZERO);
                setup.workload.push(Message { start, ..message }, &[]);
            }
            let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 4;
            let outcome = setup.run();
            [0, 1, 2, 3].map(|spine| outcome.ports[PortId(first + spine)].packets)
        };
        let once = over(None);
        assert_eq!(once.iter().sum::<u64>(), 8 * 4 + 2 * 4);
        let added = |later| {
            let both = over(Some(later));
            [0, 1, 2, 3].map(|spine| both[spine] - once[spine])
        };
        // Four messages over three paths: one is cut in three, each of two packets.
        assert_eq!(added(Time::ms(50)), [12, 0, 12, 12]);
        assert_eq!(added(Time::ms(150)), [8; 4]);
    }
}

mod waiting_at_a_dead_port {
    use super::*;

    /// Two hosts send 20 packets each over one uplink, where they come two in 80 ns and leave one
    /// by one: the k-th from 580 + 80 k ns on. It dies at 1 us.
    fn two_into_one(end: Time) -> Setup {
        let pairs = [(0, 2, 20 * 960), (1, 3, 20 * 960)];
        let mut setup = Setup::new(Clos::leaf_spine(2, 1, 2, LINK), messages(4, &pairs));
        let kind = FailureKind::down(Some(DETECT));
        let links = link("leaf-0 <-> spine-0");
        setup.failures.push(Failure { links, kind, start: DEATH, end });
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        setup
    }
    fn lost(setup: &Setup) -> u32 {
        confirmed(setup).unwrap().messages.iter().map(|message| message.lost).sum()
    }

    /// Five are through; all that wait are lost, as those that come later. They are not thrown
    /// away at once: the port goes on as ever, and the queue is as long as over a sound link.
    #[test]
    fn is_lost() {
        let setup = two_into_one(Time::us(500));
        assert_eq!(lost(&setup), 35);
        let sound = Setup { failures: Vec::new(), ..setup.clone() };
        let uplink = PortId(setup.fabric.ports_of(SwitchId(0)).first.0 + 2);
        let peak = |setup: &Setup| setup.run().ports[uplink].peak_queue;
        assert_eq!(peak(&setup), peak(&sound));
    }

    /// What still waits when the link is back has only been late: from the 19th on, at 2020 ns.
    #[test]
    fn unless_the_link_is_back_before() {
        assert_eq!(lost(&two_into_one(Time::us(2))), 13);
    }
}
