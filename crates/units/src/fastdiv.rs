//! Division by a divisor that is known only at run time but used millions of times.

/// Divides 32-bit numbers by a fixed divisor with one wide multiplication
/// and no branch (Robison: N-bit unsigned division via N-bit multiply-add, ARITH 2005).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastDiv {
    magic: u64,
    divisor: u32,
}

impl FastDiv {
    /// Prepares `divisor`.
    ///
    /// # Panics
    /// If `divisor` is zero.
    pub fn new(divisor: u32) -> FastDiv {
        assert!(divisor > 0, "division by zero");
        FastDiv { magic: u64::MAX / u64::from(divisor), divisor }
    }
    /// The divisor.
    pub fn divisor(self) -> u32 {
        self.divisor
    }
    /// `n / divisor`.
    // Not `Div`: the divisor is the receiver.
    #[allow(clippy::should_implement_trait)]
    #[inline(always)]
    pub fn div(self, n: u32) -> u32 {
        // The reciprocal is rounded down, which one more of `n` makes up for.
        ((u128::from(self.magic) * (u128::from(n) + 1)) >> 64) as u32
    }
    /// `(n / divisor, n % divisor)`.
    #[inline(always)]
    pub fn div_rem(self, n: u32) -> (u32, u32) {
        let quotient = self.div(n);
        (quotient, n - quotient * self.divisor)
    }
}
