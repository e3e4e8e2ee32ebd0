//! Channels that nothing happens to.

mod common;

use common::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_comm::wire::MOST_EAGER;
use weft_comm::{Checksum, CommError, Endpoint, EndpointConfig};

#[test]
fn messages_of_all_sizes() {
    let (_a, _b, sending, receiving) = pair();
    for len in [0, 1, 7, 8, 4_095, 65_536, 65_537, 262_144, 262_145, 1 << 20, 10_000_001] {
        exchange(&sending, &receiving, &pattern(len as u64, len), len);
        exchange(&sending, &receiving, &pattern(len as u64, len), len + 100);
    }
}

#[test]
fn messages_of_all_sizes_encrypted() {
    let with = |last| weft_comm::EndpointConfig { encrypt: true, ..config(last) };
    let a = weft_comm::Endpoint::open(with(1)).unwrap();
    let b = weft_comm::Endpoint::open(with(2)).unwrap();
    let (sending, receiving) = channel(&a, &b);
    for len in [0, 1, 7, 4_095, 32_768, 32_769, 65_537, 262_145, 1 << 20, 10_000_001] {
        exchange(&sending, &receiving, &pattern(len as u64, len), len + 100);
    }
}

/// Both sides say what to mend.
#[test]
fn one_side_that_encrypts_is_told() {
    for encrypts in [1, 2] {
        let with = |last| weft_comm::EndpointConfig { encrypt: last == encrypts, ..config(last) };
        let a = weft_comm::Endpoint::open(with(1)).unwrap();
        let b = weft_comm::Endpoint::open(with(2)).unwrap();
        let (listener, handle) = b.listen().unwrap();
        let mut connecting = a.connect(&handle).unwrap();
        let start = Instant::now();
        let error = loop {
            match connecting.try_finish() {
                Err(error) => break error.to_string(),
                Ok(channel) => assert!(channel.is_none()),
            }
            assert!(start.elapsed() < LIMIT);
        };
        assert!(error.contains("set WEFT_ENCRYPT alike"), "{error}");
        let told = listener.try_accept().unwrap_err().to_string();
        assert!(told.contains("set WEFT_ENCRYPT alike"), "{told}");
    }
}

/// One that the system does not have is an error of the endpoint, one that it has is what connections use, and
/// without any those within a host hold nothing back.
#[test]
fn connections_have_the_congestion_control_that_is_asked_for() {
    let with = |last, name: Option<&str>| {
        let congestion = name.map(std::sync::Arc::from);
        Endpoint::open(EndpointConfig { congestion, ..config(last) })
    };
    let error = with(1, Some("nonesuch")).unwrap_err().to_string();
    assert!(error.contains("TCP congestion control nonesuch"), "{error}");
    assert!(error.contains("tcp_allowed_congestion_control"), "{error}");

    let (a, b) = (with(1, None).unwrap(), with(2, None).unwrap());
    let _both = channel(&a, &b);
    assert!(controls().iter().any(|name| name == "reno"), "{:?}", controls());

    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let usual = read("tcp_congestion_control");
    let allowed = read("tcp_allowed_congestion_control");
    let other = |name: &&str| *name != "reno" && *name != usual.trim();
    let Some(asked) = allowed.split_whitespace().find(other) else {
        return eprintln!("skipped: there is no third congestion control here: {allowed}");
    };
    let (a, b) = (with(1, Some(asked)).unwrap(), with(2, Some(asked)).unwrap());
    let _both = channel(&a, &b);
    // Four connections, at both ends.
    let count = controls().iter().filter(|name| *name == asked).count();
    assert!(count >= 2, "{asked}: {:?}", controls());
}

/// The congestion control of each TCP socket of this process.
#[expect(unsafe_code, reason = "descriptors of others are looked at")]
fn controls() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let name = |number| {
        // SAFETY: it is looked at while it is open; one that has been closed meanwhile has no name.
        let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        let name = socket2::SockRef::from(&file).tcp_congestion().ok()?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    };
    numbers.filter_map(name).collect()
}

#[test]
fn a_quarter_of_a_gigabyte_with_check_sums() {
    let with = |last| weft_comm::EndpointConfig { checksum: Checksum::All, ..config(last) };
    let a = weft_comm::Endpoint::open(with(1)).unwrap();
    let b = weft_comm::Endpoint::open(with(2)).unwrap();
    let (sending, receiving) = channel(&a, &b);
    exchange(&sending, &receiving, &pattern(1, 256 << 20), 256 << 20);
    let statistics = a.statistics();
    assert_eq!(statistics.paths.iter().map(|path| path.counts.bytes).sum::<u64>(), 256 << 20);
    assert_eq!(statistics.paths.len(), 4, "{statistics:?}");
    for path in &statistics.paths {
        assert_eq!((path.counts.bytes, path.counts.open), (64 << 20, 1));
    }
}

