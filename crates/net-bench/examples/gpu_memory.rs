//! Messages between what stands for the memory of two GPUs, over a network plugin as NCCL drives it, from one
//! of this process's NICs to another: registered as NCCL registers DMA-BUFs (they are files here), and flushed.
//!
//!     gpu_memory PLUGIN FROM TO MESSAGES BYTES
//!
//! Prints `pointers N`, the memory that the sending NIC reaches; then `refused WHY` where a DMA-BUF cannot be
//! registered, or `message N BYTES` for each that came and `ok`.

#![expect(unsafe_code, reason = "buffers outlive their requests")]

use std::error::Error;
use std::ffi::c_void;
use std::path::Path;
use std::time::{Duration, Instant};
use weft_nccl_abi::Version;
use weft_net_bench::gpu::GpuMemory;
use weft_net_bench::table::{Net, Part, Plugin};
use weft_net_bench::{BenchError, log};

const LONGEST: Duration = Duration::from_secs(30);
const PAGE: usize = 4_096;

/// Asks until the answer is not null.
fn until(
    mut ask: impl FnMut() -> Result<*mut c_void, BenchError>,
) -> Result<*mut c_void, Box<dyn Error>> {
    let begun = Instant::now();
    while begun.elapsed() < LONGEST {
        let answer = ask()?;
        if !answer.is_null() {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Err("time is up".into())
}

/// Waits for a request; the size of its first buffer.
fn wait(net: &Net, request: *mut c_void) -> Result<usize, Box<dyn Error>> {
    let mut sizes = [0; 8];
    // SAFETY: a request that is not over.
    until(|| match unsafe { net.test(request, &mut sizes)? } {
        true => Ok(request),
        false => Ok(std::ptr::null_mut()),
    })?;
    Ok(sizes[0].try_into()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, from, to, messages, bytes] = words.as_slice() else {
        return Err("usage: gpu_memory PLUGIN FROM TO MESSAGES BYTES".into());
    };
    let (from, to): (i32, i32) = (from.parse()?, to.parse()?);
    let (messages, bytes): (usize, usize) = (messages.parse()?, bytes.parse()?);
    let net = Plugin::load(Path::new(file), Version::V12)?.init(Some(log::logger()))?;
    println!("pointers {}", net.properties(from)?.pointer_support);
    let (mut handle, listener) = net.listen(to)?;
    let send = until(|| net.connect(from, &mut handle))?;
    // SAFETY: the listener is open.
    let receive = until(|| unsafe { net.accept(listener) })?;
    let room = bytes.next_multiple_of(PAGE);
    let (mut source, mut target) = (GpuMemory::new(room)?, GpuMemory::new(room)?);
    // SAFETY: both are open, and their memory stays to the end.
    let registered = unsafe {
        let source = net.register_dma_buf(send, (source.start(), room), (source.file(), 0));
        source.and_then(|source| {
            let target = net.register_dma_buf(receive, (target.start(), room), (target.file(), 0));
            target.map(|target| (source, target))
        })
    };
    let (sent_from, received_into) = match registered {
        Ok(both) => both,
        Err(error) => {
            println!("refused {error}");
            return Ok(());
        }
    };
    for number in 0..messages {
        let len = bytes * (number + 1) / messages;
        for (at, byte) in source.view()[..len].iter_mut().enumerate() {
            *byte = (at * 7 + number) as u8;
        }
        target.view().fill(0);
        let part = Part { start: target.start(), len, tag: 0, memory: received_into };
        // SAFETY: the memory stays.
        let (received, sent) = unsafe {
            (
                until(|| net.irecv(receive, &[part], false))?,
                until(|| net.isend(send, source.start(), len, 0, sent_from))?,
            )
        };
        wait(&net, sent)?;
        let came = wait(&net, received)?;
        // SAFETY: as above.
        let flush = unsafe { net.flush(receive, &[part])? };
        if flush.is_null() {
            return Err("there is nothing to flush".into());
        }
        wait(&net, flush)?;
        if came != len || source.view()[..len] != target.view()[..len] {
            return Err(format!("message {number} of {len} bytes is not what was sent").into());
        }
        println!("message {number} {len}");
    }
    println!("ok {messages} messages");
    Ok(())
}
