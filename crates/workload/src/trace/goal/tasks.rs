//! What a rank of a GOAL schedule does, as both forms of a file say it.

use weft_units::Time;

/// What stands for any rank and any tag.
pub(super) const ANY: u32 = u32::MAX;

/// One task of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Its line in a text, its number within its rank in a binary file.
    pub(super) place: u64,
    /// Its label; empty if it has none.
    pub(super) label: Box<str>,
    /// What it does.
    pub(super) op: Op,
    /// On which CPU, and with which NIC.
    pub(super) cpu: u8,
    pub(super) nic: u8,
    /// Tasks of the rank that have to be over, and those that have to have begun.
    pub(super) requires: Vec<u32>,
    pub(super) irequires: Vec<u32>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Send(Message),
    Receive(Message),
    Calc(Time),
    /// Nothing: a send of no bytes to a rank that is not there, which some schedules end with.
    Mark,
}

/// A message as one of its ends knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The other rank, or [`ANY`].
    pub(super) peer: u32,
    pub(super) bytes: u64,
    /// The tag, or [`ANY`].
    pub(super) tag: u32,
}

/// How long a computation of so many nanoseconds takes; an error in words if that is too long.
pub(super) fn nanoseconds(count: u64) -> Result<Time, &'static str> {
    count.checked_mul(1_000).map(Time::ps).ok_or("computes longer than 213 days; correct it")
}
