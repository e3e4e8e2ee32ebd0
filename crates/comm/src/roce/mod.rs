//! Payload by RDMA: what a lane has beside its connection where both sides have RoCE.
//!
//! | module | what it does |
//! |---|---|
//! | [`greeting`] | what the two ends of a queue pair must know of each other, as bytes |
//! | [`memory`] | memory that is registered with the devices |
//! | [`tables`] | which memory that is, by address |
//! | [`nic`] | the devices: opened, their completions, new links |
//! | [`link`] | a queue pair: frames posted, frames come |
//! | [`flight`] | which frames of it are where |
//! | [`flush`] | what came is in the memory of a GPU |
//! | [`gpu`] | whether a device reaches memory of GPUs |
//!
//! A lane over RoCE still has its connection. It carries the hello, whose answer connects the queue
//! pair, and what is said until both sides know that they are. A data frame goes by the queue pair: its
//! body is written into the buffer that "clear to send" told of, and its header follows as a message. A
//! queue pair keeps order, so who has the header has the body. Since what receivers say is about frames
//! and groups by number, it may overtake on either way.
//!
//! A queue pair lives and dies with the connection of its lane. When either fails, both are replaced
//! and the lane goes on with the frame that the receiver says it lacks. The receiver ends the old queue
//! pair before it says so: nothing late can be written into memory that is somebody else's by then.
//!
//! Where several NICs are used as one, each has its device. A queue pair is of the device of its lane's NIC at either
//! end. Receivers tell a key of each device for each buffer ([`Slot`](crate::wire::Slot)), and in their answer which
//! of their devices a queue pair ends at.
//!
//! The UDP source port, which is the path, is in the flow label with which both ends are connected, so
//! that acknowledgements go back the way that packets came.

mod flight;
mod flush;
pub(crate) mod gpu;
pub(crate) mod greeting;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod nic;
mod tables;

pub(crate) use flush::{Flusher, LoopBack};
pub(crate) use link::Link;
pub(crate) use memory::{Memory, Regions};
pub(crate) use nic::{Nic, Nics};
pub(crate) use tables::Keys;
