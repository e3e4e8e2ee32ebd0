//! How fast a channel is over loopback: `cargo run --release -p weft-comm --example speed`.
//!
//! Bytes per second with large messages, the time of a small message there and back, and small messages
//! per second; one of `bytes`, `latency` and `messages` asks for that alone. Both endpoints are in this process, so it takes four cores to be fast.

#![expect(unsafe_code, reason = "buffers outlive their requests")]

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use weft_comm::{
    Backend, Buffer, Checksum, CommError, Endpoint, EndpointConfig, RecvChannel, Request,
    SendChannel,
};

fn open(last: u8, connections: u32, checksum: bool) -> Result<Endpoint, CommError> {
    Endpoint::open(EndpointConfig {
        name: format!("lo{last}"),
        address: Ipv4Addr::new(127, 0, 0, last),
        listen: 0..=0,
        dscp: 0,
        backend: Backend::Tcp,
        plan: None,
        connections,
        path_time_out: Duration::from_secs(1),
        give_up: Duration::from_secs(10),
        checksum: if checksum { Checksum::All } else { Checksum::None },
        encrypt: false,
        congestion: None,
        job_key: Default::default(),
        line_bps: 0,
        plane: None,
    })
}

fn channel(from: &Endpoint, to: &Endpoint) -> Result<(SendChannel, RecvChannel), CommError> {
    let (listener, handle) = to.listen()?;
    let mut connecting = from.connect(&handle)?;
    let (mut sending, mut receiving) = (None, None);
    while sending.is_none() || receiving.is_none() {
        if sending.is_none() {
            sending = connecting.try_finish()?;
        }
        if receiving.is_none() {
            receiving = listener.try_accept()?;
        }
        std::thread::yield_now();
    }
    Ok((sending.expect("there"), receiving.expect("there")))
}

fn send(channel: &SendChannel, bytes: &[u8]) -> Request {
    loop {
        // SAFETY: buffers live until the end of the program's parts, and requests are waited for.
        match unsafe { channel.isend(bytes.as_ptr(), bytes.len(), 0, None) } {
            Ok(Some(request)) => return request,
            Ok(None) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn receive(channel: &RecvChannel, bytes: &mut [u8]) -> Request {
    let one = Buffer { start: bytes.as_mut_ptr(), len: bytes.len(), tag: 0, region: None };
    loop {
        // SAFETY: as above.
        match unsafe { channel.irecv(&[one]) } {
            Ok(Some(request)) => return request,
            Ok(None) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn wait(request: &Request) {
    while request.test().expect("works").is_none() {
        std::thread::yield_now();
    }
}

fn throughput(connections: u32, checksum: bool, len: usize) -> Result<(), CommError> {
    let (a, b) = (open(1, connections, checksum)?, open(2, connections, checksum)?);
    let (sending, receiving) = channel(&a, &b)?;
    let content = vec![7; len];
    let mut buffers = vec![vec![0; len]; 4];
    let count = (8usize << 30).div_ceil(len).min(200);
    let start = Instant::now();
    let (mut sent, mut received) = (VecDeque::new(), VecDeque::new());
    for number in 0..count {
        if received.len() == 4 {
            wait(&received.pop_front().expect("four"));
            wait(&sent.pop_front().expect("four"));
        }
        received.push_back(receive(&receiving, &mut buffers[number % 4]));
        sent.push_back(send(&sending, &content));
    }
    sent.iter().chain(&received).for_each(wait);
    let took = start.elapsed().as_secs_f64();
    let rate = (count * len) as f64 / took / 1e9;
    println!(
        "{connections} connections, messages of {len} B, check sums {checksum}: {rate:.2} GB/s"
    );
    Ok(())
}

fn latency() -> Result<(), CommError> {
    let (a, b) = (open(1, 1, false)?, open(2, 1, false)?);
    let (there, from_there) = channel(&a, &b)?;
    let (back, from_back) = channel(&b, &a)?;
    let content = [7; 8];
    let mut buffers = [[0; 8]; 2];
    let mut times = Vec::new();
    for _ in 0..5_000 {
        let start = Instant::now();
        let back_received = receive(&from_back, &mut buffers[0]);
        let there_received = receive(&from_there, &mut buffers[1]);
        let there_sent = send(&there, &content);
        wait(&there_received);
        let back_sent = send(&back, &content);
        wait(&back_received);
        times.push(start.elapsed());
        wait(&there_sent);
        wait(&back_sent);
    }
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
    println!("8 B there and back: {:.1} us, 99 of 100 below {:.1} us", at(50), at(99));
    Ok(())
}

fn rate() -> Result<(), CommError> {
    let (a, b) = (open(1, 1, false)?, open(2, 1, false)?);
    let (sending, receiving) = channel(&a, &b)?;
    const COUNT: usize = 300_000;
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let content = [7; 64];
            let mut sent = VecDeque::new();
            for _ in 0..COUNT {
                sent.push_back(send(&sending, &content));
                if sent.len() == 128 {
                    wait(&sent.pop_front().expect("some"));
                }
            }
            sent.iter().for_each(wait);
        });
        let mut buffers = [[0; 64]; 32];
        let mut received = VecDeque::new();
        for number in 0..COUNT {
            if received.len() == 32 {
                wait(&received.pop_front().expect("some"));
            }
            received.push_back(receive(&receiving, &mut buffers[number % 32]));
        }
        received.iter().for_each(wait);
    });
    println!("64 B: {:.0} messages/s", COUNT as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> Result<(), CommError> {
    let part = std::env::args().nth(1);
    let wanted = |name: &str| part.as_ref().is_none_or(|part| part == name);
    if wanted("bytes") {
        for connections in [1, 4] {
            throughput(connections, false, 64 << 20)?;
            throughput(connections, true, 64 << 20)?;
        }
        throughput(4, false, 1 << 20)?;
    }
    if wanted("latency") {
        latency()?;
    }
    if wanted("messages") {
        rate()?;
    }
    Ok(())
}
