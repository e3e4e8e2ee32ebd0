//! What functions return.

use std::ffi::c_int;

/// NCCL's `ncclResult_t`. A number, and no Rust enum, since plugins may return any.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct NcclResult(pub c_int);

impl NcclResult {
    /// It worked, or it has begun to.
    pub const SUCCESS: NcclResult = NcclResult(0);
    /// CUDA failed.
    pub const UNHANDLED_CUDA_ERROR: NcclResult = NcclResult(1);
    /// The system refused something.
    pub const SYSTEM_ERROR: NcclResult = NcclResult(2);
    /// A mistake in the plugin or in NCCL.
    pub const INTERNAL_ERROR: NcclResult = NcclResult(3);
    /// An argument that makes no sense.
    pub const INVALID_ARGUMENT: NcclResult = NcclResult(4);
    /// Calls in an order that makes no sense.
    pub const INVALID_USAGE: NcclResult = NcclResult(5);
    /// The other side, or the network between, is gone.
    pub const REMOTE_ERROR: NcclResult = NcclResult(6);

    /// Whether it worked.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }

    /// Its name in NCCL's headers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "ncclSuccess",
            1 => "ncclUnhandledCudaError",
            2 => "ncclSystemError",
            3 => "ncclInternalError",
            4 => "ncclInvalidArgument",
            5 => "ncclInvalidUsage",
            6 => "ncclRemoteError",
            7 => "ncclInProgress",
            _ => "an unknown result",
        }
    }
}

impl std::fmt::Debug for NcclResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}
