//! Each function of the interface once. What differs between versions is in `versions`.
//!
//! # Safety
//! All take pointers as NCCL gives them; what they may be is said at the top of the crate.

#![expect(unsafe_code, reason = "reads and writes through NCCL's pointers")]

use crate::boundary::Failure;
use crate::core::{Core, forever};
use crate::logger;
use crate::nic::Nic;
use crate::objects::{Comm, Memory, Slot, at, give, take};
use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use weft_comm::{
    Buffer, GpuMemory, HANDLE, Handle, Hint, MOST_BUFFERS, RecvChannel, Region, SendChannel,
};
use weft_deploy::Device;
use weft_nccl_abi::{CommConfig, NetAttributes, POINTER_CUDA, POINTER_HOST};

type Outcome = Result<(), Failure>;

/// The largest message: a power of two whose size `test` can tell in an `int`.
pub(crate) const LARGEST: usize = 1 << 30;

/// A context of versions 11 and 12: it keeps the core alive, and has what its communicator wants.
pub(crate) struct Context {
    pub(crate) core: Arc<Core>,
    /// DSCP of what it sends, if not that of the NIC.
    pub(crate) dscp: Option<u8>,
}

const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Context>();
};

/// What all versions say of a NIC.
pub(crate) struct About {
    pub(crate) name: &'static std::ffi::CStr,
    pub(crate) pci_path: Option<&'static std::ffi::CStr>,
    pub(crate) guid: u64,
    /// Mbps.
    pub(crate) speed: c_int,
    /// Which memory it reaches.
    pub(crate) pointers: c_int,
    /// NCCL's numbers of the NICs of which it consists.
    pub(crate) members: Vec<c_int>,
    /// -1 where they are not known, or those of its members differ.
    pub(crate) rail: i16,
    pub(crate) plane: i16,
}

/// What of a NIC whose speed nobody knows: as NCCL's own sockets say.
const USUAL_SPEED: c_int = 10_000;

pub(crate) fn about(nic: &Nic) -> About {
    // NCCL places a virtual NIC itself; the rest is as its first says.
    let device = &nic.devices[0];
    let speed = c_int::try_from(nic.speed_mbps()).unwrap_or(c_int::MAX);
    let place = |number: Option<u32>| number.and_then(|it| i16::try_from(it).ok()).unwrap_or(-1);
    About {
        name: forever(&nic.name),
        members: nic.numbers.clone(),
        rail: place(nic.common(|device| device.rail)),
        plane: place(nic.common(|device| device.plane)),
        pci_path: device.pci_path.as_deref().map(forever),
        guid: device.guid,
        speed: if speed == 0 { USUAL_SPEED } else { speed },
        pointers: nic.pointers(),
    }
}

pub(crate) unsafe fn devices(count: *mut c_int) -> Outcome {
    let devices = Core::current()?.devices();
    // SAFETY: a place for one number, by the interface.
    let count = unsafe { count.as_mut() }.ok_or(Failure::Null("ndev"))?;
    *count = c_int::try_from(devices).unwrap_or(c_int::MAX);
    Ok(())
}

/// Makes a NIC of the first `count` of `devices`, and writes down its number.
pub(crate) unsafe fn merge(number: *mut c_int, count: c_int, devices: &[c_int]) -> Outcome {
    // SAFETY: a place for one number, by the interface.
    let number = unsafe { number.as_mut() }.ok_or(Failure::Null("d"))?;
    let most = devices.len();
    let chosen = usize::try_from(count).ok().and_then(|count| devices.get(..count));
    let chosen = chosen.ok_or_else(|| {
        Failure::Argument(format!("{count} devices: this version has up to {most} as one"))
    })?;
    *number = Core::current()?.merge(chosen)?;
    Ok(())
}

