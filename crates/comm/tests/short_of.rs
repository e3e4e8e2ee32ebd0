//! What this host is short of is named at once, with what helps; lanes that have what they need carry on.
//! Each test is a process of its own, since limits are a process's.

#![expect(unsafe_code, reason = "limits and mappings, for want of anything for them in std")]

mod common;
#[path = "common/proxy.rs"]
mod proxy;

use common::*;
use proxy::{Fault, Proxy};
use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_comm::{CommError, Endpoint, EndpointConfig, Handle, Listener};

const AT_ONCE: Duration = Duration::from_secs(1);

/// Runs `name` again, in a process of its own, which `starter` starts. Whether this is it.
fn alone(name: &str, starter: &[&str]) -> bool {
    const INSIDE: &str = "WEFT_TEST_INSIDE";
    if std::env::var(INSIDE).is_ok() {
        return true;
    }
    let test = std::env::current_exe().expect("a test");
    let mut line: Vec<_> = starter.iter().map(std::ffi::OsStr::new).collect();
    line.push(test.as_os_str());
    let status = Command::new(line[0])
        .args(&line[1..])
        .args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .status()
        .expect("it starts");
    assert!(status.success());
    false
}

/// As by default: what is named at once owes nothing to a time-out.
fn patient(last: u8) -> EndpointConfig {
    EndpointConfig {
        path_time_out: Duration::from_secs(1),
        give_up: Duration::from_secs(30),
        ..config(last)
    }
}

/// Two endpoints, of which the second listens.
fn ends() -> (Endpoint, Endpoint, Listener, Handle) {
    let (a, b) = (Endpoint::open(patient(1)).unwrap(), Endpoint::open(patient(2)).unwrap());
    let (listener, handle) = b.listen().unwrap();
    (a, b, listener, handle)
}

/// All descriptors that this process may have.
fn all_descriptors() -> Vec<File> {
    let few = libc::rlimit { rlim_cur: 128, rlim_max: 128 };
    // SAFETY: the limit is there during the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) }, 0);
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// The error that `ask` comes to.
fn error_of<T>(mut ask: impl FnMut() -> Result<T, CommError>) -> CommError {
    let begun = Instant::now();
    loop {
        if let Err(error) = ask() {
            assert!(begun.elapsed() < AT_ONCE, "{:?}: {error}", begun.elapsed());
            return error;
        }
        assert!(begun.elapsed() < LIMIT, "no error");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn names(error: &CommError, what: &[&str]) {
    assert!(what.iter().all(|what| error.to_string().contains(what)), "{error}");
}

#[test]
fn who_cannot_connect_says_what_is_short() {
    if !alone("who_cannot_connect_says_what_is_short", &["env"]) {
        return;
    }
    let (a, _b, listener, handle) = ends();
    let taken = all_descriptors();
    let mut connecting = a.connect(&handle).unwrap();
    let error = error_of(|| connecting.try_finish());
    assert!(matches!(error, CommError::System(_)), "{error}");
    names(&error, &["lo1", "127.0.0.2", "EMFILE", "ulimit -n"]);
    names(&Endpoint::open(patient(3)).unwrap_err(), &["EMFILE", "ulimit -n"]);
    // It was no more than that.
    drop(taken);
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 100_000), 100_000);
    let statistics = a.statistics();
    assert!(statistics.starved > 0 && statistics.starved_why.contains("EMFILE"), "{statistics:?}");
}

#[test]
fn who_cannot_take_a_peer_in_says_what_is_short_and_so_does_the_peer() {
    if !alone("who_cannot_take_a_peer_in_says_what_is_short_and_so_does_the_peer", &["env"]) {
        return;
    }
    let (a, _b, listener, handle) = ends();
    let mut taken = all_descriptors();
    // One for the end that connects.
    taken.pop();
    let mut connecting = a.connect(&handle).unwrap();
    let error = error_of(|| connecting.try_finish());
    assert!(matches!(error, CommError::Remote(_)), "{error}");
    names(&error, &["127.0.0.2", "descriptor", "ulimit -n"]);
    let error = error_of(|| listener.try_accept());
    assert!(matches!(error, CommError::System(_)), "{error}");
    names(&error, &["lo2", "127.0.0.1", "EMFILE", "ulimit -n"]);
    drop(taken);
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 100_000), 100_000);
}

