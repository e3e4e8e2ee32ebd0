//! Parts of messages, and the numbers at the end of names.

use weft_balance::Planner;

use weft_balance::plan::{Post, Route, Subflow};
use weft_balance::scheme::{
    BalanceConfig, Ecmp, SCHEMES, SchemeConfig, SchemeInfo, Subflows, SubflowsAdaptive,
};
use weft_fabric::{Clos, Fabric, Link};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
const MTU: u32 = 1_000;

fn subflows(scheme: &SchemeConfig, bytes: u64) -> Vec<Subflow> {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 2, LINK)).unwrap();
    let (scheme, start_jitter) = (scheme.clone(), Time::us(1));
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
    let mut planner = Planner::new(&config, HostId(0), 7, MTU);
    let mut out = Vec::new();
    let post = Post { message: MessageId(4), dst: HostId(3), bytes, job: 0, ranks: (0, 0), tag: 0 };
    planner.post(Time::ZERO, post, &fabric, &mut out);
    assert_eq!(planner.deadline(), None);
    assert!((0..).zip(&out).all(|(part, subflow)| subflow.part == part));
    assert!(out.iter().all(|subflow| (subflow.message, subflow.dst) == (post.message, post.dst)));
    out
}
fn sizes(count: u32, bytes: u64) -> Vec<u64> {
    subflows(&Subflows { count }.into(), bytes).iter().map(|subflow| subflow.bytes).collect()
}
fn entropy(subflow: &Subflow) -> u16 {
    let Route::Hashed(entropy) = subflow.route else { panic!("{subflow:?} is pinned") };
    entropy
}

#[test]
fn parts_are_equal_and_no_more_than_packets() {
    assert_eq!(sizes(4, 8_000), [2_000; 4]);
    assert_eq!(sizes(4, 8_003), [2_001, 2_001, 2_001, 2_000]);
    assert_eq!(sizes(3, 10_000), [3_334, 3_333, 3_333]);
    assert_eq!(sizes(1, 10_000), [10_000]);
    // Three packets, two, one, and one for the empty message.
    assert_eq!(sizes(4, 2_001), [667; 3]);
    assert_eq!(sizes(4, 2_000), [1_000; 2]);
    assert_eq!(sizes(4, 1_000), [1_000]);
    assert_eq!(sizes(4, 0), [0]);
}

#[test]
fn parts_have_entropies_and_starts_of_their_own() {
    let whole = subflows(&Ecmp.into(), 1_024_000);
    for name in ["subflows-1024", "subflows-adaptive-1024"] {
        let parts = subflows(&SchemeConfig::read(name, &[]).unwrap(), 1_024_000);
        assert_eq!(parts.len(), 1_024);
        // The first part starts where and when the whole message would.
        assert_eq!((parts[0].route, parts[0].delay), (whole[0].route, whole[0].delay));
        let mut entropies: Vec<u16> = parts.iter().map(entropy).collect();
        entropies.sort_unstable();
        entropies.dedup();
        assert_eq!(entropies.len(), 1_024, "all different");
        let mean = parts.iter().map(|subflow| subflow.delay.0).sum::<u64>() / 1_024;
        // A standard deviation of 1 us / sqrt(12 * 1024) = 9 ns.
        assert!(mean.abs_diff(500_000) < 40_000, "{mean} ps");
    }
}

#[test]
fn numbers_in_names_are_options() {
    let read = |name: &str, options: &[_]| SchemeConfig::read(name, options).unwrap();
    assert_eq!(read("subflows-8", &[]), Subflows { count: 8 }.into());
    assert_eq!(read("subflows-8", &[]), read("subflows", &[("count", "8")]));
    assert_eq!(read("subflows", &[]), Subflows { count: 4 }.into());
    let adaptive = read("subflows-adaptive-3", &[("threshold", "0.5")]);
    assert_eq!(adaptive, SubflowsAdaptive { count: 3, threshold: 0.5 }.into());
    // Said twice alike is well said: that is how settled options read back.
    let (eight, settled) = SchemeConfig::resolve("subflows-8", &[]).unwrap();
    let settled: Vec<_> = settled.iter().map(|one| (one.key, one.text.as_str())).collect();
    assert_eq!(settled, [("count", "8")]);
    assert_eq!(read("subflows-8", &[("count", "8")]), eight);
    for name in ["subflows-8", "subflows-1024", "subflows-adaptive-3", "subflows-1", "ecmp"] {
        assert_eq!(read(name, &[]).name(), name);
    }
    assert_eq!(read("subflows", &[]).name(), "subflows-4");
    for scheme in SchemeConfig::all() {
        assert_eq!(read(&scheme.name(), &[]), scheme);
        assert_eq!(SchemeInfo::find(&scheme.name()), Ok(scheme.info()));
        assert_eq!(SchemeInfo::find(scheme.info().name), Ok(scheme.info()));
    }
    for info in SCHEMES {
        let number = info.numbered.is_none_or(|key| info.options.iter().any(|o| o.key == key));
        assert!(number, "{info:?}");
        let spelt = format!("{}-N", info.name);
        assert_eq!(info.spelling() == spelt, info.numbered.is_some(), "{info:?}");
    }
}

#[test]
fn wrong_numbers_are_refused_with_the_mend() {
    let wrong = |name, options: &[_]| SchemeConfig::read(name, options).unwrap_err().to_string();
    let cases = [
        (wrong("subflows-0", &[]), "scheme: \"subflows-0\": 0 is out of range; use 1 to 1024"),
        (
            wrong("subflows-adaptive-1025", &[]),
            "scheme: \"subflows-adaptive-1025\": 1025 is out of range; use 1 to 1024",
        ),
        (wrong("subflows", &[("count", "0")]), "count: 0 is out of range; use 1 to 1024"),
        (wrong("subflows-4", &[("count", "0")]), "count: 0 is out of range; use 1 to 1024"),
        (
            wrong("subflows-4", &[("count", "5")]),
            "count: contradicts the name \"subflows-4\"; remove one of them",
        ),
        (
            wrong("subflows-4", &[("counts", "4")]),
            "counts: unknown option of scheme \"subflows-4\"; it has count",
        ),
        (wrong("subflows-4", &[("count", "4"), ("count", "4")]), "count: given twice; remove one"),
    ];
    for (message, expected) in cases {
        assert_eq!(message, expected);
    }
    for name in ["subflows-", "subflows-x", "subflows-08", "subflows-00", "subflows8", "ecmp-3"] {
        let message = wrong(name, &[]);
        let start = format!("scheme: unknown value {name:?}; use one of ecmp, ");
        assert!(message.starts_with(&start) && message.contains(", subflows-N, "), "{message}");
    }
    let long = wrong("subflows-99999999999999999999", &[]);
    assert!(
        long.starts_with("scheme: \"subflows-99999999999999999999\": ") && !long.contains('\n')
    );
}

trials! {
    fn parts_add_up(count in 1u32..=1024, bytes in 0u64..3_000_000) {
        let sizes = sizes(count, bytes);
        prop_assert_eq!(sizes.iter().sum::<u64>(), bytes);
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        let packets = bytes.div_ceil(u64::from(MTU)).max(1);
        prop_assert_eq!(sizes.len() as u64, packets.min(u64::from(count)));
    }
}
