//! Whoever reaches the port of an endpoint: pending connections, and somebody who knows the secret and errs.

mod common;

use common::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use weft_comm::handle::Parts;
use weft_comm::wire::{ChannelKey, HEADER, HELLO, Header, Hello, Home, Kind, NONCE, Nonce, PROOF};
use weft_comm::{CommError, Connecting, Endpoint, EndpointConfig};

/// A hello for a new channel at the listener of a handle.
fn hello(parts: &Parts, lane: u16, roce: bool) -> Hello {
    Hello {
        lane,
        epoch: 1,
        listener: parts.listener,
        host: u32::MAX,
        channel: 77,
        nonce: [3; NONCE],
        next_group: 0,
        roce,
        known: false,
        asks: false,
        over: false,
        sealed: false,
        extra: [0; 32],
        home: Home { life: 5, address: parts.address },
        dscp: 0,
        proof: [0; PROOF],
    }
}

/// A connection, and what it is challenged with.
fn call(parts: &Parts) -> (TcpStream, Nonce) {
    let mut stream = TcpStream::connect(parts.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("it can");
    let mut bytes = [0; HEADER + NONCE];
    stream.read_exact(&mut bytes).expect("it challenges");
    let header = bytes.first_chunk().map(Header::decode).expect("a header").expect("a good one");
    assert_eq!(header.kind, Kind::Challenge);
    (stream, bytes[HEADER..].try_into().expect("a number"))
}

/// A connection that has said hello.
fn greet(parts: &Parts, hello: &Hello) -> TcpStream {
    let (mut stream, challenge) = call(parts);
    let mut hello = *hello;
    hello.prove(&ChannelKey::new(&[], &parts.secret), &challenge);
    stream.write_all(&hello.encode()).expect("it takes it");
    stream
}

/// What is said next.
fn hear(stream: &mut TcpStream) -> Header {
    let mut bytes = [0; HEADER];
    stream.read_exact(&mut bytes).expect("something is said");
    let header = Header::decode(&bytes).expect("a header");
    std::io::copy(&mut stream.take(u64::from(header.len)), &mut std::io::sink()).expect("a body");
    header
}

/// Closed or reset, and nothing is said.
fn is_turned_away(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0]), Ok(1..))
}

/// It fails in time, and says that the peer lives and has another secret.
fn assert_turned_away(mut connecting: Connecting) {
    let start = Instant::now();
    let error = loop {
        match connecting.try_finish() {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) => panic!("it was let in"),
            Err(error) => break error,
        }
        assert!(start.elapsed() < Duration::from_secs(6), "neither in nor out");
    };
    assert!(matches!(error, CommError::Remote(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains("does not know the secret") && said.contains("WEFT_KEY_FILE"), "{said}");
}

#[test]
fn unknown_connections_are_turned_away_and_disturb_nobody() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    let parts = Parts::decode(&handle).unwrap();
    let mut silent = TcpStream::connect(parts.address).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 200], b"weftlane", b"\x16\x03\x01"] {
        let (mut stream, _) = call(&parts);
        stream.write_all(bytes).unwrap();
        if bytes.len() > 8 {
            assert!(is_turned_away(&mut stream));
        }
    }
    // The wrong secret.
    let wrong = Parts { secret: [7; 16], ..parts }.encode();
    assert_turned_away(a.connect(&wrong).unwrap());
    assert!(listener.try_accept().unwrap().is_none());
    // The right one.
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 100_000), 100_000);
    assert!(b.statistics().refused_connections >= 5, "{:?}", b.statistics());
    silent.write_all(b"?").unwrap();
}

/// A peer whose path has died before it could say who it is goes away by itself: nobody has refused it.
#[test]
fn who_goes_away_is_not_counted_as_refused() {
    let (a, b) = (open(5), open(6));
    let (listener, handle) = b.listen().unwrap();
    let parts = Parts::decode(&handle).unwrap();
    for count in [0, 7, HELLO - 1] {
        let (mut stream, _) = call(&parts);
        let wrong = hello(&parts, 0, false).encode();
        stream.write_all(&wrong[..count]).unwrap();
    }
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 100_000), 100_000);
    // Somebody who is refused, behind those.
    let (mut stream, _) = call(&parts);
    stream.write_all(&[0; 200]).unwrap();
    assert!(is_turned_away(&mut stream));
    let start = Instant::now();
    while b.statistics().refused_connections < 1 && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(b.statistics().refused_connections, 1);
}

/// Two that have different secrets turn each other away, and the first to give up ends: the other one says why.
#[test]
fn who_has_turned_others_away_and_ended_is_not_just_gone() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    let wrong = Parts { secret: [7; 16], ..Parts::decode(&handle).unwrap() }.encode();
    let connecting = a.connect(&wrong).unwrap();
    let start = Instant::now();
    while b.statistics().refused_connections < 6 {
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", b.statistics());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop((listener, b));
    assert_turned_away(connecting);
}

