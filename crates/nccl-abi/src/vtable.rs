//! The tables of functions.
//!
//! | function | contract |
//! |---|---|
//! | `init` | versions 8 to 10 once, later ones once a communicator |
//! | `listen` | writes [`HANDLE_BYTES`](crate::HANDLE_BYTES) bytes that NCCL carries to the sender |
//! | `connect`, `accept` | null and success while it is under way: call again with the same arguments |
//! | `regMr`, `deregMr` | memory of sends and receives; `comm` is a sending or a receiving one |
//! | `isend`, `irecv` | a null request and success: call again |
//! | `irecv` | up to `maxRecvs` buffers, which senders pick by tag; each at least as long as what is sent |
//! | `test` | when done it fills in as many sizes as there were buffers, and the request is over |
//! | `regMrDmaBuf` | CUDA memory as a file, which NCCL closes afterwards; asked for by `ptrSupport` alone |
//! | `iflush` | behind receives into CUDA memory; a null request: nothing to wait for |
//!
//! `regMrDmaBuf`, `getDeviceMr`, `irecvConsumed`, `makeVDevice` and `setNetAttr` may be null.

use crate::{
    CommConfig, DeviceHandle, Logger, NcclResult, NetAttributes, Profiler, PropertiesV8,
    PropertiesV9, PropertiesV11, PropertiesV12, VirtualDevice4, VirtualDevice8,
};
use std::ffi::{c_char, c_int, c_void};

/// `init` of versions 8 and 9.
pub type InitV8 = unsafe extern "C" fn(Option<Logger>) -> NcclResult;
/// `init` of version 10.
pub type InitV10 = unsafe extern "C" fn(Option<Logger>, Option<Profiler>) -> NcclResult;
/// `init` of versions 11 and 12: context, id of the communicator, its configuration.
pub type InitV11 = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    *mut CommConfig,
    Option<Logger>,
    Option<Profiler>,
) -> NcclResult;
/// `devices`: how many NICs there are.
pub type Devices = unsafe extern "C" fn(*mut c_int) -> NcclResult;
/// `getProperties`.
pub type GetProperties<P> = unsafe extern "C" fn(c_int, *mut P) -> NcclResult;
/// `listen` of versions 8 to 10: device, handle, listener.
pub type ListenV8 = unsafe extern "C" fn(c_int, *mut c_void, *mut *mut c_void) -> NcclResult;
/// `listen` of versions 11 and 12: with the context.
pub type ListenV11 =
    unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut *mut c_void) -> NcclResult;
/// `connect` of versions 8 and 9: device, handle, communicator, device handle.
pub type ConnectV8 = unsafe extern "C" fn(
    c_int,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut DeviceHandle,
) -> NcclResult;
/// `connect` of version 10: with a configuration.
pub type ConnectV10 = unsafe extern "C" fn(
    c_int,
    *mut CommConfig,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut DeviceHandle,
) -> NcclResult;
/// `connect` of versions 11 and 12: with the context.
pub type ConnectV11 = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut DeviceHandle,
) -> NcclResult;
/// `accept`: listener, communicator, device handle.
pub type Accept =
    unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut DeviceHandle) -> NcclResult;
/// `regMr`: communicator, start, bytes, kind of memory, what it is known by from then on.
pub type RegMr =
    unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int, *mut *mut c_void) -> NcclResult;
/// `regMrDmaBuf`: the same with offset and file descriptor.
pub type RegMrDmaBuf = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    usize,
    c_int,
    u64,
    c_int,
    *mut *mut c_void,
) -> NcclResult;
/// `deregMr`.
pub type DeregMr = unsafe extern "C" fn(*mut c_void, *mut c_void) -> NcclResult;
/// `isend` of version 8: communicator, start, bytes, tag, memory, request.
pub type IsendV8 = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    c_int,
    c_int,
    *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `isend` of version 9.
pub type IsendV9 = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    usize,
    c_int,
    *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `isend` from version 10 on: with the profiler's handle.
