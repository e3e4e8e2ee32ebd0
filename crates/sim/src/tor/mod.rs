//! Packets at switches that keep a state (`weft_balance::tor`): tags that packets carry from leaf to
//! leaf, control packets that leaves write to each other, and packets that leaves hold back.
//!
//! A packet that reaches such a switch comes here instead of to `relay`. Its tag lies in [`Tags`]
//! while it is in a partition, and in the mail on its way to another; the packet has its place where
//! its hash key was, which the tag has with it. A control packet is a packet of its own, addressed to the
//! host of the sender and read by the leaf above. What a leaf lets go is handled as if it had just
//! come.
//!
//! Invariant: whoever takes a tagged packet out of the network takes its tag, too.

mod conga;
mod conweave;
mod enter;
mod glb;
mod state;
mod tags;
mod themis;

pub(crate) use state::{Tors, keeps};
pub(crate) use tags::{Tagged, Tags};
