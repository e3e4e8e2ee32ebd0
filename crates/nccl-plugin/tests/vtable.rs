//! Each version driven through its table as NCCL's proxy drives it.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{Pair, fill, is_filled, net};
use weft_nccl_abi::{CommAttributes, HANDLE_BYTES, NcclResult, NetAttributes, Version};
use weft_net_bench::BenchError;

#[test]
fn properties_are_what_nccl_needs() {
    for version in Version::ALL {
        let net = net(version);
        assert_eq!(net.devices().expect("it counts"), 1);
        let properties = net.properties(0).expect("it has properties");
        assert_eq!(properties.name, "lo");
        assert_eq!(properties.pointer_support, weft_nccl_abi::POINTER_HOST);
        assert_eq!(properties.max_receives, 8);
        assert!(properties.speed > 0 && properties.max_comms > 0);
        let largest = (version > Version::V8).then_some(1 << 30);
        assert_eq!(properties.max_bytes, largest, "{version:?}");
        net.properties(1).expect_err("there is no second");
        net.properties(-1).expect_err("nor one before the first");
        net.finalize().expect("it ends");
    }
}

#[test]
fn connections_are_pending_and_never_block() {
    for version in Version::ALL {
        let net = net(version);
        // It asks the listener before anybody connects, and then both in turn.
        Pair::new(&net, 16).close();
        // The handle of one that is gone.
        let (mut handle, listener) = net.listen(0).expect("it listens");
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
        let begun = std::time::Instant::now();
        let first = net.connect(0, &mut handle);
        assert!(begun.elapsed() < std::time::Duration::from_secs(1), "{version:?}: it blocks");
        let mut ask = || net.connect(0, &mut handle).err();
        let error = first.err().unwrap_or_else(|| common::until("the error", &mut ask));
        let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
        assert_eq!(result, NcclResult::REMOTE_ERROR);
        net.finalize().expect("it ends");
    }
}

/// NCCL gives the bytes of a handle again, wherever it has put them meanwhile.
#[test]
fn an_attempt_to_connect_goes_with_its_handle() {
    for version in Version::ALL {
        // Where other work keeps the cores busy a connection may stand before anybody asks again.
        let was_pending = (0..50).any(|_| two_that_take_turns(version) > 2);
        assert!(was_pending, "{version:?}: none was pending, so nothing was tried");
    }
}

/// How often two attempts asked, which take turns at the same places, until both had a channel.
fn two_that_take_turns(version: Version) -> usize {
    let net = net(version);
    let (handle, listener) = net.listen(0).expect("it listens");
    let mut places = [[0; HANDLE_BYTES]; 7];
    let mut now = [handle; 2];
    let mut channels: [*mut std::ffi::c_void; 2] = [std::ptr::null_mut(); 2];
    let mut turn = 0;
    common::until("both", || {
        for (handle, channel) in now.iter_mut().zip(&mut channels) {
            if channel.is_null() {
                let place = &mut places[turn % 7];
                *place = *handle;
                *channel = net.connect(0, place).expect("it connects");
                *handle = std::mem::replace(place, [0; HANDLE_BYTES]);
                turn += 1;
            }
        }
        channels.iter().all(|channel| !channel.is_null()).then_some(())
    });
    assert_eq!(now, [handle; 2], "{version:?}: when it is over the handle is as it was");
    let mut accepted = Vec::new();
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_millis(100) {
        // SAFETY: the listener is open.
        let one = unsafe { net.accept(listener).expect("it accepts") };
        accepted.extend((!one.is_null()).then_some(one));
    }
    assert_eq!(accepted.len(), 2, "{version:?}: as many channels as were asked for");
    // SAFETY: all are open, and closed here only.
    unsafe {
        accepted.into_iter().for_each(|one| net.close_recv(one).expect("it closes"));
        channels.into_iter().for_each(|one| net.close_send(one).expect("it closes"));
        net.close_listen(listener).expect("it closes");
    }
    net.finalize().expect("it ends");
    turn
}

