//! Runs for which it matters how a fabric is cut: traffic and probes all over it, and messages
//! that wait for what happens elsewhere.

use super::random::Kind;
use super::{LINK, PACKET, Setup, dctcp, message};
use weft_fabric::{
    Bundle, Clos, Direction, Failure, FailureKind, Failures, Groups, Link, LinkChoice, Pick, Tier,
    Tiers,
};
use weft_sim::ports::pfc_set_aside;
use weft_sim::{Buffer, EcnConfig, PfcConfig, ProbeConfig, TrimConfig, Victim};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, PortId, Rate, SwitchId, Time};
use weft_workload::{Dependency, Message, When, Workload};

/// Into how many partitions a fabric can be cut, as the documentation has it: pods, or leaves
/// where there are none, and 64 at most.
pub fn most_partitions(clos: &Clos) -> u32 {
    match clos.tiers {
        Tiers::Two { leaves, .. } => leaves.min(64),
        Tiers::Three { pods, .. } | Tiers::Rails { rails: pods, .. } => pods.min(64),
    }
}

/// Fabrics by name: even and uneven ones, with two and three tiers, with bundles, and with
/// links of several kinds.
pub fn fabrics() -> Vec<(&'static str, Clos)> {
    let three = Tiers::Three { pods: 3, leaves_per_pod: 3, aggs_per_pod: 2, cores: 4 };
    let bundled = Clos {
        leaf_bundle: Bundle { link: LINK, members: 2 },
        agg_bundle: Bundle { link: Link { rate: Rate::gbps(37), ..LINK }, members: 3 },
        switch_latency: Time::ns(300),
        ..Clos::uniform(three, 2, LINK)
    };
    let fast = Link { rate: Rate::gbps(400), delay: Time::ns(700) };
    let uneven = Clos {
        leaf_bundle: Bundle { link: fast, members: 2 },
        nic_latency: Time::ns(200),
        ..Clos::leaf_spine(7, 3, 3, LINK)
    };
    vec![
        ("k = 4", Clos::fat_tree(4, LINK)),
        ("k = 6", Clos::fat_tree(6, LINK)),
        ("k = 8", Clos::fat_tree(8, LINK)),
        ("5 leaves", Clos::leaf_spine(5, 4, 4, LINK)),
        ("7 leaves in bundles", uneven),
        ("3 pods in bundles", bundled),
    ]
}

/// Everybody sends to somebody far away, then a third of all to host 0, each as soon as its own
/// message is sent or the one to it has come; host 0 answers some of them, and at last the
/// hosts pass a token around.
pub fn busy(clos: &Clos, bytes: u64) -> Workload {
    let hosts = clos.hosts();
    let far = |host: u32| (host + hosts / 2 + 1) % hosts;
    let mut workload = Workload::new(hosts);
    for host in 0..hosts {
        workload.push(message(host, far(host), bytes), &[]);
    }
    let mut last = None;
    for host in (1..hosts).step_by(3) {
        let when = if host % 2 == 0 { When::Sent } else { When::Received };
        let on = (0..hosts).find(|other| far(*other) == host).expect("somebody sends to it");
        let on = if when == When::Sent { host } else { on };
        let dependency = Dependency { on: MessageId(on), when };
        last = Some(workload.push(message(host, 0, 2 * bytes), &[dependency]));
        if host % 4 == 1 {
            let answered = Dependency { on: last.expect("just pushed"), when: When::Received };
            workload.push(message(0, host, 500), &[answered]);
        }
    }
    for step in 0..hosts.min(8) {
        let (src, dst) = (step * 7 % hosts, (step + 1) * 7 % hosts);
        let when = if step % 3 == 0 { When::Sent } else { When::Received };
        let earlier = last.map(|on| Dependency { on, when });
        last = Some(workload.push(message(src, dst, 1500), earlier.as_slice()));
    }
    workload
}

