//! Simulation by rates instead of packets, for jobs that no packet engine reaches.
//!
//! The fabric, the planners of hosts, the hashes of switches, jobs and failures are those of
//! `weft-sim`, and so is the outcome. What takes the place of packets: a flow has a rate, max-min fair
//! among all that share its links, and something happens only where flows begin, end or fail.
//!
//! | module | what it holds |
//! |---|---|
//! | `rates` | max-min fair rates, kept up to date |
//! | `capacities` | what each link carries for data: less acknowledgements, less what spraying wastes |
//! | `buffers` | which switches run out of buffer, and what waits before them |
//! | `queues` | how long packets wait at each link |
//! | `windows` | what windows of DCTCP allow then, and how marks change them |
//! | `paths` | which links a flow uses, or which cuts it spreads over |
//! | `engine`, `agenda` | the state of a run, its loop, and what will happen |
//! | `messages`, `flows` | messages and their subflows under way |
//! | `sent` | when a NIC has sent what still waits in queues |
//! | `paced` | flows whose rate is told: the gap behind the last packet |
//! | `ranks` | jobs at work, and the messages that they make |
//! | `alone` | whether hosts are in each other's way so that only packets tell |
//! | `rounds` | rings: the first rounds simulated, the others at their pace |
//! | `failures` | links that carry less or nothing, and who notices when |
//! | `outcome` | results |
//! | `unfit` | what only packets tell |
//!
//! What it cannot see: single packets, losses by overload, reordering. Queues delay acknowledgements,
//! and so flows with windows; the last packet of a message does not wait in them.

mod agenda;
mod alone;
mod buffers;
mod capacities;
mod engine;
mod failures;
mod flows;
mod messages;
mod outcome;
mod paced;
mod paths;
mod queues;
mod ranks;
mod rates;
mod rounds;
mod sent;
mod unfit;
mod windows;

pub use alone::run_alone;
pub use engine::run;
pub use unfit::unfit;
