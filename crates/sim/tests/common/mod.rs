//! What the tests share: a run in a few words, and random runs.

// Every test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

pub mod both;
pub mod compare;
pub mod hurry;
pub mod partitions;
pub mod random;
pub mod switched;

use std::sync::atomic::AtomicBool;
use weft_balance::scheme::{BalanceConfig, Ecmp, SchemeConfig};
use weft_fabric::{
    Clos, Fabric, Failure, FailureKind, Failures, Link, LinkChoice, ReductionConfig,
};
use weft_sim::{
    Buffer, Halt, MarkAt, Outcome, Pacing, PacketConfig, ProbeConfig, RunConfig, Service,
    Simulation, SwitchConfig,
};
use weft_transport::{
    CongestionConfig, DctcpConfig, FixedRateConfig, RecoveryConfig, TransportConfig,
};
use weft_units::{HostId, MessageId, Rate, Time};
use weft_workload::pattern::{AllToAll, Incast, Launch, Pattern, Permutation, Scope};
use weft_workload::{Dependency, Message, When, Workload};

/// 100 Gb/s (80 ps a byte) and 500 ns everywhere.
pub const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
/// Round numbers: a full packet is 1000 bytes on the wire.
pub const PACKET: PacketConfig = PacketConfig { mtu: 960, header: 40, ack: 50 };

/// All that a run is made of, owned. Start from [`Setup::new`] and change what matters.
#[derive(Clone, Debug)]
pub struct Setup {
    pub fabric: Fabric,
    pub workload: Workload,
    pub switch: SwitchConfig,
    pub packet: PacketConfig,
    pub service: Service,
    pub transport: TransportConfig,
    pub balance: BalanceConfig,
    pub pacing: Pacing,
    pub failures: Vec<Failure>,
    pub probes: ProbeConfig,
    pub seed: u64,
    pub stall_after: Time,
    pub stall_packets: u64,
}

impl Setup {
    /// Deep buffers without marks, no congestion control, go-back-N, ECMP.
    pub fn new(clos: Clos, workload: Workload) -> Setup {
        workload.validate().unwrap();
        Setup {
            fabric: Fabric::build(&clos).unwrap(),
            workload,
            switch: SwitchConfig {
                buffer: Buffer::PerPort { bytes: 1 << 30 },
                ecn: None,
                mark: MarkAt::Enqueue,
                trim: None,
                pfc: None,
                whole_packets: false,
                mark_control: false,
                mark_last_hop: true,
                control_priority: false,
                same_salt: false,
                hash: None,
                reduction: ReductionConfig::USUAL,
            },
            packet: PACKET,
            service: Service::RoundRobin,
            transport: TransportConfig {
                congestion: CongestionConfig::FixedRate(FixedRateConfig::default()),
                recovery: RecoveryConfig::GO_BACK_N,
                rto: Time::ms(1),
                backs_off: false,
            },
            balance: BalanceConfig {
                scheme: Ecmp.into(),
                start_jitter: Time::ZERO,
                random_position: false,
                bdp: 100_000,
            },
            pacing: Pacing::default(),
            failures: Vec::new(),
            probes: ProbeConfig::default(),
            seed: 1,
            stall_after: Time::secs(1),
            stall_packets: 1 << 20,
        }
    }
    /// `packets` from one rack to the other over a single spine, with selective repeat.
    pub fn line(packets: u64) -> Setup {
        let bytes = packets * u64::from(PACKET.mtu);
        let mut setup = Setup::new(Clos::leaf_spine(2, 1, 1, LINK), messages(2, &[(0, 1, bytes)]));
        setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        setup
    }
    /// The same under `scheme`, with selective repeat if it is multipath.
    pub fn under(mut self, scheme: impl Into<SchemeConfig>) -> Setup {
        let scheme = scheme.into();
        if scheme.is_multipath() {
            self.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        }
        self.balance.scheme = scheme;
        self
    }
    /// The same with another seed.
    pub fn seeded(mut self, seed: u64) -> Setup {
        self.seed = seed;
        self
    }
    /// The same with a window that is never more nor less than `packets`, marks apart.
    pub fn window(mut self, packets: u32) -> Setup {
        let bytes = u64::from(packets * self.packet.mtu);
        self.transport.congestion = dctcp(bytes, bytes);
        self
    }
    /// The same with `bytes` of buffer at each port.
    pub fn port_buffer(mut self, bytes: u64) -> Setup {
        self.switch.buffer = Buffer::PerPort { bytes };
        self
    }

    /// The same with a link that fails from `start` to `end`.
    pub fn failing(mut self, link: &str, kind: FailureKind, start: Time, end: Time) -> Setup {
        let links = LinkChoice::Named(vec![link.into()]);
        self.failures.push(Failure { links, kind, start, end });
        self
    }

