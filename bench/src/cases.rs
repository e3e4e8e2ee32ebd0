//! The cases: what is simulated, and how many packet-hops that must be by pencil and paper.

use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link};
use weft_sim::{Buffer, EcnConfig, PacketConfig, PfcConfig, ProbeConfig, RunConfig, SwitchConfig};
use weft_transport::{CongestionConfig, DctcpConfig, RecoveryConfig, TransportConfig};
use weft_units::{Rate, Time};
use weft_workload::Workload;
use weft_workload::pattern::{AllToAll, Launch, Pattern, Permutation, Scope};

/// One thing to time.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    clos: fn() -> Clos,
    pattern: fn() -> Pattern,
    bytes: u64,
    /// Its name; with its usual options.
    scheme: &'static str,
    recovery: RecoveryConfig,
    lossless: bool,
}

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

/// All cases, in the order in which they run.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "permutation-128",
        about: "permutation of 2 MB, 128 hosts (k = 8), DCTCP, host spray",
        clos: || Clos::fat_tree(8, LINK),
        pattern: || Pattern::Permutation(Permutation { count: 1 }),
        bytes: 2_000_000,
        scheme: "spray",
        recovery: RecoveryConfig::SelectiveRepeat,
        lossless: false,
    },
    Case {
        name: "permutation-1024",
        about: "permutation of 2 MB, 1024 hosts (k = 16), DCTCP, host spray",
        clos: || Clos::fat_tree(16, LINK),
        pattern: || Pattern::Permutation(Permutation { count: 1 }),
        bytes: 2_000_000,
        scheme: "spray",
        recovery: RecoveryConfig::SelectiveRepeat,
        lossless: false,
    },
    Case {
        name: "all-to-all-128",
        about: "all-to-all of 200 KB a pair, 128 hosts (k = 8), DCTCP, host spray",
        clos: || Clos::fat_tree(8, LINK),
        pattern: || Pattern::AllToAll(AllToAll { launch: Launch::Successor }),
        bytes: 200_000,
        scheme: "spray",
        recovery: RecoveryConfig::SelectiveRepeat,
        lossless: false,
    },
    Case {
        name: "lossless-permutation-128",
        about: "permutation of 2 MB, 128 hosts (k = 8), DCTCP, ECMP, go-back-N, PFC",
        clos: || Clos::fat_tree(8, LINK),
        pattern: || Pattern::Permutation(Permutation { count: 1 }),
        bytes: 2_000_000,
        scheme: "ecmp",
        recovery: RecoveryConfig::GoBackN,
        lossless: true,
    },
    Case {
        name: "ethereal-256",
        about: "all-to-all of 200 KB a pair, 256 hosts (16 x 16 x 16), 400G, Ethereal, PFC",
        clos: || {
            let link = Link { rate: Rate::gbps(400), delay: Time::ns(500) };
            Clos::leaf_spine(16, 16, 16, link)
        },
        pattern: || Pattern::AllToAll(AllToAll { launch: Launch::Successor }),
        bytes: 200_000,
        scheme: "ethereal",
        recovery: RecoveryConfig::GoBackN,
        lossless: true,
    },
];

/// A fabric and its traffic, built once for all repetitions of a case.
pub(crate) struct Stage {
    pub(crate) fabric: Fabric,
    pub(crate) workload: Workload,
}

const PACKET: PacketConfig = PacketConfig { mtu: 4000, header: 0, ack: 40 };

impl Case {
    pub(crate) fn stage(&self) -> Stage {
        let fabric = Fabric::build(&(self.clos)()).expect("the cases are sound");
        let scope = Scope {
            hosts: fabric.hosts(),
            hosts_per_leaf: fabric.clos().hosts_per_leaf,
            bytes: self.bytes,
            start: Time::ZERO,
            seed: 1,
        };
        let workload = (self.pattern)().generate(&scope).expect("the cases are sound");
        Stage { fabric, workload }
    }

    pub(crate) fn config<'a>(&self, stage: &'a Stage) -> RunConfig<'a> {
        let rtt = stage.fabric.base_rtt(4000, 40);
        let rate = stage.fabric.clos().host_link.rate;
        let bdp = rate.bytes_in(rtt);
        let threshold = rate.bytes_in(Time::us(5));
        let buffer = match self.lossless {
            true => Buffer::Shared { bytes: 32_000_000, alpha: 1.0 },
            false => Buffer::PerPort { bytes: 400_000 },
        };
        RunConfig {
            fabric: &stage.fabric,
            workload: &stage.workload,
            switch: SwitchConfig {
                buffer,
                ecn: Some(EcnConfig { kmin: threshold, kmax: threshold, pmax: 1.0 }),
                pfc: self.lossless.then_some(PfcConfig {
                    alpha: 1.0,
                    reserve: 4096,
                    headroom: None,
                    resume_offset: 8000,
                }),
                control_priority: false,
                same_salt: false,
            },
            packet: PACKET,
            transport: TransportConfig {
                congestion: CongestionConfig::Dctcp(DctcpConfig {
                    gain: 1.0 / 16.0,
                    initial_alpha: 0.0,
                    initial_window: bdp,
                    max_window: 8 * bdp,
                }),
                recovery: self.recovery,
                rto: Time::ms(1),
            },
            balance: BalanceConfig {
                scheme: SchemeConfig::read(self.scheme, &[]).expect("the cases are sound"),
                start_jitter: Time::ZERO,
                random_position: false,
                first_window: bdp,
            },
            probes: ProbeConfig::default(),
            seed: 1,
            stall_after: Time::secs(1),
            force_queues: false,
            audit: false,
        }
    }

    /// Packet-hops of the case if every packet leaves once: each message's packets and as
    /// many acknowledgements, over the links between its hosts.
    pub(crate) fn least_hops(&self, stage: &Stage) -> u64 {
        let messages = stage.workload.messages();
        let hops = messages.iter().map(|message| {
            let packets = message.bytes.div_ceil(u64::from(PACKET.mtu));
            2 * packets * u64::from(stage.fabric.hops(message.src, message.dst))
        });
        hops.sum()
    }
}
