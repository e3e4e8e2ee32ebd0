//! What senders may compute in advance: fair shares, and how far to cut flows.

use crate::common::settled;
use weft_experiment::fair::{fair_shares, most_concurrent};
use weft_fabric::{Bundle, Clos, Fabric, Failures, Link, Tiers};
use weft_sim::Rates;
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Rate, Time};
use weft_workload::{Dependency, Message, When, Workload};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
const LINE: u64 = 100_000_000_000;

fn fabric(clos: &Clos) -> Fabric {
    Fabric::build(clos).expect("a valid fabric")
}
fn message(src: u32, dst: u32) -> Message {
    Message { src: HostId(src), dst: HostId(dst), bytes: 1000, start: Time::ZERO }
}
fn workload(hosts: u32, pairs: impl IntoIterator<Item = (u32, u32)>) -> Workload {
    let mut workload = Workload::new(hosts);
    for (src, dst) in pairs {
        workload.push(message(src, dst), &[]);
    }
    workload
}
fn all_to_all(hosts: u32) -> impl Iterator<Item = (u32, u32)> {
    let pairs = (0..hosts).flat_map(move |src| (0..hosts).map(move |dst| (src, dst)));
    pairs.filter(|(src, dst)| src != dst)
}
/// The shares in bits per second.
fn shares(fabric: &Fabric, workload: &Workload) -> Vec<u64> {
    fair_shares(fabric, workload).iter().map(|rate| rate.as_bps()).collect()
}

/// Fabrics in which nothing but the hosts' own links is tight.
fn without_bottleneck() -> [Clos; 3] {
    let three = Tiers::Three { pods: 3, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
    [Clos::fat_tree(4, LINK), Clos::leaf_spine(3, 4, 4, LINK), Clos::uniform(three, 2, LINK)]
}

#[test]
fn a_permutation_has_the_line_rate() {
    for clos in without_bottleneck() {
        let fabric = fabric(&clos);
        let hosts = fabric.hosts();
        for shift in 1..hosts {
            let all = workload(hosts, (0..hosts).map(|host| (host, (host + shift) % hosts)));
            assert_eq!(shares(&fabric, &all), vec![LINE; hosts as usize], "{shift}");
            assert_eq!(most_concurrent(&fabric, &all), 1);
        }
    }
}

#[test]
fn an_all_to_all_divides_it_by_all_others() {
    for clos in without_bottleneck() {
        let fabric = fabric(&clos);
        let hosts = fabric.hosts();
        let all = workload(hosts, all_to_all(hosts));
        let expected = LINE / u64::from(hosts - 1);
        assert!(shares(&fabric, &all).iter().all(|share| *share == expected));
        assert_eq!(most_concurrent(&fabric, &all), hosts - 1);
    }
    // McClure et al. (2025): 1/127 of the line rate in an all-to-all of 128 hosts.
    let study = fabric(&Clos::fat_tree(8, LINK));
    assert_eq!(shares(&study, &workload(128, all_to_all(128)))[0], 787_401_574);
}

#[test]
fn an_incast_divides_the_last_link() {
    let fabric = fabric(&Clos::fat_tree(4, LINK));
    let incast = workload(16, (1..=7).map(|src| (src, 0)));
    assert_eq!(shares(&fabric, &incast), [LINE / 7; 7]);
    assert_eq!(most_concurrent(&fabric, &incast), 7);
    // And one host that sends to many, the first.
    let outcast = workload(16, (1..=5).map(|dst| (0, dst)));
    assert_eq!(shares(&fabric, &outcast), [LINE / 5; 5]);
    assert_eq!(most_concurrent(&fabric, &outcast), 5);
}

#[test]
fn several_permutations_share_alike() {
    for clos in without_bottleneck() {
        let fabric = fabric(&clos);
        let hosts = fabric.hosts();
        for count in 1..8u32 {
            let shift = |count| (0..hosts).map(move |host| (host, (host + count) % hosts));
            let all = workload(hosts, (1..=count).flat_map(shift));
            let expected = LINE / u64::from(count);
            assert!(shares(&fabric, &all).iter().all(|share| *share == expected), "{count}");
            assert_eq!(most_concurrent(&fabric, &all), count);
        }
    }
}

#[test]
fn an_oversubscribed_leaf_is_shared_by_those_who_leave_it() {
    // Four hosts under a leaf with a single uplink.
    let fabric = fabric(&Clos::leaf_spine(3, 1, 4, LINK));
    let pairs = [(0, 4), (1, 5), (2, 3), (3, 2), (4, 8), (9, 10)];
    let expected = [LINE / 2, LINE / 2, LINE, LINE, LINE, LINE];
    assert_eq!(shares(&fabric, &workload(12, pairs)), expected);
    // And into one: from two other leaves.
    let pairs = [(0, 4), (1, 5), (8, 6), (9, 10)];
    let expected = [LINE / 3, LINE / 3, LINE / 3, LINE];
    assert_eq!(shares(&fabric, &workload(12, pairs)), expected);
    // Two pods of two leaves; each leaf has two uplinks, each pod one link to the core.
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores: 2 };
    let half_link = Link { rate: Rate::gbps(50), delay: LINK.delay };
    let clos = Clos {
        agg_bundle: Bundle { link: half_link, members: 1 },
        ..Clos::uniform(tiers, 2, LINK)
    };
    let pods = self::fabric(&clos);
    // Three leave pod 0 over 2 x 50 Gb/s; one stays in it, and one comes the other way.
    let pairs = [(0, 4), (1, 5), (2, 6), (3, 0), (7, 3)];
    let third = LINE / 3;
    assert_eq!(shares(&pods, &workload(8, pairs)), [third, third, third, LINE, LINE]);
}

