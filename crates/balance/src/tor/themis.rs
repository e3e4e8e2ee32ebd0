//! Themis (Liu et al., EuroSys 2026; APNet 2025): leaves spray the packets of NICs that take every gap for a
//! loss, and tell gaps that are none.
//!
//! # How
//! The leaf of the sender gives packet `n` of a flow path `n` mod `N`, of `N` paths, so that packets of one path
//! keep their order. The NIC of the receiver answers a gap with a NACK. The packet that made it do so proves the missing
//! one `e` lost if both took the same path; else `e` may still come. A NACK of the second kind goes no further; when
//! later a packet of the path of `e` has come before it, the leaf reports the loss after all.
//!
//! # What is ours
//! A flow's first path follows from its hash key, since all flows begin with packet 0. Answers say which packet they
//! answer; leaves of the paper remember what has passed and infer it. A NACK that goes no further
//! goes on as an acknowledgement of what has come, and the late report is made of the acknowledgement that the
//! packet gets which proves the loss: later than the leaf's own would be by the round trip to the host. Nothing is
//! rewritten in data. A path that is lost changes `N`; a NACK that was stopped before is then forgotten.
//!
//! Invariant: a real loss is reported at most `N` packets late, if packets of a path do not overtake each other.

use super::table::Table;
use super::{FlowId, TorCounts, Ways};
use weft_fabric::PathId;
use weft_units::Time;

/// A flow that was silent for longer is forgotten.
pub const IDLE: Time = Time::ms(10);

/// What a packet carries from leaf to leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The path that it follows.
    pub path: PathId,
    /// How many there are: `N`.
    pub paths: u32,
}

/// A leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Flows to hosts of this leaf.
    flows: Table<Received>,
    blocked: u64,
    late: u64,
}

/// A flow to a host of this leaf.
#[derive(Clone, Copy, Debug)]
struct Received {
    /// Over how many paths it goes.
    paths: u32,
    /// A missing packet whose NACK went no further.
    blocked: Option<u32>,
}

impl Received {
    /// Whether packet `seq`, which has come, proves that `missing`, which has not, is lost.
    fn proves(self, seq: u32, missing: u32) -> bool {
        seq > missing && (seq - missing).is_multiple_of(self.paths)
    }
}

impl Default for Leaf {
    fn default() -> Leaf {
        Leaf { flows: Table::new(IDLE), blocked: 0, late: 0 }
    }
}

impl Leaf {
    /// Packet `seq` of the flow with this hash key leaves to another leaf; `None`: there is no way.
    pub fn send<W: Ways>(&self, key: u32, seq: u32, ways: &W) -> Option<Tag> {
        let paths = ways.count();
        if paths == 0 {
            return None;
        }
        let first = key.wrapping_mul(0x9e37_79b1) >> 8;
        let path = ways.get((first % paths + seq % paths) % paths);
        Some(Tag { path, paths })
    }

    /// A packet of `flow`, sent over one of so many paths, passes on its way to a host of this leaf.
    pub fn receive(&mut self, now: Time, flow: FlowId, paths: u32) {
        let new = Received { paths, blocked: None };
        match self.flows.touch(flow, now) {
            Some(state) if state.paths == paths => {}
            Some(state) => *state = new,
            None => drop(self.flows.insert(flow, now, new)),
        }
    }

    /// The receiver of `flow` answers packet `seq` with a NACK or an acknowledgement, and has all below `missing`;
    /// whether that goes on as a NACK.
    pub fn answer(
        &mut self,
        now: Time,
        flow: FlowId,
        is_nack: bool,
        (seq, missing): (u32, u32),
    ) -> bool {
        let Some(state) = self.flows.touch(flow, now) else { return is_nack };
        if is_nack {
            let is_real = state.proves(seq, missing);
            state.blocked = (!is_real).then_some(missing);
            self.blocked += u64::from(!is_real);
            return is_real;
        }
        let Some(waiting) = state.blocked else { return false };
        if missing > waiting {
            state.blocked = None;
            return false;
        }
        let is_real = state.proves(seq, waiting);
        if is_real {
            state.blocked = None;
            self.late += 1;
        }
        is_real
    }

    /// What it took so far.
    pub fn counts(&self) -> TorCounts {
        TorCounts {
            flows: self.flows.most() as u64,
            blocked_nacks: self.blocked,
            late_nacks: self.late,
            ..TorCounts::default()
        }
    }
}
