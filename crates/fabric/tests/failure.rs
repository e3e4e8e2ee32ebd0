//! Failures resolved: which links, when they lose what, and what routing knows.

use weft_fabric::{
    Bundle, Clos, Direction, Fabric, Failure, FailureKind, Failures, Groups, Link, LinkChoice,
    Pick, Queued, Tier,
};
use weft_trial::prelude::*;
use weft_units::{PortId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

fn fat_tree(k: u32) -> Fabric {
    Fabric::build(&Clos::fat_tree(k, LINK)).unwrap()
}
fn of(tier: Tier, count: u32, groups: Groups, pick: Pick, direction: Direction) -> LinkChoice {
    LinkChoice::Of { tier, count, groups, pick, direction, plane: None }
}
fn named(names: &[&str]) -> LinkChoice {
    LinkChoice::Named(names.iter().map(|name| (*name).to_owned()).collect())
}
fn names(fabric: &Fabric, ports: &[PortId]) -> Vec<String> {
    ports.iter().map(|port| fabric.port_name(*port)).collect()
}
fn failure(links: LinkChoice, kind: FailureKind, start: Time, end: Time) -> Failure {
    Failure { links, kind, start, end }
}
fn one_link(kind: FailureKind, start: Time, end: Time) -> (Fabric, Failures, PortId) {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let failure = failure(named(&["leaf-0 -> spine-1"]), kind, start, end);
    let failures = Failures::new(&fabric, &[failure], 1).unwrap();
    let port = failures.ports().next().unwrap();
    (fabric, failures, port)
}
const FLAKY: FailureKind =
    FailureKind::Flaky { every: Time::us(100), length: Time::us(10), regular: false };

/// The study's own simulator degrades the first links from the cores into pod 0.
#[test]
fn the_first_downlinks_into_pod_0() {
    let fabric = fat_tree(8);
    let choice = of(Tier::PodUp, 3, Groups::Listed(vec![0]), Pick::First, Direction::Down);
    let ports = choice.resolve(&fabric, 7).unwrap();
    assert_eq!(
        names(&fabric, &ports),
        ["core-0 -> pod-0-agg-0", "core-1 -> pod-0-agg-0", "core-2 -> pod-0-agg-0"]
    );
    let six = of(Tier::PodUp, 6, Groups::Listed(vec![0]), Pick::First, Direction::Down);
    let ports = six.resolve(&fabric, 7).unwrap();
    assert_eq!(names(&fabric, &ports)[5], "core-5 -> pod-0-agg-1");
}

#[test]
fn the_first_uplinks_of_leaves_member_by_member() {
    let mut clos = Clos::leaf_spine(3, 2, 2, LINK);
    clos.leaf_bundle = Bundle { link: LINK, members: 2 };
    let fabric = Fabric::build(&clos).unwrap();
    let groups = Groups::Listed(vec![2, 0, 2]);
    let ports = of(Tier::LeafUp, 3, groups, Pick::First, Direction::Up).resolve(&fabric, 0);
    assert_eq!(
        names(&fabric, &ports.unwrap()),
        [
            "leaf-0 -> spine-0",
            "leaf-0 -> spine-0#1",
            "leaf-0 -> spine-1",
            "leaf-2 -> spine-0",
            "leaf-2 -> spine-0#1",
            "leaf-2 -> spine-1"
        ]
    );
}

#[test]
fn links_by_name() {
    let mut clos = Clos::fat_tree(4, LINK);
    clos.agg_bundle.members = 2;
    let fabric = Fabric::build(&clos).unwrap();
    let choice = named(&["pod-0-agg-1 -> core-2#1", "leaf-3<->pod-1-agg-0", "host-5 -> leaf-2"]);
    let ports = choice.resolve(&fabric, 0).unwrap();
    assert_eq!(
        names(&fabric, &ports),
        [
            "host-5 -> leaf-2",
            "leaf-3 -> pod-1-agg-0",
            "pod-0-agg-1 -> core-2#1",
            "pod-1-agg-0 -> leaf-3"
        ]
    );
    let both = named(&["pod-0-agg-1 <-> core-2#1"]).resolve(&fabric, 0).unwrap();
    assert_eq!(names(&fabric, &both), ["pod-0-agg-1 -> core-2#1", "core-2 -> pod-0-agg-1#1"]);
    for (id, _) in fabric.ports().enumerate() {
        assert_eq!(named(&[&fabric.port_name(id)]).resolve(&fabric, 0).unwrap(), [id]);
    }
}

/// Every refusal is one line that says what there is instead.
#[test]
fn impossible_choices_are_refused() {
    let leaf_spine = Fabric::build(&Clos::leaf_spine(4, 2, 2, LINK)).unwrap();
    let fat_tree = fat_tree(4);
    let pods = |groups| of(Tier::PodUp, 5, groups, Pick::Random, Direction::Both);
    let cases = [
        (&leaf_spine, pods(Groups::All), "two tiers"),
        (&fat_tree, pods(Groups::All), "use 1 to 4"),
        (&fat_tree, of(Tier::PodUp, 0, Groups::All, Pick::First, Direction::Up), "use 1 to 4"),
        (&fat_tree, pods(Groups::Listed(vec![1, 4])), "no pod 4: use 0 to 3"),
        (&fat_tree, pods(Groups::Listed(vec![])), "no pod is listed"),
        (&fat_tree, named(&["pod-0-ag-1 -> core-2"]), "did you mean \"pod-0-agg-1\"?"),
        (&fat_tree, named(&["pod-0-agg-1 -> spine-2"]), "\"spine-2\", which is not"),
        (&fat_tree, named(&["pod-0-agg-1 -> core-0"]), "it has links to leaf-0, leaf-1, core-2"),
        (&fat_tree, named(&["pod-0-agg-1 -> core-2#1"]), "use #0 to #0"),
        (&fat_tree, named(&["pod-0-agg-1 -> core-2#x"]), "use #0 to #0"),
        (&fat_tree, named(&["pod-0-agg-1"]), "is not a link"),
        (&fat_tree, named(&[]), "name at least one"),
    ];
    for (fabric, choice, expected) in cases {
        let why = choice.resolve(fabric, 1).unwrap_err().to_string();
        assert!(why.contains(expected), "{choice:?}: {why}");
        assert!(!why.contains('\n'));
    }
}

#[test]
fn impossible_failures_are_refused() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let refused = |kind, start, end| {
        let failure = failure(named(&["leaf-0 -> spine-1"]), kind, start, end);
        Failures::new(&fabric, &[failure], 1).unwrap_err().to_string()
    };
    for lost in [0.0, 1.0, -0.5, 90.0, f64::NAN, f64::INFINITY] {
        let why = refused(FailureKind::Degraded { lost }, Time::ZERO, Time::MAX);
        assert!(why.contains("share above 0 and below 1"), "{why}");
    }
    let flaky = |every, length| FailureKind::Flaky { every, length, regular: true };
    assert!(refused(flaky(Time::ZERO, Time::us(1)), Time::ZERO, Time::MAX).contains("1ps"));
    assert!(refused(flaky(Time::us(1), Time::ZERO), Time::ZERO, Time::MAX).contains("1ps"));
    assert!(refused(FLAKY, Time::us(3), Time::us(3)).contains("3us"));
}

