//! Channels that everything happens to: every byte comes once, or there is a clear error.

mod common;
#[path = "common/proxy.rs"]
mod proxy;

use common::*;
use proxy::{Fault, Proxy};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weft_comm::wire::{HEADER, HELLO, Header, Kind};
use weft_comm::{Checksum, CommError, Endpoint, EndpointConfig, RecvChannel, Request, SendChannel};

/// A channel whose connections go through a proxy.
fn through(
    config_of: impl Fn(u8) -> EndpointConfig,
    fault: impl Fn(u64) -> Fault + Send + 'static,
) -> (Endpoint, Endpoint, SendChannel, RecvChannel, Proxy) {
    let a = Endpoint::open(config_of(1)).expect("opens");
    let b = Endpoint::open(config_of(2)).expect("opens");
    let (listener, handle) = b.listen().expect("listens");
    let (proxy, handle) = Proxy::before(&handle, fault);
    let (sending, receiving) = connect(&a, &listener, &handle);
    // Reconnecting does not need it.
    drop(listener);
    (a, b, sending, receiving, proxy)
}

/// Sends messages of all sizes, many at a time, and compares them.
fn many(sending: &SendChannel, receiving: &RecvChannel, messages: u64) {
    let content = |number: u64| {
        let len = match number % 5 {
            0 => 0,
            1 => number as usize % 100,
            2 => 5_000,
            3 => 200_000 + number as usize,
            _ => 700_001,
        };
        pattern(number, len)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = VecDeque::new();
            for number in 0..messages {
                let bytes = content(number);
                out.push_back((take(|| send(sending, &bytes, 0)), bytes));
                if out.len() > 40 {
                    wait(&out.pop_front().expect("some").0).expect("sent");
                }
            }
            for (request, _) in &out {
                wait(request).expect("sent");
            }
        });
        let mut posted = VecDeque::new();
        for number in 0..messages {
            let mut buffer = vec![0; 800_000];
            posted.push_back((take(|| receive(receiving, &mut [(&mut buffer, 0)])), buffer));
            if posted.len() == 16 || number + 1 == messages {
                while posted.len() > 8 || number + 1 == messages && !posted.is_empty() {
                    let at = number + 1 - posted.len() as u64;
                    let (request, buffer) = posted.pop_front().expect("some");
                    let len = wait(&request).expect("received").sizes[0];
                    assert!(buffer[..len] == content(at)[..], "message {at} is another one");
                }
            }
        }
    });
}

fn draw(number: u64, below: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) % below
}

#[test]
fn connections_are_cut_again_and_again() {
    let (a, _b, sending, receiving, proxy) =
        through(config, |number| Fault::Cut(100 + draw(number, 900_000)));
    many(&sending, &receiving, 200);
    assert!(proxy.done.load(Ordering::SeqCst) > 20, "{proxy:?}");
    let lost: u64 = a.statistics().paths.iter().map(|path| path.counts.reconnects).sum();
    assert!(lost > 20, "{lost}");
}

#[test]
fn connections_are_reset_again_and_again() {
    let (_a, _b, sending, receiving, proxy) =
        through(config, |number| Fault::Reset(1 + draw(number, 1_500_000)));
    many(&sending, &receiving, 200);
    assert!(proxy.done.load(Ordering::SeqCst) > 20, "{proxy:?}");
}

#[test]
fn bits_are_flipped() {
    let checked = |last| EndpointConfig { checksum: Checksum::All, ..config(last) };
    flipped(checked);
}

/// Nobody changes what is encrypted unnoticed, without a check sum of its own.
#[test]
fn bits_are_flipped_in_what_is_encrypted() {
    flipped(encrypting);
}

fn flipped(config_of: impl Fn(u8) -> EndpointConfig) {
    // Not in the hello: that is a pending connection's.
    let (a, b, sending, receiving, proxy) =
        through(config_of, |number| Fault::Flip(20 * HELLO as u64 + draw(number, 900_000)));
    many(&sending, &receiving, 200);
    assert!(proxy.done.load(Ordering::SeqCst) > 20, "{proxy:?}");
    let damaged = a.statistics().damaged + b.statistics().damaged;
    assert!(damaged > 20, "{damaged}");
}