/// Hundreds that say nothing are outlived by whoever speaks.
#[test]
fn silent_connections_do_not_keep_others_out() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    let address = Parts::decode(&handle).unwrap().address;
    let silent: Vec<_> = (0..400).filter_map(|_| TcpStream::connect(address).ok()).collect();
    assert!(silent.len() > 300);
    let start = Instant::now();
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 1_000), 1_000);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// A lane that cannot be, beside one that can: buffers are announced over the one that can.
#[test]
fn a_lane_that_fails_as_it_begins_leaves_the_others_alone() {
    let b = open(2);
    let (listener, handle) = b.listen().unwrap();
    let parts = Parts::decode(&handle).unwrap();
    let mut good = greet(&parts, &hello(&parts, 0, false));
    assert_eq!(hear(&mut good).kind, Kind::Welcome);
    // A queue pair, where there is no RDMA device.
    let mut bad = greet(&parts, &hello(&parts, 1, true));
    assert!(is_turned_away(&mut bad));
    let receiving = listener.try_accept().unwrap().expect("the first lane has made it");
    let mut buffer = [0; 8];
    let _received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let said = std::iter::repeat_with(|| hear(&mut good).kind);
    assert!(said.take(10).any(|kind| kind == Kind::Clear), "no buffer is announced");
}

/// A child that was forked has all sockets too, and knows nothing of it: what is closed here is closed
/// for others all the same.
#[test]
#[expect(unsafe_code, reason = "forks, for want of anything that does so in std")]
fn a_forked_child_keeps_nothing_open() {
    let b = open(2);
    let (_listener, handle) = b.listen().unwrap();
    let parts = Parts::decode(&handle).unwrap();
    let address = parts.address;
    // Challenged: it is taken in.
    let (mut unknown, _) = call(&parts);
    // SAFETY: the child waits for its end, and does nothing else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: it takes nothing.
            unsafe { libc::pause() };
        }
    }
    unknown.write_all(&[0; 200]).unwrap();
    let away = match unknown.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    drop(b);
    let shut = TcpStream::connect(address).is_err();
    // SAFETY: the child is this test's.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert!(away, "the stranger still waits");
    assert!(shut, "the port is still open");
}

/// What the wire carried opens nothing a second time, and disturbs nobody.
#[test]
fn a_hello_that_was_overheard_is_worth_nothing() {
    let b = open(2);
    let (listener, handle) = b.listen().unwrap();
    let parts = Parts::decode(&handle).unwrap();
    let (mut stream, challenge) = call(&parts);
    let mut said = hello(&parts, 0, false);
    said.prove(&ChannelKey::new(&[], &parts.secret), &challenge);
    let overheard: [u8; HELLO] = said.encode();
    stream.write_all(&overheard).unwrap();
    assert_eq!(hear(&mut stream).kind, Kind::Welcome);
    // As it was, for another channel, and with a later connection.
    let other = Hello { channel: 78, ..said }.encode();
    let later = Hello { epoch: 9, ..said }.encode();
    for bytes in [overheard, other, later] {
        let (mut stranger, _) = call(&parts);
        stranger.write_all(&bytes).unwrap();
        assert!(is_turned_away(&mut stranger));
    }
    let receiving = listener.try_accept().unwrap().expect("the first one");
    assert!(listener.try_accept().unwrap().is_none(), "a stranger has a channel");
    let mut buffer = [0; 8];
    let _received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let kinds = std::iter::repeat_with(|| hear(&mut stream).kind);
    assert!(kinds.take(10).any(|kind| kind == Kind::Clear), "the first connection is gone");
}

/// Somebody at the port of a listener who does not know its secret gets no data.
#[test]
fn a_welcome_from_a_stranger_is_none() {
    let a = open(1);
    let b = open(2);
    let (_listener, handle) = b.listen().unwrap();
    let impostor = std::net::TcpListener::bind("127.0.0.9:0").unwrap();
    let std::net::SocketAddr::V4(address) = impostor.local_addr().unwrap() else { panic!("v4") };
    let parts = Parts { address, ..Parts::decode(&handle).unwrap() };
    let mut connecting = a.connect(&parts.encode()).unwrap();
    let (mut stream, _) = impostor.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let say = |kind: Kind, body: &[u8]| {
        let (len, check) = (body.len() as u32, crc32c::crc32c(body));
        let header = Header { len, check, checked: true, ..Header::new(kind) };
        [&header.encode()[..], body].concat()
    };
    stream.write_all(&say(Kind::Challenge, &[1; NONCE])).unwrap();
    let mut hello = [0; HELLO];
    stream.read_exact(&mut hello).unwrap();
    assert_eq!(Hello::decode(&hello).unwrap().listener, parts.listener);
    stream.write_all(&say(Kind::Welcome, &[1; PROOF])).unwrap();
    assert!(is_turned_away(&mut stream));
    assert!(!matches!(connecting.try_finish(), Ok(Some(_))));
}

/// Whoever has seen a handle, and not the key of the job, does not join.
#[test]
fn a_handle_without_the_key_of_the_job_opens_nothing() {
    let with = |last, key: &[u8]| {
        Endpoint::open(EndpointConfig { job_key: key.into(), ..config(last) }).unwrap()
    };
    let (a, b, other) = (with(1, b"our own key 1234"), with(2, b"our own key 1234"), open(3));
    let (listener, handle) = b.listen().unwrap();
    assert_turned_away(other.connect(&handle).unwrap());
    assert_turned_away(with(4, b"another key 1234").connect(&handle).unwrap());
    assert!(listener.try_accept().unwrap().is_none());
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 10_000), 10_000);
}
