//! Ethereal where there are several paths of several kinds: three tiers, bundles of links, and
//! paths that this host has marked bad.

use std::collections::{BTreeMap, BTreeSet};
use weft_balance::Planner;
use weft_balance::plan::{FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Bundle, Clos, Fabric, Link, PathId, Tiers};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, PortId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
const BAD_FOR: Time = Time::ms(100);

fn planner(options: &[(&str, &str)], host: u32, seed: u64) -> Planner {
    let scheme = SchemeConfig::read("ethereal", options).unwrap();
    let start_jitter = Time::ZERO;
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
    Planner::new(&config, HostId(host), seed, 1_000)
}
fn post(message: u32, dst: u32, bytes: u64) -> Post {
    Post { message: MessageId(message), dst: HostId(dst), bytes, job: 0, ranks: (0, 0), tag: 0 }
}
/// One batch, complete at `now`.
fn plan(planner: &mut Planner, now: Time, posts: &[Post], fabric: &Fabric) -> Vec<Subflow> {
    let mut out = Vec::new();
    posts.iter().for_each(|post| planner.post(now, *post, fabric, &mut out));
    planner.flush(now, fabric, &mut out);
    out
}
fn path(subflow: &Subflow) -> PathId {
    let Route::Pinned(path) = subflow.route else { panic!("{subflow:?} is not pinned") };
    path
}
fn on_loss(
    planner: &mut Planner,
    now: Time,
    (dst, path): (u32, PathId),
    signal: LossSignal,
    fabric: &Fabric,
) -> Option<PathId> {
    let flow = FlowInfo {
        dst: HostId(dst),
        route: Route::Pinned(path),
        bytes: 1_000,
        queue_pair: None,
        chunk: None,
    };
    match planner.on_loss(now, &flow, signal, fabric)? {
        Route::Pinned(path) => Some(path),
        hashed @ Route::Hashed(_) => panic!("{hashed:?}"),
    }
}
/// Payload on each port that `subflows` of `src` cross, its NIC and the hosts' ports included.
fn loads(fabric: &Fabric, src: u32, subflows: &[Subflow]) -> BTreeMap<PortId, u64> {
    let mut loads = BTreeMap::new();
    for subflow in subflows {
        for port in fabric.trace(HostId(src), subflow.dst, path(subflow)) {
            *loads.entry(port).or_default() += subflow.bytes;
        }
    }
    loads
}
fn on_paths(subflows: &[Subflow]) -> BTreeMap<PathId, u64> {
    let mut loads = BTreeMap::new();
    for subflow in subflows {
        *loads.entry(path(subflow)).or_default() += subflow.bytes;
    }
    loads
}
/// The paths that a large message takes.
fn in_use(planner: &mut Planner, now: Time, dst: u32, fabric: &Fabric) -> BTreeSet<PathId> {
    plan(planner, now, &[post(0, dst, 8_000)], fabric).iter().map(path).collect()
}

/// A fat-tree of 4 ports: leaves 0 and 1 are the first pod, with two hosts each; two aggregation
/// switches a pod, two cores above each of them.
///
/// By hand: 6 messages of 10 bytes to leaf 4, in the third pod: s = 4 cores, r = 2, g = 2: four
/// whole, two halved, 15 bytes a core. 3 messages of 7 bytes to leaf 1: s = 2 uplinks, r = 1,
/// g = 1: one a path, and one in parts of 4 and 3 bytes. One of 9 to the neighbour: whole.
#[test]
fn three_tiers_by_hand() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let mut posts: Vec<Post> = (0..6).map(|m| post(m, 8 + m % 2, 10)).collect();
    posts.extend((6..9).map(|m| post(m, 2 + m % 2, 7)));
    posts.push(post(9, 1, 9));
    for seed in 0..50 {
        let subflows = plan(&mut planner(&[], 0, seed), Time::ZERO, &posts, &fabric);
        let sizes = |messages: std::ops::Range<u32>| {
            let mine = subflows.iter().filter(|subflow| messages.contains(&subflow.message.0));
            let mut sizes: Vec<u64> = mine.map(|subflow| subflow.bytes).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(0..6), [5, 5, 5, 5, 10, 10, 10, 10]);
        assert_eq!(sizes(6..9), [3, 4, 7, 7]);
        assert_eq!(sizes(9..10), [9]);
        let across: Vec<Subflow> =
            subflows.iter().filter(|subflow| subflow.dst.0 >= 8).copied().collect();
        // 60 bytes: each core 15, and so every link of the second and the third pod up there.
        let cores = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(up, core)| PathId::new(up, core));
        assert_eq!(on_paths(&across), cores.map(|core| (core, 15)).into());
        let loads = loads(&fabric, 0, &across);
        // NIC, 2 uplinks, 4 links up to the cores, 4 down, 2 down to the leaf, and its hosts.
        let mut sorted: Vec<u64> = loads.values().copied().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, [15, 15, 15, 15, 15, 15, 15, 15, 30, 30, 30, 30, 30, 30, 60]);
    }
}

