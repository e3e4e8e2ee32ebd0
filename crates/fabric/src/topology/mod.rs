//! Networks that are no folded Clos, by their counts: each makes a [`crate::Wiring`].
//!
//! | module | what it is |
//! |---|---|
//! | [`dragonfly`] | groups of switches, each with links to all others, directly or over spines |
//! | [`graph`] | any network, by a list of its links |
//! | [`torus`] | a grid of any dimensions that wraps around |

pub mod dragonfly;
pub mod graph;
pub mod torus;

pub use dragonfly::{Dragonfly, Group};
pub use graph::Graph;
pub use torus::Torus;
