//! Random small runs for property tests.

pub mod failures;
pub mod memory;
pub mod sending;

use super::{LINK, Setup, dctcp, pattern};
use weft_balance::scheme::{BalanceConfig, Ecmp, SchemeConfig};
use weft_fabric::{Bundle, Clos, FailureKind, Link, Tiers};
use weft_sim::{Buffer, PacketConfig, ProbeConfig, Service};
use weft_transport::{CongestionConfig, RecoveryConfig, Rewind, TransportConfig};
use weft_trial::prelude::*;
use weft_units::{PortId, Rate, SwitchId, Time};
use weft_workload::pattern::{AllToAll, Incast, Launch, Pattern, Permutation, Ring};

pub use memory::{Kind, Memory};

/// Any run of one of `kinds`, on a small fabric.
pub fn setup(kinds: &'static [Kind]) -> impl Strategy<Value = Setup> {
    setup_on(clos(), kinds)
}

/// Any run of one of `kinds` on one of `fabrics`.
pub fn setup_on(
    fabrics: impl Strategy<Value = Clos>,
    kinds: &'static [Kind],
) -> impl Strategy<Value = Setup> {
    let traffic = (fabrics, any_pattern(), 1u64..40_000, packet());
    let sending = (balance(), sending::transport(), sending::pacing());
    let switch = (prop::sample::select(kinds), memory::switch());
    (traffic, sending, switch, failures::failures(), any::<u64>()).prop_map(assemble)
}

/// Whether a run must come to an end: nothing is lost, or there is room for a few packets.
pub fn must_finish(setup: &Setup) -> bool {
    let room = match setup.switch.buffer {
        Buffer::PerPort { bytes } => bytes,
        Buffer::Shared { bytes, .. } => bytes / 2,
    };
    let loses = setup.switch.pfc.is_none() || !setup.failures.is_empty();
    // Who begins anew at every loss may lose something every time.
    let begins_anew = matches!(setup.transport.recovery, RecoveryConfig::GoBackN(config)
        if config.rewind == Rewind::Message);
    let has_room = setup.switch.pfc.is_some() || room >= 8 * setup.packet.largest();
    let in_vain = (loses && begins_anew) || times_out_in_vain(setup) || starves(setup);
    failures::pass_over(&setup.failures) && has_room && !in_vain
}

/// Whether packets may wait at a slow link for longer than a time-out, so that more and more
/// copies of them do.
fn times_out_in_vain(setup: &Setup) -> bool {
    let slow = setup.failures.iter().filter_map(|failure| match failure.kind {
        FailureKind::Degraded { lost } => Some(1.0 - lost),
        _ => None,
    });
    let left = slow.product::<f64>();
    let rates = setup.fabric.ports().iter().map(|port| port.rate.as_bps());
    let slowest = rates.min().unwrap_or(1) as f64 * left;
    let bytes = setup.least_packets() * setup.packet.largest();
    left < 1.0 && 16.0 * bytes as f64 / slowest > setup.transport.rto.as_secs_f64()
}

/// Whether headers, which go before all data, may take whole links.
fn starves(setup: &Setup) -> bool {
    let full = setup.packet.mtu + setup.packet.header;
    let size = |trim: weft_sim::TrimConfig| trim.size.map_or(full, u32::from);
    setup.switch.trim.is_some_and(|trim| 8 * size(trim) > full)
}

type Traffic = (Clos, Pattern, u64, PacketConfig);
type Sending = (BalanceConfig, TransportConfig, sending::PacingChoice);
type Drafts = Vec<failures::Draft>;

/// Messages of a case with TCP.
const MOST_OF_TCP: usize = 2_000;

fn assemble(
    (traffic, sending, switch, failures, seed): (Traffic, Sending, (Kind, Memory), Drafts, u64),
) -> Setup {
    let (clos, traffic, bytes, packet) = traffic;
    let (balance, transport, pacing) = sending;
    // With room for a packet or two much traffic takes for ever.
    let bytes = if switch.1.is_tiny() { bytes.min(4_000) } else { bytes };
    let is_tcp = matches!(transport.recovery, RecoveryConfig::Tcp(_));
    let mut workload = pattern(&clos, &fit(&clos, traffic), bytes);
    if is_tcp && workload.messages().len() > MOST_OF_TCP {
        // Its time-outs double: thousands of messages at once into little room take seconds.
        workload = pattern(&clos, &Pattern::Permutation(Permutation { count: 1 }), bytes);
    }
    let mut setup = Setup { balance, transport, packet, ..Setup::new(clos, workload) };
    if setup.balance.scheme.fits(&setup.fabric).is_err() {
        setup.balance.scheme = Ecmp.into();
    }
    setup.seed = seed;
    setup.service = if seed.is_multiple_of(4) { Service::OldestFirst } else { Service::RoundRobin };
    setup.switch = switch.1.config(&setup, switch.0);
    setup.pacing = pacing.config(setup.workload.messages().len());
    setup.failures = failures.iter().map(|draft| draft.config(&setup.fabric)).collect();
    // Without randomness a few tiny buffers keep losing the same packets for ever; and TCP's
    // time-out doubles six times.
    calm(&mut setup);
    setup.stall_after = match must_finish(&setup) {
        false => Time::ms(3),
        true if is_tcp => Time::ms(400),
        true => Time::ms(10),
    };
    // As many packets as take a second here, all runs of a case together.
    setup.stall_packets = if must_finish(&setup) { 200_000 } else { 5_000 };
    setup.probes = ProbeConfig {
        interval: Some(Time::us(3)),
        ports: vec![PortId(0), PortId(setup.fabric.hosts())],
        switches: vec![SwitchId(0)],
        sent: vec![PortId(0), PortId(setup.fabric.hosts())],
        goodput: true,
    };
    setup
}

