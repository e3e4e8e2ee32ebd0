//! A buffer cut into blocks of nearly equal length, and which of them a message carries.

/// `bytes` in `count` blocks, in order; the first ones are a byte longer where they do not divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    bytes: u64,
    count: u32,
}

impl Blocks {
    /// Cuts `bytes` into `count` blocks, at least one.
    pub fn new(bytes: u64, count: u32) -> Blocks {
        assert!(count > 0, "a buffer has at least one block");
        Blocks { bytes, count }
    }
    /// How long block `index` is, counted round: block `count` is block 0.
    #[inline]
    pub fn len(&self, index: u64) -> u64 {
        let count = u64::from(self.count);
        let index = if index < count { index } else { index % count };
        self.bytes / count + u64::from(index < self.bytes % count)
    }
    /// How long the shortest are.
    pub fn shortest(&self) -> u64 {
        self.bytes / u64::from(self.count)
    }
    /// How many are a byte longer than these.
    pub fn longer(&self) -> u32 {
        (self.bytes % u64::from(self.count)) as u32
    }
    /// Blocks `first`, `first + stride`, ..., of them `many`, all below `count`: their bytes.
    #[inline]
    pub fn sum(&self, first: u64, stride: u64, many: u64) -> u64 {
        let count = u64::from(self.count);
        assert!(many == 0 || first + (many - 1) * stride < count);
        // Of these, the ones below `bytes % count` are a byte longer.
        let longer = (self.bytes % count).saturating_sub(first).div_ceil(stride).min(many);
        self.bytes / count * many + longer
    }
}

/// Which blocks of a buffer a message carries.
///
/// The buffer is cut into `shares`, and share `share` into `count` blocks. The message carries
/// `many` of them, at most `count`: `first`, `first + stride`, ..., counted round. All messages of
/// a call have equal `shares` and `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    /// Which share of the buffer: each channel of a ring and each tree has one.
    pub share: u32,
    /// How many shares there are.
    pub shares: u32,
    /// Blocks of the share: one for each rank, or one for each chunk of a chain or a tree.
    pub count: u32,
    /// The first block; below `count`.
    pub first: u32,
    /// From one block to the next.
    pub stride: u32,
    /// How many blocks.
    pub many: u32,
}

impl Payload {
    /// All of share `share` of `shares`.
    #[inline]
    pub(super) fn share(share: u32, shares: u32) -> Payload {
        Payload { share, shares, count: 1, first: 0, stride: 1, many: 1 }
    }
    /// Of the same share, cut into `count` blocks, block `index`.
    #[inline]
    pub(super) fn block(self, index: u32, count: u32) -> Payload {
        Payload { count, first: index, ..self }
    }
    /// The numbers of its blocks.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let at = move |index| {
            let sum = u64::from(self.first) + u64::from(index) * u64::from(self.stride);
            (sum % u64::from(self.count)) as u32
        };
        (0..self.many).map(at)
    }
    /// Its length, of a buffer of so many bytes.
    #[inline(always)]
    pub fn bytes(self, buffer: u64) -> u64 {
        let share = match self.shares {
            1 => buffer,
            shares => Blocks::new(buffer, shares).len(u64::from(self.share)),
        };
        match (self.count, self.many) {
            (1, _) => share,
            (count, 1) => Blocks::new(share, count).len(u64::from(self.first)),
            (count, _) => self.sum(Blocks::new(share, count)),
        }
    }
    /// The same, of its share.
    fn sum(self, blocks: Blocks) -> u64 {
        let (count, many) = (u64::from(self.count), u64::from(self.many));
        let (first, stride) = (u64::from(self.first), u64::from(self.stride));
        // Those before the end, and those after it.
        let before = match first + (many - 1) * stride < count {
            true => many,
            false => (count - first).div_ceil(stride),
        };
        let after = match many - before {
            0 => 0,
            rest => blocks.sum(first + before * stride - count, stride, rest),
        };
        blocks.sum(first, stride, before) + after
    }
}
