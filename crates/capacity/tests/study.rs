//! The study's fabric (McClure et al. 2025) and its four failure scenarios, as printed and as they are.

use weft_capacity::{Answer, Demands, Verdict, carries, printed_inequality, uplinks_needed};
use weft_fabric::{
    Clos, Direction, Fabric, Failure, FailureKind, Failures, Groups, Link, LinkChoice, Pick, Tier,
};
use weft_units::{HostId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

fn fat_tree() -> Fabric {
    Fabric::build(&Clos::fat_tree(8, LINK)).unwrap()
}
fn degraded(count: u32, lost: f64, groups: Groups, pick: Pick, direction: Direction) -> Failure {
    let links = LinkChoice::Of { tier: Tier::PodUp, count, groups, pick, direction, plane: None };
    let kind = FailureKind::Degraded { lost };
    Failure { links, kind, start: Time::ZERO, end: Time::MAX }
}
fn under(fabric: &Fabric, failures: &[Failure], seed: u64, demands: &Demands) -> Verdict {
    let failures = Failures::new(fabric, failures, seed).unwrap();
    carries(fabric, &failures.capacities(fabric, Time::ZERO), demands)
}

/// With the part lost, as the text has it, the printed formula gets both wrong; with the part
/// kept it says what 14.11 of 16 links say.
#[test]
fn the_printed_inequality() {
    assert!((uplinks_needed(8) - 16.0 * 112.0 / 127.0).abs() < 1e-12);
    let scenarios = [(2, 0.9), (4, 0.6), (9, 0.2), (3, 0.9)];
    let lost = scenarios.map(|(f, lost)| printed_inequality(8, f, lost));
    assert_eq!(lost, [true, true, false, true]);
    let kept = scenarios.map(|(f, lost)| printed_inequality(8, f, 1.0 - lost));
    assert_eq!(kept, [true, false, true, false]);
    assert!(!printed_inequality(8, 20, 0.0), "nothing is left");
    assert!(printed_inequality(8, 0, 0.0));
}

/// 14.2 of 16 links suffice for 14.11, 13.6 and 13.3 do not, whichever links fail.
#[test]
fn the_four_scenarios() {
    let fabric = fat_tree();
    let demands = Demands::all_to_all(&fabric);
    for (count, lost, links) in [(2, 0.9, 14.2), (9, 0.2, 14.2), (3, 0.9, 13.3), (4, 0.6, 13.6)] {
        for seed in 0..3 {
            for direction in [Direction::Both, Direction::Up, Direction::Down] {
                let failure = degraded(count, lost, Groups::All, Pick::Random, direction);
                let verdict = under(&fabric, &[failure], seed, &demands);
                let bottleneck = verdict.bottleneck.unwrap();
                assert!(bottleneck.is_cut());
                if links > uplinks_needed(8) {
                    assert_eq!(verdict.answer, Answer::Yes, "{count} x {lost}");
                    assert_eq!((verdict.factor, verdict.limit), (1.0, 1.0), "the hosts' links");
                    assert_eq!(bottleneck.links.len(), 1);
                } else {
                    assert_eq!(verdict.answer, Answer::No, "{count} x {lost}");
                    let expected = links / uplinks_needed(8);
                    assert!((verdict.limit - expected).abs() < 1e-12, "{}", verdict.limit);
                    assert!(verdict.factor > expected - 1e-8, "{}", verdict.factor);
                    assert_eq!(bottleneck.links.len(), 16);
                    assert_eq!(bottleneck.capacity, links * 100e9);
                    assert!((bottleneck.demand - uplinks_needed(8) * 100e9).abs() < 1.0);
                }
            }
        }
    }
}

/// As the study's own simulator has it: the links from the first cores into pod 0.
#[test]
fn the_first_downlinks_into_pod_0() {
    let fabric = fat_tree();
    let demands = Demands::all_to_all(&fabric);
    for (count, answer) in [(2, Answer::Yes), (3, Answer::No)] {
        let groups = Groups::Listed(vec![0]);
        let failure = degraded(count, 0.9, groups, Pick::First, Direction::Down);
        let verdict = under(&fabric, &[failure], 0, &demands);
        assert_eq!(verdict.answer, answer);
        if answer == Answer::No {
            let bottleneck = verdict.bottleneck.unwrap();
            assert_eq!(bottleneck.links[0].name, "core-0 -> pod-0-agg-0");
            assert_eq!(bottleneck.links[0].capacity, 10_000_000_000);
            assert_eq!(bottleneck.links[15].name, "core-15 -> pod-0-agg-3");
        }
    }
}

/// Without failures a fat-tree carries every permutation, and nothing more.
#[test]
fn a_whole_fat_tree_carries_all_at_full_rate() {
    let fabric = fat_tree();
    let far: Vec<HostId> = (0..128).map(|host| HostId((host + 64) % 128)).collect();
    for demands in [Demands::permutation(&fabric, &far), Demands::all_to_all(&fabric)] {
        let verdict = under(&fabric, &[], 0, &demands);
        assert_eq!((verdict.answer, verdict.factor, verdict.limit), (Answer::Yes, 1.0, 1.0));
    }
}

/// Every pod has 15 whole links of 16 each way, and the leaves of pod 0 send 15 links' worth to
/// those of pod 1. But the dead uplink and the dead downlink are at different cores, and
/// a core passes on no more than it gets: 14 of 15.
#[test]
fn failures_at_different_cores_add_up() {
    let fabric = fat_tree();
    let mut demands = Demands::none(&fabric);
    for leaf in 0..4 {
        demands.add_between(leaf, 4 + leaf, 375_000_000_000);
    }
    let down = |name: &str| Failure {
        links: LinkChoice::Named(vec![name.into()]),
        kind: FailureKind::down(None),
        start: Time::ZERO,
        end: Time::MAX,
    };
    let apart = [down("pod-0-agg-0 -> core-0"), down("core-1 -> pod-1-agg-0")];
    let verdict = under(&fabric, &apart, 0, &demands);
    assert_eq!(verdict.answer, Answer::No);
    assert!((verdict.limit - 14.0 / 15.0).abs() < 1e-12, "{}", verdict.limit);
    assert!(verdict.factor > 14.0 / 15.0 - 1e-8);
    let together = [down("pod-0-agg-0 -> core-0"), down("core-0 -> pod-1-agg-0")];
    let verdict = under(&fabric, &together, 0, &demands);
    assert_ne!(verdict.answer, Answer::No);
    assert_eq!(verdict.limit, 1.0);
    assert!(verdict.factor > 1.0 - 1e-8);
}

#[test]
fn a_leaf_that_is_cut_off_gets_nothing() {
    let fabric = fat_tree();
    let failure = Failure {
        links: LinkChoice::Of {
            tier: Tier::LeafUp,
            count: 4,
            groups: Groups::Listed(vec![5]),
            pick: Pick::First,
            direction: Direction::Down,
            plane: None,
        },
        kind: FailureKind::down(None),
        start: Time::ZERO,
        end: Time::us(1),
    };
    let failures = Failures::new(&fabric, &[failure], 0).unwrap();
    let demands = Demands::all_to_all(&fabric);
    let verdict = carries(&fabric, &failures.capacities(&fabric, Time::ZERO), &demands);
    assert_eq!((verdict.answer, verdict.factor, verdict.limit), (Answer::No, 0.0, 0.0));
    let links = verdict.bottleneck.unwrap().links;
    assert!(links.len() == 4 && links.iter().all(|link| link.name.ends_with("-> leaf-5")));
    let after = failures.capacities(&fabric, Time::us(1));
    assert_eq!(carries(&fabric, &after, &demands).answer, Answer::Yes);
}

#[test]
fn nothing_is_carried_by_everything() {
    let fabric = fat_tree();
    let verdict = under(&fabric, &[], 0, &Demands::none(&fabric));
    assert_eq!((verdict.answer, verdict.bottleneck), (Answer::Yes, None));
    assert_eq!((verdict.factor, verdict.limit), (f64::INFINITY, f64::INFINITY));
    let mut within = Demands::none(&fabric);
    within.add(&fabric, HostId(0), HostId(1), 50_000_000_000);
    let verdict = under(&fabric, &[], 0, &within);
    assert_eq!((verdict.factor, verdict.limit), (2.0, 2.0), "a rack needs no core");
}
