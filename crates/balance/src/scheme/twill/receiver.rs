//! What a host knows of those it sends to.

use super::links::Span;
use weft_units::Time;

/// What is known of a receiver.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) out: u64,
    pub(super) window: f64,
    /// What the window is at first, and at most.
    pub(super) windows: [f64; 2],
    /// The round trip of a lone chunk.
    pub(super) base: Time,
    /// The least queue of the bunch that is coming back, and of the one before.
    pub(super) least: [Span; 2],
    pub(super) in_bunch: u32,
    /// The queue that its chunks meet, and the number of that.
    pub(super) usual: Quartile,
    pub(super) number: u32,
    /// The same, smoothed, and the mean deviation from it (RFC 6298, section 2); before the first: zero.
    pub(super) queue: Span,
    pub(super) deviation: Span,
    /// The last of them.
    pub(super) last: Span,
    /// When something came back last, and the number of the chunk that left last of what has come back.
    pub(super) heard_at: Time,
    pub(super) newest: u64,
    /// How many chunks have timed out since, and when the last one did.
    pub(super) silent: (u32, Time),
    /// Its ports of the NIC, where there are several.
    pub(super) ports: Box<[Port]>,
}

/// A port of the NIC, on the way to a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// The first link of the way, and the last one, by number.
    pub(super) ends: [u32; 2],
    /// Payload that has taken it to the receiver, made up as that of [`Way`](super::ways::Way).
    pub(super) given: u64,
}

impl Receiver {
    /// The links at the ends of the ways by `port`, where the NIC has several.
    pub(super) fn ends(&self, port: u8) -> &[u32] {
        self.ports.get(usize::from(port)).map_or(&[], |port| &port.ends)
    }
    /// A chunk has met a queue.
    pub(super) fn estimate(&mut self, queue: Span) {
        self.last = queue;
        let off = queue - self.queue;
        if self.deviation == 0.0 {
            (self.queue, self.deviation) = (queue, queue / 2.0);
        } else {
            self.deviation += (off.abs() - self.deviation) / 4.0;
            self.queue += off / 8.0;
        }
    }
}

/// Of so many values there is a quartile.
const LAST: usize = 16;

/// A quartile of the last few values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quartile {
    last: [f32; LAST],
    /// How many there have been.
    seen: u32,
    value: Span,
}

impl Quartile {
    /// A quarter of the last few values are smaller; zero before the first.
    pub(super) fn value(&self) -> Span {
        self.value
    }
    /// One more.
    pub(super) fn learn(&mut self, one: Span) {
        self.last[self.seen as usize % LAST] = one as f32;
        self.seen += 1;
        let mut sorted = self.last;
        let sorted = &mut sorted[..LAST.min(self.seen as usize)];
        sorted.sort_unstable_by(f32::total_cmp);
        self.value = Span::from(sorted[sorted.len() / 4]);
    }
}