/// Who codes never has nothing to send. A window ends that where nothing comes back, and where
/// headers, which go first, would leave nothing of a link.
fn calm(setup: &mut Setup) {
    let is_coded = matches!(setup.transport.recovery, RecoveryConfig::Coding(_));
    let at_a_rate = matches!(setup.transport.congestion, CongestionConfig::FixedRate(_));
    if is_coded && at_a_rate && (setup.switch.trim.is_some() || !must_finish(setup)) {
        setup.transport.congestion = dctcp(20_000, 60_000);
    }
}

/// A ring needs two leaves; elsewhere it becomes a permutation.
fn fit(clos: &Clos, traffic: Pattern) -> Pattern {
    match traffic {
        Pattern::Ring(_) if clos.pods() * clos.leaves_per_pod() < 2 => {
            Pattern::Permutation(Permutation { count: 1 })
        }
        other => other,
    }
}

fn link() -> impl Strategy<Value = Link> {
    let rate = prop::sample::select(&[10u64, 25, 100, 400, 37]);
    (rate, 1u64..2000).prop_map(|(gbps, ns)| Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) })
}

/// Links of one kind everywhere half of the time: then events often coincide.
fn links() -> impl Strategy<Value = [Link; 3]> {
    prop_oneof![Just([LINK; 3]), link().prop_map(|link| [link; 3]), [link(), link(), link()]]
}

pub fn clos() -> impl Strategy<Value = Clos> {
    let two = (1u32..5, 1u32..5).prop_map(|(leaves, spines)| Tiers::Two { leaves, spines });
    let three = (1u32..4, 1u32..3, 1u32..3, 1u32..3).prop_map(
        |(pods, leaves_per_pod, aggs_per_pod, plane)| {
            let cores = aggs_per_pod * plane;
            Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }
        },
    );
    clos_of(prop_oneof![3 => two, 2 => three])
}

/// Fabrics that can be cut into several partitions, few of them evenly.
pub fn wide_clos() -> impl Strategy<Value = Clos> {
    let two = (3u32..10, 1u32..6).prop_map(|(leaves, spines)| Tiers::Two { leaves, spines });
    let three = (3u32..8, 1u32..4, 1u32..4, 1u32..4).prop_map(
        |(pods, leaves_per_pod, aggs_per_pod, plane)| {
            let cores = aggs_per_pod * plane;
            Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }
        },
    );
    clos_of(prop_oneof![two, three])
}

fn clos_of(tiers: impl Strategy<Value = Tiers>) -> impl Strategy<Value = Clos> {
    let counts = (tiers, 2u32..5, 1u32..3, 1u32..3);
    let latencies = prop_oneof![Just((0, 0)), (0u64..600, 0u64..600)];
    (counts, links(), latencies).prop_map(|(counts, [host, leaf, agg], (switch, nic))| {
        let (tiers, hosts_per_leaf, leaf_members, agg_members) = counts;
        Clos {
            tiers,
            hosts_per_leaf,
            host_link: host,
            leaf_bundle: Bundle { link: leaf, members: leaf_members },
            agg_bundle: Bundle { link: agg, members: agg_members },
            switch_latency: Time::ns(switch),
            nic_latency: Time::ns(nic),
        }
    })
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::AllToAll(AllToAll { launch: Launch::Successor, skew: None })),
        Just(Pattern::AllToAll(AllToAll { launch: Launch::SameRank { start: 0 }, skew: None })),
        (1u32..4).prop_map(|count| Pattern::Permutation(Permutation { count })),
        Just(Pattern::Incast(Incast { senders: None, receiver: 1 })),
        (1u32..4).prop_map(|channels| Pattern::Ring(Ring { channels, cross_rack: true })),
    ]
}

pub fn packet() -> impl Strategy<Value = PacketConfig> {
    let mtu = prop::sample::select(&[256u32, 1000, 1460, 4096]);
    let (header, ack) = (prop::sample::select(&[0u32, 40]), prop::sample::select(&[40u32, 64]));
    (mtu, header, ack).prop_map(|(mtu, header, ack)| PacketConfig { mtu, header, ack })
}

/// All schemes as they are by default, and some that are told otherwise.
pub fn schemes() -> Vec<SchemeConfig> {
    let told: &[(&str, &[(&str, &str)])] = &[
        ("ecmp-adaptive", &[("per", "packet")]),
        ("ecmp-adaptive", &[("threshold", "0.1"), ("levels", "quantised"), ("refresh", "2us")]),
        ("switch-spray-adaptive", &[("levels", "exact"), ("refresh", "300ns")]),
        ("flowlet-adaptive", &[("gap", "300ns"), ("coin", "true"), ("strictly", "true")]),
        ("drill", &[("samples", "1"), ("memory", "2"), ("memory_per", "destination")]),
        ("letflow", &[("gap", "500ns")]),
        ("path-pinning", &[("failover", "hash")]),
        ("ethereal", &[("enforce", "segments")]),
        ("ethereal", &[("enforce", "hash")]),
        ("ethereal", &[("enforce", "discovered")]),
        ("host-flowlets", &[("packets", "3"), ("bad", "0.1")]),
    ];
    let told = told.iter().map(|(name, options)| SchemeConfig::read(name, options).unwrap());
    SchemeConfig::all().into_iter().chain(told).collect()
}

fn balance() -> impl Strategy<Value = BalanceConfig> {
    let jitter = prop_oneof![Just(0), 1u64..20_000];
    (any_of(schemes()), jitter, any::<bool>(), 1000u64..100_000).prop_map(
        |(scheme, jitter, random_position, bdp)| BalanceConfig {
            scheme,
            start_jitter: Time::ns(jitter),
            random_position,
            bdp,
        },
    )
}