    pub fn config(&self) -> RunConfig<'_> {
        RunConfig {
            fabric: &self.fabric,
            workload: &self.workload,
            job: None,
            switch: self.switch,
            packet: self.packet,
            service: self.service,
            transport: self.transport,
            balance: self.balance.clone(),
            pacing: self.pacing.clone(),
            failures: Failures::new(&self.fabric, &self.failures, self.seed).unwrap(),
            probes: self.probes.clone(),
            seed: self.seed,
            stall_after: self.stall_after,
            stall_packets: self.stall_packets,
            force_queues: false,
            // As often as it can be.
            least_in_window: 0,
            audit: true,
        }
    }
    /// Runs on the ports that it needs, audited.
    pub fn try_run(&self) -> Result<Outcome, Halt> {
        Simulation::new(&self.config()).run(&AtomicBool::new(false))
    }
    /// Runs to the end.
    pub fn run(&self) -> Outcome {
        self.try_run().unwrap()
    }
    /// Runs on real queues.
    pub fn run_queued(&self) -> Result<Outcome, Halt> {
        let config = RunConfig { force_queues: true, ..self.config() };
        Simulation::new(&config).run(&AtomicBool::new(false))
    }
    /// Runs on the ports that it needs, all events in the order of time.
    pub fn run_by_time(&self) -> Result<Outcome, Halt> {
        let config = RunConfig { least_in_window: u32::MAX, ..self.config() };
        Simulation::new(&config).run(&AtomicBool::new(false))
    }
    /// Runs on the ports that it needs and on real queues: messages and ports are the same.
    pub fn run_both(&self) -> Outcome {
        let outcome = self.run();
        let queued = self.run_queued().unwrap();
        assert_eq!((&outcome.messages, &outcome.ports), (&queued.messages, &queued.ports));
        outcome
    }
    /// Runs in `partitions` partitions, or as many as there can be, on `threads` threads.
    pub fn run_in(&self, partitions: u32, threads: u32) -> Result<Outcome, Halt> {
        let config = self.config();
        Simulation::in_partitions(&config, partitions, threads).run(&AtomicBool::new(false))
    }
    /// Runs on real queues and a plain heap.
    pub fn run_oracle(&self) -> Result<Outcome, Halt> {
        let config = RunConfig { force_queues: true, ..self.config() };
        Simulation::oracle(&config).run(&AtomicBool::new(false))
    }
    /// Data packets that the workload needs, each sent once and messages whole.
    pub fn least_packets(&self) -> u64 {
        let messages = self.workload.messages();
        messages.iter().map(|message| message.bytes.div_ceil(u64::from(self.packet.mtu))).sum()
    }
}

/// DCTCP with the usual gain.
pub fn dctcp(initial_window: u64, max_window: u64) -> CongestionConfig {
    CongestionConfig::Dctcp(DctcpConfig {
        gain: 1.0 / 16.0,
        initial_alpha: 1.0,
        initial_window,
        max_window,
    })
}

pub fn ethereal() -> SchemeConfig {
    SchemeConfig::read("ethereal", &[]).unwrap()
}

/// A workload of `(src, dst, bytes)`, all posted at the start.
pub fn messages(hosts: u32, list: &[(u32, u32, u64)]) -> Workload {
    let mut workload = Workload::new(hosts);
    for (src, dst, bytes) in list {
        workload.push(message(*src, *dst, *bytes), &[]);
    }
    workload
}
pub fn message(src: u32, dst: u32, bytes: u64) -> Message {
    Message { src: HostId(src), dst: HostId(dst), bytes, start: Time::ZERO }
}
pub fn sent(on: u32) -> Dependency {
    Dependency { on: MessageId(on), when: When::Sent }
}
pub fn received(on: u32) -> Dependency {
    Dependency { on: MessageId(on), when: When::Received }
}

/// `pattern` of messages of `bytes` over all hosts of `clos`.
pub fn pattern(clos: &Clos, pattern: &Pattern, bytes: u64) -> Workload {
    let (hosts, hosts_per_leaf) = (clos.hosts(), clos.hosts_per_leaf);
    let scope = Scope { hosts, hosts_per_leaf, bytes, start: Time::ZERO, seed: 1 };
    pattern.generate(&scope).unwrap()
}
pub fn all_to_all(clos: &Clos, bytes: u64) -> Workload {
    pattern(clos, &Pattern::AllToAll(AllToAll { launch: Launch::Successor, skew: None }), bytes)
}
pub fn permutation(clos: &Clos, bytes: u64) -> Workload {
    pattern(clos, &Pattern::Permutation(Permutation { count: 1 }), bytes)
}
/// Everybody to host 0.
pub fn incast(clos: &Clos, bytes: u64) -> Workload {
    pattern(clos, &Pattern::Incast(Incast { senders: None, receiver: 0 }), bytes)
}
