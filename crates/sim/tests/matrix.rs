//! Every scheme with every recovery, under every kind of failure, with switches that drop, trim
//! or pause: whatever a run can be told, all bytes arrive. A quarter of all combinations, and all in `make soak`.

use crate::common::compare::{but_events, difference};
use crate::common::{LINK, Setup, dctcp, incast, messages, permutation};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::topology::{Dragonfly, Group, Torus};
use weft_fabric::{
    Clos, Direction, Fabric, Failure, FailureKind, Groups, LinkChoice, Pick, Tier, Tiers, Wiring,
};
use weft_sim::{Buffer, EcnConfig, Halt, PfcConfig, TrimConfig, Victim};
use weft_transport::{CongestionConfig, FixedRateConfig, PathScale, RecoveryConfig, unfit};
use weft_trial::is_drawn;
use weft_units::{Draw, Rate, Time, parse_time};

/// 16 hosts under 4 leaves and 4 spines, or under 8 leaves in 4 pods.
fn clos(turn: usize) -> Clos {
    if turn.is_multiple_of(4) { Clos::fat_tree(4, LINK) } else { Clos::leaf_spine(4, 4, 4, LINK) }
}

/// Recoveries as they are by default, and told otherwise.
fn recoveries() -> Vec<RecoveryConfig> {
    let told: &[(&str, &[(&str, &str)])] = &[
        ("tcp", &[("sack", "true"), ("adaptive_rto", "false"), ("dup_acks", "6")]),
        ("go-back-n", &[("nack_repeat", "true"), ("nack_quiet", "10us")]),
    ];
    let told = told.iter().map(|(name, options)| RecoveryConfig::read(name, options).unwrap());
    RecoveryConfig::all().into_iter().chain(told).collect()
}

/// What is wrong with a link, from when until when; if anything is.
type Fault = Option<(FailureKind, Time, Time)>;