#[test]
fn messages_of_all_sizes_come_whole() {
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 4 << 20);
        for (message, len) in [0, 1, 3, 4095, 65_536, 300_001, 4 << 20].into_iter().enumerate() {
            for optional in [false, true] {
                fill(&mut pair.out[..len], message);
                pair.into.fill(0);
                let receive = common::until("irecv", || pair.try_receive(&[(0, len, 0)], optional));
                let send = pair.send(0, len, 0);
                assert_eq!(pair.wait(send)[0], len as i32, "{version:?}");
                assert_eq!(pair.wait(receive)[0], len as i32, "{version:?}");
                assert!(is_filled(&pair.into[..len], message), "{version:?}: {len} bytes");
            }
        }
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn a_receive_may_be_larger_than_its_send() {
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 1 << 20);
        for len in [0, 1, 1000, 500_000] {
            fill(&mut pair.out[..len], len);
            pair.into.fill(0xEE);
            let receive = pair.receive(&[(0, 1 << 20, 0)]);
            let send = pair.send(0, len, 0);
            pair.wait(send);
            assert_eq!(pair.wait(receive)[0], len as i32);
            assert!(is_filled(&pair.into[..len], len));
            assert!(
                pair.into[len..].iter().all(|byte| *byte == 0xEE),
                "nothing beyond the message"
            );
        }
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn thirty_two_receives_of_eight_are_under_way_at_once() {
    const SIZE: usize = 500;
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 33 * 8 * SIZE);
        let parts = |receive: usize| -> Vec<(usize, usize, i32)> {
            (0..8).map(|part| ((receive * 8 + part) * SIZE, SIZE, part as i32)).collect()
        };
        let receives: Vec<_> = (0..32).map(|receive| pair.receive(&parts(receive))).collect();
        // NCCL asks for no more; who does gets null, which is no error.
        assert!(pair.try_receive(&parts(32), false).is_none(), "{version:?}");
        let mut sends = Vec::new();
        for receive in 0..32 {
            for part in [5, 2, 7, 0, 1, 6, 4, 3] {
                let (from, len) = ((receive * 8 + part) * SIZE, SIZE - part - receive);
                fill(&mut pair.out[from..from + len], receive * 8 + part);
                sends.push(pair.send(from, len, part as i32));
            }
        }
        sends.into_iter().rev().for_each(|send| {
            pair.wait(send);
        });
        for (receive, request) in receives.into_iter().enumerate().rev() {
            let sizes = pair.wait(request);
            for (part, size) in sizes.into_iter().enumerate() {
                let (from, len) = ((receive * 8 + part) * SIZE, SIZE - part - receive);
                assert_eq!(size, len as i32, "{version:?}");
                assert!(is_filled(&pair.into[from..from + len], receive * 8 + part));
            }
        }
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn long_sends_wait_for_their_receives() {
    const LEN: usize = 600_000;
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 8 * LEN);
        let sends: Vec<_> = (0..8)
            .map(|message| {
                fill(&mut pair.out[message * LEN..(message + 1) * LEN], message);
                pair.send(message * LEN, LEN, 0)
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(sends.iter().all(|send| pair.test(*send).is_none()), "there is no place for them");
        for message in 0..8 {
            let receive = pair.receive(&[(message * LEN, LEN, 0)]);
            pair.wait(receive);
            assert!(is_filled(&pair.into[message * LEN..(message + 1) * LEN], message));
        }
        sends.into_iter().for_each(|send| {
            pair.wait(send);
        });
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn sends_are_refused_kindly_when_too_many_wait() {
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, 64);
    let mut sends = Vec::new();
    while let Some(send) = pair.try_send(0, 8, 0) {
        sends.push(send);
        assert!(sends.len() <= 4096, "there is no end to what is taken");
    }
    assert!(sends.len() >= 32 * 8, "NCCL posts as many as 32 receives of 8 take: {}", sends.len());
    for _ in 0..sends.len() {
        let receive = pair.receive(&[(0, 8, 0)]);
        pair.wait(receive);
    }
    sends.into_iter().for_each(|send| {
        pair.wait(send);
    });
    pair.close();
    net.finalize().expect("it ends");
}

#[test]
fn a_channel_may_be_closed_with_requests_under_way() {
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 1 << 20);
        // NCCL does so when a job is aborted.
        pair.receive(&[(0, 100, 0)]);
        pair.receive(&[(100, 1 << 19, 0)]);
        pair.send(0, 50, 0);
        pair.send(0, 1 << 19, 0);
        pair.send(0, 1 << 19, 0);
        pair.close();
        let mut pair = Pair::new(&net, 100);
        let receive = pair.receive(&[(0, 100, 0)]);
        let send = pair.send(0, 100, 0);
        pair.wait(send);
        pair.wait(receive);
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn a_message_longer_than_its_receive_is_an_error_on_both_sides_or_one() {
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, 1000);
    let receive = pair.receive(&[(0, 10, 0)]);
    let send = pair.send(0, 1000, 0);
    let mut sizes = [0; 8];
    // SAFETY: requests that are not over.
    let failed = common::until("the error", || unsafe {
        let one = net.test(receive, &mut sizes).err();
        one.or_else(|| net.test(send, &mut sizes).err())
    });
    assert!(matches!(failed, BenchError::Plugin { call: "test", .. }), "{failed}");
    assert!(pair.into[10..].iter().all(|byte| *byte == 0), "nothing was written beyond it");
    pair.close();
    net.finalize().expect("it ends");
}

