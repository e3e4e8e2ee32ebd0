//! WCMP in a network: ECMP while nothing has failed, and less through what is slow.

use crate::common::compare::difference;
use crate::common::random::{Kind, setup};
use crate::common::{LINK, Setup, messages};
use weft_balance::scheme::{Ecmp, SchemeConfig};
use weft_fabric::{Clos, FailureKind};
use weft_sim::Outcome;
use weft_transport::RecoveryConfig;
use weft_trial::prelude::*;
use weft_units::{PortId, SwitchId, Time};

fn wcmp() -> SchemeConfig {
    SchemeConfig::read("wcmp", &[]).unwrap()
}
/// Packets up each link of leaf 0, which has two hosts.
fn up(setup: &Setup, outcome: &Outcome) -> Vec<u64> {
    let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 2;
    (0..4).map(|spine| outcome.ports[PortId(first + spine)].packets).collect()
}

trials! {
    #![cases(64)]

    /// Nor do failures matter that routing does not know of and that leave the rates alone.
    fn without_known_failures_it_is_ecmp(mut setup in setup(Kind::ALL)) {
        setup.failures.retain(|failure| match failure.kind {
            FailureKind::Degraded { .. } => false,
            FailureKind::Flaky { .. } => true,
            FailureKind::Down { detect, .. } => detect.is_none(),
        });
        setup.balance.scheme = Ecmp.into();
        let ecmp = setup.try_run();
        setup.balance.scheme = wcmp();
        prop_assert_eq!(difference(&ecmp, &setup.try_run()), None);
    }
}

/// Many messages of a packet each between two racks over four spines, one after the other.
fn stream() -> Setup {
    let list = vec![(0, 2, 960); 4_000];
    let mut setup = Setup::new(Clos::leaf_spine(2, 4, 2, LINK), messages(4, &list));
    setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
    setup.under(wcmp())
}

#[test]
fn slow_links_carry_less_from_when_they_are_slow() {
    let slow = FailureKind::Degraded { lost: 0.75 };
    for link in ["leaf-0 -> spine-2", "spine-2 -> leaf-1"] {
        let setup = stream().failing(link, slow, Time::ZERO, Time::MAX);
        let packets = up(&setup, &setup.run());
        // One in 13: 308 of 4000, with a standard deviation of 17.
        assert!(packets[2].abs_diff(308) < 75, "{packets:?}");
        let others = [0, 1, 3].map(|spine| packets[spine]);
        assert!(others.iter().all(|count| count.abs_diff(1_231) < 130), "{packets:?}");
        // Half of them before: 500 and 154.
        let setup = stream().failing(link, slow, Time::us(160), Time::MAX);
        let packets = up(&setup, &setup.run());
        assert!(packets[2].abs_diff(654) < 100, "{packets:?}");
    }
    // Acknowledgements come from the other leaf, and go as ever.
    let setup = stream().failing("leaf-0 -> spine-2", slow, Time::ZERO, Time::MAX);
    let outcome = setup.run();
    let first = setup.fabric.ports_of(SwitchId(1)).first.0 + 2;
    let back = (0..4).map(|spine| outcome.ports[PortId(first + spine)].packets);
    assert!(
        back.clone().all(|count| count.abs_diff(1_000) < 125),
        "{:?}",
        back.collect::<Vec<_>>()
    );
}

#[test]
fn two_failures_at_once() {
    let dead = FailureKind::down(Some(Time::ZERO));
    let slow = FailureKind::Degraded { lost: 0.5 };
    let setup = stream().failing("leaf-0 -> spine-2", slow, Time::ZERO, Time::MAX);
    let setup = setup.failing("spine-0 -> leaf-1", dead, Time::ZERO, Time::MAX);
    let packets = up(&setup, &setup.run());
    assert_eq!(packets[0], 0);
    // Two fifths, two fifths and one.
    assert!(packets[2].abs_diff(800) < 115, "{packets:?}");
    assert!([1, 3].iter().all(|spine| packets[*spine].abs_diff(1_600) < 140), "{packets:?}");
}
