//! `ncclNetProperties_t` of each version: what a NIC is and can do.

use std::ffi::{c_char, c_int};

/// NICs of a virtual device, versions 9 to 11.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDevice4 {
    /// How many of `devices` count.
    pub count: c_int,
    /// Their numbers.
    pub devices: [c_int; 4],
}

/// NICs of a virtual device, version 12.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDevice8 {
    /// How many of `devices` count.
    pub count: c_int,
    /// Their numbers.
    pub devices: [c_int; 8],
}

/// Version 8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PropertiesV8 {
    /// For logs. It must stay where it is.
    pub name: *const c_char,
    /// The PCI device under `/sys`, or null.
    pub pci_path: *const c_char,
    /// The same for all functions of one NIC.
    pub guid: u64,
    /// Which memory it can send from: `POINTER_HOST` and others.
    pub pointer_support: c_int,
    /// Whether memory once registered will do for all communicators.
    pub registration_is_global: c_int,
    /// Mbps.
    pub speed: c_int,
    /// Its port, from one.
    pub port: c_int,
    /// Microseconds; zero: not known.
    pub latency: f32,
    /// Communicators that it can hold.
    pub max_comms: c_int,
    /// Buffers of one receive.
    pub max_receives: c_int,
    /// What moves data.
    pub device_type: c_int,
    /// Its version.
    pub device_version: c_int,
}

/// Versions 9 and 10.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PropertiesV9 {
    /// As in [`PropertiesV8`].
    pub name: *const c_char,
    /// As in [`PropertiesV8`].
    pub pci_path: *const c_char,
    /// As in [`PropertiesV8`].
    pub guid: u64,
    /// As in [`PropertiesV8`].
    pub pointer_support: c_int,
    /// As in [`PropertiesV8`].
    pub registration_is_global: c_int,
    /// Whether receives into GPU memory always need a flush.
    pub force_flush: c_int,
    /// As in [`PropertiesV8`].
    pub speed: c_int,
    /// As in [`PropertiesV8`].
    pub port: c_int,
    /// As in [`PropertiesV8`].
    pub latency: f32,
    /// As in [`PropertiesV8`].
    pub max_comms: c_int,
    /// As in [`PropertiesV8`].
    pub max_receives: c_int,
    /// As in [`PropertiesV8`].
    pub device_type: c_int,
    /// As in [`PropertiesV8`].
    pub device_version: c_int,
    /// Of which NICs it consists: of itself.
    pub virtual_device: VirtualDevice4,
    /// Most bytes of a message between two.
    pub max_p2p_bytes: usize,
    /// Most bytes of a collective done by the network.
    pub max_collective_bytes: usize,
}

/// Version 11.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PropertiesV11 {
    /// What versions 9 and 10 have.
    pub base: PropertiesV9,
    /// Requests in one.
    pub max_multi_request: c_int,
}

/// Version 12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PropertiesV12 {
    /// As in [`PropertiesV8`].
    pub name: *const c_char,
    /// As in [`PropertiesV8`].
    pub pci_path: *const c_char,
    /// As in [`PropertiesV8`].
    pub guid: u64,
    /// As in [`PropertiesV8`].
    pub pointer_support: c_int,
    /// As in [`PropertiesV8`].
    pub registration_is_global: c_int,
    /// As in [`PropertiesV9`].
    pub force_flush: c_int,
    /// As in [`PropertiesV8`].
    pub speed: c_int,
    /// As in [`PropertiesV8`].
    pub port: c_int,
    /// As in [`PropertiesV8`].
    pub latency: f32,
    /// As in [`PropertiesV8`].
    pub max_comms: c_int,
    /// As in [`PropertiesV8`].
    pub max_receives: c_int,
    /// As in [`PropertiesV8`].
    pub device_type: c_int,
    /// As in [`PropertiesV8`].
    pub device_version: c_int,
    /// As in [`PropertiesV9`].
    pub virtual_device: VirtualDevice8,
    /// As in [`PropertiesV9`].
    pub max_p2p_bytes: usize,
    /// As in [`PropertiesV9`].
    pub max_collective_bytes: usize,
    /// As in [`PropertiesV11`].
    pub max_multi_request: c_int,
    /// Which rail it is on; -1: not known.
    pub rail: i16,
    /// Which plane it is on; -1: not known.
    pub plane: i16,
}
