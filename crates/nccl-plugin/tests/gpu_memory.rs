//! Memory of GPUs, as NCCL hands it over: by regMrDmaBuf, with flushes behind what came. The device is
//! `gpu/verbs.c` in the place of libibverbs; what stands for memory of a GPU the processor cannot read.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{Pair, fill, is_filled, net, until};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_nccl_abi::{NcclResult, POINTER_DMABUF, POINTER_HOST, Version};
use weft_net_bench::BenchError;
use weft_net_bench::gpu::GpuMemory;
use weft_net_bench::table::{Net, Part};

const INSIDE: &str = "PLUGIN_TEST_INSIDE";
const ROOM: usize = 4 << 20;

/// The device, compiled, in a folder of its own.
fn device(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/verbs.c");
    let flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"];
    let made =
        Command::new("cc").args(flags).arg(folder.join("libibverbs.so.1")).arg(source).status();
    assert!(made.expect("a C compiler, as linking takes").success());
    folder
}

/// Runs `test` again where the device is libibverbs. Whether this is it.
fn with_device(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var(INSIDE).is_ok() {
        return true;
    }
    if !Path::new("/usr/include/infiniband/verbs.h").exists() {
        println!("skipped: no infiniband/verbs.h here (libibverbs-dev)");
        return false;
    }
    let folder = device(test);
    let end = Command::new(std::env::current_exe().expect("a test"))
        .args([test, "--exact", "--nocapture"])
        .envs([("WEFT_BACKEND", "roce"), ("WEFT_RDMA_DEVICE", "fake_0"), (INSIDE, "1")])
        .env("LD_LIBRARY_PATH", &folder)
        .envs(variables.iter().copied())
        .status();
    std::fs::remove_dir_all(folder).expect("it is ours");
    assert!(end.expect("it starts").success());
    false
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
