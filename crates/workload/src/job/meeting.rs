//! What the two ends of a message know it by.

/// What brings a message and its receiver together: both know it, and nobody else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meeting {
    /// A collective: the `turn`-th of a group.
    Group {
        /// An index into the trace's groups.
        group: u32,
        /// Which of the group's collectives.
        turn: u32,
    },
    /// A message from `src`: the `turn`-th under a tag.
    Pair {
        /// The sending rank.
        src: u32,
        /// Tells messages of a pair of ranks apart.
        tag: u64,
        /// Which of them.
        turn: u32,
    },
}
