//! The load balancers, as state machines without clock, thread, I/O or global randomness.
//!
//! A scheme acts in up to four places, each with its own small interface:
//!
//! | where | interface | called |
//! |---|---|---|
//! | at the NIC, when messages are posted | [`plan`] | once a message or batch: split, pin, give entropy |
//! | at the flow | [`steer`] | once a packet sent and once a feedback: which entropy or path |
//! | in a switch | [`forward`]; most schemes leave it to the [`hash`] or a path id | once a packet |
//! | in leaves that hold, tag and tell | [`tor`]; few schemes | once a packet, control packet and timer |
//!
//! [`known`] is what planners are told of failures before they begin.
//!
//! [`enforce`] is what schemes share that pin paths: how packets are made to take them on switches
//! that route by path id, by policy or by a known hash.
//!
//! One file a scheme in [`scheme`], and one line in the registry there: `docs/extend/scheme.md`
//! walks through it. Invariant: what a scheme decides is a function of its configuration, the
//! seed and the calls made to it.

pub mod enforce;
pub mod forward;
pub mod hash;
pub mod known;
pub mod plan;
mod registry;
pub mod scheme;
pub mod steer;
pub mod tor;

pub use scheme::{Planner, Steering, Switching};
