//! Peers that are killed: every channel to and from them fails within a second, whatever it is doing, and
//! none fails whose peer lives.

#![expect(unsafe_code, reason = "forks, for want of anything that does so in std")]

mod common;
#[path = "common/proxy.rs"]
mod proxy;

use common::*;
use proxy::{Fault, Proxy};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weft_comm::handle::Parts;
use weft_comm::{
    CommError, Connecting, Endpoint, EndpointConfig, HANDLE, Handle, Listener, RecvChannel,
    SendChannel,
};

const CHILD: &str = "WEFT_TEST_CHILD";
const FORKS: &str = "WEFT_TEST_FORKS";
const EXITS: &str = "WEFT_TEST_EXITS";
/// A peer that exits has sent so many messages of so many bytes.
const MANY: usize = 16;
const SMALL: usize = 60_000;
const IN_TIME: Duration = Duration::from_secs(1);

/// Time-outs as they are by default: what is in time here owes nothing to them.
fn patient(last: u8) -> EndpointConfig {
    EndpointConfig {
        path_time_out: Duration::from_secs(1),
        give_up: Duration::from_secs(30),
        ..config(last)
    }
}

fn sender(connecting: &mut Connecting) -> SendChannel {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(channel) = connecting.try_finish().expect("it connects") {
            return channel;
        }
        assert!(Instant::now() < end, "no channel");
    }
}

fn receiver(listener: &Listener) -> RecvChannel {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(channel) = listener.try_accept().expect("it accepts") {
            return channel;
        }
        assert!(Instant::now() < end, "no channel");
    }
}

