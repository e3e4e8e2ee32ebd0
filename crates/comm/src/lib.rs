//! One-way channels between processes, each over several paths that a load balancer chooses: what a
//! collective library needs of a network.
//!
//! An [`Endpoint`] is one NIC of one process. It listens under a [`Handle`], which the application
//! carries to the other side by its own means; there `connect` makes the sending half of a channel
//! and `try_accept` here the receiving half. Sends and receives match in the order of posting.
//! Nothing blocks: what is not ready yet is asked for again.
//!
//! | module | what it does |
//! |---|---|
//! | [`handle`], [`wire`] | handles, hellos and frames as bytes |
//! | [`half`] | both halves of a channel: what matches what, which frames are out, what has come |
//! | [`stream`] | frames as the bytes of a connection |
//! | `roce` | frames over queue pairs, where there are RDMA NICs |
//! | `engine` | the thread of an endpoint: sockets, lanes that die and come back, the planner |
//! | [`statistics`] | what was counted, by peer and path |
//! | [`notes`] | what happened to a message, where somebody asks |
//!
//! `half`, `stream` and `wire` have no clock and no sockets. Payload is copied by the system alone:
//! it is written from where the sender has it, and read to where the receiver wants it.

mod api;
mod config;
mod copied;
mod engine;
mod error;
pub mod half;
pub mod handle;
mod memory;
pub mod notes;
mod process;
mod queue;
mod request;
mod roce;
mod shared_ports;
mod slab;
pub mod statistics;
pub mod stream;
mod tcp;
mod threads;
pub mod wire;

pub use api::{
    Buffer, Connecting, Endpoint, GpuMemory, Listener, RecvChannel, Region, Request, SendChannel,
    Sizes,
};
pub use config::{Backend, Checksum, EndpointConfig, Hint, PathPlan};
pub use error::CommError;
pub use handle::{HANDLE, Handle};
pub use memory::Span;
pub use notes::Notes;
pub use process::Process;
pub use roce::gpu::GpuAccess;
pub use shared_ports::SharedPorts;
pub use statistics::Statistics;
pub use tcp::try_congestion;

/// Most buffers of one receive.
pub const MOST_BUFFERS: usize = 8;
/// Requests that a channel holds at a time, in receives: of sends [`MOST_BUFFERS`] times as many.
pub const MOST_REQUESTS: usize = 32;