#[test]
fn steps_of_a_workload_do_not_share() {
    let fabric = fabric(&Clos::fat_tree(4, LINK));
    for when in [When::Sent, When::Received] {
        let mut chain = Workload::new(16);
        let first: Vec<MessageId> = (1..4).map(|dst| chain.push(message(0, dst), &[])).collect();
        // Once all three are over, two more; and after those, one.
        let after = |ids: &[MessageId]| -> Vec<Dependency> {
            ids.iter().map(|id| Dependency { on: *id, when }).collect()
        };
        let second: Vec<_> =
            (4..6).map(|dst| chain.push(message(0, dst), &after(&first))).collect();
        chain.push(message(0, 9), &after(&second[..1]));
        // One that waits for nothing shares with the first three.
        chain.push(message(0, 10), &[]);
        let (four, two) = (LINE / 4, LINE / 2);
        assert_eq!(shares(&fabric, &chain), [four, four, four, two, two, LINE, four]);
        assert_eq!(most_concurrent(&fabric, &chain), 4);
    }
    // The longest chain counts.
    let mut both = Workload::new(16);
    let on = |id, when| Dependency { on: id, when };
    let a = both.push(message(0, 1), &[]);
    let b = both.push(message(0, 2), &[on(a, When::Sent)]);
    both.push(message(0, 3), &[on(a, When::Received), on(b, When::Received)]);
    assert_eq!(shares(&fabric, &both), [LINE; 3]);
}

#[test]
fn nothing_to_share() {
    let fabric = fabric(&Clos::fat_tree(4, LINK));
    assert!(shares(&fabric, &Workload::new(16)).is_empty());
    assert_eq!(most_concurrent(&fabric, &Workload::new(16)), 0);
}

