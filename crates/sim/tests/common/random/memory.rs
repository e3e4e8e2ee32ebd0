//! Random switches: memory that drops, trims or pauses, marks, and who goes first.

use super::Setup;
use weft_balance::enforce::{Enforce, HashFunction};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Failures, ReductionConfig};
use weft_sim::ports::pfc_set_aside;
use weft_sim::{Buffer, EcnConfig, MarkAt, PfcConfig, SwitchConfig, TrimConfig, Victim};
use weft_transport::RecoveryConfig;
use weft_trial::prelude::*;

/// What the switches of a random run do when they are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drop, at a buffer for each port: what plain FIFO ports can do.
    PerPort,
    /// Drop, at the dynamic threshold of a shared buffer.
    Shared,
    /// Pause, at the dynamic share of a shared buffer.
    Lossless,
    /// Pause, at a fixed threshold, with a buffer for each port.
    Fixed,
    /// Trim, at a buffer for each port.
    Trim,
}

impl Kind {
    /// All of them.
    pub const ALL: &[Kind] =
        &[Kind::PerPort, Kind::Shared, Kind::Lossless, Kind::Fixed, Kind::Trim];
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
    trim: TrimConfig,
    control_priority: bool,
    mark_control: bool,
    mark: MarkAt,
    whole_packets: bool,
    same_salt: bool,
    hash: Option<HashFunction>,
}

impl Memory {
    /// Whether a port holds a few packets only.
    pub fn is_tiny(&self) -> bool {
        self.packets < 4
    }
    /// The switch of a run whose fabric and packets are known.
    pub fn config(&self, setup: &Setup, kind: Kind) -> SwitchConfig {
        // TCP may send all again after a loss: with room for a packet or two it takes for ever.
        let is_tcp = matches!(setup.transport.recovery, RecoveryConfig::Tcp(_));
        let packets = self.packets.max(if is_tcp { 8 } else { 1 });
        let bytes = packets * u64::from(setup.packet.mtu + setup.packet.header);
        let pfc = PfcConfig {
            threshold: (kind == Kind::Fixed).then_some(bytes),
            alpha: self.pfc_alpha,
            reserve: self.reserve,
            headroom: None,
            resume_offset: self.resume_offset,
        };
        let aside = pfc_set_aside(&setup.fabric, &Failures::default(), &setup.packet, &pfc);
        let buffer = match kind {
            Kind::PerPort | Kind::Fixed | Kind::Trim => Buffer::PerPort { bytes },
            // Twice, so that an empty buffer takes a packet for the smallest alpha too.
            Kind::Shared => Buffer::Shared { bytes: 2 * bytes, alpha: self.alpha },
            Kind::Lossless => {
                Buffer::Shared { bytes: aside + (packets - 1) * 500, alpha: self.alpha }
            }
        };
        let pauses = matches!(kind, Kind::Lossless | Kind::Fixed);
        SwitchConfig {
            buffer,
            ecn: self.ecn,
            mark: self.mark,
            trim: (kind == Kind::Trim).then_some(self.trim),
            pfc: pauses.then_some(pfc),
            whole_packets: self.whole_packets,
            mark_control: self.mark_control,
            mark_last_hop: true,
            control_priority: self.control_priority && kind != Kind::PerPort,
            same_salt: self.same_salt,
            hash: self.hash_for(&setup.balance.scheme),
            reduction: ReductionConfig::USUAL,
        }
    }
    /// Leaves with a state know no flows under a hash over addresses; who chooses ports by a hash
    /// must know one.
    fn hash_for(&self, scheme: &SchemeConfig) -> Option<HashFunction> {
        match scheme.enforce() {
            _ if !scheme.info().tor.is_none() => None,
            Some(Enforce::Hash | Enforce::Discovered) => {
                Some(self.hash.unwrap_or(HashFunction::Crc32))
            }
            _ => self.hash,
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
    let flags: [bool; 4] = [false; 4];
    let hash = prop::sample::select(&HashFunction::NAMED).prop_map(|(_, function)| function);
    let mark = prop_oneof![3 => Just(MarkAt::Enqueue), 1 => Just(MarkAt::Dequeue)];
    let flags = (flags.map(|_| any::<bool>()), mark, prop::option::weighted(0.2, hash));
    (packets, alphas, ecn, pfc, trim(), flags).prop_map(
        |(
            packets,
            (alpha, pfc_alpha),
            ecn,
            (reserve, resume_offset),
            trim,
            (flags, mark, hash),
        )| {
            let [control_priority, mark_control, same_salt, whole_packets] = flags;
            Memory {
                packets,
                alpha,
                ecn,
                pfc_alpha,
                reserve,
                resume_offset,
                trim,
                control_priority,
                mark_control,
                mark,
                whole_packets,
                same_salt,
                hash,
            }
        },
    )
}

fn trim() -> impl Strategy<Value = TrimConfig> {
    // Large headers leave little of a link for data.
    let size = prop_oneof![1 => Just(None), 1 => (1u16..600).prop_map(Some), 4 => (1u16..100).prop_map(Some)];
    let queue = prop_oneof![60u64..1000, Just(100_000)];
    let victim = prop::sample::select(&[Victim::Arriving, Victim::Tail, Victim::Either]);
    (size, queue, any::<bool>(), victim).prop_map(|(size, queue, return_to_sender, victim)| {
        TrimConfig { size, queue, return_to_sender, victim }
    })
}