/// The fat-tree of Ethereal (2025): 8 pods of 4 leaves, 4 aggregation switches a pod, 16 cores, 16 hosts
/// a leaf. s is 16 across pods and 4 within.
#[test]
fn the_fat_tree_of_the_paper() {
    let tiers = Tiers::Three { pods: 8, leaves_per_pod: 4, aggs_per_pod: 4, cores: 16 };
    let fabric = Fabric::build(&Clos::uniform(tiers, 16, LINK)).unwrap();
    assert_eq!((fabric.hosts(), fabric.leaves()), (512, 32));
    // All-to-all: 15 neighbours in the rack, 16 messages to each leaf: nothing is cut.
    let posts: Vec<Post> = (1..512).map(|dst| post(dst, dst, 1_000)).collect();
    let subflows = plan(&mut planner(&[], 0, 1), Time::ZERO, &posts, &fabric);
    assert_eq!(subflows.len(), 511);
    // One message: 16 parts across pods, 4 within; 12: r = 12, g = 4, so each in 4 parts.
    for (dst, messages, expected) in [(511, 1, 16), (17, 1, 4), (511, 12, 48), (17, 12, 12)] {
        let posts: Vec<Post> = (0..messages).map(|m| post(m, dst, 32_000)).collect();
        let subflows = plan(&mut planner(&[], 0, 1), Time::ZERO, &posts, &fabric);
        assert_eq!(subflows.len(), expected);
        let loads: BTreeSet<u64> = on_paths(&subflows).into_values().collect();
        assert_eq!(loads.len(), 1, "every path the same");
    }
}

/// What a host holds against a path, it holds for one leaf and 100 ms, whether the path leads
/// across pods or not; and other hosts do not know.
#[test]
fn bad_paths_are_a_matter_of_host_leaf_and_time() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let now = Time::us(10);
    for reason in [LossSignal::Nack, LossSignal::TimeOut] {
        let mut planner = planner(&[], 0, 1);
        let core = PathId::new(1, 0);
        let new = on_loss(&mut planner, now, (8, core), reason, &fabric).unwrap();
        assert_ne!(new, core);
        let uplink = PathId::new(0, 0);
        let other = on_loss(&mut planner, now + Time::us(5), (3, uplink), reason, &fabric);
        assert_eq!(other, Some(PathId::new(1, 0)), "the only other uplink");
        let later = now + BAD_FOR - Time::ps(1);
        let good = [PathId::new(0, 0), PathId::new(0, 1), PathId::new(1, 1)];
        for dst in [8, 9] {
            assert_eq!(in_use(&mut planner, later, dst, &fabric), good.into(), "both hosts");
        }
        assert_eq!(in_use(&mut planner, later, 2, &fabric), [PathId::new(1, 0)].into());
        // The other leaf of that pod, and another pod.
        for dst in [10, 12] {
            assert_eq!(in_use(&mut planner, later, dst, &fabric).len(), 4);
        }
        // Each has a time of its own.
        assert_eq!(in_use(&mut planner, now + BAD_FOR, 8, &fabric).len(), 4);
        assert_eq!(in_use(&mut planner, now + BAD_FOR, 2, &fabric).len(), 1);
        assert_eq!(in_use(&mut planner, now + BAD_FOR + Time::us(5), 2, &fabric).len(), 2);
        assert_eq!(in_use(&mut self::planner(&[], 1, 1), later, 8, &fabric).len(), 4);
    }
}

/// Trouble again while a path is bad counts from then on.
#[test]
fn trouble_again_begins_the_time_anew() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 4, 2, LINK)).unwrap();
    let mut planner = planner(&[("bad_for", "10us")], 0, 1);
    let bad = PathId::new(2, 0);
    for at in [1, 8] {
        on_loss(&mut planner, Time::us(at), (2, bad), LossSignal::TimeOut, &fabric);
    }
    assert_eq!(in_use(&mut planner, Time::us(17), 2, &fabric).len(), 3);
    assert_eq!(in_use(&mut planner, Time::us(18), 2, &fabric).len(), 4);
}

/// The code of the paper's authors moves a flow on time-outs only: on a NACK it goes back where
/// it is, and nothing is held against the path.
#[test]
fn a_nack_moves_nobody_if_so_told() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let core = PathId::new(1, 0);
    let mut planner = planner(&[("nack", "stay")], 0, 1);
    assert_eq!(on_loss(&mut planner, Time::us(1), (8, core), LossSignal::Nack, &fabric), None);
    assert_eq!(in_use(&mut planner, Time::us(2), 8, &fabric).len(), 4);
    assert!(on_loss(&mut planner, Time::us(3), (8, core), LossSignal::TimeOut, &fabric).is_some());
    assert_eq!(in_use(&mut planner, Time::us(4), 8, &fabric).len(), 3);
}

