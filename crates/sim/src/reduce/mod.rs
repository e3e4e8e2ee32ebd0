//! Reduction in the network (SHARP): switches that add up what comes from below, and copy what comes from
//! above.
//!
//! For every set of ranks that have switches work for them there is a tree of the fabric's switches
//! (`trees`; [`weft_fabric::AggregationTree`]). What a rank gives is cut into segments (`segments`), a packet
//! each. A switch has a sum for each segment (`accumulators`), which leaves to the switch above when all its
//! children have contributed; the root turns it round, and each switch copies it to its children. A host may
//! have so many segments out that it has no result of, its window: that many sums each switch keeps room for.
//!
//! All operations are done alike, and differ in who has payload to give and to get: who has none sends an empty
//! packet (as large as an acknowledgement), and gets one, which tells that a sum is free again. So of a
//! broadcast all but the root send empty packets up.
//!
//! Packets of trees are data as all others at ports: they wait, are marked, and pause with the class. But
//! a switch takes them off the link into its sums and makes new ones, so that they are in no account of its
//! ingresses, and with PFC (or trimming) always find room: there are no more than sums. Without PFC they are
//! dropped as others are.
//!
//! **Loss.** Where packets can be lost (no PFC, or links that fail), a host that has no result of its oldest
//! segment for a time-out sends all again that it has no result of, as SwitchML does: a switch that has
//! seen it answers with the result if it has passed that on, sends the sum up again if it is complete, and else
//! knows it as a duplicate. Sums are kept for as many segments as hosts could still ask for.
//!
//! **Failures.** When routing learns of dead links, trees that use them are built again around them, at the same
//! instant everywhere. Hosts then begin a window before the first segment that they have no result of: no two
//! hosts are more than a window apart. Hosts that are through with an operation that others are not hear of it
//! by a call that the switches of the new tree pass on, and contribute their last window again. Where such contributions get
//! lost, those who lack results send theirs again, and so call the others once more.
//!
//! | module | what it holds |
//! |---|---|
//! | `trees` | the sets of ranks and their trees, over time |
//! | `segments` | the segments of an operation: who gives, who gets |
//! | `accumulators` | the sums of an operation at one switch |
//! | `contribution` | an operation at one host |
//! | `state` | all of it in one partition |
//! | `host`, `switch`, `rebuild` | what packets, timers and failures do to it |

mod accumulators;
mod contribution;
mod host;
mod rebuild;
mod segments;
mod state;
mod switch;
mod trees;

pub(crate) use state::Reduction;
pub(crate) use trees::Trees;
