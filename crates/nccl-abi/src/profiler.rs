//! NCCL's interface to profiler plugins (`ncclProfiler`), versions 3 to 5.
//!
//! A plugin exports one static table a version, as `ncclProfiler_v3` and so on; NCCL takes the newest that
//! both know. `NCCL_PROFILER_PLUGIN` names its library; without it NCCL looks into that of the network plugin,
//! too.
//!
//! | version | NCCL | beyond the one before |
//! |---|---|---|
//! | 3 | 2.26 | kernels' channels, events of network plugins |
//! | 4 | 2.27 | a logger; `init` tells the communicator, events of calls no longer do |
//! | 5 | 2.28 on | calls of the application and launches of kernels |
//!
//! | function | contract |
//! |---|---|
//! | `init` | once a communicator; it writes which events it wants into the mask, which all communicators share |
//! | `startEvent` | gives a handle, which may be null: then nothing more is heard of the event |
//! | `stopEvent` | of a group, a call or a task: it is enqueued; of others: it is over |
//! | `recordEventState` | something happened in between |
//! | `finalize` | once a communicator, unless its context is null |
//!
//! `parent` of an event is the handle of another one, or null; that of a proxy operation may be of another
//! process ([`ProxyOperation::process`]).

use crate::{Logger, NcclResult};
use std::ffi::{c_char, c_int, c_void};

/// `ncclProfile...`: kinds of events, bits of the mask.
pub mod event {
    /// Tasks that are launched together.
    pub const GROUP: u64 = 1 << 0;
    /// A collective, as it is enqueued.
    pub const COLLECTIVE: u64 = 1 << 1;
    /// A send or receive, as it is enqueued.
    pub const P2P: u64 = 1 << 2;
    /// What the proxy does for a task on one channel.
    pub const PROXY_OPERATION: u64 = 1 << 3;
    /// One transfer of that.
    pub const PROXY_STEP: u64 = 1 << 4;
    /// What the proxy does besides.
    pub const PROXY_CONTROL: u64 = 1 << 5;
    /// A channel of a kernel.
    pub const KERNEL_CHANNEL: u64 = 1 << 6;
    /// What the network plugin says.
    pub const NETWORK: u64 = 1 << 7;
    /// `ncclGroupStart` to `ncclGroupEnd`, or a call alone.
    pub const GROUP_CALL: u64 = 1 << 8;
    /// The call of a collective.
    pub const COLLECTIVE_CALL: u64 = 1 << 9;
    /// The call of a send or receive.
    pub const P2P_CALL: u64 = 1 << 10;
    /// The launch of a kernel.
    pub const KERNEL_LAUNCH: u64 = 1 << 11;
}

/// `ncclProfilerEventState_t`: what happened to an event.
pub mod state {
    use std::ffi::c_int;

    /// A send step waits for data of the GPU.
    pub const SEND_GPU_WAIT: c_int = 8;
    /// A send step is on the network.
    pub const SEND_WAIT: c_int = 9;
    /// A receive step waits for the network.
    pub const RECEIVE_WAIT: c_int = 10;
    /// A receive step is made visible to the GPU.
    pub const RECEIVE_FLUSH_WAIT: c_int = 11;
    /// A receive step waits for the GPU to take its data.
    pub const RECEIVE_GPU_WAIT: c_int = 12;
    /// A proxy operation has begun.
    pub const OPERATION_IN_PROGRESS: c_int = 19;
    /// A send step waits for a buffer of its peer.
    pub const SEND_PEER_WAIT: c_int = 20;
    /// A network plugin has news.
    pub const NETWORK_UPDATE: c_int = 21;
    /// A channel of a kernel is over.
    pub const KERNEL_CHANNEL_STOP: c_int = 22;
}

/// What happens to an event of a network plugin ([`Profiler`](crate::Profiler)).
pub mod network {
    use std::ffi::c_int;

    /// It begins.
    pub const START: c_int = 0;
    /// It is over.
    pub const STOP: c_int = 1;
}