/// A process with a channel each way, which only waits to be killed.
struct Peer {
    here: Endpoint,
    process: Child,
    to: SendChannel,
    from: RecvChannel,
    /// Where it listens.
    parts: Parts,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts `test` again as the peer.
fn peer(test: &str) -> Peer {
    peer_with(test, &[])
}

/// The same with more variables.
fn peer_with(test: &str, variables: &[(&str, &str)]) -> Peer {
    peer_behind(test, variables, |handle| *handle)
}

/// The same, which gets another handle than that of the listener here.
fn peer_behind(
    test: &str,
    variables: &[(&str, &str)],
    given: impl FnOnce(&Handle) -> Handle,
) -> Peer {
    let here = Endpoint::open(patient(2)).unwrap();
    let (listener, handle) = here.listen().unwrap();
    let handle = given(&handle);
    let hex: String = handle.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let process = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(CHILD, hex)
        .envs(variables.iter().copied())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let from = receiver(&listener);
    let mut its = [0; HANDLE];
    let received = take(|| receive(&from, &mut [(&mut its, 0)]));
    wait(&received).unwrap();
    let to = sender(&mut here.connect(&Handle(its)).unwrap());
    Peer { here, process, to, from, parts: Parts::decode(&Handle(its)).unwrap() }
}

/// What a peer does; nothing where this is none.
fn be_the_peer() {
    let Ok(hex) = std::env::var(CHILD) else { return };
    let bytes: Vec<u8> =
        (0..HANDLE).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
    let here = Endpoint::open(patient(1)).unwrap();
    let sending = sender(&mut here.connect(&Handle(bytes.try_into().unwrap())).unwrap());
    let (listener, own) = here.listen().unwrap();
    wait(&take(|| send(&sending, &own.0, 0))).unwrap();
    let receiving = receiver(&listener);
    if std::env::var(FORKS).is_ok() {
        // SAFETY: the child waits for its end, and does nothing else.
        if unsafe { libc::fork() } == 0 {
            // SAFETY: they take numbers, or nothing.
            unsafe {
                libc::alarm(10);
                loop {
                    libc::pause();
                }
            }
        }
        wait(&take(|| send(&sending, b"forked", 0))).unwrap();
    }
    if std::env::var(EXITS).is_ok() {
        // What is sent is over for the application before it is anywhere.
        let content = vec![1; SMALL];
        (0..MANY).for_each(|_| drop(wait(&take(|| send(&sending, &content, 0)))));
        std::process::exit(0);
    }
    let mut buffer = vec![0; 1 << 20];
    // The first message that comes asks for a stream of messages.
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    if wait(&received).is_ok() {
        let content = vec![1; 1 << 20];
        loop {
            wait(&take(|| send(&sending, &content, 0))).unwrap();
        }
    }
    // It could not go on: the test has ended.
    std::process::exit(0);
}

fn kill(peer: &mut Peer) -> Instant {
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    Instant::now()
}

fn noticed_in_time(what: &str, killed: Instant, mut ask: impl FnMut() -> Result<(), CommError>) {
    let error = loop {
        match ask() {
            Err(error) => break error,
            Ok(()) => assert!(killed.elapsed() < LIMIT, "{what}: never noticed"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(killed.elapsed() < IN_TIME, "{what}: {:?}: {error}", killed.elapsed());
    assert!(matches!(error, CommError::Remote(_)), "{what}: {error}");
    assert!(error.to_string().contains("gone"), "{what}: {error}");
}

#[test]
fn a_receiver_that_waits_notices() {
    be_the_peer();
    let mut peer = peer("a_receiver_that_waits_notices");
    let mut buffer = [0; 8];
    let received = take(|| receive(&peer.from, &mut [(&mut buffer, 0)]));
    let killed = kill(&mut peer);
    noticed_in_time("receive", killed, || received.test().map(drop));
}

#[test]
fn a_receiver_in_the_middle_of_a_stream_notices() {
    be_the_peer();
    let mut peer = peer("a_receiver_in_the_middle_of_a_stream_notices");
    wait(&take(|| send(&peer.to, b"go", 0))).unwrap();
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..20 {
        wait(&take(|| receive(&peer.from, &mut [(&mut buffer, 0)]))).unwrap();
    }
    let killed = kill(&mut peer);
    let mut received = take(|| receive(&peer.from, &mut [(&mut buffer, 0)]));
    noticed_in_time("stream", killed, || {
        // Some more may have been under way.
        if received.test()?.is_some() {
            received = receive(&peer.from, &mut [(&mut buffer, 0)])?.expect("nothing is under way");
        }
        Ok(())
    });
}

#[test]
fn a_sender_that_waits_for_a_buffer_notices() {
    be_the_peer();
    let mut peer = peer("a_sender_that_waits_for_a_buffer_notices");
    // The peer has a buffer for one.
    wait(&take(|| send(&peer.to, b"go", 0))).unwrap();
    let sent = take(|| send(&peer.to, &[1; LONG], 0));
    let killed = kill(&mut peer);
    noticed_in_time("send", killed, || sent.test().map(drop));
}

#[test]
fn channels_that_do_nothing_notice() {
    be_the_peer();
    let mut peer = peer("channels_that_do_nothing_notice");
    let killed = kill(&mut peer);
    let mut buffer = [0; 8];
    // Nothing under way before: each is asked for once a while.
    std::thread::sleep(Duration::from_millis(700));
    noticed_in_time("receive", killed, || receive(&peer.from, &mut [(&mut buffer, 0)]).map(drop));
    noticed_in_time("send", killed, || send(&peer.to, b"hello", 0).map(drop));
}

/// As workers that load data are: they outlive the rank, and have had its sockets.
#[test]
fn its_children_do_not_hide_its_death() {
    be_the_peer();
    let mut peer = peer_with("its_children_do_not_hide_its_death", &[(FORKS, "1")]);
    let mut buffer = [0; 8];
    wait(&take(|| receive(&peer.from, &mut [(&mut buffer, 0)]))).unwrap();
    let received = take(|| receive(&peer.from, &mut [(&mut buffer, 0)]));
    let killed = kill(&mut peer);
    noticed_in_time("receive", killed, || received.test().map(drop));
    noticed_in_time("send", killed, || send(&peer.to, b"hello", 0).map(drop));
}

#[test]
fn whoever_connects_notices() {
    be_the_peer();
    let mut peer = peer("whoever_connects_notices");
    let handle = peer.parts.encode();
    let killed = kill(&mut peer);
    let mut connecting = peer.here.connect(&handle).unwrap();
    noticed_in_time("connect", killed, || connecting.try_finish().map(drop));
}

/// Its successor has the port, and is not taken for it.
#[test]
fn another_process_at_its_port_is_another() {
    be_the_peer();
    let mut peer = peer("another_process_at_its_port_is_another");
    let mut buffer = [0; 8];
    let received = take(|| receive(&peer.from, &mut [(&mut buffer, 0)]));
    let killed = kill(&mut peer);
    let port = peer.parts.address.port();
    let _next = Endpoint::open(EndpointConfig { listen: port..=port, ..patient(1) }).unwrap();
    noticed_in_time("receive", killed, || received.test().map(drop));
}

/// For a second and a half every connection is lost, and the process lives.
#[test]
fn whoever_lives_is_waited_for() {
    let cut = Arc::new(AtomicBool::new(false));
    let (a, b) = (Endpoint::open(patient(1)).unwrap(), Endpoint::open(patient(2)).unwrap());
    let (listener, handle) = b.listen().unwrap();
    let flag = cut.clone();
    let (proxy, handle) = Proxy::before(&handle, move |number| match number {
        0..4 => Fault::Reset(200_000),
        _ if flag.load(Ordering::SeqCst) => Fault::Cut(0),
        _ => Fault::None,
    });
    let (sending, receiving) = connect(&a, &listener, &handle);
    cut.store(true, Ordering::SeqCst);
    let (bytes, mut buffer) = (pattern(3, 4 << 20), vec![0; 4 << 20]);
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let sent = take(|| send(&sending, &bytes, 0));
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(proxy.done.load(Ordering::SeqCst) > 8, "{proxy:?}");
    assert!(received.test().unwrap().is_none() && sent.test().unwrap().is_none());
    cut.store(false, Ordering::SeqCst);
    wait(&sent).unwrap();
    wait(&received).unwrap();
    assert!(buffer == bytes);
}

/// Nothing that was sent is lost where its process exits at once, with answers that it has not read.
#[test]
fn what_was_copied_arrives_though_its_process_exits() {
    be_the_peer();
    let test = "what_was_copied_arrives_though_its_process_exits";
    let stall = |_| Fault::Stall(100_000, Duration::from_millis(300));
    let behind = |handle: &Handle| Proxy::before(handle, stall).1;
    let peer = peer_behind(test, &[(EXITS, "1")], behind);
    let mut buffers = vec![vec![0; SMALL]; MANY];
    let receives: Vec<_> =
        buffers.iter_mut().map(|buffer| take(|| receive(&peer.from, &mut [(buffer, 0)]))).collect();
    for (number, receive) in receives.iter().enumerate() {
        let sizes = wait(receive).unwrap_or_else(|error| panic!("message {number}: {error}"));
        assert_eq!(sizes.sizes[0], SMALL);
    }
    assert!(buffers.iter().all(|buffer| buffer.iter().all(|byte| *byte == 1)));
}

/// And where nobody asks for it until the process is known to be gone; and then no more.
#[test]
fn what_was_sent_is_received_after_its_process_has_ended() {
    be_the_peer();
    let test = "what_was_sent_is_received_after_its_process_has_ended";
    let mut peer = peer_with(test, &[(EXITS, "1")]);
    peer.process.wait().unwrap();
    std::thread::sleep(Duration::from_millis(800));
    let mut buffer = vec![0; SMALL];
    for number in 0..MANY {
        let received = receive(&peer.from, &mut [(&mut buffer, 0)]);
        let received = received.unwrap_or_else(|error| panic!("message {number}: {error}"));
        let sizes = wait(&received.expect("nothing is under way"));
        let sizes = sizes.unwrap_or_else(|error| panic!("message {number}: {error}"));
        assert_eq!(sizes.sizes[0], SMALL);
        assert!(buffer.iter().all(|byte| *byte == 1));
        buffer.fill(0);
    }
    noticed_in_time("the end", Instant::now(), || {
        receive(&peer.from, &mut [(&mut buffer, 0)]).map(drop)
    });
}
