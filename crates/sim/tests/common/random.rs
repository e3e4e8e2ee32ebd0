//! Random small runs for property tests.

use super::{LINK, Setup, dctcp, pattern};
use proptest::prelude::*;
use weft_balance::scheme::{BalanceConfig, Ecmp, SCHEMES, SchemeConfig};
use weft_fabric::{Bundle, Clos, Link, Tiers};
use weft_sim::ports::pfc_set_aside;
use weft_sim::{Buffer, EcnConfig, PacketConfig, PfcConfig, ProbeConfig, SwitchConfig};
use weft_transport::{CongestionConfig, RecoveryConfig, TransportConfig};
use weft_units::{PortId, Rate, SwitchId, Time};
use weft_workload::pattern::{AllToAll, Incast, Launch, Pattern, Permutation, Ring};

/// What the switches of a random run do when they are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drop, at a buffer for each port: what plain FIFO ports can do.
    PerPort,
    /// Drop, at the dynamic threshold of a shared buffer.
    Shared,
    /// Pause.
    Lossless,
}

/// Any run of one of `kinds`, on a small fabric.
pub fn setup(kinds: &'static [Kind]) -> impl Strategy<Value = Setup> {
    setup_on(clos(), kinds)
}

/// Any run of one of `kinds` on one of `fabrics`.
pub fn setup_on(
    fabrics: impl Strategy<Value = Clos>,
    kinds: &'static [Kind],
) -> impl Strategy<Value = Setup> {
    let parts = (fabrics, any_pattern(), 1u64..40_000, packet(), balance(), transport());
    (parts, prop::sample::select(kinds), switch(), any::<u64>()).prop_map(assemble)
}

/// Whether a run must come to an end: nothing is lost, or there is room for a few packets.
pub fn must_finish(setup: &Setup) -> bool {
    let room = match setup.switch.buffer {
        Buffer::PerPort { bytes } => bytes,
        Buffer::Shared { bytes, .. } => bytes / 2,
    };
    setup.switch.pfc.is_some() || room >= 8 * setup.packet.largest()
}

type Parts = (Clos, Pattern, u64, PacketConfig, BalanceConfig, TransportConfig);

fn assemble((parts, kind, switch, seed): (Parts, Kind, Memory, u64)) -> Setup {
    let (clos, traffic, bytes, packet, balance, transport) = parts;
    let workload = pattern(&clos, &fit(&clos, traffic), bytes);
    let mut setup = Setup { balance, transport, packet, ..Setup::new(clos, workload) };
    if setup.balance.scheme.needs_path_ids() && setup.fabric.check_path_ids().is_err() {
        setup.balance.scheme = Ecmp.into();
    }
    setup.seed = seed;
    // Without randomness a few tiny buffers keep losing the same packets for ever.
    setup.stall_after = Time::ms(20);
    setup.switch = switch.config(&setup, kind);
    setup.probes = ProbeConfig {
        interval: Some(Time::us(3)),
        ports: vec![PortId(0), PortId(setup.fabric.hosts())],
        switches: vec![SwitchId(0)],
    };
    setup
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

/// Fabrics that can be cut into several domains, few of them evenly.
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
        Just(Pattern::AllToAll(AllToAll { launch: Launch::Successor })),
        Just(Pattern::AllToAll(AllToAll { launch: Launch::SameRank { start: 0 } })),
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

fn balance() -> impl Strategy<Value = BalanceConfig> {
    let jitter = prop_oneof![Just(0), 1u64..20_000];
    (0..SCHEMES.len(), jitter, any::<bool>(), 1000u64..100_000).prop_map(
        |(scheme, jitter, random_position, first_window)| BalanceConfig {
            scheme: SchemeConfig::all()[scheme].clone(),
            start_jitter: Time::ns(jitter),
            random_position,
            first_window,
        },
    )
}

fn transport() -> impl Strategy<Value = TransportConfig> {
    let congestion = prop_oneof![
        4 => (1000u64..100_000, 1000u64..300_000).prop_map(|(first, max)| dctcp(first, max)),
        1 => Just(CongestionConfig::FixedRate { rate: None }),
        1 => prop::sample::select(&[3u64, 10, 50])
            .prop_map(|gbps| CongestionConfig::FixedRate { rate: Some(Rate::gbps(gbps)) }),
    ];
    let recovery =
        prop::sample::select(&[RecoveryConfig::GO_BACK_N, RecoveryConfig::SELECTIVE_REPEAT]);
    let rto = prop_oneof![20u64..300, Just(1000)];
    (congestion, recovery, rto).prop_map(|(congestion, recovery, rto)| TransportConfig {
        congestion,
        recovery,
        rto: Time::us(rto),
    })
}

/// Random numbers for the memory of switches, scaled to the packets of a run.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Packets that a port, or the shared part, can hold.
    packets: u64,
    alpha: f64,
    ecn: Option<EcnConfig>,
    pfc_alpha: f64,
    reserve: u64,
    resume_offset: u64,
    control_priority: bool,
    same_salt: bool,
}

impl Memory {
    /// The switch of a run whose fabric and packets are known.
    pub fn config(&self, setup: &Setup, kind: Kind) -> SwitchConfig {
        let bytes = self.packets * u64::from(setup.packet.mtu + setup.packet.header);
        let pfc = PfcConfig {
            threshold: None,
            alpha: self.pfc_alpha,
            reserve: self.reserve,
            headroom: None,
            resume_offset: self.resume_offset,
        };
        let aside = pfc_set_aside(&setup.fabric, &setup.packet, &pfc);
        let buffer = match kind {
            Kind::PerPort => Buffer::PerPort { bytes },
            // Twice, so that an empty buffer takes a packet for the smallest alpha too.
            Kind::Shared => Buffer::Shared { bytes: 2 * bytes, alpha: self.alpha },
            Kind::Lossless => {
                Buffer::Shared { bytes: aside + (self.packets - 1) * 500, alpha: self.alpha }
            }
        };
        SwitchConfig {
            buffer,
            ecn: self.ecn,
            trim: None,
            pfc: (kind == Kind::Lossless).then_some(pfc),
            whole_packets: false,
            mark_control: false,
            control_priority: self.control_priority && kind != Kind::PerPort,
            same_salt: self.same_salt,
        }
    }
}

pub fn switch() -> impl Strategy<Value = Memory> {
    let ecn = prop::option::of(
        (0u64..10_000, 0u64..20_000, 0.0f64..=1.0).prop_map(|(kmin, more, pmax)| EcnConfig {
            kmin,
            kmax: kmin + more,
            pmax,
        }),
    );
    let alphas = (0.5f64..4.0, 0.05f64..4.0);
    let packets = prop_oneof![1u64..4, 1u64..200];
    let pfc = (0u64..6000, 0u64..9000);
    (packets, alphas, ecn, pfc, any::<bool>(), any::<bool>()).prop_map(
        |(
            packets,
            (alpha, pfc_alpha),
            ecn,
            (reserve, resume_offset),
            control_priority,
            same_salt,
        )| {
            Memory {
                packets,
                alpha,
                ecn,
                pfc_alpha,
                reserve,
                resume_offset,
                control_priority,
                same_salt,
            }
        },
    )
}