/// Everything that `message` crosses, told apart by kind and place, with what it carries.
fn cuts(fabric: &Fabric, message: &Message) -> Vec<((&'static str, u32), u64)> {
    let clos = fabric.clos().expect("a Clos");
    let bits = |link: &Bundle, switches: u32| {
        link.link.rate.as_bps() * u64::from(link.members) * u64::from(switches)
    };
    let (src, dst) = (message.src, message.dst);
    let host = clos.host_link.rate.as_bps();
    let mut cuts = vec![(("out", src.0), host), (("in", dst.0), host)];
    let leaf = |host: HostId| host.0 / clos.hosts_per_leaf;
    if leaf(src) != leaf(dst) {
        let leaf_bits = bits(&clos.leaf_bundle, clos.mids_per_pod());
        cuts.push((("leaf up", leaf(src)), leaf_bits));
        cuts.push((("leaf down", leaf(dst)), leaf_bits));
    }
    let pod = |host| leaf(host) / clos.leaves_per_pod();
    if pod(src) != pod(dst) {
        let pod_bits = bits(&clos.agg_bundle, clos.cores());
        cuts.push((("pod up", pod(src)), pod_bits));
        cuts.push((("pod down", pod(dst)), pod_bits));
    }
    cuts
}

fn any_clos() -> impl Strategy<Value = Clos> {
    let rate = || prop::sample::select(vec![1u64, 10, 25, 100, 400]);
    let tiers = prop_oneof![
        (1u32..5, 1u32..4).prop_map(|(leaves, spines)| Tiers::Two { leaves, spines }),
        (1u32..4, 1u32..4, 1u32..3, 1u32..3).prop_map(|(pods, leaves, aggs, each)| Tiers::Three {
            pods,
            leaves_per_pod: leaves,
            aggs_per_pod: aggs,
            cores: aggs * each,
        }),
    ];
    let rates = (rate(), rate(), rate());
    (tiers, 1u32..5, rates, 1u32..3, 1u32..3).prop_map(|(tiers, hosts, rates, leaf, agg)| {
        let link = |gbps| Link { rate: Rate::gbps(gbps), delay: LINK.delay };
        Clos {
            leaf_bundle: Bundle { link: link(rates.1), members: leaf },
            agg_bundle: Bundle { link: link(rates.2), members: agg },
            ..Clos::uniform(tiers, hosts, link(rates.0))
        }
    })
}

trials! {
    /// All of a step at once, nothing is overloaded, and every message has a cut that is shared
    /// out to the last bit: nobody could have more if all who cross it are to have the same.
    fn cuts_carry_the_shares_and_one_of_them_is_full(
        clos in any_clos(),
        pairs in prop::collection::vec((any::<u32>(), any::<u32>(), any::<Option<u32>>()), 0..120),
    ) {
        let fabric = fabric(&clos);
        let hosts = fabric.hosts();
        let mut all = Workload::new(hosts);
        let mut steps: Vec<u32> = Vec::new();
        for (src, dst, after) in pairs {
            let (src, dst) = (src % hosts, dst % hosts);
            if src == dst {
                continue;
            }
            // Of those before it, if there are any, it waits for one that has to do with `src`.
            let known = all.messages().enumerate().filter(|(_, m)| m.dst.0 == src);
            let known: Vec<MessageId> = known.map(|(id, _)| id).collect();
            let on = after.filter(|_| !known.is_empty()).map(|n| known[n as usize % known.len()]);
            let waits = on.map(|on| Dependency { on, when: When::Received });
            steps.push(on.map_or(0, |on| steps[on.0 as usize] + 1));
            all.push(message(src, dst), waits.as_slice());
        }
        let shares = shares(&fabric, &all);
        let mut load = std::collections::BTreeMap::new();
        for ((message, share), step) in all.messages().iter().zip(&shares).zip(&steps) {
            for (cut, _) in cuts(&fabric, message) {
                let (bits, crowd) = load.entry((*step, cut)).or_insert((0u64, 0u64));
                (*bits, *crowd) = (*bits + share, *crowd + 1);
            }
        }
        for ((message, share), step) in all.messages().iter().zip(&shares).zip(&steps) {
            let cuts = cuts(&fabric, message);
            for (cut, carries) in &cuts {
                prop_assert!(load[&(*step, *cut)].0 <= *carries, "{cut:?}");
            }
            let tightest = cuts.iter().map(|(cut, carries)| carries / load[&(*step, *cut)].1);
            prop_assert_eq!(Some(*share), tightest.min());
        }
        let busiest = load.iter().filter(|((_, (kind, _)), _)| ["out", "in"].contains(kind));
        let busiest = busiest.map(|(_, (_, crowd))| *crowd).max().unwrap_or(0);
        prop_assert_eq!(u64::from(most_concurrent(&fabric, &all)), busiest);
    }
}

/// The set-up of McClure et al. (2025): queues of eight packets, four of which two packets need not share.
const STUDY: &str = r#"
[fabric]
topology = "fat-tree"
k = 8
delay = "1us"
nic = { mtu = "4000B", header = "64B", ack = "64B" }
switch = { buffer_kind = "per-port", buffer = "32768B", ecn = false, pfc = false }
[workload]
pattern = "permutation"
size = "100KB"
[transport]
congestion = "fixed-rate"
rate = "fair"
recovery = "tcp"
subflows = "auto"
[balance]
scheme = "spray"
"#;

fn pacing(overrides: &[(&str, &str)]) -> weft_sim::Pacing {
    let experiment = settled(STUDY, overrides);
    let traffic = experiment.traffic(1).unwrap();
    experiment.run_config(&traffic, Failures::default(), 1).pacing.clone()
}

#[test]
fn as_many_subflows_as_the_study_s_equation_wants() {
    let subflows = |set: &[(&str, &str)]| pacing(set).subflows;
    assert_eq!(subflows(&[]), 11);
    assert_eq!(subflows(&[("transport.dup_acks", "6")]), 6);
    assert_eq!(subflows(&[("transport.dup_acks", "32")]), 1);
    // The more flows a host has, the further apart the packets of each.
    assert_eq!(subflows(&[("workload.count", "2")]), 6);
    assert_eq!(subflows(&[("workload.count", "10")]), 2);
    assert_eq!(subflows(&[("workload.count", "11")]), 1);
    assert_eq!(subflows(&[("workload.pattern", "all-to-all")]), 1);
    // Twelve times the queue.
    assert_eq!(subflows(&[("fabric.switch.buffer", "400KB")]), (98u32 * 4).div_ceil(3));
    // Two tiers: 2 queues; under one leaf none.
    let spine = [
        ("fabric.topology", "leaf-spine"),
        ("fabric.leaves", "4"),
        ("fabric.spines", "4"),
        ("fabric.hosts_per_leaf", "4"),
    ];
    assert_eq!(subflows(&spine), 6);
    // A NACK is a duplicate acknowledgement with a threshold of one.
    assert_eq!(subflows(&[("transport.recovery", "go-back-n")]), 32);
    for blind in ["coding", "selective-repeat", "trim"] {
        assert_eq!(subflows(&[("transport.recovery", blind)]), 1, "{blind}");
    }
    assert_eq!(subflows(&[("transport.subflows", "5")]), 5);
}

#[test]
fn rates_are_shares_of_what_they_are_told() {
    let first = |set: &[(&str, &str)]| match pacing(set).rates {
        Rates::Line => None,
        Rates::Same(rate) => Some(rate),
        Rates::Each(rates) => Some(rates[MessageId(0)]),
    };
    assert_eq!(first(&[]), Some(Rate::gbps(100)));
    assert_eq!(first(&[("transport.rate_coefficient", "0.85")]), Some(Rate::gbps(85)));
    assert_eq!(first(&[("workload.count", "4")]), Some(Rate::gbps(25)));
    let fixed = [("transport.rate", "10Gbps"), ("transport.rate_coefficient", "1.5")];
    assert_eq!(first(&fixed), Some(Rate::gbps(15)));
    let line = ("transport.rate", "line");
    assert_eq!(first(&[line, ("workload.count", "4")]), Some(Rate::gbps(100)));
    assert_eq!(first(&[line, ("transport.rate_coefficient", "0.5")]), Some(Rate::gbps(50)));
    // Windows say themselves how fast.
    for window in ["dctcp", "swift"] {
        assert_eq!(first(&[("transport.congestion", window)]), None);
    }
}

#[test]
fn what_else_pacing_is_told() {
    let usual = pacing(&[]);
    assert_eq!((usual.start_gaps, usual.gap_jitter, usual.desynchronise), (0.0, 0.0, true));
    let told = pacing(&[("transport.start_gaps", "1.0"), ("transport.gap_jitter", "0.1")]);
    assert_eq!((told.start_gaps, told.gap_jitter, told.desynchronise), (1.0, 0.1, true));
}
