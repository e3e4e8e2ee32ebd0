//! The normal distribution's upper tail, and the quantile that goes with it.

use std::f64::consts::{LN_2, SQRT_2};

/// How likely a standard normal variable is to exceed `deviations`: 1 - Phi(x), computed as a tail,
/// so that nothing is lost where Phi is close to one.
pub fn upper_tail(deviations: f64) -> f64 {
    libm::erfc(deviations / SQRT_2) / 2.0
}

/// The x that a standard normal variable exceeds once in `times`: Phi^-1(1 - 1/times), for `times`
/// from 1 (minus infinity) to 2^64, within 1e-12 of it.
pub fn exceeded_once_in(times: f64) -> f64 {
    if times <= 1.0 {
        return f64::NEG_INFINITY;
    }
    if times < 2.0 {
        // The other half, by symmetry: exceeded but once in times / (times - 1).
        return -exceeded_once_in(times / (times - 1.0));
    }
    let logarithm = libm::log(times);
    // Above the root, from where Newton's steps on the concave logarithm only come closer.
    let mut x = libm::sqrt(2.0 * (logarithm - LN_2).max(0.0));
    for _ in 0..STEPS {
        let tail = upper_tail(x);
        let density = libm::exp(-x * x / 2.0) / libm::sqrt(std::f64::consts::TAU);
        x += (libm::log(tail) + logarithm) * tail / density;
    }
    x
}

/// Newton's steps double the digits; five are enough from where they begin.
const STEPS: u32 = 8;
