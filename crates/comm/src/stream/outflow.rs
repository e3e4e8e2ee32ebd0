//! What a connection is to carry next, gathered from where it is.

use crate::half::sender::Outgoing;
use crate::memory::Span;
use crate::wire::{HEADER, Header};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Slices of one write.
pub const MOST_SLICES: usize = 64;

/// Frames that are not written to the end.
#[derive(Debug, Default)]
pub struct Outflow {
    items: VecDeque<Item>,
    /// Bytes of the first one that are.
    done: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Item {
    head: [u8; HEADER],
    body: Body,
    /// Its number, if it is data.
    frame: Option<u64>,
}

/// What follows a header.
#[derive(Debug)]
enum Body {
    /// It is where the application has it.
    There(Span),
    /// A copy.
    Here(Box<[u8]>),
}

impl Body {
    fn len(&self) -> usize {
        match self {
            Body::There(span) => span.len(),
            Body::Here(bytes) => bytes.len(),
        }
    }
    /// Its bytes.
    ///
    /// # Safety
    /// Its memory is there, and nobody writes it while the slice lives.
    #[expect(unsafe_code, reason = "payload is read from where it is")]
    unsafe fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: as the caller says.
            Body::There(span) => unsafe { span.bytes() },
            Body::Here(bytes) => bytes,
        }
    }
}

impl Outflow {
    /// Puts a data frame behind the others.
    pub fn push(&mut self, frame: &Outgoing) {
        let Outgoing { header, body, .. } = frame;
        self.bytes += HEADER + body.len();
        let head = header.encode();
        self.items.push_back(Item { head, body: Body::There(*body), frame: Some(header.frame) });
    }
    /// Puts a frame without body behind the others.
    pub fn push_header(&mut self, header: &Header) {
        self.bytes += HEADER;
        let body = Body::There(Span::EMPTY);
        self.items.push_back(Item { head: header.encode(), body, frame: None });
    }
    /// Bytes to write.
    pub fn len(&self) -> usize {
        self.bytes
    }
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Whether one write takes all, and one more frame.
    pub fn has_room(&self) -> bool {
        2 * self.items.len() < MOST_SLICES
    }
    /// Copies the body of frame `number`, if it is to be written: its memory is about to go.
    ///
    /// # Safety
    /// Its memory is there, and nobody writes it now.
    #[expect(unsafe_code, reason = "payload is copied from where it is")]
    pub unsafe fn keep(&mut self, number: u64) {
        for item in self.items.iter_mut().filter(|item| item.frame == Some(number)) {
            // SAFETY: as the caller says.
            item.body = Body::Here(unsafe { item.body.bytes() }.into());
        }
    }
    /// What is missing of a frame that is written in part, copied: its memory is about to go. The
    /// other frames are dropped.
    ///
    /// # Safety
    /// Its memory is there, and nobody writes it now.
    #[expect(unsafe_code, reason = "payload is copied from where it is")]
    pub unsafe fn detach(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(item) = self.items.front().filter(|_| self.done > 0) {
            out.extend_from_slice(&item.head[self.done.min(HEADER)..]);
            // SAFETY: as the caller says.
            let body = unsafe { item.body.bytes() };
            out.extend_from_slice(&body[self.done.saturating_sub(HEADER)..]);
        }
        self.clear();
        out
    }
    /// The connection is gone, and with it what was to be written.
    pub fn clear(&mut self) {
        *self = Outflow::default();
    }

    /// What to write; how many slices.
    ///
    /// # Safety
    /// The memory of all frames is there and nobody writes it while the slices live.
    #[expect(unsafe_code, reason = "payload is written from where it is")]
    pub unsafe fn slices<'a>(&'a self, out: &mut [IoSlice<'a>; MOST_SLICES]) -> usize {
        let mut count = 0;
        let mut skip = self.done;
        for item in &self.items {
            if count + 2 > MOST_SLICES {
                break;
            }
            if skip < HEADER {
                out[count] = IoSlice::new(&item.head[skip..]);
                count += 1;
            }
            let from = skip.saturating_sub(HEADER);
            if from < item.body.len() {
                // SAFETY: as the caller says.
                let body = unsafe { item.body.bytes() };
                out[count] = IoSlice::new(&body[from..]);
                count += 1;
            }
            skip = 0;
        }
        count
    }

    /// So many bytes are written. Calls `written` with the number of each frame that is now to the end.
    pub fn advance(&mut self, count: usize, mut written: impl FnMut(u64)) {
        self.bytes -= count;
        self.done += count;
        while let Some(item) = self.items.front()
            && self.done >= HEADER + item.body.len()
        {
            self.done -= HEADER + item.body.len();
            if let Some(number) = item.frame {
                written(number);
            }
            self.items.pop_front();
        }
    }
}
