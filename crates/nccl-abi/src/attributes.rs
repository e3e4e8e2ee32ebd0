//! What NCCL tells a plugin about a communicator and the traffic to come.

use std::ffi::{c_int, c_void};

/// A number of [`CommAttributes`] that NCCL does not know.
pub const UNDEFINED: i32 = -1;
/// A traffic class that nobody chose.
pub const TRAFFIC_CLASS_UNDEFINED: c_int = -1;

/// `ncclNetCommConfig_t`: to `connect` in version 10, to `init` from 11 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommConfig {
    /// What the plugin makes of it is its own affair; [`TRAFFIC_CLASS_UNDEFINED`] if not chosen.
    pub traffic_class: c_int,
}

/// `ncclNetCommAttr_t`: one direction of [`NetAttributes`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommAttributes {
    /// Peers at a time, at most.
    pub max_concurrent_peers: i32,
    /// Peers at a time, at least.
    pub min_concurrent_peers: i32,
    /// Messages to each of them at a time, at most.
    pub max_flows_per_peer: i32,
    /// Messages to each of them at a time, at least.
    pub min_flows_per_peer: i32,
}

/// `ncclNetAttr_t`: what `setNetAttr` says (version 11 and later). The last three are sets of
/// bits; all ones where NCCL does not know.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetAttributes {
    /// What is sent.
    pub send: CommAttributes,
    /// What is received.
    pub receive: CommAttributes,
    /// Bit of the operation: broadcast, reduce, all-gather, reduce-scatter, all-reduce, ...
    pub operation: u32,
    /// Bit of the algorithm: tree, ring, ...
    pub algorithm: u32,
    /// Bit of the protocol: LL, LL128, Simple.
    pub protocol: u32,
}

/// `ncclNetDeviceHandle_t`: for NICs that move data themselves.
#[repr(C)]
#[derive(Debug)]
pub struct DeviceHandle {
    /// What moves data.
    pub device_type: c_int,
    /// Its version.
    pub device_version: c_int,
    /// Its handle.
    pub handle: *mut c_void,
    /// Bytes behind `handle`.
    pub size: usize,
    /// Whether NCCL's proxy thread has to help.
    pub needs_proxy_progress: c_int,
}
