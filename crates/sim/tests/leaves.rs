//! Leaves that keep a state: ConWeave delivers in order, by paths that it changes; CONGA keeps off
//! loaded paths that its leaves cannot see.

use crate::common::compare::{confirmed, equals};
use crate::common::{LINK, Setup, all_to_all, dctcp, incast, message, messages, permutation};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice, Node};
use weft_sim::{Buffer, EcnConfig, Outcome, PfcConfig, TorCounts};
use weft_trial::prelude::*;
use weft_units::{PortId, Rate, SwitchId, Time};
use weft_workload::{Message, Workload};

fn conweave(options: &[(&str, &str)]) -> SchemeConfig {
    SchemeConfig::read("conweave", options).unwrap()
}
/// Nothing is on its way for as long as that.
const PATIENT: &[(&str, &str)] =
    &[("extra_flush", "20ms"), ("default_wait", "20ms"), ("expiry", "40ms")];

/// A run with room for everything and time for all answers, so that only disorder makes go-back-N
/// send something again.
fn run_of(clos: Clos, kind: u32, bytes: u64, marks: Option<u64>, seed: u64) -> Setup {
    let workload = match kind {
        0 => permutation(&clos, bytes),
        1 => all_to_all(&clos, bytes / u64::from(clos.hosts()) + 1),
        _ => incast(&clos, bytes / u64::from(clos.hosts()) + 1),
    };
    let mut setup = Setup::new(clos, workload).seeded(seed);
    setup.transport.rto = Time::ms(500);
    if let Some(kmin) = marks {
        setup.switch.ecn = Some(EcnConfig { kmin, kmax: 4 * kmin, pmax: 0.5 });
        setup.transport.congestion = dctcp(30_000, 200_000);
    }
    setup
}

fn fabrics() -> impl Strategy<Value = Clos> {
    let two = (2u32..6, 2u32..6, 2u32..6)
        .prop_map(|(leaves, spines, hosts)| Clos::leaf_spine(leaves, spines, hosts, LINK));
    prop_oneof![3 => two, 1 => Just(Clos::fat_tree(4, LINK))]
}

trials! {
    #![cases(96)]

    fn go_back_n_never_fires_without_loss(
        (clos, kind, bytes) in (fabrics(), 0u32..3, 1_000u64..2_000_000),
        marks in prop::option::of(5_000u64..50_000),
        (reply, pause) in (0u64..6, 0u64..40), seed in any::<u64>(), queued in any::<bool>(),
    ) {
        let (reply, pause) = (format!("{reply}us"), format!("{pause}us"));
        let options = [PATIENT, &[("extra_reply", &reply), ("path_pause", &pause)]].concat();
        let setup = run_of(clos, kind, bytes, marks, seed).under(conweave(&options));
        let outcome = if queued { setup.run_queued() } else { setup.try_run() }.unwrap();
        let totals = &outcome.totals;
        prop_assert_eq!((totals.drops, totals.retransmits, totals.reordered), (0, 0, 0));
        prop_assert_eq!((totals.tor.premature, totals.tor.flushes), (0, 0));
    }

    /// With the timers as they are: less than 300 us of traffic is under way at any time.
    fn disorder_means_that_a_timer_was_too_short(
        (clos, kind, bytes) in (fabrics(), 0u32..3, 1_000u64..150_000),
        marks in prop::option::of(5_000u64..50_000), seed in any::<u64>(),
    ) {
        let setup = run_of(clos, kind, bytes, marks, seed).under(conweave(&[]));
        let outcome = setup.run();
        let totals = &outcome.totals;
        prop_assert!(totals.reordered == 0 || totals.tor.premature > 0, "{totals:?}");
        prop_assert!(totals.retransmits == 0 || totals.tor.premature > 0, "{totals:?}");
    }
}

/// That the properties above are about something.
#[test]
fn flows_move_and_packets_are_held() {
    let mut all = TorCounts::default();
    for seed in 0..8 {
        let clos = Clos::leaf_spine(4, 4, 4, LINK);
        let mut setup = run_of(clos, 0, 1_000_000, None, seed).under(conweave(PATIENT));
        setup.switch.ecn = Some(EcnConfig { kmin: 20_000, kmax: 80_000, pmax: 0.5 });
        let outcome = setup.run();
        assert_eq!(outcome.totals.retransmits, 0);
        all.add(&outcome.totals.tor);
    }
    assert!(all.reroutes > 100 && all.control_packets > 1_000, "{all:?}");
    assert!(all.held > 100 && all.held_bytes > 10_000 && all.queues > 1, "{all:?}");
    assert!(all.longest > Time::us(1) && all.held_for > all.longest, "{all:?}");
    // A flow at each end of every message, and no more than 4 hosts have.
    assert_eq!(all.flows, 8);
}

/// By hand: one flow, alone, over two switches and a spine. Reports come in time, always.
#[test]
fn a_flow_alone_stays_where_it_is() {
    let clos = Clos::leaf_spine(2, 4, 1, LINK);
    let setup = Setup::new(clos, messages(2, &[(0, 1, 960_000)])).under(conweave(&[]));
    let outcome = setup.run();
    let TorCounts { flows, reroutes, control_packets, held, .. } = outcome.totals.tor;
    assert_eq!((flows, reroutes, held), (1, 0, 0));
    // A packet every 80 ns. An epoch: a packet to the other leaf, a control packet back, and the next one.
    let round = Time::ns(580 + 580) + Time(2 * (500_000 + 5_120));
    let epochs = 80_000_000 / (round.0.next_multiple_of(80_000));
    assert!(control_packets.abs_diff(epochs) <= 1, "{control_packets} of {epochs}");
    let spines = |outcome: &Outcome| {
        let up = (2..6).map(|spine| setup.fabric.ports_of(SwitchId(spine)).first.0 + 1);
        up.filter(|port| outcome.ports[PortId(*port)].packets >= 1000).count()
    };
    assert_eq!(spines(&outcome), 1);
}

