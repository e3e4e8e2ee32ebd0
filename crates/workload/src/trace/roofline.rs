//! How long a computation takes of which a trace counts only operations and bytes.
//!
//! The roofline model as ASTRA-sim has it (`Roofline.cc`, `Workload.cc`): operations /
//! min(peak, operations per byte x bandwidth), which is the larger of the time to compute and the
//! time to move the bytes.

use weft_units::Time;

/// What an accelerator does in a second, at most; `None` where that is not stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roofline {
    /// Floating-point operations, more than zero.
    pub operations: Option<u64>,
    /// Bytes to and from its memory, more than zero.
    pub bytes: Option<u64>,
}

impl Roofline {
    /// How long so many operations on so many bytes take; `None` if nothing is counted whose rate
    /// is stated. Beyond 213 days, as long as a time can be.
    pub fn time(&self, operations: u64, bytes: u64) -> Option<Time> {
        let of = |count: u64, rate: Option<u64>| {
            let rate = rate.filter(|_| count > 0)?;
            let picos = u128::from(count) * 1_000_000_000_000 / u128::from(rate.max(1));
            Some(Time::ps(u64::try_from(picos).unwrap_or(u64::MAX)))
        };
        of(operations, self.operations).max(of(bytes, self.bytes))
    }
}
