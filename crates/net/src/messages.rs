//! Messages on their way: how far they are cut into pieces, and how much of them is answered.

use crate::report::SentMessage;
use weft_balance::plan::Piece;
use weft_units::{HostId, MessageId, Time};

/// A message that may not be over.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    message: MessageId,
    dst: HostId,
    bytes: u64,
    /// How much of it has pieces.
    cut: u64,
    /// Bytes of its pieces that are not answered.
    open: u64,
    pieces: u32,
    posted: Time,
}

/// The messages of a host, by the tags that their pieces carry.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<Outgoing>);

impl Messages {
    /// A message is posted; returns its tag.
    pub fn post(&mut self, now: Time, message: MessageId, dst: HostId, bytes: u64) -> u32 {
        let (cut, open, pieces) = (0, bytes, 0);
        self.0.push(Outgoing { message, dst, bytes, cut, open, pieces, posted: now });
        self.0.len() as u32 - 1
    }
    /// A piece is cut off: where in its message it begins, and the bytes of that message. Pieces
    /// follow each other in the order in which they are cut.
    pub fn cut(&mut self, piece: &Piece) -> (u64, u64) {
        let outgoing = &mut self.0[piece.tag as usize];
        let offset = outgoing.cut;
        outgoing.cut += piece.bytes;
        outgoing.pieces += 1;
        (offset, outgoing.bytes)
    }
    /// A piece of the message with this tag is answered to the end; returns the message if it was
    /// the last one.
    pub fn answered(&mut self, now: Time, tag: u32, bytes: u64) -> Option<SentMessage> {
        let outgoing = &mut self.0[tag as usize];
        outgoing.open -= bytes;
        let Outgoing { message, dst, bytes, pieces, posted, open, .. } = *outgoing;
        (open == 0).then_some(SentMessage { message, dst, bytes, pieces, posted, answered: now })
    }
}
