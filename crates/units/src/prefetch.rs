//! A hint to the processor.

/// Asks for the cache line where `place` begins, so that it is at hand when it is needed soon
/// after. Changes nothing else; where the processor has no such hint, nothing at all.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "x86-64 has SSE, and a prefetch neither faults nor writes")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