/// 100 Gb/s less 90 % are exactly 10 Gb/s; two degradations that overlap multiply.
#[test]
fn rates_over_time() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let link = || named(&["leaf-0 -> spine-1"]);
    let degraded = |lost| FailureKind::Degraded { lost };
    let list = [
        failure(link(), degraded(0.9), Time::ZERO, Time::us(30)),
        failure(link(), degraded(0.2), Time::us(10), Time::us(20)),
        failure(link(), degraded(0.6), Time::us(50), Time::MAX),
        failure(named(&["spine-0 -> leaf-1"]), degraded(0.25), Time::us(20), Time::MAX),
    ];
    let failures = Failures::new(&fabric, &list, 1).unwrap();
    let changes: Vec<(Time, String, u64)> = failures
        .rate_changes(&fabric)
        .iter()
        .map(|c| (c.at, fabric.port_name(c.port), c.rate.as_bps() / 1_000_000))
        .collect();
    let (up, down) = ("leaf-0 -> spine-1".to_owned(), "spine-0 -> leaf-1".to_owned());
    assert_eq!(
        changes,
        [
            (Time::ZERO, up.clone(), 10_000),
            (Time::us(10), up.clone(), 8_000),
            (Time::us(20), up.clone(), 10_000),
            (Time::us(20), down, 75_000),
            (Time::us(30), up.clone(), 100_000),
            (Time::us(50), up, 40_000),
        ]
    );
}

