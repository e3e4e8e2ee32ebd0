//! A case set up: fabric, traffic and configuration, and what pencil and paper say of them.

use crate::cases::{Case, Memory, Network};
use std::ops::ControlFlow;
use std::time::Instant;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Fabric, Failures, ReductionConfig};
use weft_sim::{
    Buffer, EcnConfig, JobConfig, MarkAt, Pacing, PacketConfig, PfcConfig, ProbeConfig, Rates,
    RunConfig, ScaleUp, Service, SwitchConfig, TrimConfig, Victim,
};
use weft_transport::{CongestionConfig, DctcpConfig, FixedRateConfig, PathScale, TransportConfig};
use weft_units::{HostId, Rate, Time};
use weft_workload::Workload;
use weft_workload::job::Job;

/// A fabric and its traffic, built once for all repetitions of a case.
pub(crate) struct Stage {
    pub(crate) fabric: Fabric,
    pub(crate) workload: Workload,
    jobs: Vec<Job>,
    /// Every packet has an acknowledgement of its own.
    pub(crate) answers_each: bool,
    /// Seconds that the fabric took.
    pub(crate) fabric_s: f64,
    /// Seconds that fabric and workload took.
    pub(crate) build_s: f64,
}

const PACKET: PacketConfig = PacketConfig { mtu: 4000, header: 0, ack: 40 };

impl Stage {
    pub(crate) fn new(case: &Case) -> Stage {
        let start = Instant::now();
        let fabric = (case.fabric)().expect("the cases are sound");
        let fabric_s = start.elapsed().as_secs_f64();
        let workload = case.traffic.workload(&fabric, case.bytes);
        let jobs = case.traffic.jobs(&fabric, case.bytes);
        let build_s = start.elapsed().as_secs_f64();
        let answers_each = !case.network.recovery.reports();
        Stage { fabric, workload, jobs, answers_each, fabric_s, build_s }
    }

