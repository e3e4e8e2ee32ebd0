//! The logger that plugins are given: standard error.

#![expect(unsafe_code, reason = "the logger is C, since it takes any number of arguments")]

use std::ffi::{c_char, c_int, c_ulong};
use weft_nccl_abi::{Level, Logger};

unsafe extern "C" {
    fn weft_net_bench_log_level(level: c_int);
    fn weft_net_bench_log(
        level: c_int,
        subsystems: c_ulong,
        file: *const c_char,
        line: c_int,
        format: *const c_char,
        ...
    );
}

/// The function to hand to `init`.
#[must_use]
pub fn logger() -> Logger {
    weft_net_bench_log
}

/// Shows what is of this level or more urgent; warnings from the start.
pub fn show(level: Level) {
    // SAFETY: stores one number.
    unsafe { weft_net_bench_log_level(level as c_int) }
}
