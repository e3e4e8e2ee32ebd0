//! Output ports: when a packet leaves, and whether it is marked, held back or dropped.
//!
//! Two kinds that give the same run wherever both can express it: [`FifoPorts`] know a
//! packet's departure when it arrives and need one event a hop; [`QueuePorts`] hold packets,
//! as shared buffers, PFC and priorities demand, and need two.
//!
//! A queue is measured in bytes still to be put on the wire, the rest of the packet in
//! service included; or all of that packet, if so configured.

mod commons;
mod fifo;
mod interface;
mod limits;
mod queued;
mod record;
mod shared;
mod whole_packets;

pub use fifo::FifoPorts;
pub use interface::{Ports, Ready, Window};
pub use queued::QueuePorts;
pub use shared::pfc_set_aside;
