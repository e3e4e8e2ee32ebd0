//! The five tables, under the names by which NCCL looks for them.
//!
//! # Safety
//! All functions here are called by NCCL through its tables, with what its interface says.

#![expect(unsafe_code, reason = "functions that C calls, and symbols that it looks for")]

use crate::boundary::{Failure, enter};
use crate::calls::{self, Context, LARGEST};
use crate::core::{self, Core};
use crate::logger;
use crate::nic::MERGES_ANYWHERE;
use crate::objects::{Comm, at, give};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use weft_comm::MOST_BUFFERS;
use weft_nccl_abi::{
    CommConfig, DEVICE_HOST, DEVICE_INVALID_VERSION, DeviceHandle, Logger, NcclResult,
    NetAttributes, NetV8, NetV9, NetV10, NetV11, NetV12, Profiler, PropertiesV8, PropertiesV9,
    PropertiesV11, PropertiesV12, VirtualDevice4, VirtualDevice8,
};

/// `NCCL_NET=Weft` makes NCCL use it or fail.
const NAME: *const c_char = c"Weft".as_ptr();
/// NCCL asks before it makes another; there is no limit but memory and ports.
const MOST_COMMS: c_int = 1 << 16;

/// Runs what is unsafe only for what NCCL hands in.
macro_rules! call {
    ($name:literal, $body:expr) => {
        enter($name, || {
            // SAFETY: arguments are what the interface says, as at the top.
            unsafe { $body }
        })
    };
}

unsafe extern "C" fn init_v8(log: Option<Logger>) -> NcclResult {
    logger::set(log);
    enter("init", Core::acquire_forever)
}

unsafe extern "C" fn init_v10(log: Option<Logger>, profiler: Option<Profiler>) -> NcclResult {
    logger::set(log);
    core::set_profiler(profiler);
    enter("init", Core::acquire_forever)
}

unsafe extern "C" fn init_v11(
    context: *mut *mut c_void,
    _comm: u64,
    config: *mut CommConfig,
    log: Option<Logger>,
    profiler: Option<Profiler>,
) -> NcclResult {
    logger::set(log);
    core::set_profiler(profiler);
    enter("init", || {
        // SAFETY: a place for one pointer.
        let context = unsafe { context.as_mut() }.ok_or(Failure::Null("ctx"))?;
        let core = Core::acquire()?;
        // SAFETY: NCCL's structure, or null.
        let dscp = unsafe { calls::dscp(&core, config)? };
        *context = give(Context { core, dscp });
        Ok(())
    })
}

unsafe extern "C" fn devices(count: *mut c_int) -> NcclResult {
    call!("devices", calls::devices(count))
}

/// Fills in what NCCL gave room for.
unsafe fn properties<P>(device: c_int, out: *mut P, make: fn(&calls::About) -> P) -> NcclResult {
    enter("getProperties", || {
        if out.is_null() {
            return Err(Failure::Null("props"));
        }
        let about = calls::about(&*Core::current()?.nic(device)?);
        // SAFETY: NCCL's structure; it may be uninitialised.
        unsafe { out.write(make(&about)) };
        Ok(())
    })
}

fn as_v8(about: &calls::About) -> PropertiesV8 {
    PropertiesV8 {
        name: about.name.as_ptr(),
        pci_path: about.pci_path.map_or(null(), |path| path.as_ptr()),
        guid: about.guid,
        pointer_support: about.pointers,
        registration_is_global: 0,
        speed: about.speed,
        port: 1,
        latency: 0.0,
        max_comms: MOST_COMMS,
        max_receives: MOST_BUFFERS as c_int,
        device_type: DEVICE_HOST,
        device_version: DEVICE_INVALID_VERSION,
    }
}

fn as_v9(about: &calls::About) -> PropertiesV9 {
    let PropertiesV8 {
        name,
        pci_path,
        guid,
        pointer_support,
        registration_is_global,
        speed,
        port,
        latency,
        max_comms,
        max_receives,
        device_type,
        device_version,
    } = as_v8(about);
    PropertiesV9 {
        name,
        pci_path,
        guid,
        pointer_support,
        registration_is_global,
        force_flush: 0,
        speed,
        port,
        latency,
        max_comms,
        max_receives,
        device_type,
        device_version,
        virtual_device: {
            let (count, devices) = members(about);
            VirtualDevice4 { count, devices }
        },
        max_p2p_bytes: LARGEST,
        max_collective_bytes: LARGEST,
    }
}

/// The numbers of what it consists of, as many as the version has room for.
fn members<const N: usize>(about: &calls::About) -> (c_int, [c_int; N]) {
    let mut devices = [0; N];
    let count = about.members.len().min(N);
    devices[..count].copy_from_slice(&about.members[..count]);
    (count as c_int, devices)
}

fn as_v11(about: &calls::About) -> PropertiesV11 {
    PropertiesV11 { base: as_v9(about), max_multi_request: 1 }
}

