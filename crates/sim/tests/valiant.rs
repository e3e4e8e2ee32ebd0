//! Valiant routing against minimal routing on a dragonfly, where the closed form is known.

use crate::common::{LINK, Setup, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::topology::{Dragonfly, Group};
use weft_fabric::{Clos, Fabric, Failure, FailureKind, LinkChoice};
use weft_transport::RecoveryConfig;
use weft_units::Time;

/// All hosts of each group send to the next group: 2 hosts a router, 4 routers a group, 9 groups.
fn adversarial(scheme: &str, options: &[(&str, &str)]) -> f64 {
    let [host_link, local, global] = [LINK; 3];
    let (groups, group, hosts, global_ports) = (9, Group::Routers(4), 2, 2);
    let dragonfly = Dragonfly { groups, group, hosts, global_ports, host_link, local, global };
    let list: Vec<_> = (0..72).map(|src| (src, (src + 8) % 72, 1000 * 960)).collect();
    let mut setup = Setup::new(Clos::leaf_spine(2, 1, 1, LINK), messages(72, &list));
    setup.fabric = Fabric::of_wiring(dragonfly.wiring().unwrap()).unwrap();
    setup.balance.scheme = SchemeConfig::read(scheme, options).unwrap();
    setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
    let line = LINK.rate.serialize(1000 * 1000);
    setup.run().totals.cct.0 as f64 / line.0 as f64
}

/// Eight hosts share the one link to the next group (Kim et al. 2008, section 4.2: 1/(a p) of capacity).
#[test]
fn minimal_routing_sends_all_over_one_link() {
    let slowdown = adversarial("ecmp", &[]);
    assert!((8.0..8.2).contains(&slowdown), "{slowdown}");
}

/// Each group sends 8 for itself and 8 for others over the 7 links that do not lead to the next one: 16/7.
#[test]
fn valiant_routing_uses_all_other_links() {
    let slowdown = adversarial("valiant", &[]);
    assert!((16.0 / 7.0..2.6).contains(&slowdown), "{slowdown}");
    // 8 flows over 7 groups at random: some link has two or more, but none all eight.
    let slowdown = adversarial("valiant", &[("per", "flow")]);
    assert!((3.0..8.0).contains(&slowdown), "{slowdown}");
}

/// A flow keeps to a group, and to another one once a packet times out: a router of its own group is out of reach, and
/// with it a quarter of the groups.
#[test]
fn a_flow_goes_over_another_group_after_a_time_out() {
    let [host_link, local, global] = [LINK; 3];
    let (groups, group, hosts, global_ports) = (9, Group::Routers(4), 2, 2);
    let dragonfly = Dragonfly { groups, group, hosts, global_ports, host_link, local, global };
    // All from the first router to another group.
    let list: Vec<_> = (8..40).map(|dst| (dst % 2, dst, 960)).collect();
    let mut setup = Setup::new(Clos::leaf_spine(2, 1, 1, LINK), messages(72, &list));
    setup.fabric = Fabric::of_wiring(dragonfly.wiring().unwrap()).unwrap();
    setup.balance.scheme = SchemeConfig::read("valiant", &[("per", "flow")]).unwrap();
    setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
    setup.failures = vec![Failure {
        links: LinkChoice::Named(vec!["group-0-router-0 -> group-0-router-1".into()]),
        kind: FailureKind::down(None),
        start: Time::ZERO,
        end: Time::MAX,
    }];
    let totals = setup.run().totals;
    assert!(totals.wire_drops > 0 && totals.retransmits > 0, "{totals:?}");
}

/// Groups have one link between each two: where routing knows that one is dead, nobody sends anything into it.
#[test]
fn no_packet_goes_into_a_link_that_is_known_to_be_dead() {
    let [host_link, local, global] = [LINK; 3];
    let (groups, group, hosts, global_ports) = (9, Group::Routers(4), 2, 2);
    let dragonfly = Dragonfly { groups, group, hosts, global_ports, host_link, local, global };
    let list: Vec<_> = (0..72).map(|src| (src, (src + 8) % 72, 100 * 960)).collect();
    for scheme in ["valiant", "ugal"] {
        let mut setup = Setup::new(Clos::leaf_spine(2, 1, 1, LINK), messages(72, &list));
        setup.fabric = Fabric::of_wiring(dragonfly.wiring().unwrap()).unwrap();
        setup.balance.scheme = SchemeConfig::read(scheme, &[]).unwrap();
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        let healthy = setup.run().totals;
        setup.failures = vec![Failure {
            links: LinkChoice::Named(vec!["group-0-router-0 <-> group-2-router-0".into()]),
            kind: FailureKind::down(Some(Time::ZERO)),
            start: Time::ZERO,
            end: Time::MAX,
        }];
        let failing = setup.run().totals;
        assert_eq!((failing.wire_drops, failing.retransmits), (0, 0), "{scheme}");
        // One of the 8 links of two groups is gone.
        let longer = failing.cct.0 as f64 / healthy.cct.0 as f64;
        assert!(longer < 1.5, "{scheme}: {longer}");
    }
}

/// UGAL goes the short way where that suffices, and round where it does not: at worst half of the capacity, as
/// Valiant routing.
#[test]
fn ugal_goes_round_where_the_short_way_is_full() {
    let slowdown = adversarial("ugal", &[("at", "source")]);
    assert!((16.0 / 9.0..4.0).contains(&slowdown), "{slowdown}");
    let again = adversarial("ugal", &[]);
    assert!(again < slowdown, "{again} instead of {slowdown}");
    // With a bias that no queue reaches it is minimal.
    let slowdown = adversarial("ugal", &[("bias", "1GB")]);
    assert!((8.0..8.2).contains(&slowdown), "{slowdown}");
}
