//! Congestion control and loss recovery, as state machines without clock or I/O.
//!
//! | module | what it holds |
//! |---|---|
//! | [`congestion`] | how much and how fast: [`congestion::Congestion`] |
//! | [`recovery`] | what to send, acknowledge and resend: [`recovery::Sender`], [`recovery::Receiver`] |
//! | [`SendTimes`] | when packets left, for a host that must tell round-trip times |
//! | [`subflows_against_reordering`] | into how many units of accounting to cut a flow |
//!
//! Both count in packets: a queue pair cuts its payload into packets of the MTU, numbered from
//! zero. A host drives one of each per queue pair:
//!
//! ```text
//! send:      recovery.has_work() and recovery.in_flight() < congestion.window()  -> recovery.send(now)
//! feedback:  recovery.on_ack(..) -> newly acknowledged  -> congestion.on_ack(newly, marked, ..)
//! time:      recovery.deadline(rto) passed              -> recovery.on_timer(..) -> congestion.on_loss(..)
//! ```
//!
//! The two axes are enums that know nothing of each other: a host drives both and passes
//! what the one learnt (acknowledged, marked, lost) to the other.

mod accounting;
pub mod congestion;
pub mod recovery;
mod send_times;

pub use accounting::subflows_against_reordering;
pub use congestion::{AckInfo, Congestion, FlowPace, Loss};
pub use recovery::{
    Acknowledged, Arrival, Coding, GoBackN, RECOVERIES, Receiver, RecoveryConfig, RecoveryInfo,
    Reply, Rewind, SelectiveRepeat, Sender, Sent, Tcp, Trim,
};
pub use send_times::SendTimes;

use weft_units::{Rate, Time};

/// Both axes, and the time-out that they share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportConfig {
    /// How much and how fast a queue pair sends.
    pub congestion: CongestionConfig,
    /// How it recovers from loss.
    pub recovery: RecoveryConfig,
    /// Time without progress after which a queue pair (go-back-N) or a packet (selective
    /// repeat) is taken for lost; where TCP's adaptive time-out starts.
    pub rto: Time,
    /// A queue pair that times out again without progress in between waits twice as long, up to
    /// [`MOST_BACKED_OFF`] times `rto` (RFC 6298, section 5.5); else always for `rto`.
    pub backs_off: bool,
}

/// How much longer than at first a queue pair that backs off may wait.
pub const MOST_BACKED_OFF: u64 = 16;

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionConfig {
    /// Always the rate of the flow itself, else `rate`; neither: the NIC's line rate.
    FixedRate {
        /// Of data packets with their headers.
        rate: Option<Rate>,
    },
    /// DCTCP (Alizadeh et al., SIGCOMM 2010), without slow start.
    Dctcp(DctcpConfig),
    /// DCTCP as a rate without a window, as the code behind Ethereal (2025) has it.
    DctcpRate(DctcpRateConfig),
    /// DCQCN (Zhu et al., SIGCOMM 2015).
    Dcqcn(DcqcnConfig),
    /// Swift (Kumar et al., SIGCOMM 2020), the window of the fabric.
    Swift(SwiftConfig),
    /// That of MP-RDMA (Lu et al., NSDI 2018), without slow start.
    MpRdma(MpRdmaConfig),
}

impl CongestionConfig {
    /// Most payload that a queue pair has under way before it has learnt anything, where that is
    /// bounded.
    pub fn initial_window(&self) -> Option<u64> {
        match self {
            CongestionConfig::FixedRate { .. }
            | CongestionConfig::DctcpRate(_)
            | CongestionConfig::Dcqcn(_) => None,
            CongestionConfig::Dctcp(config) => Some(config.initial_window),
            CongestionConfig::Swift(config) => Some(config.initial_window),
            CongestionConfig::MpRdma(config) => Some(config.initial_window),
        }
    }
    /// Whether it says how fast a queue pair sends, rather than how much it may have out.
    pub fn sets_rate(&self) -> bool {
        match self {
            CongestionConfig::FixedRate { .. }
            | CongestionConfig::DctcpRate(_)
            | CongestionConfig::Dcqcn(_) => true,
            CongestionConfig::Dctcp(_)
            | CongestionConfig::Swift(_)
            | CongestionConfig::MpRdma(_) => false,
        }
    }
}

/// What DCTCP is told. Windows in payload bytes; a queue pair may always have one packet out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpConfig {
    /// Gain of the moving average of marked bytes, `g`.
    pub gain: f64,
    /// Where the average starts.
    pub initial_alpha: f64,
    /// Window at the start, and at most after a time-out.
    pub initial_window: u64,
    /// The window never grows beyond.
    pub max_window: u64,
}

/// What DCTCP is told where it sets a rate. Rates are those of packets with their headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpRateConfig {
    /// Gain of the moving average of marked packets, `g`.
    pub gain: f64,
    /// Where the average starts.
    pub initial_alpha: f64,
    /// Where the rate starts, and its end.
    pub line: Rate,
    /// The rate never falls below.
    pub least: Rate,
    /// What it grows by in a round trip without a cut.
    pub increase: Rate,
}