/// Fabrics in which control packets, tags and held packets meet all that a run can have.
#[test]
fn any_cut_gives_the_same_bytes() {
    let switches = [
        (Buffer::PerPort { bytes: 12_000 }, None),
        (Buffer::Shared { bytes: 60_000, alpha: 1.0 }, None),
        (Buffer::Shared { bytes: 1_500_000, alpha: 1.0 }, Some(0.01)),
    ];
    let (mut drops, mut pauses, mut held) = (0, 0, 0);
    for scheme in [conweave(&[]), SchemeConfig::read("conga", &[("gap", "1us")]).unwrap()] {
        for (buffer, alpha) in switches {
            for clos in [Clos::leaf_spine(6, 4, 4, LINK), Clos::fat_tree(4, LINK)] {
                let mut setup = run_of(clos, 1, 400_000, Some(8_000), 3);
                setup.transport.rto = Time::us(300);
                setup.switch.buffer = buffer;
                setup.switch.pfc = alpha.map(|alpha| PfcConfig {
                    threshold: None,
                    alpha,
                    reserve: 0,
                    headroom: None,
                    resume_offset: 2_000,
                });
                let setup = setup.under(scheme.clone());
                let one = confirmed(&setup);
                let totals = one.as_ref().unwrap().totals;
                assert!(totals.tor.reroutes > 10, "{totals:?}");
                assert!(totals.drops == 0 || alpha.is_none(), "{totals:?}");
                (drops, pauses) = (drops + totals.drops, pauses + totals.pauses);
                held += totals.tor.held;
                for (partitions, threads) in [(2, 1), (3, 2), (4, 3)] {
                    assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
                }
            }
        }
    }
    assert!(drops > 100 && pauses > 100 && held > 100, "{drops} {pauses} {held}");
}

/// A spine's links down to one leaf are slow, which no leaf sees in its own queues. CONGA learns it
/// and keeps off; LetFlow does not.
#[test]
fn conga_keeps_off_what_it_hears_is_loaded() {
    let clos = Clos::leaf_spine(2, 4, 4, LINK);
    // Half of what links carry, in flows of 50 kB.
    let mut workload = Workload::new(8);
    for (turn, host) in (0..100).flat_map(|turn| (0..4).map(move |host| (turn, host))) {
        let start = Time::us(8 * turn + u64::from(host));
        workload.push(Message { start, ..message(4 + host, host, 50_000) }, &[]);
    }
    let mut setup = Setup::new(clos, workload).window(40);
    let slow: Vec<PortId> = {
        let ports = setup.fabric.ports();
        let to = |leaf| Node::Switch(SwitchId(leaf));
        let leads = |port: &PortId| ports[*port].peer == to(0) && ports[*port].owner == to(2);
        (0..ports.len() as u32).map(PortId).filter(leads).collect()
    };
    let name = setup.fabric.port_name(slow[0]);
    setup.failures.push(Failure {
        links: LinkChoice::Named(vec![name]),
        kind: FailureKind::Degraded { lost: 0.9 },
        start: Time::ZERO,
        end: Time::MAX,
    });
    let bytes = |name: &str| {
        let scheme = SchemeConfig::read(name, &[]).unwrap();
        let outcome = setup.clone().under(scheme).run();
        (outcome.ports[slow[0]].bytes, outcome.totals.cct)
    };
    let (conga, letflow) = (bytes("conga"), bytes("letflow"));
    assert!(2 * conga.0 < letflow.0 && conga.1 < letflow.1, "{conga:?} {letflow:?}");
}

/// One spine has slow links to a leaf: leaves cannot see it, but are told; so they are where a spine has several.
#[test]
fn spines_tell_of_slow_links() {
    let finish = |scheme: &str, members: u32| {
        let mut clos = Clos::leaf_spine(4, 4, 4, LINK);
        clos.leaf_bundle.members = members;
        clos.leaf_bundle.link.rate = Rate::bps(LINK.rate.as_bps() / u64::from(members));
        let options = [("mode", "packet-quality"), ("sample", "2us")];
        let scheme = SchemeConfig::read(scheme, &options).unwrap();
        let mut setup = Setup::new(clos, all_to_all(&clos, 100_000)).under(scheme);
        setup.switch.ecn = Some(EcnConfig { kmin: 50_000, kmax: 50_000, pmax: 1.0 });
        setup.transport.congestion = dctcp(50_000, 200_000);
        let link = |member| match member {
            0 => "leaf-0 <-> spine-0".to_string(),
            _ => format!("leaf-0 <-> spine-0#{member}"),
        };
        setup.failures.push(Failure {
            links: LinkChoice::Named((0..members).map(link).collect()),
            kind: FailureKind::Degraded { lost: 0.75 },
            start: Time::ZERO,
            end: Time::MAX,
        });
        let outcome = setup.run();
        (outcome.totals.cct, outcome.totals.tor.control_packets)
    };
    for members in [1, 4] {
        let ((own, none), (all, told)) = (finish("dlb", members), finish("glb", members));
        assert!(none == 0 && told > 100, "{told}");
        assert!(all.0 * 3 < own.0 * 2, "{members}: {all} against {own}");
    }
}
