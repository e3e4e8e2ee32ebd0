//! Memory of GPUs, as NCCL hands it over: by regMrDmaBuf, with flushes behind what came. Devices are in software
//! (`devices`); what stands for memory of a GPU the processor cannot read.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;
#[path = "../../verbs/tests/devices/mod.rs"]
mod devices;

use common::{Pair, environment, fill, is_filled, net, until};
use devices::{Fake, State, with_devices};
use std::ffi::c_void;
use weft_nccl_abi::{NcclResult, POINTER_DMABUF, POINTER_HOST, Version};
use weft_net_bench::BenchError;
use weft_net_bench::gpu::GpuMemory;
use weft_net_bench::table::{Net, Part};

const ROOM: usize = 4 << 20;

/// Runs `test` again where NIC 0 is a device of them. Whether this is it.
fn with_device(test: &str, variables: &[(&str, &str)]) -> bool {
    let own = [("WEFT_BACKEND", "roce"), ("WEFT_RDMA_DEVICE", "fake_0")];
    with_devices(test, &[&own[..], variables].concat())
}

fn gpu() -> GpuMemory {
    GpuMemory::new(ROOM).expect("there is memory").as_dma_buf()
}

/// A part of it, as receives and flushes want it.
fn part(gpu: &GpuMemory, len: usize, memory: *mut c_void) -> Part {
    Part { start: gpu.start(), len, tag: 0, memory }
}

/// A DMA-BUF as NCCL registers it.
fn register(net: &Net, comm: *mut c_void, gpu: &GpuMemory) -> Result<*mut c_void, BenchError> {
    // SAFETY: the comm is open, and the memory outlives it.
    unsafe { net.register_dma_buf(comm, (gpu.start(), ROOM), (gpu.file(), 0)) }
}

#[test]
fn what_goes_from_gpu_to_gpu_is_there_after_a_flush() {
    if !with_device("what_goes_from_gpu_to_gpu_is_there_after_a_flush", &[]) {
        return;
    }
    for version in Version::ALL {
        let net = net(version);
        let about = net.properties(0).expect("it has properties");
        assert_eq!(about.pointer_support, POINTER_HOST | POINTER_DMABUF, "{version:?}");
        let pair = Pair::new(&net, 100);
        let (mut from, mut to) = (gpu(), gpu());
        let kind = if to.is_dma_buf() { "DMA-BUFs" } else { "files: no /dev/udmabuf here" };
        println!("{version:?}: between {kind}");
        let sends = register(&net, pair.send, &from).expect("it registers");
        let receives = register(&net, pair.receive, &to).expect("it registers");
        for (message, len) in [1, 4_096, 300_001, ROOM].into_iter().enumerate() {
            fill(&mut from.view()[..len], message);
            to.view().fill(0xEE);
            // SAFETY: both stay until the requests are over.
            let (receive, send) = unsafe {
                let into = part(&to, len, receives);
                (
                    until("irecv", || some(net.irecv(pair.receive, &[into], false))),
                    until("isend", || some(net.isend(pair.send, from.start(), len, 0, sends))),
                )
            };
            pair.wait(send);
            assert_eq!(pair.wait(receive)[0] as usize, len);
            // The device keeps it back, so that nothing here can do without a flush.
            assert!(!is_filled(&to.view()[..len], message), "{len} bytes are there before");
            // SAFETY: as above.
            let flush = unsafe { net.flush(pair.receive, &[part(&to, len, receives)]) };
            let flush = flush.expect("it flushes");
            assert!(!flush.is_null(), "there is something to wait for");
            pair.wait(flush);
            assert!(is_filled(&to.view()[..len], message), "{version:?}: {len} bytes");
            assert!(to.view()[len..].iter().all(|byte| *byte == 0xEE), "more than the message");
        }
        // SAFETY: each was registered with its comm, and is forgotten once.
        unsafe {
            net.deregister(pair.send, sends).expect("it forgets");
            net.deregister(pair.receive, receives).expect("it forgets");
        }
        pair.close();
        net.finalize().expect("it ends");
    }
}

fn some(request: Result<*mut c_void, BenchError>) -> Option<*mut c_void> {
    Some(request.expect("it works")).filter(|request| !request.is_null())
}

