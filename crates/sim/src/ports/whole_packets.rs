//! Queues where a packet counts in full until its last bit has left, for FIFO ports. Usually what
//! counts is what is still to be put on the wire; but memory is freed by packets or cells, and
//! some switches (and simulators) count like that.

use crate::partition::OutPort;
use std::collections::VecDeque;
use weft_units::{IdVec, Time};

/// What is in the queues of a partition.
#[derive(Debug)]
pub(super) struct WholePackets {
    ports: IdVec<OutPort, Queue>,
}

/// One queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// When each packet will have left, and how long it takes; the first ones may have.
    packets: VecDeque<(Time, Time)>,
    /// The sum of how long they take.
    sum: Time,
}

impl WholePackets {
    /// For `ports` ports.
    pub(super) fn new(ports: usize) -> WholePackets {
        WholePackets { ports: (0..ports).map(|_| Queue::default()).collect() }
    }
    /// What is in the queue of `port`, as the time that all of it takes.
    #[inline]
    pub(super) fn drain(&mut self, now: Time, port: OutPort) -> Time {
        let Queue { packets, sum } = &mut self.ports[port];
        while let Some((at, time)) = packets.front().copied()
            && at <= now
        {
            packets.pop_front();
            *sum -= time;
        }
        *sum
    }
    /// The same, of queues that only look.
    pub(super) fn queued(&self, now: Time, port: OutPort) -> Time {
        let Queue { packets, sum } = &self.ports[port];
        let left = packets.iter().take_while(|(at, _)| *at <= now);
        left.fold(*sum, |sum, (_, time)| sum - *time)
    }
    /// A packet that takes `time` joins the queue of `port` and will have left `at`.
    #[inline]
    pub(super) fn join(&mut self, port: OutPort, at: Time, time: Time) {
        let Queue { packets, sum } = &mut self.ports[port];
        packets.push_back((at, time));
        *sum += time;
    }
}
