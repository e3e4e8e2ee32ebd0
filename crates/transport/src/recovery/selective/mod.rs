//! Selective repeat for multipath transports (papers 000 and 001): the receiver keeps packets
//! in any order and acknowledges each; the sender runs a timer for every packet and resends
//! only what timed out. There are no NACKs: under spraying a gap says nothing about a loss.
//!
//! | module | what it holds |
//! |---|---|
//! | `marks` | a set of packets in a window that moves up, one bit each |
//! | `receiver` | what has come out of order: a set of marks |
//! | `sender` | what was acknowledged out of order: a set of marks; when each packet left |
//! | `late` | what the sender needs once packets time out |
//!
//! A flow that loses nothing is the rule, and there may be many thousands of them. What such
//! a flow needs for an acknowledgement lies in its own few bytes, and the ring of send times is
//! only written: it is read when the timer runs, once a time-out. Whatever loss asks for is
//! allocated when it happens, and costs O(log n) a packet however wide the window.

mod late;
mod marks;
mod receiver;
mod sender;

pub(super) use receiver::SelectiveReceiver;
pub(super) use sender::SelectiveSender;
