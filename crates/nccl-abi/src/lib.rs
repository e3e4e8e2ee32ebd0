//! NCCL's interface to network plugins (`ncclNet`), versions 8 to 12, as Rust types: layouts of
//! structures, signatures of functions, numbers. No code. [`profiler`] and [`tuner`] have the same of NCCL's
//! other plugins.
//!
//! A plugin exports one static table of functions a version, under the names in [`Version::symbol`];
//! NCCL takes the newest that it knows. Which NCCL that is:
//!
//! | version | NCCL | beyond the one before |
//! |---|---|---|
//! | 8 | 2.20 to 2.23 | |
//! | 9 | 2.24, 2.25 | sizes are `size_t`; virtual devices |
//! | 10 | 2.26, 2.27 | a profiler; `connect` gets the traffic class |
//! | 11 | 2.28, 2.29 | a context for each communicator, `finalize`, `setNetAttr` |
//! | 12 | 2.30 on | virtual devices of up to 8 NICs; rail and plane |
//!
//! All functions but `name` return an [`NcclResult`]. None may unwind or block. Those that NCCL
//! may find missing are `Option` and said to be so in [`vtable`].
//!
//! Sizes and offsets are asserted at compile time for the x86-64 and AArch64 Linux ABI
//! (`layout.rs`), which is where NCCL runs.

mod attributes;
mod layout;
mod log;
pub mod profiler;
mod properties;
mod result;
pub mod tuner;
pub mod vtable;

pub use attributes::{
    CommAttributes, CommConfig, DeviceHandle, NetAttributes, TRAFFIC_CLASS_UNDEFINED, UNDEFINED,
};
pub use log::{Level, Logger, Profiler, subsystem};
pub use properties::{
    PropertiesV8, PropertiesV9, PropertiesV11, PropertiesV12, VirtualDevice4, VirtualDevice8,
};
pub use result::NcclResult;
pub use vtable::{NetV8, NetV9, NetV10, NetV11, NetV12};

/// Bytes of a handle, which NCCL carries from the listener to those who connect.
pub const HANDLE_BYTES: usize = 128;

/// Requests that a communicator must be able to hold: receives, each of up to `maxRecvs` buffers.
pub const MOST_REQUESTS: usize = 32;

/// What `*request` may be when `irecv` is called: whoever receives does not wait for completion
/// (protocols LL and LL128, whose data carry flags). NCCL 2.24 and later.
pub const OPTIONAL_COMPLETION: usize = 1;

/// Pointers to host memory are understood.
pub const POINTER_HOST: i32 = 1;
/// Pointers to CUDA memory are understood.
pub const POINTER_CUDA: i32 = 2;
/// CUDA memory as DMA-BUF is understood.
pub const POINTER_DMABUF: i32 = 4;

/// `netDeviceType` of a NIC whose data the host moves.
pub const DEVICE_HOST: i32 = 0;
/// `netDeviceVersion` where nothing is offloaded.
pub const DEVICE_INVALID_VERSION: i32 = 0;

/// One version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NCCL 2.20 to 2.23.
    V8,
    /// NCCL 2.24 and 2.25.
    V9,
    /// NCCL 2.26 and 2.27.
    V10,
    /// NCCL 2.28 and 2.29.
    V11,
    /// NCCL 2.30 and later.
    V12,
}

impl Version {
    /// All, oldest first.
    pub const ALL: [Version; 5] =
        [Version::V8, Version::V9, Version::V10, Version::V11, Version::V12];

    /// As users write it: `v8`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Version::V8 => "v8",
            Version::V9 => "v9",
            Version::V10 => "v10",
            Version::V11 => "v11",
            Version::V12 => "v12",
        }
    }

    /// The symbol under which a plugin exports its table.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Version::V8 => "ncclNetPlugin_v8",
            Version::V9 => "ncclNetPlugin_v9",
            Version::V10 => "ncclNetPlugin_v10",
            Version::V11 => "ncclNetPlugin_v11",
            Version::V12 => "ncclNetPlugin_v12",
        }
    }
}
