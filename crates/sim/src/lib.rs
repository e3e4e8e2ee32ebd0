//! Packet-level simulation of a job over a fabric: exact, deterministic, fast.
//!
//! # A packet's way
//! A host posts messages; its planner (`weft-balance`) splits them into flows, one queue pair
//! each. When the NIC is free, `nic` takes the next queue pair in turn, asks its recovery and
//! congestion state (`weft-transport`) for a packet and its steering for a route, and puts it
//! on the wire. `forward` takes it from switch to switch; [`ports`] says when it leaves each
//! port, marked, paused or dropped. At its host, `nic` hands it to the receiver and answers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`RunConfig`]: what a run is made of |
//! | `simulation` | [`Simulation`]: a run from outside |
//! | `partition`, `world` | how the fabric falls into partitions, and what all of them read |
//! | `epochs`, `mail` | partitions side by side on several threads, and what passes between them |
//! | `engine` | the loop of one partition, and the parts that it has |
//! | [`packet`] | packets: their kinds, and what each carries |
//! | [`event`] | events and their total order |
//! | [`queue`], `agenda` | the event queues: timing wheel, and a plain heap as its oracle |
//! | [`ports`] | output ports: plain FIFO, or real queues with shared buffers and PFC |
//! | `switches`, `hops` | the switches of a partition, and the next hops of a packet |
//! | `forward` | a packet at the end of a link |
//! | `tor` | packets at switches that keep a state: tags, control packets, what is held back |
//! | `reduce` | reduction in the network: trees of switches that add up and copy |
//! | `headers`, `places` | what some packets have beyond the words that travel with them |
//! | `faults`, `lossy` | links that fail, and what they lose |
//! | `nic` | queue pairs: opening, sending, receiving, timers |
//! | `messages`, `posts` | messages; when they are posted, and when they are complete |
//! | `jobs` | ranks at work, and the messages that they make |
//! | `counts`, `losses` | what is counted on the way; which queue pairs lost packets |
//! | `halt` | how a run ends |
//! | `progress`, `stall` | messages that get nearer to their ends, and what is told of a run that stalled |
//! | `probes` | samples of queues |
//! | `audit` | an independent count of what arrived, for tests |
//! | `gather`, [`outcome`] | [`Outcome`]: what a run leaves behind |
//!
//! # Invariants
//! - The events of a partition are handled in the order of (time, class, entity), which is total:
//!   an entity has at most one event of a class at a time, because a link delivers one packet
//!   at a time. The order of insertion never matters, nor do the partitioning and the threads.
//! - An event that one node causes at another is at least one link delay later.
//! - Every run ends with a count: all that was sent was delivered or dropped.
//! - Nothing reads a clock, a file or the environment; randomness is drawn by entity.

mod agenda;
mod audit;
mod bulk;
pub mod config;
mod counts;
mod engine;
mod epochs;
pub mod event;
mod faults;
mod forward;
mod gather;
mod halt;
mod headers;
mod histogram;
mod hops;
mod jobs;
mod losses;
mod lossy;
mod mail;
mod messages;
mod nic;
pub mod outcome;
pub mod packet;
mod partition;
mod places;
pub mod ports;
mod posts;
mod probes;
mod processes;
mod progress;
pub mod queue;
mod reduce;
mod simulation;
mod stall;
mod switches;
mod tor;
mod world;

pub use config::*;
pub use epochs::WORTH_COMPANY;
pub use halt::{Halt, Silence, Stall};
pub use histogram::DurationHistogram;
pub use nic::parts;
pub use outcome::*;
pub use partition::{InLink, ReceiverId};
pub use probes::MOST_SAMPLES;
pub use simulation::{EpochLog, Simulation, Work, least_work, partitions_for, useful_threads};
