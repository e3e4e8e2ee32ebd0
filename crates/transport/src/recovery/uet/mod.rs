//! Loss recovery of Ultra Ethernet's reliable unordered delivery (UE specification 1.0, section 3.5 on
//! packet delivery; constants as UEC htsim has them).
//!
//! The receiver keeps packets in any order. It acknowledges every so many bytes, and at once what is
//! marked, what it is asked about, and what it had already; each acknowledgement is a [`Report`] with a
//! bitmap. A trimmed packet is asked for again at once. What nothing tells of times out, oldest first.
//! A hole in a bitmap by itself is no loss, since packets take many paths; unless SLEEK is on, which
//! takes it for one when so many packets have come behind the hole that they fill one and a half
//! windows, or when a probe, a packet without data that asks for a report, is answered so soon that what it does not
//! tell of cannot be in a queue. That is for switches that do not trim.
//!
//! What is ours: a packet counts with its own time-out, not with that of the oldest one. A request to
//! acknowledge (RTS) has no number of its own. Where congestion control cuts the window below what is out, and
//! neither was any of that to ask for an acknowledgement nor is it enough bytes for one, a request leaves at once, and
//! what is out is acknowledged one by one: else the sender would wait for a time-out though nothing is lost.

mod probing;
mod receiver;
mod sender;

use super::{Recovery, RecoveryInfo};
use receiver::UetReceiver;
use sender::UetSender;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub use probing::Probing;
pub use sender::Window;

/// Coalesced selective acknowledgements, and NACKs of trimmed packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uet {
    /// Bytes on the wire after which the receiver acknowledges.
    pub threshold: u32,
    /// The sender takes packets for lost when many have come behind them.
    pub sleek: bool,
}

impl Recovery for Uet {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "uet",
        summary: "selective acknowledgements with a bitmap, one for some packets; NACKs of trimmed ones",
        source: "Ultra Ethernet specification 1.0, RUD; UEC htsim",
        keeps_order: true,
        resends_overtaken: false,
        trims: true,
        rateless: false,
        options: &[
            OptionInfo {
                key: "ack_every",
                default: "16384B",
                kind: OptionKind::Size(1, 1 << 24),
                meaning: "bytes, headers included, after which the receiver acknowledges",
            },
            OptionInfo {
                key: "sleek",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "take packets for lost that one and a half windows have overtaken, or that a probe \
                          finds missing (under NSCC); for switches that do not trim",
            },
        ],
    };
    const REPORTS: bool = true;
    /// Boxed, as its receiver, since only one kind may fill the space that each flow has for any.
    type Sender = Box<UetSender>;
    type Receiver = Box<UetReceiver>;

    fn read(options: &mut Options<'_>) -> Result<Uet, OptionError> {
        let threshold = options.size("ack_every")? as u32;
        Ok(Uet { threshold, sleek: options.flag("sleek")? })
    }
    fn report_every(&self) -> u32 {
        self.threshold
    }
    fn sender(&self, packets: u32) -> Box<UetSender> {
        Box::new(UetSender::new(packets, self.sleek))
    }
    fn receiver(&self, packets: u32) -> Box<UetReceiver> {
        Box::new(UetReceiver::new(packets, self.threshold))
    }
}