/// Three spines with two links each: six paths, of which one link may be bad by itself.
#[test]
fn links_of_a_bundle_are_paths_of_their_own() {
    let mut clos = Clos::leaf_spine(2, 3, 2, LINK);
    clos.leaf_bundle = Bundle { link: LINK, members: 2 };
    let fabric = Fabric::build(&clos).unwrap();
    let mut planner = planner(&[], 0, 1);
    // By hand: 7 messages of 12 bytes over 6 paths: one in six parts of 2 bytes.
    let posts: Vec<Post> = (0..7).map(|m| post(m, 2, 12)).collect();
    let subflows = plan(&mut planner, Time::ZERO, &posts, &fabric);
    assert_eq!(subflows.len(), 12);
    assert_eq!(on_paths(&subflows).into_values().collect::<Vec<_>>(), [14; 6]);
    // All twelve links between leaves and spines carry the same, and only the way there does.
    let loads = loads(&fabric, 0, &subflows);
    assert_eq!(loads.into_values().filter(|load| *load == 14).count(), 12);
    // The second link to the first spine is bad: 84 bytes over five paths, s = 5, r = 2, g = 1:
    // one whole message a path, two in five parts of 3, 3, 2, 2, 2 bytes, whose odd bytes do
    // not meet.
    on_loss(&mut planner, Time::us(1), (2, PathId::new(1, 1)), LossSignal::TimeOut, &fabric);
    let subflows = plan(&mut planner, Time::us(2), &posts, &fabric);
    assert_eq!(subflows.len(), 15);
    let loads = on_paths(&subflows);
    assert!(!loads.contains_key(&PathId::new(1, 1)));
    let mut sorted: Vec<u64> = loads.into_values().collect();
    sorted.sort_unstable();
    assert_eq!(sorted, [16, 17, 17, 17, 17]);
}

/// Two tiers with bundles, and three tiers.
fn fabrics() -> impl Strategy<Value = Fabric> {
    let two = (2u32..5, 1u32..9, 1u32..4).prop_map(|(leaves, spines, members)| {
        let mut clos = Clos::leaf_spine(leaves, spines, 2, LINK);
        clos.leaf_bundle = Bundle { link: LINK, members };
        clos
    });
    let three = (2u32..4, 1u32..4, 1u32..5, 1u32..5).prop_map(
        |(pods, leaves_per_pod, aggs_per_pod, per_plane)| {
            let cores = aggs_per_pod * per_plane;
            Clos::uniform(Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }, 2, LINK)
        },
    );
    prop_oneof![two, three].prop_map(|clos| Fabric::build(&clos).unwrap())
}

trials! {
    /// Over any fabric and with any paths marked bad: those that are left carry the same, to the
    /// byte, the others nothing; the number of parts is what the theorem says of the paths that
    /// are left.
    fn good_paths_carry_all_alike(
        fabric in fabrics(), bad in prop::collection::vec(any::<u32>(), 0..20),
        flows in 1u32..60, bytes in 300u64..100_000, to in any::<u32>(), seed in any::<u64>(),
    ) {
        let dst = 2 + to % (fabric.hosts() - 2);
        let paths = fabric.path_set(HostId(0), HostId(dst));
        let all: Vec<PathId> = (0..paths.len()).map(|index| paths.get(index)).collect();
        let bad: BTreeSet<PathId> =
            bad.iter().map(|index| all[*index as usize % all.len()]).take(all.len() - 1).collect();
        let mut planner = planner(&[], 0, seed);
        for path in &bad {
            let new = on_loss(&mut planner, Time::us(1), (dst, *path), LossSignal::Nack, &fabric);
            prop_assert!(new.is_some_and(|new| new != *path && all.contains(&new)));
        }
        let posts: Vec<Post> = (0..flows).map(|m| post(m, dst, bytes)).collect();
        let subflows = plan(&mut planner, Time::us(2), &posts, &fabric);
        let loads = on_paths(&subflows);
        prop_assert!(loads.keys().all(|path| !bad.contains(path)));
        let s = all.len() - bad.len();
        prop_assert_eq!(loads.len(), s);
        let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
        prop_assert!(most - least <= 1, "{:?}", loads);
        let r = flows as usize % s;
        let g = (1..=s).rev().find(|g| r.is_multiple_of(*g) && s.is_multiple_of(*g)).unwrap();
        prop_assert_eq!(subflows.len(), flows as usize + r * (s - g) / g);
    }
}