/// Whichever end lacks them: both ends of a lane can be had, and of another perhaps the near one.
#[test]
fn lanes_that_could_open_carry_on() {
    if !alone("lanes_that_could_open_carry_on", &["env"]) {
        return;
    }
    let (a, b, listener, handle) = ends();
    let mut taken = all_descriptors();
    for left in [2, 3] {
        taken.truncate(taken.len() - left);
        let (sending, receiving) = connect(&a, &listener, &handle);
        let begun = Instant::now();
        for round in 0..20 {
            exchange(&sending, &receiving, &pattern(round, 3 << 20), 3 << 20);
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{left}: {:?}", begun.elapsed());
        let starved = a.statistics().starved + b.statistics().starved;
        assert!(starved > 0, "{left}");
        drop((sending, receiving));
        // Until the sockets of both are closed.
        let begun = Instant::now();
        let before = taken.len();
        while taken.len() < before + left {
            taken.extend(File::open("/dev/null"));
            assert!(begun.elapsed() < LIMIT, "descriptors are lost");
        }
    }
    // With all that they want they have all their lanes.
    taken.clear();
    let (sending, receiving) = connect(&a, &listener, &handle);
    exchange(&sending, &receiving, &pattern(1, 3 << 20), 3 << 20);
    let open: u64 = a.statistics().paths.iter().map(|path| path.counts.open).sum();
    assert_eq!(open, 4);
}

/// Pages with these rights, the last of them with those.
fn pages(len: usize, rights: i32, last: i32) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of its own, wherever there is room.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: inside the mapping.
    let end = unsafe { start.add(len - (64 << 10)) };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::mprotect(end, 64 << 10, last) }, 0);
    start.cast()
}

/// Given back too early: the end of a message that is sent; of one that is received.
#[test]
fn memory_that_is_not_there_is_named_at_both_ends() {
    const ALL: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let len = 4 << 20;
    for (sends, receives) in [(libc::PROT_NONE, ALL), (ALL, libc::PROT_READ)] {
        let (a, b) = (Endpoint::open(patient(1)).unwrap(), Endpoint::open(patient(2)).unwrap());
        let (sending, receiving) = channel(&a, &b);
        let (from, to) = (pages(len, ALL, sends), pages(len, ALL, receives));
        let buffer = weft_comm::Buffer { start: to, len, tag: 0, region: None };
        // SAFETY: nobody else has the pages, and the system looks whether they are there.
        let (sent, received) =
            unsafe { (sending.isend(from, len, 0, None), receiving.irecv(&[buffer])) };
        let (sent, received) = (sent.unwrap().unwrap(), received.unwrap().unwrap());
        let (sent, received) = (error_of(|| sent.test()), error_of(|| received.test()));
        let (own, other) = if sends == ALL { (received, sent) } else { (sent, received) };
        assert!(matches!(own, CommError::System(_)), "{own}");
        names(&own, &["EFAULT", "memory of a message"]);
        assert!(matches!(other, CommError::Remote(_)), "{other}");
    }
}

/// The system copies what is before the page, and says nothing of it until it is asked again.
#[test]
fn memory_that_is_not_there_is_named_where_all_has_come_before_it_is_read() {
    const ALL: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let len = 512 << 10;
    for _ in 0..5 {
        let (a, _b, listener, handle) = ends();
        let gathers = |_| Fault::Gather(Duration::from_millis(5));
        let (_proxy, handle) = Proxy::before(&handle, gathers);
        let (sending, receiving) = connect(&a, &listener, &handle);
        // Windows grow.
        exchange(&sending, &receiving, &pattern(1, 16 << 20), 16 << 20);
        let (from, to) = (pages(len, ALL, ALL), pages(len, ALL, libc::PROT_READ));
        let buffer = weft_comm::Buffer { start: to, len, tag: 0, region: None };
        // SAFETY: as above.
        let (_sent, received) =
            unsafe { (sending.isend(from, len, 0, None), receiving.irecv(&[buffer])) };
        let received = received.unwrap().unwrap();
        names(&error_of(|| received.test()), &["EFAULT"]);
    }
}

/// So few ports that two peers would not get by with them, if no two connections shared one.
#[test]
#[ignore = "needs root, for a network namespace"]
fn ports_are_short_for_each_peer_alone_and_are_named() {
    let name = "ports_are_short_for_each_peer_alone_and_are_named";
    if !alone(name, &["unshare", "--net"]) {
        return;
    }
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let one = |last| EndpointConfig { connections: 1, ..patient(last) };
    let ends: Vec<_> = (1..=3).map(|last| Endpoint::open(one(last)).unwrap()).collect();
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "20000 20063").unwrap();
    let mut channels = Vec::new();
    for to in &ends[1..] {
        channels.extend((0..50).map(|_| channel(&ends[0], to)));
    }
    for (sending, receiving) in &channels {
        exchange(sending, receiving, b"hello", 5);
    }
    let (_listener, handle) = ends[1].listen().unwrap();
    let mut more: Vec<_> = (0..20).map(|_| ends[0].connect(&handle).unwrap()).collect();
    let error = error_of(|| {
        more.iter_mut().try_for_each(|one| match one.try_finish() {
            // What is finished says that it is over.
            Err(CommError::Invalid(_)) => Ok(()),
            other => other.map(drop),
        })
    });
    assert!(matches!(error, CommError::System(_)), "{error}");
    names(&error, &["EADDRNOTAVAIL", "ip_local_port_range"]);
}
