//! Whole switches that fail: all of their links, by name, by order and by lot.

use weft_fabric::topology::Torus;
use weft_fabric::{
    Bundle, Clos, Detours, Direction, Fabric, Failure, FailureKind, Failures, Groups, Link,
    LinkChoice, Node, Pick, Tier,
};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
const DOWN: FailureKind = FailureKind::down(Some(Time::ms(100)));

fn leaf_spine() -> Fabric {
    Fabric::build(&Clos::leaf_spine(3, 2, 2, LINK)).unwrap()
}
fn fat_tree(k: u32) -> Fabric {
    Fabric::build(&Clos::fat_tree(k, LINK)).unwrap()
}
fn of(tier: Tier, count: u32, groups: Groups, pick: Pick) -> LinkChoice {
    LinkChoice::Of { tier, count, groups, pick, direction: Direction::Both, plane: None }
}
fn first(tier: Tier) -> LinkChoice {
    of(tier, 1, Groups::All, Pick::First)
}
fn switches(names: &[&str]) -> LinkChoice {
    LinkChoice::Switches(names.iter().map(|name| (*name).to_owned()).collect())
}
fn names(fabric: &Fabric, choice: &LinkChoice) -> Vec<String> {
    let ports = choice.resolve(fabric, 1).unwrap();
    ports.iter().map(|port| fabric.port_name(*port)).collect()
}
fn down_for(links: LinkChoice, end: Time) -> Failure {
    Failure { links, kind: DOWN, start: Time::us(1), end }
}

/// Every link that has the switch at an end, and no other.
fn links_at(fabric: &Fabric, switch: SwitchId) -> Vec<PortId> {
    let node = Node::Switch(switch);
    let has = |id: &PortId| {
        let port = &fabric.ports()[*id];
        port.owner == node || port.peer == node
    };
    (0..fabric.ports().len() as u32).map(PortId).filter(has).collect()
}

#[test]
fn all_links_of_a_switch_both_ways() {
    assert_eq!(
        names(&leaf_spine(), &switches(&["spine-1"])),
        [
            "leaf-0 -> spine-1",
            "leaf-1 -> spine-1",
            "leaf-2 -> spine-1",
            "spine-1 -> leaf-0",
            "spine-1 -> leaf-1",
            "spine-1 -> leaf-2"
        ]
    );
    assert_eq!(
        names(&fat_tree(4), &switches(&["core-2"]))[..4],
        ["pod-0-agg-1", "pod-1-agg-1", "pod-2-agg-1", "pod-3-agg-1"]
            .map(|agg| format!("{agg} -> core-2"))
    );
    let mut bundled = Clos::fat_tree(4, LINK);
    bundled.agg_bundle = Bundle { link: LINK, members: 3 };
    bundled.leaf_bundle.members = 2;
    for fabric in [leaf_spine(), fat_tree(4), Fabric::build(&bundled).unwrap()] {
        for switch in (0..fabric.switches()).map(SwitchId) {
            let choice = switches(&[&fabric.name(Node::Switch(switch))]);
            assert_eq!(choice.resolve(&fabric, 1).unwrap(), links_at(&fabric, switch));
        }
    }
}

/// Two neighbours share a link, which fails once.
#[test]
fn several_switches_by_name() {
    let fabric = fat_tree(4);
    let both = switches(&["pod-1-agg-0", "core-0"]).resolve(&fabric, 1).unwrap();
    assert_eq!(both.len(), 2 * (4 + 4 - 1));
    assert!(both.is_sorted_by(|a, b| a < b));
}

#[test]
fn the_first_switches_of_a_tier() {
    let (two, three) = (leaf_spine(), fat_tree(4));
    assert_eq!(names(&two, &first(Tier::Spines)), names(&two, &switches(&["spine-0"])));
    assert_eq!(names(&two, &first(Tier::Leaves)), names(&two, &switches(&["leaf-0"])));
    assert_eq!(names(&three, &first(Tier::Cores)), names(&three, &switches(&["core-0"])));
    // Leaves and aggregation switches stand in pods.
    let aggs = ["pod-0-agg-0", "pod-1-agg-0", "pod-2-agg-0", "pod-3-agg-0"];
    assert_eq!(names(&three, &first(Tier::Spines)), names(&three, &switches(&aggs)));
    let pod = of(Tier::Leaves, 2, Groups::Listed(vec![2]), Pick::First);
    assert_eq!(names(&three, &pod), names(&three, &switches(&["leaf-4", "leaf-5"])));
}

/// From the lower to the upper end of each link of the switch.
#[test]
fn one_direction_of_a_switch() {
    let fabric = fat_tree(4);
    let tier = Tier::Spines;
    let (groups, pick) = (Groups::Listed(vec![0]), Pick::First);
    let up = LinkChoice::Of { tier, count: 1, groups, pick, direction: Direction::Up, plane: None };
    assert_eq!(
        names(&fabric, &up),
        [
            "leaf-0 -> pod-0-agg-0",
            "leaf-1 -> pod-0-agg-0",
            "pod-0-agg-0 -> core-0",
            "pod-0-agg-0 -> core-1"
        ]
    );
}