#[test]
fn a_rate_is_one_bit_per_second_at_least() {
    let mut clos = Clos::leaf_spine(2, 2, 1, LINK);
    clos.leaf_bundle.link.rate = Rate::bps(7);
    let fabric = Fabric::build(&clos).unwrap();
    for (lost, rate) in [(0.5, 3), (0.999, 1)] {
        let kind = FailureKind::Degraded { lost };
        let list = [failure(named(&["leaf-0 -> spine-1"]), kind, Time::ZERO, Time::MAX)];
        let changes = Failures::new(&fabric, &list, 1).unwrap().rate_changes(&fabric);
        assert_eq!(changes[0].rate, Rate::bps(rate));
    }
}

/// Routing learns of a death and of a return after the same time, of a short outage never.
#[test]
fn what_routing_knows() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let down = |name: &str, detect: Option<u64>, start, end| {
        let detect = detect.map(Time::us);
        failure(named(&[name]), FailureKind::down(detect), Time::us(start), end)
    };
    let list = [
        down("leaf-0 -> spine-0", Some(5), 10, Time::us(40)),
        down("leaf-0 -> spine-0", Some(5), 30, Time::us(60)),
        down("leaf-0 -> spine-1", Some(5), 20, Time::MAX),
        down("leaf-1 -> spine-0", Some(5), 10, Time::us(15)),
        down("leaf-1 -> spine-1", None, 0, Time::MAX),
    ];
    let detected = Failures::new(&fabric, &list, 1).unwrap().detected();
    let told: Vec<(Time, Vec<String>)> =
        detected.iter().map(|d| (d.at, names(&fabric, &d.dead))).collect();
    let (first, second) = ("leaf-0 -> spine-0".to_owned(), "leaf-0 -> spine-1".to_owned());
    assert_eq!(
        told,
        [
            (Time::us(15), vec![first.clone()]),
            (Time::us(25), vec![first, second.clone()]),
            (Time::us(65), vec![second]),
        ]
    );
}

/// What hosts know that begin at some time: what routing knew then, and knows without a break since.
#[test]
fn what_hosts_know_since_they_began() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 3, 1, LINK)).unwrap();
    let after = |detect| FailureKind::down(Some(Time::us(detect)));
    let alone =
        FailureKind::Down { detect: Some(Time::ZERO), queued: Queued::Drains, hosts_know: false };
    let list = [
        // Known from 10 to 40 us, and again from 70 us on.
        failure(named(&["leaf-0 -> spine-0"]), after(10), Time::ZERO, Time::us(30)),
        failure(named(&["leaf-0 -> spine-0"]), after(10), Time::us(60), Time::MAX),
        failure(named(&["leaf-0 -> spine-1"]), after(0), Time::us(20), Time::MAX),
        failure(named(&["leaf-0 -> spine-2"]), alone, Time::ZERO, Time::MAX),
        failure(named(&["leaf-1 -> spine-2"]), FailureKind::down(None), Time::ZERO, Time::MAX),
    ];
    let failures = Failures::new(&fabric, &list, 1).unwrap();
    let known = |since, at| {
        let ports = failures.known_since(Time::us(since), Time::us(at));
        ports.iter().map(|port| fabric.port_name(*port)).collect::<Vec<_>>()
    };
    let (first, second) = ("leaf-0 -> spine-0", "leaf-0 -> spine-1");
    assert!(known(0, 0).is_empty() && known(0, 100).is_empty());
    assert_eq!(known(10, 39), [first]);
    assert!(known(10, 40).is_empty() && known(10, 70).is_empty());
    assert_eq!(known(20, 39), [first, second]);
    assert_eq!(known(20, 70), [second]);
    assert_eq!(known(70, 1_000), [first, second]);
    // Asked before they began.
    assert_eq!(known(39, 20), [first, second]);
}