/// The DSCP that a communicator wants: the upper six bits of its traffic class, which is what InfiniBand
/// and `NCCL_IB_TC` take by that name.
pub(crate) unsafe fn dscp(core: &Core, config: *mut CommConfig) -> Result<Option<u8>, Failure> {
    // SAFETY: NCCL's structure, or null.
    let Some(CommConfig { traffic_class, .. }) = (unsafe { config.as_ref() }) else {
        return Ok(None);
    };
    if *traffic_class < 0 {
        return Ok(None);
    }
    let class = u8::try_from(*traffic_class).map_err(|_| {
        let what = "it is 0 to 255, and DSCP its upper six bits (104 is DSCP 26)";
        Failure::Argument(format!("trafficClass {traffic_class}: {what}"))
    })?;
    let dscp = class >> 2;
    let nics = core.nics();
    let steered = nics.iter().flat_map(|nic| &nic.devices).find_map(Device::steered_dscp);
    if let Some(steered) = steered.filter(|steered| *steered != dscp) {
        logger::warn(&format!(
            "trafficClass {class} is DSCP {dscp}, but switches steer DSCP {steered}: messages of this \
             communicator are hashed; use trafficClass {}, or configure the switches for both",
            steered << 2
        ));
    }
    Ok(Some(dscp))
}

pub(crate) unsafe fn listen(
    core: &Core,
    device: c_int,
    handle: *mut c_void,
    comm: *mut *mut c_void,
) -> Outcome {
    if handle.is_null() {
        return Err(Failure::Null("handle"));
    }
    // SAFETY: a place for one pointer.
    let comm = unsafe { comm.as_mut() }.ok_or(Failure::Null("listenComm"))?;
    let endpoint = core.endpoint(device)?;
    let (listener, Handle(bytes)) = endpoint.listen()?;
    // SAFETY: NCCL's handles have room for so many bytes.
    unsafe { handle.cast::<[u8; HANDLE]>().write_unaligned(bytes) };
    let messages = core.messages(device);
    *comm = give(Comm::Listen(listener, endpoint, messages));
    Ok(())
}

pub(crate) unsafe fn connect(
    core: &Core,
    device: c_int,
    dscp: Option<u8>,
    handle: *mut c_void,
    comm: *mut *mut c_void,
) -> Outcome {
    if handle.is_null() {
        return Err(Failure::Null("handle"));
    }
    // SAFETY: a place for one pointer.
    let comm = unsafe { comm.as_mut() }.ok_or(Failure::Null("sendComm"))?;
    *comm = std::ptr::null_mut();
    // SAFETY: NCCL's handles have so many bytes.
    let mut bytes = Handle(unsafe { handle.cast::<[u8; HANDLE]>().read_unaligned() });
    let outcome = core.connect(device, dscp, &mut bytes);
    // SAFETY: as above; NCCL gives the same bytes again, and lets plugins keep their state in them.
    unsafe { handle.cast::<[u8; HANDLE]>().write_unaligned(bytes.0) };
    if let Some((channel, endpoint)) = outcome? {
        *comm = give(Comm::sending(channel, endpoint, core.messages(device)));
    }
    Ok(())
}

pub(crate) unsafe fn accept(listener: *mut c_void, comm: *mut *mut c_void) -> Outcome {
    // SAFETY: as at the top.
    let (listener, endpoint, messages) =
        unsafe { at::<Comm>(listener, "listenComm")? }.as_listener()?;
    // SAFETY: a place for one pointer.
    let comm = unsafe { comm.as_mut() }.ok_or(Failure::Null("recvComm"))?;
    *comm = match listener.try_accept()? {
        Some(channel) => give(Comm::receiving(channel, endpoint.clone(), messages.clone())),
        None => std::ptr::null_mut(),
    };
    Ok(())
}

pub(crate) unsafe fn register(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    kind: c_int,
    memory: *mut *mut c_void,
) -> Outcome {
    // SAFETY: as at the top; a place for one pointer.
    let (comm, memory) = unsafe { (at::<Comm>(comm, "comm")?, memory.as_mut()) };
    let memory = memory.ok_or(Failure::Null("mhandle"))?;
    let region = match kind {
        // SAFETY: NCCL keeps the memory until it calls `deregMr`, and what is under way ends before.
        POINTER_HOST => unsafe { comm.endpoint().register(data.cast(), size)? },
        POINTER_CUDA => {
            let memory = GpuMemory { start: data.addr(), len: size, dma_buf: None };
            // SAFETY: as above.
            unsafe { comm.register_gpu(memory)? }
        }
        _ => {
            return Err(Failure::Argument(format!(
                "memory of kind {kind}: use host memory (1) or CUDA memory (2)"
            )));
        }
    };
    *memory = give(Memory(region));
    Ok(())
}

