//! A buffer cut into one piece for each rank.

/// `bytes` in `count` pieces, in order; the first ones are a byte longer where they do not divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    bytes: u64,
    count: u32,
}

impl Pieces {
    /// Cuts `bytes` into `count` pieces, at least one.
    pub fn new(bytes: u64, count: u32) -> Pieces {
        assert!(count > 0, "a buffer has at least one piece");
        Pieces { bytes, count }
    }
    /// How long piece `index` is, counted round: piece `count` is piece 0.
    #[inline]
    pub fn len(&self, index: u64) -> u64 {
        let count = u64::from(self.count);
        let index = if index < count { index } else { index % count };
        self.bytes / count + u64::from(index < self.bytes % count)
    }
    /// Pieces `first`, `first + stride`, ..., of them `many`, all below `count`: their bytes.
    #[inline]
    pub fn sum(&self, first: u64, stride: u64, many: u64) -> u64 {
        let count = u64::from(self.count);
        debug_assert!(many == 0 || first + (many - 1) * stride < count);
        // Of these, the ones below `bytes % count` are a byte longer.
        let longer = (self.bytes % count).saturating_sub(first).div_ceil(stride).min(many);
        self.bytes / count * many + longer
    }
}
