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
    /// Which NIC of the endpoint it left from, from 0. A lane that goes on from another one begins another
    /// piece.
    pub nic: u8,
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
    /// Which NIC of the endpoint the lane left from, from 0.
    pub nic: u8,
    /// The path that was left, if it was chosen.
    pub path: Option<PathId>,
    /// The source port.
    pub port: u16,
}

/// A lane as it is now: its number, the NIC that it leaves from, and the way from there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    pub(crate) lane: u16,
    pub(crate) nic: u8,
    pub(crate) place: Place,
}

impl Notes {
    /// `carrier` is to carry the bytes from `start` to `end`.
    pub(crate) fn give(&mut self, at: Instant, carrier: Carrier, start: u64, end: u64) {
        let Carrier { lane, nic, place: (_, path, port) } = carrier;
        if let Some(last) = self.pieces.last_mut()
            && (last.lane, last.nic, last.end, last.done) == (lane, nic, start, None)
        {
            last.end = end;
        } else if self.pieces.len() < MOST {
            let piece =
                Piece { lane, nic, path, port, start, end, bytes: 0, given: at, done: None };
            self.pieces.push(piece);
        }
    }

    /// The receiver has `bytes` from `start` on, by `carrier`.
    pub(crate) fn acknowledge(&mut self, at: Instant, carrier: Carrier, start: u64, bytes: u64) {
        let Carrier { lane, nic, place: (_, path, port) } = carrier;
        let is_in = |one: &Piece| {
            one.lane == lane && (one.start..one.end.max(one.start + 1)).contains(&start)
        };
        let Some(mut index) = self.pieces.iter().position(is_in) else {
            self.left_out_bytes += bytes;
            return;
        };
        let piece = self.pieces[index];
        if piece.nic != nic && piece.bytes > 0 && self.pieces.len() < MOST {
            // What came before came by the other NIC.
            self.pieces[index].end = start;
            index += 1;
            self.pieces.insert(index, Piece { start, bytes: 0, ..piece });
        }
        let piece = &mut self.pieces[index];
        piece.bytes += bytes;
        piece.done = Some(at);
        (piece.nic, piece.path, piece.port) = (nic, path, port);
    }

    /// Nothing comes back over a lane that has a part.
    pub(crate) fn time_out(&mut self, at: Instant, carrier: Carrier) {
        let Carrier { nic, place: (_, path, port), .. } = carrier;
        if self.time_outs.len() < MOST {
            self.time_outs.push(LaneTimeOut { at, nic, path, port });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(lane: u16, nic: u8, port: u16) -> Carrier {
        Carrier { lane, nic, place: (Ipv4Addr::LOCALHOST, None, port) }
    }

    #[test]
    fn parts_that_follow_each_other_are_one_piece() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        notes.give(now, on(0, 0, 1), 0, 10);
        notes.give(now, on(0, 0, 1), 10, 20);
        notes.give(now, on(1, 0, 1), 20, 30);
        assert_eq!(notes.pieces.len(), 2);
        notes.acknowledge(now, on(0, 0, 7), 0, 10);
        notes.acknowledge(now, on(0, 0, 8), 10, 10);
        notes.acknowledge(now, on(1, 0, 1), 20, 10);
        let told: Vec<_> = notes.pieces.iter().map(|one| (one.bytes, one.port)).collect();
        assert_eq!(told, [(20, 8), (10, 1)]);
        assert_eq!(notes.left_out_bytes, 0);
    }

    #[test]
    fn notes_are_bounded_and_no_byte_is_lost() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        let many = 2 * MOST as u64;
        for part in 0..many {
            notes.give(now, on((part % 2) as u16, 0, 1), part, part + 1);
            notes.time_out(now, on(0, 0, 1));
        }
        for part in 0..many {
            notes.acknowledge(now, on((part % 2) as u16, 0, 1), part, 1);
        }
        assert_eq!((notes.pieces.len(), notes.time_outs.len()), (MOST, MOST));
        let noted: u64 = notes.pieces.iter().map(|one| one.bytes).sum();
        assert_eq!(noted + notes.left_out_bytes, many);
    }

    #[test]
    fn a_message_of_nothing_has_a_piece() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        notes.give(now, on(0, 0, 1), 0, 0);
        notes.acknowledge(now, on(0, 0, 1), 0, 0);
        assert!(notes.pieces[0].done.is_some());
    }

    /// Bytes are those of the NIC by which they came, also where its lane has gone on from another.
    #[test]
    fn a_lane_that_goes_on_from_another_nic_begins_a_piece() {
        let (mut notes, now) = (Notes::default(), Instant::now());
        notes.give(now, on(0, 0, 1), 0, 30);
        notes.give(now, on(1, 0, 1), 30, 40);
        notes.acknowledge(now, on(0, 0, 1), 0, 10);
        notes.acknowledge(now, on(0, 1, 2), 10, 10);
        notes.acknowledge(now, on(0, 1, 2), 20, 10);
        // Nothing came of this one before.
        notes.acknowledge(now, on(1, 1, 3), 30, 10);
        let told =
            notes.pieces.iter().map(|one| (one.nic, one.port, one.start..one.end, one.bytes));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [(0, 1, 0..10, 10), (1, 2, 10..30, 20), (1, 3, 30..40, 10)]
        );
        assert_eq!(notes.left_out_bytes, 0);
    }
}
