//! Channels over loopback, where every 127.0.0.x is a NIC.

#![allow(dead_code, reason = "each test file uses some of it")]
#![expect(unsafe_code, reason = "buffers outlive their requests")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_comm::{
    Backend, Buffer, Checksum, CommError, Endpoint, EndpointConfig, Handle, Listener, Notes,
    PathPlan, RecvChannel, Request, SendChannel, Sizes,
};
use weft_fabric::{Clos, Fabric, Link};
use weft_units::{HostId, Rate, Time};

/// Longer than anything here takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn config(last: u8) -> EndpointConfig {
    EndpointConfig {
        name: format!("lo{last}"),
        address: Ipv4Addr::new(127, 0, 0, last),
        listen: 0..=0,
        dscp: 26,
        backend: Backend::Tcp,
        plan: None,
        connections: 4,
        path_time_out: Duration::from_millis(400),
        give_up: Duration::from_secs(4),
        checksum: Checksum::None,
        encrypt: false,
        congestion: None,
        job_key: Arc::default(),
        line_bps: 0,
        plane: None,
    }
}

/// Two leaves with two hosts each and four spines: 127.0.0.1 and .2 are below the first.
pub(crate) fn fabric() -> Fabric {
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    Fabric::build(&Clos::leaf_spine(2, 4, 2, link)).expect("a fabric")
}

/// Host `last - 1` of [`fabric`] under a scheme.
pub(crate) fn planned(last: u8, scheme: &str, options: &[(&str, &str)]) -> EndpointConfig {
    let scheme = SchemeConfig::read(scheme, options).expect("a scheme");
    let balance =
        BalanceConfig { scheme, start_jitter: Time::ZERO, random_position: false, bdp: 100_000 };
    let plan = PathPlan {
        fabric: Arc::new(fabric()),
        known: Arc::default(),
        balance,
        seed: 1,
        host: HostId(u32::from(last) - 1),
        addresses: (1..=4).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect(),
        path_addresses: Arc::default(),
        source_ports: 49_152..=65_535,
        ports: None,
        quantum: 16 << 10,
    };
    EndpointConfig { plan: Some(plan), line_bps: 100_000_000_000, ..config(last) }
}

pub(crate) fn open(last: u8) -> Endpoint {
    Endpoint::open(config(last)).expect("opens")
}

/// A channel from `from` to `to`.
pub(crate) fn channel(from: &Endpoint, to: &Endpoint) -> (SendChannel, RecvChannel) {
    let (listener, handle) = to.listen().expect("listens");
    connect(from, &listener, &handle)
}

/// A channel from `from` to where `handle` leads, which is `listener`, perhaps by a detour.
pub(crate) fn connect(
    from: &Endpoint,
    listener: &Listener,
    handle: &Handle,
) -> (SendChannel, RecvChannel) {
    let mut connecting = from.connect(handle).expect("begins to connect");
    let end = Instant::now() + LIMIT;
    let (mut sending, mut receiving) = (None, None);
    while sending.is_none() || receiving.is_none() {
        if sending.is_none() {
            sending = connecting.try_finish().expect("connects");
        }
        if receiving.is_none() {
            receiving = listener.try_accept().expect("accepts");
        }
        assert!(Instant::now() < end, "no channel");
        std::thread::sleep(Duration::from_micros(50));
    }
    (sending.expect("there"), receiving.expect("there"))
}

/// Two endpoints and a channel from the first to the second.
pub(crate) fn pair() -> (Endpoint, Endpoint, SendChannel, RecvChannel) {
    let (a, b) = (open(1), open(2));
    let (sending, receiving) = channel(&a, &b);
    (a, b, sending, receiving)
}

/// Bytes of a message that waits for its buffer.
pub(crate) const LONG: usize = 600_000;

pub(crate) fn send(
    channel: &SendChannel,
    bytes: &[u8],
    tag: i32,
) -> Result<Option<Request>, CommError> {
    // SAFETY: callers keep `bytes` until the request is done or the channel is gone.
    unsafe { channel.isend(bytes.as_ptr(), bytes.len(), tag, None) }
}

pub(crate) fn receive(
    channel: &RecvChannel,
    buffers: &mut [(&mut [u8], i32)],
) -> Result<Option<Request>, CommError> {
    let all: Vec<_> = buffers
        .iter_mut()
        .map(|(bytes, tag)| Buffer {
            start: bytes.as_mut_ptr(),
            len: bytes.len(),
            tag: *tag,
            region: None,
        })
        .collect();
    // SAFETY: callers keep the buffers until the request is done or the channel is gone.
    unsafe { channel.irecv(&all) }
}

/// Waits for a request.
pub(crate) fn wait(request: &Request) -> Result<Sizes, CommError> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(sizes) = request.test()? {
            return Ok(sizes);
        }
        assert!(Instant::now() < end, "a request takes too long");
        std::thread::yield_now();
    }
}

/// Asks again until it is taken.
pub(crate) fn take(mut ask: impl FnMut() -> Result<Option<Request>, CommError>) -> Request {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(request) = ask().expect("works") {
            return request;
        }
        assert!(Instant::now() < end, "never taken");
        std::thread::yield_now();
    }
}

/// Bytes that tell of `seed` and of their place.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// One message, checked.
pub(crate) fn exchange(
    sending: &SendChannel,
    receiving: &RecvChannel,
    bytes: &[u8],
    room: usize,
) -> Notes {
    let mut buffer = vec![0xEE; room];
    let received = take(|| receive(receiving, &mut [(&mut buffer, 7)]));
    let sent = take(|| send(sending, bytes, 7));
    let sizes = wait(&received).expect("received");
    assert_eq!((sizes.count, sizes.sizes[0]), (1, bytes.len()));
    assert_eq!(wait(&sent).expect("sent").sizes[0], bytes.len());
    assert!(buffer[..bytes.len()] == *bytes, "{} bytes differ", bytes.len());
    assert!(buffer[bytes.len()..].iter().all(|byte| *byte == 0xEE), "more than the message");
    sent.notes()
}