fn as_v12(about: &calls::About) -> PropertiesV12 {
    let base = as_v9(about);
    let (count, devices) = members(about);
    PropertiesV12 {
        name: base.name,
        pci_path: base.pci_path,
        guid: base.guid,
        pointer_support: base.pointer_support,
        registration_is_global: base.registration_is_global,
        force_flush: base.force_flush,
        speed: base.speed,
        port: base.port,
        latency: base.latency,
        max_comms: base.max_comms,
        max_receives: base.max_receives,
        device_type: base.device_type,
        device_version: base.device_version,
        virtual_device: VirtualDevice8 { count, devices },
        max_p2p_bytes: base.max_p2p_bytes,
        max_collective_bytes: base.max_collective_bytes,
        max_multi_request: 1,
        rail: about.rail,
        plane: about.plane,
    }
}

unsafe extern "C" fn properties_v8(device: c_int, out: *mut PropertiesV8) -> NcclResult {
    // SAFETY: as at the top.
    unsafe { properties(device, out, as_v8) }
}

unsafe extern "C" fn properties_v9(device: c_int, out: *mut PropertiesV9) -> NcclResult {
    // SAFETY: as at the top.
    unsafe { properties(device, out, as_v9) }
}

unsafe extern "C" fn properties_v11(device: c_int, out: *mut PropertiesV11) -> NcclResult {
    // SAFETY: as at the top.
    unsafe { properties(device, out, as_v11) }
}

unsafe extern "C" fn properties_v12(device: c_int, out: *mut PropertiesV12) -> NcclResult {
    // SAFETY: as at the top.
    unsafe { properties(device, out, as_v12) }
}

unsafe extern "C" fn listen_v8(
    device: c_int,
    handle: *mut c_void,
    comm: *mut *mut c_void,
) -> NcclResult {
    call!("listen", calls::listen(&*Core::current()?, device, handle, comm))
}

unsafe extern "C" fn listen_v11(
    context: *mut c_void,
    device: c_int,
    handle: *mut c_void,
    comm: *mut *mut c_void,
) -> NcclResult {
    call!("listen", calls::listen(&at::<Context>(context, "ctx")?.core, device, handle, comm))
}

unsafe extern "C" fn connect_v8(
    device: c_int,
    handle: *mut c_void,
    comm: *mut *mut c_void,
    _: *mut *mut DeviceHandle,
) -> NcclResult {
    call!("connect", calls::connect(&*Core::current()?, device, None, handle, comm))
}

unsafe extern "C" fn connect_v10(
    device: c_int,
    config: *mut CommConfig,
    handle: *mut c_void,
    comm: *mut *mut c_void,
    _: *mut *mut DeviceHandle,
) -> NcclResult {
    call!("connect", {
        let core = Core::current()?;
        let dscp = calls::dscp(&core, config)?;
        calls::connect(&core, device, dscp, handle, comm)
    })
}

unsafe extern "C" fn connect_v11(
    context: *mut c_void,
    device: c_int,
    handle: *mut c_void,
    comm: *mut *mut c_void,
    _: *mut *mut DeviceHandle,
) -> NcclResult {
    call!("connect", {
        let Context { core, dscp } = at::<Context>(context, "ctx")?;
        calls::connect(core, device, *dscp, handle, comm)
    })
}

unsafe extern "C" fn accept(
    listener: *mut c_void,
    comm: *mut *mut c_void,
    _: *mut *mut DeviceHandle,
) -> NcclResult {
    call!("accept", calls::accept(listener, comm))
}

unsafe extern "C" fn reg_mr(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    kind: c_int,
    memory: *mut *mut c_void,
) -> NcclResult {
    call!("regMr", calls::register(comm, data, size, kind, memory))
}

unsafe extern "C" fn reg_mr_dma_buf(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    _kind: c_int,
    offset: u64,
    file: c_int,
    memory: *mut *mut c_void,
) -> NcclResult {
    call!("regMrDmaBuf", calls::register_dma_buf(comm, data, size, (offset, file), memory))
}

unsafe extern "C" fn dereg_mr(comm: *mut c_void, memory: *mut c_void) -> NcclResult {
    call!("deregMr", calls::deregister(comm, memory))
}

unsafe extern "C" fn isend_v8(
    comm: *mut c_void,
    data: *mut c_void,
    size: c_int,
    tag: c_int,
    memory: *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("isend", calls::isend(comm, data, bytes(size)?, tag, memory, null_mut(), request))
}

unsafe extern "C" fn isend_v9(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    tag: c_int,
    memory: *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("isend", calls::isend(comm, data, size, tag, memory, null_mut(), request))
}

unsafe extern "C" fn isend_v10(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    tag: c_int,
    memory: *mut c_void,
    profile: *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("isend", calls::isend(comm, data, size, tag, memory, profile, request))
}

unsafe extern "C" fn irecv_v8(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    sizes: *mut c_int,
    tags: *mut c_int,
    memory: *mut *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("irecv", {
        let size = |index| bytes(read(sizes, index)?);
        calls::irecv(comm, count, data, size, tags, memory, null_mut(), request)
    })
}

unsafe extern "C" fn irecv_v9(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    sizes: *mut usize,
    tags: *mut c_int,
    memory: *mut *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("irecv", {
        let size = |index| read(sizes, index);
        calls::irecv(comm, count, data, size, tags, memory, null_mut(), request)
    })
}

