//! What can be computed of a scheme without simulating it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`normal`] | quantiles of the normal distribution, far out in the tail |
//! | [`paralet`] | ParaLet's expected slowdown, and how to choose m and S (ParaLet 2024) |
//! | [`path_shares`] | shares of paths that load unequal links alike |
//! | [`steps`] | a job as sets of messages that are sent side by side |
//! | [`mod@assign`] | which way every subflow of a step takes, by the planners that hosts run |
//! | [`loads`] | what links carry in a step, and the least that the busiest one can |
//! | [`network`] | what links carry now, and how switches choose |
//!
//! Invariant: functions of their arguments, the same on every platform (`libm`); no fabric is
//! simulated and no file is read. What simulation makes of these numbers is in
//! `experiments/paralet-2024`.

pub mod assign;
pub mod loads;
pub mod network;
pub mod normal;
pub mod paralet;
pub mod path_shares;
pub mod steps;

pub use assign::{Hosts, Placed, Unreachable, assign};
pub use loads::{Bound, Busiest, Loads};
pub use network::{Hashes, PlannedFabric, RoutedPath};
pub use path_shares::PathShares;
pub use steps::{Step, Transfer};
