//! Twill: messages leave in short chunks, and each chunk takes the path of which its host knows the best, by
//! nothing but what came back and when. Weft's own.
//!
//! Hosts do all of it; switches follow path ids, source ports or a hash as under the other schemes that
//! pin paths ([`Enforce`]). A chunk keeps to one path and to one queue pair, so that NICs that want packets in
//! order will do.
//!
//! What leaves, and when:
//! - The message goes first that would be done first if each had the NIC to itself from when it was posted on (earliest
//!   deadline first). Those that were posted together take turns, chunk by chunk, and the longest counts.
//! - Chunks are handed to the NIC at line rate, and no more than it sends in about a round trip are there
//!   at a time, so that a path is chosen late.
//! - A receiver has a window. It begins small and grows while no long queue shows on all paths, so that
//!   many who begin to send to one fill no buffer. It does not shrink while something is under way, so that who began
//!   earlier keeps the right of way, but for a part of it where switches mark packets. What may be out at all is bounded, too.
//! - A receiver that waits for a message of which some has come asks, with its answers, that those defer which it cannot
//!   use before. One chunk at a time of such a message is out then.
//!
//! Where it leaves:
//! - A host takes its paths to a leaf in turn, each as often, and its ports to a receiver. The hosts of a leaf begin at
//!   different uplinks and take them in the same order, so that they step aside for each other.
//! - A chunk is late on its path when it has been out for longer than it should and nothing that left after it
//!   has come back by the same link. A link on which something is late, or was and has not recovered, takes
//!   only so much at a time that it would not be (a window of a link; of less than a chunk, a pause). "Longer" is
//!   beyond the queue of half the paths there and of a quarter of what its receiver had last, and the more the longer
//!   these are, so that congestion of all paths moves nobody.
//! - A link that it is told to be dead before it begins is not taken, unless no other way is left.
//! - A chunk that is out for much longer times out, sooner where nothing is left to send, and goes again by another path. A
//!   link by which nothing comes back meanwhile is left alone for a while, eight times as long each time it happens again
//!   soon, but no longer than until an answer comes of what timed out there, or of what goes there again, or a new
//!   connection there is taken. Where nothing shows that the path is at fault, little goes again at a time.
//!
//! docs/twill.md says why, and shows what each part is worth.
//!
//! What this does not do: tell other hosts what it knows; slow down for congestion that all paths
//! share, which it leaves to congestion control and to the windows of receivers.

mod links;
mod queue;
mod receiver;
mod ways;
mod weaver;

use super::{PathUse, Scheme, SchemeInfo};
use crate::enforce::{Enforce, PortRules};
use crate::forward::SwitchContext;
use crate::plan::HostContext;
use crate::steer::{Fixed, FlowContext};
pub use weaver::Weaver;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// Larger numbers are mistakes.
const MOST: u32 = 1_000_000;

/// Chunks by the path that is known to be best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twill {
    /// Payload of a chunk, rounded up to whole packets; `None`: 1/32 of a bandwidth-delay product.
    pub chunk: Option<u64>,
    /// What may be under way to a receiver at first, in percent of a bandwidth-delay product.
    pub window: u32,
    /// The same, at most.
    pub most_window: u32,
    /// What the NIC has at a time, in the same unit.
    pub backlog: u32,
    /// A host has no more out than so many chunks, which bounds queue pairs.
    pub most_out: u32,
    /// Which message goes first.
    pub order: Order,
    /// Whether hosts begin at different uplinks.
    pub rotate: bool,
    /// Whether windows of receivers shrink where switches mark packets.
    pub marks: bool,
    /// Whether messages wait whose receivers ask that others go first.
    pub defer: bool,
    /// A chunk is late after so much more than usual, in percent of the round trip of a lone chunk; zero: never.
    pub late: u32,
    /// A chunk times out after so much more than usual, in the same unit; zero: when the transport says so.
    pub time_out: u32,
    /// Its messages are those of so many jobs, from the first on, and others go whole, hashed; `None`: those of all.
    pub jobs: Option<u32>,
    /// What makes packets take their path.
    pub enforce: Enforce,
}

/// Which message goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that would be done first if each had the NIC to itself from when it was posted on.
    Deadline,
    /// The one that was posted first.
    Oldest,
    /// All in turn, chunk by chunk.
    Turn,
}

impl Twill {
    /// Payload of a chunk where nothing else is said, for a bandwidth-delay product in bytes; before it is rounded up to
    /// whole packets.
    pub const fn usual_chunk(bdp: u64) -> u64 {
        bdp / 32
    }
}

