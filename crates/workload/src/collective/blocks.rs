//! A buffer cut into one block for each rank.

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
    /// Blocks `first`, `first + stride`, ..., of them `many`, all below `count`: their bytes.
    #[inline]
    pub fn sum(&self, first: u64, stride: u64, many: u64) -> u64 {
        let count = u64::from(self.count);
        debug_assert!(many == 0 || first + (many - 1) * stride < count);
        // Of these, the ones below `bytes % count` are a byte longer.
        let longer = (self.bytes % count).saturating_sub(first).div_ceil(stride).min(many);
        self.bytes / count * many + longer
    }
}
