//! The network as data: fabrics, their ports, routes, paths and path ids. A folded Clos is numbered and routed by
//! arithmetic, any other network by tables.
//!
//! | module | what it holds |
//! |---|---|
//! | [`clos`] | [`Clos`]: the description (counts, rates, bundles) and what makes it valid |
//! | [`graph`] | [`Fabric`]: the built graph, numbered ports, next hops, delays |
//! | [`wiring`] | [`Wiring`]: hosts, switches and links of a network of any shape, and their ports |
//! | [`grid`] | [`Grid`]: a torus or mesh, routed by arithmetic |
//! | [`topology`] | dragonfly, torus: networks by their counts |
//! | [`shape`] | [`Shape`]: a Clos or a wiring, before it is built |
//! | [`path`] | [`PathId`] (16 bits, Ethereal), and the paths between two hosts |
//! | [`aggregation`] | [`AggregationTree`]: switches that reduce what hosts send and copy the result to them |
//! | [`failure`] | [`Failures`]: which links lose bandwidth, packets or life, and when |
//! | [`detour`] | [`Detours`]: next hops that avoid links known to be dead |
//! | [`shares`] | [`LinkShares`]: what failures have left of each link, as somebody knows it |
//! | [`weights`] | [`Weights`]: how much of the traffic each next hop should carry by that |
//! | [`even`] | [`PathView::evened`]: weights of all paths together |
//! | [`path_weights`] | [`PathView`], [`PathWeights`]: how much each path should |
//! | [`devices`] | what switches, NICs and servers are told |
//! | [`hash_function`] | the hashes of switches over addresses and ports |
//! | [`import`] | topology files of other simulators, read as a [`Clos`] |
//!
//! Invariants: every link is two ports, each
//! the other's reverse; every route is shortest. In a Clos ports of one next-hop group are consecutive, and every
//! route is up-down, so a path crosses an odd number of switches. Nothing here changes during a run (a failure is data with a time, and new
//! detours are built when routing learns of one), and nothing here decides: choosing among
//! equal next hops is `weft-balance`'s work.

pub mod aggregation;
pub mod clos;
pub mod detour;
pub mod devices;
pub mod even;
mod exceptions;
pub mod failure;
pub mod graph;
pub mod grid;
pub mod hash_function;
mod homes;
pub mod import;
mod layout;
pub mod path;
pub mod path_weights;
pub mod relays;
mod routes;
pub mod shape;
pub mod shares;
pub mod topology;
pub mod weights;
pub mod wiring;

pub use aggregation::{AggregationTree, Branch};
pub use clos::{Bundle, Clos, FabricError, Link, Tiers};
pub use detour::Detours;
pub use devices::{
    Buffer, EcnConfig, MarkAt, PacketConfig, PfcConfig, ReductionConfig, ScaleUp, Service,
    SwitchConfig, TrimConfig, Victim,
};
pub use failure::{
    Detected, Direction, Failure, FailureKind, Failures, Flush, Groups, LinkChoice, Losses, Pick,
    Queued, RateChange, Tier,
};
pub use graph::{Fabric, Node, Port, PortGroup, Ways};
pub use grid::Grid;
pub use hash_function::{FiveTuple, HashFunction, MICROSOFT_KEY};
pub use path::{PathId, PathSet};
pub use path_weights::{PathView, PathWeights};
pub use relays::{Pxn, RelayAt, Relays};
pub use shape::Shape;
pub use shares::LinkShares;
pub use weights::Weights;
pub use wiring::{Cable, Wiring};