/// Switches throw queues away; NICs do not, nor who drains.
#[test]
fn queues_that_are_thrown_away() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let lost = FailureKind::Down { detect: None, queued: Queued::Lost, hosts_know: true };
    let list = [
        failure(named(&["leaf-0 <-> host-0"]), lost, Time::us(30), Time::us(60)),
        failure(named(&["leaf-1 -> spine-0"]), lost, Time::us(10), Time::MAX),
        failure(named(&["leaf-0 -> spine-1"]), FailureKind::down(None), Time::us(5), Time::MAX),
    ];
    let flushes = Failures::new(&fabric, &list, 1).unwrap().flushes(&fabric);
    let told: Vec<_> = flushes.iter().map(|f| (f.at, fabric.port_name(f.port), f.until)).collect();
    let [first, second] = ["leaf-1 -> spine-0", "leaf-0 -> host-0"].map(str::to_owned);
    let expected = [(Time::us(10), first, Time::MAX), (Time::us(30), second, Time::us(60))];
    assert_eq!(told, expected);
}

#[test]
fn a_dead_link_loses_what_touches_its_dead_time() {
    let kind = FailureKind::down(None);
    let (_, failures, port) = one_link(kind, Time::us(10), Time::us(20));
    let lost = |from, to| failures.losses(port).unwrap().is_lost(Time::ns(from), Time::ns(to));
    assert!(!lost(9_000, 10_000), "the last bit has left");
    assert!(lost(9_000, 10_001));
    assert!(lost(19_999, 21_000));
    assert!(!lost(20_000, 21_000));
    assert!(lost(0, 50_000));
    assert!(failures.losses(PortId(port.0 + 1)).is_none());
    assert_eq!(failures.bursts(port).count(), 0);
}

/// Means of 2000 bursts: 3 standard errors of an exponential are 6.7 %.
#[test]
fn bursts_have_the_means_they_are_given() {
    let (_, failures, port) = one_link(FLAKY, Time::ms(3), Time::MAX);
    let bursts: Vec<_> = failures.bursts(port).next().unwrap().take(2_000).collect();
    let lengths: u64 = bursts.iter().map(|(start, end)| end.0 - start.0).sum();
    let last = bursts[bursts.len() - 1].0;
    assert!(bursts[0].0 >= Time::ms(3));
    let gap = Time::ms(3).until(last).as_secs_f64() / 2_000.0;
    let length = lengths as f64 / 2_000.0 / 1e12;
    assert!((0.933e-4..1.067e-4).contains(&gap), "{gap}");
    assert!((0.933e-5..1.067e-5).contains(&length), "{length}");
    // Exponential: a share of 1/e of the gaps is longer than the mean.
    let long = bursts.windows(2).filter(|w| w[1].0.0 - w[0].0.0 > Time::us(100).0).count();
    assert!((670..800).contains(&long), "{long}");
}

#[test]
fn regular_bursts_start_exactly_every_so_often() {
    let kind = FailureKind::Flaky { every: Time::us(100), length: Time::us(10), regular: true };
    let (fabric, failures, port) = one_link(kind, Time::ms(1), Time::ms(2));
    let bursts: Vec<_> = failures.bursts(port).next().unwrap().collect();
    assert_eq!(bursts.len(), 10);
    assert!(bursts[0].0 >= Time::ms(1) && bursts[0].0 < Time::us(1_100));
    assert!(bursts.windows(2).all(|w| w[1].0 - w[0].0 == Time::us(100)));
    assert!(bursts.iter().all(|burst| burst.1 <= Time::ms(2)));
    let both = failure(named(&["leaf-0 <-> spine-1"]), kind, Time::ms(1), Time::ms(2));
    let failures = Failures::new(&fabric, &[both], 1).unwrap();
    let firsts: Vec<_> =
        failures.ports().map(|p| failures.bursts(p).next().unwrap().next()).collect();
    assert_ne!(firsts[0], firsts[1], "links do not fail in step");
}