/// `file` stays NCCL's, which closes it afterwards.
pub(crate) unsafe fn register_dma_buf(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    (offset, file): (u64, c_int),
    memory: *mut *mut c_void,
) -> Outcome {
    // SAFETY: as at the top; a place for one pointer.
    let (comm, memory) = unsafe { (at::<Comm>(comm, "comm")?, memory.as_mut()) };
    let memory = memory.ok_or(Failure::Null("mhandle"))?;
    if file < 0 {
        return Err(Failure::Argument(format!("file {file} is no DMA-BUF")));
    }
    // SAFETY: it is open during the call, by the interface.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let given = GpuMemory { start: data.addr(), len: size, dma_buf: Some((file, offset)) };
    // SAFETY: as in `register`.
    *memory = give(Memory(unsafe { comm.register_gpu(given)? }));
    Ok(())
}

pub(crate) unsafe fn deregister(comm: *mut c_void, memory: *mut c_void) -> Outcome {
    // SAFETY: as at the top.
    unsafe {
        at::<Comm>(comm, "comm")?;
        take::<Memory>(memory, "mhandle").map(drop)
    }
}

pub(crate) unsafe fn isend(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    tag: c_int,
    memory: *mut c_void,
    profile: *mut c_void,
    request: *mut *mut c_void,
) -> Outcome {
    // SAFETY: as at the top; a place for one pointer.
    let (comm, request) = unsafe { (at::<Comm>(comm, "sendComm")?, request.as_mut()) };
    let request = request.ok_or(Failure::Null("request"))?;
    *request = std::ptr::null_mut();
    fits(data, size)?;
    // SAFETY: as at the top.
    let region = unsafe { region(memory) };
    let post = |channel: &SendChannel| {
        // SAFETY: NCCL leaves the memory alone until the request is done.
        unsafe { channel.isend(data.cast_const().cast(), size, tag, region).map_err(Failure::from) }
    };
    // SAFETY: the profiler's handle came with the send.
    let slot = comm
        .as_sender()?
        .post(post, |messages, began| unsafe { messages.begin(began, profile, true, tag) })?;
    *request = slot.cast_mut().cast();
    Ok(())
}

/// `size_at` reads the size of a buffer, whose width differs between versions.
#[expect(clippy::too_many_arguments, reason = "NCCL's")]
pub(crate) unsafe fn irecv(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    size_at: impl Fn(usize) -> Result<usize, Failure>,
    tags: *mut c_int,
    memory: *mut *mut c_void,
    profiles: *mut *mut c_void,
    request: *mut *mut c_void,
) -> Outcome {
    // SAFETY: as at the top; a place for one pointer.
    let (comm, request) = unsafe { (at::<Comm>(comm, "recvComm")?, request.as_mut()) };
    let request = request.ok_or(Failure::Null("request"))?;
    *request = std::ptr::null_mut();
    let count = usize::try_from(count).unwrap_or_default();
    if !(1..=MOST_BUFFERS).contains(&count) {
        return Err(Failure::Argument(format!("{count} buffers: use 1 to {MOST_BUFFERS}")));
    }
    if data.is_null() || tags.is_null() {
        return Err(Failure::Null("an array of data or tags"));
    }
    let none = Buffer { start: std::ptr::null_mut(), len: 0, tag: 0, region: None };
    let mut buffers = [none; MOST_BUFFERS];
    for (index, buffer) in buffers[..count].iter_mut().enumerate() {
        // SAFETY: arrays of `count` entries, by the interface; that of memory may be missing.
        let (start, tag, key) = unsafe {
            let key = if memory.is_null() { std::ptr::null_mut() } else { *memory.add(index) };
            (*data.add(index), *tags.add(index), key)
        };
        let len = size_at(index)?;
        fits(start, len)?;
        // SAFETY: as at the top.
        let region = unsafe { region(key) };
        *buffer = Buffer { start: start.cast(), len, tag, region };
    }
    let post = |channel: &RecvChannel| {
        // SAFETY: NCCL leaves the memory alone until the request is done.
        unsafe { channel.irecv(&buffers[..count]).map_err(Failure::from) }
    };
    // Several buffers are one message here, and belong to the first one's step.
    // SAFETY: an array of `count` handles that came with the receive, or null.
    let slot = comm.as_receiver()?.post(post, |messages, began| unsafe {
        let profile = profiles.as_ref().map_or(std::ptr::null_mut(), |first| *first);
        messages.begin(began, profile, false, buffers[0].tag)
    })?;
    *request = slot.cast_mut().cast();
    Ok(())
}

