//! The NIC of a host: queue pairs that take turns, and what their packets cause.
//!
//! The NIC serves the queue pairs that have something to send and an open window round robin,
//! one packet each (Ethereal 2025, assumption 3), or the oldest first ([`Service`](crate::Service)). A queue pair that
//! cannot send leaves the round; what opens its window brings it back at the end, or at its place
//! by age. Acknowledgements go before data.
//!
//! | module | what it holds |
//! |---|---|
//! | `nics` | what the hosts of a partition have |
//! | `host`, `flow` | a host; the two halves of a queue pair |
//! | `open` | how messages become queue pairs |
//! | `turns` | the round of a port |
//! | `round` | whose turn it is, and sending |
//! | `persistent` | queue pairs that carry one subflow after the other |
//! | `planes` | the ports of a NIC, each in a plane |
//! | `slots` | the way from a GPU to its NIC, where it is slower than that |
//! | `rebalance` | flows under way that get other routes |
//! | `feedback` | receiving and answering, acknowledgements, timers |
//! | `reports` | answers that stand for several packets; credit |
//! | `time_outs` | time-outs that double while nothing gets through, and those that come too late to say something of a route |

mod chunks;
mod feedback;
mod flow;
mod host;
mod nics;
mod open;
mod persistent;
mod planes;
mod probing;
mod rebalance;
mod reports;
mod round;
mod slots;
mod time_outs;
mod turns;

pub(crate) use flow::Reordering;
pub use flow::parts;
pub(crate) use nics::Nics;