/// A collective, version 3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveV3 {
    /// The communicator's name, or null.
    pub name: *const c_char,
    /// Its hash.
    pub communicator: u64,
    /// The how manieth collective of its kind in the communicator.
    pub sequence: u64,
    /// As `AllReduce`.
    pub function: *const c_char,
    /// The send buffer.
    pub send: *const c_void,
    /// The receive buffer.
    pub receive: *mut c_void,
    /// Elements.
    pub count: usize,
    /// The root rank.
    pub root: c_int,
    /// As `ncclFloat32`.
    pub datatype: *const c_char,
    /// Channels, at most.
    pub channels: u8,
    /// Warps of each.
    pub warps: u8,
    /// As `RING`.
    pub algorithm: *const c_char,
    /// As `SIMPLE`.
    pub protocol: *const c_char,
}

/// A collective, version 4.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveV4 {
    /// As in [`CollectiveV3`].
    pub sequence: u64,
    /// As in [`CollectiveV3`].
    pub function: *const c_char,
    /// As in [`CollectiveV3`].
    pub send: *const c_void,
    /// As in [`CollectiveV3`].
    pub receive: *mut c_void,
    /// As in [`CollectiveV3`].
    pub count: usize,
    /// As in [`CollectiveV3`].
    pub root: c_int,
    /// As in [`CollectiveV3`].
    pub datatype: *const c_char,
    /// Channels.
    pub channels: u8,
    /// As in [`CollectiveV3`].
    pub warps: u8,
    /// As in [`CollectiveV3`].
    pub algorithm: *const c_char,
    /// As in [`CollectiveV3`].
    pub protocol: *const c_char,
}

/// A collective, version 5, whose parent is the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveV5 {
    /// What version 4 has.
    pub base: CollectiveV4,
    /// The group that it is launched with.
    pub group: *mut c_void,
}

/// A send or receive, version 3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2pV3 {
    /// The communicator's name, or null.
    pub name: *const c_char,
    /// Its hash.
    pub communicator: u64,
    /// `Send` or `Recv`.
    pub function: *const c_char,
    /// The buffer.
    pub buffer: *mut c_void,
    /// As `ncclFloat32`.
    pub datatype: *const c_char,
    /// Elements.
    pub count: usize,
    /// The other rank.
    pub peer: c_int,
}

/// A send or receive, version 4.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2pV4 {
    /// As in [`P2pV3`].
    pub function: *const c_char,
    /// As in [`P2pV3`].
    pub buffer: *mut c_void,
    /// As in [`P2pV3`].
    pub datatype: *const c_char,
    /// As in [`P2pV3`].
    pub count: usize,
    /// As in [`P2pV3`].
    pub peer: c_int,
    /// Channels; newer NCCL does not write it where it takes this version.
    pub channels: u8,
}

/// A send or receive, version 5, whose parent is the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2pV5 {
    /// What version 4 has.
    pub base: P2pV4,
    /// The group that it is launched with.
    pub group: *mut c_void,
}

/// A proxy operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyOperation {
    /// The process whose task it is, which may be another one (PXN).
    pub process: c_int,
    /// The channel.
    pub channel: u8,
    /// The other rank.
    pub peer: c_int,
    /// Transfers that it needs.
    pub steps: c_int,
    /// Bytes of each, at most.
    pub chunk: c_int,
    /// 1: it sends; 0: it receives.
    pub sends: c_int,
}

/// A transfer of a proxy operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyStep {
    /// The how manieth.
    pub step: c_int,
}

/// A channel of a kernel, version 3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelChannelV3 {
    /// The channel.
    pub channel: u8,
}

/// A channel of a kernel, from version 4 on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelChannelV4 {
    /// The channel.
    pub channel: u8,
    /// The GPU's clock as it began.
    pub timer: u64,
}

/// What a network plugin has handed to NCCL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NetworkEvent {
    /// Whose `data` it is, and of which version.
    pub plugin: i64,
    /// What it says.
    pub data: *mut c_void,
}

/// A group of calls.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupCall {
    /// Not zero: a CUDA graph is captured.
    pub captured: u8,
    /// Groups within groups.
    pub depth: c_int,
}

/// The call of a collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCall {
    /// As `AllReduce`.
    pub function: *const c_char,
    /// Elements.
    pub count: usize,
    /// As `ncclFloat32`.
    pub datatype: *const c_char,
    /// The root rank.
    pub root: c_int,
    /// The CUDA stream.
    pub stream: *mut c_void,
    /// Not zero: a CUDA graph is captured.
    pub captured: u8,
}

/// The call of a send or receive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2pCall {
    /// `Send` or `Recv`.
    pub function: *const c_char,
    /// Elements.
    pub count: usize,
    /// As `ncclFloat32`.
    pub datatype: *const c_char,
    /// The CUDA stream.
    pub stream: *mut c_void,
    /// Not zero: a CUDA graph is captured.
    pub captured: u8,
}

