//! Communicators that come and go: one core while there is one, none after; statistics meanwhile.
//! Versions 11 and 12 only, since older ones never end.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{Pair, environment, net};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use weft_nccl_abi::Version;

/// Tests of this file count threads and look at files: one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn statistics_file() -> PathBuf {
    std::env::temp_dir().join(format!("weft-lifecycle-{}.json", std::process::id()))
}

fn set_up() {
    let file = std::env::temp_dir().join("weft-lifecycle-%p.json");
    environment(&[
        ("WEFT_STATS", file.to_str().expect("text")),
        ("WEFT_PROMETHEUS", "127.0.0.1:29471"),
    ]);
}

/// Threads of this process that are Weft's, by name.
fn threads() -> Vec<String> {
    let all = std::fs::read_dir("/proc/self/task").expect("Linux");
    let names =
        all.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let ours = names.filter(|name| name.starts_with("weft"));
    ours.map(|name| name.trim_end().to_owned()).collect()
}

const NONE: [&str; 0] = [];

/// The same, once there are so many: the kernel lists a thread for a moment after somebody has joined
/// it, and a thread has its name from when it first runs.
fn threads_at_last(count: usize) -> Vec<String> {
    let begun = Instant::now();
    while threads().len() != count && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    threads()
}

fn threads_in_the_end() -> Vec<String> {
    threads_at_last(0)
}

#[test]
fn it_ends_with_the_last_communicator_and_begins_anew() {
    let _alone = ALONE.lock();
    set_up();
    for round in 0..5 {
        assert_eq!(threads_in_the_end(), NONE, "round {round}");
        let (one, two) = (net(Version::V12), net(Version::V11));
        let mut pair = Pair::new(&two, 1000);
        pair.transfer(1000);
        // Of the NIC and of statistics.
        let running = threads_at_last(2);
        assert_eq!(running.len(), 2, "{running:?}");
        one.finalize().expect("it ends");
        assert_eq!(threads(), running, "another communicator is there");
        pair.transfer(500);
        pair.close();
        two.finalize().expect("it ends");
    }
    assert_eq!(threads_in_the_end(), NONE);
}

#[test]
fn statistics_are_written_and_served() {
    let _alone = ALONE.lock();
    set_up();
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, 1 << 20);
    pair.transfer(1 << 20);
    let ask = |request: &str| {
        let mut socket = TcpStream::connect("127.0.0.1:29471").expect("it listens");
        socket.write_all(request.as_bytes()).expect("it takes it");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it answers");
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let sent = body.lines().filter(|line| line.starts_with("weft_sent_bytes_total{"));
    let value = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    let sent: u64 = sent.map(|line| value(line).expect("a number")).sum();
    assert_eq!(sent, 1 << 20, "{body}");
    let answer = ask("GET /statistics.json HTTP/1.1\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains("Content-Type: application/json"), "{head}");
    assert!(body.starts_with("[{\"device\":\"lo\""), "{body}");
    assert!(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("GET /metrics?module=weft HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(ask(&format!("GET /{} HTTP/1.1", "x".repeat(9000))).starts_with("HTTP/1.1 400"));
    // One that says nothing holds nobody up for long.
    let _silent = TcpStream::connect("127.0.0.1:29471").expect("it listens");
    assert!(ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    pair.close();
    net.finalize().expect("it ends");
    let file = statistics_file();
    let text = std::fs::read_to_string(&file).expect("it was written");
    assert!(text.starts_with('[') && text.trim_end().ends_with(']'), "{text}");
    assert!(text.contains("\"lo\""), "{text}");
    std::fs::remove_file(file).expect("it goes");
}

#[test]
fn connects_that_never_end_are_given_up_with_the_core() {
    let _alone = ALONE.lock();
    set_up();
    let net = net(Version::V12);
    let (mut handle, listener) = net.listen(0).expect("it listens");
    // Begun and left: NCCL does so when a job is aborted.
    net.connect(0, &mut handle).expect("it begins");
    // SAFETY: it is open.
    unsafe { net.close_listen(listener).expect("it closes") };
    net.finalize().expect("it ends");
    assert_eq!(threads_in_the_end(), NONE);
}