#[test]
fn garbage_handles_are_refused_at_once() {
    for version in Version::ALL {
        let net = net(version);
        for seed in 0..50_u8 {
            let mut handle = [0; HANDLE_BYTES];
            for (at, byte) in handle.iter_mut().enumerate() {
                *byte = seed.wrapping_mul(7).wrapping_add((at as u8).wrapping_mul(13));
            }
            let error = net.connect(0, &mut handle).expect_err("it is none of ours");
            let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
            assert_eq!(result, NcclResult::INVALID_ARGUMENT);
        }
        // One bit of a real one.
        let (real, listener) = net.listen(0).expect("it listens");
        for bit in (0..real.len() * 8).step_by(37) {
            let mut handle = real;
            handle[bit / 8] ^= 1 << (bit % 8);
            if let Ok(comm) = net.connect(0, &mut handle) {
                // Bytes that mean nothing may differ.
                assert!(comm.is_null() || bit / 8 > 48, "bit {bit}");
            }
        }
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
        net.finalize().expect("it ends");
    }
}

#[test]
fn whoever_is_gone_is_an_error_in_time() {
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, 100);
    let receive = pair.receive(&[(0, 100, 0)]);
    // SAFETY: it is open, and closed here only.
    unsafe { net.close_send(pair.send).expect("it closes") };
    let mut sizes = [0; 8];
    // SAFETY: the request is not over.
    let error = common::until("the error", || unsafe { net.test(receive, &mut sizes).err() });
    let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
    assert_eq!(result, NcclResult::REMOTE_ERROR);
    // SAFETY: as above.
    unsafe { net.close_recv(pair.receive).expect("it closes") };
    net.finalize().expect("it ends");
}

#[test]
fn many_threads_may_drive_channels_of_their_own() {
    struct Shared(weft_net_bench::table::Net);
    // SAFETY: the interface may be called from several threads, for different communicators.
    unsafe impl Sync for Shared {}
    let shared = Shared(net(Version::V12));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let shared = &shared;
            scope.spawn(move || {
                let mut pair = Pair::new(&shared.0, 100_000);
                for message in 0..50 {
                    let len = (message * 1999 + thread * 77) % 100_000;
                    fill(&mut pair.out[..len], message + thread);
                    let receive = pair.receive(&[(0, len, 3)]);
                    let send = pair.send(0, len, 3);
                    pair.wait(send);
                    pair.wait(receive);
                    assert!(is_filled(&pair.into[..len], message + thread));
                }
                pair.close();
            });
        }
    });
    shared.0.finalize().expect("it ends");
}

