//! Selective repeat for multipath transports (Ethereal (2025) and Ethereal (2024)): the receiver keeps packets
//! in any order and acknowledges each; the sender runs a timer for every packet and resends
//! only what timed out. Under spraying a gap says nothing about a loss, and is not reported.
//!
//! With switches that trim (McClure et al. 2025, section 4; NDP, SIGCOMM 2017) the receiver also learns of
//! packets that lost their payload, and asks for each again; the timers are left for the headers
//! that get lost, and for links that lose packets whole.
//!
//! | module | what it holds |
//! |---|---|
//! | `marks` | a set of packets in a window that moves up, one bit each |
//! | `receiver` | what has come out of order: a set of marks |
//! | `sender` | what was acknowledged out of order: a set of marks; when each packet left |
//! | `late` | what the sender needs once packets are lost |
//! | `nack` | the receiver reports gaps, as NICs do that know one path |
//!
//! A flow that loses nothing is the rule, and there may be many thousands of them. What such
//! a flow needs for an acknowledgement lies in its own few bytes, and the ring of send times is
//! only written: it is read when the timer runs, once a time-out. Whatever loss asks for is
//! allocated when it happens: one row of the lost packets, in order. It is searched by halves; what is put in
//! or taken out moves those behind it, some KB at most.

mod late;
mod marks;
mod nack;
mod receiver;
mod sender;

use super::{Recovery, RecoveryInfo};
use weft_units::{OptionError, Options};

pub(super) use marks::Marks;
pub use nack::SelectiveNack;
pub(super) use receiver::SelectiveReceiver;
pub(super) use sender::SelectiveSender;

/// A reorder buffer, and a timer for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectiveRepeat;

/// The same, made for switches that trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim;

impl Recovery for SelectiveRepeat {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "selective-repeat",
        summary: "reorder buffer at the receiver, a timer for every packet at the sender, no NACKs",
        source: "Ethereal (2024, 2025), for spraying",
        keeps_order: true,
        resends_overtaken: false,
        trims: false,
        rateless: false,
        options: &[],
    };
    type Sender = SelectiveSender;
    type Receiver = SelectiveReceiver;

    fn read(_: &mut Options<'_>) -> Result<SelectiveRepeat, OptionError> {
        Ok(SelectiveRepeat)
    }
    fn sender(&self, packets: u32) -> SelectiveSender {
        SelectiveSender::new(packets)
    }
    fn receiver(&self, packets: u32) -> SelectiveReceiver {
        SelectiveReceiver::new(packets)
    }
}

impl Recovery for Trim {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "trim",
        summary: "switches cut packets down to headers; the receiver asks for each of them again",
        source: "NDP (SIGCOMM 2017); McClure et al. (2025), section 4",
        keeps_order: true,
        resends_overtaken: false,
        trims: true,
        rateless: false,
        options: &[],
    };
    type Sender = SelectiveSender;
    type Receiver = SelectiveReceiver;

    fn read(_: &mut Options<'_>) -> Result<Trim, OptionError> {
        Ok(Trim)
    }
    fn sender(&self, packets: u32) -> SelectiveSender {
        SelectiveSender::new(packets)
    }
    fn receiver(&self, packets: u32) -> SelectiveReceiver {
        SelectiveReceiver::new(packets)
    }
}
