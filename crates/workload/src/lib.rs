//! Traffic as a DAG of messages: what the job sends, and what has to happen first.
//!
//! | module | what it holds |
//! |---|---|
//! | [`dag`] | [`Workload`]: messages, start times, dependencies |
//! | [`dependents`] | [`Dependents`]: the same dependencies, read from the other end |
//! | [`job`] | a job at work: what each rank does next |
//! | [`model`] | training iterations from the numbers of a model |
//! | [`pattern`] | generators: all-to-all, permutation, incast, ring, tree |
//! | [`Skew`] | all-to-all with unequal sizes |
//! | [`collective`] | all-reduce and its like, rank by rank and step by step |
//! | [`cm`] | htsim's connection matrices |
//! | [`csv`] | flows as a table |
//! | [`background`] | what other tenants send meanwhile |
//! | [`experts`] | tokens on their way to experts and back |
//! | [`stragglers`] | GPUs that are slower than others |
//! | [`trace`] | Chakra traces and text workloads of real jobs |
//!
//! Invariant: a [`Workload`] that a generator or a reader returns is acyclic, names only hosts
//! below its host count, and holds messages in the order in which a source launches them.
//! [`Workload::validate`] checks one that was built by hand.
//!
//! Nothing here opens a file: the readers take the text, and the name to put in errors.

pub mod background;
pub mod cm;
pub mod collective;
pub mod csv;
pub mod dag;
pub mod dependents;
mod error;
pub mod experts;
pub mod job;
pub mod model;
pub mod pattern;
mod skew;
pub mod stragglers;
pub mod trace;

pub use background::Background;
pub use cm::read_cm;
pub use csv::read_csv;
pub use dag::{Dependency, Message, When, Workload};
pub use dependents::Dependents;
pub use error::WorkloadError;
pub use experts::Experts;
pub use model::Training;
pub use pattern::{Launch, PATTERNS, Pattern, PatternInfo, Scope};
pub use skew::Skew;
pub use stragglers::Stragglers;
