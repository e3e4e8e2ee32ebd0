//! Congestion control and loss recovery, as state machines without clock or I/O.
//!
//! | module | what it holds |
//! |---|---|
//! | [`congestion`] | how much and how fast: [`congestion::Congestion`] |
//! | [`recovery`] | what to send, acknowledge and resend: [`recovery::Sender`], [`recovery::Receiver`] |
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

pub mod congestion;
pub mod recovery;

pub use congestion::{Congestion, Loss};
pub use recovery::{Acknowledged, Arrival, Receiver, Reply, Sender, Sent};

use weft_units::{Rate, Time};

/// Both axes, and the time-out that they share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportConfig {
    /// How much and how fast a queue pair sends.
    pub congestion: CongestionConfig,
    /// How it recovers from loss.
    pub recovery: RecoveryConfig,
    /// Time without progress after which a queue pair (go-back-N) or a packet (selective
    /// repeat) is taken for lost.
    pub rto: Time,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionConfig {
    /// Always `rate`; `None`: the NIC's line rate.
    FixedRate {
        /// Of data packets with their headers.
        rate: Option<Rate>,
    },
    /// DCTCP (Alizadeh et al., SIGCOMM 2010), without slow start.
    Dctcp(DctcpConfig),
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

/// Loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryConfig {
    /// RoCE: one NACK a gap, resend everything from there; nothing is kept out of order.
    GoBackN,
    /// Reorder buffer at the receiver, a timer for every packet at the sender, no NACKs.
    SelectiveRepeat,
}
