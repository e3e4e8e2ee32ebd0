//! Sizes and offsets as the C compilers that build NCCL lay them out, asserted at compile time.
//! The numbers are those of 64-bit Linux; none is computed from the types here.

use crate::vtable::{NetV8, NetV9, NetV10, NetV11, NetV12};
use crate::{
    CommAttributes, CommConfig, DeviceHandle, NcclResult, NetAttributes, PropertiesV8,
    PropertiesV9, PropertiesV11, PropertiesV12, VirtualDevice4, VirtualDevice8,
};
use std::mem::{align_of, offset_of, size_of};

macro_rules! laid_out {
    ($type:ty, $size:literal, $align:literal, { $($field:tt $(. $inner:tt)? : $offset:literal),* $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            assert!(align_of::<$type>() == $align);
            $(assert!(offset_of!($type, $field $(. $inner)?) == $offset);)*
        };
    };
}

laid_out!(NcclResult, 4, 4, { 0: 0 });
laid_out!(CommConfig, 4, 4, { traffic_class: 0 });
laid_out!(VirtualDevice4, 20, 4, { count: 0, devices: 4 });
laid_out!(VirtualDevice8, 36, 4, { count: 0, devices: 4 });
laid_out!(DeviceHandle, 32, 8, {
    device_type: 0, device_version: 4, handle: 8, size: 16, needs_proxy_progress: 24,
});
laid_out!(CommAttributes, 16, 4, {
    max_concurrent_peers: 0, min_concurrent_peers: 4, max_flows_per_peer: 8, min_flows_per_peer: 12,
});
laid_out!(NetAttributes, 44, 4, {
    send: 0, receive: 16, operation: 32, algorithm: 36, protocol: 40,
});
laid_out!(PropertiesV8, 64, 8, {
    name: 0, pci_path: 8, guid: 16, pointer_support: 24, registration_is_global: 28, speed: 32,
    port: 36, latency: 40, max_comms: 44, max_receives: 48, device_type: 52, device_version: 56,
});
laid_out!(PropertiesV9, 104, 8, {
    name: 0, pci_path: 8, guid: 16, pointer_support: 24, registration_is_global: 28,
    force_flush: 32, speed: 36, port: 40, latency: 44, max_comms: 48, max_receives: 52,
    device_type: 56, device_version: 60, virtual_device: 64, max_p2p_bytes: 88,
    max_collective_bytes: 96,
});
laid_out!(PropertiesV11, 112, 8, { base: 0, max_multi_request: 104 });
laid_out!(PropertiesV12, 128, 8, {
    name: 0, pci_path: 8, guid: 16, pointer_support: 24, registration_is_global: 28,
    force_flush: 32, speed: 36, port: 40, latency: 44, max_comms: 48, max_receives: 52,
    device_type: 56, device_version: 60, virtual_device: 64, max_p2p_bytes: 104,
    max_collective_bytes: 112, max_multi_request: 120, rail: 124, plane: 126,
});

/// The part that all tables share.
macro_rules! table_laid_out {
    ($type:ty, $size:literal, { $($field:ident : $offset:literal),* $(,)? }) => {
        laid_out!($type, $size, 8, {
            name: 0, init: 8, devices: 16, get_properties: 24, listen: 32, connect: 40, accept: 48,
            reg_mr: 56, reg_mr_dma_buf: 64, dereg_mr: 72, isend: 80, irecv: 88, iflush: 96,
            test: 104, close_send: 112, close_recv: 120, close_listen: 128, get_device_mr: 136,
            irecv_consumed: 144, $($field: $offset,)*
        });
    };
}

table_laid_out!(NetV8, 152, {});
table_laid_out!(NetV9, 160, { make_v_device: 152 });
table_laid_out!(NetV10, 160, { make_v_device: 152 });
table_laid_out!(NetV11, 176, { make_v_device: 152, finalize: 160, set_net_attr: 168 });
table_laid_out!(NetV12, 176, { make_v_device: 152, finalize: 160, set_net_attr: 168 });
