//! Which frames of a link are where: counted by numbers, without a device.

use super::link::RING;
use crate::wire::WireError;

/// Posts bear so many bits of a frame's number.
pub(super) const BITS: u32 = 31;

/// Frames of a sending end. All below `begin` are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flight {
    /// Frames below have been posted.
    posted: u64,
    /// Frames below have left our memory for good.
    done: u64,
    /// Frames below are with the receiver's engine.
    acknowledged: u64,
    /// Frames below have been counted.
    counted: u64,
}

impl Flight {
    /// The receiver has all frames below `next`, and nothing else is out.
    pub(super) fn begin(next: u64) -> Flight {
        Flight { posted: next, done: next, acknowledged: next, counted: next }
    }

    /// Whether the receiver has a buffer for one more.
    pub(super) fn has_room(&self) -> bool {
        self.posted - self.completed() < u64::from(RING)
    }
    /// Whether the device is not done with something posted: what it is done with the other end's device has
    /// taken, whatever the process there does.
    pub(super) fn is_out(&self) -> bool {
        self.posted > self.done
    }
    /// Frames below have reached the receiver, and have left our memory for good.
    pub(super) fn completed(&self) -> u64 {
        self.done.min(self.acknowledged)
    }
    /// The device is done with all of them, whether they arrived or not. The receiver has those below
    /// what is returned.
    pub(super) fn end(&mut self) -> u64 {
        self.done = self.posted;
        self.acknowledged
    }

    /// Frame `number` has been posted, the next one.
    pub(super) fn handle_posted(&mut self, number: u64) {
        debug_assert_eq!(number, self.posted);
        self.posted = number + 1;
    }

    /// The post of the frame whose number ends in `low` has ended, and so have those before.
    pub(super) fn handle_done(&mut self, low: u32) {
        let all = 1 << BITS;
        let more = low.wrapping_sub(self.done as u32) % all + 1;
        self.done = self.posted.min(self.done + u64::from(more));
    }

    /// The receiver has all frames below `next`.
    ///
    /// # Errors
    /// If they have not been posted.
    pub(super) fn handle_ack(&mut self, next: u64) -> Result<(), WireError> {
        if next > self.posted {
            return Err(WireError::Nonsense("an acknowledgement of what was not sent"));
        }
        self.acknowledged = self.acknowledged.max(next);
        Ok(())
    }

    /// The next frame that has left our memory and was not counted.
    pub(super) fn count(&mut self) -> Option<u64> {
        let next = self.counted;
        (next < self.done).then(|| {
            self.counted += 1;
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half::sender::{Completed, Part, SendHalf};
    use crate::memory::Span;
    use crate::wire::{MOST_PAYLOAD, Slot, Slots};
    use weft_trial::prelude::*;

    fn low(number: u64) -> u32 {
        (number % (1 << BITS)) as u32
    }

    #[test]
    fn a_frame_is_settled_when_both_have_said_so() {
        let mut flight = Flight::begin(5);
        flight.handle_posted(5);
        assert!(flight.is_out() && flight.completed() == 5);
        flight.handle_ack(6).unwrap();
        assert!(flight.is_out() && flight.completed() == 5, "it may still be read");
        flight.handle_done(5);
        assert!(!flight.is_out() && flight.completed() == 6);
        assert_eq!((flight.count(), flight.count()), (Some(5), None));
        assert!(flight.handle_ack(7).is_err());
    }

    #[test]
    fn in_the_end_all_has_left_our_memory() {
        let mut flight = Flight::begin(5);
        (5..9).for_each(|number| flight.handle_posted(number));
        flight.handle_ack(7).unwrap();
        assert_eq!((flight.completed(), flight.end()), (5, 7));
        assert_eq!(std::iter::from_fn(|| flight.count()).collect::<Vec<_>>(), [5, 6, 7, 8]);
    }

    /// A path that dies after frames arrived, before any post has ended; then the receiver welcomes the
    /// next queue pair with what it has.
    #[test]
    fn frames_that_arrived_unnoticed_are_not_sent_again() {
        let mut bytes = vec![5u8; 2 * MOST_PAYLOAD as usize + 10];
        let len = bytes.len() as u64;
        let (lane, mut half) = (0, SendHalf::new(true));
        assert_eq!(half.open_lane(), lane);
        #[expect(unsafe_code, reason = "what is sent is read later")]
        // SAFETY: the bytes outlive the half.
        unsafe { half.post(Span::new(bytes.as_mut_ptr(), bytes.len()), 0, "message") }.unwrap();
        let slots = Slots::new([Slot { size: len, ..Slot::default() }]);
        half.handle_clear(0, 0, slots).unwrap().unwrap();
        let (send, end) = half.poll_matched().unwrap();
        half.assign(lane, Part { send, subflow: 3, start: 0, end });
        let mut flight = Flight::begin(0);
        while let Some(frame) = half.poll_frame(lane) {
            flight.handle_posted(frame.header.frame);
        }
        assert_eq!((flight.posted, flight.count()), (3, None));
        assert_eq!(flight.end(), 0);
        let mut written = 0;
        while let Some(frame) = flight.count() {
            written += half.handle_written(lane, frame).map_or(0, |it| it.subflow.1);
        }
        assert_eq!(written, len);
        let mut completed = Completed::default();
        half.resume(lane, 2, &mut completed).expect("it has been posted");
        let left = half.poll_frame(lane).unwrap();
        assert_eq!((left.header.frame, left.header.len), (2, 10));
        assert!(half.poll_frame(lane).is_none() && completed.sends.is_empty());
        half.resume(lane, 3, &mut completed).expect("it has been posted");
        assert_eq!(completed.sends, [("message", len)]);
    }

    trials! {
        /// Posts end in order, acknowledgements come late, early and twice, numbers pass the bits that
        /// posts have: as many frames are out as there are buffers, and each is counted once.
        fn frames_are_counted_once(
            start in prop_oneof![Just(0), Just((1 << BITS) - 20), Just((1 << 32) - 20), 0..u64::MAX / 2],
            steps in prop::collection::vec((0..3u8, 0..8u64), 1..200),
        ) {
            let mut flight = Flight::begin(start);
            let (mut posted, mut done, mut acknowledged) = (start, start, start);
            let mut counted = start;
            for (what, amount) in steps {
                match what {
                    0 => while flight.has_room() && posted < done + amount {
                        flight.handle_posted(posted);
                        posted += 1;
                    },
                    1 if done < posted => {
                        // One completion may stand for several.
                        done = posted.min(done + 1 + amount);
                        flight.handle_done(low(done - 1));
                    }
                    _ => {
                        let next = posted.min(start + amount * 3);
                        acknowledged = acknowledged.max(next);
                        prop_assert!(flight.handle_ack(next).is_ok());
                    }
                }
                prop_assert_eq!(flight.completed(), done.min(acknowledged));
                prop_assert!(posted - flight.completed() <= u64::from(RING));
                while let Some(frame) = flight.count() {
                    prop_assert_eq!(frame, counted);
                    counted += 1;
                }
                prop_assert_eq!(counted, done);
            }
        }
    }
}
