//! What happened to a message: which lanes had which part of it, and when. Kept only where somebody asks
//! for it ([`crate::Endpoint::keep_notes`]), and bounded.

use crate::statistics::Place;
use std::net::Ipv4Addr;
use std::time::Instant;
use weft_fabric::PathId;

/// Most pieces of a message that are noted, and most time-outs.
const MOST: usize = 256;

/// What happened to a send; of a receive the peer is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The address of the other host.
    pub peer: Option<Ipv4Addr>,
    /// Its number in the fabric, if it has one.
    pub host: Option<u32>,
    /// When the receiver's buffer was known.
    pub matched: Option<Instant>,
    /// The parts of the message, in the order in which lanes got them.
    pub pieces: Vec<Piece>,
    /// Times that nothing came back of a lane that had a part.
    pub time_outs: Vec<LaneTimeOut>,
    /// Payload of parts beyond the most that are noted, in bytes.
    pub left_out_bytes: u64,
}

/// A part of a message, as one lane carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane.
    pub lane: u16,
    /// The path, if it was chosen; the last one, if the lane has moved.
    pub path: Option<PathId>,
    /// The source port; zero where none was known.
    pub port: u16,
    /// Its first byte.
    pub start: u64,
    /// The byte after its last one.
    pub end: u64,
    /// Payload that came over this lane: less than it has where others took over.
    pub bytes: u64,
    /// When the lane got it.
    pub given: Instant,
    /// When the last of `bytes` was acknowledged.
    pub done: Option<Instant>,
}

/// Nothing came back over a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneTimeOut {
    /// When it was noticed.
    pub at: Instant,
    /// The path that was left, if it was chosen.
    pub path: Option<PathId>,
    /// The source port.
    pub port: u16,
}

impl Notes {
    /// `lane` is to carry the bytes from `start` to `end`.
    pub(crate) fn give(&mut self, at: Instant, lane: u16, place: Place, start: u64, end: u64) {
        if let Some(last) = self.pieces.last_mut()
            && (last.lane, last.end, last.done) == (lane, start, None)
        {
            last.end = end;
        } else if self.pieces.len() < MOST {
            let (_, path, port) = place;
            let piece = Piece { lane, path, port, start, end, bytes: 0, given: at, done: None };
            self.pieces.push(piece);
        }
    }

    /// The receiver has `bytes` from `start` on, by `lane`.
    pub(crate) fn acknowledge(
        &mut self,
        at: Instant,
        lane: u16,
        place: Place,
        start: u64,
        bytes: u64,
    ) {
        let is_in = |one: &&mut Piece| {
            one.lane == lane && (one.start..one.end.max(one.start + 1)).contains(&start)
        };
        match self.pieces.iter_mut().find(is_in) {
            Some(piece) => {
                piece.bytes += bytes;
                piece.done = Some(at);
                (_, piece.path, piece.port) = place;
            }
            None => self.left_out_bytes += bytes,
        }
    }

    /// Nothing comes back over a lane that has a part.
    pub(crate) fn time_out(&mut self, at: Instant, place: Place) {
        let (_, path, port) = place;
        if self.time_outs.len() < MOST {
            self.time_outs.push(LaneTimeOut { at, path, port });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = (Ipv4Addr::LOCALHOST, None, 1);

    #[test]
    fn parts_that_follow_each_other_are_one_piece() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        notes.give(now, 0, HERE, 0, 10);
        notes.give(now, 0, HERE, 10, 20);
        notes.give(now, 1, HERE, 20, 30);
        assert_eq!(notes.pieces.len(), 2);
        notes.acknowledge(now, 0, (HERE.0, None, 7), 0, 10);
        notes.acknowledge(now, 0, (HERE.0, None, 8), 10, 10);
        notes.acknowledge(now, 1, HERE, 20, 10);
        let told: Vec<_> = notes.pieces.iter().map(|one| (one.bytes, one.port)).collect();
        assert_eq!(told, [(20, 8), (10, 1)]);
        assert_eq!(notes.left_out_bytes, 0);
    }

    #[test]
    fn notes_are_bounded_and_no_byte_is_lost() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        let many = 2 * MOST as u64;
        for part in 0..many {
            notes.give(now, (part % 2) as u16, HERE, part, part + 1);
            notes.time_out(now, HERE);
        }
        for part in 0..many {
            notes.acknowledge(now, (part % 2) as u16, HERE, part, 1);
        }
        assert_eq!((notes.pieces.len(), notes.time_outs.len()), (MOST, MOST));
        let noted: u64 = notes.pieces.iter().map(|one| one.bytes).sum();
        assert_eq!(noted + notes.left_out_bytes, many);
    }

    #[test]
    fn a_message_of_nothing_has_a_piece() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        notes.give(now, 0, HERE, 0, 0);
        notes.acknowledge(now, 0, HERE, 0, 0);
        assert!(notes.pieces[0].done.is_some());
    }
}