#[test]
fn impossible_choices_are_refused() {
    let (two, three) = (leaf_spine(), fat_tree(4));
    let torus = Torus { sizes: vec![4], wraps: true, hosts: 1, host_link: LINK, link: LINK };
    let torus = Fabric::of_wiring(torus.wiring().unwrap()).unwrap();
    let all = |tier, count| of(tier, count, Groups::All, Pick::Random);
    let cases = [
        (&two, all(Tier::Cores, 1), "a fabric of two tiers has no cores: choose spines"),
        (&two, all(Tier::Spines, 3), "3 spines cannot fail in a fabric of 2: use 1 to 2"),
        (&two, all(Tier::Leaves, 0), "0 leaves cannot fail in a fabric of 3: use 1 to 3"),
        (
            &three,
            all(Tier::Spines, 3),
            "3 aggregation switches cannot fail in pod 0, which has 2: use 1 to 2",
        ),
        (
            &torus,
            all(Tier::Spines, 1),
            "there are no switches without hosts here: choose another tier",
        ),
        (&three, all(Tier::Cores, 5), "5 cores cannot fail in a fabric of 4: use 1 to 4"),
        (
            &three,
            of(Tier::Spines, 1, Groups::Listed(vec![4]), Pick::First),
            "there is no pod 4: use 0 to 3",
        ),
        (
            &three,
            of(Tier::Cores, 1, Groups::Listed(vec![0]), Pick::First),
            "cores stand in no pod: list none",
        ),
        (&two, switches(&[]), "no switch is named: name at least one"),
        (
            &two,
            switches(&["spine-0", "spine-2"]),
            "\"spine-2\" is not a switch of the fabric: did you mean \"spine-0\"?",
        ),
        (
            &three,
            switches(&["pod-0-ag-1"]),
            "\"pod-0-ag-1\" is not a switch of the fabric: did you mean \"pod-0-agg-1\"?",
        ),
    ];
    for (fabric, choice, expected) in cases {
        assert_eq!(choice.resolve(fabric, 1).unwrap_err().to_string(), expected);
    }
}

/// Hosts have no second leaf: one that stays down is a mistake, one that comes back, is slow or
/// was meant by the name of a host's link is not.
#[test]
fn a_leaf_has_to_come_back() {
    let fabric = fat_tree(4);
    let fails = |links, kind, end| {
        let failure = Failure { links, kind, start: Time::ZERO, end };
        Failures::new(&fabric, &[failure], 1)
    };
    for choice in [switches(&["core-0", "leaf-3"]), first(Tier::Leaves)] {
        let why = fails(choice.clone(), DOWN, Time::MAX).unwrap_err().to_string();
        assert_eq!(why, "a leaf that stays down cuts off its hosts for ever: let it come back");
        assert!(fails(choice.clone(), DOWN, Time::ms(5)).is_ok());
        assert!(fails(choice, FailureKind::Degraded { lost: 0.5 }, Time::MAX).is_ok());
    }
    for choice in [switches(&["core-0", "pod-0-agg-0"]), first(Tier::Spines)] {
        assert!(fails(choice, DOWN, Time::MAX).is_ok());
    }
    let host = LinkChoice::Named(vec!["host-3 -> leaf-1".into()]);
    assert!(fails(host, DOWN, Time::MAX).is_ok());
}

/// Routing learns of the whole switch at once, and as late that it is back; meanwhile everybody
/// goes around it.
#[test]
fn routing_goes_around_a_switch() {
    let fabric = leaf_spine();
    let choice = switches(&["spine-0"]);
    let list = [down_for(choice.clone(), Time::ms(5) + Time::us(1))];
    // Over before anybody knows.
    assert!(Failures::new(&fabric, &list, 1).unwrap().detected().is_empty());
    let list = [down_for(choice, Time::ms(500))];
    let detected = Failures::new(&fabric, &list, 1).unwrap().detected();
    let times: Vec<(Time, usize)> = detected.iter().map(|d| (d.at, d.dead.len())).collect();
    assert_eq!(times, [(Time::us(100_001), 6), (Time::ms(600), 0)]);
    let around = Detours::new(&fabric, &detected[0].dead);
    for (leaf, dst) in [(0, 2), (0, 5), (1, 0), (2, 1)] {
        let hops = around.next_hops(SwitchId(leaf), HostId(dst)).unwrap();
        let names: Vec<_> = hops.iter().map(|port| fabric.port_name(*port)).collect();
        assert_eq!(names, [format!("leaf-{leaf} -> spine-1")]);
    }
    assert!(Detours::new(&fabric, &detected[1].dead).is_empty());
}

trials! {
    #![cases(64)]

    /// As many switches as asked for, each as a whole, the same for the same seed; fewer are
    /// part of more, and pods do not depend on each other.
    fn random_switches(seed in any::<u64>(), count in 1u32..8, tier in 0usize..3) {
        let fabric = fat_tree(8);
        let (tier, groups, most, first) = [
            (Tier::Leaves, 8, 4, 0),
            (Tier::Spines, 8, 4, 32),
            (Tier::Cores, 1, 16, 64),
        ][tier];
        let count = count.min(most);
        let choose = |count, groups| {
            of(tier, count, groups, Pick::Random).resolve(&fabric, seed).unwrap()
        };
        let ports = choose(count, Groups::All);
        prop_assert_eq!(&ports, &choose(count, Groups::All));
        let whole: Vec<SwitchId> = (first..first + groups * most)
            .map(SwitchId)
            .filter(|id| links_at(&fabric, *id).iter().all(|port| ports.contains(port)))
            .collect();
        prop_assert_eq!(whole.len() as u32, count * groups);
        let all: usize = whole.iter().map(|id| links_at(&fabric, *id).len()).sum();
        prop_assert_eq!(all, ports.len());
        if count < most {
            let more = choose(count + 1, Groups::All);
            prop_assert!(ports.iter().all(|port| more.contains(port)));
        }
        if tier != Tier::Cores {
            let listed = choose(count, Groups::Listed(vec![5]));
            prop_assert_eq!(listed.len() * 8, ports.len());
            prop_assert!(listed.iter().all(|port| ports.contains(port)));
        }
    }
}
