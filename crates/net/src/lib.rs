//! Balanced traffic on real sockets: what `balance` plans, sent as UDP datagrams (or over TCP)
//! from the source ports that enforce the plan.
//!
//! Two layers. The lower one has no clock and no sockets, as everything below it:
//!
//! | module | what it does |
//! |---|---|
//! | [`wire`] | datagrams: data and acknowledgements, to bytes and back |
//! | [`ports`] | a route as a UDP source port: segments of the range, or anything where switches hash |
//! | [`flow`] | a subflow at its sender: loss recovery and congestion control of `transport` |
//! | [`sender`] | messages to subflows by the planner, subflows to datagrams, trouble to new routes |
//! | [`messages`] | which subflows a message has, and whether all are answered |
//! | [`receiver`] | datagrams to messages, each byte once; answers |
//! | [`mod@host_job`] | an experiment as what one of its hosts does |
//! | [`script`] | which messages a host posts when |
//! | [`pattern`] | contents that a receiver can check without having seen them |
//! | [`report`] | what a host counted |
//!
//! The upper one, [`io`], is a loop of one thread around them.
//!
//! Loss recovery and congestion control are those of `transport`, as in the simulator. What real
//! sockets cannot do: the queues of Linux mark nothing (no ECN), so that controls which live on marks
//! would know of no congestion; switches trim nothing; and nobody codes payload. [`mod@host_job`] refuses
//! those.
//!
//! Calls go in as `handle_*` with the time as an argument, and what is to be done comes out of
//! `poll_*`. Invariant: every byte of a message is handed to the receiver's [`receiver::Sink`]
//! exactly once, whatever the network loses, repeats or reorders.
//!
//! What this does not do: secure anything, or be kind to other traffic.

pub mod flow;
pub mod host_job;
pub mod io;
pub mod messages;
pub mod pattern;
pub mod ports;
pub mod receiver;
pub mod report;
pub mod script;
pub mod sender;
pub mod wire;

pub use host_job::{HostJob, host_job};
pub use weft_balance::plan::Route;
pub use weft_fabric::PathId;