fn encrypting(last: u8) -> EndpointConfig {
    EndpointConfig { encrypt: true, ..config(last) }
}

#[test]
fn connections_that_encrypt_are_reset_again_and_again() {
    let (_a, _b, sending, receiving, proxy) =
        through(encrypting, |number| Fault::Reset(1 + draw(number, 1_500_000)));
    many(&sending, &receiving, 200);
    assert!(proxy.done.load(Ordering::SeqCst) > 20, "{proxy:?}");
}

/// Who reads along sees payload, or does not.
#[test]
fn what_is_encrypted_is_not_on_the_wire() {
    let seen = |config_of: fn(u8) -> EndpointConfig| {
        let (_a, _b, sending, receiving, proxy) = through(config_of, |_| Fault::None);
        let bytes = pattern(3, 50_000);
        exchange(&sending, &receiving, &bytes, 50_000);
        let wire = proxy.heard.lock().unwrap();
        assert!(wire.len() > 50_000);
        wire.windows(64).any(|some| some == &bytes[1_000..1_064])
    };
    assert!(seen(config));
    assert!(!seen(encrypting));
}

#[test]
fn hellos_are_damaged() {
    let (a, b, sending, receiving, _proxy) = through(config, |number| match number % 3 {
        0 => Fault::Flip(draw(number, HELLO as u64)),
        1 => Fault::Cut(draw(number, HELLO as u64)),
        // Closed, not reset: a reset may lose every whole frame, and nothing would get on.
        _ => Fault::Cut(600_000),
    });
    many(&sending, &receiving, 30);
    assert!(a.statistics().damaged + b.statistics().damaged > 0);
}

#[test]
fn connections_stall_for_a_while() {
    let (_a, _b, sending, receiving, proxy) =
        through(config, |number| Fault::Stall(draw(number, 900_000), Duration::from_millis(600)));
    many(&sending, &receiving, 100);
    assert!(proxy.done.load(Ordering::SeqCst) > 0, "{proxy:?}");
}

/// A connection that takes bytes and does nothing with them, beside others that work.
#[test]
fn a_connection_that_swallows_everything_is_replaced() {
    let impatient = |last| EndpointConfig { give_up: Duration::from_secs(2), ..config(last) };
    let (a, _b, sending, receiving, _proxy) = through(impatient, |number| match number {
        2 => Fault::Stall(200_000, Duration::from_secs(3_600)),
        _ => Fault::None,
    });
    let start = Instant::now();
    many(&sending, &receiving, 100);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?} {:?}", a.statistics());
    let late: u64 = a.statistics().paths.iter().map(|path| path.counts.time_outs).sum();
    assert!(late > 0);
}

/// Small sends are over when they are written, and arrive over another connection if theirs dies after that, be
/// it that their sender has closed the channel meanwhile.
#[test]
fn what_was_copied_arrives_though_its_channel_is_closed() {
    let (_a, _b, sending, receiving, proxy) = through(config, |number| match number {
        0 => Fault::Stall(100_000, Duration::from_secs(3_600)),
        _ => Fault::None,
    });
    let contents: Vec<_> = (0..30).map(|number| pattern(number, 10_000)).collect();
    let mut buffers = vec![vec![0; 10_000]; contents.len()];
    let receives: Vec<_> =
        buffers.iter_mut().map(|buffer| take(|| receive(&receiving, &mut [(buffer, 0)]))).collect();
    for content in &contents {
        let mut gone = content.clone();
        wait(&take(|| send(&sending, &gone, 0))).expect("sent");
        // The application has its memory back.
        gone.fill(0xDD);
    }
    let begun = Instant::now();
    while proxy.done.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < LIMIT, "the connection does not stand still");
    }
    drop(sending);
    for (number, receive) in receives.iter().enumerate() {
        assert_eq!(wait(receive).expect("received").sizes[0], 10_000, "{number}");
        assert!(buffers[number] == contents[number], "message {number} is another one");
    }
}