#[test]
#[ignore = "takes 2 GiB of memory"]
fn a_gigabyte() {
    let (_a, _b, sending, receiving) = pair();
    exchange(&sending, &receiving, &pattern(1, 1 << 30), 1 << 30);
}

#[test]
fn tags_pick_buffers_of_a_group() {
    let (_a, _b, sending, receiving) = pair();
    let mut buffers: Vec<Vec<u8>> = (0..8).map(|_| vec![0; 1_000]).collect();
    let mut all: Vec<_> =
        buffers.iter_mut().enumerate().map(|(tag, it)| (&mut it[..], tag as i32)).collect();
    let received = take(|| receive(&receiving, &mut all));
    let contents: Vec<_> = (0..8).map(|tag| pattern(tag, 100 * tag as usize)).collect();
    let sent: Vec<_> = [3, 1, 7, 0, 2, 6, 5, 4]
        .into_iter()
        .map(|tag| take(|| send(&sending, &contents[tag as usize], tag)))
        .collect();
    let sizes = wait(&received).unwrap();
    assert_eq!((sizes.count, sizes.sizes), (8, [0, 100, 200, 300, 400, 500, 600, 700]));
    for (buffer, content) in buffers.iter().zip(&contents) {
        assert_eq!(buffer[..content.len()], content[..]);
    }
    for request in sent {
        wait(&request).unwrap();
    }
}

#[test]
fn equal_tags_match_in_order() {
    let (_a, _b, sending, receiving) = pair();
    let contents: Vec<_> = (0..200).map(|seed| pattern(seed, 10 + seed as usize)).collect();
    let sent: Vec<_> = contents.iter().map(|it| take(|| send(&sending, it, 1))).collect();
    for content in &contents {
        let mut buffer = vec![0; 300];
        let received = take(|| receive(&receiving, &mut [(&mut buffer, 1)]));
        assert_eq!(wait(&received).unwrap().sizes[0], content.len());
        assert_eq!(buffer[..content.len()], content[..]);
    }
    for request in sent {
        wait(&request).unwrap();
    }
}

#[test]
fn a_channel_holds_so_many_requests() {
    let (_a, _b, sending, receiving) = pair();
    let mut sent = Vec::new();
    let bytes = pattern(1, LONG);
    while let Some(request) = send(&sending, &bytes, 0).unwrap() {
        sent.push(request);
    }
    assert_eq!(sent.len(), 256);
    let mut buffers = [[0u8; 4]; 40];
    let mut received = Vec::new();
    let (_c, _d, _other, idle) = pair();
    for buffer in &mut buffers {
        received.extend(receive(&idle, &mut [(buffer, 0)]).unwrap());
    }
    assert_eq!(received.len(), 32);
    let mut buffer = vec![0; LONG];
    for _ in 0..256 {
        buffer.fill(0);
        let request = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
        wait(&request).unwrap();
        assert_eq!(buffer, bytes);
    }
    for request in sent {
        wait(&request).unwrap();
    }
}

/// Short messages go before their buffers are there, so many and of so many bytes; others wait, and all come in
/// their order, whatever lies between them.
#[test]
fn short_messages_do_not_wait_for_buffers() {
    for (len, ahead) in [(0, MOST_EAGER), (1_000, MOST_EAGER), (64 << 10, 16), (512 << 10, 2)] {
        let (_a, _b, sending, receiving) = pair();
        let bytes = pattern(7, len.max(1));
        let bytes = &bytes[..len];
        for _ in 0..ahead {
            wait(&take(|| send(&sending, bytes, 0))).unwrap();
        }
        let waits = take(|| send(&sending, bytes, 0));
        let long = pattern(8, LONG);
        let sent = [take(|| send(&sending, &long, 0)), take(|| send(&sending, bytes, 0))];
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(waits.test().unwrap(), None, "{len} bytes");
        let mut buffer = vec![0; LONG];
        for number in 0..ahead + 3 {
            let expected = if number == ahead + 1 { &long[..] } else { bytes };
            let sizes = wait(&take(|| receive(&receiving, &mut [(&mut buffer, 0)]))).unwrap();
            assert_eq!(&buffer[..sizes.sizes[0]], expected, "message {number} of {len} bytes");
        }
        wait(&waits).unwrap();
        for request in &sent {
            wait(request).unwrap();
        }
    }
}