/// What may happen to a link of each leaf, by name.
fn kinds() -> Vec<(&'static str, Fault)> {
    let slow = FailureKind::Degraded { lost: 0.9 };
    let flaky = |regular| FailureKind::Flaky { every: Time::us(10), length: Time::us(1), regular };
    let down = |detect| FailureKind::down(detect);
    let (early, late) = (Time::us(2), Time::us(200));
    vec![
        ("no failure", None),
        ("degraded", Some((slow, Time::ZERO, Time::MAX))),
        ("degraded in time", Some((slow, early, Time::us(8)))),
        ("flaky", Some((flaky(false), Time::ZERO, Time::MAX))),
        ("flaky at a beat", Some((flaky(true), early, late))),
        ("down, detected", Some((down(Some(Time::us(3))), early, Time::MAX))),
        ("down, detected, and back", Some((down(Some(Time::us(3))), early, Time::us(9)))),
        ("down, undetected, and back", Some((down(None), early, late))),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Full {
    Drop,
    Trim,
    Pause,
}

/// Congestion controls as they are by default.
fn controls() -> Vec<CongestionConfig> {
    CongestionConfig::all(&PathScale {
        bdp: 20_000,
        line: LINK.rate,
        round_trip: Time::us(5),
        oversubscribed: false,
    })
    .into_iter()
    .map(|control| match control {
        CongestionConfig::FixedRate(_) => FixedRateConfig { rate: Some(Rate::gbps(50)) }.into(),
        control => control,
    })
    .collect()
}

/// Any of the controls. Each has a draw of its own, and the largest wins: one more changes nothing but
/// what it wins.
fn control(turn: usize) -> CongestionConfig {
    let drawn = |control: &CongestionConfig| Draw::new(0, control.info().name).at(turn as u64, 0);
    controls().into_iter().max_by_key(drawn).expect("some")
}

/// `turn` varies what is not part of the matrix.
fn with_switches(mut setup: Setup, full: Full, turn: usize) -> Setup {
    let pick = |of: usize| turn % of;
    match full {
        Full::Drop => setup = setup.port_buffer(12_000),
        Full::Trim => {
            setup = setup.port_buffer(6_000);
            setup.switch.trim = Some(TrimConfig {
                size: Some(64),
                queue: 3_000,
                return_to_sender: pick(2) == 1,
                victim: [Victim::Arriving, Victim::Tail, Victim::Either][pick(3)],
            });
        }
        Full::Pause => {
            setup.switch.buffer = Buffer::PerPort { bytes: 8_000 };
            setup.switch.pfc = Some(PfcConfig {
                threshold: Some(8_000),
                alpha: 1.0,
                reserve: 0,
                headroom: None,
                resume_offset: 2_000,
            });
        }
    }
    setup.switch.control_priority = pick(7) == 0;
    setup.pacing.subflows = [1, 1, 3][pick(3)];
    setup.pacing.desynchronise = pick(2) == 0;
    setup
}

/// A link of each leaf, or of one of them, fails: up, down or both ways.
fn failing(mut setup: Setup, kind: Fault, turn: usize) -> Setup {
    if let Some((kind, start, end)) = kind {
        let direction = [Direction::Both, Direction::Up, Direction::Down][turn % 3];
        // Two leaves of two uplinks might have no path left between them, nor parts of other networks.
        let few = setup.fabric.clos().is_none_or(|clos| clos.mids_per_pod() == 2);
        let groups = if few { Groups::Listed(vec![turn as u32 % 8]) } else { Groups::All };
        let (tier, count) = (Tier::LeafUp, 1);
        let links =
            LinkChoice::Of { tier, count, groups, pick: Pick::Random, direction, plane: None };
        setup.failures.push(Failure { links, kind, start, end });
    }
    setup
}

/// A number for what has this name: what is not part of the matrix follows from the names of what is, so
/// that combinations stay as they are when a list grows.
fn number(what: &str) -> usize {
    (Draw::new(0, what).at(0, 0) >> 40) as usize
}

/// What `scheme` can meet, as far as it is drawn; how much that is.
fn all_of(scheme: &SchemeConfig) -> usize {
    let mut count = 0;
    for recovery in recoveries() {
        for (name, kind) in kinds() {
            for full in [Full::Drop, Full::Trim, Full::Pause] {
                let what = format!("{} {recovery:?} {name} {full:?}", scheme.name());
                if !is_drawn(&what) {
                    continue;
                }
                // Whoever codes always has something to send: a window ends that where headers, which
                // go first, would leave nothing of a slow link.
                let endless =
                    matches!(recovery, RecoveryConfig::Coding(_)) && matches!(full, Full::Trim);
                let control = match control(number(&what)) {
                    control if endless && control.info().sets_rate => dctcp(20_000, 40_000),
                    control => control,
                };
                finishes(&what, scheme, (recovery, control), kind, full);
                count += 1;
            }
        }
    }
    count
}

fn finishes(
    what: &str,
    scheme: &SchemeConfig,
    (recovery, control): (RecoveryConfig, CongestionConfig),
    kind: Fault,
    full: Full,
) {
    let turn = number(what);
    let setup = Setup::new(clos(turn), permutation(&clos(turn), 15 * 960 + 7));
    finishes_on(setup, what, scheme, (recovery, control), kind, full);
}

fn finishes_on(
    mut setup: Setup,
    what: &str,
    scheme: &SchemeConfig,
    (recovery, control): (RecoveryConfig, CongestionConfig),
    kind: Fault,
    full: Full,
) {
    let turn = number(what);
    // What goes with one recovery only is tried with that.
    let uet = || RecoveryConfig::read("uet", &[]).unwrap();
    let recovery = unfit(&control, &recovery).map_or(recovery, |_| uet());
    setup.balance.scheme = scheme.clone();
    setup.transport.recovery = recovery;
    setup.transport.congestion = control;
    setup.transport.rto = Time::us(60);
    setup.stall_after = Time::ms(50);
    let setup = failing(with_switches(setup, full, turn), kind, turn / 2).seeded(turn as u64);
    let outcome = setup.try_run();
    let halt = outcome.as_ref().err();
    assert_eq!(halt, None, "{what}");
    let Ok(outcome) = &outcome else { unreachable!("it has just been looked at") };
    assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO), "{what}");
    // Now and then the same on two threads.
    if turn.is_multiple_of(11) {
        let one = setup.run_in(1, 1).map(but_events);
        let many = setup.run_in(4, 2).map(but_events);
        assert_eq!(difference(&one, &many), None, "{what}");
    }
}

