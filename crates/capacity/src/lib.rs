//! Whether a fabric can carry a traffic matrix, and if not, which links are too few: appendix A
//! of McClure et al. (2025), put right and for any fabric, failure and matrix.
//!
//! | module | what it holds |
//! |---|---|
//! | [`printed`] | the paper's inequality as printed, and what is wrong with it |
//! | [`flow`] | [`FlowNetwork`]: maximum flow and minimum cut between two nodes, exact |
//! | [`demands`] | [`Demands`]: traffic matrices |
//! | [`verdict`] | [`carries`]: the largest share of all demands that fits at once |
//! | `network` | the fabric with bundles as one link, distances, loads |
//! | `cuts` | cuts that are worth a look |
//! | `classes` | leaves and cores that are interchangeable |
//! | `program` | the linear program, whose solution is a routing and prices of edges |
//! | `routing` | a routing, and the loads that it puts on edges |
//!
//! What is exact. Demands are rates that may be split at will over all shortest up-down paths,
//! as an ideal spray does; queues, bursts and headers are not looked at. Carrying several
//! demands at once is a multi-commodity flow, where the capacity of every cut may suffice and
//! the whole still not fit. So the answer comes as an interval with two proofs: a routing that
//! carries the lower end, and links whose capacity, weighted, is less than anything above the
//! upper end needs. The interior-point solver only finds them; both are evaluated apart from
//! it, the upper end in integers. The ends lie within about one part in 10^7 of each other up
//! to 128 hosts for any traffic (a tenth of a second) and 1024 for uniform traffic (a second);
//! beyond that, and in a web page, the program is not solved, and cuts and a proportional routing leave a wider
//! interval, within which the answer is [`Answer::Borderline`].

mod classes;
mod cuts;
pub mod demands;
pub mod flow;
mod network;
pub mod printed;
#[cfg(not(target_family = "wasm"))]
mod program;
mod routing;
pub mod verdict;

pub use cuts::{SparseCut, sparsest_cuts};
pub use demands::Demands;
pub use flow::FlowNetwork;
pub use printed::{printed_inequality, uplinks_needed};
pub use verdict::{Answer, Bottleneck, Verdict, WeightedLink, carries};