/// The launch of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelLaunch {
    /// The CUDA stream.
    pub stream: *mut c_void,
}

/// What an event of version 3 is about, by its kind; nothing of a group and of what the proxy does besides.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "each field is named like its type")]
pub union AboutV3 {
    pub collective: CollectiveV3,
    pub p2p: P2pV3,
    pub operation: ProxyOperation,
    pub step: ProxyStep,
    pub kernel: KernelChannelV3,
    pub network: NetworkEvent,
}

/// The same of version 4.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "each field is named like its type")]
pub union AboutV4 {
    pub collective: CollectiveV4,
    pub p2p: P2pV4,
    pub operation: ProxyOperation,
    pub step: ProxyStep,
    pub kernel: KernelChannelV4,
    pub network: NetworkEvent,
}

/// The same of version 5.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "each field is named like its type")]
pub union AboutV5 {
    pub group_call: GroupCall,
    pub collective_call: CollectiveCall,
    pub p2p_call: P2pCall,
    pub launch: KernelLaunch,
    pub collective: CollectiveV5,
    pub p2p: P2pV5,
    pub operation: ProxyOperation,
    pub step: ProxyStep,
    pub kernel: KernelChannelV4,
    pub network: NetworkEvent,
}

/// `ncclProfilerEventDescr_t`; `K` is the kind's type: a byte up to version 4, then eight.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Descriptor<K, A> {
    /// Of [`event`], one bit.
    pub kind: K,
    /// The handle of the event that it is a part of, or null.
    pub parent: *mut c_void,
    /// The rank, where NCCL tells it.
    pub rank: c_int,
    /// By kind.
    pub about: A,
}

/// Version 3.
pub type DescriptorV3 = Descriptor<u8, AboutV3>;
/// Version 4.
pub type DescriptorV4 = Descriptor<u8, AboutV4>;
/// Version 5.
pub type DescriptorV5 = Descriptor<u64, AboutV5>;

/// `ncclProfilerEventStateArgs_t` of steps (bytes so far), versions 4 and 5; other states have other fields
/// in the same place, none of them longer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StateArguments {
    /// Bytes that were transferred, or a pointer, or the GPU's clock, or a number of 32 bits.
    pub value: u64,
}

/// `stopEvent`, `finalize`.
pub type Over = unsafe extern "C" fn(*mut c_void) -> NcclResult;
/// `startEvent`: context, handle, what it is.
pub type StartEvent<D> = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut D) -> NcclResult;
/// `recordEventState`: handle, state, arguments or null.
pub type RecordState = unsafe extern "C" fn(*mut c_void, c_int, *mut StateArguments) -> NcclResult;
/// `init` of version 3: context, mask.
pub type InitV3 = unsafe extern "C" fn(*mut *mut c_void, *mut c_int) -> NcclResult;
/// `init` of version 4: context, mask, the communicator's name or null, its hash, nodes, ranks, own rank.
pub type InitV4 = unsafe extern "C" fn(
    *mut *mut c_void,
    *mut c_int,
    *const c_char,
    u64,
    c_int,
    c_int,
    c_int,
    Option<Logger>,
) -> NcclResult;
/// `init` of version 5: the same in another order, hash and mask before the name.
pub type InitV5 = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    *mut c_int,
    *const c_char,
    c_int,
    c_int,
    c_int,
    Option<Logger>,
) -> NcclResult;

/// `ncclProfiler_v3_t` and the same of later versions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "said at the top of the module, once for all versions")]
pub struct ProfilerTable<I, D> {
    pub name: *const c_char,
    pub init: I,
    pub start_event: StartEvent<D>,
    pub stop_event: Over,
    pub record_state: RecordState,
    pub finalize: Over,
}

#[expect(unsafe_code, reason = "tables are constants that any thread may read")]
// SAFETY: nothing in it changes, and `name` points to constant text.
unsafe impl<I, D> Sync for ProfilerTable<I, D> {}

/// Version 3.
pub type ProfilerV3 = ProfilerTable<InitV3, DescriptorV3>;
/// Version 4.
pub type ProfilerV4 = ProfilerTable<InitV4, DescriptorV4>;
/// Version 5.
pub type ProfilerV5 = ProfilerTable<InitV5, DescriptorV5>;
