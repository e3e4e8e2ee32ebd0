//! Random failures: of any link and all kinds, for ever, for a while, or again and again.

use weft_fabric::{
    Direction, Fabric, Failure, FailureKind, Groups, LinkChoice, Pick, Queued, Tier,
};
use weft_trial::prelude::*;
use weft_units::{PortId, Time};

/// Random numbers for a failure of links that are not known yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Some links of every leaf or of one of them; else one link of the fabric.
    tier: bool,
    everywhere: bool,
    pick: Pick,
    direction: Direction,
    which: u32,
    kind: FailureKind,
    start: Time,
    end: Time,
}

impl Draft {
    /// The failure in `fabric`.
    pub fn config(&self, fabric: &Fabric) -> Failure {
        let links = if self.tier { self.of_tier(fabric) } else { self.named(fabric) };
        Failure { links, kind: self.kind, start: self.start, end: self.end }
    }
    fn of_tier(&self, fabric: &Fabric) -> LinkChoice {
        let clos = fabric.clos().expect("a Clos");
        let ups = clos.mids_per_pod() * clos.leaf_bundle.members;
        let groups = match self.everywhere {
            true => Groups::All,
            false => Groups::Listed(vec![self.which % fabric.leaves()]),
        };
        let Draft { pick, direction, .. } = *self;
        let count = 1 + self.which / 7 % ups;
        LinkChoice::Of { tier: Tier::LeafUp, count, groups, pick, direction, plane: None }
    }
    fn named(&self, fabric: &Fabric) -> LinkChoice {
        let port = PortId(self.which % fabric.ports().len() as u32);
        let mut names = vec![fabric.port_name(port)];
        if self.direction == Direction::Both {
            names.push(fabric.port_name(fabric.ports()[port].reverse));
        }
        LinkChoice::Named(names)
    }
}

/// None half of the time, else up to three.
pub fn failures() -> impl Strategy<Value = Vec<Draft>> {
    prop_oneof![Just(Vec::new()), prop::collection::vec(draft(), 1..4)]
}

/// Whether every message gets through some day in spite of `failures`.
pub fn pass_over(failures: &[Failure]) -> bool {
    failures.iter().all(|failure| match failure.kind {
        FailureKind::Degraded { .. } => true,
        _ => failure.end < Time::MAX,
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    let pick = prop::sample::select(&[Pick::First, Pick::Random]);
    let direction = prop::sample::select(&[Direction::Both, Direction::Up, Direction::Down]);
    let start = prop_oneof![Just(0), 1u64..60_000];
    let length = prop_oneof![1 => Just(None), 2 => (1u64..100_000).prop_map(Some)];
    let which = (any::<bool>(), any::<bool>(), pick, direction, any::<u32>());
    (which, kind(), start, length).prop_map(
        |((tier, everywhere, pick, direction, which), kind, start, length)| {
            let start = Time::ns(start);
            let end = length.map_or(Time::MAX, |length| start + Time::ns(length));
            Draft { tier, everywhere, pick, direction, which, kind, start, end }
        },
    )
}

fn kind() -> impl Strategy<Value = FailureKind> {
    let detect = prop::option::of(prop_oneof![Just(0), 0u64..80_000]);
    let queued = prop::sample::select(&[Queued::Drains, Queued::Lost]);
    prop_oneof![
        prop::sample::select(&[0.2, 0.6, 0.9, 0.95])
            .prop_map(|lost| FailureKind::Degraded { lost }),
        (1u64..100_000, 1u64..20_000, any::<bool>()).prop_map(|(every, length, regular)| {
            FailureKind::Flaky { every: Time::ns(every), length: Time::ns(length), regular }
        }),
        (detect, queued, any::<bool>()).prop_map(|(detect, queued, hosts_know)| {
            FailureKind::Down { detect: detect.map(Time::ns), queued, hosts_know }
        }),
    ]
}
