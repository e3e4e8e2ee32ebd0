//! Flushes: what has come by RDMA for the memory of a GPU is there for it when a read of that memory, by the
//! same device, has come back: reads do not overtake writes on the way. The read goes over a queue pair that
//! is connected to itself.

#![expect(unsafe_code, reason = "the device writes memory in place")]

use crate::{CommError, Process};
use std::sync::{Arc, Mutex, PoisonError};
use weft_verbs::{
    Address, Capacity, CompletionQueue, Device, MemoryRange, Outcome, Pages, Peer, QueuePair,
    Route, Timing, VerbsError,
};

/// Reads under way at a time.
const POSTS: u32 = 64;
const FIRST_PACKET: u32 = 0;

/// A port of a device, as the end of what begins there.
#[derive(Clone, Debug)]
pub(crate) struct LoopBack {
    pub(super) device: Arc<Device>,
    pub(super) port: u8,
    pub(super) address: Address,
    pub(super) mtu: u16,
    pub(super) timing: Timing,
}

/// Flushes what one channel receives by one device.
#[derive(Debug)]
pub(crate) struct Flusher {
    /// Nothing only as it is dropped.
    queue: Mutex<Option<Queue>>,
    process: Process,
}

/// Reads, which end in the order of posting.
#[derive(Debug)]
struct Queue {
    // Dropped first: memory goes after whoever writes it.
    pair: QueuePair,
    ends: Arc<CompletionQueue>,
    /// Where a byte comes, which nobody looks at.
    byte: Pages,
    posted: u64,
    done: u64,
    broken: Option<String>,
}

impl LoopBack {
    /// Makes the queue pair.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn flusher(&self) -> Result<Flusher, VerbsError> {
        let LoopBack { device, port, mtu, timing, .. } = self;
        let address = device.address_again(*port, self.address)?;
        let ends = Arc::new(CompletionQueue::new(device, POSTS)?);
        let capacity = Capacity { sends: POSTS, receives: 1, inline: 0 };
        let pair = QueuePair::for_reads(&ends, *port, capacity)?;
        let itself = Peer { gid: address.gid, number: pair.number(), first_packet: FIRST_PACKET };
        let route = Route { address: address.index, flow_label: 0, traffic_class: 0, hop_limit: 1 };
        pair.connect(itself, FIRST_PACKET, route, u32::from(*mtu), *timing)?;
        let byte = Pages::new(device, 1)?;
        let queue = Queue { pair, ends, byte, posted: 0, done: 0, broken: None };
        Ok(Flusher { queue: Mutex::new(Some(queue)), process: Process::current() })
    }
}

impl Flusher {
    /// Begins to read a byte at an address; the number of the read, or `None` where too many are under way.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) fn post(&self, address: usize, key: u32) -> Result<Option<u64>, CommError> {
        self.with(|queue| {
            queue.look()?;
            if queue.posted - queue.done >= u64::from(POSTS) {
                return Ok(None);
            }
            let id = queue.posted + 1;
            let into = MemoryRange {
                start: queue.byte.start() as u64,
                len: 1,
                key: queue.byte.local_key(),
            };
            // SAFETY: nobody looks at the byte, and it goes after the queue pair.
            let posted = unsafe { queue.pair.read(id, into, address as u64, key) };
            posted.map_err(|error| CommError::System(error.to_string()))?;
            queue.posted = id;
            Ok(Some(id))
        })
    }

    /// The number of the last read that was begun.
    ///
    /// # Errors
    /// In a child that was forked.
    pub(crate) fn last(&self) -> Result<u64, CommError> {
        self.with(|queue| Ok(queue.posted))
    }

    /// Whether a read has come back.
    ///
    /// # Errors
    /// If it, or one before it, has failed.
    pub(crate) fn is_done(&self, number: u64) -> Result<bool, CommError> {
        self.with(|queue| {
            queue.look()?;
            Ok(queue.done >= number)
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue) -> Result<T, CommError>,
    ) -> Result<T, CommError> {
        if !self.process.is_current() {
            return Err(CommError::forked());
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        work(queue.as_mut().expect("it is not being dropped"))
    }
}

impl Queue {
    /// Counts what has ended.
    fn look(&mut self) -> Result<(), CommError> {
        let mut ended = Vec::new();
        self.ends.poll(&mut ended).map_err(|error| CommError::System(error.to_string()))?;
        for end in ended {
            match end.outcome {
                Outcome::Done => self.done = self.done.max(end.id),
                outcome if self.broken.is_none() => self.broken = Some(self.ends.words(outcome)),
                _ => {}
            }
        }
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(CommError::System(format!("flushing memory of a GPU: {why}"))),
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The parent's device still uses it.
            std::mem::forget(self.queue.lock().ok().and_then(|mut queue| queue.take()));
        }
    }
}