/// [`busy`] on `clos`, with small memories that drop, mark or pause, random starts, and probes.
pub fn loaded(clos: Clos, kind: Kind) -> Setup {
    let mut setup = Setup::new(clos, busy(&clos, 8_000));
    setup.switch.buffer = match kind {
        Kind::PerPort => Buffer::PerPort { bytes: 12_000 },
        Kind::Trim => {
            let (queue, victim) = (1_000, Victim::Either);
            let trim = TrimConfig { size: Some(64), queue, return_to_sender: false, victim };
            setup.switch.trim = Some(trim);
            setup.failures = failures();
            Buffer::PerPort { bytes: 4_000 }
        }
        Kind::Fixed => {
            let threshold = Some(2_000);
            let (alpha, reserve, headroom) = (1.0, 0, None);
            let pfc = PfcConfig { threshold, alpha, reserve, headroom, resume_offset: 1000 };
            setup.switch.pfc = Some(pfc);
            setup.failures = failures();
            Buffer::PerPort { bytes: 2_000 }
        }
        Kind::Shared => Buffer::Shared { bytes: 30_000, alpha: 0.5 },
        Kind::Lossless => {
            let pfc = PfcConfig {
                threshold: None,
                alpha: 0.5,
                reserve: 0,
                headroom: None,
                resume_offset: 1000,
            };
            setup.switch.pfc = Some(pfc);
            let bytes = 8_000 + pfc_set_aside(&setup.fabric, &Failures::default(), &PACKET, &pfc);
            Buffer::Shared { bytes, alpha: 1.0 }
        }
    };
    setup.switch.ecn = Some(EcnConfig { kmin: 5_000, kmax: 30_000, pmax: 0.5 });
    setup.transport.congestion = dctcp(8_000, 40_000);
    setup.transport.rto = Time::us(30);
    setup.balance.start_jitter = Time::ns(700);
    setup.balance.random_position = true;
    setup.balance.bdp = 3_000;
    watched(setup, Time::ns(1300))
}

/// Links of all leaves that are down for a while, slow for a while, and flaky.
fn failures() -> Vec<Failure> {
    let failure = |kind, start, end| {
        let (tier, pick, groups) = (Tier::LeafUp, Pick::Random, Groups::All);
        let links = LinkChoice::Of {
            tier,
            count: 1,
            groups,
            pick,
            direction: Direction::Both,
            plane: None,
        };
        Failure { links, kind, start: Time::us(start), end: Time::us(end) }
    };
    let (every, length) = (Time::us(5), Time::ns(300));
    vec![
        failure(FailureKind::down(Some(Time::us(1))), 2, 8),
        failure(FailureKind::Degraded { lost: 0.5 }, 3, 20),
        failure(FailureKind::Flaky { every, length, regular: false }, 0, 40),
    ]
}

/// `setup` with probes all over the fabric, not in the order of its ports.
pub fn watched(mut setup: Setup, interval: Time) -> Setup {
    let fabric = &setup.fabric;
    let switches = (0..fabric.switches()).rev().map(SwitchId);
    let firsts = switches.clone().map(|switch| fabric.ports_of(switch).first);
    let nics = (0..fabric.hosts()).step_by(3).map(|host| fabric.nic(HostId(host)));
    let ports: Vec<PortId> = firsts.chain(nics).collect();
    let (interval, switches) = (Some(interval), switches.collect());
    // A few: the longest of all runs is near the most samples that there may be.
    let sent = ports.iter().rev().step_by(ports.len().div_ceil(4)).copied().collect();
    setup.probes = ProbeConfig { interval, ports, switches, sent, goodput: true };
    setup
}

/// Random numbers for a message among others.
#[derive(Clone, Debug)]
pub struct Draft {
    src: u32,
    dst: u32,
    bytes: u64,
    start: Time,
    /// Which earlier messages it waits for, and for which end.
    waits: Vec<(u32, bool)>,
    /// Where it is sent from, if it waits: where the first thing that it waits for is seen, next
    /// door to it, or anywhere.
    near: u32,
}

pub fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let start = prop_oneof![3 => Just(0), 1 => 0u64..20_000].prop_map(Time::ns);
    let waits = prop::collection::vec((any::<u32>(), any::<bool>()), 0..4);
    let draft = (any::<u32>(), any::<u32>(), 1u64..9_000, start, waits, 0u32..4).prop_map(
        |(src, dst, bytes, start, waits, near)| Draft { src, dst, bytes, start, waits, near },
    );
    prop::collection::vec(draft, 1..50)
}

/// The workload that `drafts` describe on the hosts of `clos`.
pub fn drafted(clos: &Clos, drafts: &[Draft]) -> Workload {
    let hosts = clos.hosts();
    let mut workload = Workload::new(hosts);
    for (id, draft) in (0u32..).zip(drafts) {
        let waits = draft.waits.iter().filter(|_| id > 0).map(|(on, sent)| {
            let when = if *sent { When::Sent } else { When::Received };
            Dependency { on: MessageId(on % id), when }
        });
        let waits: Vec<_> = waits.collect();
        let observer = waits.first().map(|first| {
            let Message { src, dst, .. } = workload.messages()[first.on];
            if first.when == When::Sent { src.0 } else { dst.0 }
        });
        let src = match (observer, draft.near) {
            (Some(host), 0) => host,
            (Some(host), 1) => host - host % clos.hosts_per_leaf + draft.src % clos.hosts_per_leaf,
            _ => draft.src % hosts,
        };
        let dst = (src + 1 + draft.dst % (hosts - 1)) % hosts;
        let message = message(src, dst, draft.bytes);
        workload.push(Message { start: draft.start, ..message }, &waits);
    }
    workload
}
