//! Much at once, and for long. `make nccl-volume` runs what is ignored here.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{Pair, fill, is_filled, net};
use std::collections::VecDeque;
use std::time::Instant;
use weft_nccl_abi::Version;

#[test]
#[ignore = "a gigabyte each way, for every version"]
fn a_gibibyte_in_one_message() {
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 1 << 30);
        fill(&mut pair.out, 1);
        let begun = Instant::now();
        let receive = pair.receive(&[(0, 1 << 30, 0)]);
        let send = pair.send(0, 1 << 30, 0);
        assert_eq!(pair.wait(send)[0], 1 << 30);
        assert_eq!(pair.wait(receive)[0], 1 << 30);
        let seconds = begun.elapsed().as_secs_f64();
        assert!(is_filled(&pair.into, 1));
        let rate = (1_u64 << 30) as f64 / seconds / 1e9;
        println!("{}: 1 GiB in {seconds:.2} s, {rate:.2} GB/s", version.name());
        let over = (1 << 30) + 1;
        // SAFETY: refused before the memory is looked at.
        let refused =
            unsafe { net.isend(pair.send, pair.out.as_ptr(), over, 0, std::ptr::null_mut()) };
        refused.expect_err("a message has at most 1 GiB");
        pair.close();
        net.finalize().expect("it ends");
    }
}

/// Messages of the same random sizes at both ends, 32 under way, each checked.
fn many(messages: usize, largest: usize) {
    const UNDER_WAY: usize = 32;
    let net = net(Version::V12);
    let mut pair = Pair::new(&net, UNDER_WAY * largest);
    let size = |message: usize| {
        let mixed = (message as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        // Half of them tiny, as NCCL's; the others of any size.
        let below = if mixed & 1 == 0 { 256 } else { largest as u64 + 1 };
        ((mixed >> 8) % below) as usize
    };
    let (mut sends, mut receives) = (VecDeque::new(), VecDeque::new());
    let (mut sent, mut posted, mut received, mut bytes) = (0, 0, 0, 0_u64);
    let begun = Instant::now();
    while received < messages {
        let mut moved = false;
        if posted < messages && receives.len() < UNDER_WAY {
            let slot = posted % UNDER_WAY * largest;
            if let Some(request) = pair.try_receive(&[(slot, largest, 0)], false) {
                receives.push_back(request);
                posted += 1;
                moved = true;
            }
        }
        if sent < messages && sends.len() < UNDER_WAY {
            let (slot, len) = (sent % UNDER_WAY * largest, size(sent));
            fill(&mut pair.out[slot..slot + len], sent);
            if let Some(request) = pair.try_send(slot, len, 0) {
                sends.push_back(request);
                sent += 1;
                moved = true;
            }
        }
        if let Some(sizes) = sends.front().and_then(|request| pair.test(*request)) {
            assert_eq!(sizes[0] as usize, size(sent - sends.len()));
            sends.pop_front();
            moved = true;
        }
        if let Some(sizes) = receives.front().and_then(|request| pair.test(*request)) {
            let (slot, len) = (received % UNDER_WAY * largest, size(received));
            assert_eq!(sizes[0] as usize, len, "message {received}");
            assert!(is_filled(&pair.into[slot..slot + len], received), "message {received}");
            receives.pop_front();
            received += 1;
            bytes += len as u64;
            moved = true;
        }
        if !moved {
            std::thread::yield_now();
        }
    }
    while let Some(send) = sends.pop_front() {
        pair.wait(send);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (rate, goodput) = (messages as f64 / seconds, bytes as f64 / seconds / 1e9);
    println!(
        "{messages} messages, {bytes} bytes in {seconds:.1} s: {rate:.0}/s, {goodput:.2} GB/s"
    );
    pair.close();
    net.finalize().expect("it ends");
}

#[test]
#[ignore = "a minute or so"]
fn a_million_messages_of_random_sizes() {
    many(1_000_000, 16 << 10);
}

#[test]
fn ten_thousand_messages_of_random_sizes() {
    many(10_000, 16 << 10);
}