#[test]
fn everything_finishes() {
    let count: usize = SchemeConfig::all().iter().map(all_of).sum();
    assert!(count > 1000, "{count} combinations");
}

/// Networks that are no Clos, by name, of 20, 16 and 16 hosts; a Clos whose NICs have three ports; two rails that
/// never meet; and NICs with ports at two leaves.
fn networks() -> Vec<(&'static str, Fabric)> {
    let dragonfly = |group, hosts| {
        let [host_link, local, global] = [LINK; 3];
        let (groups, global_ports) = (5, 4);
        Dragonfly { groups, group, hosts, global_ports, host_link, local, global }.wiring()
    };
    let (host_link, link) = (LINK, LINK);
    let torus = Torus { sizes: vec![4, 4], wraps: true, hosts: 1, host_link, link };
    let wirings = [
        ("dragonfly", dragonfly(Group::Routers(4), 1)),
        ("dragonfly+", dragonfly(Group::LeavesAndSpines(4, 4), 1)),
        ("torus", torus.wiring()),
    ];
    let built = wirings.map(|(name, wiring)| (name, Fabric::of_wiring(wiring.unwrap()).unwrap()));
    let planes = Fabric::build(&Clos::leaf_spine(4, 4, 4, LINK)).unwrap().in_planes(3).unwrap();
    let rails = Clos::uniform(Tiers::Rails { rails: 2, leaves: 2, spines: 4 }, 4, LINK);
    let rails = Fabric::build(&rails).unwrap();
    let dual = Wiring::homed(&Clos::leaf_spine(8, 4, 4, LINK), 2).unwrap();
    let dual = Fabric::of_wiring(dual).unwrap();
    let others = [("three planes", planes), ("rails", rails), ("two homes", dual)];
    built.into_iter().chain(others).collect()
}

/// Every scheme with every recovery and every failure on networks that are no Clos, or a reason why not.
#[test]
fn everything_finishes_or_is_refused_on_other_networks() {
    let mut counts = (0, 0);
    for (network, fabric) in networks() {
        for scheme in SchemeConfig::all() {
            if let Err(error) = scheme.fits(&fabric) {
                let is_known = [
                    "needs a folded Clos, since ",
                    "needs planes = 1, since ",
                    "needs homes = 1, since ",
                ];
                assert!(is_known.iter().any(|why| error.0.contains(why)), "{error}");
                counts.1 += 1;
                continue;
            }
            for (recovery, (name, kind)) in recoveries()
                .into_iter()
                .flat_map(|one| kinds().into_iter().map(move |kind| (one, kind)))
            {
                let what = format!("{} {recovery:?} {name} {network}", scheme.name());
                if !is_drawn(&what) {
                    continue;
                }
                // Pauses may lock packets where routes go in circles.
                let full = match number(&what) % 3 {
                    2 if !fabric.has_circular_routes() => Full::Pause,
                    1 if !matches!(recovery, RecoveryConfig::Coding(_)) => Full::Trim,
                    _ => Full::Drop,
                };
                let reached = fabric.hosts() / fabric.rails().unwrap_or(1);
                let dst = |src| src / reached * reached + (src + 7) % reached;
                let list: Vec<_> =
                    (0..fabric.hosts()).map(|src| (src, dst(src), 15 * 960 + 7)).collect();
                let mut setup = Setup::new(clos(1), messages(fabric.hosts(), &list));
                setup.fabric = fabric.clone();
                finishes_on(setup, &what, &scheme, (recovery, control(number(&what))), kind, full);
                counts.0 += 1;
            }
        }
    }
    assert!(counts.0 > 1000 && counts.1 >= 3 * 4, "{counts:?} ran, were refused");
}