/// Acknowledgements of what was copied, and announcements of buffers while there are others, go together.
#[test]
fn answers_go_together() {
    let (_a, _b, sending, receiving, proxy) = through(config, |_| Fault::None);
    for round in 0..10 {
        let contents: Vec<_> = (0..20).map(|number| pattern(round * number, 2_000)).collect();
        let mut buffers = vec![vec![0; 2_000]; contents.len()];
        let receives: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| take(|| receive(&receiving, &mut [(buffer, 0)])))
            .collect();
        let sends: Vec<_> = contents.iter().map(|it| take(|| send(&sending, it, 0))).collect();
        for one in sends.iter().chain(&receives) {
            wait(one).expect("done");
        }
        assert!(buffers == contents);
    }
    std::thread::sleep(Duration::from_millis(50));
    let answered = proxy.answered.lock().unwrap();
    let (mut rest, mut acks) = (&answered[..], 0);
    while let Some((header, behind)) = rest.split_first_chunk() {
        let header = Header::decode(header).expect("a frame");
        acks += u64::from(header.kind == Kind::Ack);
        rest = &behind[header.len as usize..];
    }
    // A millisecond each at most; on a busy machine a round takes longer.
    assert!((1..100).contains(&acks), "{acks} for 200 messages");
}

#[test]
fn a_listener_that_is_gone_refuses() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    drop(listener);
    let mut connecting = a.connect(&handle).unwrap();
    let start = Instant::now();
    while connecting.try_finish().is_ok_and(|channel| channel.is_none()) {
        assert!(start.elapsed() < Duration::from_secs(2), "no error");
    }
    assert!(connecting.try_finish().is_err());
}

/// Every connection is welcomed and dies before a frame is through: no progress is no life.
#[test]
fn a_transfer_that_never_gets_on_is_given_up() {
    let checked = |last| EndpointConfig {
        checksum: Checksum::All,
        give_up: Duration::from_secs(2),
        connections: 1,
        ..config(last)
    };
    // The first announcement of every connection is damaged; the first frame.
    for at in [3_200, 100_000] {
        let (a, b, sending, receiving, _proxy) = through(checked, move |_| Fault::Flip(at));
        let bytes = pattern(1, 1 << 20);
        let mut buffer = vec![0; 1 << 20];
        let _received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
        let sent = take(|| send(&sending, &bytes, 0));
        let start = Instant::now();
        let error = wait(&sent).unwrap_err();
        assert!(matches!(error, CommError::Remote(_)), "{error}");
        assert!((2..6).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
        assert!(a.statistics().damaged + b.statistics().damaged > 3);
        drop((sending, receiving));
    }
}

/// Requests that the engine has never seen are over as well.
#[test]
fn nothing_waits_for_an_endpoint_that_is_gone() {
    for round in 0..30 {
        let (a, _b, sending, _receiving) = pair();
        let bytes = [0; LONG];
        std::thread::scope(|scope| {
            let posted = scope.spawn(|| {
                let mut all = Vec::new();
                while let Ok(request) = send(&sending, &bytes, 0) {
                    all.extend(request);
                }
                all
            });
            std::thread::sleep(Duration::from_micros(100 * round));
            drop(a);
            for request in posted.join().unwrap() {
                wait(&request).unwrap_err();
            }
        });
    }
}

#[test]
fn whoever_waits_at_a_listener_that_closes_is_told() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    let mut connecting = a.connect(&handle).unwrap();
    let start = Instant::now();
    let sending = loop {
        if let Some(sending) = connecting.try_finish().unwrap() {
            break sending;
        }
        assert!(start.elapsed() < LIMIT);
    };
    drop(listener);
    while send(&sending, b"x", 0).is_ok() {
        assert!(start.elapsed() < LIMIT, "it was not told");
    }
}

