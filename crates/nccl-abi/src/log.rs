//! NCCL's logger and profiler, which `init` hands to the plugin.

use crate::NcclResult;
use std::ffi::{c_char, c_int, c_ulong, c_void};

/// `ncclDebugLogger_t`: level, subsystems, file, line, a format as for `printf`, its arguments.
///
/// Text that is not a literal goes in as an argument of `%s`.
pub type Logger = unsafe extern "C" fn(
    level: c_int,
    subsystems: c_ulong,
    file: *const c_char,
    line: c_int,
    format: *const c_char,
    ...
);

/// `ncclProfilerCallback_t`, from version 10 on: the event's handle, what happens to it
/// (0 start, 1 stop, 2 update, 3 update and stop), the handle that came with the send or receive,
/// an id that says whose `data` it is.
pub type Profiler = unsafe extern "C" fn(
    event: *mut *mut c_void,
    what: c_int,
    parent: *mut c_void,
    plugin: i64,
    data: *mut c_void,
) -> NcclResult;

/// `ncclDebugLogLevel`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Shown with `NCCL_DEBUG=VERSION` and above.
    Version = 1,
    /// Shown with `NCCL_DEBUG=WARN` and above.
    Warn = 2,
    /// Shown with `NCCL_DEBUG=INFO` and above.
    Info = 3,
    /// Shown always.
    Abort = 4,
    /// Shown with `NCCL_DEBUG=TRACE` of NCCL built for it.
    Trace = 5,
}

/// `ncclDebugLogSubSys`: bits which `NCCL_DEBUG_SUBSYS` chooses from.
pub mod subsystem {
    use std::ffi::c_ulong;

    /// What happens once.
    pub const INIT: c_ulong = 0x1;
    /// The network.
    pub const NET: c_ulong = 0x10;
    /// Variables of the environment.
    pub const ENV: c_ulong = 0x80;
    /// All subsystems.
    pub const ALL: c_ulong = c_ulong::MAX;
}
