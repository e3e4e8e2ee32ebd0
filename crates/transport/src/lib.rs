//! Congestion control and loss recovery, as state machines without clock or I/O.
//!
//! | module | what it holds |
//! |---|---|
//! | [`congestion`] | how much and how fast: [`congestion::Congestion`] |
//! | [`recovery`] | what to send, acknowledge and resend: [`recovery::Sender`], [`recovery::Receiver`] |
//! | [`Acknowledgement`] | what an acknowledgement does to both |
//! | [`credit`] | what a receiver grants to those who send to it |
//! | [`BackOff`] | time-outs that double while nothing gets through |
//! | [`SendTimes`] | when packets left, for a host that must tell round-trip times |
//! | [`subflows_against_reordering`] | into how many units of accounting to cut a flow |
//!
//! Both count in packets: a queue pair cuts its payload into packets of the MTU, numbered from
//! zero. A host drives one of each per queue pair:
//!
//! ```text
//! send:      recovery.has_work() and recovery.in_flight() < congestion.window()  -> recovery.send(now)
//! feedback:  Acknowledgement: recovery.on_ack(..) -> newly acknowledged -> congestion.on_ack(newly, ..)
//! time:      recovery.deadline(rto) passed              -> recovery.on_timer(..) -> congestion.on_loss(..)
//! ```
//!
//! The two axes are enums that know nothing of each other: a host drives both and passes
//! what the one learnt (acknowledged, marked, lost) to the other.

mod accounting;
mod acknowledgement;
mod back_off;
pub mod congestion;
pub mod credit;
pub mod recovery;
mod send_times;

pub use accounting::subflows_against_reordering;
pub use acknowledgement::Acknowledgement;
pub use back_off::{BackOff, MOST_BACKED_OFF};
pub use congestion::{
    AckInfo, CONGESTION_CONTROLS, Congestion, CongestionConfig, CongestionInfo, DcqcnConfig,
    DctcpConfig, DctcpRateConfig, Delays, FixedRateConfig, FlowPace, Loss, MpRdmaConfig,
    NsccConfig, NsccRcccConfig, PathScale, RcccConfig, SwiftConfig, dctcp_after_round,
};
pub use recovery::{
    Acknowledged, Arrival, Carried, Coding, GoBackN, Probing, RECOVERIES, Receiver, RecoveryConfig,
    RecoveryInfo, Reply, Report, Rewind, SelectiveRepeat, Sender, Sent, Tcp, Trim, Uet, Window,
};
pub use send_times::SendTimes;

use weft_units::Time;

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

/// Why a congestion control and a loss recovery do not go together; `None`: they do.
pub fn unfit(congestion: &CongestionConfig, recovery: &RecoveryConfig) -> Option<String> {
    let needs_room = congestion.grants_credit() && !recovery.reports();
    needs_room.then(|| {
        format!(
            "{} says with every packet how much credit it wants, which {} has no room for",
            congestion.info().name,
            recovery.name()
        )
    })
}