impl Scheme for Twill {
    const INFO: SchemeInfo = SchemeInfo {
        name: "twill",
        summary: "chunks in turn over all paths, earliest deadline first, around what answers late",
        switches: "route by path id",
        source: "Weft (docs/twill.md)",
        paths: PathUse::AsPacketsFind,
        path_ids: true,
        watches: true,
        options: &[
            OptionInfo {
                key: "chunk",
                default: "BDP / 32",
                kind: OptionKind::Size(0, u64::MAX),
                meaning: "payload of a chunk, rounded up to whole packets; each takes one path",
            },
            OptionInfo {
                key: "window",
                default: "250",
                kind: OptionKind::Whole(1, MOST),
                meaning: "what may be under way to a receiver at first, in percent of a BDP",
            },
            OptionInfo {
                key: "most_window",
                default: "400",
                kind: OptionKind::Whole(1, MOST),
                meaning: "the same, once no queue has shown for a while",
            },
            OptionInfo {
                key: "backlog",
                default: "100",
                kind: OptionKind::Whole(1, MOST),
                meaning: "what a NIC is given ahead of line rate, in percent of a BDP",
            },
            OptionInfo {
                key: "most_out",
                default: "256",
                kind: OptionKind::Whole(1, MOST),
                meaning: "most chunks that a host may have under way; to one receiver no more than \
                          are still free",
            },
            OptionInfo {
                key: "order",
                default: "deadline",
                kind: OptionKind::Word(&["deadline", "oldest", "turn"]),
                meaning: "which message goes first: \"deadline\" the one that would be done first if \
                          each had the NIC to itself, \"oldest\" the one that was posted first, or \
                          all in \"turn\"",
            },
            OptionInfo {
                key: "rotate",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "whether the hosts of a leaf begin at different uplinks",
            },
            OptionInfo {
                key: "marks",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "whether less may be under way to a receiver where switches mark packets, as \
                          under DCTCP",
            },
            OptionInfo {
                key: "defer",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "whether a message goes one chunk at a time while its receiver waits for another \
                          one that it needs first",
            },
            OptionInfo {
                key: "late",
                default: "400",
                kind: OptionKind::Whole(0, MOST),
                meaning: "a chunk is late after so much more than usual, in percent of the round \
                          trip of a lone one; 0: never",
            },
            OptionInfo {
                key: "time_out",
                default: "400",
                kind: OptionKind::Whole(0, MOST),
                meaning: "a chunk goes again by another path after so much more than usual, in \
                          the same unit; 0: after transport.rto",
            },
            OptionInfo {
                key: "jobs",
                default: "all",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "how many jobs, from the first on, it is for; messages of the others go \
                          whole, hashed, as under ECMP",
            },
            Enforce::OPTION,
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<Weaver>;
    type Steering = Fixed;
    type Switching = PortRules;

    fn read(options: &mut Options<'_>) -> Result<Twill, OptionError> {
        let window = options.number("window")?;
        let most_window = options.number("most_window")?;
        if most_window < window {
            let what = format!("{most_window} is below window ({window}); raise it");
            return Err(OptionError::new("most_window", what));
        }
        let orders =
            [("deadline", Order::Deadline), ("oldest", Order::Oldest), ("turn", Order::Turn)];
        let chunk = options.size_if_given("chunk")?;
        if chunk == Some(0) {
            return Err(OptionError::new("chunk", "a chunk has payload; write one such as 16KiB"));
        }
        Ok(Twill {
            chunk,
            window,
            most_window,
            backlog: options.number("backlog")?,
            most_out: options.number("most_out")?,
            order: options.choice("order", &orders)?,
            rotate: options.flag("rotate")?,
            marks: options.flag("marks")?,
            defer: options.flag("defer")?,
            late: options.number("late")?,
            time_out: options.number("time_out")?,
            jobs: options.number_if_given("jobs")?,
            enforce: Enforce::read(options)?,
        })
    }
    fn needs_path_ids(&self) -> bool {
        self.enforce == Enforce::PathId
    }
    fn enforce(&self) -> Option<Enforce> {
        Some(self.enforce)
    }
    fn switches(&self) -> &'static str {
        self.enforce.switches()
    }
    fn planner(&self, context: &HostContext) -> Box<Weaver> {
        Box::new(Weaver::new(*self, context))
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> PortRules {
        self.enforce.rules(context)
    }
}
