//! What can be computed of a scheme without simulating it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`normal`] | quantiles of the normal distribution, far out in the tail |
//! | [`paralet`] | ParaLet's expected slowdown, and how to choose m and S (paper 004) |
//!
//! Invariant: functions of their arguments, the same on every platform (`libm`); no fabric is
//! simulated and no file is read. What simulation makes of these numbers is in
//! `experiments/paralet-2024`.

pub mod normal;
pub mod paralet;