/// What DCQCN is told; names in quotes are the paper's. Rates are those of packets with their
/// headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnConfig {
    /// At least so long from one CNP to the next, and so from one cut to the next; "N".
    pub cnp_interval: Time,
    /// Without a CNP `alpha` decays each time that this has passed. More than zero.
    pub alpha_timer: Time,
    /// The rate is raised each time that this has passed since the last cut, "T". More than zero.
    pub increase_timer: Time,
    /// The rate is also raised each time that so many bytes have left since then, "B"; more than
    /// zero. `None`: the timer alone counts.
    pub byte_counter: Option<u64>,
    /// How often timer or byte counter run out before the target grows, "F".
    pub fast_recovery: u32,
    /// What the target then grows by each time, "R_AI".
    pub increase: Rate,
    /// What it grows by in the last phase, "R_HAI".
    pub hyper_increase: Rate,
    /// How fast `alpha` moves, "g".
    pub gain: f64,
    /// Every cut makes the rate the target; otherwise only one that follows an increase.
    pub clamp: bool,
    /// A gap that the receiver reports counts as a mark.
    pub gaps: bool,
    /// Where the rate starts, and its end.
    pub line: Rate,
    /// The rate never falls below.
    pub least: Rate,
}

impl DcqcnConfig {
    /// The paper's (section 5), for `line`. It names neither "R_HAI" nor the lowest rate; these
    /// are those of the code behind ConWeave at 100 Gb/s.
    pub const fn published(line: Rate) -> DcqcnConfig {
        DcqcnConfig {
            cnp_interval: Time::us(50),
            alpha_timer: Time::us(55),
            increase_timer: Time::us(55),
            byte_counter: Some(10_000_000),
            fast_recovery: 5,
            increase: Rate::bps(40_000_000),
            hyper_increase: Rate::bps(100_000_000),
            gain: 1.0 / 256.0,
            clamp: true,
            gaps: false,
            line,
            least: Rate::bps(100_000_000),
        }
    }
}

/// What MP-RDMA's congestion control is told. Windows in payload bytes; a queue pair may always
/// have one packet out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpRdmaConfig {
    /// Window at the start.
    pub initial_window: u64,
    /// The window never grows beyond.
    pub max_window: u64,
    /// A path is too slow if what it carried comes back by more than this many packets behind the
    /// latest that has; the paper's delta, 32 there.
    pub reordering: u32,
}

/// What Swift is told. Windows in payload bytes, but for the two ends of flow scaling, which the
/// paper gives in packets; names in quotes are the paper's. "htsim": the public htsim of
/// Broadcom, whose authors marked most of its values as guesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwiftConfig {
    /// Round trip to aim at before the other terms are added, "base target delay".
    /// Default 20 us (htsim).
    pub base_target: Time,
    /// Added to the target for every link of the path, one way: topology-based scaling. Default
    /// 3053435 ps (htsim: the base over 6.55).
    pub per_hop: Time,
    /// The most that flow-based scaling adds to the target, "fs_range"; zero: none of it. Default
    /// 100 us (htsim: five times the base).
    pub scaling_range: Time,
    /// Packets in the window at and below which flow scaling adds all of its range,
    /// "fs_min_cwnd". More than zero. Default 0.1 (htsim).
    pub scaling_min: f64,
    /// Packets in the window from which on it adds nothing, "fs_max_cwnd". More than
    /// `scaling_min`. Default 100 (htsim).
    pub scaling_max: f64,
    /// Packets by which the window grows a round trip below the target, "ai". Default 1 (htsim).
    pub increase: f64,
    /// How much of the relative excess over the target is cut, "beta", 0 to 1. Default 0.8
    /// (htsim).
    pub decrease: f64,
    /// The largest share of the window that one cut takes, and what a loss takes, "max_mdf",
    /// 0 to 1. Default 0.5 (htsim).
    pub max_cut: f64,
    /// Time-outs without an acknowledgement between them, all within a round trip counted as
    /// one, after which the window falls to its least, "RETX_RESET_THRESHOLD". Default 5 (htsim).
    pub reset_after: u32,
    /// The window never falls below, "min_cwnd"; a byte at least. Default 10 bytes (htsim).
    pub min_window: u64,
    /// Window at the start. No default here: like DCTCP it should start at a bandwidth-delay
    /// product, which only the fabric knows.
    pub initial_window: u64,
    /// The window never grows beyond, "max_cwnd"; a packet at least. No default here either
    /// (htsim: 1000 packets).
    pub max_window: u64,
}

impl SwiftConfig {
    /// All defaults, with these windows at the start and at most, in payload bytes.
    pub const fn with_windows(initial_window: u64, max_window: u64) -> SwiftConfig {
        SwiftConfig {
            base_target: Time::us(20),
            per_hop: Time::ps(3_053_435),
            scaling_range: Time::us(100),
            scaling_min: 0.1,
            scaling_max: 100.0,
            increase: 1.0,
            decrease: 0.8,
            max_cut: 0.5,
            reset_after: 5,
            min_window: 10,
            initial_window,
            max_window,
        }
    }
}
