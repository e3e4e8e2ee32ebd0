//! A channel between two RDMA devices of one machine: messages of growing sizes, checked.
//!
//!     roce_channel ADDRESS,... ADDRESS,... CONNECTIONS MESSAGES BYTES
//!
//! Several addresses of an end are devices that are used as one. Prints `message N BYTES` for each that came, then `ok` with time and what was counted.
#![expect(unsafe_code, reason = "buffers outlive their requests")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use weft_comm::{Backend, Buffer, Checksum, CommError, Endpoint, EndpointConfig};

const LONGEST: Duration = Duration::from_secs(60);

fn config(address: Ipv4Addr, connections: u32) -> EndpointConfig {
    EndpointConfig {
        name: address.to_string(),
        address,
        listen: 0..=0,
        dscp: 26,
        backend: Backend::Roce { device: String::new(), port: 1, gid_index: None, or_tcp: false },
        plan: None,
        connections,
        path_time_out: Duration::from_secs(4),
        give_up: Duration::from_secs(20),
        checksum: Checksum::All,
        encrypt: false,
        congestion: None,
        job_key: Default::default(),
        line_bps: 0,
        plane: None,
    }
}

/// The devices of an end, as one.
fn open(addresses: &str, connections: u32) -> Result<Endpoint, Box<dyn Error>> {
    let configs = addresses.split(',').map(|address| Ok(config(address.parse()?, connections)));
    Ok(Endpoint::open_merged(configs.collect::<Result<_, Box<dyn Error>>>()?)?)
}

fn until<T>(mut ready: impl FnMut() -> Result<Option<T>, CommError>) -> Result<T, Box<dyn Error>> {
    let start = Instant::now();
    while start.elapsed() < LONGEST {
        if let Some(it) = ready()? {
            return Ok(it);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Err("time is up".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [first, second, connections, messages, bytes] = words.as_slice() else {
        return Err("usage: roce_channel ADDRESS,... ADDRESS,... CONNECTIONS MESSAGES BYTES".into());
    };
    let (connections, messages) = (connections.parse()?, messages.parse::<usize>()?);
    let bytes: usize = bytes.parse()?;
    let (a, b) = (open(first, connections)?, open(second, connections)?);
    let (listener, handle) = b.listen()?;
    let mut connecting = a.connect(&handle)?;
    let sending = until(|| connecting.try_finish())?;
    let receiving = until(|| listener.try_accept())?;
    let start = Instant::now();
    let mut total = 0;
    for number in 0..messages {
        // From nothing to all of it, odd lengths too.
        let len = bytes * number / messages.max(2).saturating_sub(1);
        let sent: Vec<u8> = (0..len).map(|at| (at * 7 + number) as u8).collect();
        let mut came = vec![0_u8; len + 10];
        let start_of = came.as_mut_ptr();
        let buffer = [Buffer { start: start_of, len: came.len(), tag: 5, region: None }];
        // SAFETY: both stay until their requests are done, or the process ends with an error.
        let (receive, send) = unsafe {
            (
                until(|| receiving.irecv(&buffer))?,
                until(|| sending.isend(sent.as_ptr(), len, 5, None))?,
            )
        };
        let sizes = until(|| receive.test())?;
        until(|| send.test())?;
        if sizes.sizes[0] != len || came[..len] != sent[..] {
            return Err(format!("message {number} of {len} bytes is not what was sent").into());
        }
        total += len;
        println!("message {number} {len}");
    }
    println!("ok {total} bytes in {:.3} s", start.elapsed().as_secs_f64());
    println!("{}", a.statistics().json());
    Ok(())
}