#[test]
fn closing_is_noticed_by_the_other_side() {
    let (_a, _b, sending, receiving) = pair();
    let mut buffer = [0; 8];
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    drop(sending);
    let error = wait(&received).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    let (_c, _d, sending, receiving) = pair();
    let sent = take(|| send(&sending, &[1; LONG], 0));
    drop(receiving);
    let error = wait(&sent).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    // Short ones are over before anybody has received them; then there is nobody.
    let (_e, _f, sending, receiving) = pair();
    wait(&take(|| send(&sending, b"hello", 0))).unwrap();
    drop(receiving);
    let start = Instant::now();
    let error = loop {
        match send(&sending, b"hello", 0) {
            Err(error) => break error,
            Ok(_) => assert!(start.elapsed() < LIMIT, "it was not told"),
        }
    };
    assert!(error.to_string().contains("closed"), "{error}");
}

/// What is sent without a buffer comes, also where its sender has gone before anybody asks for it; and no more.
#[test]
fn short_messages_outlive_their_sender() {
    for tags in [[0, 0, 0], [2, 1, 2]] {
        let (a, _b, sending, receiving) = pair();
        let all: Vec<_> = (1..4).map(|seed| pattern(seed, 20_000 * seed as usize)).collect();
        for (bytes, tag) in all.iter().zip(tags) {
            wait(&take(|| send(&sending, bytes, tag))).unwrap();
        }
        drop(sending);
        drop(a);
        std::thread::sleep(Duration::from_millis(100));
        let mut buffer = vec![0; 1 << 16];
        // Those with another tag may be asked for first.
        let order = if tags[1] == 0 { [0, 1, 2] } else { [1, 0, 2] };
        for at in order {
            let received = take(|| receive(&receiving, &mut [(&mut buffer, tags[at])]));
            assert_eq!(wait(&received).unwrap().sizes[0], all[at].len());
            assert_eq!(buffer[..all[at].len()], all[at]);
        }
        let error = match receive(&receiving, &mut [(&mut buffer, 0)]) {
            Ok(request) => wait(&request.expect("there is room")).unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("closed"), "{error}");
    }
}

/// What was received stays received, whatever the receiver does next.
#[test]
fn a_receiver_that_leaves_at_once_has_acknowledged() {
    for _ in 0..20 {
        let (_a, b, sending, receiving) = pair();
        let bytes = pattern(1, 300_000);
        let mut buffer = vec![0; 300_000];
        let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
        let sent = take(|| send(&sending, &bytes, 0));
        wait(&received).unwrap();
        drop(receiving);
        drop(b);
        wait(&sent).expect("it has come");
    }
}

#[test]
fn an_endpoint_that_is_dropped_ends_its_channels() {
    let (a, b, sending, receiving) = pair();
    let sent = take(|| send(&sending, &[1; LONG], 0));
    drop(b);
    wait(&sent).unwrap_err();
    let mut buffer = [0; 8];
    assert!(receive(&receiving, &mut [(&mut buffer, 0)]).is_err());
    drop(receiving);
    drop(a);
    assert!(send(&sending, b"hello", 0).is_err());
}

/// `connections[n]` befalls the n-th connection of a channel; nothing the others.
fn behind_a_proxy(connections: Vec<Fault>) -> (Endpoint, Endpoint, SendChannel, RecvChannel) {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().unwrap();
    let fault = move |number| connections.get(number as usize).copied().unwrap_or(Fault::None);
    let (_, handle) = Proxy::before(&handle, fault);
    let (sending, receiving) = connect(&a, &listener, &handle);
    (a, b, sending, receiving)
}

/// Bytes of the longest messages that are over when they are written.
const SHORT: usize = 64 << 10;

/// Bytes until message `number` of `SHORT` bytes is here over the first connection.
const fn behind(number: u64) -> u64 {
    HELLO as u64 + number * (HEADER + SHORT) as u64
}