    /// A run of `case`, whose stage this is.
    pub(crate) fn config(&self, case: &Case) -> RunConfig<'_> {
        RunConfig {
            fabric: &self.fabric,
            workload: &self.workload,
            job: (!self.jobs.is_empty()).then(|| self.job()),
            switch: self.switch(&case.network),
            packet: PACKET,
            service: Service::RoundRobin,
            transport: TransportConfig {
                congestion: self.congestion(&case.network),
                recovery: case.network.recovery,
                rto: Time::ms(1),
                backs_off: false,
            },
            balance: BalanceConfig {
                scheme: SchemeConfig::read(case.network.scheme, &[]).expect("the cases are sound"),
                start_jitter: Time::ZERO,
                random_position: false,
                bdp: self.bdp(),
            },
            pacing: self.pacing(&case.network),
            failures: Failures::default(),
            probes: ProbeConfig::default(),
            seed: 1,
            stall_after: Time::secs(1),
            stall_packets: u64::MAX,
            force_queues: false,
            least_in_window: RunConfig::LEAST_IN_WINDOW,
            audit: false,
        }
    }

    /// Every host is a rank, and a server.
    fn job(&self) -> JobConfig<'_> {
        let hosts = self.fabric.hosts();
        JobConfig {
            relays: None,
            jobs: &self.jobs,
            hosts: (0..hosts).map(HostId).collect(),
            servers: (0..hosts).collect(),
            // Nobody uses it.
            scale_up: ScaleUp { rate: Rate::gbps(400), latency: Time::ZERO, cycle: Time(1) },
            pcie: None,
            at_acknowledgement: false,
            each_message: false,
        }
    }

    fn congestion(&self, network: &Network) -> CongestionConfig {
        match network.memory {
            Memory::Deep | Memory::Shared => CongestionConfig::Dctcp(DctcpConfig {
                gain: 1.0 / 16.0,
                initial_alpha: 0.0,
                initial_window: self.bdp(),
                max_window: 8 * self.bdp(),
            }),
            Memory::Trimmed { .. } => {
                let path = PathScale {
                    bdp: self.bdp(),
                    line: self.fabric.line_rate(),
                    round_trip: self.round_trip(),
                    oversubscribed: false,
                };
                CongestionConfig::read("nscc", &[], &path).expect("a control of ours")
            }
            _ => CongestionConfig::FixedRate(FixedRateConfig::default()),
        }
    }

    /// In the study's cases every host sends all its messages at once, each at its share.
    fn pacing(&self, network: &Network) -> Pacing {
        match network.memory {
            Memory::Deep | Memory::Shared | Memory::Trimmed { .. } => Pacing::default(),
            _ => {
                let line = self.fabric.line_rate();
                let messages = self.workload.messages().len() as u64;
                let share = Rate::bps(line.as_bps() * u64::from(self.fabric.hosts()) / messages);
                let rates = Rates::Same(share);
                Pacing { rates, start_gaps: 1.0, ..Pacing::default() }
            }
        }
    }

    fn switch(&self, network: &Network) -> SwitchConfig {
        let threshold = self.fabric.line_rate().bytes_in(Time::us(5));
        let shallow = 8 * u64::from(PACKET.mtu);
        let pfc = PfcConfig {
            threshold: None,
            alpha: 1.0,
            reserve: 4096,
            headroom: None,
            resume_offset: 8000,
        };
        let trimmed = match network.memory {
            Memory::ShallowTrimmed => Some(shallow),
            Memory::Trimmed { .. } => Some(self.bdp()),
            _ => None,
        };
        SwitchConfig {
            buffer: match network.memory {
                Memory::Shared => Buffer::Shared { bytes: 32_000_000, alpha: 1.0 },
                Memory::Deep => Buffer::PerPort { bytes: 400_000 },
                Memory::Trimmed { .. } => Buffer::PerPort { bytes: self.bdp() },
                _ => Buffer::PerPort { bytes: shallow },
            },
            ecn: Some(match network.memory {
                Memory::Trimmed { .. } => {
                    let (kmin, kmax) = (self.bdp() / 5, self.bdp() * 4 / 5);
                    EcnConfig { kmin, kmax, pmax: 1.0 }
                }
                _ => EcnConfig { kmin: threshold, kmax: threshold, pmax: 1.0 },
            }),
            mark: MarkAt::Enqueue,
            trim: trimmed.map(|queue| TrimConfig {
                size: Some(64),
                queue,
                return_to_sender: false,
                victim: Victim::Either,
            }),
            pfc: match network.memory {
                Memory::Shared => Some(pfc),
                Memory::ShallowPaused => Some(PfcConfig { threshold: Some(shallow), ..pfc }),
                _ => None,
            },
            whole_packets: false,
            mark_control: false,
            mark_last_hop: true,
            control_priority: network.memory == (Memory::Trimmed { control_first: true }),
            same_salt: false,
            hash: None,
            reduction: ReductionConfig::USUAL,
        }
    }

    /// Bandwidth-delay product between the farthest hosts, in bytes: the initial window.
    fn bdp(&self) -> u64 {
        self.fabric.line_rate().bytes_in(self.round_trip())
    }

    /// Of a full packet and its acknowledgement between the farthest hosts.
    fn round_trip(&self) -> Time {
        self.fabric.base_rtt(u64::from(PACKET.mtu), u64::from(PACKET.ack))
    }

    /// Packet-hops of the case if every packet leaves once: each message's packets and their
    /// acknowledgements, over the links between its hosts.
    pub(crate) fn least_hops(&self) -> u64 {
        let messages = self.workload.messages();
        let hops = messages.iter().map(|message| {
            let data = packets(message.bytes);
            let answers = if self.answers_each { data } else { 1 };
            (data + answers) * u64::from(self.fabric.hops(message.src, message.dst))
        });
        let mut of_jobs = 0;
        for job in &self.jobs {
            let _ = job.traffic(|one| {
                let hops = self.fabric.hops(HostId(one.src), HostId(one.dst));
                of_jobs += 2 * packets(one.bytes) * one.times * u64::from(hops);
                ControlFlow::Continue(())
            });
        }
        hops.sum::<u64>() + of_jobs
    }

    /// Bytes of memory that the case may take: 100 for each packet in flight (as many as there
    /// are [for certain](Stage::least_in_flight)), 300 for each flow (one a message, and one a rank
    /// of a job, which is the least), 1 KB for each port. The program and the description of the
    /// workload are to fit in there too.
    pub(crate) fn memory_budget(&self) -> u64 {
        let ranks = self.jobs.iter().map(|job| u64::from(job.ranks())).sum::<u64>();
        let flows = self.workload.messages().len() as u64 + ranks;
        let ports = self.fabric.ports().len() as u64;
        100 * self.least_in_flight() + 300 * flows + 1000 * ports
    }

    /// Packets under way, acknowledgements included, one round-trip time after the start: a
    /// lower bound of the peak. Until then a NIC sends at line rate, all its messages in turn,
    /// each until its window or itself is exhausted, and the answer to a packet comes back no
    /// sooner than after the round-trip time to its receiver. All links are taken to be alike.
    pub(crate) fn least_in_flight(&self) -> u64 {
        let first = || {
            let all = self.workload.messages().enumerate();
            all.filter(|(id, _)| self.workload.dependencies(*id).is_empty()).map(|(_, m)| m)
        };
        let mut messages_of = vec![0u32; self.fabric.hosts() as usize];
        first().for_each(|message| messages_of[message.src.0 as usize] += 1);
        let farthest = self.fabric.hops(HostId(0), HostId(self.fabric.hosts() - 1));
        let window = self.bdp() as f64 / f64::from(PACKET.mtu);
        let in_flight = first().map(|message| {
            let way = self.fabric.hops(message.src, message.dst);
            let turns = f64::from(messages_of[message.src.0 as usize]);
            let share = window * f64::from(way) / f64::from(farthest) / turns;
            share.min(packets(message.bytes) as f64)
        });
        in_flight.sum::<f64>() as u64
    }
}

fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(u64::from(PACKET.mtu))
}
