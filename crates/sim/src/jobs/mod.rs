//! Jobs: ranks at work on hosts, and what they make of messages.
//!
//! The ranks of a host are held where the host is. What a rank does follows from what happens at
//! its host alone, so that nothing depends on the partitioning. Ranks of one server talk over its
//! scale-up links: each rank sends one message after the other, at their rate. Switches
//! work for ranks within servers (`servers`) and across (`crate::reduce`).
//!
//! Invariant: whatever happens to a rank at one time is handled by one event of it, in the order
//! in which it was told.

mod expected;
mod ranks;
mod records;
mod relay;
mod servers;
mod state;

pub(crate) use records::join;
pub(crate) use state::Jobs;