trials! {
    #![cases(64)]

    /// As many links as asked for, all of the right tier, the same for the same seed; fewer
    /// are part of more.
    fn random_links_of_every_group(seed in any::<u64>(), count in 1u32..16, leaf in any::<bool>()) {
        let fabric = fat_tree(8);
        let (tier, groups, most) = if leaf {
            (Tier::LeafUp, fabric.leaves(), 4)
        } else {
            (Tier::PodUp, 8, 16)
        };
        let count = count.min(most);
        let choose = |count, groups, direction| {
            of(tier, count, groups, Pick::Random, direction).resolve(&fabric, seed).unwrap()
        };
        let ports = choose(count, Groups::All, Direction::Up);
        prop_assert_eq!(ports.len() as u32, count * groups);
        prop_assert_eq!(&ports, &choose(count, Groups::All, Direction::Up));
        let prefix = if leaf { "leaf-" } else { "pod-" };
        prop_assert!(names(&fabric, &ports).iter().all(|name| name.starts_with(prefix)));
        let listed = choose(count, Groups::Listed(vec![5]), Direction::Up);
        prop_assert_eq!(listed.len() as u32, count);
        prop_assert!(listed.iter().all(|port| ports.contains(port)));
        if count < most {
            let more = choose(count + 1, Groups::All, Direction::Up);
            prop_assert!(ports.iter().all(|port| more.contains(port)));
        }
        let mut both: Vec<PortId> = ports.clone();
        both.extend(ports.iter().map(|port| fabric.ports()[*port].reverse));
        both.sort_unstable();
        prop_assert_eq!(choose(count, Groups::All, Direction::Both), both);
    }

    /// The cursor says what a look at all windows says, bursts within bursts included.
    fn the_cursor_agrees_with_all_windows(
        seed in any::<u64>(),
        every in 1u64..200,
        length in 1u64..400,
        regular in any::<bool>(),
        dead in (0u64..2_000, 1u64..2_000),
        mut spans in prop::collection::vec((0u64..4_000, 0u64..300), 1..60),
    ) {
        let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
        let (every, length) = (Time::ns(every), Time::ns(length));
        let kind = FailureKind::Flaky { every, length, regular };
        let link = || named(&["leaf-0 -> spine-1"]);
        let list = [
            failure(link(), kind, Time::ns(100), Time::ns(3_000)),
            failure(
                link(),
                FailureKind::down(None),
                Time::ns(dead.0),
                Time::ns(dead.0 + dead.1),
            ),
            failure(link(), kind, Time::ns(1_000), Time::MAX),
        ];
        let failures = Failures::new(&fabric, &list, seed).unwrap();
        let port = failures.ports().next().unwrap();
        let mut windows = vec![(list[1].start, list[1].end)];
        for bursts in failures.bursts(port) {
            windows.extend(bursts.take_while(|window| window.0 < Time::ns(5_000)));
        }
        spans.sort_unstable();
        let mut losses = failures.losses(port).unwrap();
        for (from, length) in spans {
            let (from, to) = (Time::ns(from), Time::ns(from + length + 1));
            let met = windows.iter().any(|(start, end)| *start < to && from < *end);
            prop_assert_eq!(losses.is_lost(from, to), met, "{} {}", from, to);
        }
    }

    /// The bursts of one link do not depend on what else fails.
    fn bursts_depend_on_nothing_else(seed in any::<u64>(), more in 1u32..16) {
        let fabric = fat_tree(8);
        let flaky = |links| failure(links, FLAKY, Time::ZERO, Time::MAX);
        let alone = flaky(named(&["pod-0-agg-0 -> core-0"]));
        let others = of(Tier::LeafUp, more.min(4), Groups::All, Pick::First, Direction::Both);
        let alone = [alone];
        let with_others = [alone[0].clone(), flaky(others)];
        let bursts = |list: &[Failure]| {
            let failures = Failures::new(&fabric, list, seed).unwrap();
            let port = alone[0].links.resolve(&fabric, seed).unwrap()[0];
            failures.bursts(port).next().unwrap().take(50).collect::<Vec<_>>()
        };
        prop_assert_eq!(bursts(&alone), bursts(&with_others));
    }
}

#[test]
fn links_that_are_down_have_names_while_they_are() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let down = FailureKind::down(None);
    let both = failure(named(&["spine-1 <-> leaf-0"]), down, Time::us(1), Time::us(5));
    let one = failure(named(&["leaf-1 -> host-1"]), down, Time::us(2), Time::MAX);
    let slow = failure(named(&["leaf-1 <-> spine-0"]), FLAKY, Time::ZERO, Time::MAX);
    let failures = Failures::new(&fabric, &[both, one, slow], 1).unwrap();
    let at = |time| failures.down_links(&fabric, time);
    assert_eq!(at(Time::ZERO), [""; 0]);
    assert_eq!(at(Time::us(2)), ["leaf-0 <-> spine-1", "leaf-1 -> host-1"]);
    assert_eq!(at(Time::us(5)), ["leaf-1 -> host-1"]);
}