pub(crate) unsafe fn flush(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    sizes: *mut c_int,
    memory: *mut *mut c_void,
    request: *mut *mut c_void,
) -> Outcome {
    // SAFETY: as at the top; a place for one pointer.
    let (comm, request) = unsafe { (at::<Comm>(comm, "recvComm")?, request.as_mut()) };
    let (comm, request) = (comm.as_receiver()?, request.ok_or(Failure::Null("request"))?);
    *request = std::ptr::null_mut();
    if data.is_null() || sizes.is_null() || memory.is_null() {
        return Ok(());
    }
    let count = usize::try_from(count).unwrap_or_default().min(MOST_BUFFERS);
    // One read comes behind the writes of all buffers.
    let last = (0..count).rev().find_map(|at| {
        // SAFETY: arrays of `count` entries, by the interface, of what `register` gave.
        let (start, size, region) =
            unsafe { (*data.add(at), *sizes.add(at), region(*memory.add(at))) };
        let region = region.filter(|region| region.is_gpu() && size > 0)?;
        Some((start.addr(), region))
    });
    // Host memory is coherent: nothing to wait for.
    let Some((start, region)) = last else { return Ok(()) };
    let post = |channel: &RecvChannel| channel.flush(region, start).map_err(Failure::from);
    let slot = comm.post(post, |_, _| None)?;
    if slot.is_null() {
        // Null would say that all is there.
        return Err(Failure::Usage("more flushes under way than receives can be".into()));
    }
    *request = slot.cast_mut().cast();
    Ok(())
}

pub(crate) unsafe fn test(request: *mut c_void, done: *mut c_int, sizes: *mut c_int) -> Outcome {
    // SAFETY: as at the top; a place for one number.
    let (slot, done) = unsafe { (at::<Slot>(request, "request")?, done.as_mut()) };
    let done = done.ok_or(Failure::Null("done"))?;
    *done = 0;
    let Some(came) = slot.test()? else { return Ok(()) };
    *done = 1;
    if !sizes.is_null() {
        for (index, size) in came.sizes[..came.count].iter().enumerate() {
            // SAFETY: as many places as the request has buffers, by the interface.
            unsafe { *sizes.add(index) = c_int::try_from(*size).unwrap_or(c_int::MAX) };
        }
    }
    Ok(())
}

pub(crate) unsafe fn close(
    comm: *mut c_void,
    what: &'static str,
    is: fn(&Comm) -> bool,
) -> Outcome {
    // SAFETY: as at the top.
    unsafe {
        if !is(at::<Comm>(comm, what)?) {
            return Err(Failure::Argument(format!("the communicator is no {what}")));
        }
        take::<Comm>(comm, what).map(drop)
    }
}

pub(crate) unsafe fn finalize(context: *mut c_void) -> Outcome {
    // SAFETY: as at the top.
    unsafe { take::<Context>(context, "ctx").map(drop) }
}

pub(crate) unsafe fn attributes(context: *mut c_void, given: *mut NetAttributes) -> Outcome {
    // SAFETY: as at the top; NCCL's structure.
    let (context, given) = unsafe { (at::<Context>(context, "ctx")?, given.as_ref()) };
    let send = given.ok_or(Failure::Null("netAttr"))?.send;
    let known = |number: i32| u32::try_from(number).unwrap_or(0);
    context.core.hint(Hint {
        peers: (known(send.min_concurrent_peers), known(send.max_concurrent_peers)),
        flows_per_peer: (known(send.min_flows_per_peer), known(send.max_flows_per_peer)),
    });
    Ok(())
}

fn fits(data: *mut c_void, size: usize) -> Outcome {
    if data.is_null() && size > 0 {
        return Err(Failure::Null("data"));
    }
    // Version 8 has no way to be told.
    if size > LARGEST {
        return Err(Failure::Argument(format!("{size} bytes: a message has at most {LARGEST}")));
    }
    Ok(())
}

/// The memory behind a handle, if there is one: of TCP there need not be.
unsafe fn region<'a>(memory: *mut c_void) -> Option<&'a Region> {
    // SAFETY: it came from `register` and is not deregistered while something is under way.
    unsafe { at::<Memory>(memory, "mhandle") }.ok().map(|memory| &memory.0)
}
