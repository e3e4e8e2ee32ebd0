//! What a host knows of those it sends to.

use super::links::Span;
use weft_units::Time;

/// By so much of what is new the part changes that is marked.
const MARK_GAIN: f64 = 1.0 / 16.0;
/// Marks make the window no smaller than this part of what it is at first.
const LEAST: f64 = 0.7;

/// What is known of a receiver.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) out: u64,
    pub(super) window: f64,
    /// What the window is at first, and at most.
    pub(super) windows: [f64; 2],
    /// The round trip of a lone chunk.
    pub(super) base: Time,
    /// The part of what came back lately that was marked.
    pub(super) marked: f64,
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
    /// Whether it is known how long answers take.
    pub(super) fn has_answered(&self) -> bool {
        self.heard_at > Time::ZERO
    }
    /// A chunk of `bytes` has come back, marked or not. The window grows by the part `share` of it; where there are marks, and
    /// until it is as large as at first again, it shrinks and grows as that of DCTCP, by chunks of `whole` bytes, but not
    /// for good (Alizadeh et al. 2010, section 3.1; RFC 8257).
    pub(super) fn resize(&mut self, bytes: u64, share: f64, is_marked: bool, whole: u64) {
        let (bytes, whole) = (bytes as f64, whole as f64);
        self.marked += (f64::from(u8::from(is_marked)) - self.marked) * MARK_GAIN;
        self.window = if is_marked {
            (self.window - bytes * self.marked / 2.0).max(self.windows[0] * LEAST)
        } else if self.window < self.windows[0] {
            self.window + whole * bytes / self.window
        } else {
            (self.window + bytes * share).min(self.windows[1])
        };
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
