//! What is on the wire at the ports of a switch, and still in its memory.
//!
//! Bytes are in memory until their last bit has left. As long as nobody is paused, it makes no
//! difference whether that is noted then, or later when somebody asks: more room than is noted
//! is no reason to refuse. So it takes no event. While somebody is paused it does, since room
//! is what ends the pause; and where a port is told of the end in any case, it notes it then.

use crate::partition::OutPort;
use weft_units::Time;

/// A packet in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// When its last bit leaves.
    pub(super) at: Time,
    pub(super) port: OutPort,
    /// What to account it to.
    pub(super) ingress: OutPort,
    pub(super) size: u16,
}