/// Every scheme with every congestion control, in order or not.
#[test]
fn every_control_finishes() {
    let orders = [RecoveryConfig::GO_BACK_N, RecoveryConfig::SELECTIVE_REPEAT];
    for scheme in SchemeConfig::all() {
        for (control, recovery) in
            controls().into_iter().flat_map(|one| orders.map(|two| (one, two)))
        {
            for (name, kind) in kinds() {
                let (scheme_name, control_name) = (scheme.name(), control.info().name);
                let what = format!("{scheme_name} {} {control_name} {name}", recovery.name());
                if !is_drawn(&what) {
                    continue;
                }
                let full = [Full::Drop, Full::Trim, Full::Pause][number(&what) % 3];
                finishes(&what, &scheme, (recovery, control), kind, full);
            }
        }
    }
}

/// Under every control 15 hosts send 2 MB each to one, in little more than its link
/// takes for it. A control whose steps are made for slower links, or that cuts again and again for one
/// queue, takes many times as long.
#[test]
fn no_control_collapses() {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    for control in controls() {
        let mut setup = Setup::new(clos, incast(&clos, 2_000_000));
        setup.transport.congestion = control;
        setup.transport.recovery = match unfit(&control, &RecoveryConfig::SELECTIVE_REPEAT) {
            Some(_) => RecoveryConfig::read("uet", &[]).unwrap(),
            None => RecoveryConfig::SELECTIVE_REPEAT,
        };
        setup.switch.ecn = Some(EcnConfig { kmin: 100_000, kmax: 400_000, pmax: 0.2 });
        let least = LINK.rate.serialize(15 * 2_000_000);
        let slowdown = setup.run().totals.cct.0 as f64 / least.0 as f64;
        assert!(slowdown < 4.0, "{} takes {slowdown} times the bound", control.info().name);
    }
}

/// The time of a stall, in picoseconds, as its text tells it.
fn now(text: &str) -> u64 {
    let told = text.split("(now ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    parse_time(told).unwrap().0
}

/// A host whose link is dead for ever: whoever sends to it or from it is named within a second.
#[test]
fn a_dead_host_is_no_hang() {
    for recovery in recoveries() {
        for link in ["host-5 -> leaf-1", "leaf-1 -> host-5"] {
            for full in [Full::Drop, Full::Trim, Full::Pause] {
                let list = [(0, 9, 5_000), (5, 2, 5_000), (7, 5, 5_000), (1, 6, 5_000)];
                let mut setup = Setup::new(clos(1), messages(16, &list));
                setup.transport.recovery = recovery;
                setup.stall_after = Time::ms(500);
                let mut setup = with_switches(setup, full, 3);
                let links = LinkChoice::Named(vec![link.into()]);
                let kind = FailureKind::down(Some(Time::us(1)));
                setup.failures = vec![Failure { links, kind, start: Time::ZERO, end: Time::MAX }];
                let Err(Halt::Stalled(stall)) = setup.try_run() else {
                    panic!("{recovery:?} {link} {full:?} must stall")
                };
                let text = stall.text;
                assert!(now(&text) < Time::secs(1).0, "{text}");
                assert!(text.contains("message 1 (host-5 -> host-2) misses"), "{text}");
                assert!(text.contains("message 2 (host-7 -> host-5) misses"), "{text}");
                assert!(!text.contains("message 0") && !text.contains("message 3"), "{text}");
            }
        }
    }
}