/// A short message stands half read, and its buffer is announced meanwhile: others may go for it.
#[test]
fn a_short_message_that_stalls_does_not_count_once_it_has_a_buffer() {
    let stall = Fault::Stall(behind(7) + 20_000, Duration::from_millis(300));
    let (_a, _b, sending, receiving) = behind_a_proxy(vec![stall]);
    let mut all: Vec<_> = (0..25).map(|seed| pattern(seed, SHORT)).collect();
    all[15].truncate(1);
    all[24].truncate(SHORT - 1);
    let mut buffers: Vec<_> = all.iter().map(|one| vec![0; one.len()]).collect();
    let mut requests = Vec::new();
    let settle = |requests: &[Request]| {
        for _ in 0..125 {
            for one in requests {
                one.test().expect("a channel that is fine");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    let mut left = buffers.iter_mut();
    requests.extend(all[..15].iter().map(|bytes| take(|| send(&sending, bytes, 0))));
    settle(&requests);
    let some = left.by_ref().take(8);
    requests.extend(some.map(|buffer| take(|| receive(&receiving, &mut [(buffer, 0)]))));
    settle(&requests);
    // Its acknowledgement takes announcements along.
    requests.push(take(|| send(&sending, &all[15], 0)));
    settle(&requests);
    requests.extend(all[16..].iter().map(|bytes| take(|| send(&sending, bytes, 0))));
    settle(&requests);
    requests.extend(left.map(|buffer| take(|| receive(&receiving, &mut [(buffer, 0)]))));
    for one in &requests {
        wait(one).expect("a channel that is fine");
    }
    assert!(buffers == all);
}

/// What says that somebody waits is lost with its connection, which does not come back, or on its way.
#[test]
fn a_request_to_send_is_made_again() {
    let for_ever = Duration::from_secs(3_600);
    // It goes over the connection that was heard of last, the second, behind two short messages.
    let there = (HELLO + 2 * (HEADER + 1)) as u64;
    for lost in [Fault::Cut(there + 20), Fault::Stall(there, for_ever)] {
        let mut faults = vec![Fault::None, lost];
        if let Fault::Cut(_) = lost {
            faults.resize(1_000, Fault::Stall(0, for_ever));
        }
        let (_a, _b, sending, receiving) = behind_a_proxy(faults);
        let mut all: Vec<_> = (0..11).map(|seed| pattern(seed, SHORT)).collect();
        all[8].truncate(1);
        all[9].truncate(1);
        all[10] = pattern(10, LONG);
        for bytes in &all[..10] {
            wait(&take(|| send(&sending, bytes, 0))).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
        let last = take(|| send(&sending, &all[10], 0));
        std::thread::sleep(Duration::from_millis(50));
        let mut buffers: Vec<_> = all.iter().map(|one| vec![0; one.len()]).collect();
        let posted = buffers.iter_mut().map(|it| take(|| receive(&receiving, &mut [(it, 0)])));
        let posted: Vec<_> = posted.collect();
        wait(&last).unwrap_or_else(|error| panic!("{lost:?}: {error}"));
        posted.iter().for_each(|one| assert!(wait(one).is_ok()));
        assert!(buffers == all);
    }
}

/// What has been sent over a slow connection comes, though its channel or endpoint goes, and says so over another.
#[test]
fn a_goodbye_does_not_overtake_what_was_sent() {
    for (keeps_endpoint, waits) in [(true, false), (true, true), (false, false)] {
        let stall = Fault::Stall(100_000, Duration::from_millis(150));
        let (a, _b, sending, receiving) = behind_a_proxy(vec![Fault::None, stall]);
        let all: Vec<_> = (0..15).map(|seed| pattern(seed, SHORT)).collect();
        for bytes in &all {
            wait(&take(|| send(&sending, bytes, 0))).unwrap();
        }
        let long = pattern(77, LONG);
        let _never = waits.then(|| take(|| send(&sending, &long, 0)));
        let _a = if keeps_endpoint { Some(a) } else { None };
        drop(sending);
        let mut buffer = vec![0; SHORT];
        for (number, bytes) in all.iter().enumerate() {
            let received = receive(&receiving, &mut [(&mut buffer, 0)]);
            let received = received.and_then(|request| wait(&request.expect("there is room")));
            received.unwrap_or_else(|error| {
                panic!("message {number}, endpoint {keeps_endpoint}, waits {waits}: {error}")
            });
            assert_eq!(&buffer, bytes);
        }
    }
}