#[test]
fn attributes_are_taken() {
    let net = net(Version::V12);
    let unknown = CommAttributes {
        max_concurrent_peers: -1,
        min_concurrent_peers: -1,
        max_flows_per_peer: -1,
        min_flows_per_peer: -1,
    };
    let given = NetAttributes {
        send: CommAttributes { max_concurrent_peers: 3, max_flows_per_peer: 8, ..unknown },
        receive: unknown,
        operation: 1 << 4,
        algorithm: 1 << 1,
        protocol: u32::MAX,
    };
    net.attributes(given).expect("it takes them");
    let pair = Pair::new(&net, 10);
    net.attributes(given).expect("also when a NIC is open");
    pair.close();
    net.finalize().expect("it ends");
}

/// What NCCL may not have as one NIC is refused, and it goes on with those that it has.
#[test]
fn what_cannot_be_merged_is_refused() {
    let result = |error: BenchError| match error {
        BenchError::Plugin { result, .. } => result,
        other => panic!("{other}"),
    };
    for version in Version::ALL.into_iter().filter(|version| *version > Version::V8) {
        let net = net(version);
        let refused = |devices: &[i32]| result(net.make_virtual(devices).expect_err("it refuses"));
        assert_eq!(refused(&[0, 0]), NcclResult::INVALID_USAGE);
        assert_eq!(refused(&[]), NcclResult::INVALID_USAGE);
        assert_eq!(refused(&[0, 1]), NcclResult::INVALID_ARGUMENT);
        assert_eq!(refused(&[-1]), NcclResult::INVALID_ARGUMENT);
        assert_eq!(refused(&[0; 9]), NcclResult::INVALID_ARGUMENT);
        assert_eq!(net.make_virtual(&[0]).expect("one is itself"), 0);
        assert_eq!(net.devices().expect("it counts"), 1);
        assert_eq!(net.properties(0).expect("it is there").members, [0]);
        net.finalize().expect("it ends");
    }
}

/// DSCP of the connections between this process and itself.
fn classes() -> Vec<i32> {
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    let numbers = files.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let connected = |file: &i32| {
        let mut address = [0_u8; 128];
        let mut len = address.len() as libc::socklen_t;
        // SAFETY: the place has room for `len` bytes; what is no connected socket is an error.
        unsafe { libc::getpeername(*file, address.as_mut_ptr().cast(), &raw mut len) == 0 }
    };
    let class = |file: i32| {
        let mut class = 0;
        let mut len = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the place is one number.
        let result = unsafe {
            let place = (&raw mut class).cast();
            libc::getsockopt(file, libc::IPPROTO_IP, libc::IP_TOS, place, &raw mut len)
        };
        (result == 0).then_some(class >> 2)
    };
    numbers.filter(connected).filter_map(class).collect()
}

/// The traffic class of a communicator is the DSCP of both ends of its connections, from version 10 on.
#[test]
fn a_communicator_has_a_traffic_class() {
    for version in Version::ALL {
        let plugin = weft_net_bench::table::Plugin::load(&common::library(), version);
        let plugin = plugin.expect("the version is there");
        common::environment(&[]);
        let logger = Some(weft_net_bench::log::logger());
        // Other tests of this file have connections of class 0 meanwhile; versions, classes of their own.
        let dscp = 40 + version as i32;
        let net = plugin.init_as(logger, dscp << 2 | 3).expect("init works");
        let mut pair = Pair::new(&net, 1 << 20);
        pair.transfer(1 << 20);
        let with = classes().into_iter().filter(|one| *one == dscp).count();
        if version < Version::V10 {
            assert_eq!(with, 0, "{version:?} has no way to say so");
        } else {
            assert!(with >= 2 && with % 2 == 0, "{version:?}: {with} ends have it");
        }
        pair.close();
        net.finalize().expect("it ends");
    }
}

#[test]
fn a_traffic_class_that_cannot_be_is_refused() {
    common::environment(&[]);
    let plugin = weft_net_bench::table::Plugin::load(&common::library(), Version::V12);
    let plugin = plugin.expect("the version is there");
    let error = plugin.init_as(Some(weft_net_bench::log::logger()), 256).expect_err("8 bits");
    let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
    assert_eq!(result, NcclResult::INVALID_ARGUMENT);
}
