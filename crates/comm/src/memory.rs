//! Memory of the application, which the engine reads and writes in place.

/// So many bytes somewhere. Who made it vouches that they stay where they are while the request
/// that they belong to is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: *mut u8,
    len: usize,
}

#[expect(unsafe_code, reason = "a pointer is a number until somebody follows it")]
// SAFETY: following it is unsafe, and left to `stream`, under the contract of isend and irecv.
unsafe impl Send for Span {}

impl Span {
    /// No memory at all.
    pub const EMPTY: Span = Span { start: std::ptr::NonNull::dangling().as_ptr(), len: 0 };

    /// `len` bytes from `start` on.
    pub fn new(start: *mut u8, len: usize) -> Span {
        Span { start, len }
    }
    /// The address of its first byte.
    pub fn start(self) -> *mut u8 {
        self.start
    }
    /// How many bytes.
    pub fn len(self) -> usize {
        self.len
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
    /// `len` of them from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn part(self, offset: usize, len: usize) -> Span {
        assert!(offset <= self.len && len <= self.len - offset, "{offset}+{len} of {self:?}");
        Span { start: self.start.wrapping_add(offset), len }
    }

    /// The bytes.
    ///
    /// # Safety
    /// They are there and initialised, and nobody writes them while the slice lives.
    #[expect(unsafe_code, reason = "payload is sent from where it is")]
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: as the caller says. `EMPTY` is dangling, aligned and of length zero.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Copies `from` to the front, and returns what is behind it.
    ///
    /// # Panics
    /// If there is not so much room.
    ///
    /// # Safety
    /// The memory is there, and nobody else reads or writes it now.
    #[expect(unsafe_code, reason = "payload is put where it belongs")]
    pub(crate) unsafe fn fill(self, from: &[u8]) -> Span {
        assert!(from.len() <= self.len, "{} bytes into {}", from.len(), self.len);
        // SAFETY: as the caller says, and there is room. `from` is a buffer of ours.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.start, from.len()) };
        self.part(from.len(), self.len - from.len())
    }
}
