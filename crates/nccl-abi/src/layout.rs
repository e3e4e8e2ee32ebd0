//! Sizes and offsets as the C compilers that build NCCL lay them out, asserted at compile time.
//! The numbers are those of 64-bit Linux; none is computed from the types here.

use crate::profiler::{
    AboutV3, AboutV4, AboutV5, CollectiveCall, CollectiveV3, CollectiveV4, CollectiveV5,
    DescriptorV3, DescriptorV4, DescriptorV5, GroupCall, KernelChannelV3, KernelChannelV4,
    KernelLaunch, NetworkEvent, P2pCall, P2pV3, P2pV4, P2pV5, ProfilerV3, ProfilerV4, ProfilerV5,
    ProxyOperation, ProxyStep, StateArguments,
};
use crate::tuner::{TunerV4, TunerV5};
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

laid_out!(CollectiveV3, 96, 8, {
    name: 0, communicator: 8, sequence: 16, function: 24, send: 32, receive: 40, count: 48, root: 56,
    datatype: 64, channels: 72, warps: 73, algorithm: 80, protocol: 88,
});
laid_out!(CollectiveV4, 80, 8, {
    sequence: 0, function: 8, send: 16, receive: 24, count: 32, root: 40, datatype: 48,
    channels: 56, warps: 57, algorithm: 64, protocol: 72,
});
laid_out!(CollectiveV5, 88, 8, { base: 0, group: 80 });
laid_out!(P2pV3, 56, 8, {
    name: 0, communicator: 8, function: 16, buffer: 24, datatype: 32, count: 40, peer: 48,
});
laid_out!(P2pV4, 40, 8, {
    function: 0, buffer: 8, datatype: 16, count: 24, peer: 32, channels: 36,
});
laid_out!(P2pV5, 48, 8, { base: 0, group: 40 });
laid_out!(ProxyOperation, 24, 4, {
    process: 0, channel: 4, peer: 8, steps: 12, chunk: 16, sends: 20,
});
laid_out!(ProxyStep, 4, 4, { step: 0 });
laid_out!(KernelChannelV3, 1, 1, { channel: 0 });
laid_out!(KernelChannelV4, 16, 8, { channel: 0, timer: 8 });
laid_out!(NetworkEvent, 16, 8, { plugin: 0, data: 8 });
laid_out!(GroupCall, 8, 4, { captured: 0, depth: 4 });
laid_out!(CollectiveCall, 48, 8, {
    function: 0, count: 8, datatype: 16, root: 24, stream: 32, captured: 40,
});
laid_out!(P2pCall, 40, 8, { function: 0, count: 8, datatype: 16, stream: 24, captured: 32 });
laid_out!(KernelLaunch, 8, 8, { stream: 0 });
laid_out!(AboutV3, 96, 8, {});
laid_out!(AboutV4, 80, 8, {});
laid_out!(AboutV5, 88, 8, {});
laid_out!(DescriptorV3, 120, 8, { kind: 0, parent: 8, rank: 16, about: 24 });
laid_out!(DescriptorV4, 104, 8, { kind: 0, parent: 8, rank: 16, about: 24 });
laid_out!(DescriptorV5, 112, 8, { kind: 0, parent: 8, rank: 16, about: 24 });
laid_out!(StateArguments, 8, 8, { value: 0 });

macro_rules! profiler_laid_out {
    ($($type:ty),*) => {
        $(laid_out!($type, 48, 8, {
            name: 0, init: 8, start_event: 16, stop_event: 24, record_state: 32, finalize: 40,
        });)*
    };
}

profiler_laid_out!(ProfilerV3, ProfilerV4, ProfilerV5);
laid_out!(TunerV4, 32, 8, { name: 0, init: 8, get_coll_info: 16, finalize: 24 });
laid_out!(TunerV5, 32, 8, { name: 0, init: 8, get_coll_info: 16, finalize: 24 });