#[test]
fn a_message_that_does_not_fit_is_an_error_at_both_ends() {
    let says = |error: &CommError, size: usize, room: usize| {
        let CommError::Invalid(what) = error else { panic!("{error}") };
        assert!(
            what.contains(&format!("{size} bytes")) && what.contains(&room.to_string()),
            "{what}"
        );
    };
    let (_a, _b, sending, receiving) = pair();
    let mut buffer = [0; 10];
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let sent = take(|| send(&sending, &[1; LONG], 0));
    for request in [sent, received] {
        says(&wait(&request).expect_err("it went through"), LONG, 10);
    }
    assert!(send(&sending, b"", 0).is_err());
    assert!(receive(&receiving, &mut [(&mut buffer, 0)]).is_err());
    // A short one may be there before its buffer.
    for first in [true, false] {
        let (_c, _d, sending, receiving) = pair();
        let post = || take(|| send(&sending, &[1; 11], 0));
        if first {
            let _ = wait(&post());
            std::thread::sleep(Duration::from_millis(20));
        }
        let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
        if !first {
            let _ = wait(&post());
        }
        says(&wait(&received).expect_err("it went through"), 11, 10);
        let start = Instant::now();
        let error = loop {
            match send(&sending, b"", 0) {
                Err(error) => break error,
                Ok(_) => assert!(start.elapsed() < LIMIT, "the sender was not told"),
            }
        };
        says(&error, 11, 10);
    }
}

#[test]
fn an_endpoint_may_talk_to_itself() {
    let a = open(1);
    let (sending, receiving) = channel(&a, &a);
    exchange(&sending, &receiving, &pattern(1, 1_000_000), 1_000_000);
}

#[test]
fn many_channels_of_many_endpoints() {
    let endpoints: Vec<_> = (1..=4).map(open).collect();
    let mut channels = Vec::new();
    for from in &endpoints {
        for to in &endpoints {
            channels.extend((0..3).map(|_| channel(from, to)));
        }
    }
    std::thread::scope(|scope| {
        for (number, (sending, receiving)) in channels.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..5 {
                    let bytes = pattern(number as u64, 1_000 * number + round);
                    exchange(sending, receiving, &bytes, bytes.len());
                }
            });
        }
    });
}

#[test]
fn several_peers_come_to_one_listener() {
    let (a, b, c) = (open(1), open(2), open(3));
    let (listener, handle) = c.listen().unwrap();
    let mut connecting = [a.connect(&handle).unwrap(), b.connect(&handle).unwrap()];
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    let end = Instant::now() + LIMIT;
    while sending.len() < 2 || receiving.len() < 2 {
        for one in &mut connecting {
            // What is finished says that it is over.
            if let Ok(Some(channel)) = one.try_finish() {
                sending.push(channel);
            }
        }
        receiving.extend(listener.try_accept().unwrap());
        assert!(Instant::now() < end);
    }
    // Which is which shows when something comes.
    let mut buffers = [[0; 2]; 2];
    let received: Vec<_> = receiving
        .iter()
        .zip(&mut buffers)
        .map(|(one, buffer)| take(|| receive(one, &mut [(buffer, 0)])))
        .collect();
    let sent = take(|| send(&sending[0], b"hi", 0));
    wait(&sent).unwrap();
    let done = || received.iter().filter(|one| one.test().unwrap().is_some()).count();
    while done() == 0 {
        assert!(Instant::now() < end, "nothing comes");
    }
    assert_eq!(done(), 1);
    drop(receiving);
}

/// 32 receives are always posted, and sends as many as go.
fn flood(messages: u64, most: usize) {
    let (_a, _b, sending, receiving) = pair();
    let start = Instant::now();
    let sender = std::thread::spawn(move || {
        let mut out = VecDeque::new();
        let mut state = 1u64;
        for number in 0..messages {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number);
            let bytes = pattern(number, (state >> 33) as usize % (most + 1));
            let request = take(|| send(&sending, &bytes, 0));
            out.push_back((request, bytes));
            if out.len() > 200 {
                wait(&out.pop_front().unwrap().0).unwrap();
            }
        }
        for (request, _) in &out {
            wait(request).unwrap();
        }
    });
    let mut posted = VecDeque::new();
    let mut next = 0;
    let mut total = 0;
    let mut state = 1u64;
    for number in 0..messages {
        while next < messages && posted.len() < 32 {
            let mut buffer = vec![0; most];
            posted.push_back((take(|| receive(&receiving, &mut [(&mut buffer, 0)])), buffer));
            next += 1;
        }
        let (request, buffer) = posted.pop_front().unwrap();
        let len = wait(&request).unwrap().sizes[0];
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number);
        assert_eq!(len, (state >> 33) as usize % (most + 1));
        assert!(buffer[..len] == pattern(number, len)[..], "message {number}");
        total += len;
    }
    sender.join().unwrap();
    let took = start.elapsed().as_secs_f64();
    println!(
        "{messages} messages, {total} bytes: {took:.3} s, {:.0} messages/s",
        messages as f64 / took
    );
}

#[test]
fn many_small_messages() {
    flood(50_000, 64);
}

#[test]
fn many_messages_of_random_sizes() {
    flood(2_000, 300_000);
}

#[test]
#[ignore = "a minute in debug builds"]
fn a_million_small_messages() {
    flood(1_000_000, 256);
}