pub type IsendV10 = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    usize,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `irecv` of version 8: communicator, how many, starts, bytes, tags, memory, request.
pub type IrecvV8 = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `irecv` of version 9.
pub type IrecvV9 = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut *mut c_void,
    *mut usize,
    *mut c_int,
    *mut *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `irecv` from version 10 on: with the profiler's handles.
pub type IrecvV10 = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut *mut c_void,
    *mut usize,
    *mut c_int,
    *mut *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `iflush`: communicator, how many, starts, bytes, memory, request.
pub type Iflush = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut *mut c_void,
    *mut c_int,
    *mut *mut c_void,
    *mut *mut c_void,
) -> NcclResult;
/// `test`: request, whether it is done, sizes.
pub type Test = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut c_int) -> NcclResult;
/// `closeSend`, `closeRecv`, `closeListen`, `finalize`.
pub type Close = unsafe extern "C" fn(*mut c_void) -> NcclResult;
/// `getDeviceMr`.
pub type GetDeviceMr =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut *mut c_void) -> NcclResult;
/// `irecvConsumed`.
pub type IrecvConsumed = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> NcclResult;
/// `makeVDevice`.
pub type MakeVDevice<V> = unsafe extern "C" fn(*mut c_int, *mut V) -> NcclResult;
/// `setNetAttr`.
pub type SetNetAttr = unsafe extern "C" fn(*mut c_void, *mut NetAttributes) -> NcclResult;

/// Writes out one table; all of them agree from `accept` to `irecvConsumed`.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $init:ty, $properties:ty, $listen:ty, $connect:ty, $isend:ty,
     $irecv:ty $(, $field:ident: $kind:ty)*) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "said at the top of the module, once for all versions")]
        pub struct $name {
            pub name: *const c_char,
            pub init: $init,
            pub devices: Devices,
            pub get_properties: GetProperties<$properties>,
            pub listen: $listen,
            pub connect: $connect,
            pub accept: Accept,
            pub reg_mr: RegMr,
            pub reg_mr_dma_buf: Option<RegMrDmaBuf>,
            pub dereg_mr: DeregMr,
            pub isend: $isend,
            pub irecv: $irecv,
            pub iflush: Option<Iflush>,
            pub test: Test,
            pub close_send: Close,
            pub close_recv: Close,
            pub close_listen: Close,
            pub get_device_mr: Option<GetDeviceMr>,
            pub irecv_consumed: Option<IrecvConsumed>,
            $(pub $field: $kind,)*
        }
        #[expect(unsafe_code, reason = "tables are constants that any thread may read")]
        // SAFETY: nothing in it changes, and `name` points to constant text.
        unsafe impl Sync for $name {}
    };
}

table! {
    /// `ncclNet_v8_t`.
    NetV8, InitV8, PropertiesV8, ListenV8, ConnectV8, IsendV8, IrecvV8
}
table! {
    /// `ncclNet_v9_t`.
    NetV9, InitV8, PropertiesV9, ListenV8, ConnectV8, IsendV9, IrecvV9,
    make_v_device: Option<MakeVDevice<VirtualDevice4>>
}
table! {
    /// `ncclNet_v10_t`.
    NetV10, InitV10, PropertiesV9, ListenV8, ConnectV10, IsendV10, IrecvV10,
    make_v_device: Option<MakeVDevice<VirtualDevice4>>
}
table! {
    /// `ncclNet_v11_t`.
    NetV11, InitV11, PropertiesV11, ListenV11, ConnectV11, IsendV10, IrecvV10,
    make_v_device: Option<MakeVDevice<VirtualDevice4>>,
    finalize: Close,
    set_net_attr: Option<SetNetAttr>
}
table! {
    /// `ncclNet_v12_t`.
    NetV12, InitV11, PropertiesV12, ListenV11, ConnectV11, IsendV10, IrecvV10,
    make_v_device: Option<MakeVDevice<VirtualDevice8>>,
    finalize: Close,
    set_net_attr: Option<SetNetAttr>
}