/// Virtual NICs of two devices, which are two hosts here: what each has written is flushed by it. The interfaces
/// are made by `tests/test_namespaces.py`, which runs this.
#[test]
#[ignore = "needs the interfaces of two servers with two NICs"]
fn virtual_nics_have_several_devices() {
    let own = [
        ("WEFT_BACKEND", "roce"),
        ("WEFT_IFNAME", "=nic0,nic1,nic2,nic3"),
        ("WEFT_RDMA_DEVICE", "fake_0,fake_1,fake_0,fake_1"),
    ];
    if !with_devices("virtual_nics_have_several_devices", &own) {
        return;
    }
    environment(&own);
    for version in Version::ALL.into_iter().filter(|version| *version > Version::V8) {
        let net = net(version);
        let hosts = [[0, 1], [2, 3]].map(|members| net.make_virtual(&members).expect("it merges"));
        let about = net.properties(hosts[0]).expect("it has properties");
        assert_eq!((about.name.as_str(), about.members), ("nic0+nic1", vec![0, 1]));
        assert_eq!(about.pointer_support, POINTER_HOST | POINTER_DMABUF, "{version:?}");
        let devices = [Fake(0), Fake(1)];
        let before = devices.map(|device| (device.written(), device.reads()));
        let mut pair = Pair::between(&net, (hosts[0], hosts[1]), ROOM);
        fill(&mut pair.out, 7);
        pair.transfer(ROOM);
        assert!(is_filled(&pair.into, 7));
        let (mut from, mut to) = (gpu(), gpu());
        let sends = register(&net, pair.send, &from).expect("it registers");
        let receives = register(&net, pair.receive, &to).expect("it registers");
        fill(from.view(), 9);
        // SAFETY: both stay until the requests are over.
        let (receive, send) = unsafe {
            let into = part(&to, ROOM, receives);
            (
                until("irecv", || some(net.irecv(pair.receive, &[into], false))),
                until("isend", || some(net.isend(pair.send, from.start(), ROOM, 0, sends))),
            )
        };
        pair.wait(send);
        pair.wait(receive);
        // SAFETY: as above.
        let flush = unsafe { net.flush(pair.receive, &[part(&to, ROOM, receives)]) };
        pair.wait(flush.expect("it flushes"));
        assert!(is_filled(to.view(), 9), "{version:?}");
        for (device, (written, reads)) in devices.into_iter().zip(before) {
            assert_eq!(device.written() - written, ROOM as u64, "half of each message");
            assert_eq!(device.reads() - reads, 1);
        }
        // One that refuses leaves nothing behind, and the channel as it was.
        let known = devices.map(Fake::regions);
        devices[1].refuse_memory(true);
        let other = gpu();
        register(&net, pair.receive, &other).expect_err("one device refuses");
        assert_eq!(devices.map(Fake::regions), known);
        devices[1].refuse_memory(false);
        // SAFETY: each was registered with its comm, and is forgotten once.
        unsafe {
            net.deregister(pair.send, sends).expect("it forgets");
            net.deregister(pair.receive, receives).expect("it forgets");
        }
        devices[1].set(State::Down);
        fill(&mut pair.out, 11);
        pair.transfer(ROOM);
        assert!(is_filled(&pair.into, 11), "{version:?}");
        devices[1].set(State::Up);
        pair.close();
        net.finalize().expect("it ends");
    }
}

/// Memory of the host beside that of a GPU: no flush, and no mix-up.
#[test]
fn host_memory_needs_no_flush() {
    if !with_device("host_memory_needs_no_flush", &[]) {
        return;
    }
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, ROOM);
    let to = gpu();
    register(&net, pair.receive, &to).expect("it registers");
    fill(&mut pair.out, 5);
    let receive = pair.receive(&[(0, ROOM, 0)]);
    let send = pair.send(0, ROOM, 0);
    pair.wait(send);
    pair.wait(receive);
    assert!(is_filled(&pair.into, 5));
    let part = Part { start: pair.into.as_mut_ptr(), len: ROOM, tag: 0, memory: pair.memory() };
    // SAFETY: the buffer stays.
    let flush = unsafe { net.flush(pair.receive, &[part]) }.expect("it flushes");
    assert!(flush.is_null(), "host memory is there when it is said");
    pair.close();
    net.finalize().expect("it ends");
}

/// A device that takes no DMA-BUF says so before anybody relies on it, and refuses one in a line.
#[test]
fn a_device_without_dma_bufs_says_so() {
    if !with_device("a_device_without_dma_bufs_says_so", &[("WITHOUT_DMABUF", "1")]) {
        return;
    }
    refused(NcclResult::SYSTEM_ERROR);
}

/// The processor is to check all payload, so all of it has to be where the processor reads.
#[test]
fn check_sums_of_all_leave_gpus_out() {
    if !with_device("check_sums_of_all_leave_gpus_out", &[("WEFT_CHECKSUM", "all")]) {
        return;
    }
    let net = net(Version::V12);
    let about = net.properties(0).expect("it has properties");
    assert_eq!(about.pointer_support, POINTER_HOST);
    let mut pair = Pair::new(&net, 1_000);
    register(&net, pair.send, &gpu()).expect_err("it could not be checked");
    pair.transfer(1_000);
    pair.close();
    net.finalize().expect("it ends");
}

/// Over TCP there is host memory alone.
#[test]
fn tcp_takes_no_memory_of_gpus() {
    refused(NcclResult::INVALID_ARGUMENT);
}

fn refused(with: NcclResult) {
    for version in Version::ALL {
        let net = net(version);
        let about = net.properties(0).expect("it has properties");
        assert_eq!(about.pointer_support, POINTER_HOST, "{version:?}");
        let mut pair = Pair::new(&net, 1_000);
        let gpu = gpu();
        for comm in [pair.send, pair.receive] {
            let error = register(&net, comm, &gpu).expect_err("it cannot");
            let BenchError::Plugin { call: "regMrDmaBuf", result } = error else {
                panic!("{error}")
            };
            assert_eq!(result, with, "{version:?}");
        }
        // The channel is none the worse for it.
        pair.transfer(1_000);
        pair.close();
        net.finalize().expect("it ends");
    }
}