unsafe extern "C" fn irecv_v10(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    sizes: *mut usize,
    tags: *mut c_int,
    memory: *mut *mut c_void,
    profiles: *mut *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("irecv", {
        let size = |index| read(sizes, index);
        calls::irecv(comm, count, data, size, tags, memory, profiles, request)
    })
}

unsafe extern "C" fn iflush(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    sizes: *mut c_int,
    memory: *mut *mut c_void,
    request: *mut *mut c_void,
) -> NcclResult {
    call!("iflush", calls::flush(comm, count, data, sizes, memory, request))
}

unsafe extern "C" fn test(request: *mut c_void, done: *mut c_int, sizes: *mut c_int) -> NcclResult {
    call!("test", calls::test(request, done, sizes))
}

unsafe extern "C" fn close_send(comm: *mut c_void) -> NcclResult {
    let is = |comm: &Comm| matches!(comm, Comm::Send(_));
    call!("closeSend", calls::close(comm, "sendComm", is))
}

unsafe extern "C" fn close_recv(comm: *mut c_void) -> NcclResult {
    let is = |comm: &Comm| matches!(comm, Comm::Receive(_));
    call!("closeRecv", calls::close(comm, "recvComm", is))
}

unsafe extern "C" fn close_listen(comm: *mut c_void) -> NcclResult {
    let is = |comm: &Comm| matches!(comm, Comm::Listen(..));
    call!("closeListen", calls::close(comm, "listenComm", is))
}

unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    call!("finalize", calls::finalize(context))
}

unsafe extern "C" fn make_v9(number: *mut c_int, given: *mut VirtualDevice4) -> NcclResult {
    call!("makeVDevice", {
        let given = given.as_ref().ok_or(Failure::Null("props"))?;
        calls::merge(number, given.count, &given.devices)
    })
}

unsafe extern "C" fn make_v12(number: *mut c_int, given: *mut VirtualDevice8) -> NcclResult {
    call!("makeVDevice", {
        let given = given.as_ref().ok_or(Failure::Null("props"))?;
        calls::merge(number, given.count, &given.devices)
    })
}

/// Not NCCL's: says whether NICs that NCCL could not place may be merged, as it places none here.
#[unsafe(no_mangle)]
pub extern "C" fn weft_merge_anywhere(allowed: bool) {
    MERGES_ANYWHERE.store(allowed, Ordering::Relaxed);
}

unsafe extern "C" fn set_net_attr(context: *mut c_void, given: *mut NetAttributes) -> NcclResult {
    call!("setNetAttr", calls::attributes(context, given))
}

fn bytes(size: c_int) -> Result<usize, Failure> {
    usize::try_from(size).map_err(|_| Failure::Argument(format!("{size} bytes")))
}

/// # Safety
/// An array with that entry, or null.
unsafe fn read<T: Copy>(sizes: *mut T, index: usize) -> Result<T, Failure> {
    // SAFETY: by the contract.
    if sizes.is_null() { Err(Failure::Null("sizes")) } else { Ok(unsafe { *sizes.add(index) }) }
}

/// Writes out one table; what is not named is the same in all.
macro_rules! export {
    ($symbol:ident: $table:ident { $($field:ident: $value:expr),* $(,)? }) => {
        /// A table of this version, as NCCL looks for it.
        #[unsafe(no_mangle)]
        pub static $symbol: $table = $table {
            name: NAME,
            devices,
            accept,
            reg_mr,
            reg_mr_dma_buf: Some(reg_mr_dma_buf),
            dereg_mr,
            iflush: Some(iflush),
            test,
            close_send,
            close_recv,
            close_listen,
            get_device_mr: None,
            irecv_consumed: None,
            $($field: $value,)*
        };
    };
}

export!(ncclNetPlugin_v8: NetV8 {
    init: init_v8, get_properties: properties_v8, listen: listen_v8, connect: connect_v8,
    isend: isend_v8, irecv: irecv_v8,
});
export!(ncclNetPlugin_v9: NetV9 {
    init: init_v8, get_properties: properties_v9, listen: listen_v8, connect: connect_v8,
    isend: isend_v9, irecv: irecv_v9, make_v_device: Some(make_v9),
});
export!(ncclNetPlugin_v10: NetV10 {
    init: init_v10, get_properties: properties_v9, listen: listen_v8, connect: connect_v10,
    isend: isend_v10, irecv: irecv_v10, make_v_device: Some(make_v9),
});
export!(ncclNetPlugin_v11: NetV11 {
    init: init_v11, get_properties: properties_v11, listen: listen_v11, connect: connect_v11,
    isend: isend_v10, irecv: irecv_v10, make_v_device: Some(make_v9), finalize: finalize,
    set_net_attr: Some(set_net_attr),
});
export!(ncclNetPlugin_v12: NetV12 {
    init: init_v11, get_properties: properties_v12, listen: listen_v11, connect: connect_v11,
    isend: isend_v10, irecv: irecv_v10, make_v_device: Some(make_v12), finalize: finalize,
    set_net_attr: Some(set_net_attr),
});
